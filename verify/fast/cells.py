"""The cells and leaves of :class:`verify.kernel.prices.Prices`, with sets as bits of whole numbers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import floor, inf
from types import MappingProxyType
from typing import Any, NamedTuple

from verify.kernel.checks import Clock
from verify.kernel.prices import Prices
from verify.kernel.problem import Interval
from verify.kernel.trees import Node

Inner = tuple[int, float, int, int, bool | None]

Allowed = dict[int, tuple[int, int] | int]
"""Per action, the cells that are left: the first and the last; for labels with a table, a bit for each."""


MOST_WAYS = 1_000_000
"""The most nodes, plus actions tested above each of them, that finding the leaves of all trees may visit."""


FINE = 48
"""What leaves' cells cost is counted in units of 2^-FINE of what may be paid."""


LONG = 2**11
"""Lists of the places of longer numbers' bits are not kept: a certificate may have many."""

WHOLE: Mapping[int, int] = MappingProxyType({})
"""The costs of cells of which a box holds a part where it holds all of each."""


class Unsuited(Exception):
    """Raised where the kernel has to be asked instead: the leaves would need more memory than it does, or
    cells or classes, which come from outside the trust base, are not those of the trees."""


class Lever(NamedTuple):
    """The values that an action may take, cut into cells on which every tree takes the same branches.

    Attributes
    ----------
    least, most
        The least and the greatest compared value of each cell, in the first column.
    numbers
        For a feature with a table, where each label is a cell: per label, the compared number of each column.
    """

    cells: list[Interval]
    least: list[float]
    most: list[float]
    numbers: list[list[float]] | None


class Budget:
    """What cells cost, and what may be paid: a leaf that costs more does not count (section 7.3).

    Amounts are whole units, rounded down, so that more leaves may count than for the kernel.

    Attributes
    ----------
    most
        The target less the fixed part of the cost.
    costs, cheapest
        Per action, the least cost of each cell; the cell towards which the costs fall from both sides, None
        where there is no such cell.
    room
        What may be paid besides all actions' cheapest cells.
    """

    def __init__(self, prices: Prices) -> None:
        configuration = prices.configuration
        most = prices.target - configuration.fixed
        unit: Fraction = (abs(most) or Fraction(1)) / 2**FINE
        self.most, self.costs, self.cheapest = floor(most / unit), list[list[int]](), list[int | None]()
        self.configuration, self.unit = configuration, unit
        for i, cells in enumerate(prices.tables.cells):
            own = [self.paid(i, *cell) for cell in cells]
            at = own.index(min(own))
            falls = all(a >= b for a, b in pairwise(own[: at + 1]))
            rises = all(a <= b for a, b in pairwise(own[at:]))
            self.costs.append(own)
            self.cheapest.append(at if falls and rises else None)
        self.room = self.most - sum(map(min, self.costs))

    def paid(self, i: int, low: Fraction | float, high: Fraction | float) -> int:
        """The least cost of an action's values from ``low`` to ``high``."""
        return floor(self.configuration.paid(i, low, high)[0][0] / self.unit)

    def least(self, i: int, cells: int, parts: Mapping[int, int] = WHOLE) -> int:
        """The least cost of some cells of an action, given as bits that are not 0.

        ``parts`` has the cost of cells of which a box holds a part.
        """
        found = []
        for c, cost in parts.items():
            if cells >> c & 1:
                found.append(cost)
                cells ^= 1 << c
        return min([*found, self._least(i, cells)] if cells else found)

    def _least(self, i: int, cells: int) -> int:
        own, at = self.costs[i], self.cheapest[i]
        if at is None:
            return min(own[c] for c in listed(cells))
        below, above = cells & (2 << at) - 1, cells >> at
        low = own[below.bit_length() - 1] if below else own[-1]
        return min(low, own[at + lowest(above)]) if above else low

    def more(self, i: int, cells: tuple[int, int] | int | None) -> int:
        """What some cells of an action cost more than its cheapest one; nothing if all are left (None)."""
        own, at = self.costs[i], self.cheapest[i]
        if cells is None:
            return 0
        if isinstance(cells, int):
            return self.least(i, cells) - min(own)
        if at is None:
            return min(own[cells[0] : cells[1] + 1]) - min(own)
        return own[min(max(at, cells[0]), cells[1])] - own[at]


class Leaf(NamedTuple):
    """A leaf of a tree.

    Attributes
    ----------
    node, value
        The numbers of its node in the tree, and of its value in :attr:`Ordered.values`.
    tested
        (action, classes from which the leaf can be reached, as bits). An action from all of whose classes it
        can be reached is left out.
    """

    node: int
    value: int
    tested: tuple[tuple[int, int], ...]


