"""Tree ensembles through our own exact search: what back end ``bab`` does with them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

from milp_recourse.backends.cheapest_part import cheapest_part
from milp_recourse.backends.cost_units import factor_between, in_cost_units
from milp_recourse.backends.protocol import Options, Proposal
from milp_recourse.domain.forest import TreeEnsemble
from milp_recourse.forests.axes import separable
from milp_recourse.forests.causal import CausalSearch
from milp_recourse.forests.pieces import why_not_pieces
from milp_recourse.forests.single import leaf_recourses
from milp_recourse.instance import Instance
from milp_recourse.program.fold import folds_away, without_conditions


def why_not_trees(instance: Instance) -> str | None:
    """Why an ensemble's instance cannot be solved, or None."""
    plain = without_conditions(instance)
    if separable(plain) and folds_away(instance):
        return None
    if instance.missing:
        return "missing values beside conditions on sums or on holding a feature"
    return why_not_pieces(plain)


def solve_trees(instance: Instance, options: Options) -> Proposal:
    """The optimum, rigorously: leaf by leaf for one tree, branch and bound over cells for more.

    With more trees, bounds are by prices.
    """
    return cheapest_part(instance, options, _solve)


def _solve(instance: Instance, options: Options) -> Proposal:
    forest = instance.classifier
    assert isinstance(forest, TreeEnsemble)
    if not separable(instance):
        return _timed(instance, options, lambda own, deadline: CausalSearch(own, deadline).run())
    if len(forest.trees) == 1:
        start = time.perf_counter()
        ways = leaf_recourses(instance)
        action, bound = (ways[0].action, ways[0].lower_bound) if ways else (None, math.inf)
        return Proposal(action, bound, "rigorous", len(ways), seconds=time.perf_counter() - start)
    from milp_recourse.forests.priced import PricedSearch, ready  # loads numba

    def search(own: Instance, deadline: float | None) -> Proposal:
        watch = None
        if options.watch is not None:
            outer, factor = options.watch, factor_between(instance, own)

            def watch(cost: float, bound: float) -> object:
                return outer(cost / factor, bound / factor)

        return PricedSearch(own, deadline, options.starts, watch).run()

    ready()
    return _timed(instance, options, search)


def _timed(
    instance: Instance, options: Options, search: Callable[[Instance, float | None], Proposal]
) -> Proposal:
    """What a search finds, with costs of usual size, until the deadline."""
    start = time.perf_counter()
    deadline = None if options.time_limit is None else start + options.time_limit
    found = in_cost_units(lambda own: search(own, deadline), instance)
    return replace(found, seconds=time.perf_counter() - start)
