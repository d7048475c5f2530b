r"""Cells and leaves as Booleans, and the score as a sum of integers: what both models are built on.

Per axis of n cells, a literal :math:`y_k` for "the cell is k or below" (:math:`y_k \Rightarrow y_{k+1}`);
per tree, a literal per leaf, exactly one of them true. What ties them is stronger than one implication per
leaf and side: for every tree and every cell k that one of its leaves ends at,

.. math:: \textstyle\sum_{\text{leaves ending at } k \text{ or below}} z_\ell \le y_k, \qquad
          \sum_{\text{leaves starting above } k} z_\ell \le 1 - y_k,

each an at-most-one. Leaf values are ceil(S v), and the sum must reach floor(S (T t - e)), e bounding the
rounding of the deployed sum: no accepted point is lost. A point that gets in by this margin alone is refused
by the deployed score, and its combination of leaves is forbidden.

References
----------
Parmentier and Vidal (2021), https://proceedings.mlr.press/v139/parmentier21a.html (leaves and cells, MILP);
Perron, Didier and Gay (2023), https://doi.org/10.4230/LIPIcs.CP.2023.3 (CP-SAT)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.backends.cells import Cells, Watch, borders, bridged
from milp_recourse.forests.goal import score_goal
from milp_recourse.forests.table import BITS, CellAxis, LeafTable, in_order, may_be_missing

LARGEST = 2.0**56
"""Costs and scores stay below this as integers; CP-SAT adds them up in 64 bits."""

SCORE_BITS = 40


class LeafModel:
    """A CP-SAT model of cells, leaves and the score.

    Attributes
    ----------
    at
        Per axis, the literals "the cell is k or below".
    leaf
        Per tree, the literal of every leaf number (its bit in the table).
    branches
        Of the last call of :meth:`run`.
    """

    solver = "CP-SAT"

    def __init__(self, axes: Sequence[CellAxis], table: LeafTable, threshold: float) -> None:
        from ortools.sat.python import cp_model

        self.cp, self.model = cp_model, cp_model.CpModel()
        self.axes, self.table, self.threshold = axes, table, threshold
        self.branches = 0
        self.at = [self._axis(i, len(axis)) for i, axis in enumerate(axes)]
        self.leaf = self._leaves()
        self._score()

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
        cells = [next(k for k, y in enumerate(row) if solver.boolean_value(y)) for row in self.at]
        name = "optimal" if status == self.cp.OPTIMAL else "stopped"
        return name, bound, np.array(cells, dtype=np.int64)

    def _watcher(self, solver: Any, watch: Watch) -> Any:
        """A callback that tells of every better point; bounds are told, too."""
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

    def accepts(self, point: Cells) -> bool:
        """Whether the deployed score of a point's leaves is accepted."""
        return bool(self.table.bound(self.table.met(point[None], point[None]))[0] > self.threshold)

    def leaves_at(self, point: Cells) -> list[int]:
        """The leaf number that a point is in, per tree."""
        masks = self.table.met(point[None], point[None])[0].reshape(self.table.trees, -1)
        chosen = []
        for words in masks:
            word = int(np.flatnonzero(words)[0])
            chosen.append(word * BITS + int(words[word]).bit_length() - 1)
        return chosen

    def forbid(self, point: Cells, axes: Sequence[int] = ()) -> None:
        """No point in the same leaves and, on the axes named, in the same cells any more."""
        chosen = [literals[k] for literals, k in zip(self.leaf, self.leaves_at(point), strict=True)]
        others = [literal for i in axes for literal in self._not_in(i, int(point[i]))]
        self.model.add_bool_or([*(literal.negated() for literal in chosen), *others])

    def _axis(self, i: int, count: int) -> list[Any]:
        last = count - 1
        literals = [self.model.new_bool_var(f"y{i}_{k}") for k in range(last)]
        literals.append(self.model.new_constant(1))
        for k in range(last - 1):
            self.model.add_implication(literals[k], literals[k + 1])
        return literals

    def _leaves(self) -> list[dict[int, Any]]:
        """Literals per tree and leaf number, tied to the axes."""
        cells = self.table.cells_of_leaves(self.axes)
        trees = []
        for t, leaves in enumerate(cells):
            literals = {leaf: self.model.new_bool_var(f"z{t}_{leaf}") for leaf in leaves}
            self.model.add_exactly_one(literals.values())
            for i, axis in enumerate(self.axes):
                allowed = {leaf: sets[i] for leaf, sets in leaves.items()}
                if not in_order(axis):
                    self._tie_labels(i, len(axis), literals, allowed)
                else:
                    self._tie_interval(i, literals, allowed)
            trees.append(literals)
        return trees

    def _tie_interval(self, i: int, literals: dict[int, Any], allowed: dict[int, NDArray[np.bool_]]) -> None:
        if may_be_missing(self.axes[i]):
            allowed, gaps = bridged(allowed)
            for leaf, last in gaps:  # not in the gap, unless in the first cell
                self.model.add_bool_or([literals[leaf].negated(), self.at[i][last].negated(), self.at[i][0]])
        for k, below, above in borders(allowed, len(self.axes[i]) - 1):
            if below:
                self.model.add_at_most_one([*(literals[leaf] for leaf in below), self.at[i][k].negated()])
            if above:
                self.model.add_at_most_one([*(literals[leaf] for leaf in above), self.at[i][k]])

    def _tie_labels(
        self, i: int, count: int, literals: dict[int, Any], allowed: dict[int, NDArray[np.bool_]]
    ) -> None:
        for k in range(count):
            here = self._not_in(i, k)
            for leaf, cells in allowed.items():
                if not cells[k]:  # the leaf, or "the cell is not k"
                    self.model.add_bool_or([literals[leaf].negated(), *here])

    def _not_in(self, i: int, k: int) -> list[Any]:
        """Literals one of which is true where axis i is not in cell k."""
        return [self.at[i][k].negated()] + ([self.at[i][k - 1]] if k else [])

    def _score(self) -> None:
        """sum of ceil(S v) >= floor(S (T t - b - e)): what every accepted point satisfies, sum by sum."""
        part_of = self.table.forest.part_of
        values = self.table.value[:, 1:].reshape(self.table.trees, -1)
        for part in range(int(part_of[-1]) + 1):
            goal, reach = score_goal(self.table, self.threshold, part)
            scale = 2.0 ** min(SCORE_BITS, math.floor(math.log2(LARGEST / max(reach, 1e-200))))
            terms = [
                math.ceil(values[t, leaf] * scale) * literal
                for t in np.flatnonzero(part_of == part).tolist()
                for leaf, literal in self.leaf[t].items()
            ]
            self.model.add(sum(terms) >= math.floor(goal * scale) - 1)


def floored(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole numbers not above the values, whatever their last digits."""
    return np.floor(values * (1 - 2.0**-50)).astype(np.int64)
