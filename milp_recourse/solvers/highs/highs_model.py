"""A mixed-integer program held in HiGHS: extremes over its relaxation, solving it, adding tangents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.solvers.highs.duality import Rows
from milp_recourse.solvers.highs.silent import silent_highs
from milp_recourse.solvers.rows.mixed_integer import ULP, LinearRow, MixedInteger, tolerant, without_tiny
from milp_recourse.solvers.rows.tangent_rows import ball_tangent, cost_tangent

Array = NDArray[np.float64]

# Loose on purpose: it admits points that are not quite feasible, which the exact check sorts out.
FEASIBILITY = 1e-7
ROUNDINGS = 64
"""As many roundings as a row's terms are thought to suffer inside HiGHS. With one, a feasible MILP was called
infeasible whose terms of 3e8 lose 0.6 of the tolerance each time."""

_LP_ITERATIONS = 20000  # per linear program; where they do not suffice, nothing is tightened


@dataclass(frozen=True)
class MilpOutcome:
    """``infeasible``, ``point`` (values are feasible for the relaxation) or ``stopped``."""

    kind: str
    values: Array | None = None
    nodes: int = 0


@dataclass(frozen=True)
class LpOutcome:
    """``optimal`` (a point, and the bound its multipliers prove), ``infeasible`` (proven) or ``stopped``."""

    kind: str
    values: Array | None = None
    bound: float = -np.inf


class HighsModel:
    """A mixed-integer program in HiGHS, its quadratics replaced by tangents.

    An extra column theta bounds the cost from below: :math:`\\theta \\ge` every tangent. Tangents of
    a convex function never cut off a feasible point.

    Parameters
    ----------
    model
        The program.
    cutoff
        Upper limit on the cost, kept by theta <= 1 in units of it; None: no limit.
    relaxed
        Whether to drop integrality. What the relaxation implies is proven by multipliers. The verdicts on the
        MILP are not, so it is made :func:`~milp_recourse.solvers.rows.mixed_integer.tolerant` of HiGHS'
        tolerance.
    """

    def __init__(self, model: MixedInteger, cutoff: float | None, relaxed: bool) -> None:
        import highspy

        self._api = highspy
        self.model = model = model if relaxed else tolerant(model, FEASIBILITY)
        self.theta = len(model.names)
        # theta and cost rows are in units of the cutoff, or else of the largest cost in the box
        self.scale = cutoff if cutoff else _largest(model)
        self.highs: Any = silent_highs(
            threads=1,
            # HiGHS 1.15.1's presolve called a feasible MILP of loan_016 infeasible (docs/how_to_choose.md)
            presolve="off",
            mip_heuristic_effort=0.0,
            mip_detect_symmetry=False,
            primal_feasibility_tolerance=FEASIBILITY,
            mip_feasibility_tolerance=FEASIBILITY,
            dual_feasibility_tolerance=1e-9,
            simplex_iteration_limit=_LP_ITERATIONS,
        )
        self.lower = np.append(np.array(model.lower), 0.0)
        self.upper = np.append(np.array(model.upper), 1.0)
        whole = () if relaxed else (*model.integer, False)
        passed = self.highs.passModel(highs_lp(self.lower, self.upper, model.rows, whole))
        self.rejected = passed == highspy.HighsStatus.kError  # then every answer is "stopped"
        self._rows = Rows(model.rows, len(self.lower))
        # "infeasible" says nothing where a column that misses its bounds by the tolerance moves a row by 1 or
        # more, and where the tolerance is less than what a row's terms lose by rounding
        rows, reach = self._rows, np.maximum(np.abs(self.lower), np.abs(self.upper))
        sizes = np.abs(rows.value)
        terms = np.bincount(rows.row, sizes * reach[rows.column]).max(initial=0.0)
        lost = ROUNDINGS * ULP * terms
        self.settles = bool(max(sizes.max(initial=0.0) * FEASIBILITY, lost / FEASIBILITY) < 1.0)
        self._objective: int | None = None

    # -- tangents ------------------------------------------------------------------------

    def cost_tangent(self, values: Array) -> None:
        """Add the row theta >= the cost's tangent at column values."""
        row, constant = cost_tangent(self.model, values)
        over = {k: c / self.scale for k, c in row.items()} | {self.theta: -1.0}
        self._add(LinearRow("cost", over, -np.inf, -constant / self.scale))

    def ball_tangent(self, values: Array) -> None:
        """Add the plausibility ball's tangent at column values as a row."""
        row = ball_tangent(self.model, values)
        if row is not None:
            self._add(row)

    def ball_excess(self, values: Array) -> float:
        """Violation of the ball relative to its size; negative inside."""
        ball = self.model.ball
        if ball is None:
            return -np.inf
        left = sum(w * values[k] ** 2 for k, w in ball.squares.items())
        left += sum(c * values[k] for k, c in ball.linear.items())
        return float(left - ball.upper) / max(abs(ball.upper), 1e-9)

    def cost_excess(self, values: Array) -> float:
        """Cost at column values less theta, both in units of ``scale``."""
        return self.model.objective(values) / self.scale - float(values[self.theta])

    # -- solving -------------------------------------------------------------------------

    def extreme(self, column: int, sense: float) -> LpOutcome:
        """Minimise (sense 1) or maximise (sense -1) a column over the relaxation."""
        if self.rejected:
            return LpOutcome("stopped")
        if self._objective is not None and self._objective != column:
            self.highs.changeColCost(self._objective, 0.0)
        self.highs.changeColCost(column, sense)
        self._objective = column
        status = self._run()
        if status == self._api.HighsModelStatus.kOptimal:
            solution = self.highs.getSolution()
            y = np.array(solution.row_dual)
            bound = sense * self._rows.bound(y, {column: sense}, self.lower, self.upper)
            return LpOutcome("optimal", np.array(solution.col_value), bound)
        if status == self._api.HighsModelStatus.kInfeasible and self._proven_empty():
            return LpOutcome("infeasible")
        return LpOutcome("stopped")

    def _proven_empty(self) -> bool:
        """Whether a ray of multipliers, of either sign, proves that the relaxation has no point."""
        _, found, ray = self.highs.getDualRay()
        if not found:
            return False
        y = np.array(ray)
        return any(self._rows.bound(sign * y, {}, self.lower, self.upper) > 0 for sign in (1.0, -1.0))

    def set_bounds(self, column: int, lower: float, upper: float) -> None:
        """Replace a column's bounds by tighter ones."""
        self.lower[column], self.upper[column] = lower, max(lower, upper)
        self.highs.changeColBounds(column, lower, max(lower, upper))

    def solve(self, seconds: float | None) -> MilpOutcome:
        """Solve the MILP, minimising theta to a gap of 5%, because any improving point is enough."""
        if self.rejected:
            return MilpOutcome("stopped")
        self.highs.changeColCost(self.theta, 1.0)
        self._objective = self.theta
        self.highs.setOptionValue("mip_rel_gap", 0.05)
        if seconds is not None:
            self.highs.setOptionValue("time_limit", max(seconds, 0.01))
        status = self._run()
        info = self.highs.getInfo()
        nodes = max(int(info.mip_node_count), 1)
        kinds = self._api.HighsModelStatus
        if status == kinds.kInfeasible:
            return MilpOutcome("infeasible" if self.settles else "stopped", nodes=nodes)
        if info.primal_solution_status == 2:  # feasible point
            return MilpOutcome("point", np.array(self.highs.getSolution().col_value), nodes)
        return MilpOutcome("stopped", nodes=nodes)

    # -- inside --------------------------------------------------------------------------

    def _run(self) -> Any:
        """Run HiGHS, once more from scratch if it ends undecided; its status."""
        self.highs.run()
        status = self.highs.getModelStatus()
        kinds = self._api.HighsModelStatus
        if status in (kinds.kUnboundedOrInfeasible, kinds.kIterationLimit, kinds.kUnknown, kinds.kSolveError):
            self.highs.clearSolver()
            self.highs.run()
            status = self.highs.getModelStatus()
        return status

    def _add(self, row: LinearRow) -> None:
        """Add a row coefficients x <= upper. One that HiGHS refuses, as too large, is left out: the
        relaxation is weaker for it, not wrong.
        """
        row = without_tiny(row, self.lower, self.upper)
        keys = np.fromiter(row.coefficients.keys(), dtype=np.int32, count=len(row.coefficients))
        values = np.fromiter(row.coefficients.values(), dtype=np.float64, count=len(keys))
        if not (np.isfinite(values).all() and np.isfinite(row.upper)):
            return
        done = self.highs.addRow(-self._api.kHighsInf, row.upper, len(keys), keys, values)
        if done != self._api.HighsStatus.kError:
            self._rows.add(row.coefficients, row.upper)


