"""What conditions mean: closed sides, counts of held features, what the factual settles, exact judgement."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from milp_recourse import Status, solve
from milp_recourse.judge import judge
from milp_recourse.problem.conditions import FALSE, TRUE, holds
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.scm import StructuralCausalModel
from tests.helpers.generators import Style, supported_instance
from tests.helpers.plain_conditions import Numbers
from tests.helpers.plain_conditions import holds as plainly
from tests.helpers.random_conditions import KINDS, random_conditions, with_conditions


def small(kind: str = "continuous", cost: Cost | None = None) -> Instance:
    """x + y >= 4 from x = 1, y = 1 within 0 to 5, nothing causing anything."""
    features = tuple(Feature(name, kind, True, (0.0, 5.0)) for name in "xy")
    return Instance(
        features,
        StructuralCausalModel(("x", "y"), {}),
        ReluNetwork.from_layers([([[1.0, 1.0]], [-4.0])], "float64"),
        {"x": 1.0, "y": 1.0},
        Preferences(("x", "y"), {"y": 2.0}),
        cost or Cost.pure("l1", {"x": 1.0, "y": 1.0}),
    )


def under(*said, kind="continuous", cost=None):
    return solve(with_conditions(small(kind, cost), list(said)))


def test_every_judgement_agrees_with_the_words_of_the_format():
    """Ours on demands with negations pushed inward, and a second reading of the JSON as it stands."""
    rng, seen = np.random.default_rng(0), 0
    for seed in range(200):
        instance = supported_instance(seed % 80, Style(plausible=0.0))
        features = {f.name: f for f in instance.features}
        said = random_conditions(seed, instance, KINDS[seed % len(KINDS)])
        instance = with_conditions(instance, said)
        for _ in range(4):
            chosen = [n for n in instance.levers if rng.random() < 0.6]
            ends = {n: instance.levers[n] for n in chosen}
            action = {
                n: float(rng.choice([low, high, instance.factual[n]])) for n, (low, high) in ends.items()
            }
            after = judge(instance, action).counterfactual
            values = {n: Enclosure.of(v) for n, v in after.items()}
            numbers = Numbers(features, instance.factual, after, set(action))
            expected = all(plainly(one, numbers) for one in said)
            assert holds(instance.demand, values, action) == expected, (seed, said, action)
            seen += expected
    assert 100 < seen < 750


def test_what_concerns_the_factual_is_settled_before_solving():
    """Sums, labels and alternatives over factual values leave nothing, or nothing possible."""
    one = {"feature": "x", "of": "factual", "at_least": 1}
    assert with_conditions(small(), [one]).demand == TRUE
    assert with_conditions(small(), [{"not": one}]).demand == FALSE
    assert with_conditions(small(), [{"if": {"not": one}, "then": {"at_most_actions": 0}}]).demand == TRUE
    above = {"not": {"feature": "x", "of": "factual", "at_most": 1}}
    assert with_conditions(small(), [above]).demand == FALSE, "above 1, and it is 1"


@pytest.mark.parametrize("kind", ["continuous", "integer"])  # whole: y is at most 1
def test_negations_are_closed_but_for_whole_numbers(kind):
    """Not "y at least 1.5": at most 1.5, or for whole numbers at most ceil(1.5) - 1."""
    found = under(
        {"not": {"feature": "y", "of": "counterfactual", "at_least": 1.5}},
        {"feature": "x", "of": "counterfactual", "at_most": 2.75},
        kind=kind,
    )
    if kind == "integer":
        assert found.status is Status.INFEASIBLE
    else:
        assert found.cost == pytest.approx(1.75 + 2 * 0.25)


def test_held_features_are_actions():
    """An action that is asked for is free where holding is; under l0 it has its price; and it is counted."""
    free = under({"acted": "y"})
    assert free.cost == pytest.approx(2.0) and free.action["y"] == 1.0
    paid = under({"acted": "y"}, cost=Cost.pure("l0", {}))
    assert paid.cost == pytest.approx(2.0)  # y alone, weight 2
    both = under({"acted": "y"}, {"acted": "x"}, cost=Cost.pure("l0", {}))
    assert both.cost == pytest.approx(3.0)
    assert under({"acted": "y"}, {"acted": "x"}, {"at_most_actions": 1}).status is Status.INFEASIBLE
    alone = under({"acted": "y"}, {"at_most_actions": 1})
    assert alone.cost == pytest.approx(4.0) and set(alone.action) == {"y"}
    assert under({"at_most_actions": 0}).status is Status.INFEASIBLE


def test_a_factual_that_meets_everything_costs_nothing():
    """Accepted and within its conditions: cost 0, no action; outside them it is not good yet."""
    there = replace(small(), factual={"x": 3.0, "y": 3.0})
    kept = solve(with_conditions(there, [{"feature": "x", "of": "change", "at_most": 0}]))
    assert (kept.status, kept.cost, kept.action) == (Status.OPTIMAL, 0.0, {})
    moved = solve(with_conditions(there, [{"feature": "x", "of": "counterfactual", "at_most": 2}]))
    assert moved.cost == pytest.approx(1.0) and moved.action == {"x": pytest.approx(2.0)}


def test_judgement_is_exact_on_the_numbers():
    """A sum that misses its bound by less than any float sum would show is refused."""
    bound = 3.0 + 2.0**-51
    instance = with_conditions(small(), [{"sum": {"x": 1, "y": 1}, "of": "change", "at_least": bound}])
    assert any("condition 0" in fault for fault in judge(instance, {"x": 4.0}).faults)
    assert judge(instance, {"x": 4.0, "y": 1.0 + 2.0**-51}).feasible
