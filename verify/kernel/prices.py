"""Leaves closed by prices: one minimum per action and one per tree (section 7.3)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

from verify.kernel.box import FREE, Box, Budget, Signs
from verify.kernel.checks import Clock, Empty, Rejected, multipliers, shares
from verify.kernel.configuration import Configuration
from verify.kernel.forms import ONE, ZERO, is_constant
from verify.kernel.problem import Interval
from verify.kernel.trees import Ensemble, Inside, options

Key = tuple[str, int, int]
"""A "cell" of a feature, or the "leaf" of a tree, by its node."""


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


Gone = frozenset[Key]
"""What tables took out on the way to a node."""


class Prices:
    """What follows from a configuration's tables; its actions must move nothing but themselves."""

    def __init__(self, configuration: Configuration, tables: Tables) -> None:
        self.configuration, self.tables, self.forests = configuration, tables, configuration.forests
        features = configuration.problem.model.features
        if configuration.one_suffices:
            raise Rejected("prices where one of several sums suffices: allowed in cases (7.4)")
        self.trees = [(part, tree) for part, forest in enumerate(self.forests) for tree in forest.trees]
        self.goals = [score_needed(forest) for forest in self.forests]
        self.actions = [j for j, f in enumerate(features) if f.name in configuration.acted]
        check_cells(configuration, tables.cells)
        cells, self.seen = dict(zip(self.actions, tables.cells, strict=True)), list[Any]()
        for j, f in enumerate(features):
            value = configuration.values[f.name]
            if j not in cells and not is_constant(value):
                raise Rejected("prices need actions that move nothing else (section 7.3)")
            known = cells.get(j, [(value.get(ONE, ZERO),) * 2])
            ends = [None] if f.name in configuration.missing else known
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
            total, rises = self._terms(k, ends, gone)
        except Empty:
            return gone
        return gone | {key for key, more in rises.items() if total + more >= target}

    def merged(self, ends: Sequence[Interval], gone: Any) -> Any:
        """What is gone where, of cells from which the same leaves can be reached, the cheapest stays."""
        inside, found = self._inside(ends, gone), set[Key]()
        met: dict[Key, list[tuple[int, int]]] = {key: [] for key in self._cells(inside)}
        for t in range(len(self.trees)):
            for number, _, left in self._leaves(t, inside, gone):
                for key in self._cells(left):
                    met[key].append((t, number))
        for i, j in enumerate(self.actions):
            stay = set()
            for _, c in sorted((self._paid(i, c, ends[i]), c) for c, _ in inside[j]):
                mine = tuple(met["cell", j, c])
                if mine in stay:
                    found.add(("cell", j, c))
                stay.add(mine)
        return gone | found

    def _paid(self, i: int, c: int, box: Interval) -> tuple[Fraction, Fraction]:
        """The least cost of what of an action's cell is in a box, and what enters the maximum."""
        low, high = self.tables.cells[i][c]
        return self.configuration.terms[i].ends(max(low, box[0]), min(high, box[1]))[0]

    def _cells(self, inside: Inside) -> list[Key]:
        """Every cell of actions."""
        return [("cell", j, c) for j in self.actions for c, _ in inside[j]]

    def _inside(self, ends: Sequence[Interval], gone: Gone) -> Inside:
        """What is left of a box."""
        found = list(self.seen)
        for j, own, (low, high) in zip(self.actions, self.tables.cells, ends, strict=True):
            met = [c for c, (first, last) in enumerate(own) if first <= high and low <= last]
            found[j] = tuple(self.seen[j][c] for c in met if ("cell", j, c) not in gone)
        return tuple(found)

    def _leaves(self, t: int, inside: Inside, gone: Gone) -> Iterator[tuple[int, float, Inside]]:
        """A tree's leaves that are left."""
        part, tree = self.trees[t]
        for number, value, left in self.forests[part].reached(tree, inside) if all(inside) else ():
            if ("leaf", t, number) not in gone:
                yield number, value, left

    def _terms(self, k: float, ends: Sequence[Interval], gone: Gone) -> tuple[Fraction, dict[Key, Any]]:
        """The bound, and by how much it rises if a cell or a leaf is used; infinite: nothing is left then."""
        table, inside = self.tables.table(k), self._inside(ends, gone)
        share, rates = shares(table.shares, len(ends)), multipliers(table.rates, len(self.forests))
        if not all(inside):
            raise Empty
        rises: dict[Key, Any] = {}
        total = self.configuration.fixed + sum(mu * goal for mu, goal in zip(rates, self.goals, strict=True))
        charged = [
            {j: [table.unit * Fraction(paid[k]) for k in own[j]] for j, paid in prices.items()}
            for own, prices in zip(self.tables.classes, table.prices, strict=True)
        ]
        for i, j in enumerate(self.actions):
            Clock.look()
            rest = {}
            for c, _ in inside[j]:
                cost, most = self._paid(i, c, ends[i])
                rest[c] = cost + share[i] * most - sum(prices[j][c] for prices in charged if j in prices)
            low = min(rest.values())
            total += low
            rises |= {("cell", j, c): value - low for c, value in rest.items()}
        cells = list(rises)
        for t, ((part, _), prices) in enumerate(zip(self.trees, charged, strict=True)):
            energy: dict[int, Fraction] = {}  # by leaf
            least: dict[Key, Any] = dict.fromkeys(cells, math.inf)
            for number, value, left in self._leaves(t, inside, gone):
                lows = {j: min(paid[c] for c, _ in left[j]) for j, paid in prices.items()}
                energy[number] = here = sum(lows.values()) - rates[part] * Fraction(value)
                for key in self._cells(left):
                    _, j, c = key
                    least[key] = min(least[key], here + (prices[j][c] - lows[j] if j in prices else 0))
            if not energy:
                raise Empty
            low = min(energy.values())
            total += low
            rises |= {("leaf", t, number): value - low for number, value in energy.items()}
            rises |= {key: rises[key] + least[key] - low for key in cells}
        return total, rises


