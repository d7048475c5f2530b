"""Leaves closed by prices: one minimum per action and one per tree (section 7.3)."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from verify.kernel.box import FREE, Box, Budget, Signs
from verify.kernel.configuration import Configuration
from verify.kernel.forms import ONE, ZERO, is_constant
from verify.kernel.problem import Feature, Interval
from verify.kernel.shapes import Clock, Empty, Rejected, conform, index, maybe, not_negative, positive
from verify.kernel.trees import Ensemble, Inside, Node, above32, float32, float64, reached, with_item

LARGEST_PRICE = 2.0**53
LISTS = maybe([not_negative])
TABLE = {"unit": positive, "mu": not_negative, "trees": list, "weights?": LISTS, "shares?": LISTS}
Rises = dict[tuple[int, int], Fraction | None]


class Cell(NamedTuple):
    """Values of an action for which every tree takes the same branches; ``numbers`` are what is compared."""

    low: Fraction
    high: Fraction
    numbers: tuple[float, ...]


class View:
    """An ensemble as one configuration's actions see it, which must move nothing but themselves.

    Attributes
    ----------
    columns
        What fills each: an action and which of its numbers; or what is compared, None where missing.
    cells, labelled
        Per action, its cells, ascending; and the actions whose labels have numbers of their own.
    """

    def __init__(self, configuration: Configuration, where: str) -> None:
        assert configuration.trees is not None
        self.forest, acted = configuration.trees, configuration.acted
        self.columns: list[tuple[int, int] | float | None] = []
        self.cells: list[list[Cell]] = []
        self.labelled = {
            acted.index(f.name) for f in configuration.problem.features if f.table and f.name in acted
        }
        for f in configuration.problem.features:
            value = configuration.values[f.name]
            if f.name in acted:
                i = acted.index(f.name)
                self.cells.append(cells(self.forest, f, configuration.box[i], len(self.columns)))
                self.columns += [(i, k) for k in range(f.width)]
            elif f.name in configuration.missing:
                self.columns += [None] * f.width
            elif not is_constant(value):
                raise Rejected(f"{where}: prices need actions that move nothing else (section 7.3)")
            else:
                x = value.get(ONE, ZERO)
                numbers = f.table[int(x)] if f.table else [x]
                self.columns += [self.forest.compared(float64(v)) for v in numbers]

    def classes(self, nodes: Sequence[Node]) -> dict[int, list[int]]:
        """For each action that a tree looks at, every cell's class."""
        looks = [(self.columns[node[0]], node[1]) for node in nodes if not isinstance(node, float)]
        found = {}
        for i in sorted({seen[0] for seen, _ in looks if isinstance(seen, tuple)}):
            cuts = sorted({threshold for seen, threshold in looks if seen == (i, 0)})
            sides = [bisect_left(cuts, cell.numbers[0]) for cell in self.cells[i]]
            keys = list(range(len(sides))) if i in self.labelled else sides
            known = {key: k for k, key in enumerate(sorted(set(keys)))}
            found[i] = [known[key] for key in keys]
        return found

    def side(self, inside: Inside, node: Any, left: bool) -> Inside | None:
        """The cells that go to one side of a node; None where there are none of some action."""
        column, threshold, _, _, missing_left = node
        seen = self.columns[column]
        if not isinstance(seen, tuple):
            goes_left = bool(missing_left) if seen is None else seen <= threshold
            return inside if goes_left == left else None
        i, k = seen
        kept = tuple(c for c in inside[i] if (self.cells[i][c].numbers[k] <= threshold) == left)
        return with_item(inside, i, kept) if kept else None


class Gone(NamedTuple):
    """What tables took out on the way to a node: (action, cell) and (tree, node of a leaf)."""

    cells: frozenset[tuple[int, int]] = frozenset()
    leaves: frozenset[tuple[int, int]] = frozenset()


