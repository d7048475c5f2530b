"""A single tree as a certificate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.certificates.limits import MOST_NODES, acted_sets
from milp_recourse.problem.forest import Tree, TreeEnsemble, last_left
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import Clock


def single_tree_configurations(
    instance: Instance, bound: float | None, clock: Clock
) -> list[dict[str, Any]] | None:
    """A single tree's configurations, which prove that no action costs less than ``bound`` (None: that there
    is no action).

    None if the claim is false, if nodes are too many, or if time runs out.
    """
    configurations = []
    left = MOST_NODES
    for acted in acted_sets(instance):
        tree: list[list[Any]] = []
        for node in _Walk(instance, acted).nodes(bound):
            if node is None or len(tree) == left or clock.over:
                return None
            tree.append(node)
        left -= len(tree)
        configurations.append({"acted": list(acted), "tree": tree})
    return configurations


Box = dict[str, tuple[float, float]]


class _Walk:
    """One configuration's nodes: boxes of the acted levers, cut at the tree's own thresholds."""

    def __init__(self, instance: Instance, acted: Sequence[str]) -> None:
        assert isinstance(instance.classifier, TreeEnsemble)
        self.instance, self.forest, self.acted = instance, instance.classifier, acted
        [self.tree] = self.forest.trees
        self.owners = [(f, k) for f in instance.features for k in range(len(f.columns))]
        self.lookups = {f.name: f.lookup if f.by_label else None for f in instance.features}

    def nodes(self, bound: float | None) -> Iterator[list[Any] | None]:
        """The nodes; None where the claim is false.

        A leaf of the tree that rejects is closed by its score, one that accepts by the cost of its cheapest
        point.
        """
        stack: list[Box] = [{name: self.instance.levers[name] for name in self.acted}]
        while stack:
            box = stack.pop()
            if bound is not None and self.instance.least_cost(box) >= bound:
                yield ["e"]
                continue
            met = self.first_cut(box)
            if isinstance(met, float):
                accepted = self.forest.total(np.array([[met]]))[0] > self.instance.accept.above
                yield None if accepted else ["e"]
                continue
            name, cut = met
            yield ["s", self.acted.index(name), cut]
            stack += reversed(self.halves(box, name, cut))

    def first_cut(self, box: Box) -> tuple[str, float] | float:
        """Where to cut the box: feature and value of the first node of the tree that the box is on both sides
        of. If there is none, the value of the leaf that the box is in."""
        tree, (low, high) = self.tree, self._columns(box)
        node = 0
        while tree.left[node] != -1:
            column, threshold = int(tree.feature[node]), float(tree.threshold[node])
            if low[column] <= threshold < high[column]:
                feature, own = self.owners[column]
                name = feature.name
                if self.lookups[name] is not None:
                    return name, self._label_cut(name, own, box[name], threshold)
                return name, feature.floor(float(last_left(tree.threshold[node], self.forest.dtype)))
            node = _children(tree, node, low[column], high[column])[0]
        return float(tree.value[node])

    def _label_cut(self, name: str, column: int, labels: tuple[float, float], threshold: float) -> float:
        """The first label in an interval of labels whose number lies on one side of a threshold and the next
        label's on the other."""
        first, last = map(int, labels)
        lookup = self.lookups[name]
        assert lookup is not None
        left = self._rounded(lookup[first : last + 1, column]) <= threshold
        return float(first + np.flatnonzero(left[1:] != left[:-1])[0])

    def halves(self, box: Box, name: str, cut: float) -> tuple[Box, Box]:
        """Values up to the cut, and from the next value on that an action may set."""
        (low, high), feature = box[name], self.instance.by_name[name]
        return {**box, name: (low, feature.floor(cut))}, {**box, name: (feature.after(cut), high)}

    def _columns(self, box: Box) -> tuple[list[float], list[float]]:
        """The intervals of the classifier's columns, as it compares them."""
        low, high = [], []
        for name, lookup in self.lookups.items():
            least, most = box.get(name, (self.instance.factual[name],) * 2)
            if lookup is None:
                low.append(least)
                high.append(most)
            elif math.isnan(least):
                low += [math.nan] * lookup.shape[1]
                high += [math.nan] * lookup.shape[1]
            else:
                inside = lookup[int(least) : int(most) + 1]
                low += inside.min(axis=0).tolist()
                high += inside.max(axis=0).tolist()
        return self._rounded(np.array(low)).tolist(), self._rounded(np.array(high)).tolist()

    def _rounded(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values as the classifier compares them."""
        with np.errstate(over="ignore"):
            return values.astype(self.forest.dtype).astype(np.float64)


def _children(tree: Tree, node: int, low: float, high: float) -> list[int]:
    """The children that values from low to high go to at a split; nan is a missing value."""
    threshold = float(tree.threshold[node])
    left, right = low <= threshold, high > threshold
    if math.isnan(low):
        assert tree.missing_left is not None
        left = bool(tree.missing_left[node])
        right = not left
    return [int(tree.left[node])] * left + [int(tree.right[node])] * right
