r"""Tree ensembles through OR-Tools' CP-SAT: cells and leaves as Booleans, everything in integers.

Per axis of n cells, a literal :math:`y_k` for "the cell is k or below" (:math:`y_k \Rightarrow y_{k+1}`);
per tree, a literal per leaf, exactly one of them true. What ties them is stronger than one implication per
leaf and side: for every tree and every cell k that one of its leaves ends at,

.. math:: \textstyle\sum_{\text{leaves ending at } k \text{ or below}} z_\ell \le y_k, \qquad
          \sum_{\text{leaves starting above } k} z_\ell \le 1 - y_k,

each an at-most-one. Cells that alone cost more than a greedy incumbent are dropped first, and with them
the leaves that only they reach.

**Integers.** Cell costs are floor(K c), so the optimum of the integers over K is a lower bound, short of the
exact cost by at most (axes + 1) / K; K makes that a quarter of the allowed gap wherever the numbers then
stay below 2^56. Leaf values are ceil(S v), and the sum must reach floor(S (T t - e)), e bounding the
rounding of the deployed sum: no accepted point is lost. A point that gets in by this margin alone is refused
by the deployed score, and its combination of leaves is forbidden.

The bound rests on CP-SAT's word, so ``proof`` is ``solver``.

References
----------
Parmentier and Vidal (2021), https://proceedings.mlr.press/v139/parmentier21a.html (leaves and cells, MILP);
Perron, Didier and Gay (2023), https://doi.org/10.4230/LIPIcs.CP.2023.3 (CP-SAT)
"""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.backends.cells import Cells, CellSearch, borders, score_goal
from milp_recourse.backends.cpsat_process import ask
from milp_recourse.backends.protocol import Options, Proposal
from milp_recourse.domain.forest import TreeEnsemble
from milp_recourse.forests.axes import Axis, rounded_down, separable
from milp_recourse.forests.table import BITS, LeafTable
from milp_recourse.instance import Instance
from milp_recourse.result import gap_tolerance

LARGEST = 2.0**56
"""Costs and scores stay below this as integers; CP-SAT adds them up in 64 bits."""

SCORE_BITS = 40


class CpsatBackend:
    """CP-SAT on cells and leaves, one thread.

    Parameters
    ----------
    in_process
        Import OR-Tools here, where highspy cannot be imported any more, instead of asking a child process.
    """

    name = "cpsat"
    proves = True

    def __init__(self, in_process: bool = False) -> None:
        self.in_process = in_process

    def unavailable(self) -> str | None:
        """Why OR-Tools cannot be used here."""
        return None if find_spec("ortools") is not None else "OR-Tools is not installed: pip install ortools"

    def why_not(self, instance: Instance) -> str | None:
        """Trees whose inputs do not cause each other only."""
        if not isinstance(instance.classifier, TreeEnsemble):
            return "tree ensembles only"
        if not separable(instance):
            return "an action moves other features, or plausibility is asked; use bab"
        return None

    def solve(self, instance: Instance, options: Options) -> Proposal:
        """Solve the integer model; forbid what the deployed score refuses, and solve again."""
        return CellSearch(instance, options, _Model).run() if self.in_process else ask(instance, options)


