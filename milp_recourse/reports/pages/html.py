"""Text as HTML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html import escape
from typing import Any

from markupsafe import Markup

_LONG = re.compile(r"\S{12,}")
_BETWEEN_WORDS = re.compile(r"(?<=[^\w\s]|_)(?=\w)|(?<=[a-z0-9])(?=[A-Z])|(?<=[a-z])(?=[0-9])")


def quoted(value: object) -> Markup:
    """Escaped text, for an attribute and for elements that hold no other element."""
    return Markup(escape(_visible(str(value))))


def breakable(text: str) -> Markup:
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
    return Markup("".join("<wbr>" if piece is None else escape(piece) for piece in pieces))


def _with_breaks(name: str) -> Iterable[str | None]:
    for k, part in enumerate(_BETWEEN_WORDS.split(name)):
        yield from (part,) if k == 0 else (None, part)


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True


def json_island(data: Any, id: str) -> Markup:
    """A script element with data as JSON, escaped so that no text in it can end the element."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for c in "<>&\u2028\u2029":
        text = text.replace(c, f"\\u{ord(c):04x}")
    return Markup(f'<script type="application/json" id="{escape(id)}">{_visible(text)}</script>')


def _visible(text: str) -> str:
    """Text with control characters other than white space, and what is not valid UTF-8, replaced."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c >= " " or c in "\t\r\n" else "\ufffd" for c in text)
