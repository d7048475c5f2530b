"""Leaves closed by prices: one minimum per action and one per tree (section 7.3)."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, Protocol

from verify.kernel.box import Box
from verify.kernel.checks import ZERO, Clock, Rejected, multipliers
from verify.kernel.forms import ONE, Configuration
from verify.kernel.problem import Interval
from verify.kernel.trees import Ensemble, Inside, options

Key = tuple[str, int, int]
"""("cell", feature's number, cell's number) or ("leaf", tree's number, node's number)."""


class Table(NamedTuple):
    """A table of prices.

    Attributes
    ----------
    shares
        For each action, its share of the cost's maximum; None: zeros.
    rates
        For each part of the ensemble, the multiplier mu of its score.
    nu
        What a cell that costs anything costs more; that times the most actions is taken off the bound.
    prices
        By tree, then by feature's number, the price of each cell; no entry: all are 0.
    """

    shares: Sequence[float] | None
    rates: Sequence[Fraction]
    nu: Fraction
    prices: Sequence[Mapping[int, Sequence[Fraction]]]


class Tables(Protocol):
    """A certificate's tables, read for a box of a configuration. Any prices of cells that cover it are valid.

    ``box``: an interval per action; ``cells``: for each action, intervals of its values.
    """

    box: Sequence[Interval]
    cells: list[list[Interval]]

    def table(self, k: float) -> Table:
        """The k-th table; raises :class:`Rejected` where there is none."""


Removed = frozenset[Key]
"""The cells and leaves that tables took out on the way to a node (section 7.5)."""


class Prices:
    """The bounds that a configuration's tables prove, for boxes inside theirs.

    ``target`` is what they have to prove; ``compared`` has, for every feature, its cells as trees compare
    them. Raises :class:`Rejected` where an action moves another feature, or one of several parts suffices.
    """

    def __init__(self, configuration: Configuration, tables: Tables, target: Fraction) -> None:
        self.configuration, self.tables, self.forests = configuration, tables, configuration.forests
        features, self.target = configuration.model.features, target
        if configuration.one_suffices:
            raise Rejected("allowed: only in cases, because combine is 'largest' (section 7.4)")
        self.trees = [(part, tree) for part, forest in enumerate(self.forests) for tree in forest.trees]
        self.goals = [score_needed(forest) for forest in self.forests]
        self.actions = [j for j, f in enumerate(features) if f.name in configuration.acted]
        check_cells(configuration, tables)
        cells, self.compared = dict(zip(self.actions, tables.cells, strict=True)), list[Any]()
        for j, f in enumerate(features):
            value = configuration.values[f.name]
            if j not in cells and not value.keys() <= {ONE}:
                raise Rejected(f"an action moves {f.name}, but prices need actions that move nothing else")
            alone = [(value.get(ONE, ZERO),) * 2]
            known = [None] if f.name in configuration.missing else cells.get(j, alone)
            each = [options(f.table, both, self.forests[0].single) for both in known]
            self.compared.append(tuple((c, ranges) for c, [(_, ranges)] in enumerate(each)))

    def bound(self, k: int, ends: Sequence[Interval], removed: Any) -> Fraction | float:
        """The least cost, by table k, of an accepted action in what is left of a box.

        Infinite where nothing is left, or where the trees' largest values are not accepted.
        """
        inside, (bound, _) = self._inside(ends, removed), self._terms(k, ends, removed)
        values = ([v for _, v, _ in self._leaves(t, inside, ends, removed)] for t in range(len(self.trees)))
        return bound if self._passes(max(own, default=-math.inf) for own in values) else math.inf

    def _passes(self, values: Iterator[float]) -> bool:
        """Whether all parts' scores are accepted if the trees have these values."""
        return all(forest.passes(islice(values, len(forest.trees))) for forest in self.forests)

    def taken_out(self, k: int, ends: Sequence[Interval], removed: Any) -> Any:
        """``removed`` and the cells and leaves whose use raises the bound to the target (``["t", k]``)."""
        bound, rises = self._terms(k, ends, removed)
        return removed | {key for key, more in rises.items() if bound + more >= self.target}

    def merged(self, ends: Sequence[Interval], removed: Any) -> Any:
        """``removed`` and, of cells that lead to the same leaves, all but the cheapest: node ``["m"]``."""
        inside, found = self._inside(ends, removed), set(removed)
        met: dict[Key, list[Key]] = {cell: [] for cell in self._cells(inside)}
        for t in range(len(self.trees)):
            for leaf, _, left in self._leaves(t, inside, ends, removed):
                for cell in self._cells(left):
                    met[cell].append(leaf)
        for i, j in enumerate(self.actions):
            stay: dict[Any, int] = {}
            for _, c in sorted((self._paid(i, c, ends[i]), c) for c, _ in inside[j]):
                if stay.setdefault(tuple(met["cell", j, c]), c) != c:
                    found.add(("cell", j, c))
        return frozenset(found)

    def _paid(self, i: int, c: int, box: Interval) -> tuple[Fraction, Fraction]:
        """The least cost, and what enters the maximum, over the part of an action's cell that is in a box."""
        low, high = self.tables.cells[i][c]
        return self.configuration.paid(i, max(low, box[0]), min(high, box[1]))[0]

    def _cells(self, inside: Inside) -> list[Key]:
        """The keys of the actions' cells."""
        return [("cell", j, c) for j in self.actions for c, _ in inside[j]]

    def _inside(self, ends: Sequence[Interval], removed: Removed) -> Inside:
        """For each feature, the cells that a box still holds."""
        found = list(self.compared)
        for j, own, (low, high) in zip(self.actions, self.tables.cells, ends, strict=True):
            met = [c for c, (first, last) in enumerate(own) if first <= high and low <= last]
            found[j] = tuple(self.compared[j][c] for c in met if ("cell", j, c) not in removed)
        return tuple(found)

    def _leaves(self, t: int, inside: Inside, ends: Any, removed: Any) -> Iterator[tuple[Key, float, Inside]]:
        """A tree's leaves that are left and cost less than the target: key, value, and the cells from which
        the leaf is reached."""
        part, tree = self.trees[t]
        for number, value, left in self.forests[part].reached(tree, inside) if all(inside) else ():
            each = ((self._paid(i, c, ends[i])[0] for c, _ in left[j]) for i, j in enumerate(self.actions))
            cheap = self.configuration.fixed + sum(map(min, each)) < self.target
            if cheap and (key := ("leaf", t, number)) not in removed:
                yield key, value, left

    def _terms(self, k: float, ends: Sequence[Interval], removed: Removed) -> tuple[Any, dict[Key, Any]]:
        """The bound, and for every cell and leaf by how much the bound rises if an action uses it.

        An infinite bound or rise says that nothing is left.
        """
        table, inside, rises = self.tables.table(k), self._inside(ends, removed), dict[Key, Any]()
        share = multipliers("shares", table.shares, len(ends), most=1)
        rates = multipliers("mu times weights", table.rates, len(self.forests))
        if not all(inside):
            return math.inf, {}
        total: Any = self.configuration.fixed + sum(mu * g for mu, g in zip(rates, self.goals, strict=True))
        total -= table.nu and table.nu * self.configuration.problem.most
        for i, j in enumerate(self.actions):
            Clock.look()
            for c, _ in inside[j]:
                cost, most = self._paid(i, c, ends[i])
                paid = sum(prices[j][c] for prices in table.prices if j in prices)
                rises["cell", j, c] = cost + share[i] * most + (table.nu if cost or most else 0) - paid
            total += lowered(rises, [("cell", j, c) for c, _ in inside[j]])
        cells = list(rises)
        for t, ((part, _), prices) in enumerate(zip(self.trees, table.prices, strict=True)):
            least: dict[Key, Any] = dict.fromkeys(cells, math.inf)
            found = list[Key]()
            for leaf, value, left in self._leaves(t, inside, ends, removed):
                lows = {j: min(paid[c] for c, _ in left[j]) for j, paid in prices.items()}
                rises[leaf] = here = sum(lows.values()) - rates[part] * Fraction(value)
                found.append(leaf)
                for cell in self._cells(left):
                    _, j, c = cell
                    least[cell] = min(least[cell], here + (prices[j][c] - lows[j] if j in prices else 0))
            if not found:
                return math.inf, {}
            low = lowered(rises, found)
            total += low
            rises |= {cell: rises[cell] + least[cell] - low for cell in cells}
        return total, rises


