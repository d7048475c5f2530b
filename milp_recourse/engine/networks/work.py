"""Memory that a search works in, made once for problems of one shape."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.compiling import allocated, by_reference, compiled
from milp_recourse.engine.networks.problem_arrays import Problem, most_rows

Array = NDArray[np.float64]


@by_reference
class Work(NamedTuple):
    """Arrays that compiled functions write to; :mod:`milp_recourse.engine.networks.layout` names their rows.

    d levers, P columns, M causal units, layers 0..K of at most n units, F residuals, R rows of a Lagrangian;
    the convex problem has at most v variables and k rows. Shapes are at the fields.

    Attributes
    ----------
    box, allowed
        A node's box.
    unit
        Per unit: bounds of its argument (ZL, ZH), which end of these was split on (SPLIT: 1 the lower one, so
        that a ReLU is on; 2 the upper one; of a curve also 3, both), the sum of absolute terms behind it
        (ZS), the slope of the unit's lower line (ALPHA), its argument at a point (Z) and at the relaxed
        optimum (ZB), its coefficient in the line at hand or, while a split is chosen, what the bound loses
        per width of its argument (SCORE), slope and constant of its upper line (SLOPE, RISE), constant of its
        lower line (FALL; of causal units, 0 for others), the thetas of its bounds within the budget
        (THETA_HIGH, THETA_LOW), and the sum of absolute terms behind Z (Z_SIZE).
    second
        Lines above layer 2's arguments and their negatives, over columns and causal units, their constants
        last.
    lines
        Lines that are bounded together (:func:`~milp_recourse.engine.networks.linear_bounds.within`).
    row_coefficients
        The coefficient of every unit in each row, and its lower line's slope there.
    at
        Points, and shares of the maximum.
    col
        Lines, their sums and points per column.
    rows, row
        A Lagrangian's rows, and their constants, multipliers and how far inside a point is to stay.
    tangent, ball, ball_coefficients, pull
        Lines above the residuals and above their negatives, their constants and what the convex problem makes
        of them, the causal units' coefficients in them, and the lines in its variables.
    aside, aside_allowed, ends, order
        A proof's node while parts of it are looked at: box and what is left of it, its intervals, and its
        splits.
    vec, pair, ints, kvec, a, m
        The convex problem's variables, its inequalities' slacks and multipliers, rows and matrices.
    layer
        Work of one layer: mostly sums of absolute terms behind its arguments, then coefficients of causal
        units, then those of the layer's units.
    scalar
        See :mod:`milp_recourse.engine.networks.layout`.
    learned
        What splits on each lever, then on each unit, have gained and had promised in this search: the
        pseudo-costs of the branching (Benichou et al. 1971).
    random
        The state of the random numbers.
    """

    box: Annotated[Array, 3, "d"]
    allowed: Annotated[NDArray[np.uint8], "P"]
    unit: Annotated[Array, 14, "layers", "n"]
    second: Annotated[Array, 2, "P + M + 1", "n"]
    lines: Annotated[Array, "P + 14", "2 n"]
    row_coefficients: Annotated[Array, 2, "R", "layers", "n"]
    at: Annotated[Array, 12, "d"]
    col: Annotated[Array, 7, "P"]
    rows: Annotated[Array, "R", "P"]
    row: Annotated[Array, 4, "R"]
    tangent: Annotated[Array, 2, "F", "P"]
    ball: Annotated[Array, 8, "F"]
    ball_coefficients: Annotated[Array, 2, "F", "M"]
    pull: Annotated[Array, 2, "F", "v"]
    aside: Annotated[Array, 3, "d"]
    aside_allowed: Annotated[NDArray[np.uint8], "P"]
    ends: Annotated[Array, 2, "d"]
    order: Annotated[NDArray[np.int64], "layers", "n"]
    vec: Annotated[Array, 8, "v"]
    pair: Annotated[Array, 6, "2 v + k"]
    ints: Annotated[NDArray[np.int64], 4, "v or k"]
    kvec: Annotated[Array, 5, "k"]
    a: Annotated[Array, "k", "v"]
    m: Annotated[Array, "k", "k"]
    layer: Annotated[Array, 3, "n"]
    scalar: Annotated[Array, 16]
    learned: Annotated[Array, 2, "d + layers n"]
    random: Annotated[NDArray[np.uint64], 1]


def workspace(p: Problem) -> Work:
    """Zeroed memory for a problem, in whatever configuration."""
    d, columns, units, f = p.lever.shape[1], int(p.start[-1]), int(p.widths[0]), len(p.noise)
    layers, n, rows = len(p.widths), p.weights.shape[1], most_rows(p.row.shape[-2], bool((p.kind > 0).any()))
    v, k = columns + d + 1, rows + 2 * d + f
    sizes = {"d": d, "P": columns, "M": units, "layers": layers, "n": n, "F": f, "R": rows, "v": v, "k": k}
    sizes |= {"P + 14": columns + 14, "2 n": 2 * n}
    sizes |= {"P + M + 1": columns + units + 1, "2 v + k": 2 * v + k, "v or k": max(v, k)}
    return allocated(Work, **sizes, **{"d + layers n": d + layers * n})


@compiled
def copied(source: Any, target: Any) -> None:
    """Copy an array, or as much of a row as the target holds; an assignment would compile numpy's error
    messages in."""
    one = source if source.ndim == 1 else source.flat
    other = target if target.ndim == 1 else target.flat
    for i in range(len(other)):
        other[i] = one[i]


@compiled
def cleared(target: Any) -> None:
    """Set all of an array to zero."""
    one = target if target.ndim == 1 else target.flat
    for i in range(len(one)):
        one[i] = 0.0


@compiled
def add(target: Any, factor: float, source: Any, n: int) -> None:
    """Add ``factor`` times the first n numbers of a row to those of another."""
    for i in range(n):
        target[i] += factor * source[i]


@compiled
def dot(x, y, n):
    """The sum of the first n products x[i] y[i]."""
    total = 0.0
    for i in range(n):
        total += x[i] * y[i]
    return total
