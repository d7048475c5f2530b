r"""One tree: every leaf's cheapest point, and with it the exact answer.

A leaf is a box of cells, costs grow with the distance on each axis, so its cheapest point is the
nearest cell on every axis. There are as many candidates as leaves, and nothing to search.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from milp_recourse.engine.forests.axes import action_of, axes_of, factual_cells, rounded_down
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Instance


@dataclass(frozen=True)
class LeafRecourse:
    """The cheapest way into one leaf.

    Attributes
    ----------
    node
        Position of the leaf in its tree's arrays.
    action
        Feature -> value (labels by index); {} where the factual is in the leaf.
    lower_bound
        Its cost, rounded down: nothing in the leaf costs less.
    """

    node: int
    action: dict[str, float]
    lower_bound: float


def leaf_recourses(instance: Instance) -> list[LeafRecourse]:
    """The cheapest action into each accepting leaf of a one-tree classifier, cheapest first.

    Leaves that no action reaches are left out. No feature may cause another, and no plausibility be asked.
    """
    forest = instance.classifier
    assert isinstance(forest, TreeEnsemble) and len(forest.trees) == 1
    axes = axes_of(instance)
    if axes is None:
        return []
    [leaves] = forest.leaves
    scores = forest.total(leaves.value[:, None])
    cells = factual_cells(instance, forest)
    fixed = np.ones(forest.inputs, dtype=bool)
    fixed[[c for axis in axes for c, _ in axis.columns]] = False
    alive = (scores > instance.accept.above) & leaves.met(cells, np.flatnonzero(fixed))
    total, widest = np.zeros(len(alive)), np.zeros(len(alive))
    chosen = np.zeros((len(alive), len(axes)), dtype=np.int64)
    for i, axis in enumerate(axes):
        good = np.ones((len(alive), len(axis)), dtype=bool)
        for column, on_column in axis.columns:
            good &= leaves.reached(column, on_column)
        alive &= good.any(axis=1)
        away = np.where(good, axis.added + axis.widest, np.inf)  # both grow with the distance
        chosen[:, i] = away.argmin(axis=1)
        total += axis.added[chosen[:, i]]
        np.maximum(widest, axis.widest[chosen[:, i]], out=widest)
    bounds = rounded_down(total + widest, len(axes))
    order = np.flatnonzero(alive)
    order = order[np.argsort(bounds[order], kind="stable")]
    return [LeafRecourse(int(leaves.node[k]), action_of(axes, chosen[k]), float(bounds[k])) for k in order]
