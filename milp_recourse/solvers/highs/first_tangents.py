"""Where tangents to cost and ball are put before anything is solved."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from milp_recourse.program.neutral_program import Program
from milp_recourse.solvers.highs.highs_model import HighsModel
from milp_recourse.solvers.rows import MixedInteger
from milp_recourse.solvers.rows.tangent_rows import seeds

Array = NDArray[np.float64]


def seed_tangents(
    highs: HighsModel, program: Program, model: MixedInteger, best: Mapping[str, float] | None
) -> None:
    """Tangents at the incumbent and around the cost's and the ball's surface, in every diagonal direction."""
    n = len(model.names) + 1
    for kind, point in seeds(model, highs.scale):
        (highs.cost_tangent if kind == "cost" else highs.ball_tangent)(point)
    if best is not None and set(best) == {a.feature for a in program.actions}:
        values = _column_values(program, model, best, n)
        highs.cost_tangent(values)
        highs.ball_tangent(values)
    elif not model.squares:
        highs.cost_tangent(np.zeros(n))


def _column_values(program: Program, model: MixedInteger, action: Mapping[str, float], n: int) -> Array:
    """Values of delta and residual columns at an action."""
    atoms, values = program.enclose(action), np.zeros(n)
    index = {name: k for k, name in enumerate(model.names)}
    forms = {f"delta_{term.feature}": term.delta for term in program.cost_terms}
    for j, (_, residual) in enumerate(program.ball.squares if program.ball else ()):
        forms[f"residual_{j}"] = residual
    for name, form in forms.items():
        if name in index:
            values[index[name]] = float(form.enclose(atoms).midpoint)
    return values


def copy_tangents(highs: HighsModel, source: HighsModel, values: Array) -> None:
    """Add a relaxation's tangents to the MILP: columns of delta and residuals go by name."""
    index = {name: k for k, name in enumerate(highs.model.names)}
    moved = np.zeros(len(highs.model.names) + 1)
    for k, name in enumerate(source.model.names):
        if name in index:
            moved[index[name]] = values[k]
    highs.cost_tangent(moved)
    highs.ball_tangent(moved)
