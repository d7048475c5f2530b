"""Where tangents to cost and ball are put before anything is solved."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from milp_recourse.backends.highs.model import HighsModel
from milp_recourse.bounds.tape import Tape
from milp_recourse.encodings import MixedInteger
from milp_recourse.encodings.tangents import seeds

Array = NDArray[np.float64]


def seed_tangents(highs: HighsModel, tape: Tape, model: MixedInteger, best: dict[str, float] | None) -> None:
    """Tangents at the incumbent and around the cost's and the ball's surface, in every diagonal direction."""
    n = len(model.names) + 1
    for kind, point in seeds(model, highs.scale):
        (highs.cost_tangent if kind == "cost" else highs.ball_tangent)(point)
    if best is not None and set(best) == {a.feature for a in tape.program.actions}:
        values = _column_values(tape, model, np.array(tape.program.values(best)), n)
        highs.cost_tangent(values)
        highs.ball_tangent(values)
    elif not model.squares:
        highs.cost_tangent(np.zeros(n))


def _column_values(tape: Tape, model: MixedInteger, a: Array, n: int) -> Array:
    """Values of delta and residual columns at an action."""
    v = tape.evaluate(a[None])[0]
    index = {name: k for k, name in enumerate(model.names)}
    values = np.zeros(n)
    for term, delta in zip(tape.program.cost_terms, tape.deltas @ v + tape.delta_offset, strict=True):
        values[index[f"delta_{term.feature}"]] = delta
    for j, r in enumerate(tape.residuals @ v + tape.residual_offset):
        if f"residual_{j}" in index:
            values[index[f"residual_{j}"]] = r
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
