"""Branch trees of ensembles as certificates: leaves are closed by their cost or their score alone."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np

from milp_recourse.domain.forest import Tree, TreeEnsemble
from milp_recourse.engine.proof import MOST_NODES
from milp_recourse.forests.branch_tree import BranchTree
from milp_recourse.forests.search import ForestSearch
from milp_recourse.instance import Instance


def forest_configurations(
    instance: Instance, bound: float | None, time_limit: float | None
) -> list[dict[str, Any]] | None:
    """Configurations and trees that prove that no action costs less than ``bound`` (None: none exists).

    None where the search was stopped, or finds the claim false.

    Parameters
    ----------
    time_limit
        Seconds; None for no limit.
    """
    deadline = None if time_limit is None else time.perf_counter() + time_limit
    search = ForestSearch(instance, deadline, record=True)
    found = search.run()
    if found.message is not None or (bound is None and found.action is not None):
        return None
    if bound is not None and found.lower_bound < bound:
        return None
    configurations = []
    left = MOST_NODES
    for acted in acted_sets(instance):
        tree: list[list[Any]] = [["e"]]
        if found.tree is not None and not search.impossible:
            tree = []
            for node in _nodes(instance, found.tree, acted):
                tree.append(node)
                if len(tree) > left or (deadline is not None and time.perf_counter() > deadline):
                    return None
        left -= len(tree)
        configurations.append({"acted": list(acted), "tree": tree})
    return configurations


def acted_sets(instance: Instance) -> Iterator[tuple[str, ...]]:
    """Sets of levers that together stand for every other: an idle one is always acted on.

    Idle are those that may be set to their factual value at no cost; nothing moves them otherwise.
    """
    levers = [f.name for f in instance.features if f.name in instance.levers]
    idle = {
        f
        for f in levers
        if not instance.cost.l0 and instance.levers[f][0] <= instance.factual[f] <= instance.levers[f][1]
    }
    others = [f for f in levers if f not in idle]
    for size in range(len(others), -1, -1):
        for chosen in combinations(others, size):
            acted = tuple(f for f in levers if f in idle or f in chosen)
            if acted:
                yield acted


Box = dict[str, tuple[float, float]]


def _nodes(instance: Instance, tree: BranchTree, acted: tuple[str, ...]) -> Iterator[list[Any]]:
    """The document's nodes of one configuration.

    The search knows which leaves a *set* of values reaches, the document's rule only follows each split
    by itself: between thresholds 0.2 and 0.3 it sees room for a whole number. So leaves closed by score are
    split on until that rule closes them too; where one cell is left per lever, the rules agree.
    """
    stack: list[Box] = [{name: instance.levers[name] for name in acted}]
    for entry in tree.preorder(acted):
        box = stack.pop()
        if len(entry) == 3:
            yield ["s", *entry[1:]]
            stack += reversed(_halves(instance, box, acted[entry[1]], entry[2]))
        elif entry[0] == "cost":
            yield ["e"]
        else:
            yield from _refined(instance, tree, acted, box)


def _refined(instance: Instance, tree: BranchTree, acted: tuple[str, ...], box: Box) -> Iterator[list[Any]]:
    """A leaf closed by score, split until the document's rule closes every part."""
    cuts = _cuts(tree, box) if may_be_accepted(instance, box) else []
    if not cuts:
        yield ["e"]
        return
    name, cut = max(cuts, key=lambda c: sum(other == c[0] for other, _ in cuts))
    mine = [c for other, c in cuts if other == name]
    cut = mine[len(mine) // 2]
    yield ["s", acted.index(name), cut]
    for half in _halves(instance, box, name, cut):
        yield from _refined(instance, tree, acted, half)


def _cuts(tree: BranchTree, box: Box) -> list[tuple[str, float]]:
    """Last values of the cells that end inside a box, lever by lever."""
    return [
        (axis.feature, float(end))
        for axis in tree.axes
        if axis.feature in box
        for end in axis.high[axis.settable]
        if box[axis.feature][0] <= end < box[axis.feature][1]
    ]


def _halves(instance: Instance, box: Box, name: str, cut: float) -> tuple[Box, Box]:
    """Values up to the cut, and from the next double or whole number on."""
    low, high = box[name]
    after = cut + 1 if instance.feature(name).integral else math.nextafter(cut, math.inf)
    return {**box, name: (low, cut)}, {**box, name: (after, high)}


def may_be_accepted(instance: Instance, box: Box) -> bool:
    """Whether the document's rule (section 7) leaves room for an accepted score in a box of actions."""
    forest = instance.classifier
    assert isinstance(forest, TreeEnsemble)
    low, high = [], []
    for feature in instance.features:
        least, most = box.get(feature.name, (instance.factual[feature.name],) * 2)
        if not feature.one_hot:
            low.append(least)
            high.append(most)
        else:
            inside = [int(least) <= k <= int(most) for k in range(len(feature.columns))]
            low += [float(least == most and here) for here in inside]
            high += [float(here) for here in inside]
    with np.errstate(over="ignore"):
        ends = [np.array(end).astype(forest.dtype).astype(np.float64).tolist() for end in (low, high)]
    best = [_largest(tree, *ends) for tree in forest.trees]
    return bool(forest.total(np.array([best]))[0] > instance.accept.threshold)


def _largest(tree: Tree, low: list[float], high: list[float]) -> float:
    best, open_nodes = -math.inf, [0]
    while open_nodes:
        node = open_nodes.pop()
        if tree.left[node] == -1:
            best = max(best, float(tree.value[node]))
            continue
        column, threshold = int(tree.feature[node]), float(tree.threshold[node])
        if low[column] <= threshold:
            open_nodes.append(int(tree.left[node]))
        if high[column] > threshold:
            open_nodes.append(int(tree.right[node]))
    return best
