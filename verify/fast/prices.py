"""Leaves closed by prices as the kernel does, in whole numbers (:class:`verify.kernel.prices.Prices`).

Everything is counted in grid units; what is not whole is rounded so that a bound only ever errs downwards:
the kernel's bound is never smaller.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from math import floor
from operator import mul
from typing import Any, NamedTuple

from verify.fast.cells import Leaf, Ordered, listed
from verify.kernel import prices as kernel
from verify.kernel.checks import Clock, Empty, multipliers, shares
from verify.kernel.configuration import Configuration
from verify.kernel.costs import Interval
from verify.kernel.prices import Tables

FINER = 24
"""The grid is finer than the unit of prices by so many binary digits."""


class Left(NamedTuple):
    """What tables left on the way to a node.

    Attributes
    ----------
    cells
        Per action, as bits.
    leaves
        Per tree, most valuable first. What they test is told apart by the cells that are left.
    """

    cells: tuple[int, ...]
    leaves: tuple[list[Leaf], ...]


class Prices(kernel.Prices):
    """A configuration's tables of prices, each read when a node first needs it."""

    def __init__(self, configuration: Configuration, tables: Tables, where: str) -> None:
        super().__init__(configuration, tables, where)
        self.ordered = Ordered(self)
        self.read: dict[float, Table] = {}
        values = [value.as_integer_ratio() for value in self.ordered.values]
        self.digits = max(below.bit_length() - 1 for _, below in values)
        self.whole_values = [above << self.digits - below.bit_length() + 1 for above, below in values]
        self._costs: dict[tuple[int, int], tuple[Fraction, Fraction]] = {}
        self._met: list[dict[int, dict[int, int]]] = [{i: {} for i in own} for own in self.ordered.classes]
        self.groups = [{i: _groups(classes) for i, classes in own.items()} for own in self.ordered.classes]

    def cost(self, i: int, cell: int) -> tuple[Fraction, Fraction]:
        """The least cost of a cell of an action, and what enters the maximum."""
        found = self._costs.get((i, cell))
        if found is None:
            term, (low, high) = self.configuration.terms[i], self.ordered.levers[i].cells[cell]
            found = self._costs[i, cell] = term.ends(low, high)[0]
        return found

    def met(self, t: int, i: int, cells: int) -> int:
        """The classes of some cells, to one tree."""
        known = self._met[t][i]
        if cells not in known:
            known[cells] = sum(1 << k for k, (_, mask) in enumerate(self.groups[t][i]) if cells & mask)
        return known[cells]

    def start(self) -> Any:
        """All cells and leaves."""
        return Left(
            tuple((1 << len(lever.cells)) - 1 for lever in self.ordered.levers), tuple(self.ordered.leaves)
        )

    def bound(self, k: int, ends: Sequence[Interval], left: Any) -> Fraction | None:
        """What actions in what is left of a box cost at least by table k; None: nothing is left."""
        try:
            table = self._table(k)
            total = table.bound(self._within_box(ends, left), left)
        except Empty:
            return None
        return total * table.grid + self.configuration.fixed

    def taken_out(self, k: int, ends: Sequence[Interval], left: Any, target: Fraction) -> Any:
        """What is left below a node, each cell and leaf by which the bound rises to the target being gone."""
        try:
            table = self._table(k)
            need = -floor((self.configuration.fixed - target) / table.grid)
            return table.taken_out(self._within_box(ends, left), left, need)
        except Empty:
            return left

    def merged(self, ends: Sequence[Interval], left: Any) -> Any:
        """What is left where, of cells from which the same leaves can be reached, the cheapest stays."""
        try:
            inside = self._within_box(ends, left)
        except Empty:
            return left
        trees = tuple(self.within(t, leaves, inside) for t, leaves in enumerate(left.leaves))
        sets: list[list[tuple[int, dict[int, int]]]] = [[] for _ in inside]
        for t, leaves in enumerate(trees):
            Clock.look()
            by_class: dict[int, dict[int, int]] = {}
            for place, leaf in enumerate(leaves):
                for i, mask in leaf.tested:
                    own = by_class.setdefault(i, {})
                    for k in listed(mask):
                        own[k] = own.get(k, 0) | 1 << place
            for i, own in by_class.items():
                sets[i].append((t, own))
        kept = [self._dearer_gone(i, cells, sets[i]) for i, cells in enumerate(inside)]
        return Left(tuple(kept), tuple(self.within(t, leaves, kept) for t, leaves in enumerate(trees)))

    def _dearer_gone(self, i: int, cells: int, sets: list[tuple[int, dict[int, int]]]) -> int:
        """An action's cells without those for which a cheaper one stands; by tree, the leaves of classes."""
        classes = [(self.ordered.classes[t][i], own) for t, own in sets]
        stay = set()
        kept = 0
        for c in sorted(listed(cells), key=lambda c: (self.cost(i, c), c)):
            Clock.look()
            mine = tuple([own.get(known[c], 0) for known, own in classes])
            kept |= 0 if mine in stay else 1 << c
            stay.add(mine)
        return kept

    def within(self, t: int, leaves: list[Leaf], cells: Sequence[int]) -> list[Leaf]:
        """The leaves that some cells lead to, and what they test of these."""
        found, classes = [], dict[int, int]()
        for leaf in leaves:
            some = []
            for i, mask in leaf.tested:
                known = classes.get(i)
                if known is None:
                    known = classes[i] = self.met(t, i, cells[i])
                reached = mask & known
                if not reached:
                    break
                if reached != known:
                    some.append((i, reached))
            else:
                found.append(Leaf(leaf.node, leaf.value, tuple(some)))
        return found

    def _table(self, k: float) -> Table:
        if k not in self.read:
            self.read[k] = Table(self, self.tables.table(k))
        return self.read[k]

    def _within_box(self, ends: Sequence[Interval], left: Left) -> list[int]:
        """The cells that are left in a box."""
        inside = []
        for lever, cells, (low, high) in zip(self.ordered.levers, left.cells, ends, strict=True):
            first = bisect_left(lever.cells, low, key=lambda cell: cell[1])
            last = bisect_right(lever.cells, high, key=lambda cell: cell[0]) - 1
            met = cells & ((2 << last) - (1 << first)) if first <= last else 0
            if not met:
                raise Empty
            inside.append(met)
        return inside


