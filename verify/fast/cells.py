"""Cells and leaves as :class:`verify.kernel.prices.View` has them, as ranges of cells where they can be."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from verify.kernel.configuration import Configuration
from verify.kernel.curves import Interval
from verify.kernel.prices import View
from verify.kernel.shapes import Clock
from verify.kernel.trees import Node

Inner = tuple[int, float, int, int, bool | None]

Allowed = dict[int, tuple[int, ...]]
"""Per action, the cells that are left: the first and the last, or all of them where labels have numbers."""


MOST_WAYS = 1_000_000
"""Actions on the way to leaves, all trees together."""


class TooLarge(Exception):
    """The kernel takes less room."""


class Lever(NamedTuple):
    """The values that an action may take, cut into cells on which every tree takes the same branches.

    ``least``: each cell's least value as it is compared; with a table of numbers each label is a cell, and
    ``numbers`` has what is compared, label by label.
    """

    cells: list[Interval]
    least: list[float]
    numbers: list[list[float]] | None


class Leaf(NamedTuple):
    """The number of its value, and per action that its path tests the classes from which it can be reached.

    These are all between the first and last of ``ranges``, or those of ``labels``.
    """

    value: int
    ranges: list[tuple[int, int, int]]
    labels: list[tuple[int, tuple[int, ...]]]


class Tree(NamedTuple):
    """For each action that a tree looks at, in order, every cell's class; and the leaves within reach.

    ``free``: what is already known of boxes' largest values, by their first and last classes.
    """

    classes: dict[int, list[int]]
    leaves: list[Leaf]
    free: dict[tuple[tuple[int, int], ...], int | None]


class Ordered:
    """An ensemble as one configuration's actions see it.

    Attributes
    ----------
    levers
        Per action; ``trees``: per tree.
    values
        The leaves' values.
    """

    def __init__(self, configuration: Configuration, where: str) -> None:
        seen = View(configuration, where)
        self.columns = seen.columns
        self.levers = [
            Lever(
                [(cell.low, cell.high) for cell in cells],
                [cell.numbers[0] for cell in cells],
                [list(cell.numbers) for cell in cells] if i in seen.labelled else None,
            )
            for i, cells in enumerate(seen.cells)
        ]
        forest = seen.forest
        self.values = sorted({node for tree in forest.trees for node in tree if isinstance(node, float)})
        self.number = {value: k for k, value in enumerate(self.values)}
        self.room = MOST_WAYS
        self.trees = [self._tree(tree) for tree in forest.trees]

    def _tree(self, tree: Sequence[Node]) -> Tree:
        inner = _inner(tree)
        seen = [(self.columns[node[0]], node[1]) for node in inner]
        looks = sorted({one[0] for one, _ in seen if isinstance(one, tuple)})
        classes: dict[int, list[int]] = {}
        for i in looks:
            lever = self.levers[i]
            if lever.numbers is not None:
                classes[i] = list(range(len(lever.cells)))
                continue
            cuts = sorted({threshold for one, threshold in seen if one == (i, 0)})
            sides = [bisect_left(cuts, least) for least in lever.least]
            known = {side: k for k, side in enumerate(sorted(set(sides)))}
            classes[i] = [known[side] for side in sides]
        leaves, waiting = [], [(0, dict[int, tuple[int, ...]]())]
        while waiting:
            Clock.look()
            number, allowed = waiting.pop()
            self.room -= 1 + len(allowed)
            if self.room < 0:
                raise TooLarge
            node = tree[number]
            if isinstance(node, float):
                leaves.append(self._leaf(node, allowed, classes))
                continue
            for child, left in ((node[2], True), (node[3], False)):
                inside = self._child(node, allowed, left)
                if inside is not None:
                    waiting.append((child, inside))
        return Tree(classes, sorted(leaves, key=lambda leaf: -leaf.value), {})

    def _child(self, node: Inner, allowed: Allowed, left: bool) -> Allowed | None:
        """The cells that go on to a child; None where there are none."""
        column, threshold, _, _, missing_left = node
        seen = self.columns[column]
        if not isinstance(seen, tuple):
            goes_left = bool(missing_left) if seen is None else seen <= threshold
            return allowed if goes_left == left else None
        i, k = seen
        lever = self.levers[i]
        if lever.numbers is not None:
            before = allowed.get(i, tuple(range(len(lever.cells))))
            after = tuple(label for label in before if (lever.numbers[label][k] <= threshold) == left)
            return {**allowed, i: after} if after else None
        first, last = allowed.get(i, (0, len(lever.cells) - 1))
        border = bisect_right(lever.least, threshold)  # cells from here on go to the right
        first, last = (first, min(last, border - 1)) if left else (max(first, border), last)
        return {**allowed, i: (first, last)} if first <= last else None

    def _leaf(self, value: float, allowed: Allowed, classes: dict[int, list[int]]) -> Leaf:
        ranges, labels = [], []
        for i, cells in allowed.items():
            if self.levers[i].numbers is not None:
                labels.append((i, cells))
            else:
                ranges.append((i, classes[i][cells[0]], classes[i][cells[1]]))
        return Leaf(self.number[value], ranges, labels)


def _inner(tree: Sequence[Node]) -> list[Inner]:
    return [node for node in tree if not isinstance(node, float)]
