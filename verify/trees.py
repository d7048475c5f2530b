"""Tree ensembles: the deployed score at a point and its ceiling on a box (section 7)."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from verify.reading import Rejected, a_list, a_number, an_index, an_object

Range = tuple[Fraction, Fraction]
Node = tuple[int, float, int, int] | float


class Ensemble:
    """Trees whose mean value must lie above a threshold."""

    def __init__(self, trees: Any, columns: int, above: float) -> None:
        listed = enumerate(a_list(trees, "classifier.trees"))
        self.trees = [_tree(tree, columns, f"classifier.trees.{k}") for k, tree in listed]
        if not self.trees:
            raise Rejected("classifier.trees: none")
        self.above = above

    def accepts(self, columns: Iterable[Range]) -> bool:
        """Whether the score at a point is accepted; not if an input is not known to the last float32."""
        listed = list(columns)
        return all(float32(low) == float32(high) for low, high in listed) and self.can_accept(listed)

    def can_accept(self, columns: Iterable[Range]) -> bool:
        """Whether the largest score that leaves reachable from these intervals sum to is accepted."""
        box = [(float32(low), float32(high)) for low, high in columns]
        total = 0.0
        for tree in self.trees:
            total += _largest(tree, box)
        return total / len(self.trees) > self.above


def float32(value: Fraction) -> float:
    """The float32 nearest to the double nearest to a number; infinite beyond the largest."""
    try:
        nearest: float = struct.unpack("<f", struct.pack("<f", float(value)))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return nearest


def _largest(tree: list[Node], box: list[tuple[float, float]]) -> float:
    """The largest value among the leaves that a point of the box may fall into."""
    best, open_nodes = -math.inf, [0]
    while open_nodes:
        node = tree[open_nodes.pop()]
        if isinstance(node, float):
            best = max(best, node)
            continue
        column, threshold, left, right = node
        low, high = box[column]
        if low <= threshold:
            open_nodes.append(left)
        if not high <= threshold:
            open_nodes.append(right)
    return best


def _tree(data: Any, columns: int, where: str) -> list[Node]:
    """Nodes: a leaf's value, or (column, threshold, left, right); every node is reached exactly once."""
    keys = ("feature", "threshold", "left", "right", "value")
    given = an_object(data, where, keys)
    count = len(a_list(given["feature"], where))
    for key in keys:
        for value in a_list(given[key], f"{where}.{key}", count):
            a_number(value, f"{where}.{key}")
    nodes: list[Node] = []
    children = [0]
    for feature, threshold, left, right, value in zip(*(given[key] for key in keys), strict=True):
        if left == -1:
            nodes.append(value)
            continue
        pair = an_index(left, f"{where}.left", count), an_index(right, f"{where}.right", count)
        children += pair
        nodes.append((an_index(feature, f"{where}.feature", columns), threshold, *pair))
    reached, open_nodes = 0, [0]
    while open_nodes and reached <= count:
        node = nodes[open_nodes.pop()]
        reached += 1
        if not isinstance(node, float):
            open_nodes += node[2:]
    if sorted(children) != list(range(count)) or reached != count:
        raise Rejected(f"{where}: not a tree in which every node is reached once")
    return nodes
