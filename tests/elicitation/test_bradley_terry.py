"""Known weights are found again from choices, and intervals hold them as often as they say."""

from __future__ import annotations

import numpy as np
import pytest

from milp_recourse.elicitation.bradley_terry import Outcome, feature_level, fit
from milp_recourse.errors import BadInput


def asked(
    rng: np.random.Generator, weights: np.ndarray, count: int, noise: float, tie: float = 0.0
) -> tuple[np.ndarray, np.ndarray, list[Outcome]]:
    """Choices between random recourses on two levers each; logistic errors, in shares of the mean cost."""
    k = len(weights)
    shown = rng.exponential(size=(2, count, k)) * (rng.random((2, count, k)).argsort(axis=2) < 2)
    costs = shown @ weights
    scale = noise * costs.mean()
    gap = costs[1] - costs[0] + (rng.logistic(size=count) * scale if noise else 0.0)
    outcomes: list[Outcome] = [
        "same" if abs(g) < tie * costs.mean() else "first" if g > 0 else "second" for g in gap
    ]
    return shown[0], shown[1], outcomes


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
def test_the_error_falls_with_the_number_of_choices(noise: float) -> None:
    """Four times as many choices, about half the error."""
    errors = []
    for count in (25, 400):
        found = []
        for seed in range(12):
            rng = np.random.default_rng(seed)
            weights = rng.dirichlet(np.full(4, 2.0)) * 4
            found.append(np.abs(fit(*asked(rng, weights, count, noise), level=None).weights - weights).mean())
        errors.append(np.mean(found))
    assert errors[1] < 0.45 * errors[0]
    assert errors[1] < 0.12


@pytest.mark.long
def test_intervals_hold_the_weights_as_often_as_they_say() -> None:
    """Of 90% intervals, where weights and noise come from the prior."""
    held = []
    for seed in range(24):
        rng = np.random.default_rng(seed)
        theta = rng.dirichlet(np.ones(3)) * 10 * np.exp(1.5 * rng.normal())
        weights = theta / theta.mean()
        shown = rng.exponential(size=(2, 20, 3))
        size = shown.sum(axis=2).mean()
        gap = (shown[1] - shown[0]) @ theta / size + rng.logistic(size=20)
        outcomes: list[Outcome] = ["first" if g > 0 else "second" for g in gap]
        got = fit(shown[0], shown[1], outcomes, seed=seed)
        held.append((got.low <= weights) & (weights <= got.high))
    assert 0.84 <= np.mean(held) <= 0.96


def test_separable_answers_have_a_finite_estimate() -> None:
    """Without a prior, answers without any error would be explained better by ever larger theta."""
    got = fit([[1.0, 0.0]] * 5, [[0.0, 1.0]] * 5, ["first"] * 5)
    assert got.weights[0] < 1 < got.weights[1]
    assert np.isfinite(got.consistency) and got.weights.min() > 0


def test_a_lever_in_which_no_pair_differs_keeps_its_prior() -> None:
    """Recourses on one and the same lever rank nothing else."""
    got = fit([[1.0, 0.2, 0.0]] * 6, [[0.2, 1.0, 0.0]] * 6, ["first"] * 6)
    prior = fit(np.zeros((0, 3)), np.zeros((0, 3)), [])
    assert got.high[2] - got.low[2] > 0.6 * (prior.high[2] - prior.low[2])
    assert got.weights[0] < got.weights[1]


def test_neither_says_nothing_about_weights() -> None:
    """It is about limits."""
    rng = np.random.default_rng(0)
    first, second, outcomes = asked(rng, np.array([0.5, 1.0, 1.5]), 30, 0.1)
    more = fit(np.vstack([first, [[9, 9, 9]]]), np.vstack([second, [[0, 0, 1]]]), [*outcomes, "neither"])
    assert more.weights == pytest.approx(fit(first, second, outcomes, level=None).weights)


def test_ties_pull_costs_together() -> None:
    """Two levers that are always about the same weigh about the same, and ties are estimated as common."""
    got = fit(np.tile([1.0, 0.0], (20, 1)), np.tile([0.0, 1.0], (20, 1)), ["same"] * 20)
    assert got.weights == pytest.approx([1, 1], abs=1e-3)
    assert got.tie > 2
    rng = np.random.default_rng(3)
    weights = np.array([0.4, 1.0, 1.6])
    with_ties = fit(*asked(rng, weights, 150, 0.05, tie=0.2), level=None)
    assert np.abs(with_ties.weights - weights).max() < 0.2
    assert with_ties.tie > 0


def test_swapping_sides_changes_nothing() -> None:
    """First and second are names."""
    rng = np.random.default_rng(1)
    first, second, outcomes = asked(rng, np.array([0.5, 1.0, 1.5]), 30, 0.2)
    other: dict[Outcome, Outcome] = {"first": "second", "second": "first"}
    swapped = fit(second, first, [other[one] for one in outcomes], level=None)
    assert swapped.weights == pytest.approx(fit(first, second, outcomes, level=None).weights, rel=1e-6)


def test_the_unit_of_changes_does_not_matter() -> None:
    """Costs are normalised once: twice the changes, the same weights."""
    rng = np.random.default_rng(2)
    first, second, outcomes = asked(rng, np.array([0.5, 1.0, 1.5]), 30, 0.2)
    assert fit(10 * first, 10 * second, outcomes, level=None).weights == pytest.approx(
        fit(first, second, outcomes, level=None).weights, rel=1e-6
    )


def test_the_feature_level_ranks_levers() -> None:
    """Someone who always moves the first lever rather than the second finds it easier."""
    easier = feature_level([[1.0, 0, 0]] * 8, [[0, 1.0, 0]] * 8, ["first"] * 8)
    assert easier[0] < easier[2] < easier[1]
    assert easier.mean() == pytest.approx(1)
    assert easier.max() < 1.5  # 1 - beta cannot tell one lever's weight from ten times another's
    assert feature_level(np.zeros((0, 3)), np.zeros((0, 3)), []) == pytest.approx(np.ones(3))


def test_mistakes_get_one_line() -> None:
    """Shapes and outcomes are checked."""
    with pytest.raises(BadInput, match="as many of each"):
        fit([[1.0]], [[1.0]], [])
    with pytest.raises(BadInput, match="outcome: got better"):
        fit([[1.0]], [[1.0]], ["better"])  # type: ignore[list-item]