class Ordered:
    """An ensemble over the cells of one configuration's actions, every tree's leaves sorted by value.

    Attributes
    ----------
    levers
        Per action, its cells.
    columns
        Per column of the classifier: (action, the column's number among the action's); or the number compared
        there, if no action moves it; or None if that is missing.
    classes
        Per tree, for each action that it looks at, in order, every cell's class.
    leaves
        Per tree, the leaf with the largest value first.
    values
        All different values of these leaves.
    budget
        Which leaves cost less than what is to be proven. Of the others none is listed.
    """

    def __init__(self, prices: Prices, all_classes: Sequence[Mapping[int, Sequence[int]]]) -> None:
        self.budget = Budget(prices)
        at = {j: i for i, j in enumerate(prices.actions)}
        columns = [(j, k, prices.compared[j]) for j, k in prices.forests[0].places]
        self.columns = [
            (at[j], k) if j in at else ranges and ranges[k][0] for j, k, [(_, ranges), *_] in columns
        ]
        self.levers = []
        for cells, j in zip(prices.tables.cells, prices.actions, strict=True):
            each = [ranges for _, ranges in prices.compared[j]]
            (least, most), rows = zip(*(ranges[0] for ranges in each), strict=True), None
            if prices.configuration.model.features[j].table is not None:
                rows = [[low for low, _ in ranges] for ranges in each]
            self.levers.append(Lever(list(cells), list(least), list(most), rows))
        if any(a[1] >= b[0] for lever in self.levers for a, b in pairwise(lever.cells)):
            raise Unsuited
        trees = [tree for _, tree in prices.trees]
        self.number = dict[float, int]()
        self.room = MOST_WAYS
        self.classes = [{at[j]: own for j, own in tree.items()} for tree in all_classes]
        if not all(map(self._suits, trees, self.classes)):
            raise Unsuited
        found = [list(self._leaves(*own)) for own in zip(trees, self.classes, strict=True)]
        self.values = list(self.number)
        self.leaves = [sorted(own, key=lambda leaf: -self.values[leaf.value]) for own in found]

    def _suits(self, tree: Sequence[Node], classes: Mapping[int, Sequence[int]]) -> bool:
        """Whether the classes ascend with the cells, and no node of the tree divides a cell or a class."""
        for i, own in classes.items():
            steps = {1} if self.levers[i].numbers is not None else {0, 1}
            if own[0] or not {b - a for a, b in pairwise(own)} <= steps:
                return False
        met = [self._between(source, classes) for source in self.columns]
        for node in tree:
            if isinstance(node, float) or not (ends := met[node[0]])[0] <= node[1] < ends[1]:
                continue
            lever, own = self.levers[i := self.columns[node[0]][0]], classes.get(i, ())
            border = bisect_right(lever.least, node[1])
            if (
                len(own) != len(lever.cells)
                or lever.most[border - 1] > node[1]
                or own[border - 1 : border] == own[border : border + 1]
            ):
                return False
        return True

    def _between(self, source: Any, classes: Mapping[int, Sequence[int]]) -> tuple[float, float]:
        """From which threshold of a column on, and below which, a node may divide a cell or a class."""
        if not isinstance(source, tuple):
            return inf, -inf
        lever = self.levers[source[0]]
        if len(classes.get(source[0], ())) != len(lever.cells):
            return -inf, inf
        return (lever.least[0], lever.most[-1]) if lever.numbers is None else (inf, -inf)

    def _leaves(self, tree: Sequence[Node], classes: Mapping[int, Sequence[int]]) -> Iterator[Leaf]:
        waiting = [(0, Allowed(), 0)]  # the third: what the cells cost more than the cheapest ones
        known = dict[Any, tuple[int, int] | None]()  # by action and cells, what a leaf tests
        while waiting:
            Clock.look()
            number, allowed, paid = waiting.pop()
            self.room -= 1 + len(allowed)
            if self.room < 0:
                raise Unsuited
            node = tree[number]
            if isinstance(node, float):
                for each in allowed.items():
                    if each not in known:
                        mask, i = bits(each[1], classes[each[0]]), each[0]
                        known[each] = (i, mask) if mask != (2 << classes[i][-1]) - 1 else None
                some = tuple(filter(None, map(known.__getitem__, allowed.items())))
                yield Leaf(number, self.number.setdefault(node, len(self.number)), some)
                continue
            source, more = self.columns[node[0]], self.budget.more
            for child, left in ((node[2], True), (node[3], False)):
                inside = self._child(node, allowed, left)
                if inside is None:
                    continue
                own = paid
                if isinstance(source, tuple):
                    own += more(source[0], inside[source[0]]) - more(source[0], allowed.get(source[0]))
                if own < self.budget.room:
                    waiting.append((child, inside, own))

    def _child(self, node: Inner, allowed: Allowed, left: bool) -> Allowed | None:
        """The cells that go on to a child; None where there are none."""
        column, threshold, _, _, missing_left = node
        source = self.columns[column]
        if not isinstance(source, tuple):
            goes_left = bool(missing_left) if source is None else source <= threshold
            return allowed if goes_left == left else None
        i, k = source
        lever = self.levers[i]
        before = allowed.get(i)
        if lever.numbers is not None:
            after = sum(1 << c for c, row in enumerate(lever.numbers) if (row[k] <= threshold) == left)
            after &= before if isinstance(before, int) else after
            return {**allowed, i: after} if after else None
        first, last = before if isinstance(before, tuple) else (0, len(lever.cells) - 1)
        border = bisect_right(lever.least, threshold)  # cells from here on go to the right
        first, last = (first, min(last, border - 1)) if left else (max(first, border), last)
        return {**allowed, i: (first, last)} if first <= last else None


def bits(cells: tuple[int, int] | int, classes: Sequence[int]) -> int:
    """The classes of some cells as bits. With a table, cells are given as bits, and each is its own class."""
    if isinstance(cells, int):
        return cells
    first, last = cells
    return (2 << classes[last]) - (1 << classes[first])


def lowest(bits: int) -> int:
    """The place of a whole number's lowest bit."""
    return (bits & -bits).bit_length() - 1


def listed(mask: int) -> Sequence[int]:
    """The places of a whole number's bits, ascending."""
    return _kept(mask) if mask.bit_length() <= LONG else _listed(mask)


def _listed(mask: int) -> Sequence[int]:
    found = []
    while mask:
        lowest = mask & -mask
        found.append(lowest.bit_length() - 1)
        mask ^= lowest
    return found


_kept = lru_cache(2**13)(_listed)
