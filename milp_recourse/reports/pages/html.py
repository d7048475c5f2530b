"""Building HTML: every string is escaped, unless it is an :class:`Html`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html import escape
from typing import Any

VOID = frozenset({"meta", "input", "br", "img", "wbr"})
PLAIN = frozenset({"title", "option", "text"})
"""Elements whose text can hold no element."""

_LONG = re.compile(r"\S{12,}")
_BETWEEN_WORDS = re.compile(r"(?<=[^\w\s]|_)(?=\w)|(?<=[a-z0-9])(?=[A-Z])|(?<=[a-z])(?=[0-9])")


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | None | Iterable["str | None"]


def el(name: str, /, *children: Child, **attributes: object) -> Html:
    """An element; children that are strings are escaped, and None is left out.

    Parameters
    ----------
    attributes
        ``class_`` for ``class``, ``data_x`` for ``data-x``; True for an attribute without value; None and
        False for no attribute.
    """
    parts = [f"<{name}"]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        label = key.rstrip("_").replace("_", "-")
        parts.append(f" {label}" if value is True else f' {label}="{quoted(value)}"')
    parts.append(">")
    if name in VOID:
        return Html("".join(parts))
    inside = _joined(children, breaks=name not in PLAIN)
    return Html("".join(parts) + inside + f"</{name}>")


def join(*children: Child) -> Html:
    """Several children one after the other, without an element around them."""
    return _joined(children)


def _joined(children: Iterable[Child], breaks: bool = True) -> Html:
    parts = []
    for child in children:
        if isinstance(child, Html):
            parts.append(str(child))
        elif isinstance(child, str):
            parts.append(breakable(child) if breaks else quoted(child))
        elif child is not None:
            parts.append(_joined(child, breaks))
    return Html("".join(parts))


def quoted(value: object) -> Html:
    """Escaped text, for an attribute and for elements that hold no other element."""
    return Html(escape(_visible(str(value))))


def breakable(text: str) -> Html:
    """Escaped text, in which a name such as ``numberOfOpen_lines`` may go on in a new line between its words.

    The element ``wbr`` allows that, and is no character.
    """
    at = 0
    pieces: list[str | None] = []
    for found in _LONG.finditer(visible := _visible(text)):
        if any(c.isalpha() for c in found[0]) and not _is_number(found[0]):
            pieces += [visible[at : found.start()], *_with_breaks(found[0])]
            at = found.end()
    pieces.append(visible[at:])
    return Html("".join("<wbr>" if piece is None else escape(piece) for piece in pieces))


def _with_breaks(name: str) -> Iterable[str | None]:
    for k, part in enumerate(_BETWEEN_WORDS.split(name)):
        yield from (part,) if k == 0 else (None, part)


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True


def json_island(data: Any, id: str) -> Html:
    """A script element with data as JSON, escaped so that no text in it can end the element."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for c in "<>&\u2028\u2029":
        text = text.replace(c, f"\\u{ord(c):04x}")
    return Html(f'<script type="application/json" id="{escape(id)}">{_visible(text)}</script>')


def _visible(text: str) -> str:
    """Text with control characters other than white space, and what is not valid UTF-8, replaced."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c >= " " or c in "\t\r\n" else "\ufffd" for c in text)
