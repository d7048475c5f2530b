"""Under l0 and linf nothing is changed that need not be, by any back end."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from milp_recourse import Recourse
from milp_recourse.engine.networks.nearby import near
from milp_recourse.judge import conclude, judge
from milp_recourse.judge.conclude import Proposal
from milp_recourse.judge.polish import smaller_changes
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.result import Result, Status
from milp_recourse.problem.scm import independent
from milp_recourse.questions.solve import solve

sys.path.insert(0, str(Path(__file__).parents[1] / "properties"))
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
        x, f = instance.factual[name], instance.by_name[name]
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
        found = smaller_changes(judge(instance, action))
        assert found.feasible
        assert 7.2 <= found.action["a"] <= most


def test_a_change_for_nothing_is_undone() -> None:
    """b need not move at all under linf while a does it alone."""
    instance = problem(Cost.pure("linf", {"a": 1.0, "b": 1.0}))
    action = {"a": 8.0, "b": 3.0}
    found = smaller_changes(judge(instance, action))
    assert set(found.action) == {"a"} and found.cost <= 8


def test_sums_of_changes_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """They bind every lever; no judgement is spent."""

    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("milp_recourse.judge.polish.judge", never)
    for kind in ("l1", "l2-squared"):
        instance = problem(Cost.pure(kind, {"a": 1.0, "b": 1.0}))
        assert not instance.leaves_open
        found = conclude(instance, Proposal({"a": 8.33}, 0.0, "solver"), "highs", 0.0)
        assert found.action == {"a": 8.33}


@pytest.mark.parametrize("seed", range(60))
def test_random_instances_with_labels_whole_numbers_and_causes(seed: int) -> None:
    """No single change of an optimal action can be undone or halved."""
    drawn = random_instance(seed)
    kind = ("l0", "linf")[seed % 2]
    scale = {f.name: drawn.cost.measures.get(f.name, 1.0) for f in drawn.features}
    instance = replace(drawn, cost=Cost.pure(kind, scale))
    result = solve(instance, time_limit=20)
    if result.action:
        assert open_changes(instance, result) == []
        assert result.status is not Status.OPTIMAL or result.gap <= result.tolerance


# -- slight changes under l1 ---------------------------------------------------------------


def with_slight_change(bound: float) -> Result:
    """What is made of a proposal that changes b by 1e-6 where a alone would do, for 7.2."""
    instance = problem(Cost.pure("l1", {"a": 1.0, "b": 1.0}))
    proposal = Proposal({"a": 7.2 - 4e-7, "b": 1e-6}, bound, "rigorous")
    return conclude(instance, proposal, "test", 0.0, repair=near)


def test_a_larger_change_spares_slight_ones() -> None:
    """The answer stays proven, and costs no more than the proof allows."""
    result = with_slight_change(7.2 - 3e-6)
    assert result.status is Status.OPTIMAL
    assert set(result.action) == {"a"}
    assert 7.2 <= result.cost <= 7.2 + 1e-9


def test_slight_changes_stay_where_sparing_them_costs_too_much() -> None:
    """b costs a hundredth of a, and nearly all of the gap is used up: without b it would not be closed."""
    instance = problem(Cost.pure("l1", {"a": 1.0, "b": 100.0}))
    given = {"a": 7.2 - 4e-7, "b": 1e-6}
    bound = float(judge(instance, given).cost) - 0.95 * 7.2e-6
    result = conclude(instance, Proposal(given, bound, "rigorous"), "test", 0.0, repair=near)
    assert result.status is Status.OPTIMAL
    assert result.action == given


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_optimum_under_l1_changes_what_hardly_matters() -> None:
    """Ten continuous columns: the search ends within the gap, where many changes of 1e-7 are left."""
    X, y = make_classification(1500, 10, n_informative=5, random_state=1)
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(10)])
    model = make_pipeline(StandardScaler(), MLPClassifier((16, 16), max_iter=400, random_state=1))
    refused = frame[model.fit(frame, y).predict(frame) == 0].iloc[:40]
    answers = Recourse(model, frame, cost="l1").certify(refused)
    assert (answers.table["status"] == "optimal").all()
    moved = (answers.counterfactuals[frame.columns] - refused).abs() / (frame.max() - frame.min())
    assert moved.to_numpy()[moved.to_numpy() > 0].min() > 1e-5


@pytest.mark.parametrize("bound", [math.inf, -math.inf, math.nan])
def test_a_bound_that_is_no_number_is_withdrawn_as_before(bound: float) -> None:
    """A faulty back end's: no traceback, and nothing is proven."""
    result = with_slight_change(bound)
    assert result.status is Status.LIMIT
    assert result.action is not None
