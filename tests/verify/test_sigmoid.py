"""The checker's curves against sixty digits of decimal arithmetic."""

from __future__ import annotations

import random
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from verify.kernel.checks import Empty
from verify.kernel.curves import CURVES, EDGE, curve_lines, exponential, logit, sigmoid


def decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def arguments(rng: random.Random, count: int) -> list[Fraction]:
    """Numbers of every size, 0 and the far ends among them."""
    drawn = [Fraction(rng.uniform(-1, 1)) * Fraction(10) ** rng.randint(-8, 2) for _ in range(count)]
    return [Fraction(0), Fraction(64), Fraction(-65), Fraction(1, 3), *drawn]


def test_values_are_enclosed():
    """exp, sigmoid and logit lie in their enclosures, and these are narrow."""
    rng = random.Random(5)
    with localcontext() as context:
        context.prec = 60
        hair = Decimal(10) ** -55
        for y in arguments(rng, 200):
            true = 1 / (1 + (-decimal(y)).exp())
            low, high = sigmoid(y)
            assert decimal(low) <= true + hair and true <= decimal(high) + hair
            assert high - low < Fraction(1, 2**60)
            low, high = exponential(-abs(y))
            assert decimal(low) <= (-abs(decimal(y))).exp() + hair <= decimal(high) + 2 * hair
            p = sigmoid(y)[0]
            if 0 < p < 1:
                low, high = logit(p)
                true = (decimal(p) / (1 - decimal(p))).ln()
                assert decimal(low) <= true + hair and true <= decimal(high) + hair
                assert high - low < Fraction(1, 2**60)


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
    if function == "sigmoid":
        return 1 / (1 + (-x).exp())
    if function == "density":
        return -abs(x) - 2 * (1 + (-abs(x)).exp()).ln()
    return x.ln() if function == "log" else (x / (1 - x)).ln()


def drawn(rng: random.Random, function: str) -> Fraction:
    """An argument inside the domain, often near its ends."""
    if function in ("sigmoid", "density"):
        return rng.choice(arguments(rng, 4))
    tiny = Fraction(rng.uniform(0.1, 1)) * Fraction(10) ** -rng.randint(0, 12)
    if function == "log":
        return tiny * 10 ** rng.randint(0, 14)
    return rng.choice([tiny / 2, 1 - tiny / 2])


@pytest.mark.parametrize("function", CURVES)
def test_every_curve_is_between_its_lines(function):
    """Where a line is missing the curve has no end there; near an end the line above holds up to the end."""
    rng = random.Random(9)
    hair = Decimal(10) ** -50
    missing = 0
    with localcontext() as context:
        context.prec = 60
        for _ in range(300):
            low, high = sorted(drawn(rng, function) for _ in range(2))
            lower, upper = curve_lines(function, low, high)
            missing += lower is None or upper is None
            if lower is None:
                assert low < EDGE and function in ("log", "logit")
            if upper is None:
                assert high > 1 - EDGE and function == "logit"
            for k in range(17):
                y = low + (high - low) * k / 16
                true = true_value(function, y)
                assert lower is None or decimal(lower[0] * y + lower[1]) <= true + hair
                assert upper is None or true <= decimal(upper[0] * y + upper[1]) + hair
    assert (missing > 0) == (function in ("log", "logit"))


def test_what_reaches_over_the_end_of_a_domain():
    """The line above a logarithm holds on all that is positive; nothing positive: nothing is left."""
    _, upper = curve_lines("log", Fraction(-3), Fraction(5))
    for k in range(1, 200):
        y = Fraction(5, k**6)
        assert true_value("log", y) <= decimal(upper[0] * y + upper[1])
    for function, low, high in (("log", -2, 0), ("logit", -1, 0), ("logit", 1, 3)):
        with pytest.raises(Empty):
            curve_lines(function, Fraction(low), Fraction(high))
    assert curve_lines("logit", Fraction(-1), Fraction(2)) == (None, None)
