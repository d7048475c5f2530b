"""A mixed-integer program as a solver with an absolute feasibility tolerance can take it.

A relaxation: no feasible point is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from milp_recourse.solvers.rows.mixed_integer import LinearRow, MixedInteger

DROPPED = 1e-9
"""Coefficients this small are dropped by HiGHS (its ``small_matrix_value``)."""

NARROW = 4.0
"""A column is narrow if its ends are less than so many tolerances apart."""


def tolerant(mip: MixedInteger, tolerance: float) -> MixedInteger:
    """The program with columns that are not narrower than the tolerance, and rows without tiny coefficients.

    A solver takes a column whose ends are nearer than its tolerance for fixed at one of them. Where another
    row multiplies that column (a saturated sigmoid's, say), no feasible point may then be left: HiGHS called
    such a program infeasible. What a tiny coefficient adds to its row goes into the row's ends.
    """
    lower, upper = list(mip.lower), list(mip.upper)
    for k, (low, high, whole) in enumerate(zip(mip.lower, mip.upper, mip.integer, strict=True)):
        if not whole and 0.0 < high - low < NARROW * tolerance:
            lower[k], upper[k] = low - tolerance, high + tolerance
    rows = [without_tiny(row, lower, upper) for row in mip.rows]
    return replace(mip, lower=lower, upper=upper, rows=rows)


Ends = Sequence[float] | NDArray[np.float64]


def without_tiny(row: LinearRow, lower: Ends, upper: Ends) -> LinearRow:
    """The row without coefficients up to :data:`DROPPED`, looser by what they add within bounds."""
    tiny = [(k, c) for k, c in row.coefficients.items() if abs(c) <= DROPPED]
    if not tiny:
        return row
    low, high = row.lower, row.upper
    for k, c in tiny:
        ends = c * lower[k], c * upper[k]
        low, high = low - max(ends), high - min(ends)
    kept = {k: c for k, c in row.coefficients.items() if abs(c) > DROPPED}
    return replace(row, coefficients=kept, lower=low, upper=high)
