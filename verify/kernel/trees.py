"""Tree ensembles: the deployed score at a point and its ceiling on a box (section 8)."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from verify.kernel.shapes import Clock

Range = tuple[Fraction | float, Fraction | float]
Node = tuple[int, float, int, int, bool | None] | float
"""A leaf's value, or column, threshold, children and whether missing values go left (None: no rule)."""


class Ensemble:
    """Trees whose mean or sum must lie above a threshold, or reach it.

    Attributes
    ----------
    parts
        Number of each tree's sum; the score is the smallest sum, or the largest.
    """

    def __init__(self, content: Mapping[str, Any], accept: Mapping[str, float]) -> None:
        self.mean = "aggregate" not in content
        self.trees = [_nodes(tree) for tree in content["trees"]]
        sizes = content.get("parts", [len(self.trees)])
        self.parts = [k for k, size in enumerate(sizes) for _ in range(int(size))]
        self.largest = content.get("combine") == "largest"
        [(self.rule, self.threshold)] = accept.items()
        self.base: float = content.get("base", 0.0)
        single = content["dtype"] == "float32"
        self.compared, self.above_threshold = (float32, above32) if single else (float64, above64)
        self.added = float32 if content.get("sum_dtype") == "float32" else float

    def accepts(self, columns: Sequence[Range | None]) -> bool:
        """Whether the score at a point is accepted; not if an input is not known to the last bit compared."""
        known = [ends for ends in columns if ends is not None]
        return all(self.compared(low) == self.compared(high) for low, high in known) and self.can_accept(
            columns
        )

    def can_accept(self, columns: Sequence[Range | None]) -> bool:
        """Whether the largest score that leaves reachable from these intervals sum to is accepted.

        None is a missing value.
        """
        box = [ends and (self.compared(ends[0]), self.compared(ends[1])) for ends in columns]
        totals = dict.fromkeys(self.parts, self.base)
        for part, tree in zip(self.parts, self.trees, strict=True):
            Clock.look()
            totals[part] = self.added(totals[part] + _largest(tree, box, self.above_threshold))
        sums = [total / len(self.trees) if self.mean else total for total in totals.values()]
        score = max(sums) if self.largest else min(sums)
        return score > self.threshold if self.rule == "above" else score >= self.threshold

    def alone(self, part: int) -> Ensemble:
        """The ensemble of one part's trees."""
        one = object.__new__(Ensemble)
        one.__dict__.update(self.__dict__)
        one.trees = [tree for k, tree in zip(self.parts, self.trees, strict=True) if k == part]
        one.parts = [part] * len(one.trees)
        return one


def column_ranges(features: Iterable[Any], values: Iterable[Range | None]) -> list[Range | None]:
    """The intervals of an ensemble's columns, from those of the features (section 8); None where missing."""
    found: list[Range | None] = []
    for feature, ends in zip(features, values, strict=True):
        if feature.table is None:
            found.append(ends)
        elif ends is None:
            found += [None] * feature.width
        else:
            low, high = ends
            inside = [row for label, row in enumerate(feature.table) if low <= label <= high]
            found += [(min(column), max(column)) for column in zip(*(inside or feature.table), strict=True)]
    return found


def float64(value: Fraction | float) -> float:
    """The double nearest to a number; infinite beyond the largest."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def float32(value: Fraction | float) -> float:
    """The float32 nearest to the double nearest to a number; infinite beyond the largest."""
    try:
        nearest: float = struct.unpack("<f", struct.pack("<f", float(value)))[0]
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    return nearest


def _largest(
    tree: list[Node], box: list[tuple[float, float] | None], above: Callable[[float], float]
) -> float:
    """The largest value among the leaves that a point of the box falls into.

    ``above``: the least number right of a threshold, in what is compared. The box is cut on the way down, and
    what was cut is put back before the next node that is not below.
    """
    best, inside, cut = -math.inf, list(box), list[tuple[int, Any]]()
    waiting: list[tuple[int, int, Any, int]] = [(0, 0, box[0] if box else None, 0)]
    while waiting:
        Clock.look()
        number, column, ends, depth = waiting.pop()
        while len(cut) > depth:
            which, before = cut.pop()
            inside[which] = before
        if inside:
            cut.append((column, inside[column]))
            inside[column] = ends
        node = tree[number]
        if isinstance(node, float):
            best = max(best, node)
            continue
        column, threshold, left, right, missing_left = node
        ends = inside[column]
        if ends is None:
            waiting.append((left if missing_left else right, column, None, len(cut)))
            continue
        low, high = ends
        if low <= threshold:
            waiting.append((left, column, (low, min(high, threshold)), len(cut)))
        if not high <= threshold:
            waiting.append((right, column, (max(low, above(threshold)), high), len(cut)))
    return best


def above64(value: float) -> float:
    """The next double."""
    return math.nextafter(value, math.inf)


def above32(value: float) -> float:
    """The least float32 above a double."""
    nearest = float32(value)
    if nearest > value or nearest == math.inf:
        return nearest
    [bits] = struct.unpack("<i", struct.pack("<f", nearest + 0.0))
    after: float = struct.unpack("<f", struct.pack("<i", bits + 1 if bits >= 0 else bits - 1))[0]
    return after


def _nodes(tree: Mapping[str, Any]) -> list[Node]:
    rules = tree.get("missing_left") or [None] * len(tree["value"])
    arrays = (tree[key] for key in ("feature", "threshold", "left", "right", "value"))
    return [
        value if left == -1 else (int(column), threshold, int(left), int(right), rule)
        for column, threshold, left, right, value, rule in zip(*arrays, rules, strict=True)
    ]
