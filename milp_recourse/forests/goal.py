"""What the leaves of an accepted point add up to at least, and which cells an action in hand leaves."""

from __future__ import annotations

import numpy as np

from milp_recourse.forests.axes import Axis
from milp_recourse.forests.table import LeafTable


def score_goal(table: LeafTable, threshold: float) -> tuple[float, float]:
    r"""What the leaves' exact values must add up to at least, and the size of what is summed.

    The deployed sum of n rounded terms is off by at most :math:`n u \sum_t \max |v_t|` (1 + n u), and a
    division by u more (Higham 2002, section 4.2); twice that is taken off.
    """
    forest = table.forest
    count = len(forest.trees)
    largest = sum(float(np.abs(tree.value[tree.left == -1]).max()) for tree in forest.trees)
    reach = largest + abs(forest.base) + abs(threshold) * count
    roundoff = 2.0**-24 if forest.sum_dtype == "float32" else 2.0**-53
    error = 2.0 * (count + 4) * roundoff * reach
    return threshold * (count if forest.aggregate == "mean" else 1) - forest.base - error, reach


def affordable(axis: Axis, linf: float, cost: float) -> Axis:
    """The axis without cells that alone cost more than an action in hand."""
    kept = np.flatnonzero(axis.added + linf * axis.widest <= cost * (1 + 1e-9))
    first, last = int(kept[0]), int(kept[-1]) + 1  # costs fall towards the start: one stretch, or labels
    cut = slice(first, last)
    return Axis(
        axis.feature,
        axis.values[cut],
        axis.low[cut],
        axis.high[cut],
        axis.added[cut],
        axis.widest[cut],
        axis.start - first,
        axis.home - first,
        axis.settable[cut],
        tuple((column, cells[cut]) for column, cells in axis.columns),
    )
