"""The bounds by prices of :class:`verify.kernel.prices.Prices`, computed in whole numbers.

All amounts are multiples of a grid unit. Others are rounded so that a bound becomes smaller, never larger,
than the kernel's.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property, partial
from itertools import accumulate, groupby
from math import floor, inf
from operator import mul
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from verify.fast.cells import WHOLE, Leaf, Ordered, listed, lowest
from verify.kernel import prices as kernel
from verify.kernel.checks import Clock, Empty, Rejected, multipliers
from verify.kernel.forms import Configuration
from verify.kernel.prices import Tables
from verify.kernel.problem import Interval

KEPT = 16
"""How many tables are kept, those used last: nodes that use the same table are mostly neighbours."""

FINER = 24
"""The grid unit is the unit of prices times 2^-FINER."""

Pair = tuple[int, int]
"""(action, classes of its cells as bits): see :attr:`verify.fast.cells.Leaf.tested`."""


NONE: Mapping[int, list[Leaf]] = MappingProxyType({})


class Counted(Tables, Protocol):
    """The tables as the certificate has them.

    Attributes
    ----------
    classes
        By tree and feature, every cell's class.
    numbered, every
        Likewise, the number of the first of these classes in the document's count, and how many it counts;
        and how many it counts of all.
    """

    classes: list[dict[int, list[int]]]

    numbered: list[dict[int, Pair]]
    every: int

    def counted(self, k: float) -> Any:
        """The k-th table: per class a whole number of the table's unit."""

    def unspread(self, k: float, read: Any) -> tuple[Any, Sequence[float] | None]:
        """The k-th table as the file has it: without prices where they are runs, which come second.

        ``read`` reads numbers in text.
        """


class Left(NamedTuple):
    """The cells and leaves that are left at a node.

    Attributes
    ----------
    cells
        Per action, the cells that are left, as bits.
    trees
        Per tree, the leaves that are left, the largest value first. The classes that they test are classes
        of cells that are left: some of them, not all. The same list object as at the node before if nothing
        changed.
    ends
        The box of the node; None per action before the first box.
    parts
        Per action, what the cells cost of which the box holds a part, in the budget's units: the first of the
        box's cells, the last, both or none.
    reached
        Per action, the classes of its cells to all trees that look at it (as :attr:`Prices.by_cell`).
    open
        The trees of which more than one leaf is left, or one leaf that not every cell leads to.
    settled
        Per part of the ensemble, the sum of the values of the leaves of all other trees.
    """

    cells: tuple[int, ...]
    trees: tuple[list[Leaf], ...]
    ends: tuple[Interval | None, ...]
    parts: tuple[Mapping[int, int], ...]
    reached: tuple[int, ...]
    open: tuple[int, ...]
    settled: tuple[int, ...]