class Prices:
    """A configuration's tables of prices."""

    def __init__(self, configuration: Configuration, listed: Any, where: str) -> None:
        self.configuration, self.listed, self.where = configuration, listed, f"{where}.prices"
        self.view = View(configuration, where)
        self.trees = self.view.forest.trees
        self.classes = [self.view.classes(tree) for tree in self.trees]
        self.goals = scores_needed(self.view.forest, where)

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
        for t, classes in enumerate(self.classes):
            for number, _, left in self._leaves(t, inside, gone):
                for key in [(i, c) for i in classes for c in left[i]]:
                    met.setdefault(key, []).append((t, number))
        for i, some in enumerate(inside):
            stay = set()
            for _, c in sorted((self._paid(i, c, ends[i]), c) for c in some):
                mine = tuple(met.get((i, c), ()))
                if mine in stay:
                    found.add((i, c))
                stay.add(mine)
        return Gone(gone.cells | found, gone.leaves)

    def _paid(self, i: int, c: int, box: Interval) -> tuple[Fraction, Fraction]:
        """The least cost of what of a cell is in a box, and what enters the maximum."""
        cell = self.view.cells[i][c]
        return self.configuration.terms[i].nearest(max(cell.low, box[0]), min(cell.high, box[1]))

    def _inside(self, ends: Sequence[Interval], gone: Gone) -> Inside:
        """Per action, the cells that are left in a box."""
        return tuple(
            tuple(
                c
                for c, cell in enumerate(own)
                if cell.low <= high and low <= cell.high and (i, c) not in gone.cells
            )
            for i, (own, (low, high)) in enumerate(zip(self.view.cells, ends, strict=True))
        )

    def _leaves(self, t: int, inside: Inside, gone: Gone) -> Iterator[tuple[int, float, Inside]]:
        """A tree's leaves that are left."""
        if not all(inside):
            return
        for number, value, left in reached(self.trees[t], inside, self.view.side):
            if (t, number) not in gone.leaves:
                yield number, value, left

    def _terms(self, k: int, ends: Sequence[Interval], gone: Gone) -> tuple[Fraction, Rises, Rises]:
        """The bound, and by how much it rises if a cell or leaf is used (None: nothing is left)."""
        where, view = f"{self.where}.{k}", self.view
        given = conform(self.listed[k], TABLE, where)
        unit, rates = Fraction(given["unit"]), read_rates(given, len(self.goals), where)
        shares, paid = (
            read_shares(given, len(ends), where),
            read_prices(given["trees"], self.classes, f"{where}.trees"),
        )
        inside = self._inside(ends, gone)
        if not all(inside):
            raise Empty
        cells: Rises = {}
        leaves: Rises = {}
        total = self.configuration.fixed + sum(mu * goal for mu, goal in zip(rates, self.goals, strict=True))
        for i, share in enumerate(shares):
            Clock.look()
            own = [(classes[i], p[i]) for classes, p in zip(self.classes, paid, strict=True) if i in p]
            rest = {}
            for c in inside[i]:
                cost, most = self._paid(i, c, ends[i])
                rest[c] = cost + share * most - unit * sum(p[classes[c]] for classes, p in own)
            low = min(rest.values())
            total += low
            cells |= {(i, c): value - low for c, value in rest.items()}
        parts = sorted(set(view.forest.parts))
        for t, (part, classes, p) in enumerate(zip(view.forest.parts, self.classes, paid, strict=True)):
            mu = rates[parts.index(part)]
            energy: dict[int, Fraction] = {}
            least_at: dict[tuple[int, int], Fraction] = {}
            for number, value, left in self._leaves(t, inside, gone):
                lows = {i: min(p[i][classes[i][c]] for c in left[i]) for i in p}
                energy[number] = here = unit * sum(lows.values()) - mu * Fraction(value)
                for i, c in [(j, c) for j in classes for c in left[j]]:
                    more = here + unit * (p[i][classes[i][c]] - lows[i]) if i in p else here
                    least_at[i, c] = min(more, least_at.get((i, c), more))
            if not energy:
                raise Empty
            low = min(energy.values())
            total += low
            leaves |= {(t, number): value - low for number, value in energy.items()}
            for key in [(j, c) for j in classes for c in inside[j]]:
                so_far, more_ = cells[key], least_at.get(key)
                cells[key] = None if so_far is None or more_ is None else so_far + more_ - low
        return total, cells, leaves


class Exact:
    """How boxes of one configuration are bounded: the kernel's own arithmetic; verify/fast has another."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration

    def box(self, ends: Sequence[Interval], slopes: str, signs: Signs, budget: Budget = FREE) -> Box:
        """The bounds on a box; ``slopes`` and ``budget`` for the neurons' intervals."""
        box = Box(self.configuration.moved, ends, slopes, signs, budget)
        box.look_at_logarithms()
        return box

    def prices(self, listed: Any, where: str) -> Prices:
        """The bounds by tables of prices."""
        return Prices(self.configuration, listed, where)