class Exact:
    """How boxes of one configuration are bounded: the kernel's own arithmetic; verify/fast has another."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration

    def box(self, ends: Sequence[Interval], slopes: str, signs: Signs, budget: Budget = FREE) -> Box:
        """The bounds on a box; ``slopes`` and ``budget`` for the neurons' intervals."""
        return Box(self.configuration.moved, ends, self.configuration.terms, slopes, signs, budget)

    def prices(self, tables: Tables) -> Prices:
        """The bounds by tables of prices."""
        return Prices(self.configuration, tables)


def check_cells(configuration: Configuration, cells: Sequence[Sequence[Interval]]) -> None:
    """Cells, whose ends are doubles, leave no value of an action's lever interval out (section 7.3)."""
    for (start, end), own, whole in zip(configuration.box, cells, configuration.whole, strict=True):
        first: Fraction | float = start
        for low, high in own:
            if low > first or float(high) != high:
                raise Rejected("cells that leave something out (section 7.3)")
            first = math.floor(high) + 1 if whole else math.nextafter(float(high), math.inf)
        if first <= end:
            raise Rejected("cells that end too soon (section 7.3)")


def score_needed(forest: Ensemble) -> Fraction:
    """What the leaves' exact values add up to at least where the deployed sum, of one part, is accepted."""
    trees = len(forest.trees)
    largest = [max(abs(node) for node in tree if isinstance(node, float)) for tree in forest.trees]
    threshold = Fraction(forest.threshold) * (trees if forest.mean else 1)
    size = sum(map(Fraction, largest)) + abs(Fraction(forest.base)) + abs(threshold)
    roundoff = Fraction(1, 2**24 if forest.single_sum else 2**53)
    return threshold - Fraction(forest.base) - 2 * (trees + 4) * roundoff * size - Fraction(1, 2**1000)
