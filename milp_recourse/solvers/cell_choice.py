"""Tree ensembles through a solver that chooses a cell per lever and a leaf per tree.

Cells that alone cost more than a greedy incumbent are dropped, and with them the leaves that only they reach.
The model's score threshold is lowered by the bound on rounding errors, so that no accepted point is excluded.
A point that is let in only because of this is refused by the deployed score, and its combination of leaves is
then forbidden.
"""

from __future__ import annotations

import math
from typing import Protocol

from milp_recourse.engine.forests.axes import Axis, action_of, axes_of, factual_cells
from milp_recourse.engine.forests.goal import affordable
from milp_recourse.engine.forests.greedy import climb
from milp_recourse.engine.forests.table import LeafTable
from milp_recourse.judge.best_first import BestFirst
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import LATE, Clock, OutOfTime
from milp_recourse.solvers.leaf_model import Cells, Watch
from milp_recourse.solvers.protocol import Options, Proposal


class CellModel(Protocol):
    """A solver's model of cells and leaves; :meth:`solve` may be called again after :meth:`forbid`."""

    solver: str
    branches: int

    def __init__(self, axes: list[Axis], table: LeafTable, threshold: float, incumbent: float) -> None: ...

    def solve(self, seconds: float | None, watch: Watch | None = None) -> tuple[str, float, Cells | None]:
        """``optimal``, ``infeasible`` or ``stopped``; a lower bound of exact costs; the point found, or None.

        ``watch`` is called with the cost of each better point and with each better bound.
        """

    def accepts(self, point: Cells) -> bool:
        """Whether the deployed score of a point's leaves is accepted."""

    def forbid(self, point: Cells) -> None:
        """Exclude every point in the leaves that this one reaches."""


class CellSearch:
    """Solve the model; forbid what the deployed score refuses, and solve again.

    Parameters
    ----------
    model
        Class of the solver's model, built from the cells left after a greedy incumbent.
    """

    def __init__(self, instance: Instance, options: Options, model: type[CellModel]) -> None:
        assert isinstance(instance.classifier, TreeEnsemble)
        self.instance, self.forest, self.model = instance, instance.classifier, model
        clock = Clock.start(options.time_limit)
        self.search = BestFirst[CellModel](instance, clock, "solver", options.watch, found=options.found)

    def run(self) -> Proposal:
        """What the solver proves, its points judged exactly."""
        search, best, axes = self.search, self.search.best, axes_of(self.instance)
        if axes is None:
            return Proposal(None, math.inf, "solver", 0)
        cells = factual_cells(self.instance, self.forest)
        threshold = self.instance.accept.above
        try:
            start = climb(LeafTable(self.forest, cells, axes, clock=search.clock), axes, threshold)
            if start is not None:
                search.offer(action_of(axes, start))
                axes = [affordable(axis, best.cost) for axis in axes]
            table = LeafTable(self.forest, cells, axes, clock=search.clock)
            if not table.bound(table.full[None])[0] > threshold:
                return Proposal(None, math.inf, "solver", 0)
            search.push(0.0, self.model(axes, table, threshold, best.cost))
        except OutOfTime:
            search.stop(LATE)
            return search.outcome()
        while taken := search.next():
            [(bound, model)] = taken
            status, low, point = model.solve(search.clock.left(), search.watch)
            search.nodes += model.branches
            if status == "infeasible":  # nothing below the incumbent
                search.close(best.cost)
                continue
            bound = max(bound, low)
            if point is not None:
                feasible = search.offer(action_of(axes, point)).feasible
                if not feasible and not model.accepts(point):
                    model.forbid(point)
                    search.push(bound, model)
                    continue
            search.close(bound)
            early = f"{model.solver} stopped early", f"the costs are too fine for {model.solver}"
            search.message = early[status != "stopped"]
        return search.outcome()
