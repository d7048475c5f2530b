r"""Levers that move only themselves: every cell has a cost, and costs are integers.

Cells that alone cost more than a greedy incumbent are dropped first
(:mod:`milp_recourse.solvers.cell_choice`), and with them the leaves that only they reach. Cell costs are
floor(K c), so the optimum of the integers, divided by K, is a lower bound, short of the exact cost by at most
(axes + 1) / K. K is chosen so that this is a quarter of the allowed gap, or, where the numbers would then
exceed 2^56, as large as possible.

Nothing else checks CP-SAT's bound, so ``proof`` is ``solver``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.forests.axes import Axis, rounded_down
from milp_recourse.engine.forests.table import LeafTable
from milp_recourse.problem.result import gap_tolerance
from milp_recourse.solvers.cpsat.leaves import LARGEST, SatModel, floored
from milp_recourse.solvers.leaf_model import Cells, Watch


class SatCells(SatModel):
    """The integer model; see :class:`milp_recourse.solvers.cell_choice.CellModel`."""

    def __init__(self, axes: list[Axis], table: LeafTable, threshold: float, incumbent: float) -> None:
        super().__init__(axes, table, threshold)
        costs = [axis.added + axis.widest for axis in axes]
        self.unit = _unit(costs, len(axes), incumbent)
        terms: list[Any] = []
        for axis, literals in zip(axes, self.at, strict=True):
            terms.append(_sum_of(floored(axis.added * self.unit), literals))
        steps = [floored(axis.widest * self.unit) for axis in axes]
        dearest = int(max((s.max() for s in steps), default=0))
        if dearest:
            widest = self.model.new_int_var(0, dearest, "widest")
            for step, literals in zip(steps, self.at, strict=True):
                self.model.add(widest >= _sum_of(step, literals))
            terms.append(widest)
        objective = sum(terms)
        if math.isfinite(incumbent):  # at most the incumbent's cost, rounding included
            self.model.add(objective <= math.ceil(incumbent * (1 + 1e-12) * self.unit))
        self.model.minimize(objective)

    def solve(self, seconds: float | None, watch: Watch | None = None) -> tuple[str, float, Cells | None]:
        """``optimal``, ``infeasible`` or ``stopped``; the lower bound of exact costs; the point."""
        if watch is not None:
            tell, unit = watch, self.unit
            status, whole, point = self.run(seconds, lambda cost, low: tell(cost / unit, low / unit))
        else:
            status, whole, point = self.run(seconds)
        if status == "infeasible":
            return status, math.inf, None
        low = math.nextafter(float(whole) / self.unit, -math.inf)
        return status, float(rounded_down(np.array([max(low, 0.0)]), len(self.axes))[0]), point


def _unit(costs: list[NDArray[np.float64]], axes: int, incumbent: float) -> float:
    """K, a power of two: how many integers a unit of cost has. ``costs``: each axis' cells'."""
    positive = [cost[cost > 0] for cost in costs]
    least = min((float(cost.min()) for cost in positive if len(cost)), default=1.0)
    most = min(incumbent, sum(float(cost.max()) for cost in costs if len(cost)) or 1.0)
    wanted = 4.0 * (axes + 1) / max(gap_tolerance(least), 1e-300)
    return float(2.0 ** math.floor(math.log2(min(wanted, LARGEST / max(2.0 * axes * most, 1e-300)))))


def _sum_of(values: NDArray[np.int64], at: list[Any]) -> Any:
    """The value of the chosen cell, as a sum over "the cell is k or below"."""
    total = int(values[-1])
    steps = [(int(values[k] - values[k + 1]), at[k]) for k in range(len(values) - 1)]
    return total + sum(step * literal for step, literal in steps if step)