class Prices(kernel.Prices):
    """A configuration's tables of prices; each is read when a node needs it.

    Attributes
    ----------
    looking
        Per action, (tree, place, number of classes) for the trees that look at it: the classes to that tree
        are the bits from ``place`` on.
    by_cell
        Per action and cell, the cell's classes to all these trees, as bits.
    firsts
        Per tree and action, the first cell of each class, and the number of cells.
    charged
        Per tree, the cells and parts that its leaves were last charged for (:meth:`_paid_for`), and what the
        classes that they test cost more than the cheapest cells.
    """

    def __init__(self, configuration: Configuration, tables: Counted, target: Fraction) -> None:
        super().__init__(configuration, tables, target)
        self.written = tables
        self.ordered = Ordered(self, tables.classes)
        self.read: dict[float, Table] = {}
        values = [value.as_integer_ratio() for value in self.ordered.values]
        self.latest: Table | None = None
        self.charged: dict[int, tuple[Any, dict[Pair, int]]] = {}
        self.paid: dict[int, Payments] = {}  # per tree, by the table that was used last
        self.digits = max((below.bit_length() - 1 for _, below in values), default=0)
        self.whole_values = [above << self.digits - below.bit_length() + 1 for above, below in values]
        self._costs: dict[tuple[int, int], tuple[Fraction, Fraction]] = {}
        self.in_units: dict[Fraction, list[dict[int, Pair]]] = {}  # see Table.costs
        self.firsts = [{i: _firsts(classes) for i, classes in own.items()} for own in self.ordered.classes]

    def _looking(self, i: int) -> list[tuple[int, int, int]]:
        """(tree, place of the first class, number of classes) for each tree that looks at an action."""
        own = [(t, len(classes[i]) - 1) for t, classes in enumerate(self.firsts) if i in classes]
        places = accumulate((count for _, count in own), initial=0)
        return [(t, place, count) for (t, count), place in zip(own, places, strict=False)]

    def _by_cell(self, i: int) -> list[int]:
        """For every cell of an action, its class to each tree that looks at the action, as bits."""
        steps: list[list[int]] = [[] for _ in self.ordered.levers[i].cells]
        known, found = 0, []
        for t, place, _ in self.looking[i]:
            for k, c in enumerate(self.firsts[t][i][:-1]):
                steps[c] += [place + k, place + k - 1] if k else [place]
        for own in steps:
            for bit in own:
                known ^= 1 << bit
            found.append(known)
        return found

    def cost(self, i: int, cell: int, box: Interval) -> tuple[Fraction, Fraction]:
        """The least cost, and entry in the cost's maximum, over the part of a cell that is in a box."""
        low, high = self.ordered.levers[i].cells[cell]
        if low < box[0] or high > box[1]:
            return self.configuration.paid(i, max(low, box[0]), min(high, box[1]))[0]
        if (i, cell) not in self._costs:
            self._costs[i, cell] = self.configuration.paid(i, low, high)[0]
        return self._costs[i, cell]

    @cached_property
    def everything(self) -> Any:
        """The cells and leaves of the root."""
        self.looking = [self._looking(i) for i in range(len(self.ordered.levers))]
        self.places = [[place for _, place, _ in own] for own in self.looking]
        self.place = [{t: (place, (1 << n) - 1) for t, place, n in own} for own in self.looking]
        self.by_cell = [self._by_cell(i) for i in range(len(self.ordered.levers))]
        cells = tuple((1 << len(lever.cells)) - 1 for lever in self.ordered.levers)
        reached = tuple(self._reached(i, own) for i, own in enumerate(cells))
        ends, parts = (None,) * len(cells), (WHOLE,) * len(cells)
        every, settled = tuple(range(len(self.trees))), (0,) * len(self.goals)
        nothing = Left(cells, (), ends, parts, reached, every, settled)
        return self._with(nothing, list(self.ordered.leaves))

    def bound(self, k: int, ends: Sequence[Interval], left: Any) -> Fraction | float:
        """As :meth:`verify.kernel.prices.Prices.bound`, rounded down."""
        try:
            table, left = self._table(k), self.within_box(ends, left)
            total: int = table.bound(left)
        except Empty:
            return inf
        if not self._passes(iter(self.largest(left))):
            return inf
        bound: Fraction = total * table.grid + self.configuration.fixed
        return bound

    def largest(self, left: Any) -> list[float]:
        """The largest value of each tree's leaves that are left."""
        return [self.ordered.values[own[0].value] for own in left.trees]

    def taken_out(self, k: int, ends: Sequence[Interval], left: Any) -> Any:
        """What is left below ``["t", k]``: no cells and leaves whose use raises the bound to the target."""
        try:
            table = self._table(k)
            need = -floor((self.configuration.fixed - self.target) / table.grid)
            return table.taken_out(self.within_box(ends, left), need)
        except Empty:
            return left

    def merged(self, ends: Sequence[Interval], left: Any) -> Any:
        """What is left below ``["m"]``: of cells that lead to the same leaves, only the cheapest."""
        try:
            left = self.within_box(ends, left)
        except Empty:
            return left
        steps: list[dict[int, int]] = [{} for _ in left.cells]
        for t in left.open:
            Clock.look()
            for leaf in left.trees[t]:
                number = hash((t, leaf.node))
                for i, mask in leaf.tested:
                    own = steps[i]
                    for a, b in self._runs(t, i, mask):
                        own[a] = own.get(a, 0) + number
                        own[b] = own.get(b, 0) - number
        each = enumerate(zip(left.cells, steps, strict=True))
        kept = tuple(self._cheapest_cells(i, cells, ends[i], own, left) for i, (cells, own) in each)
        return self.cut(left, kept)

    def _runs(self, t: int, i: int, mask: int) -> Sequence[Pair]:
        """The runs of cells in some classes of a tree, as (first cell, first cell behind the run).

        Where cells are intervals of numbers this is one run: a leaf is reached from neighbouring cells.
        """
        if self.ordered.levers[i].numbers is not None:
            return [(k, k + 1) for k in listed(mask)]
        first = self.firsts[t][i]
        return ((first[lowest(mask)], first[mask.bit_length()]),)

    def _cheapest_cells(self, i: int, cells: int, box: Interval, steps: dict[int, int], left: Left) -> int:
        """An action's cells without those that lead to the same leaves as a cheaper one.

        Parameters
        ----------
        steps
            By cell, the change at it of the sum of the numbers (hashes) of the leaves that can be reached.
            Cells between two changes lead to the same leaves; others with equal sums are compared leaf by
            leaf.
        """
        borders = sorted(steps)
        sums = list(accumulate([steps[c] for c in borders], initial=0))
        stand: dict[int, list[int]] = {}  # by sum, the cheapest cell of each set of leaves reached

        def cheapest(run: list[int]) -> int:
            return run[0] if len(run) == 1 else min(run, key=lambda c: (self.cost(i, c, box), c))

        for place, run in groupby(listed(cells), lambda c: bisect_right(borders, c)):
            Clock.look()
            best, others = cheapest(list(run)), stand.setdefault(sums[place], [])
            for k, other in enumerate(others):
                if self._alike(i, best, other, left):
                    others[k] = cheapest([best, other])
                    break
            else:
                others.append(best)
        return sum(1 << c for some in stand.values() for c in some)

    def _alike(self, i: int, a: int, b: int, left: Left) -> bool:
        """Whether two cells lead to the same leaves."""
        for t in left.open:
            Clock.look()
            classes = self.ordered.classes[t]
            for leaf in left.trees[t]:
                for j, mask in leaf.tested:
                    if j == i and (mask >> classes[i][a] ^ mask >> classes[i][b]) & 1:
                        return False
        return True

    def cut(self, left: Left, cells: tuple[int, ...], leaves: Mapping[int, list[Leaf]] = NONE) -> Left:
        """What is left if only these cells are, and of the trees in ``leaves`` only these leaves.

        No cell, where what is left costs the target.
        """
        budget = self.ordered.budget
        each = enumerate(zip(cells, left.parts, strict=True))
        least = [budget.least(i, own, parts) if own else budget.most for i, (own, parts) in each]
        if (room := budget.most - sum(least)) <= 0:
            return left._replace(cells=(0,) * len(cells))
        changed: dict[int, dict[int, int]] = {}
        reached, open_ = list(left.reached), set(left.open)
        for i, (before, after) in enumerate(zip(left.cells, cells, strict=True)):
            if before != after:
                reached[i] = now = self._reached(i, after)
                gone = left.reached[i] ^ now
                while gone:
                    t, place, classes = self.looking[i][bisect_right(self.places[i], lowest(gone)) - 1]
                    if t in open_:
                        changed.setdefault(t, {})[i] = now >> place & (1 << classes) - 1
                    gone &= -1 << place + classes
        trees = list(left.trees)
        for t, some in leaves.items():
            trees[t] = some
        for t, own in changed.items():
            trees[t] = _within(trees[t], own)
        for t in left.open:
            trees[t] = self._paid_for(t, trees[t], cells, left.parts, least, room)
        return self._with(left._replace(cells=cells, reached=tuple(reached)), trees)

    def _paid_for(
        self,
        t: int,
        leaves: list[Leaf],
        cells: Sequence[int],
        parts: Sequence[Mapping[int, int]],
        least: Sequence[int],
        room: int,
    ) -> list[Leaf]:
        """A tree's leaves whose cells cost less than ``room`` more than the cheapest cells, ``least``."""
        Clock.look()
        now = list(zip(cells, parts, strict=True))
        then, known = self.charged.get(t, (now, {}))
        if then != now:
            same = [a == b for a, b in zip(now, then, strict=True)]
            known = {pair: more for pair, more in known.items() if same[pair[0]]}
        self.charged[t] = now, known
        found, budget = list[Leaf](), self.ordered.budget
        for leaf in leaves:
            paid = 0
            for pair in leaf.tested:
                if (more := known.get(pair)) is None:
                    i, mask = pair
                    own = sum((1 << b) - (1 << a) for a, b in self._runs(t, i, mask))
                    more = known[pair] = budget.least(i, own & cells[i], parts[i]) - least[i]
                paid += more
            if paid < room:
                found.append(leaf)
        return found if len(found) < len(leaves) else leaves

    def _with(self, left: Left, trees: list[list[Leaf]]) -> Left:
        """``left`` with these leaves of the trees; trees that are now settled are no longer open."""
        still, settled = [], list(left.settled)
        for t in left.open:
            leaves = trees[t]
            if len(leaves) == 1 and not leaves[0].tested:
                settled[self.trees[t][0]] += self.whole_values[leaves[0].value]
            else:
                still.append(t)
        return left._replace(trees=tuple(trees), open=tuple(still), settled=tuple(settled))

    def _reached(self, i: int, cells: int) -> int:
        """The classes of some cells of an action, to all trees that look at it, as bits."""
        found, by_cell = 0, self.by_cell[i]
        for c in listed(cells):
            found |= by_cell[c]
        return found

    def met(self, t: int, left: Left, i: int) -> int:
        """The classes of the cells that are left of an action, to a tree that looks at it, as bits."""
        place, every = self.place[i][t]
        return left.reached[i] >> place & every

    def _read(self, k: float) -> Any:
        return Table(self, self.written.counted(k))

    def _table(self, k: float) -> Any:
        self.read[k] = self.read.pop(k) if k in self.read else self._read(k)
        if len(self.read) > KEPT:
            del self.read[next(iter(self.read))]
        if self.latest is not self.read[k]:
            self.latest, self.paid = self.read[k], {}
        return self.read[k]

    def within_box(self, ends: Sequence[Interval], before: Any) -> Any:
        """What is left in a box, of what was left ``before`` (empty at the root: everything)."""
        left: Left = before or self.everything
        inside, parts = list(left.cells), list(left.parts)
        for i, (now, then) in enumerate(zip(ends, left.ends, strict=True)):
            if now is then:
                continue
            (low, high), cells = now, self.ordered.levers[i].cells
            first = bisect_left(cells, low, key=lambda cell: cell[1])
            last = bisect_right(cells, high, key=lambda cell: cell[0]) - 1
            inside[i] &= (2 << last) - (1 << first) if first <= last else 0
            cut = [(c, *cells[c]) for c in {first, last} if first <= last]
            cut = [(c, max(a, low), min(b, high)) for c, a, b in cut if a < low or b > high]
            parts[i] = {c: self.ordered.budget.paid(i, a, b) for c, a, b in cut}
        cells_, parts_ = tuple(inside), tuple(parts)
        if cells_ != left.cells or parts_ != left.parts:
            left = self.cut(left._replace(parts=parts_), cells_)
        if not all(left.cells):
            raise Empty
        return left._replace(ends=tuple(ends))


