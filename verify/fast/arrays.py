"""The bounds of :class:`verify.fast.prices.Prices` for all leaves of all trees at once, with numpy.

Only large ensembles are bounded so, and only where numpy is installed. Cells, classes, leaves and bounds are
the same. All amounts are whole numbers: of 64 bits where sums of them cannot overflow, else Python's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from math import floor, inf
from operator import lshift
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from verify.fast.cells import WHOLE, Leaf, Unsuited
from verify.fast.prices import FINER, Header, Prices
from verify.kernel.checks import Clock, Empty
from verify.kernel.problem import Interval

Numbers = NDArray[Any]
"""Whole numbers: places, or amounts as int64 or Python's own."""

MOST_BITS = 58
"""The most binary digits of amounts in 64 bits: sums of some of them have 64, too."""

OPEN = 32
"""How many nodes' leaves are kept as arrays, those used last; others' are worked out again."""

MOST_AMOUNTS = 2**24
"""The most amounts of one kind at a time; where there are more, trees are bounded one by one."""


class Leaves(NamedTuple):
    """Leaves that are left, tree by tree, the largest value first; what they test; and runs of zones.

    What a leaf tests is a *pair*: a slot, that is, a tree with an action that it looks at; and the classes
    from which the leaf is reached. Many leaves have it in common. An action from all of whose cells that are
    left a leaf is reached is not among what it tests.

    Attributes
    ----------
    number
        Per leaf, its place among all leaves.
    leaf, pair
        Per test, the places of the leaf and of the pair here. Each pair is tested.
    slot
        Per pair, its slot.
    of, first, behind
        Per run of zones of a pair (:class:`Left`), the pair's place here, the run's first zone, and the one
        behind it. A pair of a feature with a table may have several runs, others have one.
    """

    number: Numbers
    leaf: Numbers
    pair: Numbers
    slot: Numbers
    of: Numbers
    first: Numbers
    behind: Numbers

    def kept(self, leaves: Numbers, pairs: Numbers) -> Leaves:
        """These leaves without some leaves, and tests of some pairs; both are given as booleans."""
        own = np.flatnonzero(pairs.take(self.pair) & leaves.take(self.leaf))
        pair, tested = self.pair.take(own), np.zeros(len(self.slot), dtype=bool)
        tested[pair] = True
        place, runs = np.cumsum(tested) - 1, np.flatnonzero(tested.take(self.of))
        return Leaves(
            self.number.take(np.flatnonzero(leaves)),
            (np.cumsum(leaves) - 1).take(self.leaf.take(own)),
            place.take(pair),
            self.slot.take(np.flatnonzero(tested)),
            place.take(self.of.take(runs)),
            self.first.take(runs),
            self.behind.take(runs),
        )

    def least(self, each: Numbers) -> Numbers:
        """Per pair, the least of its runs' amounts."""
        if len(self.of) == len(self.slot):
            return each
        return np.minimum.reduceat(each, np.searchsorted(self.of, np.arange(len(self.slot))))

    def sums(self, each: Numbers) -> Numbers:
        """Per leaf, the sum of the amounts of the pairs that it tests."""
        found = np.zeros(len(self.number), each.dtype)
        np.add.at(found, self.leaf, each.take(self.pair))
        return found


class Left(NamedTuple):
    """As :class:`verify.fast.prices.Left`, with all trees' leaves in one.

    A *zone* is made of neighbouring classes of a slot that no pair tells apart; only classes of cells that
    are left count.

    Attributes
    ----------
    alive
        The numbers of the cells that are left.
    first, place, zone
        Of each class of these cells, its first cell, its place among all that the file counts, and its zone.
    zones, slots
        The place of each zone's first class, and of each slot the first zone.
    """

    cells: tuple[int, ...]
    alive: Numbers
    first: Numbers
    place: Numbers
    zone: Numbers
    zones: Numbers
    slots: Numbers
    leaves: Leaves
    ends: tuple[Interval | None, ...]
    parts: tuple[Mapping[int, int], ...]


class Packed(NamedTuple):
    """A :class:`Left` in little room, for nodes that wait; of the leaves a bit each is kept."""

    cells: tuple[int, ...]
    leaves: bytes
    ends: tuple[Interval | None, ...]
    parts: tuple[Mapping[int, int], ...]


