"""Tree ensembles: the deployed score at a point and its ceiling on a box (section 8)."""

import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from verify.kernel.checks import Clock

Number = Fraction | float
Range = tuple[Number, Number]
Node = tuple[int, float, int, int, bool | None] | float
"""A leaf's value; or (column, threshold, left, right, whether missing values go left; None: no rule)."""

Option = tuple[int, tuple[Range, ...] | None]
"""A label or cell of a feature: its number, and in each of its columns the range of values compared.

The ranges are None where the value is missing.
"""

Inside = tuple[tuple[Option, ...], ...]
"""A box as trees see it: for every feature, the labels or cells that are left."""


@dataclass(frozen=True)
class Ensemble:
    """Trees whose mean or sum must lie above a threshold, or reach it.

    Attributes
    ----------
    trees
        The nodes of each.
    places
        For each column of the classifier, the number of the feature that fills it, and the column's number
        among those of that feature.
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
    places: Sequence[tuple[int, int]]
    mean: bool
    base: float
    single: bool
    single_sum: bool
    strict: bool
    threshold: float

    def accepts(self, inside: Inside, pick: Any) -> bool:
        """Whether the least (``min``) or largest (``max``) score that a box's leaves sum to is accepted."""
        each = ((value for _, value, _ in self.reached(tree, inside)) for tree in self.trees)
        return self.passes(pick(values, default=-math.inf) for values in each)

    def passes(self, values: Iterable[float]) -> bool:
        """Whether the score is accepted if the trees have these values."""
        total = self.base
        for value in values:
            total = float32(total + value) if self.single_sum else total + value
        score = total / len(self.trees) if self.mean else total
        return score > self.threshold or (score == self.threshold and not self.strict)

    def reached(self, tree: Sequence[Node], box: Inside) -> Iterator[tuple[int, float, Inside]]:
        """The leaves that a box reaches: node, value, and the part of the box that goes there."""
        waiting = [(0, box)]
        while waiting:
            Clock.look()
            number, inside = waiting.pop()
            node = tree[number]
            if isinstance(node, float):
                yield number, node, inside
                continue
            for child, left in ((node[2], True), (node[3], False)):
                i, k = self.places[node[0]]
                parts = (self._side(option, k, node, left) for option in inside[i])
                if kept := tuple(part for part in parts if part):
                    waiting.append((child, with_item(inside, i, kept)))

    def _side(self, option: Option, k: int, node: Any, left: bool) -> Option | None:
        """The part of an option that goes to one side of a node."""
        (number, ranges), threshold = option, node[1]
        if ranges is None:
            return option if bool(node[4]) == left else None
        low, high = ranges[k]
        if left:
            high = min(high, threshold)
        else:
            low = max(low, above32(threshold) if self.single else math.nextafter(threshold, math.inf))
        return (number, with_item(ranges, k, (low, high))) if low <= high else None


def with_item(items: tuple[Any, ...], k: int, item: Any) -> tuple[Any, ...]:
    """A tuple with another item at a place."""
    return (*items[:k], item, *items[k + 1 :])


def options(table: Sequence[Sequence[Number]] | None, ends: Range | None, single: bool) -> tuple[Option, ...]:
    """What trees compare for a feature whose value lies in an interval (None: is missing).

    A feature with a table has an option for each of its labels in the interval.
    """
    compared = float32 if single else float64
    if ends is None or table is None:
        return ((0, ends and ((compared(ends[0]), compared(ends[1])),)),)
    rows = ((k, [compared(v) for v in row]) for k, row in enumerate(table) if ends[0] <= k <= ends[1])
    return tuple((k, tuple(zip(row, row, strict=True))) for k, row in rows)


def float64(value: Number) -> float:
    """The double nearest to a number; infinite beyond the largest."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def float32(value: Number) -> float:
    """The float32 nearest to the double nearest to a number; infinite beyond the largest."""
    double = float64(value)
    try:
        return float(struct.unpack("<f", struct.pack("<f", double))[0])
    except OverflowError:
        return math.copysign(math.inf, double)


def above32(value: float) -> float:
    """The least float32 above a double: up from the nearest one by 5/8 of a unit in its last place.

    Towards 0 from a power of 2 the next one is half a unit away: 5/8 still rounds to it.
    """
    nearest = float32(value)
    finite = max(nearest, -(2.0**128))
    unit = max(2.0**-149, math.ulp(finite) * 2**29)
    return nearest if nearest > value else float32(finite + 0.625 * unit)
