"""The Pyomo back end: a model people can read and extend, and honest bounds when stopped."""

from __future__ import annotations

from pathlib import Path

import pyomo.environ as pyo
import pytest

from milp_recourse import read_instance, solve
from milp_recourse.backends import backend
from milp_recourse.backends.pyomo import solve_model
from milp_recourse.backends.pyomo_model import pyomo_model
from milp_recourse.result import Status, gap_tolerance

INSTANCES = Path(__file__).resolve().parents[2] / "instances"


@pytest.mark.parametrize(
    "case", ["smoke/hold", "smoke/plausible_ball", "smoke/linf", "smoke/ordinal_one_hot"]
)
def test_the_open_model_has_the_same_optimum(case: str) -> None:
    """One model with open switches, solved by SCIP as it is, agrees with highs."""
    instance = read_instance(INSTANCES / f"{case}.json")
    model = pyomo_model(instance)
    columns = [model.component(f"set_{name}") for name in instance.levers]
    answer = solve_model("scip_direct", model, columns, None)
    assert answer.kind == "point"
    assert pyo.value(model.cost.expr, exception=False) is None, "solve_model loads nothing into the model"
    assert answer.bound == pytest.approx(solve(instance).cost, rel=1e-5)


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
    with pytest.raises(Exception, match="no_such_solver"):
        backend("pyomo:no_such_solver")
