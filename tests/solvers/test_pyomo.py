"""The Pyomo back end: a model people can read and extend, and honest bounds when stopped."""

from __future__ import annotations

from pathlib import Path

import pyomo.environ as pyo
import pytest

from milp_recourse import read_instance, solve
from milp_recourse.engine.networks import nearby
from milp_recourse.errors import BackendUnavailable
from milp_recourse.problem.result import Status, gap_tolerance
from milp_recourse.solvers import backend
from milp_recourse.solvers import pyomo as module
from milp_recourse.solvers.pyomo import Answer, solve_model
from milp_recourse.solvers.pyomo_model import pyomo_model

INSTANCES = Path(__file__).resolve().parents[2] / "instances"


CASES = [
    "smoke/hold",
    "smoke/plausible_ball",
    "smoke/linf",
    "smoke/ordinal_one_hot",
    "smoke/hold_costs_under_l0",
    "smoke/loan_negative_income",
    "loan/loan_150",
]


@pytest.mark.parametrize("case", CASES)
def test_the_open_model_has_the_same_optimum(case: str) -> None:
    """One model with open switches, solved by SCIP as it is, agrees with highs."""
    instance = read_instance(INSTANCES / f"{case}.json")
    model = pyomo_model(instance, cost_unit=0.01)
    columns = [model.component(f"set_{name}") for name in instance.levers]
    answer = solve_model("scip_direct", model, columns, None)
    assert answer.kind == "point"
    assert pyo.value(model.cost.expr, exception=False) is None, "solve_model loads nothing into the model"
    assert answer.bound * 0.01 == pytest.approx(solve(instance).cost, rel=1e-6)


def test_a_user_can_extend_the_model() -> None:
    """Forbidding the optimal action by one more constraint raises the optimum."""
    instance = read_instance(INSTANCES / "smoke" / "hold.json")
    best = solve(instance)
    name, value = next((n, v) for n, v in best.action.items() if v != instance.factual[n])
    model = pyomo_model(instance)
    variable = model.component(f"set_{name}")
    beyond = variable <= value - 0.5 if value < instance.factual[name] else variable >= value + 0.5
    model.extra = pyo.Constraint(expr=beyond)
    model.must_act = pyo.Constraint(expr=model.component(f"act_{name}") == 1)
    answer = solve_model("scip_direct", model, [variable], None)
    assert answer.bound > best.cost + 1e-3


@pytest.mark.parametrize("name", ["pyomo:highs", "pyomo:scip_direct"])
def test_a_time_limit_keeps_both_bounds(name: str) -> None:
    """Stopped early: status limit, and the true optimum lies between the bounds."""
    instance = read_instance(INSTANCES / "loan" / "loan_058.json")
    result = solve(instance, backend=name, time_limit=0.5)
    assert result.status is Status.LIMIT
    truth = instance.reference.cost
    assert 0 <= result.lower_bound <= truth + gap_tolerance(truth)
    assert result.cost is None or result.cost >= truth - gap_tolerance(truth)
    assert "time limit" in result.message


def test_an_unknown_solver_is_named() -> None:
    """A solver Pyomo cannot reach is refused with its name."""
    with pytest.raises(BackendUnavailable, match="no_such_solver"):
        backend("pyomo:no_such_solver")


@pytest.mark.parametrize("solver", ["ipopt", "scipy.fsolve", "mpec_nlp"])
def test_a_solver_that_proves_nothing_is_refused(solver: str) -> None:
    """A local solver's "infeasible" is no proof, so it never becomes one."""
    with pytest.raises(BackendUnavailable, match="proves nothing"):
        backend(f"pyomo:{solver}")


def test_trees_have_a_model() -> None:
    """Its optimum is the certified one."""
    instance = read_instance(INSTANCES / "smoke" / "two_trees.json")
    model = pyomo_model(instance)
    pyo.SolverFactory("scip_direct").solve(model)
    assert pyo.value(model.cost) == pytest.approx(solve(instance).cost, rel=1e-5)


def test_a_solver_that_always_fails_ends_as_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any time limit: both kinds of model are tried, then the message says what was raised."""
    monkeypatch.setattr(module, "solve_model", lambda *_: Answer("failed", problem="no licence"))
    instance = read_instance(INSTANCES / "loan" / "loan_000.json")
    result = solve(instance, backend="pyomo:scip_direct")
    assert result.status is Status.LIMIT
    assert "no licence" in result.message
    assert 0 <= result.lower_bound <= instance.reference.cost
    assert result.cost is None or result.cost >= instance.reference.cost * (1 - 1e-6)


def test_an_interface_without_quadratics_gets_tangents(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver not known to be linear only, whose interface refuses quadratics, still proves the optimum."""
    monkeypatch.setattr(module, "LINEAR_ONLY", frozenset())
    monkeypatch.setattr(module, "PATIENCE", 0)
    monkeypatch.setattr(nearby, "first_action", lambda *_: None)  # else bounds alone close every box
    instance = read_instance(INSTANCES / "loan" / "loan_224.json")
    asked = []

    def linear_only(solver, model, columns, seconds):
        asked.append(model.component("theta") is None)
        if asked[-1]:
            return Answer("failed", problem="quadratic objective")
        return solve_model("highs", model, columns, seconds)

    monkeypatch.setattr(module, "solve_model", linear_only)
    result = solve(instance, backend="pyomo:highs")
    assert True in asked
    assert False in asked
    assert result.status is Status.OPTIMAL
    assert result.cost == pytest.approx(instance.reference.cost, rel=1e-6)


@pytest.mark.parametrize("name", ["pyomo:highs", "pyomo:scip_direct"])
def test_curves_close_by_splitting(name: str) -> None:
    """A sigmoid is only enclosed in pieces; smaller boxes close the gap all the same."""
    instance = read_instance(INSTANCES / "smoke" / "sigmoid_link.json")
    result = solve(instance, backend=name, time_limit=20)
    assert result.status is Status.OPTIMAL
    assert result.cost == pytest.approx(instance.reference.cost, rel=2e-6)
