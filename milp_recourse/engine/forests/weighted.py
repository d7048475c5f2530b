r"""Several sums of leaves, all of which must reach their goals, as one weighted sum.

An accepted point satisfies :math:`\sum_k w_k s_k \ge \sum_k w_k g_k` for any weights :math:`w \ge 0`; bounds
by prices use nothing else of it. The weights are a Lagrangian's multipliers of the sums, up to the common
factor :math:`\mu`, which :mod:`milp_recourse.engine.forests.prices` improves.
"""

from __future__ import annotations

from copy import copy
from itertools import pairwise

import numpy as np

from milp_recourse.engine.forests.factors import Array, Factors
from milp_recourse.engine.forests.goal import score_goal
from milp_recourse.engine.forests.living import Live
from milp_recourse.engine.forests.table import LeafTable

STEP = 1.0
"""How strongly a sum's weight reacts to how far the sum is below its goal."""


class WeightedSums:
    """The factor graph of an ensemble under weights of its sums.

    Parameters
    ----------
    factors
        Of all trees.
    table
        Their leaves.
    above
        Every sum has to be above it.

    Attributes
    ----------
    goals, reach
        For each sum, what the exact values of an accepted point's leaves add up to at least, and the sum of
        the largest absolute values, to which rounding errors are proportional; (sums,).
    values
        The leaves' values without weights.
    """

    def __init__(self, factors: Factors, table: LeafTable, above: float) -> None:
        self.table = table
        found = [score_goal(table, above, k) for k in range(len(table.forest.parts) or 1)]
        self.goals, self.reach = (np.array(each) for each in zip(*found, strict=True))
        self._take(factors)

    def _take(self, factors: Factors) -> None:
        """Take the leaves' values, and which sum each belongs to, from a factor graph."""
        self.factors, self.values = factors, factors.value
        self._part = np.repeat(self.table.forest.part_of, np.diff(factors.leaf_from))

    def of(self, factors: Factors) -> WeightedSums:
        """The same for a factor graph of fewer cells and leaves."""
        made = copy(self)
        made._take(factors)
        return made

    @property
    def even(self) -> Array:
        """Equal weights, which add up to 1."""
        return np.full(len(self.goals), 1.0 / len(self.goals))

    def under(self, weights: Array) -> tuple[Factors, float]:
        """The factor graph with each sum's leaves counted by its weight, and the goal, rounded down."""
        if len(weights) == 1:
            return self.factors, float(self.goals[0])
        goal = float(self.goals @ weights) - 2.0**-48 * float(np.abs(self.goals) @ weights)
        return self.factors._replace(value=self.values * weights[self._part]), goal

    def reweighted(self, weights: Array, live: Live, energy: Array) -> Array:
        """Weights with more for the sums that are furthest below their goals if each tree uses its leaf of
        least energy."""
        if len(weights) == 1:
            return weights
        total = np.zeros(len(weights))
        for t, (a, b) in enumerate(pairwise(live.leaf_to)):
            own = live.leaf[a:b]
            total[self.table.forest.part_of[t]] += self.values[own[int(np.argmin(energy[own]))]]
        missing = self.goals - total
        made = weights * np.exp(STEP * missing / (float(np.abs(missing).max()) or 1.0))
        shares: Array = np.maximum(made / made.sum(), 1e-9)
        return shares
