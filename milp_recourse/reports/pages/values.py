"""Text and values on pages: as HTML, rounded, or with all digits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal
from html import escape
from typing import Any

from markupsafe import Markup

from milp_recourse.reports.view import plain

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


MISSING = "missing"
PRECISIONS = (4, 6, 9, 12, 17)


def shown(value: object, precision: int = 4) -> str:
    """A value rounded to ``precision`` significant digits, but with all digits before the decimal point."""
    v = plain(value)
    if v is None:
        return MISSING
    if isinstance(v, str):
        return v
    if isinstance(v, int) or (v.is_integer() and abs(v) < 1e15):
        return _grouped(str(int(v)))
    if not 1e-4 <= abs(v) < 1e15:
        mantissa, exponent = f"{v:.{precision - 1}e}".split("e")
        return f"{_trimmed(mantissa)}e{int(exponent)}"
    d = Decimal(v)
    decimals = max(1 if abs(v) >= 1000 else 0, precision - 1 - d.adjusted())
    rounded = d.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)
    return _grouped(_trimmed(f"{rounded:f}"))


def said(value: object) -> str:
    """A value with all digits of its shortest decimal, so that whoever types it gets this value."""
    v = plain(value)
    if v is None or isinstance(v, int | str) or not 1e-6 <= abs(v) < 1e15:
        if not isinstance(v, float) or not v:
            return shown(value)
        mantissa, exponent, power = repr(v).partition("e")
        return f"{mantissa}e{int(power)}" if exponent else mantissa
    return _grouped(_trimmed(f"{Decimal(repr(v)):f}"))


def shown_beside(before: object, after: object) -> tuple[str, str]:
    """A value rounded, with as many digits as are needed to look different from another one, and the other
    one with all of its digits."""
    same = plain(before) == plain(after)
    for precision in PRECISIONS:
        if same or shown(before, precision) != said(after):
            return shown(before, precision), said(after)
    return exact(before), said(after)


def exact(value: object) -> str:
    """The value with every digit of its double."""
    v = plain(value)
    return MISSING if v is None else v if isinstance(v, str) else repr(v)


def difference(before: object, after: object) -> float | None:
    """after - before for numbers; None otherwise."""
    a, b = plain(before), plain(after)
    if isinstance(a, int | float) and isinstance(b, int | float):
        return b - a
    return None


def percent(part: float, whole: float) -> str:
    """``37%``; below 10% and above 90% with a decimal, 0% or 100% only if that is exact, else ``<0.1%``."""
    if not whole:
        return "-"
    if part <= 0 or part >= whole:
        return "0%" if part <= 0 else "100%"
    p = 100 * part / whole
    if not 0.05 <= p <= 99.95:
        return "<0.1%" if p < 50 else ">99.9%"
    return f"{_trimmed(f'{p:.0f}' if 10 <= p <= 90 else f'{p:.1f}')}%"


def _trimmed(number: str) -> str:
    return number.rstrip("0").rstrip(".") if "." in number else number


def _grouped(number: str) -> str:
    """12345.6 as 12,345.6; numbers of up to four digits get no comma."""
    whole, point, rest = number.partition(".")
    sign, digits = ("-", whole[1:]) if whole.startswith("-") else ("", whole)
    if len(digits) > 4:
        digits = f"{int(digits):,}"
    return sign + digits + point + rest
