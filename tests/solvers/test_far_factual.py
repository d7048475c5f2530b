"""A factual so far from 0 that rounding a row takes more than a solver's tolerance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from milp_recourse import solve
from milp_recourse.judge import judge
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.result import Status
from milp_recourse.problem.scm import independent

FAR = -1e14
"""Neighbouring doubles are 1/64 apart there."""


def far(seed: int) -> Instance:
    """A random network over a number near :data:`FAR` and a whole one; 2% of their values are accepted."""
    rng = np.random.default_rng(seed)
    first = rng.normal(size=(4, 2))
    hidden = first, rng.normal(size=4) - first[:, 0] * FAR
    network = ReluNetwork.from_layers([hidden, (rng.normal(size=(1, 4)), [0.0])])
    steps, whole = np.meshgrid(np.linspace(-4, 4, 33), np.arange(-4, 5), indexing="ij")
    logits = network.evaluate(np.column_stack([FAR + steps.ravel(), whole.ravel()]))
    features = (
        Feature("x", "continuous", True, (FAR - 4, FAR + 4)),
        Feature("y", "integer", True, (-4.0, 4.0)),
    )
    return Instance(
        features,
        independent(["x", "y"]),
        network,
        {"x": FAR, "y": 0.0},
        Preferences(("x", "y")),
        Cost.pure("l1", {"x": 1.0, "y": 1.0}),
        Acceptance(float(np.quantile(logits, 0.98)), 0.0),
    )


def cheapest(instance: Instance) -> float:
    """The least cost over all doubles in the bounds."""
    moves = sorted((abs(d) / 64 + abs(y), d / 64, y) for d in range(-256, 257) for y in range(-4, 5))
    for cost, d, y in moves:
        action = ({"x": FAR + d} if d else {}) | ({"y": float(y)} if y else {})
        if action and judge(instance, action).feasible:
            return cost
    return np.inf


@pytest.mark.long
def test_nothing_is_said_that_rounding_does_not_allow() -> None:
    """HiGHS said of each that nothing cheaper, or nothing at all, is feasible, where something is."""
    for seed in (16, 22, 34):
        instance = far(seed)
        least = cheapest(instance)
        for backend in ("bab", "highs"):
            result = solve(instance, backend, 1.0)
            assert result.status is not Status.INFEASIBLE
            assert result.lower_bound is not None
            assert result.lower_bound <= least, (seed, backend)
            assert result.cost is None or result.cost >= least


def test_near_zero_the_same_problem_is_solved() -> None:
    """The rule is about rounding, not about the network."""
    instance = far(27)
    assert isinstance(instance.classifier, ReluNetwork)
    weights, biases = instance.classifier.weights, instance.classifier.biases
    moved = [(weights[0], biases[0] + weights[0][:, 0] * FAR), *zip(weights[1:], biases[1:], strict=True)]
    near = replace(
        instance,
        features=(Feature("x", "continuous", True, (-4.0, 4.0)), instance.features[1]),
        factual={"x": 0.0, "y": 0.0},
        classifier=ReluNetwork.from_layers(moved),
    )
    assert solve(near, "highs", 30.0).status is not Status.LIMIT
