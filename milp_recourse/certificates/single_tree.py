"""A single tree as a certificate."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.certificates.conditions import acted_sets
from milp_recourse.certificates.limits import MOST_NODES
from milp_recourse.problem.features import Feature
from milp_recourse.problem.forest import Tree, TreeEnsemble, last_left
from milp_recourse.problem.instance import Instance


def single_tree_configurations(
    instance: Instance, bound: float | None, deadline: float | None
) -> list[dict[str, Any]] | None:
    """A single tree's configurations, which prove that no action costs less than ``bound`` (None: that there
    is no action).

    None if the claim is false, if nodes are too many, or if time runs out.

    Parameters
    ----------
    deadline
        ``time.perf_counter()`` value to stop at, or None.
    """
    configurations = []
    left = MOST_NODES
    for acted in acted_sets(instance):
        tree: list[list[Any]] = []
        for node in _walked(instance, acted, bound):
            late = deadline is not None and time.perf_counter() > deadline
            if node is None or len(tree) == left or late:
                return None
            tree.append(node)
        left -= len(tree)
        configurations.append({"acted": list(acted), "tree": tree})
    return configurations


Box = dict[str, tuple[float, float]]


def _walked(instance: Instance, acted: tuple[str, ...], bound: float | None) -> Iterator[list[Any] | None]:
    """The nodes of one configuration, cut at the tree's own thresholds; None where the claim is false.

    A leaf of the tree that rejects is closed by its score, one that accepts by the cost of its cheapest
    point.
    """
    forest = _forest(instance)
    stack: list[Box] = [{name: instance.levers[name] for name in acted}]
    while stack:
        box = stack.pop()
        if bound is not None and least_cost(instance, box) >= bound:
            yield ["e"]
            continue
        met = _descend(instance, box)
        if isinstance(met, float):
            accepted = forest.total(np.array([[met]]))[0] > instance.accept.above
            yield None if accepted else ["e"]
            continue
        name, cut = met
        yield ["s", acted.index(name), cut]
        stack += reversed(_halves(instance, box, name, cut))


def least_cost(instance: Instance, box: Box) -> Fraction:
    """The cost of acting on the box's features, each as near to its factual value as the box allows."""
    nearest = {name: _nearest(instance, name, low, high) for name, (low, high) in box.items()}
    return instance.cost_of(nearest)


def _nearest(instance: Instance, name: str, low: float, high: float) -> float:
    """The value from low to high that is cheapest to set."""
    if name in instance.missing:
        return low
    x, lattice = instance.factual[name], instance.feature(name).lattice
    if lattice is not None and x not in lattice and low < x < high:
        return min(lattice.floor(x), lattice.ceil(x), key=instance.lever_cost(name).size)
    return min(max(x, low), high)


def _descend(instance: Instance, box: Box) -> tuple[str, float] | float:
    """Where to cut the box: feature and value of the first node of the tree that the box is on both sides of.
    If there is none, the value of the leaf that the box is in."""
    [tree] = _forest(instance).trees
    owners = [(f, k) for f in instance.features for k in range(len(f.columns))]
    low, high = _columns(instance, box)
    node = 0
    while tree.left[node] != -1:
        column, threshold = int(tree.feature[node]), float(tree.threshold[node])
        if low[column] <= threshold < high[column]:
            feature, own = owners[column]
            if feature.by_label:
                return feature.name, _label_cut(instance, feature, own, box[feature.name], threshold)
            end = float(last_left(tree.threshold[node], _forest(instance).dtype))
            return feature.name, end if feature.lattice is None else feature.lattice.floor(end)
        node = _children(tree, node, low[column], high[column])[0]
    return float(tree.value[node])


def _label_cut(
    instance: Instance, feature: Feature, column: int, labels: tuple[float, float], threshold: float
) -> float:
    """The first label in an interval of labels whose number lies on one side of a threshold and the next
    label's on the other."""
    first, last = map(int, labels)
    assert feature.lookup is not None
    left = _rounded(instance, feature.lookup[first : last + 1, column]) <= threshold
    return float(first + np.flatnonzero(left[1:] != left[:-1])[0])


def _halves(instance: Instance, box: Box, name: str, cut: float) -> tuple[Box, Box]:
    """Values up to the cut, and from the next value on that an action may set."""
    (low, high), lattice = box[name], instance.feature(name).lattice
    after = math.nextafter(cut, math.inf) if lattice is None else lattice.after(cut)
    cut = cut if lattice is None else lattice.floor(cut)
    return {**box, name: (low, cut)}, {**box, name: (after, high)}


def _forest(instance: Instance) -> TreeEnsemble:
    assert isinstance(instance.classifier, TreeEnsemble)
    return instance.classifier


def _columns(instance: Instance, box: Box) -> tuple[list[float], list[float]]:
    """The intervals of the classifier's columns, as it compares them."""
    low, high = [], []
    for feature in instance.features:
        least, most = box.get(feature.name, (instance.factual[feature.name],) * 2)
        lookup = feature.lookup if feature.by_label else None
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
    return _rounded(instance, np.array(low)).tolist(), _rounded(instance, np.array(high)).tolist()


def _rounded(instance: Instance, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values as the classifier compares them."""
    with np.errstate(over="ignore"):
        return values.astype(_forest(instance).dtype).astype(np.float64)


def _children(tree: Tree, node: int, low: float, high: float) -> list[int]:
    """The children that values from low to high go to at a split; nan is a missing value."""
    threshold = float(tree.threshold[node])
    left, right = low <= threshold, high > threshold
    if math.isnan(low):
        assert tree.missing_left is not None
        left = bool(tree.missing_left[node])
        right = not left
    return [int(tree.left[node])] * left + [int(tree.right[node])] * right
