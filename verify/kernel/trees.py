"""Tree ensembles: the deployed score at a point and its ceiling on a box (section 8)."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from verify.kernel.shapes import Clock

Number = Fraction | float
Range = tuple[Number, Number]
Node = tuple[int, float, int, int, bool | None] | float
"""A leaf's value, or column, threshold, children and whether missing values go left (None: no rule)."""


@dataclass(frozen=True)
class Ensemble:
    """Trees whose mean or sum must lie above a threshold, or reach it.

    Attributes
    ----------
    trees, parts
        The nodes of each tree, and the number of its sum; the score is the smallest sum, or the largest.
    mean
        Whether the sum is divided by the number of trees.
    base
        What a sum starts from.
    single, single_sum
        Whether inputs are compared in float32, and whether sums are rounded to it.
    strict, threshold
        Accepted is a score above the threshold (strict), or one at least the threshold.
    """

    trees: Sequence[Sequence[Node]]
    parts: Sequence[int]
    largest: bool
    mean: bool
    base: float
    single: bool
    single_sum: bool
    strict: bool
    threshold: float

    def compared(self, value: Number) -> float:
        """A value as it is compared with thresholds."""
        return float32(value) if self.single else float64(value)

    def above(self, threshold: float) -> float:
        """The least compared number to the right of a threshold."""
        return above32(threshold) if self.single else math.nextafter(threshold, math.inf)

    def accepts(self, columns: Sequence[Range | None]) -> bool:
        """Whether the score at a point is accepted; not if an input is not known to the last bit compared."""
        known = [ends for ends in columns if ends is not None]
        same = all(self.compared(low) == self.compared(high) for low, high in known)
        return same and self.can_accept(columns)

    def can_accept(self, columns: Sequence[Range | None]) -> bool:
        """Whether the largest score that leaves reachable from these intervals sum to is accepted.

        None is a missing value.
        """
        box = tuple(ends and (self.compared(ends[0]), self.compared(ends[1])) for ends in columns)
        totals = dict.fromkeys(self.parts, self.base)
        for part, tree in zip(self.parts, self.trees, strict=True):
            total = totals[part] + max(
                (value for _, value, _ in reached(tree, box, self._side)), default=-math.inf
            )
            totals[part] = float32(total) if self.single_sum else total
        sums = [total / len(self.trees) if self.mean else total for total in totals.values()]
        score = max(sums) if self.largest else min(sums)
        return score > self.threshold or (score == self.threshold and not self.strict)

    def _side(self, inside: tuple[Any, ...], node: Any, left: bool) -> tuple[Any, ...] | None:
        """The part of a box of columns that goes to one side of a node."""
        column, threshold, _, _, missing_left = node
        if inside[column] is None:
            return inside if bool(missing_left) == left else None
        low, high = inside[column]
        low, high = (low, min(high, threshold)) if left else (max(low, self.above(threshold)), high)
        return with_item(inside, column, (low, high)) if low <= high else None

    def alone(self, part: int) -> Ensemble:
        """The ensemble of one part's trees."""
        trees = [tree for k, tree in zip(self.parts, self.trees, strict=True) if k == part]
        return replace(self, trees=trees, parts=[part] * len(trees))


Inside = tuple[Any, ...]
"""What is left of a box: of each coordinate, what a tree's branches on the way leave."""


def reached(
    tree: Sequence[Node], box: Inside, side: Callable[[Inside, Any, bool], Inside | None]
) -> Iterator[tuple[int, float, Inside]]:
    """The leaves that a box reaches: their numbers and values, and what of the box goes there.

    ``side``: what goes to the left of a node, or to the right; None where that is nothing.
    """
    waiting = [(0, box)]
    while waiting:
        Clock.look()
        number, inside = waiting.pop()
        node = tree[number]
        if isinstance(node, float):
            yield number, node, inside
            continue
        for child, left in ((node[2], True), (node[3], False)):
            part = side(inside, node, left)
            if part is not None:
                waiting.append((child, part))


def with_item(items: Inside, k: int, item: Any) -> Inside:
    """A tuple with another item at a place."""
    return (*items[:k], item, *items[k + 1 :])


def column_ranges(features: Iterable[Any], values: Iterable[Range | None]) -> list[Range | None]:
    """The intervals of an ensemble's columns, from those of the features (section 8); None where missing."""
    found: list[Range | None] = []
    for feature, ends in zip(features, values, strict=True):
        if ends is None or feature.table is None:
            found += [ends] * feature.width
        else:
            inside = [row for label, row in enumerate(feature.table) if ends[0] <= label <= ends[1]]
            found += [(min(column), max(column)) for column in zip(*(inside or feature.table), strict=True)]
    return found


def float64(value: Number) -> float:
    """The double nearest to a number; infinite beyond the largest."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def float32(value: Number) -> float:
    """The float32 nearest to the double nearest to a number; infinite beyond the largest."""
    try:
        nearest: float = struct.unpack("<f", struct.pack("<f", float(value)))[0]
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    return nearest


def above32(value: float) -> float:
    """The least float32 above a double."""
    nearest = float32(value)
    if nearest > value or nearest == math.inf:
        return nearest
    [bits] = struct.unpack("<i", struct.pack("<f", nearest + 0.0))
    after: float = struct.unpack("<f", struct.pack("<i", bits + 1 if bits >= 0 else bits - 1))[0]
    return after
