r"""What an LP's multipliers prove, whether or not the solver calls them optimal.

For any y and :math:`L \le A x \le U,\; l \le x \le u`, with :math:`d = c - A^T y`,

.. math:: c^T x \ge \sum_i \min(y_i L_i, y_i U_i) + \sum_j \min(d_j l_j, d_j u_j)

where a multiplier that would use a missing side counts as 0 (Neumaier and Shcherbina 2004,
https://doi.org/10.1007/s10107-003-0433-3). A reduced cost that is zero only to a tolerance costs
what its column's range makes of it. With c = 0, a positive right side says that no x exists.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from milp_recourse.solvers.rows.mixed_integer import LinearRow, slack

Array = NDArray[np.float64]


class Rows:
    """The rows that an LP has been given so far, as a sparse matrix in coordinate form."""

    def __init__(self, rows: list[LinearRow], columns: int) -> None:
        self.columns = columns
        counts = [len(row.coefficients) for row in rows]
        self.row = np.repeat(np.arange(len(rows)), counts)
        self.column = np.array([k for row in rows for k in row.coefficients], dtype=np.int64)
        self.value = np.array([c for row in rows for c in row.coefficients.values()], dtype=np.float64)
        self.lower = np.array([row.lower for row in rows], dtype=np.float64)
        self.upper = np.array([row.upper for row in rows], dtype=np.float64)

    def add(self, coefficients: Mapping[int, float], upper: float) -> None:
        """Add a row, coefficients x <= upper."""
        count = len(coefficients)
        self.row = np.append(self.row, np.full(count, len(self.lower)))
        self.column = np.append(self.column, np.fromiter(coefficients.keys(), np.int64, count))
        self.value = np.append(self.value, np.fromiter(coefficients.values(), np.float64, count))
        self.lower, self.upper = np.append(self.lower, -np.inf), np.append(self.upper, upper)

    def bound(self, y: Array, cost: Mapping[int, float], low: Array, high: Array) -> float:
        """A proven lower bound of the cost over the rows and low <= x <= high; -inf where y proves none."""
        end = np.where(y > 0, self.lower, self.upper)
        y, end = np.where(np.isfinite(end), y, 0.0), np.where(np.isfinite(end), end, 0.0)
        side = y * end
        products = self.value * y[self.row]
        reduced = -np.bincount(self.column, products, self.columns)
        size = np.bincount(self.column, np.abs(products), self.columns)
        for k, c in cost.items():
            reduced[k] += c
            size[k] += abs(c)
        with np.errstate(invalid="ignore", over="ignore"):
            corner = np.where(reduced == 0, 0.0, reduced * np.where(reduced > 0, low, high))
            reach = np.where(size == 0, 0.0, size * np.maximum(np.abs(low), np.abs(high)))
            rounding = slack(len(y) + self.columns + 8) * (np.abs(side).sum() + reach.sum())
            value = float(side.sum() + corner.sum() - rounding)
        return value if np.isfinite(value) else -np.inf