class Terms(NamedTuple):
    """The terms of a bound, in grid units.

    Attributes
    ----------
    total
        Their sum.
    rest
        Of each cell that is left, its cost less what all trees pay for it, above the least of its action's.
    price
        Of each class that is left, its price.
    free
        Per slot, the smallest price of a class that is left.
    more
        Per pair, what is paid above that.
    energy
        Per leaf, what the tree pays for it above ``free``, less what its value is worth.
    best, starts
        Per tree, the smallest energy, and the place of its first leaf.
    """

    total: int
    rest: Numbers
    price: Numbers
    free: Numbers
    more: Numbers
    energy: Numbers
    best: Numbers
    starts: Numbers


class Arrays(Prices):
    """As :class:`verify.fast.prices.Prices`. Cells and classes are numbered through all actions and slots.

    Attributes
    ----------
    sizes, cell_from
        How many cells each action has; the first cell of each, and how many there are of all.
    tree, axis, local
        Of each slot, its tree and action, and its place among the tree's slots.
    slot_from, ends
        The first class of each slot, and how many there are of all; the cell behind its last one.
    first_cell, in_file
        Of each class, its first cell, and its place among all that the file counts.
    values, of_tree, nodes
        Of each leaf, its value's place in :attr:`Ordered.values`, its tree, and its node's number there.
    worth, extremes
        Of each leaf, the place of its value among those of all parts; the least and the greatest value.
    charges, dear
        Of each cell, its least cost in the budget's units, at most ``dear``, which is more than may be paid.
    rank, dearest
        Of each cell, its place among its action's cells by cost; the most that one costs.
    costs
        See :attr:`Table.costs`.
    opened
        By its number (:func:`id`), what was packed, and what it was before.
    """

    def __init__(self, found: Prices) -> None:
        vars(self).update(vars(found))  # what has been worked out
        slots = [(t, i) for t, own in enumerate(self.firsts) for i in own]
        leaves = [(t, leaf) for t, own in enumerate(self.ordered.leaves) for leaf in own]
        widest = max(map(len, self.firsts), default=0)
        if not slots or not leaves or max(len(leaves) * widest, self.written.every) > MOST_AMOUNTS:
            raise Unsuited
        self.sizes = [len(lever.cells) for lever in self.ordered.levers]
        self.cell_from = np.cumsum([0, *self.sizes])
        self._number_slots(slots)
        self._note_costs()
        self.values = np.array([leaf.value for _, leaf in leaves], dtype=np.int64)
        self.of_tree = np.array([t for t, _ in leaves], dtype=np.int64)
        self.nodes = np.array([leaf.node for _, leaf in leaves], dtype=np.int64)
        self.worth: Numbers = self.values + [self.trees[t][0] * len(self.whole_values) for t, _ in leaves]
        self.extremes = [min(self.whole_values), max(self.whole_values)]
        self.opened: dict[int, tuple[Packed, Any]] = {}
        everything = self._everything(slots, leaves)
        self.everything = self.cut(everything, everything.cells)

    def _number_slots(self, slots: Sequence[tuple[int, int]]) -> None:
        self.tree, self.axis = np.array(slots, dtype=np.int64).reshape(-1, 2).T.copy()
        counts = [len(self.firsts[t][i]) - 1 for t, i in slots]
        self.slot_from = np.cumsum([0, *counts])
        firsts = [self.cell_from[i] + np.array(self.firsts[t][i][:-1], dtype=np.int64) for t, i in slots]
        self.first_cell = np.concatenate(firsts)
        self.ends = self.cell_from.take(self.axis + 1)
        self.local = np.arange(len(slots)) - np.searchsorted(self.tree, self.tree)
        self.in_file = self._in_file(slots)

    def _note_costs(self) -> None:
        self.dear = max(0, self.ordered.budget.most) + 1
        each = chain.from_iterable(self.ordered.budget.costs)
        self.charges = np.array([min(cost, self.dear) for cost in each], dtype=np.int64)
        self.rank = np.concatenate([self._ranks(i, range(size)) for i, size in enumerate(self.sizes)])
        whole = (self.configuration.paid(i, *own) for i, own in enumerate(self.tables.box))
        self.dearest = max(sum(most) for _, most in whole)
        self.costs: dict[Any, Any] = {}

    def _everything(self, slots: Sequence[tuple[int, int]], leaves: Sequence[tuple[int, Leaf]]) -> Left:
        """All cells and leaves; these are given with their trees. Each class is a zone of its own."""
        place = {slot: s for s, slot in enumerate(slots)}
        leaf, pair, known = list[int](), list[int](), dict[Any, int]()
        for n, (t, one) in enumerate(leaves):
            Clock.look()
            for both in one.tested:
                leaf.append(n)
                pair.append(known.setdefault((t, both), len(known)))
        tested = [(place[t, i], mask) for t, (i, mask) in known]
        first = self.slot_from.tolist()
        runs = [(p, first[s] + a, first[s] + b) for p, (s, mask) in enumerate(tested) for a, b in _runs(mask)]
        columns = [np.array(own, dtype=np.int64) for own in (leaf, pair, [s for s, _ in tested])]
        columns += [*np.array(runs, dtype=np.int64).reshape(-1, 3).T.copy()]
        own = Leaves(np.arange(len(leaves)), *columns)
        cells, each = tuple((1 << size) - 1 for size in self.sizes), np.arange(len(self.first_cell))
        numbers = np.arange(len(self.charges)), self.first_cell, self.in_file, each, each, self.slot_from[:-1]
        return Left(cells, *numbers, own, (None,) * len(cells), (WHOLE,) * len(cells))

    def _in_file(self, slots: Sequence[tuple[int, int]]) -> Numbers:
        """The place of each class among all classes that the file counts."""
        first, at = dict[tuple[int, int], int](), 0
        for t, own in enumerate(self.written.numbered):
            for j, (start, count) in own.items():
                first[t, j], at = at + start, at + count
        each = (first[t, self.actions[i]] + np.arange(len(self.firsts[t][i]) - 1) for t, i in slots)
        return np.concatenate([*each])

    def _ranks(self, i: int, cells: Sequence[int], box: Any = (-inf, inf)) -> Numbers:
        """The places of some cells of an action, by their cost in a box."""
        order = sorted(range(len(cells)), key=lambda n: (self.cost(i, cells[n], box), cells[n]))
        found = np.empty(len(cells), dtype=np.int64)
        found[order] = np.arange(len(cells))
        return found

    def _numbers(self, cells: Sequence[int]) -> Numbers:
        """The numbers of cells, which are given as bits per action."""
        every, count = sum(map(lshift, cells, self.cell_from.tolist())), len(self.charges)
        some = np.frombuffer(every.to_bytes(count + 7 >> 3, "little"), dtype=np.uint8)
        return np.flatnonzero(np.unpackbits(some, count=count, bitorder="little"))

    def _packed(self, left: Any) -> Any:
        """What is left, in little room."""
        if not isinstance(left, Left):
            return left
        flags = np.zeros(len(self.nodes), dtype=bool)
        flags[left.leaves.number] = True
        packed = Packed(left.cells, np.packbits(flags).tobytes(), left.ends, left.parts)
        self._note(packed, left)
        return packed

    def _note(self, packed: Packed, left: Any) -> None:
        self.opened[id(packed)] = packed, left
        if len(self.opened) > OPEN:
            del self.opened[next(iter(self.opened))]

    def within_box(self, ends: Sequence[Interval], before: Any) -> Any:
        """As that of the other path; ``before`` may be packed."""
        if isinstance(before, Packed):
            if id(before) in self.opened:
                left = self.opened.pop(id(before))[1]
            else:
                some = np.frombuffer(before.leaves, dtype=np.uint8)
                flags = np.unpackbits(some, count=len(self.nodes)).astype(bool)
                left = self.everything._replace(ends=before.ends, parts=before.parts)
                left = self.cut(left, before.cells, flags)
            self._note(before, left)
            before = left
        return super().within_box(ends, before)

    def taken_out(self, k: int, ends: Sequence[Interval], left: Any) -> Any:
        """As that of the other path."""
        return self._packed(super().taken_out(k, ends, left))

    def largest(self, left: Any) -> list[float]:
        """As that of the other path."""
        first = self.values[left.leaves.number[self.starts(left.leaves)]]
        return [self.ordered.values[value] for value in first.tolist()]

    def starts(self, leaves: Leaves) -> Numbers:
        """The place of each tree's first leaf."""
        own = self.of_tree[leaves.number]
        found = np.searchsorted(own, np.arange(len(self.trees)))
        if not len(own) or found[-1] == len(own) or (own[found] != np.arange(len(self.trees))).any():
            raise Empty
        return found

    def cut(self, left: Any, cells: tuple[int, ...], leaves: Any = None) -> Any:
        """What is left if only these cells are, and of the leaves only these, given as booleans."""
        Clock.look()
        budget, own, alive = self.ordered.budget, left.leaves, self._numbers(cells)
        count = np.zeros(len(self.charges) + 1, dtype=np.int64)
        count[alive + 1] = 1
        count = np.cumsum(count)  # how many cells are left before each
        starts, paid = count.take(self.cell_from), np.append(self.charges.take(alive), self.dear)
        for i, parts in enumerate(left.parts):
            for c, cost in parts.items():
                if cells[i] >> c & 1:
                    paid[count[self.cell_from[i] + c]] = min(cost, self.dear)
        least = np.minimum.reduceat(paid, starts[:-1])
        room = budget.most - int(least.sum())
        if room <= 0 or not all(cells):
            return left._replace(cells=(0,) * len(cells))
        first, behind = (count.take(ends) for ends in self.ranges(left))
        some, first, behind = first < behind, first.take(own.first), behind.take(own.behind - 1)
        reached = behind - first
        each = least_among(paid, first, np.maximum(behind, first + 1))
        each[reached == 0] = self.dear
        if len(own.of) > len(own.slot):
            reached = np.bincount(own.of, reached)
        axis = self.axis.take(own.slot)
        more = own.least(each) - least.take(axis)
        more[reached == 0] = room
        kept = own.sums(more) < room
        if leaves is not None:
            kept &= leaves
        few = own.kept(kept, reached < np.diff(starts).take(axis))
        return self._zoned(left._replace(cells=cells, alive=alive, leaves=few), count, some)

    def _zoned(self, left: Left, count: Numbers, some: Numbers) -> Left:
        """What is left, without classes of no cell that is left, and with zones as large as pairs allow.

        ``count``: how many cells are left before each; ``some``: in which zones there are any.
        """
        own, before = left.leaves, count.take(left.first)
        stay = np.flatnonzero(before < _next(before, left.zones.take(left.slots), count.take(self.ends)))
        before = np.append(0, np.cumsum(some))
        first, behind, slots = (before.take(places) for places in (own.first, own.behind, left.slots))
        runs = np.flatnonzero(first < behind)
        first, behind = first.take(runs), behind.take(runs)
        border = np.zeros(int(before[-1]) + 1, dtype=np.int64)
        border[first] = border[behind] = border[slots] = border[-1] = 1
        now = np.cumsum(border) - 1
        zone = now.take(before[:-1]).take(left.zone.take(stay))
        return left._replace(
            first=left.first.take(stay),
            place=left.place.take(stay),
            zone=zone,
            zones=np.append(0, np.flatnonzero(zone[1:] != zone[:-1]) + 1),
            slots=now.take(slots),
            leaves=own._replace(of=own.of.take(runs), first=now.take(first), behind=now.take(behind)),
        )

    def ranges(self, left: Any) -> tuple[Numbers, Numbers]:
        """The first cell of each zone, and one behind it; those between it and the next zone are gone."""
        first = left.first.take(left.zones)
        return first, _next(first, left.slots, self.ends)

    def merged(self, ends: Sequence[Interval], left: Any) -> Any:
        """As that of the other path."""
        try:
            left = self.within_box(ends, left)
        except Empty:
            return left
        own = left.leaves
        first, behind = self.ranges(left)
        first, behind = first.take(own.first), behind.take(own.behind - 1)
        odd, number = np.uint64(0x9E3779B97F4A7C15), (own.number + 1).astype(np.uint64)
        number *= odd
        number = (number ^ number >> np.uint64(32)) * odd  # so that few sums of different ones are equal
        each = np.zeros(len(own.slot), dtype=np.uint64)
        np.add.at(each, own.pair, number.take(own.leaf))
        each = each.take(own.of)
        steps = np.zeros(int(self.cell_from[-1]) + 1, dtype=np.uint64)
        border = np.zeros(len(steps), dtype=np.int64)
        np.add.at(steps, first, each)
        np.subtract.at(steps, behind, each)
        border[first] = border[behind] = border[self.cell_from] = 1
        sums, runs = np.cumsum(steps), np.cumsum(border).take(left.alive)
        sizes, rank = [own.bit_count() for own in left.cells], self.rank.take(left.alive)
        of = np.repeat(np.arange(len(sizes)), sizes)
        for i in [i for i, parts in enumerate(left.parts) if parts]:
            inside = left.alive[of == i] - self.cell_from[i]
            rank[of == i] = self._ranks(i, inside.tolist(), ends[i])
        order = np.lexsort((rank, runs))  # the cheapest of each run comes first
        best = order[np.flatnonzero(np.diff(runs[order], prepend=-1))]
        best = best[np.lexsort((rank[best], of[best]))]
        kept, stand, at = [0] * len(sizes), dict[tuple[int, int], list[int]](), left.alive[best]
        for n, i, total in zip(at.tolist(), of[best].tolist(), sums[at].tolist(), strict=True):
            Clock.look()
            others = stand.setdefault((i, total), [])  # by sum, cells that stand for others
            if not any(_alike(n, other, own.of, first, behind) for other in others):
                others.append(n)
                kept[i] |= 1 << n - int(self.cell_from[i])
        return self._packed(self.cut(left, tuple(kept)))

    def _read(self, k: float) -> Any:
        return Table(self, k)