class _Model:
    """The integer model."""

    solver = "CP-SAT"

    def __init__(
        self, axes: list[Axis], table: LeafTable, linf: float, threshold: float, incumbent: float
    ) -> None:
        from ortools.sat.python import cp_model

        self.cp, self.model = cp_model, cp_model.CpModel()
        self.axes, self.table = axes, table
        self.branches = 0
        dear = [axis.added + linf * axis.widest for axis in axes]
        self.unit = _unit(dear, len(axes), incumbent)
        self.at = [self._axis(i, axis) for i, axis in enumerate(axes)]  # literals "cell is k or below"
        self.leaf = self._leaves()
        self._score(threshold)
        terms: list[Any] = []
        for axis, literals in zip(axes, self.at, strict=True):
            terms.append(_sum_of(_floor(axis.added * self.unit), literals))
        if linf:
            steps = [_floor(axis.widest * (self.unit * linf)) for axis in axes]
            widest = self.model.new_int_var(0, int(max((s.max() for s in steps), default=0)), "widest")
            for step, literals in zip(steps, self.at, strict=True):
                self.model.add(widest >= _sum_of(step, literals))
            terms.append(widest)
        self.objective = sum(terms)
        if math.isfinite(incumbent):  # at most the incumbent's cost, rounding included
            self.model.add(self.objective <= math.ceil(incumbent * (1 + 1e-12) * self.unit))
        self.model.minimize(self.objective)

    def solve(self, seconds: float | None) -> tuple[str, float, Cells | None]:
        """``optimal``, ``infeasible`` or ``stopped``; the lower bound of exact costs; the point."""
        solver = self.cp.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.linearization_level = 2
        if seconds is not None:
            solver.parameters.max_time_in_seconds = seconds
        status = solver.solve(self.model)
        self.branches = int(solver.num_branches)
        if status == self.cp.INFEASIBLE:
            return "infeasible", math.inf, None
        low = math.nextafter(float(math.ceil(solver.best_objective_bound - 1e-6)) / self.unit, -math.inf)
        bound = float(rounded_down(np.array([max(low, 0.0)]), len(self.axes))[0])
        if status not in (self.cp.OPTIMAL, self.cp.FEASIBLE):
            return "stopped", bound, None
        cells = [next(k for k, y in enumerate(row) if solver.boolean_value(y)) for row in self.at]
        name = "optimal" if status == self.cp.OPTIMAL else "stopped"
        return name, bound, np.array(cells, dtype=np.int64)

    def forbid(self, point: Cells) -> None:
        """No point in the same leaves any more."""
        masks = self.table.met(point[None], point[None])[0].reshape(self.table.trees, -1)
        chosen = []
        for t, words in enumerate(masks):
            word = int(np.flatnonzero(words)[0])
            chosen.append(self.leaf[t][word * BITS + int(words[word]).bit_length() - 1])
        self.model.add_bool_or([literal.negated() for literal in chosen])

    def _axis(self, i: int, axis: Axis) -> list[Any]:
        last = len(axis) - 1
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
                if len(axis.columns) > 1:
                    self._tie_labels(i, axis, literals, allowed)
                else:
                    self._tie_interval(i, literals, allowed)
            trees.append(literals)
        return trees

    def _tie_interval(self, i: int, literals: dict[int, Any], allowed: dict[int, NDArray[np.bool_]]) -> None:
        for k, below, above in borders(allowed, len(self.axes[i]) - 1):
            if below:
                self.model.add_at_most_one([*(literals[leaf] for leaf in below), self.at[i][k].negated()])
            if above:
                self.model.add_at_most_one([*(literals[leaf] for leaf in above), self.at[i][k]])

    def _tie_labels(
        self, i: int, axis: Axis, literals: dict[int, Any], allowed: dict[int, NDArray[np.bool_]]
    ) -> None:
        for k in range(len(axis)):
            here = [self.at[i][k].negated()] + ([self.at[i][k - 1]] if k else [])
            for leaf, cells in allowed.items():
                if not cells[k]:  # the leaf, or "the cell is not k"
                    self.model.add_bool_or([literals[leaf].negated(), *here])

    def _score(self, threshold: float) -> None:
        """sum of ceil(S v) >= floor(S (T t - b - e)): what every accepted point satisfies."""
        goal, reach = score_goal(self.table, threshold)
        scale = 2.0 ** min(SCORE_BITS, math.floor(math.log2(LARGEST / max(reach, 1e-300))))
        values = self.table.value[:, 1:].reshape(self.table.trees, -1)
        terms = [
            math.ceil(values[t, leaf] * scale) * literal
            for t, literals in enumerate(self.leaf)
            for leaf, literal in literals.items()
        ]
        self.model.add(sum(terms) >= math.floor(goal * scale) - 1)


def _unit(dear: list[NDArray[np.float64]], axes: int, incumbent: float) -> float:
    """K, a power of two: integers per unit of cost."""
    positive = [d[d > 0] for d in dear]
    least = min((float(d.min()) for d in positive if len(d)), default=1.0)
    most = min(incumbent, sum(float(d.max()) for d in dear if len(d)) or 1.0)
    wanted = 4.0 * (axes + 1) / gap_tolerance(least)
    return float(2.0 ** math.floor(math.log2(min(wanted, LARGEST / max(2.0 * axes * most, 1e-300)))))


def _floor(values: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.floor(values * (1 - 2.0**-50)).astype(np.int64)


def _sum_of(values: NDArray[np.int64], at: list[Any]) -> Any:
    """The value of the chosen cell, as a sum over "the cell is k or below"."""
    total = int(values[-1])
    steps = [(int(values[k] - values[k + 1]), at[k]) for k in range(len(values) - 1)]
    return total + sum(step * literal for step, literal in steps if step)
