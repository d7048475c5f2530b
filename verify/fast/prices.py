"""Leaves closed by prices as the kernel does, in whole numbers (:class:`verify.kernel.prices.Prices`).

Everything is counted in grid units; what is not whole is rounded so that a bound only ever errs downwards:
the kernel's bound is never smaller.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import accumulate, groupby
from math import floor
from operator import mul
from typing import Any, NamedTuple

from verify.fast.cells import Leaf, Ordered, listed
from verify.kernel import prices as kernel
from verify.kernel.checks import Clock, Empty, multipliers, shares
from verify.kernel.configuration import Configuration
from verify.kernel.prices import Tables
from verify.kernel.problem import Interval

FINER = 24
"""The grid is finer than the unit of prices by so many binary digits."""

Pair = tuple[int, int]
"""An action, and classes of its cells as bits: what a leaf tests."""


class Tree(NamedTuple):
    """What is left of a tree.

    Attributes
    ----------
    met
        Per action that it looks at, the classes that the cells which are left fall into, as bits.
    leaves
        Most valuable first. What they test are some of these classes, neither none nor all.
    """

    met: dict[int, int]
    leaves: list[Leaf]


class Left(NamedTuple):
    """What is left at a node: cells per action, as bits; and trees."""

    cells: tuple[int, ...]
    trees: tuple[Tree, ...]


class Prices(kernel.Prices):
    """A configuration's tables of prices, each read when a node first needs it."""

    def __init__(self, configuration: Configuration, tables: Tables) -> None:
        super().__init__(configuration, tables)
        self.ordered = Ordered(self)
        self.read: dict[float, Table] = {}
        values = [value.as_integer_ratio() for value in self.ordered.values]
        self.digits = max(below.bit_length() - 1 for _, below in values)
        self.whole_values = [above << self.digits - below.bit_length() + 1 for above, below in values]
        self._costs: dict[tuple[int, int], tuple[Fraction, Fraction]] = {}
        self.firsts = [{i: _firsts(classes) for i, classes in own.items()} for own in self.ordered.classes]
        self.looking = [
            [(t, len(own[i]) - 1) for t, own in enumerate(self.firsts) if i in own]
            for i in range(len(self.ordered.levers))
        ]
        self.by_cell = [self._by_cell(i) for i in range(len(self.ordered.levers))]

    def _by_cell(self, i: int) -> list[int]:
        """For every cell of an action, its classes to all trees that look at it, as bits side by side."""
        steps: list[list[int]] = [[] for _ in self.ordered.levers[i].cells]
        place, known, found = 0, 0, []
        for t, classes in self.looking[i]:
            for k, c in enumerate(self.firsts[t][i][:-1]):
                steps[c] += [place + k, place + k - 1] if k else [place]
            place += classes
        for own in steps:
            for bit in own:
                known ^= 1 << bit
            found.append(known)
        return found

    def cost(self, i: int, cell: int, box: Interval) -> tuple[Fraction, Fraction]:
        """The least cost of what of a cell of an action is in a box, and what enters the maximum."""
        term, (low, high) = self.configuration.terms[i], self.ordered.levers[i].cells[cell]
        if low < box[0] or high > box[1]:
            return term.ends(max(low, box[0]), min(high, box[1]))[0]
        found = self._costs.get((i, cell))
        if found is None:
            found = self._costs[i, cell] = term.ends(low, high)[0]
        return found

    def start(self) -> Any:
        """All cells and leaves."""
        trees = (
            Tree({i: (2 << own[-1]) - 1 for i, own in classes.items()}, leaves)
            for classes, leaves in zip(self.ordered.classes, self.ordered.leaves, strict=True)
        )
        return Left(tuple((1 << len(lever.cells)) - 1 for lever in self.ordered.levers), tuple(trees))

    def bound(self, k: int, ends: Sequence[Interval], left: Any) -> Fraction | None:
        """What actions in what is left of a box cost at least by table k; None: nothing is left."""
        try:
            table = self._table(k)
            total = table.bound(self.within_box(ends, left), ends)
        except Empty:
            return None
        return total * table.grid + self.configuration.fixed

    def taken_out(self, k: int, ends: Sequence[Interval], left: Any, target: Fraction) -> Any:
        """What is left below a node, each cell and leaf by which the bound rises to the target being gone."""
        try:
            table = self._table(k)
            need = -floor((self.configuration.fixed - target) / table.grid)
            return table.taken_out(self.within_box(ends, left), ends, need)
        except Empty:
            return left

    def merged(self, ends: Sequence[Interval], left: Any) -> Any:
        """What is left where, of cells from which the same leaves can be reached, the cheapest stays."""
        try:
            left = self.within_box(ends, left)
        except Empty:
            return left
        steps: list[dict[int, int]] = [{} for _ in left.cells]
        for t, tree in enumerate(left.trees):
            Clock.look()
            for leaf in tree.leaves:
                number = hash((t, leaf.node))
                for i, mask in leaf.tested:
                    own = steps[i]
                    for a, b in self._runs(t, i, mask):
                        own[a] = own.get(a, 0) + number
                        own[b] = own.get(b, 0) - number
        each = enumerate(zip(left.cells, steps, strict=True))
        kept = tuple(self._dearer_gone(i, cells, ends[i], own, left.trees) for i, (cells, own) in each)
        return self.cut(left, kept, (tree.leaves for tree in left.trees))

    def _runs(self, t: int, i: int, mask: int) -> Sequence[Pair]:
        """The first cells of runs of cells in some classes, and the cells behind them.

        Numbers: of what is left, no other class is between those from which a leaf can be reached.
        """
        if self.ordered.levers[i].numbers is not None:
            return [(k, k + 1) for k in listed(mask)]
        first = self.firsts[t][i]
        return ((first[(mask & -mask).bit_length() - 1], first[mask.bit_length()]),)

    def _dearer_gone(
        self, i: int, cells: int, box: Interval, steps: dict[int, int], trees: Sequence[Tree]
    ) -> int:
        """An action's cells without those for which a cheaper one stands.

        Parameters
        ----------
        steps
            Where leaves begin and end to be reached, and by how much the sum of their numbers changes there:
            cells with equal sums are compared leaf by leaf unless they are neighbours.
        """
        borders = sorted(steps)
        sums = list(accumulate([steps[c] for c in borders], initial=0))
        stand: dict[int, list[int]] = {}  # by sums, the cheapest cells, no two of which lead to the same

        def cheapest(run: list[int]) -> int:
            return run[0] if len(run) == 1 else min(run, key=lambda c: (self.cost(i, c, box), c))

        for place, run in groupby(listed(cells), lambda c: bisect_right(borders, c)):
            Clock.look()
            best, others = cheapest(list(run)), stand.setdefault(sums[place], [])
            for k, other in enumerate(others):
                if self._alike(i, best, other, trees):
                    others[k] = cheapest([best, other])
                    break
            else:
                others.append(best)
        return sum(1 << c for some in stand.values() for c in some)

    def _alike(self, i: int, a: int, b: int, trees: Sequence[Tree]) -> bool:
        """Whether two cells lead to the same leaves."""
        for classes, tree in zip(self.ordered.classes, trees, strict=True):
            Clock.look()
            for leaf in tree.leaves:
                for j, mask in leaf.tested:
                    if j == i and (mask >> classes[i][a] ^ mask >> classes[i][b]) & 1:
                        return False
        return True

    def cut(self, left: Left, cells: tuple[int, ...], leaves: Iterable[list[Leaf]]) -> Left:
        """What is left where only some cells are left, and only some leaves of every tree."""
        changed: list[dict[int, int]] = [{} for _ in left.trees]
        for i, (before, after) in enumerate(zip(left.cells, cells, strict=True)):
            for t, met in self._met(i, after).items() if before != after else ():
                if met != left.trees[t].met[i]:
                    changed[t][i] = met
        trees = zip(left.trees, leaves, changed, strict=True)
        return Left(cells, tuple(Tree({**tree.met, **own}, _within(some, own)) for tree, some, own in trees))

    def _met(self, i: int, cells: int) -> dict[int, int]:
        """The classes of some cells of an action, to every tree that looks at it."""
        found, by_cell = 0, self.by_cell[i]
        for c in listed(cells):
            found |= by_cell[c]
        met = {}
        for t, classes in self.looking[i]:
            met[t] = found & (1 << classes) - 1
            found >>= classes
        return met

    def _table(self, k: float) -> Table:
        if k not in self.read:
            self.read[k] = Table(self, self.tables.table(k))
        return self.read[k]

    def within_box(self, ends: Sequence[Interval], left: Left) -> Left:
        """What is left in a box."""
        inside = []
        for lever, cells, (low, high) in zip(self.ordered.levers, left.cells, ends, strict=True):
            first = bisect_left(lever.cells, low, key=lambda cell: cell[1])
            last = bisect_right(lever.cells, high, key=lambda cell: cell[0]) - 1
            met = cells & ((2 << last) - (1 << first)) if first <= last else 0
            if not met:
                raise Empty
            inside.append(met)
        cells_ = tuple(inside)
        return left if cells_ == left.cells else self.cut(left, cells_, (tree.leaves for tree in left.trees))


