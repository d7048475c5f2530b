"""Leaves closed by prices: one minimum per action and one per tree (section 7.3)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

from verify.kernel.box import FREE, Box, Budget, Signs
from verify.kernel.checks import Clock, Empty, Rejected, multipliers, shares
from verify.kernel.configuration import Configuration
from verify.kernel.costs import Interval
from verify.kernel.forms import ONE, ZERO, is_constant
from verify.kernel.trees import Ensemble, Inside, options

Rises = dict[tuple[int, int], Fraction | None]
"""By how much a bound rises if a cell, or a leaf, is used; None: nothing is left then."""


class Table(NamedTuple):
    """Each action's share of the maximum; each sum's multiplier; by tree and feature, every class's price."""

    unit: Fraction
    shares: Sequence[float] | None
    rates: Sequence[Fraction | float]
    prices: Sequence[Mapping[int, Sequence[float]]]


class Tables(Protocol):
    """A certificate's tables, read for a configuration. Any cells that cover its box, any classes will do.

    Attributes
    ----------
    cells
        Per action, intervals of its values.
    classes
        By tree and feature, every cell's class.
    """

    cells: list[list[Interval]]
    classes: list[dict[int, list[int]]]

    def table(self, k: float) -> Table:
        """The k-th."""


class Gone(NamedTuple):
    """What tables took out on the way to a node: (action, cell) and (tree, node of a leaf)."""

    cells: frozenset[tuple[int, int]] = frozenset()
    leaves: frozenset[tuple[int, int]] = frozenset()


class Prices:
    """What follows from a configuration's tables; its actions must move nothing but themselves."""

    def __init__(self, configuration: Configuration, tables: Tables, where: str) -> None:
        self.configuration, self.tables, self.where = configuration, tables, f"{where}.prices"
        self.forests, features = configuration.forests, configuration.problem.features
        if configuration.one_suffices:
            raise Rejected(f"{where}: prices where one of several sums suffices: allowed in cases (7.4)")
        self.trees = [(part, tree) for part, forest in enumerate(self.forests) for tree in forest.trees]
        self.goals = [score_needed(forest) for forest in self.forests]
        self.actions = [j for j, f in enumerate(features) if f.name in configuration.acted]
        check_cells(configuration, tables.cells)
        cells, self.seen = dict(zip(self.actions, tables.cells, strict=True)), list[Any]()
        for j, f in enumerate(features):
            value = configuration.values[f.name]
            if f.name in configuration.missing:
                ends: list[Interval | None] = [None]
            elif j not in cells and not is_constant(value):
                raise Rejected(f"{where}: prices need actions that move nothing else (section 7.3)")
            else:
                ends = [*cells.get(j, [(value.get(ONE, ZERO),) * 2])]
            seen = [options(f.table, both, self.forests[0].single) for both in ends]
            self.seen.append(tuple((c, ranges) for c, [(_, ranges)] in enumerate(seen)))

    def start(self) -> Any:
        """Nothing is taken out at the root."""
        return Gone()

    def bound(self, k: int, ends: Sequence[Interval], gone: Any) -> Fraction | None:
        """What actions in what is left of a box cost at least by table k; None: nothing is left."""
        try:
            return self._terms(k, ends, gone)[0]
        except Empty:
            return None

    def taken_out(self, k: int, ends: Sequence[Interval], gone: Any, target: Fraction) -> Any:
        """What is gone below a node: also each cell and leaf by which the bound rises to the target."""
        try:
            total, *rises = self._terms(k, ends, gone)
        except Empty:
            return gone
        found = [
            frozenset(key for key, more in part.items() if more is None or total + more >= target)
            for part in rises
        ]
        return Gone(gone.cells | found[0], gone.leaves | found[1])

    def merged(self, ends: Sequence[Interval], gone: Any) -> Any:
        """What is gone where, of cells from which the same leaves can be reached, the cheapest stays."""
        inside, found = self._inside(ends, gone), set[tuple[int, int]]()
        met: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for t in range(len(self.trees)):
            for number, _, left in self._leaves(t, inside, gone):
                for key in self._cells(left):
                    met.setdefault(key, []).append((t, number))
        for i, j in enumerate(self.actions):
            stay = set()
            for _, c in sorted((self._paid(i, c, ends[i]), c) for c, _ in inside[j]):
                mine = tuple(met.get((j, c), ()))
                if mine in stay:
                    found.add((j, c))
                stay.add(mine)
        return Gone(gone.cells | found, gone.leaves)

    def _paid(self, i: int, c: int, box: Interval) -> tuple[Fraction, Fraction]:
        """The least cost of what of an action's cell is in a box, and what enters the maximum."""
        low, high = self.tables.cells[i][c]
        return self.configuration.terms[i].ends(max(low, box[0]), min(high, box[1]))[0]

    def _cells(self, inside: Inside) -> list[tuple[int, int]]:
        """Feature and number of every cell of actions."""
        return [(j, c) for j in self.actions for c, _ in inside[j]]

    def _inside(self, ends: Sequence[Interval], gone: Gone) -> Inside:
        """What is left of a box."""
        found = list(self.seen)
        for j, own, (low, high) in zip(self.actions, self.tables.cells, ends, strict=True):
            met = [c for c, (first, last) in enumerate(own) if first <= high and low <= last]
            found[j] = tuple(self.seen[j][c] for c in met if (j, c) not in gone.cells)
        return tuple(found)

    def _leaves(self, t: int, inside: Inside, gone: Gone) -> Iterator[tuple[int, float, Inside]]:
        """A tree's leaves that are left."""
        part, tree = self.trees[t]
        for number, value, left in self.forests[part].reached(tree, inside) if all(inside) else ():
            if (t, number) not in gone.leaves:
                yield number, value, left

    def _terms(self, k: float, ends: Sequence[Interval], gone: Gone) -> tuple[Fraction, Rises, Rises]:
        """The bound, and by how much it rises if a cell or a leaf is used."""
        table, inside, classes = self.tables.table(k), self._inside(ends, gone), self.tables.classes
        share = shares(table.shares, len(ends), self.where)
        rates = multipliers(table.rates, len(self.forests), self.where)
        if not all(inside):
            raise Empty
        cells, leaves = Rises(), Rises()
        total = self.configuration.fixed + sum(mu * goal for mu, goal in zip(rates, self.goals, strict=True))
        charged = [
            {j: [table.unit * Fraction(paid[k]) for k in own[j]] for j, paid in prices.items()}
            for own, prices in zip(classes, table.prices, strict=True)
        ]
        for i, j in enumerate(self.actions):
            Clock.look()
            rest = {}
            for c, _ in inside[j]:
                cost, most = self._paid(i, c, ends[i])
                rest[c] = cost + share[i] * most - sum(prices[j][c] for prices in charged if j in prices)
            low = min(rest.values())
            total += low
            cells |= {(j, c): value - low for c, value in rest.items()}
        for t, ((part, _), prices) in enumerate(zip(self.trees, charged, strict=True)):
            energy: dict[tuple[int, int], Fraction] = {}  # by leaf
            least: dict[tuple[int, int], Fraction] = {}  # by cell
            for number, value, left in self._leaves(t, inside, gone):
                lows = {j: min(paid[c] for c, _ in left[j]) for j, paid in prices.items()}
                energy[t, number] = here = sum(lows.values()) - rates[part] * Fraction(value)
                for j, c in self._cells(left):
                    more = here + (prices[j][c] - lows[j] if j in prices else 0)
                    least[j, c] = min(more, least.get((j, c), more))
            if not energy:
                raise Empty
            low = min(energy.values())
            total += low
            leaves |= {key: value - low for key, value in energy.items()}
            for key, so_far in cells.items():
                cells[key] = so_far + least[key] - low if so_far is not None and key in least else None
        return total, cells, leaves


