r"""Which leaves a box of cells can reach, and the largest score that leaves.

The leaves of each tree, most valuable first, are bits of a few words. A box is an interval per axis, and the
leaves it meets are the intersection of one mask per axis: those that reach down to its upper end and
up to its lower end. The lowest bit that is left is a tree's largest value, and the trees' largest values,
added in order as the deployed model adds, bound every score in the box: rounded addition is monotone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.forest import MISSING, Leaves, TreeEnsemble
from milp_recourse.problem.options import NEVER, Clock

Array = NDArray[np.float64]
Masks = NDArray[np.uint32]
Cells = NDArray[np.int64]

BITS = 32

_TOGETHER = 1024
"""So many words' masks are accumulated together."""


class TooLarge(Exception):
    """Raised where the masks of all cells would take more bytes than allowed."""


class CellAxis(Protocol):
    """What moves columns of the ensemble together, cell by cell."""

    @property
    def columns(self) -> tuple[tuple[int, Cells], ...]:
        """Which columns, and their cell for each of this axis' cells."""
        ...

    def __len__(self) -> int: ...


def in_order(axis: CellAxis) -> bool:
    """Whether it is certain that each leaf's cells are consecutive: one column, and its cells ascend.

    The first cell is an exception where it :func:`may_be_missing`.
    """
    if len(axis.columns) > 1:
        return False
    [(_, cells)] = axis.columns
    return bool((np.diff(cells) >= 0).all())


def may_be_missing(axis: CellAxis) -> bool:
    """Whether the axis' first cell is for a value that is missing and stays so."""
    return bool(axis.columns[0][1][0] == MISSING)


@dataclass(frozen=True)
class Budget:
    """What a point may cost: less than ``below``.

    Attributes
    ----------
    added, widest
        Per axis, lower bounds of what its cells add to the cost, and of their entries in the cost's maximum.
    """

    added: Sequence[Array]
    widest: Sequence[Array]
    below: float

    def pays_for(self, met: Sequence[_Met]) -> NDArray[np.bool_]:
        """Which leaves hold a point that costs less, as far as its axes' cheapest cells tell."""
        total, most = np.zeros(1), np.zeros(1)  # for all leaves
        for leaves, added, widest in zip(met, self.added, self.widest, strict=True):
            total = total + leaves.least(added)
            most = np.maximum(most, leaves.least(widest))
        return np.asarray((total + most) * (1.0 - 2.0**-52 * (len(met) + 2)) < self.below)


