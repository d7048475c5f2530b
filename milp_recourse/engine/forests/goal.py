"""What leaves of an accepted point add up to at least, and which cells cost at most so much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from milp_recourse.engine.forests.axes import Array, Axis, rounded_down, with_cells
from milp_recourse.engine.forests.table import LeafTable
from milp_recourse.problem.forest import TreeEnsemble


def score_goal(table: LeafTable, threshold: float, part: int = 0) -> tuple[float, float]:
    r"""What the exact values of an accepted point's leaves add up to at least, and the sum of absolute values
    that its rounding slack is proportional to.

    With u the unit roundoff, the deployed sum of n rounded terms is off by at most
    :math:`n u \sum_t \max |v_t|` (1 + n u), and a division adds u times its result (Higham 2002, section
    4.2). Twice that is taken off.

    Parameters
    ----------
    part
        Of an ensemble whose score is the smallest of several sums: which of them.
    """
    forest = table.forest
    error, reach = score_error(forest, threshold, part)
    count = len(forest.trees) if forest.aggregate == "mean" else 1
    return threshold * count - forest.base - error, reach


def first_multiplier(table: LeafTable, threshold: float, score: float, cost: float) -> float:
    """The first multiplier of a search by prices: the cost to be reached, divided by how far the trees' sum
    at the cheapest point (whose score is ``score``) is below the threshold."""
    forest = table.forest
    missing = (threshold - score) * (len(forest.trees) if forest.aggregate == "mean" else 1)
    return max(cost, 1e-12) / max(missing, 1e-9)


def score_error(forest: TreeEnsemble, threshold: float, part: int = 0) -> tuple[float, float]:
    """By how much a part's values, added in any order, may differ from the deployed sum, and the sum of
    absolute values that this is proportional to."""
    own = forest.largest[forest.part_of == part].tolist()
    count = len(own)
    reach = sum(own) + abs(forest.base) + abs(threshold) * count
    roundoff = 2.0**-24 if forest.sum_dtype == "float32" else 2.0**-53
    return 2.0 * (count + 4) * roundoff * reach, reach


def affordable(axis: Axis, cost: float) -> Axis:
    """The axis without cells that alone cost more than this; its cheapest stays."""
    kept = np.flatnonzero(axis.added + axis.widest <= cost * (1 + 1e-9)).tolist() + [axis.start]
    # costs fall towards the start, so these cells are consecutive (dear labels between them stay)
    return window(axis, min(kept), max(kept))


def with_each_cell(costs: Sequence[Array], wide: Sequence[Array]) -> Iterator[Array]:
    """For each axis and each of its cells, the least that a point with this cell costs, up to rounding.

    Parameters
    ----------
    costs, wide
        Per axis, what its cells cost in the sum, and what enters the maximum.
    """
    paid, most = (np.array([own.min() for own in each]) for each in (costs, wide))
    for i, (own, widest) in enumerate(zip(costs, wide, strict=True)):
        yield np.delete(paid, i).sum() + own + np.maximum(widest, np.delete(most, i).max(initial=0.0))


def least_change(axes: Sequence[Axis]) -> float:
    """A lower bound of what it costs to leave the cheapest point on at least one axis."""
    each = with_each_cell([axis.added for axis in axes], [axis.widest for axis in axes])
    others = (np.delete(paid, axis.start) for axis, paid in zip(axes, each, strict=True))
    least = min((paid.min(initial=np.inf) for paid in others), default=np.inf)
    proven: float = rounded_down(np.array([least]), len(axes))[0]
    return proven


def window(axis: Axis, first: int, last: int) -> Axis:
    """The axis with its cells from the first of these numbers to the last."""
    inside = np.zeros(len(axis), dtype=np.bool_)
    inside[first : last + 1] = True
    return with_cells(axis, inside)
