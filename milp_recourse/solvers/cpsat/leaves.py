"""Cells and leaves as Booleans, and the score as a sum of integers, for CP-SAT.

:class:`SatModel` is what both models are built on; in :class:`SatCells` levers move only themselves, so every
cell has a cost, a whole number.

With a scale S, leaf values v are ceil(S v), and their sum must reach floor(S g), where g is what the leaves
of an accepted point add up to at least (:func:`~milp_recourse.engine.forests.goal.score_goal`). So no
accepted point is lost.

Cells that alone cost more than a greedy incumbent are dropped first
(:mod:`milp_recourse.solvers.cell_choice`), and with them the leaves that only they reach. Cell costs are
floor(K c), so the optimum of the integers, divided by K, is a lower bound, short of the exact cost by at most
(axes + 1) / K. K is chosen so that this is a quarter of the allowed gap, or, where the numbers would then
exceed 2^56, as large as possible.

Nothing else checks CP-SAT's bound, so ``proof`` is ``solver``.

References
----------
Perron, Didier and Gay (2023), https://doi.org/10.4230/LIPIcs.CP.2023.3 (CP-SAT)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.forests.axes import Axis, rounded_down
from milp_recourse.engine.forests.table import CellAxis, LeafTable
from milp_recourse.problem.result import gap_tolerance
from milp_recourse.solvers.leaf_model import Cells, Column, LeafModel, Watch

LARGEST = 2.0**56
"""Costs and scores stay below this as integers; CP-SAT adds them up in 64 bits."""

SCORE_BITS = 40


class SatModel(LeafModel):
    """A CP-SAT model of cells, leaves and the score."""

    solver = "CP-SAT"

    def __init__(self, axes: Sequence[CellAxis], table: LeafTable, threshold: float) -> None:
        from ortools.sat.python import cp_model

        self.cp, self.model = cp_model, cp_model.CpModel()
        super().__init__(axes, table, threshold)

    def column(self) -> Column:
        """A Boolean."""
        return self.model.new_bool_var("")

    def exactly_one(self, columns: Sequence[Column]) -> None:
        """CP-SAT's own constraint."""
        self.model.add_exactly_one(columns)

    def at_most_one(self, columns: Sequence[Column], negated: Sequence[Column] = ()) -> None:
        """CP-SAT's own constraint; an implication for one column and one negation."""
        if len(columns) == len(negated) == 1:
            self.model.add_implication(columns[0], negated[0])
        else:
            self.model.add_at_most_one([*columns, *(y.negated() for y in negated)])

    def not_all(self, columns: Sequence[Column], negated: Sequence[Column] = ()) -> None:
        """A clause: one of the columns is false or one of the others true."""
        self.model.add_bool_or([*(y.negated() for y in columns), *negated])

    def rule_out(self, leaves: Sequence[Column], true: list[Column], false: list[Column]) -> None:
        """A clause per leaf."""
        for leaf in leaves:
            self.not_all([leaf, *true], false)

    def score(self, terms: Sequence[tuple[float, Column]], goal: float, reach: float) -> None:
        """The sum of ceil(S v) over chosen leaves is at least floor(S goal)."""
        scale = 2.0 ** min(SCORE_BITS, math.floor(math.log2(LARGEST / max(reach, 1e-200))))
        total = sum(math.ceil(value * scale) * z for value, z in terms)
        self.model.add(total >= math.floor(goal * scale) - 1)

    def run(self, seconds: float | None, watch: Watch | None = None) -> tuple[str, int, Cells | None]:
        """``optimal``, ``infeasible`` or ``stopped``; the lower bound of the integer objective; the cells."""
        solver = self.cp.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.linearization_level = 2
        # 9.15's presolve loses optima where it merges at-most-ones into linear rows (or-tools issue 5293)
        solver.parameters.presolve_inclusion_work_limit = 0
        if seconds is not None:
            solver.parameters.max_time_in_seconds = seconds
        status = solver.solve(self.model, None if watch is None else self._watcher(solver, watch))
        self.branches = int(solver.num_branches)
        if status == self.cp.INFEASIBLE:
            return "infeasible", 0, None
        bound = math.ceil(solver.best_objective_bound - 1e-6)
        if status not in (self.cp.OPTIMAL, self.cp.FEASIBLE):
            return "stopped", bound, None
        name = "optimal" if status == self.cp.OPTIMAL else "stopped"
        return name, bound, self.cells_where(solver.boolean_value)

    def _watcher(self, solver: Any, watch: Watch) -> Any:
        """A callback that calls ``watch`` with every better point's cost; better bounds call it, too."""
        best = [math.inf, 0.0]

        class Watcher(self.cp.CpSolverSolutionCallback):  # type: ignore[name-defined, misc]
            def on_solution_callback(self) -> None:
                best[0] = self.objective_value
                watch(*best)

        def bound(value: float) -> None:
            best[1] = max(best[1], value)
            watch(*best)

        solver.best_bound_callback = bound
        return Watcher()


def floored(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole numbers that are not above the values, nor above the exact numbers that these were rounded
    from."""
    return np.floor(values * (1 - 2.0**-50)).astype(np.int64)


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
