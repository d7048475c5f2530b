"""Curves in rational arithmetic: enclosures of their values, and lines that hold them (section 7)."""

from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, inf, log, sqrt
from typing import NamedTuple

from verify.kernel.checks import Empty, bounded
from verify.kernel.problem import Interval

Line = tuple[Fraction, Fraction]
"""Slope and intercept."""

ZERO = Fraction(0)
BITS = 96  # after the binary point, of enclosures
DIGITS = Context(36)  # of decimals, whose exp and ln are rounded to the nearest
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
    """Multiples of 2^-BITS below and above what is less than 2^-BITS from a value."""
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
        Bounds of both at a rational number inside the domain.
    bend
        The point.
    touch
        About where above it the derivative is a given number: any point makes a valid bound.
    """

    value: Callable[[Fraction], Interval]
    derivative: Callable[[Fraction], Interval]
    bend: float
    touch: Callable[[float], float]


def highest(curve: Curve, m: Fraction, low: Fraction, high: Fraction, cut: bool = False) -> Fraction:
    """A bound of the largest curve(y) - m y on an interval, or where it is cut off at EDGE from 0 on.

    Where the curve is convex the ends matter; where it is concave it lies below its tangent at any point.
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

    A logarithm has none below where its argument reaches 0.
    """
    if function == "log" and high <= 0:
        raise Empty
    curve, falls = CURVES[function], function == "log" and low < min(EDGE, high)
    if low == high or (falls and high <= EDGE):
        return None if falls else (ZERO, curve.value(low)[0]), (ZERO, curve.value(high)[1])
    low, high = EDGE if falls else rounded(low, floor), rounded(high, ceil)
    slope = Fraction(floor((curve.value(high)[0] - curve.value(low)[1]) / (high - low) * GRID), GRID)
    if function == "sigmoid":
        lower = 1 - highest(curve, slope, -high, -low)
    else:
        lower = min(curve.value(y)[0] - slope * y for y in (low, high))
    return None if falls else (slope, lower), (slope, highest(curve, slope, low, high, falls))


def rounded(value: Fraction, way: Callable[[Fraction], int]) -> Fraction:
    """A multiple of 2^-BITS, down or up: short numbers are quick."""
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
