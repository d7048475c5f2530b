"""Leaves closed by prices (section 6.3): one minimum per action and per tree, in whole numbers.

Everything is counted in grid units; what is not whole is rounded so that a bound only ever errs downwards.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from math import floor
from typing import Any

from verify.bounds import Interval
from verify.cells import Leaf, View
from verify.problem import Problem
from verify.reading import Clock, Rejected, conform, index, not_negative, positive
from verify.trees import Ensemble, float32

FINER = 24
"""The grid is finer than the unit of prices by so many binary digits."""
LARGEST_PRICE = 2.0**53
TABLE = {"unit": positive, "mu": not_negative, "trees": [[[float]]]}

Paid = dict[int, list[int]]
"""A tree's prices: per action it looks at, one per class, in grid units."""


class Prices:
    """A configuration's tables of prices, each read when a leaf first needs it."""

    def __init__(self, problem: Problem, listed: list[Any], where: str) -> None:
        if problem.trees is None:
            raise Rejected(f"{where}.prices: allowed: only where the classifier is made of trees")
        self.problem, self.listed, self.where = problem, listed, f"{where}.prices"
        self.view = View(problem, problem.trees, where)
        self.goal = score_needed(problem.trees)
        self.tables: dict[int, Table] = {}
        values = [value.as_integer_ratio() for value in self.view.values]
        self.digits = max(below.bit_length() - 1 for _, below in values)
        self.whole_values = [above << self.digits - below.bit_length() + 1 for above, below in values]
        self._costs: dict[Fraction, list[list[int]]] = {}

    def costs(self, grid: Fraction) -> list[list[int]]:
        """The least cost of every cell of every action, in grid units."""
        if grid not in self._costs:
            self._costs[grid] = [
                [floor(term.parts(min(max(term.factual, low), high))[0] / grid) for low, high in lever.cells]
                for term, lever in zip(self.problem.terms, self.view.levers, strict=True)
            ]
        return self._costs[grid]

    def close(self, node: list[Any], ends: Sequence[Interval], target: Fraction, where: str) -> None:
        """Raise :class:`Rejected` unless a leaf ``["p", k]`` is accepted on a box."""
        _, k = conform(node, (str, index(len(self.listed))), where)
        if k not in self.tables:
            self.tables[k] = Table(self, conform(self.listed[k], TABLE, f"{self.where}.{k}"), k)
        proven = self.tables[k].bound(ends)
        if proven is not None and proven < target - self.problem.fixed:
            raise Rejected(f"{where}: prices that prove less than is claimed")


class Table:
    """One table of prices."""

    def __init__(self, prices: Prices, given: dict[str, Any], k: int) -> None:
        self.view, where = prices.view, f"{prices.where}.{k}"
        self.grid, mu = Fraction(given["unit"]) / 2**FINER, Fraction(given["mu"])
        if len(given["trees"]) not in (0, len(self.view.trees)):
            raise Rejected(f"{where}.trees: allowed: none, or one entry per tree")
        listed = given["trees"] or [[]] * len(self.view.trees)
        self.paid: list[Paid | None] = [
            self._paid(tree.classes, own, f"{where}.trees.{t}")
            for t, (tree, own) in enumerate(zip(self.view.trees, listed, strict=True))
        ]
        steps = [[0] * len(lever.cells) for lever in self.view.levers]
        for tree, paid in zip(self.view.trees, self.paid, strict=True):
            Clock.look()
            for i, own in (paid or {}).items():
                if not any(own):
                    continue
                before = 0
                for cell, group in enumerate(tree.classes[i]):
                    if own[group] != before:
                        steps[i][cell] += own[group] - before
                        before = own[group]
        self.rest = [
            [cost - taken for cost, taken in zip(costs, accumulate(step), strict=True)]
            for costs, step in zip(prices.costs(self.grid), steps, strict=True)
        ]
        self.start = floor(mu * prices.goal / self.grid)
        rate = mu / self.grid
        self.worth = [
            -value * rate.numerator // (rate.denominator << prices.digits) for value in prices.whole_values
        ]

    def _paid(self, classes: dict[int, list[int]], own: list[list[float]], where: str) -> Paid | None:
        if len(own) not in (0, len(classes)):
            raise Rejected(f"{where}: allowed: nothing, or one list per feature that the tree looks at")
        if not own:
            return None
        paid: Paid = {}
        for (i, groups), listed in zip(classes.items(), own, strict=True):
            count = max(groups) + 1
            if len(listed) not in (0, count):
                raise Rejected(f"{where}: {len(listed)} prices; allowed: none or {count}, one per class")
            if any(not p.is_integer() or abs(p) > LARGEST_PRICE for p in listed):
                raise Rejected(f"{where}: a price that is no whole number of at most 2^53")
            paid[i] = [int(p) << FINER for p in listed] or [0] * count
        return paid if any(map(any, own)) else None

    def bound(self, ends: Sequence[Interval]) -> Fraction | None:
        """What actions in a box cost at least, without the fixed part; None: a tree has no leaf there."""
        total, reach = self.start, []
        for lever, rest, (low, high) in zip(self.view.levers, self.rest, ends, strict=True):
            first = bisect_left(lever.cells, low, key=lambda cell: cell[1])
            last = bisect_right(lever.cells, high, key=lambda cell: cell[0]) - 1
            if first > last:
                return None
            reach.append((first, last))
            total += min(rest[first : last + 1])
        for tree, paid in zip(self.view.trees, self.paid, strict=True):
            Clock.look()
            spans = {i: (groups[reach[i][0]], groups[reach[i][1]]) for i, groups in tree.classes.items()}
            least = (
                _free(tree.leaves, spans, self.worth)
                if paid is None
                else _paying(tree.leaves, spans, paid, self.worth)
            )
            if least is None:
                return None
            total += least
        return total * self.grid


Spans = dict[int, tuple[int, int]]


def _free(leaves: list[Leaf], spans: Spans, worth: list[int]) -> int | None:
    """The least that a tree pays without prices: by its largest value, leaves being in this order."""
    for leaf in leaves:
        if all(spans[i][0] <= high and low <= spans[i][1] for i, low, high in leaf.ranges) and all(
            any(spans[i][0] <= label <= spans[i][1] for label in labels) for i, labels in leaf.labels
        ):
            return worth[leaf.value]
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


def score_needed(forest: Ensemble) -> Fraction:
    """What the leaves' exact values add up to at least where the deployed score is accepted."""
    trees = len(forest.trees)
    largest = [max(abs(node) for node in tree if isinstance(node, float)) for tree in forest.trees]
    threshold = Fraction(forest.threshold) * (trees if forest.mean else 1)
    size = sum(map(Fraction, largest)) + abs(Fraction(forest.base)) + abs(threshold)
    roundoff = Fraction(1, 2**24 if forest.added is float32 else 2**53)
    return threshold - Fraction(forest.base) - 2 * (trees + 4) * roundoff * size - Fraction(1, 2**1000)
