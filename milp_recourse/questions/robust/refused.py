"""Boxes of cells that a tree ensemble refuses entirely, and the cases that keeping out of them makes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.conditions import Condition
from milp_recourse.problem.enclosure import round_down
from milp_recourse.problem.forest import MISSING, TreeEnsemble

Cells = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RefusedBox:
    """A box of cells in which every input is refused.

    Attributes
    ----------
    low, high
        First and last cell of every column, shape (columns,).
    """

    low: Cells
    high: Cells

    def interval(self, forest: TreeEnsemble, column: int) -> tuple[float, float]:
        """The ends of a column's values in the box, (above, up to]; infinite where the box has no end."""
        cuts = forest.cuts[column]
        first, last = int(self.low[column]), int(self.high[column])
        above = -math.inf if first <= 0 else float(cuts[first - 1])
        return above, math.inf if last >= len(cuts) else float(cuts[last])


@dataclass(eq=False)
class Case:
    """A node of the search: the ways out of boxes taken so far.

    Attributes
    ----------
    box, parts
        The refused box that the case was split over, and a case per way out of it, with the way; None and
        nothing where it was not split.
    """

    ways: tuple[Condition, ...]
    box: RefusedBox | None = None
    parts: list[tuple[Condition, Case]] = field(default_factory=list)


class Refusals:
    """Finds boxes of refused inputs around an input that is refused.

    Parameters
    ----------
    above
        Scores above this number are accepted.
    """

    def __init__(self, forest: TreeEnsemble, above: float) -> None:
        self.forest, self.above = forest, above
        leaves = forest.leaves
        self._all = forest.every_leaf
        self._starts = np.cumsum([0, *(len(tree.value) for tree in leaves[:-1])])

    def around(self, row: NDArray[np.float64], groups: Sequence[Sequence[int]]) -> RefusedBox:
        """A box of refused inputs around a refused row that cannot be widened along any group of columns.

        Parameters
        ----------
        row
            The classifier's columns, shape (columns,).
        groups
            The columns of each feature that can vary; none is missing in ``row``. First each group is tried
            without any restriction, in this order; then each single column that has to be restricted is
            widened as far as possible, in this order. Several columns that have to be restricted stay fixed.
        """
        cells = np.array([_cell(cuts, v) for cuts, v in zip(self.forest.cuts, row.tolist(), strict=True)])
        low, high = cells.copy(), cells.copy()
        restricted = [group for group in groups if not self._free(low, high, group)]
        for group in restricted:
            if len(group) == 1:
                self._widen(low, high, group[0])
        return RefusedBox(low, high)

    def _free(self, low: Cells, high: Cells, group: Sequence[int]) -> bool:
        """Widen columns to all values (a missing one is not among them) if the box is still refused; return
        whether they were."""
        before = low[list(group)].copy(), high[list(group)].copy()
        for c in group:
            low[c], high[c] = 0, len(self.forest.cuts[c])
        if self._refused(low, high):
            return True
        low[list(group)], high[list(group)] = before
        return False

    def _widen(self, low: Cells, high: Cells, column: int) -> None:
        """Move both ends of a column outward as far as the whole box is still refused, by bisection."""
        least, most = 0, int(low[column])
        while least < most:
            low[column] = (least + most) // 2
            least, most = (
                (least, int(low[column])) if self._refused(low, high) else (int(low[column]) + 1, most)
            )
        low[column] = most
        least, most = int(high[column]), len(self.forest.cuts[column])
        while least < most:
            high[column] = (least + most + 1) // 2
            least, most = (
                (int(high[column]), most) if self._refused(low, high) else (least, int(high[column]) - 1)
            )
        high[column] = least

    def _refused(self, low: Cells, high: Cells) -> bool:
        """Whether the sum of each tree's largest leaf that the box can reach is refused."""
        all_ = self._all
        missing = low == MISSING
        met = (all_.low <= high) & (all_.high >= low) & (all_.low <= all_.high)
        if missing.any():
            met = np.where(missing, all_.missing, met)
        values = np.where(met.all(axis=1), all_.value, -np.inf)
        top = np.maximum.reduceat(values, self._starts)
        return bool(self.forest.total(top[None])[0] <= self.above)


def keeping_out(
    interval: tuple[float, float], missed: tuple[Fraction, Fraction]
) -> Iterator[tuple[str, float]]:
    """Limits of a double such that no number value + e is seen as a double of an interval, for the e allowed.

    What is seen is the nearest double.

    Parameters
    ----------
    interval
        The interval (above, up to].
    missed
        The least and the largest e.

    Yields
    ------
    tuple
        ``at_most`` or ``at_least``, and the limit: no other double on this side suffices.
    """
    above, last = interval
    if above > -math.inf:
        yield "at_most", _seen_at_most(above, missed[1])
    if last < math.inf:
        yield "at_least", -_seen_at_most(-math.nextafter(last, math.inf), -missed[0])


def _seen_at_most(end: float, e: Fraction) -> float:
    """The largest double whose sum with e is seen as a double of at most ``end``."""
    middle = (Fraction(end) + Fraction(math.nextafter(end, math.inf))) / 2
    value = round_down(middle - e)
    exact = Fraction(value) == middle - e
    return math.nextafter(value, -math.inf) if exact and float(middle) > end else value


def _cell(cuts: NDArray[np.float64], value: float) -> int:
    return MISSING if math.isnan(value) else int(np.searchsorted(cuts, value, side="left"))