def _next(numbers: Numbers, slots: Numbers, ends: Numbers) -> Numbers:
    """The number behind each, given the first place of each slot, and what is behind its last one."""
    found = np.empty_like(numbers)
    found[:-1] = numbers[1:]
    found[slots[1:] - 1], found[-1] = ends[:-1], ends[-1]
    return found


def _alike(a: int, b: int, pair: Numbers, first: Numbers, behind: Numbers) -> bool:
    """Whether two cells of an action lead to the same leaves, given the pairs and their runs of cells."""
    one, other = (np.flatnonzero((first <= c) & (c < behind)) for c in (a, b))
    return np.array_equal(pair.take(one), pair.take(other))


def _runs(mask: int) -> list[tuple[int, int]]:
    """The runs of a whole number's bits, as (first place, place behind)."""
    found, at = [], 0
    while mask:
        skipped = (mask & -mask).bit_length() - 1
        mask >>= skipped
        long = (~mask & mask + 1).bit_length() - 1
        found.append((at + skipped, at + skipped + long))
        mask, at = mask >> long, at + skipped + long
    return found


def _in_text(text: str) -> tuple[Sequence[float], float, float]:
    """As :func:`verify.files.cells.in_text`."""
    signs = np.frombuffer(f" {text} ".encode("ascii", "replace"), dtype=np.uint8)
    digit, space, minus = signs - np.uint8(48) < 10, signs == 32, signs == 45
    if not (digit[1:] | space[1:] & digit[:-1] | minus[1:] & space[:-1]).all():
        raise ValueError
    found: Any = np.fromstring(text, dtype=np.int64, sep=" ")  # of what needs more bits, the largest
    largest = max(int(found.max()), -int(found.min()))
    every = np.maximum(1, -found)
    return found, largest, int(every.sum(dtype=object if largest * len(every) >> MOST_BITS else np.int64))


