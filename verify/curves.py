"""The sigmoid in rational arithmetic: enclosures of its values, and lines that hold it (section 6)."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import floor, log, sqrt

Interval = tuple[Fraction, Fraction]

BITS = 96  # after the binary point, of enclosures
FAR = 64  # beyond it the sigmoid is within exp(-64) of 0 or 1


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
    """Bounds of exp(y) for y <= 0: the series at y / 2^k, squared k times."""
    k = max(0, (-y.numerator // y.denominator).bit_length() + 1)
    x = y / 2**k  # between -1 and 0: terms alternate and shrink, so two sums in a row enclose the value
    term, total, sums = Fraction(1), Fraction(1), []
    for n in range(1, 40):
        term = _down(term * x / n) if n % 2 else _up(term * x / n)
        total += term
        sums.append(total)
    low, high = min(sums[-2:]) - Fraction(40, 2**BITS), max(sums[-2:]) + Fraction(40, 2**BITS)
    for _ in range(k):
        low, high = _down(max(low, Fraction(0)) ** 2), _up(high**2)
    return max(low, Fraction(0)), high


@cache
def logarithm(q: Fraction) -> Interval:
    """Bounds of log(q): k log 2 + 2 artanh((m - 1)/(m + 1)) with q = 2^k m."""
    k = q.numerator.bit_length() - q.denominator.bit_length()
    mantissa = q / Fraction(2) ** k  # between 1/2 and 2
    low, high = _series((mantissa - 1) / (mantissa + 1))
    two = _series(Fraction(1, 3)) if k else (Fraction(0), Fraction(0))
    ends = sorted((k * two[0], k * two[1]))
    return low + ends[0], high + ends[1]


def _series(z: Fraction) -> Interval:
    """Bounds of 2 artanh(z) for |z| <= 1/3: 2 (z + z^3/3 + z^5/5 + ...)."""
    z = _down(z)
    low = sum((2 * z**n / n for n in range(1, 60, 2)), Fraction(0))
    slack = Fraction(1, 2**BITS) * 4 + Fraction(1, 3) ** 60
    return _down(low - slack), _up(low + slack)


def sigmoid_lines(low: Fraction, high: Fraction) -> tuple[Interval, Interval]:
    """Slope and intercept of a line below and one above the sigmoid on an interval, parallel to its chord."""
    if low == high:
        value = sigmoid(low)
        return (Fraction(0), value[0]), (Fraction(0), value[1])
    chord = (sigmoid(high)[0] - sigmoid(low)[0]) / (high - low)
    slope = Fraction(max(floor(chord * 2**32), 0), 2**32)
    return (slope, 1 - _highest(slope, -high, -low)), (slope, _highest(slope, low, high))


def _highest(m: Fraction, low: Fraction, high: Fraction) -> Fraction:
    """A bound of the largest sigmoid(y) - m y on an interval.

    Up to 0 the function is convex, so that its ends matter; from there on it is concave, and below its
    tangent at any point, best at the one where its slope is 0.
    """
    found = [sigmoid(y)[1] - m * y for y in (low, high)]
    if high > 0:
        start = max(low, Fraction(0))
        root = sqrt(max(1 - 4 * float(m), 0.0))
        guess = log((1 + root) / (1 - root)) if root < 1 else float(high)
        at = min(max(Fraction(guess), start), high)
        below, above = sigmoid(at)
        steepest, flattest = above * (1 - below) - m, below * (1 - above) - m
        ends = (s * (y - at) for s in (steepest, flattest) for y in (start, high))
        found.append(above - m * at + max(ends))
    return max(found)


def _down(value: Fraction) -> Fraction:
    return Fraction(floor(value * 2**BITS), 2**BITS)


def _up(value: Fraction) -> Fraction:
    return -_down(-value)
