"""The back end ``ask``: order of cost, number of rows asked, limits, and functions of two answers."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.problem.asked_model import AskedModel
from milp_recourse.problem.conditions import AtMostActions
from milp_recourse.problem.cost import Cost, measured
from milp_recourse.problem.features import Feature, Steps
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.result import Status
from milp_recourse.problem.scm import independent
from milp_recourse.questions.solve import solve
from milp_recourse.solvers import in_order
from milp_recourse.solvers.ask import FIRST
from milp_recourse.solvers.in_order import InOrder

NAMES = ("a", "b", "c", "d")
COSTS = {
    "l1": Cost.pure("l1", {"a": 3.0, "b": 0.7, "c": 1.1, "d": 2.0}),
    "l2-squared": Cost.pure("l2-squared", {"a": 3.0, "b": 0.7, "c": 1.1, "d": 2.0}),
    "linf": Cost.pure("linf", {"a": 3.0, "b": 0.7, "c": 1.1, "d": 2.0}),
    "l0": Cost.pure("l0", {}),
    "mixture": Cost(l0=0.25, l1=1.0, linf=2.0, measures=measured({"a": 3.0, "b": 0.7, "c": 1.1, "d": 2.0})),
}


class Function:
    """A function of rows that remembers which it was asked."""

    def __init__(self, accepts: Any) -> None:
        self.accepts, self.rows = accepts, list[tuple[float, ...]]()

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Whether each row is accepted."""
        self.rows += map(tuple, rows.tolist())
        return np.array([self.accepts(row) for row in rows], dtype=bool)


def problem(accepts: Any, cost: str = "l1", high: int = 9, **changes: Any) -> Instance:
    """Somebody at (2, 2, 2, 2) who may set four whole numbers from 0 to ``high``."""
    features = tuple(Feature(name, "integer", True, (0.0, float(high))) for name in NAMES)
    model = AskedModel(len(NAMES), accepts if isinstance(accepts, Function) else Function(accepts))
    own = Preferences(NAMES, {"a": 1.5})
    given = (features, independent(NAMES), model, dict.fromkeys(NAMES, 2.0), own, COSTS[cost])
    return replace(Instance(*given, Acceptance(0.5, strict=True)), **changes)


def every(instance: Instance) -> list[tuple[float, tuple[float, ...]]]:
    """All rows that differ, with the cost of the changes that they need."""
    ends = [range(int(low), int(high) + 1) for low, high in instance.levers.values()]
    found = []
    for row in product(*ends):
        moved = {n: float(v) for n, v in zip(NAMES, row, strict=True) if v != instance.factual[n]}
        found.append((float(instance.cost_of(moved)), tuple(map(float, row))))
    return found


