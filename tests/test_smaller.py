"""Under l0 and linf nothing is changed that need not be, by any back end."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from milp_recourse.domain.cost import Cost
from milp_recourse.domain.features import Feature
from milp_recourse.domain.network import ReluNetwork
from milp_recourse.domain.scm import independent
from milp_recourse.instance import Instance, Preferences
from milp_recourse.judge import judge
from milp_recourse.result import Result, Status
from milp_recourse.smaller import leaves_open, smaller_changes
from milp_recourse.solve import solve

sys.path.insert(0, str(Path(__file__).parent / "properties"))
from tests.helpers.brute_force import number
from tests.helpers.generators import random_instance


def problem(cost: Cost, kinds: tuple[str, str] = ("continuous", "continuous")) -> Instance:
    """2 a + b must reach 14.4 from nothing; both go up to 10."""
    features = tuple(
        Feature(n, kind, True, (0.0, 10.0))  # type: ignore[arg-type]
        for n, kind in zip("ab", kinds, strict=True)
    )
    network = ReluNetwork.from_layers([([[2.0, 1.0]], [-14.4])], "float64")
    factual = {"a": 0.0, "b": 0.0}
    return Instance(features, independent(("a", "b")), network, factual, Preferences(("a", "b")), cost)


def open_changes(instance: Instance, result: Result) -> list[str]:
    """Changes that could be undone or halved at no higher cost."""
    action = {n: number(instance, n, v) for n, v in result.action.items()}
    now, found = judge(instance, action).cost, []
    for name, value in action.items():
        x, f = instance.factual[name], instance.feature(name)
        half = x + (float(int((value - x) / 2)) if f.integral else (value - x) / 2)
        rest = {n: v for n, v in action.items() if n != name}
        tried = [rest, {**action, name: x}]
        if f.kind != "categorical" and half not in (x, value):
            tried.append({**action, name: half})
        for other in tried:
            verdict = judge(instance, other)
            if other != action and verdict.feasible and verdict.cost <= now:
                found.append(f"{name}: {value} could be {other.get(name, 'left alone')}")
    return found


@pytest.mark.parametrize("name", ["bab", "highs", "grid"])
@pytest.mark.parametrize("cost", [Cost.pure("l0", {}), Cost.pure("linf", {"a": 0.1, "b": 1.0})])
def test_what_decides_no_cost_is_as_small_as_it_can_be(name: str, cost: Cost) -> None:
    """l0: a alone, near 7.2. linf: a costs ten times b, so b goes as far as a allows, and no farther."""
    instance = problem(cost)
    result = solve(instance, name)
    assert open_changes(instance, result) == []
    if cost.l0:
        assert list(result.action) == ["a"]
        assert 7.2 <= result.action["a"] <= 7.35


def test_an_arbitrary_value_is_brought_near_the_least() -> None:
    """8.33 where 7.2 does; whole numbers stop at 8."""
    for kind, most in (("continuous", 7.3), ("integer", 8.0)):
        instance = problem(Cost.pure("l0", {}), (kind, "continuous"))
        action = {"a": 9.0 if kind == "integer" else 8.33}
        found, verdict = smaller_changes(instance, action, judge(instance, action), judge)
        assert verdict.feasible
        assert 7.2 <= found["a"] <= most


def test_a_change_for_nothing_is_undone() -> None:
    """b need not move at all under linf while a does it alone."""
    instance = problem(Cost.pure("linf", {"a": 1.0, "b": 1.0}))
    action = {"a": 8.0, "b": 3.0}
    found, verdict = smaller_changes(instance, action, judge(instance, action), judge)
    assert set(found) == {"a"} and verdict.cost <= 8


def test_sums_of_changes_are_left_alone() -> None:
    """They bind every lever; no judgement is spent."""

    def never(*_: object) -> None:
        raise AssertionError

    for kind in ("l1", "l2-squared"):
        instance = problem(Cost.pure(kind, {"a": 1.0, "b": 1.0}))
        assert not leaves_open(instance)
        action = {"a": 8.33}
        assert smaller_changes(instance, action, judge(instance, action), never)[0] is action  # type: ignore[arg-type, type-var]


@pytest.mark.parametrize("seed", range(60))
def test_random_instances_with_labels_whole_numbers_and_causes(seed: int) -> None:
    """No single change of an optimal action can be undone or halved."""
    drawn = random_instance(seed)
    kind = ("l0", "linf")[seed % 2]
    scale = {f.name: drawn.cost.scale.get(f.name, 1.0) for f in drawn.features}
    instance = replace(drawn, cost=Cost.pure(kind, scale))
    result = solve(instance, time_limit=20)
    if result.action:
        assert open_changes(instance, result) == []
        assert result.status is not Status.OPTIMAL or result.gap <= result.tolerance
