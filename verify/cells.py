"""What an ensemble sees of actions that move nothing but themselves (section 6.3)."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from fractions import Fraction
from math import floor
from typing import NamedTuple

from verify.bounds import Interval, Row
from verify.problem import Problem
from verify.reading import Clock, Rejected
from verify.trees import Ensemble, Node, Table, above32, float32, float64

Inner = tuple[int, float, int, int, bool | None]

Allowed = dict[int, tuple[int, ...]]
"""Per action, the cells that are left: the first and the last, or all of them where labels have numbers."""


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
    """For each action that a tree looks at, in order, every cell's class; and the leaves within reach."""

    classes: dict[int, list[int]]
    leaves: list[Leaf]


class View:
    """An ensemble as one configuration's actions see it.

    Attributes
    ----------
    levers
        Per action.
    trees
        Per tree.
    values
        The leaves' values.
    """

    def __init__(self, problem: Problem, forest: Ensemble, where: str) -> None:
        self.forest = forest
        self.owner: dict[int, tuple[int, int]] = {}  # of a column: the action, and which of its numbers
        self.constant: dict[int, float | None] = {}  # of any other: what is compared, None where missing
        found: dict[int, Lever] = {}
        column = 0
        for (name, table), row in zip(problem.tables.items(), problem.columns, strict=True):
            width = len(table[0]) if table else 1
            mine = range(column, column + width)
            column += width
            i = _action(row, len(problem.acted))
            if i is not None:
                if problem.acted[i] != name:
                    raise Rejected(f"{where}: prices need actions that move nothing else (section 6.3)")
                self.owner |= {c: (i, k) for k, c in enumerate(mine)}
                found[i] = self._lever(problem.box[i], problem.whole[i], mine[0], table)
            elif name in problem.missing:
                self.constant |= dict.fromkeys(mine)
            elif any(row[1:]):
                raise Rejected(f"{where}: prices need actions that move nothing else (section 6.3)")
            else:
                values = table[int(row[0])] if table else [row[0]]
                self.constant |= {c: forest.compared(float64(v)) for c, v in zip(mine, values, strict=True)}
        self.levers = [found[i] for i in range(len(problem.acted))]
        self.values = sorted({node for tree in forest.trees for node in tree if isinstance(node, float)})
        self.number = {value: k for k, value in enumerate(self.values)}
        self.trees = [self._tree(tree) for tree in forest.trees]

    def _lever(self, box: Interval, whole: bool, column: int, table: Table | None) -> Lever:
        low, high = box
        compared = self.forest.compared
        if table is not None:
            labels = range(int(low), int(high) + 1)
            numbers = [[compared(float64(v)) for v in table[k]] for k in labels]
            return Lever([(Fraction(k), Fraction(k)) for k in labels], [], numbers)
        cuts = {node[1] for tree in self.forest.trees for node in _inner(tree) if node[0] == column}
        cells, start = [], low
        for end in sorted({_last(self.forest, cut) for cut in cuts}):
            last = Fraction(floor(end)) if whole and math.isfinite(end) else end
            if start <= last < high:
                cells.append((start, Fraction(last)))
                start = Fraction(floor(last) + 1 if whole else math.nextafter(float(last), math.inf))
        cells.append((start, high))
        return Lever(cells, [compared(float64(first)) for first, _ in cells], None)

    def _tree(self, tree: list[Node]) -> Tree:
        inner = _inner(tree)
        looks = sorted({self.owner[node[0]][0] for node in inner if node[0] in self.owner})
        classes: dict[int, list[int]] = {}
        for i in looks:
            lever = self.levers[i]
            if lever.numbers is not None:
                classes[i] = list(range(len(lever.cells)))
                continue
            cuts = sorted({node[1] for node in inner if self.owner.get(node[0]) == (i, 0)})
            sides = [bisect_left(cuts, least) for least in lever.least]
            known = {side: k for k, side in enumerate(sorted(set(sides)))}
            classes[i] = [known[side] for side in sides]
        leaves, waiting = [], [(0, dict[int, tuple[int, ...]]())]
        while waiting:
            Clock.look()
            number, allowed = waiting.pop()
            node = tree[number]
            if isinstance(node, float):
                leaves.append(self._leaf(node, allowed, classes))
                continue
            for child, left in ((node[2], True), (node[3], False)):
                inside = self._child(node, allowed, left)
                if inside is not None:
                    waiting.append((child, inside))
        return Tree(classes, sorted(leaves, key=lambda leaf: -leaf.value))

    def _child(self, node: Inner, allowed: Allowed, left: bool) -> Allowed | None:
        """The cells that go on to a child; None where there are none."""
        column, threshold, _, _, missing_left = node
        if column not in self.owner:
            value = self.constant[column]
            goes_left = bool(missing_left) if value is None else value <= threshold
            return allowed if goes_left == left else None
        i, k = self.owner[column]
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


def _inner(tree: list[Node]) -> list[Inner]:
    return [node for node in tree if not isinstance(node, float)]


def _action(row: Row, actions: int) -> int | None:
    """Which action a value is, where it is nothing but that action."""
    used = [k for k, c in enumerate(row) if c]
    if len(used) == 1 and 1 <= used[0] <= actions and row[used[0]] == 1:
        return used[0] - 1
    return None


def _last(forest: Ensemble, threshold: float) -> float:
    """The largest double that is compared as at most a threshold; checked on both sides."""
    end = threshold
    if forest.compared is float32:
        below, above = -_least_not_below(-threshold), above32(threshold)
        end = below + (above - below) / 2 if above < math.inf else math.inf
        if end < math.inf and float32(end) > threshold:
            end = math.nextafter(end, -math.inf)
    beyond = math.nextafter(end, math.inf)
    if forest.compared(end) > threshold or (beyond < math.inf and forest.compared(beyond) <= threshold):
        raise Rejected(f"classifier: a threshold of {threshold!r}, too large for prices (section 6.3)")
    return end


def _least_not_below(value: float) -> float:
    """The least float32 that is not below a double."""
    nearest = float32(value)
    return nearest if nearest >= value else above32(value)