def highs_lp(lower: Array, upper: Array, rows: Sequence[LinearRow], whole: Sequence[bool] = ()) -> Any:
    """Columns and rows as HiGHS reads them, without an objective.

    Parameters
    ----------
    lower, upper
        The columns' ranges.
    whole
        Which columns are whole numbers; empty: none is.
    """
    import highspy

    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_, lp.col_cost_ = len(lower), len(rows), np.zeros(len(lower))
    lp.col_lower_, lp.col_upper_ = lower, upper
    lp.row_lower_ = np.array([row.lower for row in rows], dtype=np.float64)  # its infinity is the floats' own
    lp.row_upper_ = np.array([row.upper for row in rows], dtype=np.float64)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.cumsum([0, *(len(row.coefficients) for row in rows)]).astype(np.int32)
    lp.a_matrix_.index_ = np.array([k for row in rows for k in row.coefficients], dtype=np.int32)
    lp.a_matrix_.value_ = np.array([c for row in rows for c in row.coefficients.values()], dtype=np.float64)
    kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
    lp.integrality_ = [kinds[int(one)] for one in whole]
    return lp


def _largest(model: MixedInteger) -> float:
    """The largest cost the columns' ranges allow; 1 where that is nothing."""
    reach = np.maximum(np.abs(model.lower), np.abs(model.upper))
    return model.objective(reach) or 1.0
