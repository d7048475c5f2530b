"""Problems with scenarios: the compiled engine and HiGHS agree, and no sampled action beats a bound.

In a scenario a target is missed and noise is other, but only where something is acted on: acting at the
factual value differs from not acting, for numbers and for labels that move something.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from milp_recourse import Status, solve
from milp_recourse.engine.networks.problem_arrays import lowered
from milp_recourse.errors import Unsupported
from milp_recourse.judge import already_good, judge
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.expression import Variable, as_expression
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.scenario import Scenario
from milp_recourse.problem.scm import Link, Mechanism, StructuralCausalModel
from tests.helpers.generators import Style, sample_actions, supported_instance

STYLES = (
    Style(levers=3, curves=False, gamma=False, plausible=0.3),
    Style(levers=2, plausible=0.3),
    Style(levers=3, causes=False, plausible=0.0),
)


def with_scenarios(seed: int) -> Instance:
    """A random problem in which targets of numbers are missed and what is moved has other noise."""
    rng = np.random.default_rng([seed, 3])
    instance = supported_instance(seed, STYLES[seed % len(STYLES)])
    numbers = [n for n in instance.levers if instance.by_name[n].kind == "continuous"]
    moved = [f.name for f in instance.features if f.kind == "continuous" and instance.scm.parents(f.name)]
    scenarios = tuple(
        Scenario(
            {n: float(rng.normal()) for n in numbers if rng.random() < 0.7},
            {n: float(rng.normal()) for n in moved if rng.random() < 0.7},
        )
        for _ in range(int(rng.integers(1, 3)))
    )
    return replace(instance, scenarios=scenarios)


@pytest.mark.parametrize("part", range(4))
def test_with_highs_and_with_samples(part: int) -> None:
    decided = 0
    for seed in range(part, 24, 4):
        instance = with_scenarios(seed)
        if not instance.levers or already_good(instance):
            continue
        try:
            own, other = solve(instance, "bab", 10.0), solve(instance, "highs", 10.0)
        except Unsupported:
            continue
        if Status.LIMIT in (own.status, other.status):
            continue
        decided += 1
        assert own.status is other.status, seed
        names = [f.name for f in instance.features]
        for row in sample_actions(np.random.default_rng(seed), instance, 100):
            verdict = judge(
                instance, {n: v for n, v in zip(names, row.tolist(), strict=True) if np.isfinite(v)}
            )
            if verdict.feasible:
                assert own.status is Status.OPTIMAL, seed
                assert own.lower_bound <= verdict.cost, seed
        if own.cost is not None:
            assert abs(own.cost - other.cost) <= instance.gap_tolerance(own.cost), seed
    assert decided >= 1


def labels_that_move() -> Instance:
    """b = a, where a is one of three labels; b's noise is 1 less where a is acted on."""
    scm = StructuralCausalModel(
        ("a", "b"),
        {"a": Mechanism(as_expression(0.0), Link(), None), "b": Mechanism(Variable("a"), Link(), None)},
    )
    label = Feature("a", "ordinal", True, None, ("low", "middle", "high"), encoding="one-hot")
    features = (label, Feature("b", "continuous", False))
    network = ReluNetwork.from_layers([([[0.0, 0.0, 0.0, 1.0]], [0.0])])
    return Instance(
        features,
        scm,
        network,
        {"a": 0.0, "b": 0.0},
        Preferences(("a",)),
        Cost.pure("l1", {"a": 1.0}),
        Acceptance(0.75),
        scenarios=(Scenario({}, {"b": -1.0}),),
    )


def test_labels_that_move() -> None:
    """One step up gives b = 1, or 0 in the scenario; two steps 2 or 1."""
    result = solve(labels_that_move(), "bab")
    assert (result.status, result.cost) == (Status.OPTIMAL, 2.0)
    assert result.action == {"a": "high"}
    [(_, group)] = lowered([labels_that_move()])
    problem = group.problems(0)
    assert problem.allowed.tolist() == [[1, 1, 1], [1, 0, 0]], "acted on, and not"
    assert (problem.offset[0, 0, 1] != problem.offset[1, 0, 1]).any(), "at rest the two differ"


def test_features_are_held_for_what_scenarios_make_of_them() -> None:
    """logit = c - (a + b) / 2 - 1 / 2. With every target missed by -1, c alone would have to rise by 1.5;
    holding a and b, which nothing moves, leaves 0.5. The action was taken for one with two idle holds."""
    names = ("a", "b", "c")
    scm = StructuralCausalModel(names, {n: Mechanism(as_expression(0.0), Link(), None) for n in names})
    features = tuple(Feature(n, "continuous", True, (0.0, 4.0)) for n in names)
    network = ReluNetwork.from_layers([([[-0.5, -0.5, 1.0]], [-0.5])])
    cost = Cost.pure("l1", dict.fromkeys(names, 1.0))
    instance = Instance(features, scm, network, dict.fromkeys(names, 0.0), Preferences(names), cost)
    missed = replace(instance, scenarios=(Scenario(dict.fromkeys(names, -1.0)),))
    for back_end in ("bab", "highs"):
        assert solve(instance, back_end).action == {"c": pytest.approx(0.5)}
        result = solve(missed, back_end)
        assert result.status is Status.OPTIMAL
        assert result.action == {"a": 0.0, "b": 0.0, "c": pytest.approx(0.5)}
