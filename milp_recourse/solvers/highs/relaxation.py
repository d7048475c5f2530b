"""The linear relaxation of one box, and bounds tightened with it (OBBT)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.options import Clock
from milp_recourse.solvers.highs.first_tangents import seed_tangents
from milp_recourse.solvers.highs.highs_model import HighsModel
from milp_recourse.solvers.rows import encode, equal_parts
from milp_recourse.solvers.rows.bounds import Configuration, ProgramBounds

Array = NDArray[np.float64]


class Relaxation:
    """The linear relaxation of one box, and bounds tightened with it (OBBT)."""

    def __init__(
        self,
        part: Configuration,
        bounds: ProgramBounds,
        low: Array,
        high: Array,
        target: float,
        best: Mapping[str, float] | None,
        pieces: int,
    ) -> None:
        self.part, self.bounds = part, bounds
        self.low, self.high = low.copy(), high.copy()
        self.model = encode(part.program, bounds, equal_parts(pieces))
        cutoff = target if np.isfinite(target) and target > 0 else None
        self.highs = HighsModel(self.model, cutoff, relaxed=True)
        seed_tangents(self.highs, part.program, self.model, best)
        self.tangent_points: list[Array] = []
        self.bound = 0.0

    def tighten(self, clock: Clock) -> bool:
        """Tighten the box, and in place the bounds of open ReLUs' arguments; False if the relaxation is
        empty."""
        if not self._theta():
            return False
        for k, action in enumerate(self.part.program.actions):
            ends = self._range(self.model.actions[action.feature])
            if ends is None:
                return False
            l, h = ends
            if self.part.integral[k]:
                l, h = np.ceil(l - 1e-6), np.floor(h + 1e-6)
            self.low[k], self.high[k] = max(self.low[k], l), min(self.high[k], h)
            if self.low[k] > self.high[k]:
                return False
        index = {name: k for k, name in enumerate(self.model.names)}
        for layer, known in enumerate(self.bounds.hidden):
            for j in np.flatnonzero((known[:, 0] < 0) & (known[:, 1] > 0)):
                if clock.over:
                    return True
                column = index.get(f"pre_{layer}_{j}")
                if column is None:
                    continue
                ends = self._range(column)
                if ends is None:
                    return False
                known[j] = max(known[j, 0], ends[0]), min(known[j, 1], ends[1])
        return True

    def _theta(self) -> bool:
        """Bound the cost from below, with a few tangents at the relaxation's minimum; False if the relaxation
        is empty."""
        for _ in range(6):
            found = self.highs.extreme(self.highs.theta, 1.0)
            if found.kind == "infeasible":
                return False
            if found.values is None:
                return True
            self.bound = max(self.bound, found.bound * self.highs.scale)
            if not self._sharpen(found.values, 1e-3):
                return True
        return True

    def _sharpen(self, values: Array, tolerance: float) -> bool:
        """Add tangents where the point violates a quadratic; returns whether any were added."""
        cost = self.highs.cost_excess(values) > tolerance
        ball = self.highs.ball_excess(values) > tolerance
        if (cost or ball) and len(self.tangent_points) < 60:
            self.tangent_points.append(values)
            if cost:
                self.highs.cost_tangent(values)
            if ball:
                self.highs.ball_tangent(values)
            return True
        return False

    def _range(self, column: int) -> tuple[float, float] | None:
        """The column's range over the relaxation, as far as multipliers prove it; None when empty."""
        ends = [self.highs.lower[column], self.highs.upper[column]]
        for side, sense in enumerate((1.0, -1.0)):
            found = self.highs.extreme(column, sense)
            if found.values is not None and self._sharpen(found.values, 0.003):
                found = self.highs.extreme(column, sense)
            if found.kind == "infeasible":
                return None
            if found.values is not None:
                ends[side] = max(ends[0], found.bound) if side == 0 else min(ends[1], found.bound)
        low, high = float(ends[0]), float(ends[1])
        if low > high:
            return None
        self.highs.set_bounds(column, low, high)
        return low, high