def read_prices(
    listed: Any, classes: Sequence[dict[int, list[int]]], where: str
) -> list[dict[int, list[int]]]:
    """Per tree, by action it looks at: a whole number per class; what is absent is 0 and left out."""
    found = []
    for t, (own, looked) in enumerate(zip(spread(listed, len(classes), where), classes, strict=True)):
        prices = {}
        for i, one in zip(looked, spread(own, len(looked), f"{where}.{t}"), strict=True):
            count = looked[i][-1] + 1  # they ascend
            if len(conform(one, [float], f"{where}.{t}")) not in (0, count):
                raise Rejected(f"{where}.{t}: {len(one)} prices; allowed: none or {count}, one per class")
            if any(not p.is_integer() or abs(p) > LARGEST_PRICE for p in one):
                raise Rejected(f"{where}.{t}: a price that is no whole number of at most 2^53")
            if any(one):
                prices[i] = [int(p) for p in one]
        found.append(prices)
    return found


def spread(listed: Any, count: int, where: str) -> list[Any]:
    """Lists, so many; a number stands for so many empty ones, and nothing for all of them."""
    found: list[Any] = []
    for one in conform(listed, list, where):
        found += [one] if isinstance(one, list) else [[]] * index(count - len(found) + 1)(one, where)
    if len(found) not in (0, count):
        raise Rejected(f"{where}: {len(found)} lists; allowed: none or {count}")
    return found or [[]] * count


def read_rates(given: dict[str, Any], sums: int, where: str) -> list[Fraction]:
    """The multiplier of every sum: mu, times the sum's weight where there are several."""
    weights = given["weights"] or []
    if len(weights) != (sums if sums > 1 else 0):
        raise Rejected(f"{where}.weights: allowed: one per sum, where there are several")
    mu = Fraction(given["mu"])
    return [mu * Fraction(weight) for weight in weights] or [mu]


def read_shares(given: dict[str, Any], actions: int, where: str) -> list[Fraction]:
    """Every action's share of the cost's maximum."""
    shares = [Fraction(share) for share in given["shares"] or [0] * actions]
    if len(shares) != actions or sum(shares) > 1:
        raise Rejected(f"{where}.shares: allowed: one per action, which sum to at most 1")
    return shares


def scores_needed(forest: Ensemble, where: str) -> list[Fraction]:
    """What the leaves' exact values of every part add up to at least where the ensemble accepts."""
    parts = sorted(set(forest.parts))
    if forest.largest and len(parts) > 1:
        raise Rejected(f"{where}: prices where one of several sums suffices: allowed in cases (section 7.4)")
    return [score_needed(forest.alone(part)) for part in parts]


def score_needed(forest: Ensemble) -> Fraction:
    """What the leaves' exact values add up to at least where the deployed sum, of one part, is accepted."""
    trees = len(forest.trees)
    largest = [max(abs(node) for node in tree if isinstance(node, float)) for tree in forest.trees]
    threshold = Fraction(forest.threshold) * (trees if forest.mean else 1)
    size = sum(map(Fraction, largest)) + abs(Fraction(forest.base)) + abs(threshold)
    roundoff = Fraction(1, 2**24 if forest.single_sum else 2**53)
    return threshold - Fraction(forest.base) - 2 * (trees + 4) * roundoff * size - Fraction(1, 2**1000)


def cells(forest: Ensemble, f: Feature, box: Interval, column: int) -> list[Cell]:
    """An action's cells, ascending; labels with numbers of their own are a cell each."""
    low, high = box
    if f.table is not None:
        rows = [(Fraction(k), f.table[k]) for k in range(int(low), int(high) + 1)]
        return [Cell(k, k, tuple(forest.compared(float64(v)) for v in row)) for k, row in rows]
    cuts = {n[1] for tree in forest.trees for n in tree if not isinstance(n, float) and n[0] == column}
    found, start = [], low
    for end in sorted({last_left(forest, cut) for cut in cuts}):
        last = Fraction(math.floor(end)) if f.whole and math.isfinite(end) else end
        if start <= last < high:
            found.append((start, Fraction(last)))
            start = Fraction(math.floor(last) + 1 if f.whole else math.nextafter(float(last), math.inf))
    return [Cell(a, b, (forest.compared(float64(a)),)) for a, b in [*found, (start, high)]]


def last_left(forest: Ensemble, threshold: float) -> float:
    """The largest double that is compared as at most a threshold; checked on both sides."""
    end = threshold
    if forest.single:
        nearest = float32(threshold)
        below = nearest if nearest <= threshold else -above32(-threshold)
        above = above32(threshold)
        end = below + (above - below) / 2 if above < math.inf else math.inf
        if end < math.inf and float32(end) > threshold:
            end = math.nextafter(end, -math.inf)
    beyond = math.nextafter(end, math.inf)
    if forest.compared(end) > threshold or (beyond < math.inf and forest.compared(beyond) <= threshold):
        raise Rejected(f"classifier: a threshold of {threshold!r}, too large for prices (section 7.3)")
    return end
