"""This package's own branch and bound, whose bounds are rigorous.

Networks go to the compiled engine; for tree ensembles this file chooses among the package's exact searches.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from milp_recourse.engine.box_bounds import ready as ready_for_boxes
from milp_recourse.engine.forests.axes import separable
from milp_recourse.engine.forests.causal_pieces import why_not_pieces
from milp_recourse.engine.forests.causal_search import CausalSearch
from milp_recourse.engine.forests.single import leaf_recourses
from milp_recourse.judge import judged_together
from milp_recourse.problem.conditions import TRUE, has_products
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import Clock
from milp_recourse.program.demands import limited
from milp_recourse.program.magnitude import Made, cost_units, in_own_units, options_for_units
from milp_recourse.program.presolve import MANY, folds_away, without_conditions, without_fixed
from milp_recourse.solvers.cases import solve_cases
from milp_recourse.solvers.protocol import Options, Proposal
from milp_recourse.solvers.simpler_problems import cheapest_part, has_gaps, solve_gaps, why_not_gaps

if TYPE_CHECKING:
    from milp_recourse.engine.networks.problem_arrays import Lowered


TOGETHER = 64
"""So many applicants' arrays are made, then their searches, then the judgements of what these found (earlier
where searches take long): right after compiled code Python is slower."""


class BabBackend:
    """Networks by the compiled engine, trees by the searches of :mod:`milp_recourse.engine.forests`."""

    name = "bab"
    proves = True
    batch = 1024
    """Most applicants lowered together; :func:`milp_recourse.questions.solve.batch_size` takes fewer."""

    def unavailable(self) -> str | None:
        """None: it needs nothing but the package's dependencies."""
        return None

    def why_not(self, instance: Instance) -> str | None:
        """Why the search of trees, or that of networks, cannot solve this instance, or None."""
        if isinstance(instance.classifier, TreeEnsemble):
            return why_not_trees(instance)
        from milp_recourse.engine.networks.problem_arrays import why_not

        return why_not(instance)

    def keeps_lattices(self, instance: Instance) -> bool:
        """Whether the search itself sets only steps and listed values."""
        if isinstance(instance.classifier, TreeEnsemble):
            return in_cells(instance)
        from milp_recourse.engine.networks.lever_arrays import counts_steps

        counted = all(counts_steps(instance, name) for name in instance.levers)
        return counted and not has_products(instance.demand)

    def solve(self, instance: Instance, options: Options) -> Proposal:
        """One instance."""
        return next(self.solve_many([instance], options))[1]

    def solve_many(self, instances: Sequence[Instance], options: Options) -> Iterator[tuple[int, Proposal]]:
        """(position, proposal), in the order they are finished.

        Instances with conditions are solved case by case.
        """
        cased = [k for k, i in enumerate(instances) if i.conditional]
        if cased:
            from milp_recourse.engine.networks.nearby import near

            own = [instances[k] for k in cased]
            for position, proposal in solve_cases(own, options, self._solve_plain, near, counts=True):
                yield cased[position], proposal
        plain = sorted(set(range(len(instances))) - set(cased))
        for position, proposal in self._solve_plain([instances[k] for k in plain], options):
            yield plain[position], proposal

    def _solve_plain(self, instances: Sequence[Instance], options: Options) -> Iterator[tuple[int, Proposal]]:
        """The same for instances without conditions, or with conditions that are rows of the program."""
        trees = [k for k, i in enumerate(instances) if isinstance(i.classifier, TreeEnsemble)]
        for k in trees:
            one = instances[k]
            gaps = has_gaps(one)
            yield k, solve_gaps(one, options, solve_trees) if gaps else solve_trees(one, options)
        rest = sorted(set(range(len(instances))) - set(trees))
        wide = (k for k in rest if len(instances[k].features) >= MANY)
        fewer = {k: found for k in wide if (found := without_fixed(instances[k])) is not None}
        for k, (instance, kept) in fewer.items():
            own = options
            if options.starts is not None:
                ones = np.ones((len(options.starts), len(instance.features) - len(kept)))
                own = replace(options, starts=np.hstack([options.starts[:, kept], ones]))
            yield from ((k, one) for _, one in self._solve_networks([instance], own))
        rest = [k for k in rest if k not in fewer]
        for k, proposal in self._solve_networks([instances[k] for k in rest], options):
            yield rest[k], proposal

    def _solve_networks(
        self, instances: Sequence[Instance], options: Options
    ) -> Iterator[tuple[int, Proposal]]:
        """The same for networks, lowered together and searched one by one."""
        from milp_recourse.engine.networks.problem_arrays import lowered
        from milp_recourse.engine.networks.propose import ready

        if not instances:
            return
        ready()
        start = time.perf_counter()
        made: Made = {}
        scaled = [cost_units(instance, made) for instance in instances]
        left = set(range(len(instances)))
        for people, group in lowered([instance for instance, _ in scaled]):
            share = (time.perf_counter() - start) / len(people)
            left -= set(people)
            for first in range(0, len(people), TOGETHER):
                members = range(first, min(first + TOGETHER, len(people)))
                own = [(instances[people[k]], *scaled[people[k]]) for k in members]
                yield from ((people[k], one) for k, one in _searched(group, members, own, options, share))
            start = time.perf_counter()
        for person in left:
            why = "more sets of acted features than the search tells apart"
            yield person, Proposal(None, 0.0, "rigorous", 0, why)


def _searched(
    group: Lowered,
    members: Sequence[int],
    scaled: Sequence[tuple[Instance, Instance, float]],
    options: Options,
    share: float,
) -> Iterator[tuple[int, Proposal]]:
    """(member, proposal) of some members of a group; actions are judged after several searches.

    Parameters
    ----------
    scaled
        These members' instances, the same with costs of usual size, and the factors.
    share
        Each one's share of the seconds that lowering has taken.
    """
    from milp_recourse.engine.networks.engine import Closed, judged, searched
    from milp_recourse.engine.networks.problem_arrays import impossible

    begun = time.perf_counter()
    open_ = {k: one for k, one in zip(members, scaled, strict=True) if not impossible(one[1], group.moved)}
    nothing = Proposal(None, math.inf, "rigorous", 0, seconds=share)
    yield from ((k, nothing) for k in members if k not in open_)
    if not open_:
        return
    arrays = group.people(list(open_))
    own = [options_for_units(options, factor) for *_, factor in open_.values()]
    share += (time.perf_counter() - begun) / len(open_)
    left = iter(open_.items())
    for part in searched([instance for _, instance, _ in open_.values()], arrays, own):
        begun, these = time.perf_counter(), list(zip(part, left, strict=False))
        # judged for the applicants' own instances, so that their results need no other judgement
        pairs = {
            k: (given, one.action)
            for one, (k, (given, *_)) in these
            if isinstance(one, Closed) and one.action is not None
        }
        verdicts = dict(zip(pairs, judged_together(list(pairs.values())), strict=True))
        each = share + (time.perf_counter() - begun) / len(part)
        for one, (k, (*_, factor)) in these:
            proposal = judged(one, verdicts.get(k), factor, options) if isinstance(one, Closed) else one
            proposal = replace(proposal, seconds=each + (proposal.seconds or 0.0))
            yield k, in_own_units(proposal, factor)


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