def _within(leaves: list[Leaf], changed: dict[int, int]) -> list[Leaf]:
    """The leaves that can still be reached if of these actions only these classes are left, as bits."""
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
    """The first cell of every class, then the number of cells: classes ascend with the cells."""
    return [bisect_left(classes, k) for k in range(classes[-1] + 2)]


class Header:
    """What a table has besides prices.

    Attributes
    ----------
    grid
        The grid unit, in units of the cost.
    nu
        What an action that costs anything costs more.
    start
        What bounds start from: what the score must reach, less ``nu`` for every action that there may be.
    rates
        Per part of the ensemble, what a unit of its score is worth, in grid units.
    """

    def __init__(self, prices: Prices, given: Any) -> None:
        self.prices = prices
        at = {j: i for i, j in enumerate(prices.actions)}
        if given.unit <= 0 or any(
            len(own) != len(prices.firsts[t][at[j]]) - 1
            for t, tree in enumerate(given.prices)
            for j, own in tree.items()
        ):
            raise Rejected("a fault of verify/files: prices not one per class, or no unit above 0")
        self.grid: Fraction = given.unit / 2**FINER
        self.shares = multipliers("shares", given.shares, len(prices.actions), most=1)
        rates = multipliers("mu times weights", given.rates, len(prices.goals))
        self.nu, most = given.nu << FINER, prices.configuration.problem.most
        demanded = sum(map(mul, rates, prices.goals)) / self.grid
        self.start: int = floor(demanded) - (self.nu and self.nu * int(most))
        self.rates: list[Fraction] = [mu / self.grid / 2**prices.digits for mu in rates]

    def shared(self, costs: dict[Any, Any], key: Any, fresh: Any) -> Any:
        """The costs of tables with the same unit, or ``fresh`` ones; those of units used last are kept."""
        if any(self.shares):
            return fresh
        costs[key] = costs.pop(key, fresh)
        if len(costs) > KEPT:
            del costs[next(iter(costs))]
        return costs[key]

    def worth(self, part: int, value: int) -> int:
        """What a sum of leaves' values, as a whole number, adds to the bound."""
        rate = self.rates[part]
        return -value * rate.numerator // rate.denominator

    def cost(self, i: int, c: int, box: Interval) -> Pair:
        """The least cost over the part of a cell that is in a box, its share of the maximum included, and
        whether any of it is above 0."""
        cost, most = self.prices.cost(i, c, box)
        if self.shares[i] and most:
            cost += self.shares[i] * most
        whole = cost.numerator * self.grid.denominator // (cost.denominator * self.grid.numerator)
        return whole, bool(cost or most)


