"""The program as a readable Pyomo model that a user can extend."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from milp_recourse.problem.instance import Instance
from milp_recourse.solvers.rows import MixedInteger, equal_parts, whole_problem
from milp_recourse.solvers.rows.mixed_integer import Form, LinearRow
from milp_recourse.solvers.rows.tangent_rows import ball_tangent, cost_tangent

CONSTANT_TOLERANCE = 1e-9
"""How far a row without columns may be off before it counts as false: float rounding of its constant."""


def pyomo_model(instance: Instance, pieces: int = 16, cost_unit: float = 1.0) -> Any:
    """The whole problem as one Pyomo ``ConcreteModel``, switches open.

    Variables and constraints carry the names of the program: ``set_income`` is the value an action
    sets, ``act_income`` is 1 where it is acted on, ``delta_income`` the change that costs,
    ``hidden_0_3`` a ReLU's output, ``accepted`` the logit's row, ``plausible`` the ball, ``cost`` the
    objective. Add your own constraints before solving: the bounds come from the stated action
    ranges alone, so they stay valid under any constraint that only takes actions away. They may
    become wrong if you widen a variable or drop one of the constraints.

    Parameters
    ----------
    pieces
        Parts each curve is cut into; piecewise-linear models have no curves and are exact. With
        curves the optimum is a lower bound.
    cost_unit
        The objective is the cost divided by it. Solvers' tolerances are absolute: about the size of
        the costs expected (0.01, say) keeps small costs exact.

    Returns
    -------
    ConcreteModel
        What a solver returns for it is off by the solver's tolerances: judge an action
        (:func:`milp_recourse.judge.judge`) before you rely on it.

    Raises
    ------
    Unsupported
        As for :func:`milp_recourse.solvers.rows.bounded`.

    Examples
    --------
    >>> from milp_recourse import read_instance
    >>> from milp_recourse.formats.instances_path import instances_path
    >>> import pyomo.environ as pyo
    >>> model = pyomo_model(read_instance(instances_path() / "loan" / "loan_000.json"))
    >>> at_most_two = model.act_amount + model.act_duration + model.act_income + model.act_savings <= 2
    >>> model.at_most_two = pyo.Constraint(expr=at_most_two)
    >>> results = pyo.SolverFactory("scip_direct").solve(model)  # doctest: +SKIP
    """
    return build_model(whole_problem(instance, equal_parts(pieces)), cost_unit)


def build_model(mip: MixedInteger, scale: float = 1.0, quadratic: bool = True) -> Any:
    """A mixed-integer program as a Pyomo model.

    Parameters
    ----------
    scale
        The objective is the cost divided by it. With a scale of about the cost, a solver's absolute gap is a
        relative one.
    quadratic
        Keep the quadratics. Without, the objective becomes a variable ``theta`` (cost / scale) and
        both quadratics are left to tangents, collected in ``model.tangents``.
    """
    import pyomo.environ as pyo

    model = pyo.ConcreteModel()
    columns = []
    for name, low, high, integer in zip(mip.names, mip.lower, mip.upper, mip.integer, strict=True):
        domain = pyo.Reals
        if integer:
            domain = pyo.Binary if (low, high) == (0.0, 1.0) else pyo.Integers
        column = pyo.Var(domain=domain, bounds=(low, high))
        model.add_component(name, column)
        columns.append(column)
    for row in mip.rows:
        _add_row(model, row, columns)
    linear = sum(c * columns[k] for k, c in mip.linear.items()) + mip.offset
    moves = mip.ball is not None and bool(mip.ball.squares or mip.ball.linear)
    if mip.ball is not None and not moves and mip.ball.upper < -CONSTANT_TOLERANCE:
        _never(model, "plausible")
    if quadratic:
        if mip.ball is not None and moves:
            left = sum(w * columns[k] ** 2 for k, w in mip.ball.squares.items())
            left += sum(c * columns[k] for k, c in mip.ball.linear.items())
            model.plausible = pyo.Constraint(expr=left <= mip.ball.upper)
        cost = (linear + sum(c * columns[k] ** 2 for k, c in mip.squares.items())) / scale
        model.cost = pyo.Objective(expr=cost)
    else:
        model.theta = pyo.Var(bounds=(0.0, None))
        model.tangents = pyo.ConstraintList()
        model.cost = pyo.Objective(expr=model.theta)
    return model


def add_tangents(
    model: Any, mip: MixedInteger, values: np.ndarray, scale: float, kinds: Collection[str] = ("cost", "ball")
) -> None:
    """Add the quadratics' tangents at column values, which cut off no feasible point."""
    columns = [model.component(name) for name in mip.names]
    if "cost" in kinds:
        model.tangents.add(model.theta >= _expression(cost_tangent(mip, values), columns) / scale)
    row = ball_tangent(mip, values) if "ball" in kinds else None
    if row is not None and row.coefficients:
        model.tangents.add(_expression((dict(row.coefficients), 0.0), columns) <= row.upper)


def _expression(form: Form, columns: list[Any]) -> Any:
    coefficients, constant = form
    return sum(c * columns[k] for k, c in coefficients.items()) + constant


def _never(model: Any, name: str) -> None:
    """Add a constraint that nothing satisfies, in place of a constant row that is false: Pyomo takes no
    constant rows."""
    import pyomo.environ as pyo

    zero = pyo.Var(bounds=(0.0, 0.0))
    model.add_component(f"{name}_never", zero)
    model.add_component(name, pyo.Constraint(expr=zero >= 1.0))


def _add_row(model: Any, row: LinearRow, columns: list[Any]) -> None:
    """Add a linear row."""
    import pyomo.environ as pyo

    if not row.coefficients:
        if row.lower > CONSTANT_TOLERANCE or row.upper < -CONSTANT_TOLERANCE:
            _never(model, row.name)
        return
    body = sum(c * columns[k] for k, c in row.coefficients.items())
    low = row.lower if np.isfinite(row.lower) else None
    high = row.upper if np.isfinite(row.upper) else None
    expr = body == low if low == high else pyo.inequality(low, body, high)
    model.add_component(row.name, pyo.Constraint(expr=expr))
