"""Tree ensembles: the deployed score at a point and its ceiling on a box (section 7)."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from verify.reading import Rejected, conform, index

Range = tuple[Fraction, Fraction]
Node = tuple[int, float, int, int] | float

TREES = [{key: [float] for key in ("feature", "threshold", "left", "right", "value")}]
"""The shape of an ensemble's trees: scikit-learn's node arrays."""


class Ensemble:
    """Trees whose mean value must lie above a threshold."""

    def __init__(self, trees: Any, columns: int, above: float) -> None:
        listed = enumerate(trees)
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


def _tree(data: dict[str, Any], columns: int, where: str) -> list[Node]:
    """Nodes: a leaf's value, or (column, threshold, left, right); every node is reached exactly once."""
    nodes: list[Node] = []
    children, count = [0], len(data["value"])
    if any(len(data[key]) != count for key in TREES[0]):
        raise Rejected(f"{where}: lists that are not of one length")
    for *inner, value in zip(*(data[key] for key in TREES[0]), strict=True):
        if inner[2] == -1:
            nodes.append(value)
            continue
        node = conform(inner, (index(columns), float, index(count), index(count)), where)
        nodes.append(tuple(node))
        children += node[2:]
    reached, open_nodes = 0, [0]
    while open_nodes and reached <= len(nodes):
        here = nodes[open_nodes.pop()]
        reached += 1
        if not isinstance(here, float):
            open_nodes += here[2:]
    if sorted(children) != list(range(len(nodes))) or reached != len(nodes):
        raise Rejected(f"{where}: not a tree in which every node is reached once")
    return nodes