def _within(leaves: list[Leaf], changed: dict[int, int]) -> list[Leaf]:
    """The leaves that can be reached where only some classes of actions are left."""
    if not changed:
        return leaves
    Clock.look()
    found = []
    for leaf in leaves:
        some, same = [], True
        for pair in leaf.tested:
            i, mask = pair
            if i not in changed:
                some.append(pair)
                continue
            known = changed[i]
            reached = mask & known
            if not reached:
                break
            if reached == known:
                same = False
            elif reached == mask:
                some.append(pair)
            else:
                some.append((i, reached))
                same = False
        else:
            found.append(leaf if same else Leaf(leaf.node, leaf.value, tuple(some)))
    return found


def _firsts(classes: Sequence[int]) -> list[int]:
    """The first cell of every class, and what comes behind the last: classes ascend with the cells."""
    return [bisect_left(classes, k) for k in range(classes[-1] + 2)]


class Table:
    """One table of prices."""

    def __init__(self, prices: Prices, given: kernel.Table) -> None:
        self.prices, view = prices, prices.ordered
        self.grid = given.unit / 2**FINER
        self.shares = shares(given.shares, len(view.levers))
        rates = multipliers(given.rates, len(prices.goals))
        at = {j: i for i, j in enumerate(prices.actions)}
        self.paid = [{at[j]: list(map(int, own)) for j, own in tree.items()} for tree in given.prices]
        steps = [[0] * len(lever.cells) for lever in view.levers]
        for firsts, paid in zip(prices.firsts, self.paid, strict=True):
            for i, own in paid.items():
                before, step = 0, steps[i]
                for first, price in zip(firsts[i], own, strict=False):
                    step[first] += price - before
                    before = price
        self.taken = [list(accumulate(own)) for own in steps]
        self.rest: list[dict[int, int]] = [{} for _ in view.levers]
        self.start = floor(sum(map(mul, rates, prices.goals)) / self.grid)
        worth = [
            [-value * rate.numerator // (rate.denominator << prices.digits) for value in prices.whole_values]
            for rate in (mu / self.grid for mu in rates)
        ]
        self.worth = [worth[part] for part, _ in prices.trees]

    def bound(self, left: Left, ends: Sequence[Interval]) -> int:
        """What actions in some cells and leaves cost at least, without the fixed part."""
        total = self.start + sum(
            min(self._left_over(i, cells, ends[i])) for i, cells in enumerate(left.cells)
        )
        return total + sum(Payments(self, t, tree).least for t, tree in enumerate(left.trees))

    def taken_out(self, left: Left, ends: Sequence[Interval], need: int) -> Left:
        """What is left of some cells and leaves, without those that by themselves cost as much as needed."""
        total, rests, dead = self.start, [], [0] * len(left.cells)
        for i, cells in enumerate(left.cells):
            rests.append(self._left_over(i, cells, ends[i]))
            total += min(rests[-1])
        steps = [[0] * len(lever.cells) for lever in self.prices.ordered.levers]
        trees = []
        for t, firsts in enumerate(self.prices.firsts):
            tree = Payments(self, t, left.trees[t])
            total += tree.least
            trees.append(tree)
            for i, more in tree.rises().items():
                before, own = 0, steps[i]
                for k in listed(tree.met[i]):
                    first = firsts[i][k]
                    if k in more:
                        own[first] += more[k] - before
                        before = more[k]
                    else:
                        dead[i] |= (1 << firsts[i][k + 1]) - (1 << first)
        kept = []
        for i, (cells, rest, step) in enumerate(zip(left.cells, rests, steps, strict=True)):
            rises, least = list(accumulate(step)), total - min(rest)
            open_ = (c for c, own in zip(listed(cells), rest, strict=True) if least + own + rises[c] < need)
            kept.append(sum(1 << c for c in open_) & ~dead[i])
        return self.prices.cut(left, tuple(kept), (tree.below(need - total) for tree in trees))

    def _left_over(self, i: int, cells: int, box: Interval) -> list[int]:
        """The least costs of an action's cells less what all trees pay for them."""
        rest, inside = self.rest[i], listed(cells)
        found = []
        for c in inside:
            if c not in rest:
                rest[c] = self._rest(i, c, self.prices.ordered.levers[i].cells[c])
            found.append(rest[c])
        for place in (0, -1):  # only these may be in the box in part
            low, high = self.prices.ordered.levers[i].cells[inside[place]]
            if low < box[0] or high > box[1]:
                found[place] = self._rest(i, inside[place], box)
        return found

    def _rest(self, i: int, c: int, box: Interval) -> int:
        """The least cost of what of a cell is in a box, less what all trees pay for it."""
        cost, most = self.prices.cost(i, c, box)
        if self.shares[i] and most:
            cost += self.shares[i] * most
        least = cost.numerator * self.grid.denominator // (cost.denominator * self.grid.numerator)
        return least - (self.taken[i][c] << FINER)


class Payments:
    """What a tree pays at least for its leaves.

    Attributes
    ----------
    least
        For the leaf it pays least for.
    """

    def __init__(self, table: Table, t: int, tree: Tree) -> None:
        Clock.look()
        if not tree.leaves:
            raise Empty
        self.met, self.leaves, self.paid = tree.met, tree.leaves, table.paid[t]
        worth, paid = table.worth[t], self.paid
        self.free = {i: self._cheapest(i, tree.met[i]) for i in paid}
        self.more: dict[Pair, int] = {}  # what is paid more for what a leaf tests than for any class
        more = self.more
        self.energies = []
        for _, value, tested in tree.leaves:
            energy = worth[value]
            for pair in tested if paid else ():
                if pair not in more:
                    i, mask = pair
                    more[pair] = (self._cheapest(i, mask) - self.free[i] << FINER) if i in paid else 0
                energy += more[pair]
            self.energies.append(energy)
        self.best = min(self.energies)
        self.least = self.best + (sum(self.free.values()) << FINER)

    def _cheapest(self, i: int, classes: int) -> int:
        own = self.paid[i]
        return min([own[k] for k in listed(classes)])

    def rises(self) -> dict[int, dict[int, int]]:
        """By how much it pays more, per action and class that leads to a leaf."""
        low: dict[Pair, int] = {}  # the least energy of leaves that test this, without what is paid for it
        more, best = self.more, self.best
        for leaf, energy in zip(self.leaves, self.energies, strict=True):
            for pair in leaf.tested:
                here = energy - more[pair] if more else energy
                if pair not in low or here < low[pair]:
                    low[pair] = here
        tested: dict[int, dict[int, int]] = {i: {} for i in self.paid}
        for (i, mask), here in low.items():
            least = tested.setdefault(i, {})
            for k in listed(mask):
                if k not in least or here < least[k]:
                    least[k] = here
        order = sorted(range(len(self.leaves)), key=self.energies.__getitem__)
        found = {}
        for i, least in tested.items():
            apart = next((k for k in order if all(j != i for j, _ in self.leaves[k].tested)), None)
            if apart is None:
                rise = {k: here - best for k, here in least.items()}
            else:
                every = self.energies[apart]
                rise = {k: min(least.get(k, every), every) - best for k in listed(self.met[i])}
            if i in self.paid:
                own, free = self.paid[i], self.free[i]
                rise = {k: more_ + (own[k] - free << FINER) for k, more_ in rise.items()}
            found[i] = rise
        return found

    def below(self, room: int) -> list[Leaf]:
        """The leaves that cost less."""
        most = room + self.best
        return [leaf for leaf, energy in zip(self.leaves, self.energies, strict=True) if energy < most]