def lowered(rises: dict[Key, Any], keys: Sequence[Key]) -> Any:
    """Subtract the least of some entries from each of them, and return it."""
    low = min(rises[key] for key in keys)
    rises.update({key: rises[key] - low for key in keys})
    return low


class Exact:
    """How the boxes of one configuration are bounded in exact arithmetic; ``verify/fast`` has another way.

    Attributes
    ----------
    box, prices
        Make a :class:`~verify.kernel.box.Box`, and :class:`Prices` of the configuration's tables.
    """

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.box: Callable[..., Box] = partial(Box, configuration)
        self.prices: Callable[[Any, Fraction], Any] = partial(Prices, configuration)


def check_cells(configuration: Configuration, tables: Tables) -> None:
    """Reject cells that leave out a value of an action's interval in the tables' box. Ends are doubles."""
    for (start, end), own, lattice in zip(tables.box, tables.cells, configuration.lattices, strict=True):
        first: Fraction | float = start
        for low, high in own:
            if low <= first and float(high) == high:
                after = math.nextafter(float(high), math.inf)
                first = max(first, lattice.ceil(after) if lattice else after)
        if first <= end:
            raise Rejected("the checker's own cells leave values out: a fault of verify/files (section 7.3)")


def score_needed(forest: Ensemble) -> Fraction:
    """A lower bound, for every accepted point, of the exact sum of its leaves' values: g in section 7.3.

    ``forest`` is one part of an ensemble. The deployed score is that sum up to rounding.
    """
    trees = len(forest.trees)
    largest = [max(abs(node) for node in tree if isinstance(node, float)) for tree in forest.trees]
    threshold = Fraction(forest.threshold) * (trees if forest.mean else 1)
    size = sum(map(Fraction, largest)) + abs(Fraction(forest.base)) + abs(threshold)
    roundoff = Fraction(1, 2**24 if forest.single_sum else 2**53)
    return threshold - Fraction(forest.base) - 2 * (trees + 4) * roundoff * size - Fraction(1, 2**1000)