class LeafTable:
    """The leaves of an ensemble over an applicant's axes.

    Parameters
    ----------
    forest
        The ensemble.
    cells
        The factual's cell of every column; used for the columns that no axis moves.
    axes
        What moves columns: one per lever (or acted lever), or where levers cause other features one per moved
        column or label.
    most_bytes
        Raise :class:`TooLarge` where the masks would take more. A forest of deep trees has thousands of cells
        and of words, and under l0 the cost of an action leaves all of them open.
    clock
        Looked at between the axes.
    budget
        Leaves that cost more to reach are left out.

    Raises
    ------
    TooLarge, OutOfTime
        It would take more bytes, or longer.
    """

    def __init__(
        self,
        forest: TreeEnsemble,
        cells: Cells,
        axes: Sequence[CellAxis],
        most_bytes: float = math.inf,
        clock: Clock = NEVER,
        budget: Budget | None = None,
    ) -> None:
        self.forest, self.clock = forest, clock
        tree = np.repeat(np.arange(len(forest.leaves)), [len(leaves.value) for leaves in forest.leaves])
        every, self.trees = forest.every_leaf, len(forest.leaves)
        node, value = every.node, every.value
        fixed = np.ones(forest.inputs, dtype=bool)
        fixed[[c for axis in axes for c, _ in axis.columns]] = False
        alive = every.met(cells, np.flatnonzero(fixed))
        met = []
        for axis in axes:
            clock.check()
            met.append(_Met.of(every, axis))
        alive &= np.logical_and.reduce([leaves.reachable for leaves in met])
        alive &= budget is None or budget.pays_for(met)
        order = np.flatnonzero(alive)
        order = order[np.lexsort((-value[order], tree[order]))]
        counts = np.bincount(tree[order], minlength=self.trees)
        self.words = max(1, -(-int(counts.max()) // BITS))
        if 2 * 4 * self.trees * self.words * sum(map(len, axes)) > most_bytes:
            raise TooLarge
        # Leaf k of tree t is bit k % 32 of word t * words + k // 32.
        rank = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        word, bit = tree[order] * self.words + rank // BITS, rank % BITS
        flags = np.left_shift(np.uint32(1), bit.astype(np.uint32))
        size = self.trees * self.words
        self.value = np.full((size, BITS + 1), -np.inf)
        self.value[word, bit + 1] = value[order]
        self.node = np.full((size, BITS), -1, dtype=np.int64)
        self.node[word, bit] = node[order]
        self.full: Masks = np.zeros(size, dtype=np.uint32)
        np.bitwise_or.at(self.full, word, flags)
        self._down: list[Masks] = []  # leaves that reach a cell or further down
        self._up: list[Masks] = []
        self._single: dict[int, Masks] = {}  # leaves that each cell reaches, of axes whose leaves allow sets
        self._pairs: dict[int, Masks] = {}  # likewise, by interval: made when intervals are first asked for
        self._missing: dict[int, Masks] = {}  # leaves that an axis' first cell reaches, its value missing
        for i, (axis, leaves) in enumerate(zip(axes, met, strict=True)):
            clock.check()
            down, up = (np.zeros((len(axis), size), dtype=np.uint32) for _ in range(2))
            if leaves.allowed is not None:
                self._single[i] = _single(leaves.allowed[order], word, flags, size)
            else:
                has = leaves.low[order] <= leaves.high[order]
                np.bitwise_or.at(down, (leaves.low[order][has], word[has]), flags[has])
                np.bitwise_or.at(up, (leaves.high[order][has], word[has]), flags[has])
            if leaves.allowed is None and leaves.missing is not None:
                missing = leaves.missing[order]
                self._missing[i] = np.zeros(size, dtype=np.uint32)
                np.bitwise_or.at(self._missing[i], word[missing], flags[missing])
            _accumulate(down, clock)
            _accumulate(up[::-1], clock)
            self._down.append(down)
            self._up.append(up)
        self._offset = np.arange(size) * (BITS + 1)

    def met(self, low: Cells, high: Cells) -> Masks:
        """Leaves that boxes low..high of cells meet, both shape (n, axes); masks (n, words of all trees)."""
        masks = np.broadcast_to(self.full, (len(low), len(self.full)))
        for i in range(low.shape[1]):
            masks = masks & self.slab(i, low[:, i], high[:, i])
        return masks

    def slab(self, axis: int, low: Cells, high: Cells) -> Masks:
        """Leaves that meet low..high on one axis, whatever the others."""
        if axis in self._single:
            if np.array_equal(low, high):
                return self._single[axis][low]
            if axis not in self._pairs:
                self._pairs[axis] = _pairs(self._single[axis])
            return self._pairs[axis][low, high]
        if axis in self._missing:  # the first cell stands apart from the interval of the others
            after = np.minimum(np.maximum(low, 1), len(self._up[axis]) - 1)
            met = self._down[axis][high] & self._up[axis][after]
            return met | np.where((low == 0)[:, None], self._missing[axis], np.uint32(0))
        return self._down[axis][high] & self._up[axis][low]

    def best(self, masks: Masks) -> Array:
        """Largest reachable value per tree, shape (n, trees); -inf where no leaf is left."""
        lowest = masks & (~masks + np.uint32(1))
        slot = np.maximum((lowest.astype(np.float32).view(np.int32) >> 23) - 126, 0)
        values: Array = self.value.ravel()[slot + self._offset]
        if self.words > 1:
            values = values.reshape(len(masks), self.trees, self.words).max(axis=2)
        return values

    def bound(self, masks: Masks) -> Array:
        """The largest scores of boxes that meet these leaves, shape (n,): the sum of the trees' largest
        values, added as the deployed model adds. No point in a box has a larger score."""
        return self.forest.total(self.best(masks))

    def cells_of_leaves(self, axes: Sequence[CellAxis]) -> Iterator[dict[int, list[NDArray[np.bool_]]]]:
        """Tree by tree, per leaf number (bit) and axis: which cells the leaf can be reached from."""
        singles = self.cell_masks(axes)
        for t in range(self.trees):
            self.clock.check()
            words = slice(t * self.words, (t + 1) * self.words)
            bits = np.flatnonzero(_bits(self.full[words]).ravel())
            on = [_bits(cells[:, words]).reshape(len(cells), -1) for cells in singles]
            yield {int(b): [cells[:, b] for cells in on] for b in bits}

    def cell_masks(self, axes: Sequence[CellAxis]) -> list[Masks]:
        """Leaves that meet each single cell, per axis, shape (cells, words of all trees)."""
        masks = []
        for i, axis in enumerate(axes):
            self.clock.check()
            masks.append(self.slab(i, np.arange(len(axis)), np.arange(len(axis))))
        return masks

    def decided(self, masks: Masks) -> NDArray[np.bool_]:
        """Whether every tree has one leaf left, so that the bound is the score; shape (n,)."""
        decided: NDArray[np.bool_] = ((masks & (masks - np.uint32(1))) == 0).all(axis=1)
        if self.words > 1:
            used = (masks != 0).reshape(len(masks), self.trees, self.words).sum(axis=2) <= 1
            decided &= used.all(axis=1)
        return decided


def best_cuts(
    table: LeafTable, low: Cells, high: Cells, masks: Masks, bound: Array, threshold: float
) -> tuple[Cells, Cells, Masks, Masks]:
    """Where to cut boxes of cells: halfway on the axis on which both halves' largest scores fall most towards
    the threshold.

    Parameters
    ----------
    low, high
        Boxes (n, axes), none a single point.
    masks, bound
        The leaves they meet and their largest scores.

    Returns
    -------
    tuple
        Axis and last cell of the lower half, (n,) each, and the masks of both halves.
    """
    size = len(bound)
    best = np.full(size, -1.0)
    axis, cut = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    halved = np.zeros((2, *masks.shape), dtype=masks.dtype)
    excess = np.maximum(bound - threshold, 1e-300)
    for i in range(low.shape[1]):
        wide = np.flatnonzero(high[:, i] > low[:, i])
        if not len(wide):
            continue
        from_, to, whole = low[wide, i], high[wide, i], masks[wide]
        at = np.minimum(from_ + (to - from_) // 2, to - 1)
        halves = whole & table.slab(i, from_, at), whole & table.slab(i, at + 1, to)
        lost = [np.minimum((bound[wide] - table.bound(h)) / excess[wide], 1.0) for h in halves]
        merit = 10.0 * np.minimum(*lost) + np.maximum(*lost)
        better = merit > best[wide]
        chosen = wide[better]
        best[chosen], axis[chosen], cut[chosen] = merit[better], i, at[better]
        halved[0][chosen], halved[1][chosen] = halves[0][better], halves[1][better]
    return axis, cut, halved[0], halved[1]


@dataclass(frozen=True)
class _Met:
    """Which cells of one axis each leaf can be reached from.

    Attributes
    ----------
    reachable
        Whether there are any, shape (leaves,).
    low, high
        First and last of them, where they are consecutive; the cell of a missing value does not count.
    missing
        Whether the cell of a missing value, if the axis has one, is among them, shape (leaves,).
    allowed
        All of them, shape (leaves, cells), where they need not be consecutive; else None.
    """

    reachable: NDArray[np.bool_]
    low: Cells
    high: Cells
    missing: NDArray[np.bool_] | None = None
    allowed: NDArray[np.bool_] | None = None

    @staticmethod
    def of(leaves: Leaves, axis: CellAxis) -> _Met:
        """The cells of an axis that each leaf can be reached from."""
        if in_order(axis):
            [(column, cells)] = axis.columns
            first = np.searchsorted(cells, leaves.low[:, column], side="left")
            last = np.searchsorted(cells, leaves.high[:, column], side="right") - 1
            missing = leaves.missing[:, column] if may_be_missing(axis) else None
            reachable = first <= last
            return _Met(reachable if missing is None else reachable | missing, first, last, missing)
        good = np.ones((len(leaves.node), len(axis)), dtype=bool)
        for column, cells in axis.columns:
            good &= leaves.reached(column, cells)
        none = np.zeros(len(good), dtype=np.int64)
        return _Met(np.logical_or.reduce(good, axis=1), none, none, None, good)

    def least(self, cost: Array) -> Array:
        """A lower bound of what each leaf's cells cost, inf where there are none, (leaves,): exact, unless
        cells are consecutive and their costs do not fall towards one of them from both sides."""
        if self.allowed is not None:
            least: Array = np.where(self.allowed, cost, np.inf).min(axis=1, initial=np.inf)
            return least
        low, high = np.minimum(self.low, len(cost) - 1), np.maximum(self.high, 0)
        start, steps = int(cost.argmin()), np.diff(cost)
        falls_towards = (steps[:start] <= 0.0).all() and (steps[start:] >= 0.0).all()
        found = cost[np.clip(start, low, high)] if falls_towards else np.full(len(low), cost[start])
        if self.missing is not None:
            found = np.where(self.missing, np.minimum(found, cost[0]), found)
        return np.where(self.reachable, found, np.inf)


def _single(allowed: NDArray[np.bool_], word: NDArray[np.int64], flags: Masks, size: int) -> Masks:
    """Masks for every cell of an axis whose leaves allow sets of cells, shape (cells, size)."""
    single = np.zeros((allowed.shape[1], size), dtype=np.uint32)
    for cell, masks in enumerate(single):
        chosen = allowed[:, cell]
        np.bitwise_or.at(masks, word[chosen], flags[chosen])
    return single


def _pairs(single: Masks) -> Masks:
    """Masks for every interval of cells from those for every cell, shape (cells, cells, size)."""
    pairs = np.zeros((len(single), *single.shape), dtype=np.uint32)
    for low in range(len(single)):
        pairs[low, low:] = np.bitwise_or.accumulate(single[low:], axis=0)
    return pairs


def _accumulate(masks: Masks, clock: Clock) -> None:
    """Add to each row's leaves those of the rows before; the clock is looked at between groups of columns."""
    for first in range(0, masks.shape[1], _TOGETHER):
        clock.check()
        part = masks[:, first : first + _TOGETHER]
        part[:] = np.bitwise_or.accumulate(part, axis=0)


def _bits(words: Masks) -> NDArray[np.bool_]:
    """Words (..., n) as Booleans (..., n, 32), lowest bit first."""
    bits: NDArray[np.bool_] = (words[..., None] >> np.arange(BITS, dtype=np.uint32)) & np.uint32(1) != 0
    return bits
