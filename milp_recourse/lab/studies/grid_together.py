"""One applicant's grid evaluated once, for many masks and weights.

Which grid points are feasible does not depend on the weights, and a mask only says on which axes nothing is
acted on. So the grid over all of an applicant's features is evaluated once, and every mask is a slice of it.
Plausibility is cheap and leaves about one point in a hundred for the network. Answers are those of
:class:`~milp_recourse.solvers.grid.GridBackend`, one cost at a time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import Unsupported
from milp_recourse.judge import conclude
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result
from milp_recourse.solvers.grid import BINS, grid_values, looks_feasible
from milp_recourse.solvers.protocol import Proposal


class SharedGrid:
    """The grid of one applicant, for instances that differ in mask, weights and plausibility only.

    Parameters
    ----------
    widest
        The applicant with every feature that any of the masks allows.
    bins
        Values per feature, before clipping.

    Raises
    ------
    Unsupported
        The cost is no weighted sum of squares of continuous features: use the back end ``grid``.
    """

    def __init__(self, widest: Instance, bins: int = BINS) -> None:
        plain = all(widest.by_name[name].kind == "continuous" for name in widest.levers)
        if not plain or widest.cost.kind != "l2-squared":
            raise Unsupported("shared grids are for l2-squared costs of continuous features")
        self.widest = widest
        self.names = tuple(widest.levers)
        self._positions = [[f.name for f in widest.features].index(name) for name in self.names]
        self._values = [np.r_[np.nan, grid_values(widest, name, bins)] for name in self.names]
        costs = [widest.lever_costs[name] for name in self.names]
        self._squares = [
            np.r_[0.0, cost.sizes(v[1:]) ** 2] for cost, v in zip(costs, self._values, strict=True)
        ]
        self._plausible: tuple[NDArray[np.intp], ...] | None = None

    def solve(self, instance: Instance) -> Result:
        """The cheapest feasible grid point of one of the instances."""
        start = time.perf_counter()
        points = self._feasible(instance)
        costs = np.zeros(len(points[0]))
        for axis, name in enumerate(self.names):
            if name in instance.levers:
                costs += instance.weight(name) * self._squares[axis][points[axis]]
        result = None
        # the first is the answer, unless it is feasible within the float check's tolerance only
        for k in np.argsort(costs, kind="stable"):
            action = {
                name: float(self._values[axis][points[axis][k]])
                for axis, name in enumerate(self.names)
                if points[axis][k]
            }
            result = conclude(instance, Proposal(action, None), "grid", time.perf_counter() - start)
            if result.action is not None:
                return result
        message = "no grid point is feasible; points between the bins may be"
        return conclude(instance, Proposal(None, None, message=message), "grid", time.perf_counter() - start)

    def _feasible(self, instance: Instance) -> Sequence[NDArray[np.intp]]:
        """Feasible points as one array of choices per axis; choice 0 is "no action"."""
        free = [name in instance.levers for name in self.names]
        if not instance.plausible:  # the network would have to evaluate nearly all of the grid
            return self._evaluated(free, plausible=False)
        if self._plausible is None:
            self._plausible = self._evaluated([True] * len(free), plausible=True)
        allowed = np.ones(len(self._plausible[0]), dtype=bool)
        for choice, may in zip(self._plausible, free, strict=True):
            if not may:
                allowed &= choice == 0
        return [choice[allowed] for choice in self._plausible]

    def _evaluated(self, free: Sequence[bool], plausible: bool) -> tuple[NDArray[np.intp], ...]:
        """The points of the grid over the ``free`` axes that look feasible, one array of choices per axis."""
        one = self.widest
        shape = tuple(len(v) if may else 1 for v, may in zip(self._values, free, strict=True))
        actions = np.full((*shape, len(one.features)), np.nan)
        for axis, (position, values) in enumerate(zip(self._positions, self._values, strict=True)):
            if free[axis]:
                turned = [1] * len(shape)
                turned[axis] = len(values)
                actions[..., position] = values.reshape(turned)
        actions = actions.reshape(-1, len(one.features))
        good = looks_feasible(replace(one, plausible=plausible), actions)
        return np.unravel_index(np.flatnonzero(good), shape)