class Table(Header):
    """One table of prices.

    Attributes
    ----------
    paid
        Per tree and action, the price of each class, in units of prices.
    taken
        Per action and cell, the prices that all trees pay for it.
    rest, costs
        Per action and cell, once computed: the cost less these prices, with ``nu`` where it counts; the cost,
        and whether it is above 0.
    paying
        The trees that pay any prices.
    """

    def __init__(self, prices: Prices, given: Any) -> None:
        super().__init__(prices, given)
        at, view = {j: i for i, j in enumerate(prices.actions)}, prices.ordered
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
        fresh: list[dict[int, Pair]] = [{} for _ in view.levers]
        self.costs = self.shared(prices.in_units, self.grid, fresh)
        self.paying = [t for t, paid in enumerate(self.paid) if paid]

    def bound(self, left: Left) -> int:
        """The least cost of an accepted action in these cells and leaves, without the fixed part."""
        total = self.start + sum(min(self._left_over(i, left)) for i in range(len(left.cells)))
        trees, settled = self._trees(left)
        return total + settled + sum(tree.least for tree in trees.values())

    def taken_out(self, left: Left, need: int) -> Left:
        """What is left without the cells and leaves whose use raises the bound to ``need``."""
        total, rests, dead = self.start, [], [0] * len(left.cells)
        for i in range(len(left.cells)):
            rests.append(self._left_over(i, left))
            total += min(rests[-1])
        steps = [[0] * len(lever.cells) for lever in self.prices.ordered.levers]
        trees, settled = self._trees(left)
        total += settled + sum(tree.least for tree in trees.values())
        for t, tree in trees.items():
            firsts = self.prices.firsts[t]
            for i, more in tree.rises().items():
                before, own = 0, steps[i]
                for k in listed(tree.met(i)):
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
        below = {t: trees[t].below(need - total) for t in left.open if trees[t].most >= need - total}
        return self.prices.cut(left, tuple(kept), below)

    def _trees(self, left: Left) -> tuple[dict[int, Payments], int]:
        """The payments of trees that are open or pay prices, and what all other trees add to the bound."""
        settled, trees, known = list(left.settled), {}, self.prices.paid
        for t in left.open:
            if t not in known or known[t].leaves is not left.trees[t]:
                known[t] = Payments(self, t, left)
            trees[t] = known[t]
        for t in self.paying:
            if t not in trees:
                trees[t] = Payments(self, t, left)
                settled[self.prices.trees[t][0]] -= self.prices.whole_values[left.trees[t][0].value]
        return trees, sum(map(self.worth, range(len(settled)), settled))

    def _left_over(self, i: int, left: Left) -> list[int]:
        """For each cell of an action, its least cost less what all trees pay for it."""
        rest, inside, own = self.rest[i], listed(left.cells[i]), self.prices.ordered.levers[i].cells
        found = []
        for c in inside:
            if c not in rest:
                if c not in self.costs[i]:
                    self.costs[i][c] = self.cost(i, c, own[c])
                cost, counts = self.costs[i][c]
                rest[c] = cost + self.nu * counts - (self.taken[i][c] << FINER)
            found.append(rest[c])
        for place in (0, -1) if left.parts[i] else ():  # only these may be in the box in part
            c, box = inside[place], left.ends[i]
            assert box is not None
            cost, counts = self.cost(i, c, box)
            found[place] = cost + self.nu * counts - (self.taken[i][c] << FINER)
        return found


