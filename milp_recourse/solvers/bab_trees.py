"""Tree ensembles in back end ``bab``: which of the package's own exact searches solves them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

from milp_recourse.engine.box_bounds import ready as ready_for_boxes
from milp_recourse.engine.forests.axes import separable
from milp_recourse.engine.forests.causal_pieces import why_not_pieces
from milp_recourse.engine.forests.causal_search import CausalSearch
from milp_recourse.engine.forests.single import leaf_recourses
from milp_recourse.problem.conditions import TRUE
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import Clock
from milp_recourse.program.demands import limited
from milp_recourse.program.magnitude import cost_units, in_own_units, options_for_units
from milp_recourse.program.presolve import folds_away, without_conditions
from milp_recourse.solvers.cheapest_part import cheapest_part
from milp_recourse.solvers.missing_levers import why_not_gaps
from milp_recourse.solvers.protocol import Options, Proposal


def in_cells(instance: Instance) -> bool:
    """Whether a problem of trees is a choice of cells, lever by lever, in every case of its conditions. Then
    its steps and lists of values are in the cells."""
    forest = isinstance(instance.classifier, TreeEnsemble)
    return forest and separable(without_conditions(instance)) and folds_away(instance)


def why_not_trees(instance: Instance) -> str | None:
    """Why an ensemble's instance cannot be solved, or None."""
    if in_cells(instance):
        return None
    if instance.missing:
        return why_not_gaps(instance)
    return why_not_pieces(without_conditions(instance))


def solve_trees(instance: Instance, options: Options) -> Proposal:
    """The optimum, rigorously: leaf by leaf for one tree, else by branch and bound over cells."""
    return cheapest_part(instance, options, _solve)


def _solve(instance: Instance, options: Options) -> Proposal:
    """The same where the score is one sum, or the smallest of several."""
    forest = instance.classifier
    assert isinstance(forest, TreeEnsemble)
    most, rest = limited(instance.demand)
    if most is not None and rest == TRUE:
        instance = without_conditions(instance)
    if not separable(instance):
        ready_for_boxes()
        return _timed(instance, options, lambda own, _, clock: CausalSearch(own, clock).run())
    if len(forest.trees) == 1 and most is None:
        start = time.perf_counter()
        leaves = leaf_recourses(instance)
        action, bound = (leaves[0].action, leaves[0].lower_bound) if leaves else (None, math.inf)
        return Proposal(action, bound, "rigorous", len(leaves), seconds=time.perf_counter() - start)
    from milp_recourse.engine.forests.priced import PricedSearch, ready  # loads numba

    def search(own: Instance, scaled: Options, clock: Clock) -> Proposal:
        return PricedSearch(own, clock, scaled.starts, scaled.watch, most).run()

    ready()
    return _timed(instance, options, search)


def _timed(
    instance: Instance, options: Options, search: Callable[[Instance, Options, Clock], Proposal]
) -> Proposal:
    """What a search finds within its time for the instance with costs of usual size, and options for it."""
    start, clock = time.perf_counter(), Clock.start(options.time_limit)
    own, factor = cost_units(instance)
    found = in_own_units(search(own, options_for_units(options, factor), clock), factor)
    return replace(found, seconds=time.perf_counter() - start)
