"""Tree ensembles as a MILP in HiGHS: the rows of :mod:`milp_recourse.solvers.leaf_model`, and costs.

Costs are in units of the incumbent's cost (or of the most that any action costs), scores in units of the
largest leaf value. The goal is lowered by more than the solver's feasibility tolerance. Nothing else checks
HiGHS' bound: ``proof: solver``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.forests.axes import Axis, rounded_down
from milp_recourse.engine.forests.table import LeafTable
from milp_recourse.solvers.highs.silent import silent_highs
from milp_recourse.solvers.leaf_model import Cells, LeafModel, Watch

FEASIBILITY = 1e-7
_ROOM = 1e-5  # how much lower the score's row ends than the goal, in units of the largest leaf value


def watched(highs: Any, watch: Watch) -> None:
    """Make HiGHS call ``watch`` for every better point, and whenever it would print a line."""

    def tell(event: Any) -> None:
        cost, bound = event.data_out.mip_primal_bound, event.data_out.mip_dual_bound
        watch(float(cost) if abs(cost) < 1e300 else math.inf, max(0.0, float(bound)))

    highs.cbMipImprovingSolution.subscribe(tell)
    highs.cbMipLogging.subscribe(tell)


class HighsCells(LeafModel):
    """The MILP of an ensemble's cells and leaves."""

    solver = "HiGHS"

    def __init__(self, axes: list[Axis], table: LeafTable, threshold: float, incumbent: float) -> None:
        import highspy

        self._api = highspy
        self.highs = silent_highs(
            threads=1,
            presolve="off",  # it was seen to call a feasible MILP infeasible
            primal_feasibility_tolerance=FEASIBILITY,
            mip_feasibility_tolerance=FEASIBILITY,
            mip_rel_gap=1e-9,
            mip_abs_gap=0.0,
        )
        self.columns = 0
        super().__init__(axes, table, threshold)
        dearest = sum(float((axis.added + axis.widest).max()) for axis in axes)
        self.unit = min(incumbent, dearest) or 1.0
        self._costs(axes, incumbent)

    def solve(self, seconds: float | None, watch: Watch | None = None) -> tuple[str, float, Cells | None]:
        """``optimal``, ``infeasible`` or ``stopped``; the lower bound of exact costs; the point."""
        if watch is not None:
            watched(self.highs, lambda cost, bound: watch(cost * self.unit, bound * self.unit))
        if seconds is not None:
            self.highs.setOptionValue("time_limit", self.highs.getRunTime() + seconds)
        self.highs.run()
        status, kinds = self.highs.getModelStatus(), self._api.HighsModelStatus
        info = self.highs.getInfo()
        self.branches = int(info.mip_node_count)
        if status == kinds.kInfeasible:
            return "infeasible", math.inf, None
        low = max(0.0, float(info.mip_dual_bound)) * self.unit if math.isfinite(info.mip_dual_bound) else 0.0
        bound = float(rounded_down(np.array([low]), len(self.axes))[0])
        values = np.array(self.highs.getSolution().col_value)
        if info.primal_solution_status != self._api.SolutionStatus.kSolutionStatusFeasible:
            return "stopped", bound, None
        cells = self.cells_where(lambda y: bool(values[y] > 0.5))
        return "optimal" if status == kinds.kOptimal else "stopped", bound, cells

    # -- building ------------------------------------------------------------------------

    def column(self, binary: bool = True) -> int:
        """A new 0/1 column, or one for any number from 0 on."""
        upper = 1.0 if binary else self.highs.getInfinity()
        self.highs.addCol(0.0, 0.0, upper, 0, np.empty(0, np.int32), np.empty(0))
        if binary:
            self.highs.changeColIntegrality(self.columns, self._api.HighsVarType.kInteger)
        self.columns += 1
        return self.columns - 1

    def exactly_one(self, columns: Sequence[int]) -> None:
        """The columns add up to 1."""
        self._row(dict.fromkeys(columns, 1.0), 1.0, 1.0)

    def at_most_one(self, columns: Sequence[int], negated: Sequence[int] = ()) -> None:
        """The columns and negations add up to at most 1."""
        self._at_most(columns, negated, 1.0 - len(negated))

    def not_all(self, columns: Sequence[int], negated: Sequence[int] = ()) -> None:
        """The columns and negations add up to less than their number."""
        self._at_most(columns, negated, len(columns) - 1.0)

    def rule_out(self, leaves: Sequence[int], true: list[int], false: list[int]) -> None:
        """At most one of these leaves and of "the axis is in this cell", which is y_k - y_(k-1)."""
        self._at_most([*leaves, *true], false, float(len(true)))

    def score(self, terms: Sequence[tuple[float, int]], goal: float, reach: float) -> None:
        """The row of the score, in units of the largest leaf value."""
        values = self.table.value[:, 1:]
        scale = float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) or 1.0
        self._row({z: value / scale for value, z in terms}, goal / scale - _ROOM, math.inf)

    def _at_most(self, columns: Sequence[int], negated: Sequence[int], most: float) -> None:
        self._row(dict.fromkeys(columns, 1.0) | dict.fromkeys(negated, -1.0), -math.inf, most)

    def _row(self, row: Mapping[int, float], low: float, high: float) -> None:
        index, value = np.array(list(row), dtype=np.int32), np.array(list(row.values()), dtype=np.float64)
        self.highs.addRow(low, high, len(row), index, value)

    def _costs(self, axes: list[Axis], incumbent: float) -> None:
        """Set the objective, with the maximum as a column that is at least each axis' entry, and keep it at
        most the incumbent's cost."""
        total, constant = self._steps([axis.added / self.unit for axis in axes])
        if any(axis.widest.any() for axis in axes):
            widest = self.column(binary=False)
            total[widest] = 1.0
            for i, axis in enumerate(axes):
                steps, least = self._steps([axis.widest / self.unit], i)
                self._row({widest: 1.0} | {y: -c for y, c in steps.items()}, least, math.inf)
        for column, cost in total.items():
            self.highs.changeColCost(column, cost)
        self.highs.changeObjectiveOffset(constant)
        if math.isfinite(incumbent):
            self._row(total, -math.inf, incumbent / self.unit * (1 + FEASIBILITY) - constant)

    def _steps(self, values: list[NDArray[np.float64]], first: int = 0) -> tuple[dict[int, float], float]:
        """The values of the chosen cells, as a sum over "the cell is k or below", and its constant."""
        row: dict[int, float] = {}
        for i, each in enumerate(values, start=first):
            for y, step in zip(self.at[i], each[:-1] - each[1:], strict=True):
                if step:
                    row[y] = float(step)
        return row, float(sum(each[-1] for each in values))
