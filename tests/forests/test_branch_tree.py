"""The recorded branching proves the bound: replayed in exact costs and deployed scores, on doubles."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from milp_recourse.domain.forest import TreeEnsemble, last_left
from milp_recourse.forests.branch_tree import BranchTree, Entry
from milp_recourse.forests.search import ForestSearch
from milp_recourse.instance import Instance
from milp_recourse.judge import already_good, deltas, judge
from tests.helpers.tree_samples import random_tree_instance

Box = dict[str, tuple[float, float]]
Part = dict[str, tuple[float, float] | frozenset[int]]
"""A box narrowed on the way down a tree: labels that fill several columns become a set."""


def leaf_problem(instance: Instance, box: Box, entry: Entry, bound: float) -> str | None:
    """Why a leaf is not closed as it says, or None."""
    if entry[0] == "cost":
        nearest = {n: min(max(instance.factual[n], low), high) for n, (low, high) in box.items()}
        cost = instance.cost.exact(deltas(instance, nearest), instance.weights)
        return None if cost >= Fraction(bound) else f"costs {float(cost)}"
    forest = instance.classifier
    assert isinstance(forest, TreeEnsemble)
    best = []
    for tree in forest.trees:
        reached, stack = [], [(0, box)]
        while stack:
            node, here = stack.pop()
            if tree.left[node] == -1:
                reached.append(tree.value[node])
                continue
            left, right = sides(instance, here, int(tree.feature[node]), float(tree.threshold[node]))
            stack += [(int(tree.left[node]), left)] if left is not None else []
            stack += [(int(tree.right[node]), right)] if right is not None else []
        best.append(max(reached))
    top = float(forest.total(np.array([best]))[0])
    return None if not top > instance.accept.above else f"scores up to {top}"


def sides(instance: Instance, box: Part, column: int, threshold: float) -> tuple[Part | None, Part | None]:
    """The part of a box that goes left at a split and the part that goes right; None where empty."""
    at = 0
    for f in instance.features:
        if at <= column < at + len(f.columns):
            break
        at += len(f.columns)
    here = box.get(f.name, (instance.factual[f.name],) * 2)
    if f.by_label:
        labels = here if isinstance(here, frozenset) else range(int(here[0]), int(here[1]) + 1)
        number = {k: float(np.float32(f.lookup[k, column - at])) for k in labels}
        went = frozenset(k for k in labels if number[k] <= threshold)
        parts = went, frozenset(labels) - went
        return tuple({**box, f.name: part} if part else None for part in parts)
    low, high = here
    end = float(last_left(np.array([threshold]))[0])
    step = (np.floor(end), np.floor(end) + 1) if f.integral else (end, np.nextafter(end, np.inf))
    left, right = (low, min(high, float(step[0]))), (max(low, float(step[1])), high)
    return tuple({**box, f.name: part} if part[0] <= part[1] else None for part in (left, right))


def problems(instance: Instance, acted: tuple[str, ...], tree: BranchTree, bound: float) -> Iterator[str]:
    """What is wrong with the tree of one configuration."""
    entries = tree.preorder(acted)

    def walk(box: Box) -> Iterator[str]:
        entry = next(entries)
        if entry[0] != "a":
            wrong = leaf_problem(instance, box, entry, bound)
            if wrong is not None:
                yield f"{acted} {box} {entry}: {wrong}"
            return
        _, i, t = entry
        low, high = box[acted[i]]
        after = t + 1 if instance.feature(acted[i]).integral else float(np.nextafter(t, np.inf))
        assert low <= t < high
        yield from walk({**box, acted[i]: (low, t)})
        yield from walk({**box, acted[i]: (after, high)})

    yield from walk({n: instance.levers[n] for n in acted})
    if next(entries, None) is not None:
        yield "the tree goes on"


@pytest.mark.parametrize("trees", [1, None], ids=["single tree", "forest"])
def test_every_leaf_of_the_branching_is_closed_as_it_says(trees: int | None) -> None:
    """For every set of acted features: no box holds an accepted point cheaper than the bound."""
    checked = 0
    for seed in range(60):
        instance = random_tree_instance(seed, trees)
        if not instance.levers or already_good(instance):
            continue
        outcome = ForestSearch(instance, record=True).run()
        bound = outcome.lower_bound
        if outcome.action is not None:
            assert float(judge(instance, outcome.action).cost) <= bound * (1 + 1e-12) + 1e-300
        if outcome.tree is None or not outcome.tree.axes:
            continue  # a feature outside its domain cannot move
        dearest = 1e300 if bound == np.inf else bound
        names = [f.name for f in instance.features if f.name in instance.levers]
        for size in range(1, len(names) + 1):
            for acted in combinations(names, size):
                assert not list(problems(instance, acted, outcome.tree, dearest)), seed
                checked += 1
    assert checked > 100


def test_a_wrong_leaf_is_noticed() -> None:
    """The replay is no formality: swapping what closes the leaves, or raising the bound, is caught."""
    caught = 0
    for seed in range(40):
        instance = random_tree_instance(seed)
        if not instance.levers or already_good(instance):
            continue
        outcome = ForestSearch(instance, record=True).run()
        if outcome.tree is None or not outcome.tree.axes or not np.isfinite(outcome.lower_bound):
            continue
        names = tuple(f.name for f in instance.features if f.name in instance.levers)
        caught += bool(list(problems(instance, names, outcome.tree, outcome.lower_bound * 1.01 + 1e-6)))
    assert caught >= 3
