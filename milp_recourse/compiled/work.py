"""Memory that a search works in, made once per applicant."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.compiled.layout import BEST_COST
from milp_recourse.compiled.problem import MOST_ROWS, Problem

Array = NDArray[np.float64]


class Work(NamedTuple):
    """Arrays that compiled functions write to; their rows have names in :mod:`milp_recourse.compiled.layout`.

    d levers, P columns, K hidden layers of at most n units, R rows of a Lagrangian.

    Attributes
    ----------
    box, allowed
        A node's box, (3, d) and (P,).
    unit
        Per unit: bounds of its argument, its sign if it was split on, sums of absolute terms, slope of its
        lower line, its argument
        at a point and at the relaxed optimum, what the bound loses there, (8, max(K, 1), n).
    seen
        The coefficient of every unit in each row, and its lower line's slope there, (2, R, max(K, 1), n).
    at
        Points and shares of the maximum, (10, d).
    col
        Lines and prices per column, (7, P).
    rows, row
        A Lagrangian's rows, (R, P), and their constants and prices, (3, R).
    vec, ints, kvec, a, m
        The convex problem's variables, rows and matrices.
    layer
        One layer's values, (3, n).
    scalar
        The best action's cost; how far inside a point must be to be taken unasked; a bound that waits for a
        judgement, (3,).
    random
        The state of the random numbers, (1,).
    """

    box: Array
    allowed: NDArray[np.uint8]
    unit: Array
    seen: Array
    at: Array
    col: Array
    rows: Array
    row: Array
    vec: Array
    ints: NDArray[np.int64]
    kvec: Array
    a: Array
    m: Array
    layer: Array
    scalar: Array
    random: NDArray[np.uint64]


def workspace(p: Problem) -> Work:
    """Zeroed memory for a problem."""
    d, columns = p.lever.shape[1], int(p.start[-1])
    layers, n = max(1, len(p.widths)), max(p.first.shape[1], p.weights.shape[1])
    v, k = columns + d + 1, MOST_ROWS + 2 * d
    made = Work(
        np.zeros((3, d)),
        np.zeros(columns, dtype=np.uint8),
        np.zeros((8, layers, n)),
        np.zeros((2, MOST_ROWS, layers, n)),
        np.zeros((10, d)),
        np.zeros((7, columns)),
        np.zeros((MOST_ROWS, columns)),
        np.zeros((3, MOST_ROWS)),
        np.zeros((16, v)),
        np.zeros((4, max(v, k)), dtype=np.int64),
        np.zeros((9, k)),
        np.zeros((v, k)),
        np.zeros((k, k)),
        np.zeros((3, n)),
        np.zeros(4),
        np.full(1, 0x9E3779B97F4A7C15, dtype=np.uint64),
    )
    made.scalar[BEST_COST] = np.inf
    return made
