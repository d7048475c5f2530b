"""Memory that a search works in, made once per applicant."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.compiled.problem import Problem, most_rows
from milp_recourse.compiling import by_reference, inner

Array = NDArray[np.float64]


@by_reference
class Work(NamedTuple):
    """Arrays that compiled functions write to; their rows have names in :mod:`milp_recourse.compiled.layout`.

    d levers, P columns, M causal units, layers 0..K of at most n units, F residuals, R rows of a Lagrangian.

    Attributes
    ----------
    box, allowed
        A node's box, (3, d) and (P,).
    unit
        Per unit: bounds of its argument, which end of these was split on (1: the lower one, so that a ReLU
        is on; 2: the upper one; of a curve also 3: both), sums of absolute terms, slope of its
        lower line, its argument at a point and at the relaxed optimum, what the bound loses there, slope and
        constant of its upper line, constant of its lower line (of causal units; 0 for others), the thetas of
        its bounds within the budget, and the sum of absolute terms behind its argument at the point, (14, K +
        1, n).
    second
        Lines above layer 2's arguments and their negatives, over columns and causal units, their constants
        last, (2, P + M + 1, n).
    row_coefficients
        The coefficient of every unit in each row, and its lower line's slope there, (2, R, K + 1, n).
    at
        Points, and shares of the maximum, (11, d).
    col
        Lines, their sums and points per column, (8, P).
    rows, row
        A Lagrangian's rows, (R, P), and their constants, multipliers and how far inside a point is to stay,
        (4, R).
    tangent, ball, ball_coefficients, pull
        Lines above the residuals and above their negatives, (2, F, P), their constants and what the convex
        problem makes of them, (8, F), the causal units' coefficients in them, (2, F, M), and the lines in
        its variables.
    aside, aside_allowed, ends, order
        A proof's node while parts of it are looked at: box and what is left of it, (3, d) and (P,), its
        intervals, (2, d), and its splits, (K + 1, n).
    vec, pair, ints, kvec, a, m
        The convex problem's variables, its inequalities' slacks and multipliers, rows and matrices.
    layer
        One layer's values, (3, n).
    scalar
        See :mod:`milp_recourse.compiled.layout`, (15,).
    learned
        What splits on each lever, then on each unit, have gained and had promised in this search, (2, d + (K
        + 1) * n): the pseudo-costs of the branching (Benichou et al. 1971).
    random
        The state of the random numbers, (1,).
    """

    box: Array
    allowed: NDArray[np.uint8]
    unit: Array
    second: Array
    row_coefficients: Array
    at: Array
    col: Array
    rows: Array
    row: Array
    tangent: Array
    ball: Array
    ball_coefficients: Array
    pull: Array
    aside: Array
    aside_allowed: NDArray[np.uint8]
    ends: Array
    order: NDArray[np.int64]
    vec: Array
    pair: Array
    ints: NDArray[np.int64]
    kvec: Array
    a: Array
    m: Array
    layer: Array
    scalar: Array
    learned: Array
    random: NDArray[np.uint64]


def workspace(p: Problem) -> Work:
    """Zeroed memory for a problem, in whatever configuration."""
    d, columns = p.lever.shape[1], int(p.start[-1])
    layers, n, units, f = len(p.widths), p.weights.shape[1], int(p.widths[0]), len(p.noise)
    rows = most_rows(p.row.shape[-2], bool((p.kind > 0).any()))
    v, k = columns + d + 1, rows + 2 * d + f
    shapes: dict[str, tuple[int, ...]] = {"box": (3, d), "at": (11, d), "aside": (3, d), "ends": (2, d)}
    shapes |= {"allowed": (columns,), "aside_allowed": (columns,), "col": (8, columns), "order": (layers, n)}
    shapes |= {"unit": (14, layers, n), "layer": (3, n), "second": (2, columns + units + 1, n)}
    shapes |= {"row": (4, rows), "rows": (rows, columns), "row_coefficients": (2, rows, layers, n)}
    shapes |= {"tangent": (2, f, columns), "ball": (8, f), "ball_coefficients": (2, f, units)}
    shapes |= {"vec": (8, v), "pair": (5, 2 * v + k), "kvec": (5, k), "a": (k, v), "m": (k, k)}
    shapes |= {"pull": (2, f, v), "ints": (4, max(v, k)), "scalar": (15,), "learned": (2, d + layers * n)}
    shapes["random"] = (1,)
    kinds = {"allowed": np.uint8, "aside_allowed": np.uint8, "order": int, "ints": int, "random": np.uint64}
    return Work(**{name: np.zeros(shape, kinds.get(name, float)) for name, shape in shapes.items()})


@inner
def copied(source: Any, target: Any) -> None:
    """Copy an array, or as much of a row as the target holds; an assignment would compile numpy's error
    messages in."""
    one = source if source.ndim == 1 else source.reshape(-1)
    other = target if target.ndim == 1 else target.reshape(-1)
    for i in range(len(other)):
        other[i] = one[i]


@inner
def cleared(target: Any) -> None:
    """Set all of an array to zero."""
    one = target if target.ndim == 1 else target.reshape(-1)
    for i in range(len(one)):
        one[i] = 0.0


@inner
def add(target: Any, factor: float, source: Any, n: int) -> None:
    """Add ``factor`` times the first n numbers of a row to those of another."""
    for i in range(n):
        target[i] += factor * source[i]