class Payments:
    """What one tree adds to the bound: its *payment* for a leaf is the cells' prices less mu times the value.

    Attributes
    ----------
    least
        The smallest payment.
    most
        The largest payment less the smallest.
    free
        Per action that the tree pays for, the smallest price of a class that is left.
    more
        What is paid above ``free`` for the classes that a leaf tests.
    energies
        Per leaf, its payment without ``free``; ``best`` is the smallest.
    """

    def __init__(self, table: Table, t: int, left: Left) -> None:
        Clock.look()
        self.leaves, self.paid = left.trees[t], table.paid[t]
        if not self.leaves:
            raise Empty
        paid, values, rate = self.paid, table.prices.whole_values, table.rates[table.prices.trees[t][0]]
        above, below = -rate.numerator, rate.denominator
        self.met = partial(table.prices.met, t, left)
        self.free = {i: min([own[k] for k in listed(self.met(i))]) for i, own in paid.items()}
        self.more: dict[Pair, int] = {}
        self.energies = [values[value] * above // below for _, value, _ in self.leaves]
        if paid:
            self._charge()
        self.best, self.most = min(self.energies), max(self.energies) - min(self.energies)
        self.least = self.best + (sum(self.free.values()) << FINER)
        self._rises: dict[int, dict[int, int]] | None = None

    def _charge(self) -> None:
        """Add to the leaves' energies what is paid above ``free`` for the classes that they test."""
        paid, free, more, energies = self.paid, self.free, self.more, self.energies
        for n, (_, _, tested) in enumerate(self.leaves):
            for pair in tested:
                i, mask = pair
                if i in paid:
                    if pair not in more:
                        own = paid[i]
                        more[pair] = min([own[k] for k in listed(mask)]) - free[i] << FINER
                    energies[n] += more[pair]

    def rises(self) -> dict[int, dict[int, int]]:
        """Per action and class, by how much the smallest payment rises if the action is in that class.

        A class that no leaf is reached from has no entry. An action for whose classes nothing rises, because
        the leaf with the smallest payment does not look at it and the tree pays it nothing, has none either.
        """
        if self._rises is None:
            self._rises = self._found_rises()
        return self._rises

    def _found_rises(self) -> dict[int, dict[int, int]]:
        leaves, more, best = self.leaves, self.more, self.best
        ranked = sorted(zip(self.energies, range(len(leaves)), strict=True))
        # per action, energies without what is paid for it, with classes; of leaves open to all only the least
        reached = {i: list[Pair]() for i in self.paid}
        reached |= {i: [] for i, _ in leaves[ranked[0][1]].tested}  # to others that leaf is open
        everywhere = dict[int, int]()
        for energy, n in ranked:
            tested = leaves[n].tested
            for pair in tested:
                i, mask = pair
                if i in reached and (i in self.paid or i not in everywhere):
                    reached[i].append((energy - more.get(pair, 0), mask))
            if len(everywhere) < len(reached):
                for i in reached.keys() - everywhere.keys() - {i for i, _ in tested}:
                    everywhere[i] = energy
        found = {}
        for i, each in reached.items():
            every, own, free = self.met(i), self.paid.get(i), self.free.get(i, 0)
            if i in everywhere:
                each.append((everywhere[i], every))
            each.sort()
            rise = {}
            for energy, mask in each:
                for k in listed(mask & every):
                    rise[k] = energy - best + (own[k] - free << FINER if own else 0)
                every &= ~mask
                if not every:
                    break
            found[i] = rise
        return found

    def below(self, room: int) -> list[Leaf]:
        """The leaves whose payment exceeds the smallest by less than ``room``."""
        most = room + self.best
        return [leaf for leaf, energy in zip(self.leaves, self.energies, strict=True) if energy < most]
