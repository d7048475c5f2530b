"""The piecewise linear function below the logistic one: below it everywhere, and as near as it says."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from milp_recourse.readers.curves import logistic_from_below


@pytest.mark.parametrize("count", [16, 320, 1600])
def test_it_is_below_the_logistic_function_and_as_near_as_it_says(count: int) -> None:
    """In exact arithmetic, on knots, between them, where chords are farthest, and far outside."""
    knots, weights, constant, below = logistic_from_below(count)
    at, factors = [Fraction(t) for t in knots.tolist()], [Fraction(w) for w in weights.tolist()]
    rng = np.random.default_rng(count)
    inner = rng.choice(np.concatenate([knots, (knots[1:] + knots[:-1]) / 2.0]), 60)
    for z in [*inner.tolist(), *rng.uniform(-40, 40, 20).tolist(), -700.0, 0.0, 36.0, 700.0]:
        exact = Fraction(z)
        steps = (w * (exact - t) for w, t in zip(factors, at, strict=True) if exact > t)
        found = Fraction(constant) + sum(steps)
        logistic = Fraction(1.0 / (1.0 + math.exp(-z)) if z > -709 else 0.0)
        assert logistic - Fraction(below) <= found <= logistic


def test_more_knots_are_nearer() -> None:
    nearness = [logistic_from_below(count)[3] for count in (100, 400, 1600)]
    assert nearness[0] > 10 * nearness[1] > 100 * nearness[2]
    assert nearness[2] < 1e-6
