"""Curves in rational arithmetic: enclosures of their values, and lines that hold them (section 7)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import floor, inf, log, sqrt
from typing import NamedTuple

from verify.kernel.checks import Empty, bounded
from verify.kernel.costs import Interval

Line = tuple[Fraction, Fraction]
"""Slope and intercept."""

ZERO = Fraction(0)
BITS = 96  # after the binary point, of enclosures
TRUNCATED = 2**7  # in units of 2^-BITS, at least what the series lose by rounding and by ending
FAR = 64  # beyond it the sigmoid is within exp(-64) of 0 or 1
GRID = 2**32  # slopes of chords are multiples of 1 / GRID
EDGE = Fraction(1e-9)  # a logarithm's argument that reaches below is taken from here on


def sigmoid(y: Fraction) -> Interval:
    """Bounds of 1 / (1 + exp(-y))."""
    if y < 0:
        low, high = sigmoid(-y)
        return 1 - high, 1 - low
    if y > FAR:
        return 1 - Fraction(1, 2**FAR), Fraction(1)
    low, high = exponential(-y)
    return _down(1 / (1 + high)), _up(1 / (1 + low))


def logit(p: Fraction) -> Interval:
    """Bounds of log(p / (1 - p)), for 0 < p < 1."""
    return logarithm(p / (1 - p))


def exponential(y: Fraction) -> Interval:
    """Bounds of exp(y) for y <= 0: the series at y / 2^k, squared k times, in whole numbers of ULP."""
    k = max(0, (-y.numerator // y.denominator).bit_length() + 1)
    t = (-y.numerator << BITS) // (y.denominator << k)  # at most 1: terms alternate and shrink
    term = total = 1 << BITS
    sums = []
    for n in range(1, 40):
        term = term * t // (n << BITS)
        total += -term if n % 2 else term
        sums.append(total)
    low, high = max(min(sums[-2:]) - TRUNCATED, 0), max(sums[-2:]) + TRUNCATED
    for _ in range(k):
        low, high = low * low >> BITS, -(-high * high >> BITS)
    return Fraction(low, 1 << BITS), Fraction(high, 1 << BITS)


@lru_cache(4096)
def logarithm(q: Fraction) -> Interval:
    """Bounds of log(q): k log 2 + 2 artanh((m - 1)/(m + 1)) with q = 2^k m."""
    k = q.numerator.bit_length() - q.denominator.bit_length()
    mantissa = q / Fraction(2) ** k  # between 1/2 and 2
    low, high = _series((mantissa - 1) / (mantissa + 1))
    two = _series(Fraction(1, 3)) if k else (ZERO, ZERO)
    ends = sorted((k * two[0], k * two[1]))
    return low + ends[0], high + ends[1]


def _series(z: Fraction) -> Interval:
    """Bounds of 2 artanh(z) for |z| <= 1/3: 2 (z + z^3/3 + z^5/5 + ...), every step rounded down."""
    if z < 0:
        low, high = _series(-z)
        return -high, -low
    term = (z.numerator << BITS) // z.denominator
    square, total = term * term >> BITS, 0
    for n in range(1, 60, 2):
        total += term // n
        term = term * square >> BITS
    return Fraction(2 * total, 1 << BITS), Fraction(2 * (total + TRUNCATED), 1 << BITS)


class Curve(NamedTuple):
    """An increasing or concave function that is convex but for one stretch, where it is concave.

    Attributes
    ----------
    value, derivative
        Bounds of both at a rational number inside the domain.
    concave
        The stretch.
    touch
        About where on it the derivative is a given number: any point makes a valid bound.
    """

    value: Callable[[Fraction], Interval]
    derivative: Callable[[Fraction], Interval]
    concave: tuple[float, float]
    touch: Callable[[float], float]


def highest(curve: Curve, m: Fraction, low: Fraction, high: Fraction, cut: bool = False) -> Fraction:
    """A bound of the largest curve(y) - m y on an interval, or where it is cut off at EDGE from 0 on.

    Where the curve is convex the ends matter; where it is concave it lies below its tangent at any point.
    """
    found = [curve.value(y)[1] - m * y for y in (low, high)]
    first, last = curve.concave
    start, end = low if first <= low else Fraction(first), high if high <= last else Fraction(last)
    if start < end:
        touch = curve.touch(float(m))
        at = start if touch <= start else end if touch >= end else Fraction(touch)
        slopes, ends = curve.derivative(at), (ZERO if cut else start, end)
        found.append(curve.value(at)[1] - m * at + max((s - m) * (y - at) for s in slopes for y in ends))
    return max(found)


def _sigmoid_slope(y: Fraction) -> Interval:
    below, above = sigmoid(y)
    return below * (1 - above), above * (1 - below)


def density(y: Fraction) -> Interval:
    """Bounds of log(s (1 - s)), s the sigmoid of y: the logistic density's logarithm."""
    below, above = sigmoid(abs(y))
    return 2 * logarithm(below)[0] - abs(y), 2 * logarithm(above)[1] - abs(y)


