"""The checker's sigmoid against sixty digits of decimal arithmetic."""

from __future__ import annotations

import random
from decimal import Decimal, localcontext
from fractions import Fraction

from verify.curves import exponential, logit, sigmoid, sigmoid_lines


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
            (slope, below), (incline, above) = sigmoid_lines(low, high)
            assert slope == incline
            for k in range(33):
                y = low + (high - low) * k / 32
                true = 1 / (1 + (-decimal(y)).exp())
                assert decimal(slope * y + below) <= true + Decimal(10) ** -50
                assert true <= decimal(incline * y + above) + Decimal(10) ** -50
            assert above - below <= 1
