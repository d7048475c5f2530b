"""Branch trees of ensembles as certificates: leaves are closed by their cost or their score alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import combinations
from typing import Any

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
    for acted in acted_sets(instance):
        tree = [["e"]] if search.impossible else list(_nodes(found.tree, acted))
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


def _nodes(tree: BranchTree | None, acted: tuple[str, ...]) -> Iterator[list[Any]]:
    assert tree is not None
    for entry in tree.preorder(acted):
        yield ["s", *entry[1:]] if entry[0] == "a" else ["e"]
