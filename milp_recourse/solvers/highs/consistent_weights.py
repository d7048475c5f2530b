"""The fewest answers to set aside so that weights agree with all others, and weights well inside these.

What HiGHS says here proves nothing and need not: whichever answers are set aside are named, and statements
hold for all weights that agree with the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.solvers.highs.silent import silent_highs

FloatArray = NDArray[np.float64]

TINY = 1e-9
"""HiGHS drops smaller coefficients, and complains."""

DEPTH = 1e-7
"""Weights agree with an answer if they are at least this far inside its half-space: a set of weights without
volume cannot be drawn from."""


def consistent_weights(rows: FloatArray, least: float) -> tuple[NDArray[np.bool_], FloatArray]:
    """Which half-spaces ``row @ w <= 0`` are kept, and weights with mean 1 deep inside these.

    The number of rows set aside is the least possible; of several such sets, it is one of early rows, because
    people learn what they want while they answer.

    Parameters
    ----------
    rows
        Half-spaces, shape (answers, k), in the order of the answers.
    least
        Every weight is at least this, below 1.

    Returns
    -------
    array, array
        A truth value per row, and k weights.
    """
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
    kept = np.ones(len(rows), dtype=bool)
    weights, depth = _deepest(unit, least)
    if depth < DEPTH:
        kept = _fewest(unit, least)
        weights, _ = _deepest(unit[kept], least)
    return kept, weights


def _deepest(unit: FloatArray, least: float) -> tuple[FloatArray, float]:
    """Weights with mean 1 whose least distance from all half-spaces' boundaries is largest, and the distance;
    it is below 0 if there are none inside."""
    k = unit.shape[1]
    highs = _exact()
    weights = [highs.addVariable(0.0, k) for _ in range(k)]
    depth = highs.addVariable(-4.0 * k, 1.0)
    highs.addConstr(sum(weights) == k)
    for one in weights:
        highs.addConstr(one - depth >= least)
    for row in unit:
        highs.addConstr(_over(row, weights) + depth <= 0)
    highs.maximize(depth)
    found = np.array(highs.getSolution().col_value)
    return found[:k] * (k / found[:k].sum()), float(found[k])


def _fewest(unit: FloatArray, least: float) -> NDArray[np.bool_]:
    n, k = unit.shape
    highs = _exact()
    weights = [highs.addVariable(least + DEPTH, k) for _ in range(k)]
    dropped = [highs.addBinary() for _ in range(n)]
    highs.addConstr(sum(weights) == k)
    reach = 2.0 * k  # no unit row is larger on weights that sum to k
    for row, one in zip(unit, dropped, strict=True):
        highs.addConstr(_over(row, weights) - reach * one <= -2 * DEPTH)
    later = 1.0 / (4.0 * n * n)  # all of these together are less than one answer
    highs.minimize(sum((1.0 + later * place) * one for place, one in enumerate(dropped)))
    values = np.array(highs.getSolution().col_value)[k:]
    return values < 0.5


def _over(row: FloatArray, weights: Sequence[Any]) -> Any:
    """The sum of coefficients times variables, without coefficients that HiGHS takes for 0."""
    return sum(float(c) * w for c, w in zip(row, weights, strict=True) if abs(c) > TINY)


def _exact() -> Any:
    near = dict.fromkeys(("primal_feasibility_tolerance", "mip_feasibility_tolerance"), 1e-9)
    return silent_highs(threads=1, mip_rel_gap=0.0, **near)