class Exact:
    """How boxes of one configuration are bounded: the kernel's own arithmetic; verify/fast has another."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration

    def box(self, ends: Sequence[Interval], slopes: str, signs: Signs, budget: Budget = FREE) -> Box:
        """The bounds on a box; ``slopes`` and ``budget`` for the neurons' intervals."""
        return Box(self.configuration.moved, ends, self.configuration.terms, slopes, signs, budget)

    def prices(self, tables: Tables, where: str) -> Prices:
        """The bounds by tables of prices."""
        return Prices(self.configuration, tables, where)


def check_cells(configuration: Configuration, cells: Sequence[Sequence[Interval]]) -> None:
    """Cells, whose ends are doubles, leave no value of an action's lever interval out (section 7.3)."""
    for (start, end), own, whole in zip(configuration.box, cells, configuration.whole, strict=True):
        first: Fraction | float = start
        for low, high in own:
            if low > first or float(high) != high:
                raise Rejected("prices: cells that leave something out (section 7.3)")
            first = math.floor(high) + 1 if whole else math.nextafter(float(high), math.inf)
        if first <= end:
            raise Rejected("prices: cells that end too soon (section 7.3)")


def score_needed(forest: Ensemble) -> Fraction:
    """What the leaves' exact values add up to at least where the deployed sum, of one part, is accepted."""
    trees = len(forest.trees)
    largest = [max(abs(node) for node in tree if isinstance(node, float)) for tree in forest.trees]
    threshold = Fraction(forest.threshold) * (trees if forest.mean else 1)
    size = sum(map(Fraction, largest)) + abs(Fraction(forest.base)) + abs(threshold)
    roundoff = Fraction(1, 2**24 if forest.single_sum else 2**53)
    return threshold - Fraction(forest.base) - 2 * (trees + 4) * roundoff * size - Fraction(1, 2**1000)
