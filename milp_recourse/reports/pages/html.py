"""Building HTML: every string is escaped, unless it is an :class:`Html`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from typing import Any

VOID = frozenset({"meta", "input", "br", "img"})


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
        parts.append(f" {label}" if value is True else f' {label}="{escape(str(value))}"')
    parts.append(">")
    if name in VOID:
        return Html("".join(parts))
    return Html("".join(parts) + join(*children) + f"</{name}>")


def join(*children: Child) -> Html:
    """Several children one after the other, without an element around them."""
    parts = []
    for child in children:
        if isinstance(child, Html):
            parts.append(str(child))
        elif isinstance(child, str):
            parts.append(escape(_visible(child)))
        elif child is not None:
            parts.append(join(*child))
    return Html("".join(parts))


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
