"""Levers in steps whose decimals are no doubles: none of their values is lost between two nodes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from milp_recourse.judge import judge
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature, Steps
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.result import Status
from milp_recourse.problem.scm import independent
from milp_recourse.questions.solve import solve

NAMES, STEPS, ENDS = ("a", "b"), Steps(0.3), (-0.9, 1.2)
VALUES = STEPS.within(*ENDS).tolist()


def drawn(seed: int) -> Instance:
    """Two levers with eight values each, and a factual between these."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(4, 2)).round(2), rng.normal(size=4).round(2)
    network = ReluNetwork.from_layers([hidden, (rng.normal(size=(1, 4)).round(2), np.zeros(1))])
    features = tuple(Feature(name, actionable=True, bounds=ENDS, only=STEPS) for name in NAMES)
    factual = {name: round(float(rng.uniform(*ENDS)), 3) for name in NAMES}
    logits = network.evaluate(np.array([*product(VALUES, VALUES)]))[:, 0]
    accept = Acceptance(float(np.quantile(logits, 0.97, method="nearest")) - 1e-9)
    cost = Cost.pure("l2-squared", dict.fromkeys(NAMES, 1.0))
    return Instance(features, independent(NAMES), network, factual, Preferences(NAMES), cost, accept)


@pytest.mark.parametrize("seed", [59, 102, 136, 158, 281, 295])
def test_the_last_value_of_an_interval_is_in_a_child(seed: int) -> None:
    """-0.0555 + 5 * 0.15 + 0.15 is above -0.0555 + 6 * 0.15: with the sum as its lower end, a child was
    thought to be empty, and actions that cost up to a seventh more were called optimal."""
    instance = drawn(seed)
    sets = [("a",), ("b",), NAMES]
    actions = [
        dict(zip(some, row, strict=True)) for some in sets for row in product(VALUES, repeat=len(some))
    ]
    best = min(float(found.cost) for found in (judge(instance, one) for one in actions) if found.feasible)
    result = solve(instance, "bab")
    assert result.status is Status.OPTIMAL
    assert result.cost == pytest.approx(best, rel=2e-6)
    assert result.lower_bound is not None and result.lower_bound <= best


def test_a_value_whose_logit_is_just_what_is_needed_is_read_as_it_is_set() -> None:
    """At b = 1.35 the logit is 2e-17 above what is needed, and at the double next to it below. The sum of
    steps is that other double, so that b alone was thought to be refused."""
    features = (
        Feature("a", actionable=True, bounds=(-6.0, 5.0), only=Steps(1.0)),
        Feature("b", actionable=True, bounds=(1.35, 1.35), only=Steps(0.1, 0.05)),
        Feature("e"),
    )
    hidden = np.array([[0.0, 2.03, -0.782], [0.0, -5.247, 0.11]]), np.array([-1.849, 7.432])
    network = ReluNetwork.from_layers([hidden, (np.array([[1.37, 0.02]]), np.array([-0.315]))])
    factual, cost = {"a": -0.04, "b": 1.2, "e": -0.21}, Cost.pure("l1", dict.fromkeys(NAMES, 1.0))
    preferences, accept = Preferences(NAMES), Acceptance(1.1378454)
    instance = Instance(features, independent("abe"), network, factual, preferences, cost, accept)
    assert judge(instance, {"b": 1.35}).feasible
    result = solve(instance, "bab")
    assert result.status is Status.OPTIMAL
    assert result.action == {"b": 1.35}