def least_among(numbers: Numbers, first: Numbers, behind: Numbers) -> Numbers:
    """The least of some numbers from one place to another, for each of some runs, none of which is empty.

    (By a sparse table: the least of 1, 2, 4, ... numbers from each place on.)
    """
    level, count = _level(behind - first), len(numbers)
    levels = np.empty((int(level.max(initial=0)) + 1, count), numbers.dtype)
    levels[0] = numbers
    for k, above in enumerate(levels[1:]):
        half = 1 << k
        np.minimum(levels[k, :-half], levels[k, half:], out=above[:-half])
        above[-half:] = levels[k, -half:]
    flat, row = levels.reshape(-1), level * count
    least: Numbers = np.minimum(flat.take(row + first), flat.take(row + behind - (1 << level)))
    return least


def _level(lengths: Numbers) -> Numbers:
    """The largest power of 2 that is at most each length, as its exponent: the one of the double."""
    return (lengths.astype(np.float64).view(np.int64) >> 52) - 1023


class Table(Header):
    """As :class:`verify.fast.prices.Table`.

    Attributes
    ----------
    whole, most
        The type of amounts; and one that is more than all of them.
    paid
        The price of each class that the file counts.
    costs
        Of each cell, once computed: its cost, whether it is above 0, and that it is computed.
    energies
        Per part and value, once computed: less what the value is worth; and that it is computed.
    """

    def __init__(self, prices: Arrays, k: float) -> None:
        given, runs = prices.written.unspread(k, _in_text)
        super().__init__(prices, given)
        self.arrays = prices
        self.paid = self._listed(given.prices) if runs is None else self._spread(runs)
        largest = max(int(self.paid.max(initial=0)), -int(self.paid.min(initial=0)))
        values = [abs(self.worth(part, v)) for part in range(len(self.rates)) for v in prices.extremes]
        need = abs(floor((prices.target - prices.configuration.fixed) / self.grid))
        sums = largest * max(len(prices.trees), len(prices.sizes))
        if (sums << FINER).bit_length() > MOST_BITS:  # they may be less
            each = np.abs(self.paid.take(prices.in_file))
            slots = np.maximum.reduceat(each, prices.slot_from[:-1]).astype(np.float64)
            sums = int(max(np.bincount(of, slots).max() for of in (prices.axis, prices.tree)))
        amounts = [sums << FINER, self.nu, *values, floor(prices.dearest / self.grid)]
        bits = max(max(amounts).bit_length(), need.bit_length() + len(prices.trees).bit_length())
        self.whole: Any = np.int64 if bits <= MOST_BITS else object
        self.most = 1 << MOST_BITS + 4 if self.whole is np.int64 else 1 << bits + 64
        cells, worths = int(prices.cell_from[-1]), len(self.rates) * len(prices.whole_values)
        fresh = np.zeros(cells, self.whole), np.zeros(cells, self.whole), np.zeros(cells, bool)
        self.costs = self.shared(prices.costs, (self.grid, self.whole), fresh)
        self.energies = np.zeros(worths, self.whole), np.zeros(worths, bool)

    def _listed(self, given: Sequence[Mapping[int, Sequence[float]]]) -> Numbers:
        """The price of each class that the file counts, from a list per tree and action."""
        prices = self.arrays
        found = np.zeros(prices.written.every, dtype=np.int64)
        for s, (t, i) in enumerate(zip(prices.tree.tolist(), prices.axis.tolist(), strict=True)):
            if (own := given[t].get(prices.actions[i])) is not None:
                found[prices.in_file[prices.slot_from[s] : prices.slot_from[s + 1]]] = own
        return found

    def _spread(self, runs: Sequence[float]) -> Numbers:
        """The price of each class that the file counts, from runs."""
        given = np.concatenate([[0], runs]).astype(np.int64)
        at = np.maximum.accumulate(np.where(given >= 0, np.arange(len(given)), 0))
        times = np.maximum(1, -given)
        times[-1] += self.arrays.written.every + 1 - times.sum()  # one more in front
        found: Numbers = np.repeat(given.take(at), times)[1:]
        return found

    def _along(self, each: Numbers, left: Left) -> Numbers:
        """Per cell that is left, the sum over all trees of what the cell's class has."""
        prices, before = self.arrays, np.append(0, each[:-1])
        before[left.zones.take(left.slots)] = 0
        step = np.zeros(int(prices.cell_from[-1]), each.dtype)
        np.add.at(step, left.first, each - before)
        sums: Numbers = np.cumsum(np.append(0, step), dtype=each.dtype)
        found: Numbers = sums[1:] - np.repeat(sums[prices.cell_from[:-1]], prices.sizes)
        return found.take(left.alive)

    def bound(self, left: Any) -> int:
        """As that of the other path."""
        return self._terms(left).total

    def taken_out(self, left: Any, need: int) -> Any:
        """As that of the other path."""
        terms, prices, leaves = self._terms(left), self.arrays, left.leaves
        room, trees = need - terms.total, prices.of_tree.take(leaves.number)
        cap = max(room, 0)  # what rises by the cap is out
        slot = np.cumsum(np.bincount(left.slots[1:], minlength=len(left.zones)))
        lowest = np.minimum(self._tested(terms, left), self._others(terms, leaves).take(slot))
        rise = lowest - (terms.best.take(prices.tree) + terms.free).take(slot)
        if cap > (1 << MOST_BITS) // len(prices.trees):
            rise = rise.astype(object)
        rise = np.where(lowest >= self.most, cap - terms.free.take(slot), rise)
        rise = np.minimum(rise.take(left.zone) + terms.price, cap)
        kept = terms.rest + self._along(rise, left) < room
        flags = np.zeros(len(prices.charges), dtype=bool)
        flags[left.alive] = kept
        every = int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")
        ends = zip(prices.cell_from.tolist(), prices.sizes, strict=False)
        kept_cells = tuple(every >> at & (1 << size) - 1 for at, size in ends)
        below = terms.energy - terms.best.take(trees) < room
        if kept_cells != left.cells:
            return prices.cut(left, kept_cells, below)
        pairs = np.ones(len(leaves.slot), dtype=bool)
        return left if below.all() else left._replace(leaves=leaves.kept(below, pairs))

    def _tested(self, terms: Terms, left: Left) -> Numbers:
        """Per zone, the least of the energies of leaves that test its action and are reached from it,
        without what they pay for the action."""
        leaves, count = left.leaves, len(left.zones)
        lowest = np.full(len(leaves.slot), self.most, dtype=self.whole)
        np.minimum.at(lowest, leaves.pair, terms.energy.take(leaves.leaf))
        each = (lowest - terms.more).take(leaves.of)
        level = _level(leaves.behind - leaves.first)
        levels = int(level.max(initial=0)) + 1
        found = np.full(levels * count, self.most, dtype=self.whole)
        np.minimum.at(found, level * count + leaves.first, each)
        np.minimum.at(found, level * count + leaves.behind - (1 << level), each)
        for k in range(levels - 1, 0, -1):
            half, above, below = 1 << k - 1, found[k * count :][:count], found[(k - 1) * count :][:count]
            np.minimum(below, above, out=below)
            np.minimum(below[half:], above[:-half], out=below[half:])
        return found[:count]

    def _others(self, terms: Terms, leaves: Leaves) -> Numbers:
        """Per slot, the least energy of the tree's leaves that do not test the action."""
        local, tree, count = self.arrays.local, self.arrays.tree, len(terms.energy)
        each = np.empty((int(local.max()) + 1, count), self.whole)
        each[:] = terms.energy
        each.reshape(-1)[(local.take(leaves.slot) * count).take(leaves.pair) + leaves.leaf] = self.most
        least: Numbers = np.minimum.reduceat(each, terms.starts, axis=1)
        return least.take(local * len(terms.starts) + tree)

    def _terms(self, left: Any) -> Terms:
        """What the bound is the sum of."""
        Clock.look()
        prices, leaves = self.arrays, left.leaves
        starts, sizes = prices.starts(leaves), [own.bit_count() for own in left.cells]
        price = self.paid.take(left.place).astype(self.whole, copy=False) * (1 << FINER)
        rest = self._left_over(left, sizes, self._along(price, left))
        least = np.minimum.reduceat(rest, np.cumsum([0, *sizes[:-1]]))
        zones = np.minimum.reduceat(price, left.zones)
        free = np.minimum.reduceat(zones, left.slots)
        more = leaves.least(least_among(zones, leaves.first, leaves.behind)) - free.take(leaves.slot)
        energy = self._energies(leaves) + leaves.sums(more)
        best = np.minimum.reduceat(energy, starts)
        paid = np.add.reduceat(free, np.flatnonzero(prices.local == 0))
        total = self.start + sum(chain(least.tolist(), paid.tolist(), best.tolist()))
        return Terms(total, rest - np.repeat(least, sizes), price, free, more, energy, best, starts)

    def _left_over(self, left: Any, sizes: Sequence[int], taken: Numbers) -> Numbers:
        """For each cell that is left, its least cost less what all trees pay for it, ``taken``."""
        (costs, counts, known), alive = self.costs, left.alive
        levers, first = self.prices.ordered.levers, self.arrays.cell_from
        for n in alive[~known[alive]].tolist():
            i = int(np.searchsorted(first, n, side="right")) - 1
            costs[n], counts[n] = map(int, self.cost(i, c := n - int(first[i]), levers[i].cells[c]))
            known[n] = True
        found: Numbers = costs[alive] + self.nu * counts[alive] - taken
        ends = np.cumsum(sizes)
        for i, parts in enumerate(left.parts):
            for at in {int(ends[i]) - sizes[i], int(ends[i]) - 1} if parts else ():
                n, box = int(alive[at]), left.ends[i]
                cost, counted = self.cost(i, n - int(first[i]), box)
                found[at] = cost + self.nu * counted - taken[at]
        return found

    def _energies(self, leaves: Leaves) -> Numbers:
        """Less what the values of leaves are worth."""
        at, (found, known) = self.arrays.worth.take(leaves.number), self.energies
        if new := [*{*at[~known.take(at)].tolist()}]:
            whole, width = self.arrays.whole_values, len(self.arrays.whole_values)
            found[new] = [self.worth(n // width, whole[n % width]) for n in new]
            known[new] = True
        energies: Numbers = found.take(at)
        return energies
