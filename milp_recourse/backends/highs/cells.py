r"""Tree ensembles as a MILP in HiGHS, the rows of :mod:`milp_recourse.backends.cpsat.leaves`.

With :math:`y_k` for "the cell is k or below" and :math:`z_\ell` for leaves, one per tree,

.. math:: \textstyle\sum_{\text{leaves ending at } k \text{ or below}} z_\ell \le y_k, \qquad
          \sum_{\text{leaves starting above } k} z_\ell \le 1 - y_k, \qquad
          \sum_t \sum_\ell v_\ell z_\ell \ge g,

costs in units of the dearest that matters and scores in units of the largest value, g lowered by more than
the solver's feasibility tolerance. The bound rests on HiGHS' word: ``proof: solver``.

References
----------
Parmentier and Vidal (2021), https://proceedings.mlr.press/v139/parmentier21a.html
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.backends.cells import Cells, Watch, borders, bridged
from milp_recourse.forests.axes import Axis, rounded_down
from milp_recourse.forests.goal import score_goal
from milp_recourse.forests.table import BITS, LeafTable, in_order, may_be_missing

FEASIBILITY = 1e-7
_ROOM = 1e-5  # by which the score's row is looser than the goal, in units of the largest leaf's value


def watched(highs: Any, watch: Watch) -> None:
    """Tell who watches of every better point, and of the bound whenever HiGHS would print a line."""

    def tell(event: Any) -> None:
        cost, bound = event.data_out.mip_primal_bound, event.data_out.mip_dual_bound
        watch(float(cost) if abs(cost) < 1e300 else math.inf, max(0.0, float(bound)))

    highs.cbMipImprovingSolution.subscribe(tell)
    highs.cbMipLogging.subscribe(tell)


class HighsCells:
    """The MILP of an ensemble's cells and leaves."""

    solver = "HiGHS"

    def __init__(
        self, axes: list[Axis], table: LeafTable, linf: float, threshold: float, incumbent: float
    ) -> None:
        import highspy

        self._api, self.highs = highspy, highspy.Highs()
        for option, value in (
            ("output_flag", False),
            ("threads", 1),
            ("presolve", "off"),  # it was seen to call a feasible MILP infeasible
            ("primal_feasibility_tolerance", FEASIBILITY),
            ("mip_feasibility_tolerance", FEASIBILITY),
            ("mip_rel_gap", 1e-9),
            ("mip_abs_gap", 0.0),
        ):
            self.highs.setOptionValue(option, value)
        self.axes, self.table, self.branches, self.columns = axes, table, 0, 0
        dearest = sum(float((axis.added + linf * axis.widest).max()) for axis in axes)
        self.unit = min(incumbent, dearest) or 1.0
        self.at = [self._axis(axis) for axis in axes]
        self.leaf = [self._leaves(leaves) for leaves in table.cells_of_leaves(axes)]
        self._score(threshold)
        self._costs(linf, incumbent)

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
        cells = [next(k for k, y in enumerate(row) if y is None or values[y] > 0.5) for row in self.at]
        return "optimal" if status == kinds.kOptimal else "stopped", bound, np.array(cells, dtype=np.int64)

    def forbid(self, point: Cells) -> None:
        """No point in the same leaves any more."""
        masks = self.table.met(point[None], point[None])[0].reshape(self.table.trees, -1)
        chosen: dict[int, float] = {}
        for t, words in enumerate(masks):
            word = int(np.flatnonzero(words)[0])
            chosen[self.leaf[t][word * BITS + int(words[word]).bit_length() - 1]] = 1.0
        self._row(chosen, -math.inf, len(chosen) - 1.0)

    # -- building ------------------------------------------------------------------------

    def _column(self, cost: float = 0.0, binary: bool = True) -> int:
        upper = 1.0 if binary else self.highs.getInfinity()
        self.highs.addCol(cost, 0.0, upper, 0, np.empty(0, np.int32), np.empty(0))
        if binary:
            self.highs.changeColIntegrality(self.columns, self._api.HighsVarType.kInteger)
        self.columns += 1
        return self.columns - 1

    def _row(self, row: Mapping[int, float], low: float, high: float) -> None:
        index, value = np.array(list(row), dtype=np.int32), np.array(list(row.values()), dtype=np.float64)
        self.highs.addRow(low, high, len(row), index, value)

    def _axis(self, axis: Axis) -> list[int | None]:
        """Columns of "the cell is k or below"; None, which is true, for the last."""
        literals = [self._column() for _ in range(len(axis) - 1)]
        for below, above in pairwise(literals):
            self._row({below: 1.0, above: -1.0}, -math.inf, 0.0)
        return [*literals, None]

    def _leaves(self, leaves: Mapping[int, list[NDArray[np.bool_]]]) -> dict[int, int]:
        """Columns per leaf number of one tree, tied to the axes."""
        columns = {leaf: self._column() for leaf in leaves}
        self._row(dict.fromkeys(columns.values(), 1.0), 1.0, 1.0)
        for i, axis in enumerate(self.axes):
            allowed = {columns[leaf]: cells[i] for leaf, cells in leaves.items()}
            if not in_order(axis):
                self._tie_labels(i, allowed)
            else:
                self._tie_interval(i, allowed)
        return columns

    def _tie_interval(self, i: int, allowed: Mapping[int, NDArray[np.bool_]]) -> None:
        if may_be_missing(self.axes[i]):
            allowed, gaps = bridged(allowed)
            for z, last in gaps:  # not in the gap, unless in the first cell
                y, first = self.at[i][last], self.at[i][0]
                assert y is not None and first is not None
                self._row({z: 1.0, y: 1.0, first: -1.0}, -math.inf, 1.0)
        for k, below, above in borders(allowed, len(self.axes[i]) - 1):
            y = self.at[i][k]
            assert y is not None
            self._row(dict.fromkeys(below, 1.0) | {y: -1.0}, -math.inf, 0.0)
            self._row(dict.fromkeys(above, 1.0) | {y: 1.0}, -math.inf, 1.0)

    def _tie_labels(self, i: int, allowed: Mapping[int, NDArray[np.bool_]]) -> None:
        """The label, chosen where y_k - y_(k-1) = 1, and the leaves it rules out: at most one."""
        for k in range(len(self.axes[i])):
            y, before = self.at[i][k], self.at[i][k - 1] if k else None
            row = dict.fromkeys((z for z, cells in allowed.items() if not cells[k]), 1.0)
            if y is not None:
                row[y] = 1.0
            if before is not None:
                row[before] = -1.0
            self._row(row, -math.inf, 1.0 if y is not None else 0.0)

    def _score(self, threshold: float) -> None:
        """A row for each sum that has to be above the threshold."""
        values = self.table.value[:, 1:].reshape(self.table.trees, -1)
        scale = float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) or 1.0
        part_of = self.table.forest.part_of
        for part in range(int(part_of[-1]) + 1):
            goal, _ = score_goal(self.table, threshold, part)
            row = {
                z: float(values[t, leaf]) / scale
                for t in np.flatnonzero(part_of == part).tolist()
                for leaf, z in self.leaf[t].items()
            }
            self._row(row, goal / scale - _ROOM, math.inf)

    def _costs(self, linf: float, incumbent: float) -> None:
        """The objective, constant included, at most the incumbent's; the widest step from below."""
        total, constant = self._steps([axis.added / self.unit for axis in self.axes])
        if linf:
            widest = self._column(binary=False)
            total[widest] = 1.0
            for i, axis in enumerate(self.axes):
                steps, least = self._steps([axis.widest * (linf / self.unit)], i)
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
            for y, step in zip(self.at[i], each[:-1] - each[1:], strict=False):
                if y is not None and step:
                    row[y] = float(step)
        return row, float(sum(each[-1] for each in values))
