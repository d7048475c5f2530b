"""Tree ensembles: the deployed score at a point and its ceiling on a box (section 7)."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from verify.reading import Clock, Rejected, conform, index, maybe

Range = tuple[Fraction | float, Fraction | float]
Table = list[list[Fraction]]
Node = tuple[int, float, int, int, bool | None] | float
"""A leaf's value, or column, threshold, children and whether missing values go left (None: no rule)."""

ARRAYS = ("feature", "threshold", "left", "right", "value")
TREES = [{key: [float] for key in ARRAYS} | {"missing_left?": maybe([bool])}]
"""The shape of an ensemble's trees: scikit-learn's node arrays, and where missing values go."""
PRECISION = {"float32", "float64"}
FOREST = {
    "dtype": PRECISION,
    "aggregate?": {"mean", "sum"},
    "base?": float,
    "sum_dtype?": PRECISION,
    "trees": TREES,
}
LARGEST_SCORE = 1e30


def forest(data: dict[str, Any]) -> dict[str, Any]:
    """An ensemble's content in canonical form (section 2): how a sum is made is said of sums only."""
    summed = {"base": data["base"] or 0.0, "sum_dtype": data["sum_dtype"] or "float64"}
    if data["aggregate"] == "sum":
        said = {"aggregate": "sum", **summed}
    elif summed == {"base": 0.0, "sum_dtype": "float64"}:
        said = {}
    else:
        raise Rejected("classifier: base and sum_dtype belong to an aggregate that is sum")
    for tree in data["trees"]:
        tree["feature"] = [max(number, -2.0) for number in tree["feature"]]  # a leaf's means nothing
        if tree["missing_left"] is None:
            del tree["missing_left"]
    return {"kind": data["kind"], "dtype": data["dtype"], **said, "trees": data["trees"]}


class Ensemble:
    """Trees whose mean or sum must lie above a threshold, or reach it."""

    def __init__(self, content: dict[str, Any], columns: int, accept: dict[str, float]) -> None:
        listed = enumerate(content["trees"])
        self.mean = "aggregate" not in content
        self.trees = [_tree(tree, columns, self.mean, f"classifier.trees.{k}") for k, tree in listed]
        if not self.trees:
            raise Rejected("classifier.trees: none")
        inner = [node for tree in self.trees for node in tree if not isinstance(node, float)]
        self.without_rule = {node[0] for node in inner if node[4] is None}
        [(self.rule, self.threshold)] = accept.items()
        self.base = content.get("base", 0.0)
        single = content["dtype"] == "float32"
        self.compared, self.above_threshold = (float32, above32) if single else (float64, above64)
        self.added = float32 if content.get("sum_dtype") == "float32" else float
        values = [self.base, *(node for tree in self.trees for node in tree if isinstance(node, float))]
        if any(self.added(value) != value for value in values):
            raise Rejected("classifier: a value that sum_dtype cannot hold")
        if sum(map(abs, values)) > LARGEST_SCORE:
            raise Rejected(f"classifier: values that could add up to more than {LARGEST_SCORE:g}")

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
        total = self.base
        for tree in self.trees:
            Clock.look()
            total = self.added(total + _largest(tree, box, self.above_threshold))
        score = total / len(self.trees) if self.mean else total
        return score > self.threshold if self.rule == "above" else score >= self.threshold


def inputs(tables: Iterable[Table | None], values: Iterable[Range | None]) -> list[Range | None]:
    """The intervals of an ensemble's columns, from those of the features (section 7); None where missing.

    Parameters
    ----------
    tables
        Per feature, the numbers of its labels; None where its value is the column.
    """
    found: list[Range | None] = []
    for table, ends in zip(tables, values, strict=True):
        if table is None:
            found.append(ends)
        elif ends is None:
            found += [None] * len(table[0])
        else:
            low, high = ends
            inside = [row for label, row in enumerate(table) if low <= label <= high] or table
            found += [(min(column), max(column)) for column in zip(*inside, strict=True)]
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

    ``above``: the least number right of a threshold, in what is compared.
    """
    best, waiting = -math.inf, [(0, dict(enumerate(box)))]
    while waiting:
        number, inside = waiting.pop()
        node = tree[number]
        if isinstance(node, float):
            best = max(best, node)
            continue
        column, threshold, left, right, missing_left = node
        ends = inside[column]
        if ends is None:
            waiting.append((left if missing_left else right, inside))
            continue
        low, high = ends
        if low <= threshold:
            waiting.append((left, {**inside, column: (low, min(high, threshold))}))
        if not high <= threshold:
            waiting.append((right, {**inside, column: (max(low, above(threshold)), high)}))
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


def _tree(data: dict[str, Any], columns: int, mean: bool, where: str) -> list[Node]:
    """Nodes: a leaf's value, or (column, threshold, left, right); every node is reached exactly once."""
    nodes: list[Node] = []
    children, count = [0], len(data["value"])
    rules = data.get("missing_left") or [None] * count
    if not count or any(len(data[key]) != count for key in ARRAYS) or len(rules) != count:
        raise Rejected(f"{where}: lists that are empty or not of one length")
    for *inner, value, rule in zip(*(data[key] for key in ARRAYS), rules, strict=True):
        if inner[2] == -1:
            if inner[3] != -1 or (mean and not 0 <= value <= 1):
                raise Rejected(f"{where}: a leaf with a child, or of a mean whose value is no probability")
            nodes.append(value)
            continue
        node = conform(inner, (index(columns), float, index(count), index(count)), where)
        nodes.append((*node, rule))
        children += node[2:]
    reached, open_nodes = 0, [0]
    while open_nodes and reached <= len(nodes):
        here = nodes[open_nodes.pop()]
        reached += 1
        if not isinstance(here, float):
            open_nodes += here[2:4]
    if sorted(children) != list(range(len(nodes))) or reached != len(nodes):
        raise Rejected(f"{where}: not a tree in which every node is reached once")
    return nodes
