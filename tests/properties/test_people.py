"""Small numbers of what three commands test in large: company, people without recourse, confidence."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from milp_recourse.problem.derived_networks import chords, excess, pairwise_log_sum
from tests.properties import at_confidence, in_company, without_recourse

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("seed", range(8))
def test_a_hostile_row_changes_nothing_for_others(seed: int) -> None:
    """Status, cost, bound, action, margin, message and certificate are the same to the last bit."""
    assert in_company.check(seed)[1] == []


def test_people_without_recourse_are_told_so() -> None:
    """By every family's search, from accepted rows: none of them ends without a proof."""
    counts = Counter[str]()
    for seed in range(9):
        found, wrong = without_recourse.check(seed)
        assert not wrong
        counts += found
    assert counts["without recourse"] >= 30 and counts["with recourse"] >= 10


def test_the_confidence_is_reached_at_the_least_cost() -> None:
    """By the model's own predict_proba, for every family; no grid point is cheaper."""
    counts = Counter[str]()
    for seed in range(len(at_confidence.FAMILIES)):
        found, wrong = at_confidence.check(seed)
        assert not wrong
        counts += found
    assert counts["optimal"] >= 40 and counts["the grid finds an action"] >= 40


@pytest.mark.parametrize("count", [2, 3, 4])
def test_the_network_of_a_softmax_is_never_below_it(count: int) -> None:
    """For numbers of every size, and hardly above it for those near each other."""
    rng = np.random.default_rng(count)
    drawn = rng.normal(0, 1, (3000, count)) * 10.0 ** rng.uniform(-3, 5, (3000, 1))
    numbers = drawn
    for before, shift, after, constant in pairwise_log_sum(count):
        numbers = np.maximum(numbers @ before.T + shift, 0.0) @ after.T + constant
    above = numbers[:, 0] - np.logaddexp.reduce(drawn, axis=1)
    rounding = 1e-13 * np.abs(drawn).max(axis=1)
    assert (above >= -rounding).all()
    assert (above <= excess(count) + 1e-9 * np.abs(drawn).max(axis=1) + rounding).all()


def test_the_chords_are_above_softplus_at_and_between_knots() -> None:
    """Also far outside the knots, where the last slope is a little more than 1."""
    knots, weights, value = chords(800)
    y = np.concatenate([knots, (knots[1:] + knots[:-1]) / 2, np.linspace(-50, 50, 1001), [-1e6, 1e6]])
    above = value + np.maximum(y[:, None] - knots, 0.0) @ weights - np.logaddexp(0.0, y)
    assert (weights > 0).all() and (above >= 0).all() and above[np.abs(y) < 60].max() < 2.1e-6
