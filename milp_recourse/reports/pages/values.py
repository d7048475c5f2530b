"""Values as text on pages: rounded, or with all digits."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal

MISSING = "missing"
PRECISIONS = (4, 6, 9, 12, 17)


def plain(value: object) -> float | int | str | None:
    """A Python number, text, or None for a missing value, also for values of numpy and pandas.

    Truth values, numbers that are not finite and all other objects become text.
    """
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "shape", None) == ():
        value = item()
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return int(value) if abs(value) < 2**53 else str(value)
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return float(value) if math.isfinite(value) else str(value)
    return str(value)


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