@pytest.mark.parametrize("cost", COSTS)
def test_all_actions_come_once_and_in_order(cost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under every kind of cost, in many bands, with and without a limit on actions."""
    monkeypatch.setattr(in_order, "FEW", 16)
    monkeypatch.setattr(in_order, "MANY", 64)
    for most in (None, 2):
        limits = () if most is None else (AtMostActions(most),)
        instance = problem(lambda row: False, cost, 5, conditions=limits)
        order, costs, rows = InOrder(instance), list[float](), list[tuple[float, ...]]()
        for band, actions in order:
            assert cost in ("l0", "linf", "mixture") or len(band) <= 64
            costs += band.tolist()
            part = actions(slice(0, len(band)))
            some = np.where(np.isnan(part), 2.0, part)[:, [order.names.index(n) for n in NAMES]]
            rows += map(tuple, some.tolist())
        wanted = [(c, r) for c, r in every(instance) if 0 < sum(v != 2 for v in r) <= (most or 4)]
        assert costs == sorted(costs) and len(set(rows)) == len(rows)
        assert sorted(rows) == sorted(r for _, r in wanted)
        assert np.allclose(costs, sorted(c for c, _ in wanted), rtol=1e-12)


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_few_rows_are_asked_that_cost_more_than_the_answer(cost: str, seed: int) -> None:
    """A pattern of accepted rows in thousands: the cheapest one, by at most 1.2 times the calls needed."""
    weights = np.random.default_rng(seed).integers(1, 90, 4)
    function = Function(lambda row: int(row @ weights) % 97 == 96 and row @ weights > 400 + 300 * seed)
    instance = problem(function, cost)
    rows = every(instance)
    possible = [c for c, row in rows if function.accepts(np.array(row))]
    function.rows.clear()
    result = solve(instance)
    assert result.backend == "ask" and result.proof == "asked"
    if not possible:
        assert result.status is Status.INFEASIBLE
        return
    assert result.status is Status.OPTIMAL and result.cost == pytest.approx(min(possible), rel=1e-12)
    needed = sum(c <= min(possible) * (1 + 1e-12) for c, _ in rows)
    asked = len(function.rows)
    assert (
        result.nodes is not None and result.nodes <= asked <= result.nodes + 1
    )  # the factual, before the search
    assert len(set(function.rows)) >= sum(c < min(possible) * (1 - 1e-12) for c, _ in rows)
    assert asked <= 1.2 * needed + FIRST + 4


def test_nothing_is_infeasible_before_all_rows_were_asked() -> None:
    """10000 rows."""
    function = Function(lambda row: False)
    assert solve(problem(function)).status is Status.INFEASIBLE
    assert len(set(function.rows)) == 10**4


def test_out_of_time_the_bound_is_that_of_the_next_action() -> None:
    """No row that costs less than the bound was left out."""
    function = Function(lambda row: False)
    instance = problem(function, high=17)
    result = solve(instance, time_limit=0.03)
    assert result.status is Status.LIMIT and result.proof == "asked" and (result.lower_bound or 0) > 0
    asked = set(function.rows)
    assert all(row in asked for c, row in every(instance) if c < (result.lower_bound or 0))


def test_a_function_with_two_answers_for_a_row_is_an_error() -> None:
    """That refuses the winner alone, or the factual among others only."""

    def alone(rows: np.ndarray) -> np.ndarray:
        return (rows.sum(axis=1) > 12) & (len(rows) > 1)

    def moody(rows: np.ndarray) -> np.ndarray:
        return (rows.sum(axis=1) > 12) | ((rows.sum(axis=1) == 8) & (len(rows) > 1))

    for function in (alone, moody):
        instance = problem(lambda row: False)
        with pytest.raises(BadInput, match="predict: got two answers for one row; allowed: a function that"):
            solve(replace(instance, classifier=AskedModel(4, function)))


def test_a_lever_without_steps_is_named_and_steps_are_proposed() -> None:
    """Steps that are given make it exact."""
    instance = problem(lambda row: row.sum() > 9)
    first = replace(instance.features[0], kind="continuous")
    with pytest.raises(
        Unsupported, match=r"a is a lever that takes any number; with steps, such as .*'a': 0.5"
    ):
        solve(replace(instance, features=(first, *instance.features[1:])))
    stepped = replace(first, only=Steps(0.25))
    result = solve(replace(instance, features=(stepped, *instance.features[1:])))
    assert result.action == {"a": 3.25} and result.cost == pytest.approx(1.5 * 1.25 / 3)


def test_other_back_ends_do_not_take_a_function() -> None:
    """By name; without one it is asked."""
    for name in ("bab", "highs", "cpsat", "grid"):
        with pytest.raises(Unsupported, match="can only be asked, by the back end ask"):
            solve(problem(lambda row: row.sum() > 9), name)


def test_a_lever_with_too_many_values_is_named_too() -> None:
    """Its values, 1e9 or 1e37 whole numbers, were listed to see whether they can be."""
    instance = problem(lambda row: row.sum() > 9)
    for most in (1e9, 1e37):
        wide = replace(instance.features[0], bounds=(0.0, most))
        with pytest.raises(Unsupported, match="a is a lever that takes any number"):
            solve(replace(instance, features=(wide, *instance.features[1:])))
