"""Proofs by prices as the document lists them: classes of cells, tables and nodes (section 7.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.forests.axes import Axis
from milp_recourse.problem.forest import TreeEnsemble, last_left
from milp_recourse.problem.instance import Instance, kept_with

Array = NDArray[np.float64]
Node = list[Any]


@kept_with()
def _last_values(forest: TreeEnsemble) -> list[dict[int, Array]]:
    """For each tree, by column that it looks at, the last values that go left at thresholds, ascending."""
    found = []
    for tree in forest.trees:
        inner = tree.left != -1
        columns, thresholds = tree.feature[inner], tree.threshold[inner]
        each = ((c, last_left(thresholds[columns == c], forest.dtype)) for c in np.unique(columns).tolist())
        found.append({c: np.unique(ends) for c, ends in each})
    return found


@kept_with(256)
def _classes(forest: TreeEnsemble, column: int, low: bytes) -> list[NDArray[np.int64]]:
    """The classes of a column's cells to each tree, ascending; one where a tree does not look at it.

    ``low``: the first values of the cells, as the bytes of doubles, which are the same for most applicants.
    """
    values, none = np.frombuffer(low), np.zeros(0)
    return [np.unique(np.searchsorted(own.get(column, none), values)) for own in _last_values(forest)]


class PriceWriter:
    """Turns a proof over cells into the document's nodes and tables.

    Parameters
    ----------
    axes, whole
        The levers' cells in the box that is proven, and in the whole lever intervals.
    factors
        The proof's factor graph, over ``axes``.
    tables
        How many tables the configuration has already.

    Attributes
    ----------
    listed
        For each tree and each axis that it tests, in a row, the number of every class among the factor
        graph's classes (-1: it has no cell in the box, or the axis tells no leaves apart).
    numbers
        How many prices have been written.
    """

    def __init__(
        self,
        instance: Instance,
        axes: list[Axis],
        whole: list[Axis],
        factors: Any,
        tables: int,
    ) -> None:
        self.instance, self.axes, self.numbers, self.before = instance, axes, 0, tables
        self.first = factors.axis_from
        forest = instance.classifier
        assert isinstance(forest, TreeEnsemble)
        owner = {column: i for i, axis in enumerate(axes) for column, _ in axis.columns}
        slots = {
            (t, int(factors.slot_axis[s])): s
            for t in range(len(forest.trees))
            for s in range(int(factors.slot_from[t]), int(factors.slot_from[t + 1]))
        }
        listed, counted = [np.zeros(0, dtype=np.int64)], [self._counted(axis) for axis in whole]
        for t, ends in enumerate(_last_values(forest)):
            for i in sorted({owner[c] for c in ends if c in owner}):
                found, s = np.full(len(counted[i][t]), -1), slots.get((t, i))
                if s is not None:
                    known, cells = np.unique(self._numbers(axes[i], ends), return_index=True)
                    at = factors.classes[t, factors.axis_from[i] + cells]
                    found[np.searchsorted(counted[i][t], known)] = factors.class_from[s] + at
                listed.append(found)
        self.listed = np.concatenate(listed)

    def _counted(self, axis: Axis) -> Sequence[NDArray[np.int64]]:
        """For each tree, the numbers of all classes of an axis, ascending; any where it does not look at it.

        Classes are as in the document: labels with numbers of their own are one each, other cells are in one
        class if no threshold of the tree separates them, over the whole lever interval.
        """
        forest = self.instance.classifier
        assert isinstance(forest, TreeEnsemble)
        if self.instance.by_name[axis.feature].by_label:
            return [np.unique(self._numbers(axis, {}))] * len(forest.trees)
        [(column, _)] = axis.columns
        return _classes(forest, column, axis.low.tobytes())

    def _numbers(self, axis: Axis, ends: dict[int, Array]) -> NDArray[np.int64]:
        """The number of the class of each cell to a tree with these last values."""
        if self.instance.by_name[axis.feature].by_label:
            return axis.low.astype(np.int64)
        [(column, _)] = axis.columns
        return np.searchsorted(ends[column], axis.low)

    def table(self, table: Any) -> dict[str, Any]:
        """A table of prices as JSON."""
        none = table.price is None
        found = [] if none else runs(np.where(self.listed < 0, -1, table.price[self.listed]))
        self.numbers += len(found)
        made = {"unit": table.unit, "mu": table.mu, "trees": [], "runs": " ".join(map(str, found))}
        made |= {"weights": table.weights.tolist()} if len(table.weights) > 1 else {}
        made |= {"nu": table.nu} if table.nu else {}
        return made | ({"shares": table.shares.tolist()} if len(table.shares) else {})

    def node(self, step: Any) -> Node:
        """The node of one step."""
        if step.kind == "split":
            cell = step.cell - int(self.first[step.axis])
            return ["s", step.axis, float(self.axes[step.axis].high[cell])]
        if step.kind == "merge":
            return ["m"]
        return ["p" if step.kind == "prices" else "t", self.before + step.table]


def runs(prices: NDArray[np.int64]) -> list[int]:
    """Prices as the document lists them: that of the next class, or -n for n classes with the price before
    them, 0 at the start. The last price holds to the end. Where a price is -1, it may be any."""
    known = np.maximum.accumulate(np.where(prices < 0, -1, np.arange(len(prices))))
    held = np.where(known < 0, 0, prices[known])
    at = np.flatnonzero(np.diff(held, prepend=0))
    gaps = np.diff(at, prepend=-1) - 1
    needed = np.column_stack([gaps > 0, gaps >= 0])
    listed: list[int] = np.column_stack([-gaps, held[at]])[needed].tolist()
    return listed
