"""Tree ensembles through our own exact search: what back end ``bab`` does with them."""

from __future__ import annotations

import math
import time
from dataclasses import replace

from milp_recourse.backends.cost_units import in_cost_units
from milp_recourse.backends.protocol import Options, Proposal
from milp_recourse.domain.forest import TreeEnsemble
from milp_recourse.forests.axes import separable
from milp_recourse.forests.causal import CausalSearch
from milp_recourse.forests.pieces import why_not_pieces
from milp_recourse.forests.search import ForestSearch, Outcome
from milp_recourse.forests.single import leaf_recourses
from milp_recourse.instance import Instance


def why_not_trees(instance: Instance) -> str | None:
    """Why an ensemble's instance cannot be solved, or None."""
    return None if separable(instance) else why_not_pieces(instance)


def solve_trees(instance: Instance, options: Options) -> Proposal:
    """The optimum, rigorously: leaf by leaf for one tree, branch and bound over cells for more.

    Bounds by prices need a cost that is a sum over features; with a linf part, the trees' largest values have
    to do.
    """
    forest = instance.classifier
    assert isinstance(forest, TreeEnsemble)
    if _priced(instance):
        from milp_recourse.forests.priced import ready

        ready()
    start = time.perf_counter()
    deadline = None if options.time_limit is None else start + options.time_limit
    if separable(instance) and len(forest.trees) == 1:
        ways = leaf_recourses(instance)
        action, bound = (ways[0].action, ways[0].lower_bound) if ways else (None, math.inf)
        return Proposal(action, bound, "rigorous", len(ways), seconds=time.perf_counter() - start)

    def run(own: Instance) -> Proposal:
        found = _search(own, options, deadline)
        return Proposal(found.action, found.lower_bound, "rigorous", found.nodes, found.message)

    return replace(in_cost_units(run, instance), seconds=time.perf_counter() - start)


def _search(instance: Instance, options: Options, deadline: float | None) -> Outcome:
    if not separable(instance):
        return CausalSearch(instance, deadline).run()
    if not _priced(instance):
        return ForestSearch(instance, deadline).run()
    from milp_recourse.forests.priced import PricedSearch  # loads numba

    return PricedSearch(instance, deadline, options.starts).run()


def _priced(instance: Instance) -> bool:
    """Whether bounds by prices cover it: several trees, and a cost that is a sum over features."""
    forest = instance.classifier
    return len(forest.trees) > 1 and separable(instance) and not instance.cost.linf  # type: ignore[union-attr]
