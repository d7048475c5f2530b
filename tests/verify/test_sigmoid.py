"""The checker's curves against sixty digits of decimal arithmetic, and against series in whole numbers."""

from __future__ import annotations

import random
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from verify.kernel.checks import LONGEST, Empty
from verify.kernel.curves import BITS, CURVES, EDGE, curve_lines, exponential, logarithm, sigmoid


def decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def arguments(rng: random.Random, count: int) -> list[Fraction]:
    """Numbers of every size, 0 and the far ends among them."""
    drawn = [Fraction(rng.uniform(-1, 1)) * Fraction(10) ** rng.randint(-8, 2) for _ in range(count)]
    return [Fraction(0), Fraction(64), Fraction(-65), Fraction(1, 3), *drawn]


def test_values_are_enclosed():
    """exp, sigmoid and log lie in their enclosures, and these are narrow."""
    rng = random.Random(5)
    with localcontext() as context:
        context.prec = 60
        rounding = Decimal(10) ** -55
        for y in arguments(rng, 200):
            true = 1 / (1 + (-decimal(y)).exp())
            low, high = sigmoid(y)
            assert decimal(low) <= true + rounding and true <= decimal(high) + rounding
            assert high - low < Fraction(1, 2**60)
            low, high = exponential(-abs(y))
            assert decimal(low) <= (-abs(decimal(y))).exp() + rounding <= decimal(high) + 2 * rounding
            if y > 0:
                low, high = logarithm(y)
                true = decimal(y).ln()
                assert decimal(low) <= true + rounding and true <= decimal(high) + rounding
                assert high - low < Fraction(1, 2**60)


FINE = 300
"""Binary digits of the series."""


def exp_by_series(y: Fraction) -> Fraction:
    """exp(y) to about 2^-200, for y from -64 to 0: the series at y / 2^8, squared eight times."""
    t = (y.numerator << FINE) // (y.denominator << 8)
    term = total = 1 << FINE
    for n in range(1, 80):
        term = term * t // (n << FINE)
        total += term
    for _ in range(8):
        total = total * total >> FINE
    return Fraction(total, 1 << FINE)


def log_by_series(q: Fraction) -> Fraction:
    """log(q) to about 2^-180: k log 2 + 2 artanh((m - 1)/(m + 1)) with q = 2^k m."""

    def artanh(z: Fraction) -> int:
        first = power = (z.numerator << FINE) // z.denominator
        total = 0
        for n in range(1, 200, 2):
            total += power // n
            power = (power * first >> FINE) * first >> FINE
        return total

    k = q.numerator.bit_length() - q.denominator.bit_length()
    m = q / Fraction(2) ** k
    return Fraction(2 * artanh((m - 1) / (m + 1)) + 2 * k * artanh(Fraction(1, 3)), 1 << FINE)


def test_series_lie_in_the_enclosures():
    """Another way to compute both, which needs no decimals, to the largest and smallest numbers there are."""
    rng = random.Random(8)
    for y in [Fraction(0), Fraction(-64), *(-abs(a) for a in arguments(rng, 200) if abs(a) <= 64)]:
        low, high = exponential(y)
        assert low <= exp_by_series(y) <= high and high - low == Fraction(3, 2**BITS)
    powers = [Fraction(2) ** k for k in (LONGEST, -LONGEST, LONGEST - 1, 1, -1)]
    near = [1 + Fraction(rng.uniform(-1, 1)) / 10 ** rng.randint(1, 40) for _ in range(50)]
    for q in [*powers, *near, *(abs(a) for a in arguments(rng, 200) if a)]:
        low, high = logarithm(q)
        assert low <= log_by_series(q) + Fraction(1, 2**150) and log_by_series(q) <= high + Fraction(
            1, 2**150
        )


def test_lines_hold_on_the_interval():
    """Everywhere on an interval the sigmoid is between its lines, which are as near as parallels can be."""
    rng = random.Random(6)
    with localcontext() as context:
        context.prec = 60
        for _ in range(200):
            low, high = sorted(rng.choices(arguments(rng, 8), k=2))
            (slope, below), (incline, above) = curve_lines("sigmoid", low, high)
            assert slope == incline
            for k in range(33):
                y = low + (high - low) * k / 32
                true = 1 / (1 + (-decimal(y)).exp())
                assert decimal(slope * y + below) <= true + Decimal(10) ** -50
                assert true <= decimal(incline * y + above) + Decimal(10) ** -50
            assert above - below <= 1


def true_value(function: str, y: Fraction) -> Decimal:
    """The curve by decimal arithmetic."""
    x = decimal(y)
    return x.ln() if function == "log" else 1 / (1 + (-x).exp())


def drawn(rng: random.Random, function: str) -> Fraction:
    """An argument inside the domain, often near its ends."""
    if function == "sigmoid":
        return rng.choice(arguments(rng, 4))
    tiny = Fraction(rng.uniform(0.1, 1)) * Fraction(10) ** -rng.randint(0, 12)
    return tiny * 10 ** rng.randint(0, 14)


@pytest.mark.parametrize("function", CURVES)
def test_every_curve_is_between_its_lines(function):
    """Where a line is missing the curve has no end there; near an end the line above holds up to the end."""
    rng = random.Random(9)
    rounding = Decimal(10) ** -50
    missing = 0
    with localcontext() as context:
        context.prec = 60
        for _ in range(300):
            low, high = sorted(drawn(rng, function) for _ in range(2))
            lower, upper = curve_lines(function, low, high)
            missing += lower is None
            if lower is None:
                assert low < EDGE and function == "log"
            for k in range(17):
                y = low + (high - low) * k / 16
                true = true_value(function, y)
                assert lower is None or decimal(lower[0] * y + lower[1]) <= true + rounding
                assert true <= decimal(upper[0] * y + upper[1]) + rounding
    assert (missing > 0) == (function == "log")


def test_what_reaches_over_the_end_of_a_domain():
    """The line above a logarithm holds on all that is positive; nothing positive: nothing is left."""
    _, upper = curve_lines("log", Fraction(-3), Fraction(5))
    for k in range(1, 200):
        y = Fraction(5, k**6)
        assert true_value("log", y) <= decimal(upper[0] * y + upper[1])
    with pytest.raises(Empty):
        curve_lines("log", Fraction(-2), Fraction(0))
