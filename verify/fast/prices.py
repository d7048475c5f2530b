"""Leaves closed by prices as the kernel does, in whole numbers (:class:`verify.kernel.prices.Prices`).

Everything is counted in grid units; what is not whole is rounded so that a bound only ever errs downwards:
the kernel's bound is never smaller.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from math import floor
from operator import mul
from typing import Any

from verify.fast.cells import Leaf, Ordered
from verify.kernel import prices
from verify.kernel.configuration import Configuration
from verify.kernel.curves import Interval
from verify.kernel.prices import TABLE, read_prices, read_rates, scores_needed
from verify.kernel.shapes import Clock, conform

FINER = 24
"""The grid is finer than the unit of prices by so many binary digits."""

Paid = dict[int, list[int]]
"""A tree's prices: per action it looks at, one per class, in grid units."""


class Prices(prices.Prices):
    """A configuration's tables of prices, each read when a leaf first needs it."""

    def __init__(self, configuration: Configuration, listed: list[Any], where: str) -> None:
        assert configuration.trees is not None
        self.configuration, self.listed, self.where = configuration, listed, f"{where}.prices"
        self.ordered = Ordered(configuration, where)
        self.goals = scores_needed(configuration.trees, where)
        parts = sorted(set(configuration.trees.parts))
        self.part = [parts.index(part) for part in configuration.trees.parts]
        self.tables: dict[int, Table] = {}
        values = [value.as_integer_ratio() for value in self.ordered.values]
        self.digits = max(below.bit_length() - 1 for _, below in values)
        self.whole_values = [above << self.digits - below.bit_length() + 1 for above, below in values]
        self._costs: dict[Fraction, list[list[int]]] = {}

    def costs(self, grid: Fraction) -> list[list[int]]:
        """The least cost of every cell of every action, in grid units."""
        if grid not in self._costs:
            self._costs[grid] = [
                [floor(term.nearest(low, high)[0] / grid) for low, high in lever.cells]
                for term, lever in zip(self.configuration.terms, self.ordered.levers, strict=True)
            ]
        return self._costs[grid]

    def bound(self, k: int, ends: Sequence[Interval]) -> Fraction | None:
        """What actions in a box cost at least by table k; None: a tree has no leaf there."""
        if k not in self.tables:
            self.tables[k] = Table(self, conform(self.listed[k], TABLE, f"{self.where}.{k}"), k)
        proven = self.tables[k].bound(ends)
        return None if proven is None else proven + self.configuration.fixed


class Table:
    """One table of prices."""

    def __init__(self, tables: Prices, given: dict[str, Any], k: int) -> None:
        self.ordered = tables.ordered
        self.grid = Fraction(given["unit"]) / 2**FINER
        rates = read_rates(given, len(tables.goals), f"{tables.where}.{k}")
        read = read_prices(
            given["trees"], [tree.classes for tree in self.ordered.trees], f"{tables.where}.{k}.trees"
        )
        self.paid: list[Paid | None] = [
            {i: [p << FINER for p in own[i]] if i in own else [0] * (max(groups) + 1)
             for i, groups in tree.classes.items()} if own else None
            for tree, own in zip(self.ordered.trees, read, strict=True)
        ]  # fmt: skip
        self.known: list[dict[tuple[tuple[int, int], ...], int | None]] = [{} for _ in self.paid]
        steps = [[0] * len(lever.cells) for lever in self.ordered.levers]
        for tree, paid in zip(self.ordered.trees, self.paid, strict=True):
            Clock.look()
            for i, prices_ in (paid or {}).items():
                before = 0
                for cell, group in enumerate(tree.classes[i]) if any(prices_) else ():
                    steps[i][cell] += prices_[group] - before
                    before = prices_[group]
        self.rest = [
            [cost - taken for cost, taken in zip(costs, accumulate(step), strict=True)]
            for costs, step in zip(tables.costs(self.grid), steps, strict=True)
        ]
        self.start = floor(sum(map(mul, rates, tables.goals)) / self.grid)
        worth = [
            [-value * rate.numerator // (rate.denominator << tables.digits) for value in tables.whole_values]
            for rate in (mu / self.grid for mu in rates)
        ]
        self.worth = [worth[part] for part in tables.part]

    def bound(self, ends: Sequence[Interval]) -> Fraction | None:
        """What actions in a box cost at least, without the fixed part; None: a tree has no leaf there."""
        total, reach = self.start, []
        for lever, rest, (low, high) in zip(self.ordered.levers, self.rest, ends, strict=True):
            first = bisect_left(lever.cells, low, key=lambda cell: cell[1])
            last = bisect_right(lever.cells, high, key=lambda cell: cell[0]) - 1
            if first > last:
                return None
            reach.append((first, last))
            total += min(rest[first : last + 1])
        trees = zip(self.ordered.trees, self.paid, self.worth, self.known, strict=True)
        for tree, paid, worth, known in trees:
            Clock.look()
            spans = {i: (groups[reach[i][0]], groups[reach[i][1]]) for i, groups in tree.classes.items()}
            seen = tuple(spans.values())
            if paid is None:
                if seen not in tree.free:
                    tree.free[seen] = _free(tree.leaves, spans)
                value = tree.free[seen]
                least = None if value is None else worth[value]
            else:
                if seen not in known:
                    known[seen] = _paying(tree.leaves, spans, paid, worth)
                least = known[seen]
            if least is None:
                return None
            total += least
        return total * self.grid


Spans = dict[int, tuple[int, int]]


def _free(leaves: list[Leaf], spans: Spans) -> int | None:
    """The number of the largest value within reach: without prices, a tree pays least for it."""
    for leaf in leaves:
        if all(spans[i][0] <= high and low <= spans[i][1] for i, low, high in leaf.ranges) and all(
            any(spans[i][0] <= label <= spans[i][1] for label in labels) for i, labels in leaf.labels
        ):
            return leaf.value
    return None


def _paying(leaves: list[Leaf], spans: Spans, paid: Paid, worth: list[int]) -> int | None:
    """The least that a tree pays for a leaf and its cells; None where the box has none of its leaves."""
    free = {i: min(paid[i][a : b + 1]) for i, (a, b) in spans.items()}
    best: int | None = None
    for value, ranges, labelled in leaves:
        energy = worth[value]
        for i, low, high in ranges:
            first, last = spans[i]
            a, b = max(low, first), min(high, last)
            if a > b:
                break
            if a > first or b < last:
                energy += min(paid[i][a : b + 1]) - free[i]
        else:
            for i, labels in labelled:
                first, last = spans[i]
                prices = [paid[i][label] for label in labels if first <= label <= last]
                if not prices:
                    break
                energy += min(prices) - free[i]
            else:
                best = energy if best is None else min(best, energy)
    return None if best is None else best + sum(free.values())
