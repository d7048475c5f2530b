r"""Which cell each axis is in and which leaf each tree, as 0/1 columns: what models of ensembles share.

Per axis of n cells, a column :math:`y_k` for "the cell is k or below" (:math:`y_k \Rightarrow y_{k+1}`; the
last would always be true and is left out); per tree, a column per leaf, exactly one of them true. What ties
them is stronger than one implication per leaf and side: for every tree and every cell k that one of its
leaves ends at,

.. math:: \textstyle\sum_{\text{leaves ending at } k \text{ or below}} z_\ell \le y_k, \qquad
          \sum_{\text{leaves starting above } k} z_\ell \le 1 - y_k,

each an at-most-one. The leaves' values must add up to at least the threshold, lowered by a bound on the
rounding of the deployed sum, so that no accepted point is lost. Points that are let in only because of this
are refused by the deployed score, and their combination of leaves is then forbidden.

References
----------
Parmentier and Vidal (2021), https://proceedings.mlr.press/v139/parmentier21a.html
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.forests.goal import score_goal
from milp_recourse.engine.forests.table import BITS, CellAxis, LeafTable, in_order, may_be_missing

Cells = NDArray[np.int64]
Leaf = TypeVar("Leaf")
Watch = Callable[[float, float], object]
Column = Any
"""A solver's own name for a 0/1 column."""


class LeafModel(ABC):
    """A solver's model of cells, leaves and the score; the table's clock is looked at while it is made.

    Attributes
    ----------
    at
        Per axis, the columns "the cell is k or below"; the last cell has none.
    leaf
        Per tree, the column of every leaf number (its bit in the table).
    branches
        Nodes of the last solve.
    """

    solver: str

    def __init__(self, axes: Sequence[CellAxis], table: LeafTable, threshold: float) -> None:
        self.axes, self.table, self.threshold = axes, table, threshold
        self.branches = 0
        self.at = [self._axis(len(axis)) for axis in axes]
        self.leaf = [self._leaves(leaves) for leaves in table.cells_of_leaves(axes)]
        values, part_of = table.value[:, 1:].reshape(table.trees, -1), table.forest.part_of
        for part in range(int(part_of[-1]) + 1):
            goal, reach = score_goal(table, threshold, part)
            trees = np.flatnonzero(part_of == part).tolist()
            terms = [(float(values[t, leaf]), z) for t in trees for leaf, z in self.leaf[t].items()]
            self.score(terms, goal, reach)

    # -- what each solver's model supplies -----------------------------------------------

    @abstractmethod
    def column(self) -> Column:
        """A new 0/1 column."""

    @abstractmethod
    def exactly_one(self, columns: Sequence[Column]) -> None:
        """One of the columns is true, the others are not."""

    @abstractmethod
    def at_most_one(self, columns: Sequence[Column], negated: Sequence[Column] = ()) -> None:
        """At most one of the columns and of the negations of others is true."""

    @abstractmethod
    def not_all(self, columns: Sequence[Column], negated: Sequence[Column] = ()) -> None:
        """Not all of the columns are true while all of the others are false."""

    @abstractmethod
    def rule_out(self, leaves: Sequence[Column], true: list[Column], false: list[Column]) -> None:
        """None of these leaves of one tree is reached in a cell, whose columns :meth:`in_cell` gives."""

    @abstractmethod
    def score(self, terms: Sequence[tuple[float, Column]], goal: float, reach: float) -> None:
        """The sum of value times column is at least ``goal``; ``reach`` bounds the sum of absolute values."""

    # -- what they share -----------------------------------------------------------------

    def cells_where(self, true: Callable[[Column], bool]) -> Cells:
        """The cell of each axis in a solution."""
        cells = [next((k for k, y in enumerate(row) if true(y)), len(row)) for row in self.at]
        return np.array(cells, dtype=np.int64)

    def in_cell(self, i: int, k: int) -> tuple[list[Column], list[Column]]:
        """(true, false): axis i is in cell k exactly if all columns in ``true`` are 1, all in ``false`` 0."""
        return self.at[i][k : k + 1], self.at[i][k - 1 : k] if k else []

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
        """Exclude every point that is in the same leaves and, on the axes named, in the same cells."""
        chosen = [columns[k] for columns, k in zip(self.leaf, self.leaves_at(point), strict=True)]
        cells = [self.in_cell(i, int(point[i])) for i in axes]
        true, false = ([y for sides in cells for y in sides[side]] for side in (0, 1))
        self.not_all([*chosen, *true], false)

    def _axis(self, count: int) -> list[Column]:
        """The columns "the cell is k or below" of an axis with so many cells."""
        row = [self.column() for _ in range(count - 1)]
        for below, above in pairwise(row):
            self.at_most_one([below], [above])
        return row

    def _leaves(self, leaves: Mapping[int, list[NDArray[np.bool_]]]) -> dict[int, Column]:
        """Columns per leaf number of one tree, tied to the axes."""
        columns = {leaf: self.column() for leaf in leaves}
        self.exactly_one(list(columns.values()))
        for i, axis in enumerate(self.axes):
            allowed = {leaf: cells[i] for leaf, cells in leaves.items()}
            if in_order(axis):
                self._tie_interval(i, columns, allowed)
                continue
            for k in range(len(axis)):
                others = [columns[leaf] for leaf, cells in allowed.items() if not cells[k]]
                self.rule_out(others, *self.in_cell(i, k))
        return columns

    def _tie_interval(
        self, i: int, z: Mapping[int, Column], allowed: Mapping[int, NDArray[np.bool_]]
    ) -> None:
        """Tie leaves that are reached from consecutive cells of axis i (apart from a missing value's)."""
        y = self.at[i]
        if may_be_missing(self.axes[i]):
            allowed, gaps = bridged(allowed)
            for leaf, last in gaps:  # not in the gap, unless in the first cell
                self.not_all([z[leaf], y[last]], [y[0]])
        for k, below, above in borders(allowed, len(self.axes[i]) - 1):
            self.table.clock.check()
            if below:
                self.at_most_one([z[leaf] for leaf in below], [y[k]])
            if above:
                self.at_most_one([*(z[leaf] for leaf in above), y[k]])


def bridged(
    allowed: Mapping[Leaf, NDArray[np.bool_]],
) -> tuple[dict[Leaf, NDArray[np.bool_]], list[tuple[Leaf, int]]]:
    """Fill the gap between the cell of a missing value, the first one, and the leaf's other cells.

    Returns
    -------
    tuple
        The cells with gaps filled in, and every leaf with a gap with the last cell of its gap.
    """
    filled, gaps = dict(allowed), []
    for leaf, cells in allowed.items():
        others = np.flatnonzero(cells[1:]) + 1
        if cells[0] and len(others) and others[0] > 1:
            filled[leaf] = np.arange(len(cells)) <= others[-1]
            gaps.append((leaf, int(others[0]) - 1))
    return filled, gaps


def borders(
    allowed: Mapping[Leaf, NDArray[np.bool_]], last: int
) -> Iterator[tuple[int, list[Leaf], list[Leaf]]]:
    """Cells k below ``last`` at which leaves end or begin: k, the leaves that end by k, those above k."""
    low = {leaf: int(cells.argmax()) for leaf, cells in allowed.items()}
    high = {leaf: len(cells) - 1 - int(cells[::-1].argmax()) for leaf, cells in allowed.items()}
    for k in sorted({h for h in high.values() if h < last} | {l - 1 for l in low.values() if l}):
        yield k, [leaf for leaf, h in high.items() if h <= k], [leaf for leaf, l in low.items() if l > k]