def _groups(classes: Sequence[int]) -> list[tuple[int, int]]:
    """The first cell of every class, and its cells as bits: classes ascend with the cells."""
    first = [bisect_left(classes, k) for k in range(classes[-1] + 1)]
    return [(a, (1 << b) - (1 << a)) for a, b in pairwise([*first, len(classes)])]


class Table:
    """One table of prices."""

    def __init__(self, prices: Prices, given: kernel.Table) -> None:
        self.prices, view = prices, prices.ordered
        self.grid = given.unit / 2**FINER
        self.shares = shares(given.shares, len(view.levers), prices.where)
        rates = multipliers(given.rates, len(prices.goals), prices.where)
        at = {j: i for i, j in enumerate(prices.actions)}
        self.paid = [{at[j]: list(map(int, own)) for j, own in tree.items()} for tree in given.prices]
        steps = [[0] * len(lever.cells) for lever in view.levers]
        for groups, paid in zip(prices.groups, self.paid, strict=True):
            for i, own in paid.items():
                before = 0
                for (first, _), price in zip(groups[i], own, strict=True):
                    steps[i][first] += price - before
                    before = price
        self.taken = [list(accumulate(own)) for own in steps]
        self.rest: list[dict[int, int]] = [{} for _ in view.levers]
        self.start = floor(sum(map(mul, rates, prices.goals)) / self.grid)
        worth = [
            [-value * rate.numerator // (rate.denominator << prices.digits) for value in prices.whole_values]
            for rate in (mu / self.grid for mu in rates)
        ]
        self.worth = [worth[part] for part, _ in prices.trees]

    def bound(self, inside: list[int], left: Left) -> int:
        """What actions in some cells and leaves cost at least, without the fixed part."""
        total = self.start + sum(min(self._left_over(i, cells)) for i, cells in enumerate(inside))
        for t in range(len(self.paid)):
            total += Payments(self, t, inside, left.leaves[t], False).least
        return total

    def taken_out(self, inside: list[int], left: Left, need: int) -> Left:
        """What is left of some cells and leaves, without those that by themselves cost as much as needed."""
        total, rests, dead = self.start, [], [0] * len(inside)
        for i, cells in enumerate(inside):
            rests.append(self._left_over(i, cells))
            total += min(rests[-1])
        steps = [[0] * len(lever.cells) for lever in self.prices.ordered.levers]
        trees = []
        for t, groups in enumerate(self.prices.groups):
            tree = Payments(self, t, inside, left.leaves[t], True)
            total += tree.least
            trees.append(tree)
            for i, more in tree.rises().items():
                before = 0
                for k in listed(tree.classes[i]):
                    first, mask = groups[i][k]
                    if k in more:
                        steps[i][first] += more[k] - before
                        before = more[k]
                    else:
                        dead[i] |= mask
        kept = []
        for i, (cells, rest, step) in enumerate(zip(inside, rests, steps, strict=True)):
            rises, least = list(accumulate(step)), total - min(rest)
            open_ = (c for c, own in zip(listed(cells), rest, strict=True) if least + own + rises[c] < need)
            kept.append(sum(1 << c for c in open_) & ~dead[i])
        return Left(tuple(kept), tuple(tree.below(need - total, tuple(kept)) for tree in trees))

    def _left_over(self, i: int, cells: int) -> list[int]:
        """The least costs of an action's cells less what all trees pay for them."""
        rest, found = self.rest[i], []
        for c in listed(cells):
            if c not in rest:
                cost, most = self.prices.cost(i, c)
                least = floor((cost + self.shares[i] * most if most else cost) / self.grid)
                rest[c] = least - (self.taken[i][c] << FINER)
            found.append(rest[c])
        return found


class Payments:
    """What a tree pays at least for its leaves within reach of some cells.

    Attributes
    ----------
    least
        For the leaf it pays least for.
    """

    def __init__(self, table: Table, t: int, inside: list[int], leaves: list[Leaf], whole: bool) -> None:
        Clock.look()
        self.prices, self.t, self.leaves = table.prices, t, leaves
        self.paid = table.paid[t]
        met, worth = table.prices.met, table.worth[t]
        tests = {i for leaf in leaves for i, _ in leaf.tested} if whole else ()
        self.classes: dict[int, int] = {i: met(t, i, inside[i]) for i in {*self.paid, *tests}}
        self.free = {i: self._cheapest(i, self.classes[i]) for i in self.paid}
        base, classes, paid = sum(self.free.values()) << FINER, self.classes, self.paid
        known: dict[tuple[int, int], int] = {}
        self.known = known
        self.energy: dict[int, int] = {}
        best = None
        for node, value, tested in leaves:
            energy = worth[value]
            if not (whole or paid or best is None):
                break  # without prices the first leaf within reach, the most valuable, pays least
            for i, mask in tested:
                if i not in classes:
                    classes[i] = met(t, i, inside[i])
                reached = mask & classes[i]
                if not reached:
                    break
                if i in paid:
                    more = known.get((i, reached))
                    if more is None:
                        more = known[i, reached] = self._cheapest(i, reached) - self.free[i] << FINER
                    energy += more
            else:
                if whole:
                    self.energy[node] = energy
                best = energy if best is None or energy < best else best
        if best is None:
            raise Empty
        self.best, self.least = best, best + base

    def _cheapest(self, i: int, classes: int) -> int:
        own = self.paid[i]
        return min([own[k] for k in listed(classes)])

    def rises(self) -> dict[int, dict[int, int]]:
        """By how much it pays more, per action and class that leads to a leaf."""
        energies = [(leaf.tested, self.energy[leaf.node]) for leaf in self.leaves if leaf.node in self.energy]
        found = {}
        for i, classes in self.classes.items():
            without: dict[
                int, int
            ] = {}  # by the classes a leaf is reached from, without what is paid for them
            for tested, energy in energies:
                reached = classes
                for j, mask in tested:
                    if j == i:
                        reached = mask & classes
                here = energy - self.known.get((i, reached), 0) if reached != classes else energy
                if here < without.get(reached, here + 1):
                    without[reached] = here
            more: dict[int, int] = {}
            for reached, here in without.items():
                for k in listed(reached):
                    if here < more.get(k, here + 1):
                        more[k] = here
            own, free = self.paid.get(i), self.free.get(i, 0)
            extra = {k: (own[k] - free) << FINER if own else 0 for k in more}
            found[i] = {k: here - self.best + extra[k] for k, here in more.items()}
        return found

    def below(self, room: int, kept: tuple[int, ...]) -> list[Leaf]:
        """The leaves that cost less, with what they test of the cells that are kept."""
        cheap = [
            leaf for leaf in self.leaves if self.energy.get(leaf.node, room + self.best) - self.best < room
        ]
        return self.prices.within(self.t, cheap, kept)
