"""Curves in rational arithmetic: enclosures of their values, and lines below and above (section 7)."""

from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, inf, log, sqrt
from typing import NamedTuple

from verify.kernel.checks import ZERO, Empty, bounded
from verify.kernel.problem import Interval

Line = tuple[Fraction, Fraction]
"""Slope and intercept."""

BITS = 96  # binary digits after the point, in the ends of enclosures
DIGITS = Context(36)  # decimals of 36 digits, whose exp and ln are rounded to the nearest
FAR = 64  # beyond it the sigmoid is within exp(-64) of 0 or 1
GRID = 2**32  # slopes of chords are multiples of 1 / GRID
EDGE = Fraction(1e-9)  # a logarithm's argument that reaches below is taken from here on


@lru_cache(2**14)
def exponential(y: Fraction) -> Interval:
    """Bounds of exp(y), for y from -FAR to 0."""
    return _about(DIGITS.exp(DIGITS.divide(Decimal(y.numerator), Decimal(y.denominator))))


@lru_cache(2**14)
def logarithm(q: Fraction) -> Interval:
    """Bounds of log(q), for q > 0."""
    return _about(DIGITS.ln(DIGITS.divide(Decimal(q.numerator), Decimal(q.denominator))))


def _about(value: Decimal) -> Interval:
    """Multiples of 2^-BITS below and above every number that differs from ``value`` by less than 2^-BITS."""
    whole = floor(Fraction(value) * 2**BITS)
    return Fraction(whole - 1, 2**BITS), Fraction(whole + 2, 2**BITS)


def sigmoid(y: Fraction) -> Interval:
    """Bounds of 1 / (1 + exp(-y))."""
    if y < 0:
        low, high = sigmoid(-y)
        return 1 - high, 1 - low
    if y > FAR:
        return 1 - Fraction(1, 2**FAR), Fraction(1)
    low, high = exponential(-y)
    return rounded(1 / (1 + high), floor), rounded(1 / (1 + low), ceil)


class Curve(NamedTuple):
    """An increasing function that is convex up to a point and concave from there on.

    Attributes
    ----------
    value, derivative
        Bounds of the function and of its derivative at a rational number inside the domain.
    bend
        The point from which on it is concave.
    touch
        About where, above the bend, the derivative is a given number. A tangent at any point gives a valid
        bound, so this need not be exact.
    """

    value: Callable[[Fraction], Interval]
    derivative: Callable[[Fraction], Interval]
    bend: float
    touch: Callable[[float], float]


def highest(curve: Curve, m: Fraction, low: Fraction, high: Fraction, cut: bool = False) -> Fraction:
    """An upper bound of curve(y) - m y on [low, high]; with ``cut``, on (0, high].

    Where the curve is convex, the largest value is at an end; where it is concave, the curve lies below its
    tangent at any point.
    """
    found = [curve.value(y)[1] - m * y for y in (low, high)]
    start = low if curve.bend <= low else Fraction(curve.bend)
    if start < high:
        touch = curve.touch(float(m))
        at = start if touch <= start else high if touch >= high else Fraction(touch)
        slopes, ends = curve.derivative(at), (ZERO if cut else start, high)
        found.append(curve.value(at)[1] - m * at + max((s - m) * (y - at) for s in slopes for y in ends))
    return max(found)


def _sigmoid_slope(y: Fraction) -> Interval:
    below, above = sigmoid(y)
    return below * (1 - above), above * (1 - below)


def _far(m: float) -> float:
    """Where the sigmoid's slope is m, to the right of 0."""
    root = sqrt(max(1 - 4 * m, 0.0))
    return log((1 + root) / (1 - root)) if root < 1 else float(FAR)


CURVES = {
    "sigmoid": Curve(sigmoid, _sigmoid_slope, 0.0, _far),
    "log": Curve(logarithm, lambda y: (1 / y, 1 / y), -inf, lambda m: 1 / m if m > 0 else inf),
}


def curve_lines(function: str, low: Fraction, high: Fraction) -> tuple[Line | None, Line]:
    """A line below and one above a curve on an interval, parallel to its chord.

    The one below is None for a logarithm whose argument may be below EDGE. Raises Empty for a logarithm
    whose argument is nowhere positive.
    """
    if function == "log" and high <= 0:
        raise Empty
    curve, cut = CURVES[function], function == "log" and low < min(EDGE, high)
    if low == high or (cut and high <= EDGE):
        return None if cut else (ZERO, curve.value(low)[0]), (ZERO, curve.value(high)[1])
    low, high = EDGE if cut else rounded(low, floor), rounded(high, ceil)
    slope = Fraction(floor((curve.value(high)[0] - curve.value(low)[1]) / (high - low) * GRID), GRID)
    if function == "sigmoid":
        lower = 1 - highest(curve, slope, -high, -low)
    else:
        lower = min(curve.value(y)[0] - slope * y for y in (low, high))
    return None if cut else (slope, lower), (slope, highest(curve, slope, low, high, cut))


def rounded(value: Fraction, way: Callable[[Fraction], int]) -> Fraction:
    """Round to a multiple of 2^-BITS, ``way`` being floor or ceil: arithmetic on short numbers is quick."""
    return Fraction(way(value * 2**BITS), 2**BITS)


def lines(function: str, low: Fraction, high: Fraction) -> tuple[Line | None, Line]:
    """A unit's lower and upper line on an interval of its argument; None where it has none below."""
    if function in CURVES:
        return curve_lines(function, low, high)
    if function == "square":
        low, high = bounded(low), bounded(high)
        return (low + high, -((low + high) ** 2) / 4), (low + high, -low * high)
    if low >= 0 or high <= 0:
        return ((Fraction(low >= 0), ZERO),) * 2
    slope = Fraction(floor(high / (high - low) * GRID), GRID)
    return (Fraction(high > -low), ZERO), (slope, max(-slope * low, (1 - slope) * high))