def _density_slope(y: Fraction) -> Interval:
    below, above = sigmoid(y)
    return 1 - 2 * above, 1 - 2 * below


def _far(m: float) -> float:
    """Where the sigmoid's slope is m, to the right of 0."""
    root = sqrt(max(1 - 4 * m, 0.0))
    return log((1 + root) / (1 - root)) if root < 1 else float(FAR)


CURVES = {
    "sigmoid": Curve(sigmoid, _sigmoid_slope, (0.0, inf), _far),
    "log": Curve(logarithm, lambda y: (1 / y, 1 / y), (0.0, inf), lambda m: 1 / m if m > 0 else inf),
    "logit": Curve(
        logit,
        lambda y: (1 / (y * (1 - y)),) * 2,
        (0.0, 0.5),
        lambda m: (1 - sqrt(max(1 - 4 / m, 0.0))) / 2 if m > 4 else 0.5,
    ),
    "density": Curve(
        density, _density_slope, (-inf, inf), lambda m: log((1 - m) / (1 + m)) if abs(m) < 1 else 0.0
    ),
}


def curve_lines(function: str, low: Fraction, high: Fraction) -> tuple[Line | None, Line | None]:
    """A line below and one above a curve on an interval, parallel to its chord; None where there is none.

    A logarithm or logit has none below where its argument reaches 0, a logit none above where it reaches 1.
    """
    curve, ends = CURVES[function], function in ("log", "logit")
    if (ends and high <= 0) or (function == "logit" and low >= 1):
        raise Empty
    if low == high:
        below, above = curve.value(low)
        return (ZERO, below), (ZERO, above)
    falls, rises = ends and low < EDGE, function == "logit" and high > 1 - EDGE
    if falls and high <= EDGE:
        return None, (ZERO, curve.value(high)[1])
    if rises and low >= 1 - EDGE:
        return (ZERO, curve.value(low)[0]), None
    low, high = EDGE if falls else low, 1 - EDGE if rises else high
    chord = (curve.value(high)[0] - curve.value(low)[1]) / (high - low)
    slope = Fraction(floor(chord * GRID), GRID)
    upper = highest(curve, slope, low, high, falls)
    if function == "sigmoid":
        lower = 1 - highest(curve, slope, -high, -low)
    elif function == "logit":
        lower = -highest(curve, slope, 1 - high, 1 - low, rises) - slope
    else:
        lower = min(curve.value(y)[0] - slope * y for y in (low, high))
    return None if falls else (slope, lower), None if rises else (slope, upper)


def lines(function: str, low: Fraction, high: Fraction) -> tuple[Line | None, Line | None]:
    """A unit's lower and upper line on an interval of its argument; None where it has none."""
    if function in CURVES:
        return curve_lines(function, low, high)
    if function == "square":
        low, high = bounded(low), bounded(high)
        return (low + high, -((low + high) ** 2) / 4), (low + high, -low * high)
    if low >= 0 or high <= 0:
        return ((Fraction(low >= 0), ZERO),) * 2
    slope = Fraction(floor(high / (high - low) * GRID), GRID)
    return (Fraction(high > -low), ZERO), (slope, max(-slope * low, (1 - slope) * high))


def _down(value: Fraction) -> Fraction:
    return Fraction(floor(value * 2**BITS), 2**BITS)


def _up(value: Fraction) -> Fraction:
    return -_down(-value)
