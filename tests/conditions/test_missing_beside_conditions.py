"""Conditions where values of other features are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from milp_recourse.errors import Unsupported
from milp_recourse.formats import instance_from_dict
from milp_recourse.judge import judge
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import LATE
from milp_recourse.problem.result import Result, Status
from milp_recourse.questions.solve import solve
from milp_recourse.solvers import bab
from milp_recourse.solvers.simpler_problems import has_gaps


def test_acting_that_a_domain_forces_is_no_demand():
    """Two conditions together: a is acted on, and must end below where it is. That is its domain alone."""
    instance = {
        "format": "milp-recourse/instance-1",
        "features": [
            {"name": "a", "kind": "ordinal", "actionable": True, "categories": ["low", "middle", "high"]},
            {"name": "m", "kind": "continuous", "actionable": True, "bounds": [0.0, 1.0]},
        ],
        "scm": {"name": "independent"},
        "classifier": {
            "kind": "tree-ensemble",
            "dtype": "float64",
            "trees": [
                {
                    "feature": [1, -2, -2],
                    "threshold": [0.5, 0.0, 0.0],
                    "left": [1, -1, -1],
                    "right": [2, -1, -1],
                    "value": [0.5, 0.0, 1.0],
                    "missing_left": [True, False, False],
                }
            ],
        },
        "factual": {"a": "middle", "m": None},
        "preferences": {"actionable": ["a", "m"]},
        "cost": {"kind": "l1", "scale": {"a": 1.0, "m": 1.0}},
        "conditions": [{"acted": "a"}, {"feature": "a", "of": "counterfactual", "at_most": "low"}],
    }
    result = solve(instance)
    assert (result.status.value, result.cost) == ("optimal", 2.0)
    assert result.action is not None and result.action.keys() == {"a", "m"} and result.action["a"] == "low"


NUMBERS = ("a", "b", "c", "d")


def _tree(rng: np.random.Generator, depth: int = 3) -> dict[str, Any]:
    """A random tree over four whole numbers and a label of three."""
    nodes: list[list[Any]] = []

    def grow(left: int) -> int:
        here = len(nodes)
        nodes.append([-2, 0.0, -1, -1, round(float(rng.random()), 2), bool(rng.random() < 0.5)])
        if left:
            nodes[here][0], nodes[here][1] = int(rng.integers(7)), float(rng.integers(4)) + 0.5
            nodes[here][1] = 0.5 if nodes[here][0] > 3 else nodes[here][1]
            nodes[here][2], nodes[here][3] = grow(left - 1), grow(left - 1)
        return here

    grow(depth)
    names = ("feature", "threshold", "left", "right", "value", "missing_left")
    return dict(zip(names, map(list, zip(*nodes, strict=True)), strict=True))


def _problem(seed: int) -> dict[str, Any]:
    """Four whole numbers and a label, some of them missing, and conditions on known ones."""
    rng = np.random.default_rng(seed)
    ends = {"kind": "integer", "actionable": True, "bounds": [0, 3]}
    features: list[dict[str, Any]] = [{"name": name, **ends} for name in NUMBERS]
    features[3] |= [{"kind": "ordinal", "categories": ["p", "q", "r", "s"], "bounds": [1, 3]}, {}][seed % 2]
    features.append({"name": "e", "kind": "categorical", "actionable": True, "categories": ["x", "y", "z"]})
    factual = {name: int(rng.integers(4)) for name in NUMBERS} | {"e": str(rng.choice(["x", "y", "z"]))}
    if seed % 2 == 0:
        factual["d"] = "pqrs"[factual["d"]]
    for name in rng.choice(["c", "d", "e"], int(rng.integers(1, 3)), replace=False).tolist():
        factual[name] = None
    conditions: list[dict[str, Any]] = [
        {"sum": {"a": 1, "b": 1}, "of": "counterfactual", "at_most": int(rng.integers(1, 5))},
        {"sum": {"a": 1, "b": -1}, "of": "change", "at_least": int(rng.integers(-1, 2))},
        {"acted": str(rng.choice([*NUMBERS, "e"]))},
        {"if": {"acted": "a"}, "then": {"at_most_actions": 2}},
    ]
    kind = ["l1", "l2-squared", "linf", "l0", "mixture"][seed // 2 % 5]
    names = [*NUMBERS, "e"]
    cost: dict[str, Any] = {"kind": kind, "scale": {name: float(rng.integers(1, 4)) for name in names}}
    if kind == "mixture":
        cost |= {"l0": 0.3, "l1": 1.0}
    mask = [name for name in names if rng.random() < 0.8]
    return {
        "format": "milp-recourse/instance-1",
        "features": features,
        "scm": {"name": "independent"},
        "classifier": {
            "kind": "tree-ensemble",
            "dtype": "float32",
            "trees": [_tree(rng) for _ in range(int(rng.integers(1, 4)))],
        },
        "accept": {"above": 0.6},
        "factual": factual,
        "preferences": {"actionable": mask, "weights": {n: float(rng.integers(1, 5)) / 2 for n in mask}},
        "cost": cost,
        "conditions": [one for one in conditions if rng.random() < 0.5] or conditions[:1],
    }


def _brute_force(instance: Instance) -> float | None:
    """The least cost of a feasible action: they are judged in the order of their costs."""
    values = {n: [None, *np.arange(low, high + 1).tolist()] for n, (low, high) in instance.levers.items()}
    actions = [
        {n: v for n, v in zip(values, chosen, strict=True) if v is not None}
        for chosen in product(*values.values())
    ]
    verdicts = (judge(instance, action) for action in sorted(actions, key=instance.cost_of))
    return next((float(verdict.cost) for verdict in verdicts if verdict.feasible), None)


@pytest.mark.long
@pytest.mark.parametrize("sums", [False, True])
def test_the_optimum_is_that_of_brute_force(sums: bool) -> None:
    """Missing levers that stay so or are set, labels among them, beside sums, counts and demands to act; and
    beside ``sums`` alone, where more are missing."""
    seen: Counter[tuple[str, bool]] = Counter()
    for seed in range(8, 24) if sums else range(8):
        problem = _problem(seed)
        if sums:
            problem["conditions"] = [
                {"sum": {"a": 1, "b": 1}, "of": "counterfactual", "at_most": 2},
                {"sum": {"a": 1, "b": -1}, "of": "change", "at_least": seed % 3 - 1},
            ]
            problem["accept"]["above"] += 0.04 * (seed % 3)
            problem["factual"] |= dict.fromkeys("cde" if seed % 2 else "ce")
        instance = instance_from_dict(problem)
        known, result = _brute_force(instance), solve(instance)
        if known is None:
            assert result.status is Status.INFEASIBLE, seed
        else:
            assert result.status is Status.OPTIMAL, (seed, result)
            assert abs((result.cost or 0.0) - known) <= 2 * instance.gap_tolerance(known), seed
        action = {} if result.action is None else result.action
        seen[result.status.value, not action.keys().isdisjoint(instance.missing)] += has_gaps(instance)
    assert min(seen["optimal", True], seen["optimal", False], seen["infeasible", False]) >= 1


def _with_many_gaps(
    seed: int, missing: int, share: float | None = None, conditions: Sequence[dict[str, Any]] = ()
) -> Instance:
    """Two known features of which one has to be set, many without a value, and a tree for each."""
    rng = np.random.default_rng(seed)
    names = ["a", "b", *(f"m{k}" for k in range(missing))]
    leaf = {
        "threshold": [0.5, 0.0, 0.0],
        "left": [1, -1, -1],
        "right": [2, -1, -1],
        "missing_left": [True] * 3,
    }
    scores = [sorted(rng.random(2).round(2).tolist()) for _ in names]
    trees = [{"feature": [k, -2, -2], **leaf, "value": [0.5, *two]} for k, two in enumerate(scores)]
    low, high = np.array(scores).mean(axis=0)
    share = rng.uniform(0.3, 0.7) if share is None else share
    kind = ("l1", "l0", "linf", "l2-squared")[seed % 4]
    return instance_from_dict(
        {
            "format": "milp-recourse/instance-1",
            "features": [{"name": n, "kind": "binary", "actionable": True, "bounds": [0, 1]} for n in names],
            "scm": {"name": "independent"},
            "classifier": {"kind": "tree-ensemble", "dtype": "float32", "trees": trees},
            "accept": {"above": float(low + share * (high - low))},
            "factual": dict.fromkeys(names) | {"a": 0, "b": 0},
            "preferences": {
                "actionable": names,
                "weights": {name: float(rng.integers(2, 9)) / 2 for name in names},
            },
            "cost": {"kind": kind} | ({} if kind == "l0" else {"scale": dict.fromkeys(names, 1.0)}),
            "conditions": [{"sum": {"a": 1, "b": 1}, "of": "counterfactual", "at_least": 1}, *conditions],
        }
    )


def _solving(monkeypatch: pytest.MonkeyPatch, instance: Instance) -> tuple[Result, int]:
    """The answer, and how many problems of trees were solved for it."""
    solved, solve_trees = Counter[str](), bab.solve_trees
    with monkeypatch.context() as patch:
        patch.setattr(bab, "solve_trees", lambda *given: (solved.update(["one"]), solve_trees(*given))[1])
        return solve(instance), solved.total()


@pytest.mark.parametrize("seed", range(4))
def test_seven_missing_levers_take_few_problems(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """At most two for each of two cases of the condition, not 128; under l0 the cheapest sets first."""
    instance = _with_many_gaps(seed, 7)
    known, (result, solved) = _brute_force(instance), _solving(monkeypatch, instance)
    assert result.status is Status.OPTIMAL and result.cost == pytest.approx(known, abs=1e-5)
    assert 1 <= solved <= (64 if instance.cost.l0 else 4)


@pytest.mark.parametrize("seed", range(4))
def test_that_there_is_no_action_takes_few_problems(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Both known features have to be set, and a condition forbids it: none of the 512 sets has an action."""
    most = [{"sum": {"a": 1, "b": 1}, "of": "counterfactual", "at_most": 1}]
    result, solved = _solving(monkeypatch, _with_many_gaps(seed, 9, share=0.999, conditions=most))
    assert result.status is Status.INFEASIBLE and 1 <= solved <= 4


def test_thirty_missing_levers_end_at_the_limit_with_a_bound() -> None:
    """The cheapest of 2^30 sets are closed; nothing costs less than the next one."""
    late = solve(_with_many_gaps(0, 30), time_limit=0.5)
    assert (late.status, late.proof, late.message) == (Status.LIMIT, "rigorous", LATE)
    assert late.lower_bound is not None and late.lower_bound > 5


def test_a_maximum_within_the_cost_is_refused_in_one_line() -> None:
    """It is neither a sum nor the maximum alone."""
    problem = _problem(1) | {"conditions": [{"sum": {"a": 1, "b": 1}, "of": "counterfactual", "at_most": 3}]}
    problem["cost"] = {
        "kind": "mixture",
        "l1": 1.0,
        "linf": 1.0,
        "scale": dict.fromkeys([*NUMBERS, "e"], 1.0),
    }
    problem["preferences"] = {"actionable": [*NUMBERS, "e"]}
    with pytest.raises(
        Unsupported, match="a missing value, conditions on sums or on holding a feature, and a"
    ):
        solve(problem)
