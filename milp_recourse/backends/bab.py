"""This package's own branch and bound, whose bounds are rigorous."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from milp_recourse.backends.cases import has_conditions, solve_cases
from milp_recourse.backends.cost_units import cost_units, in_own_units, options_for_units
from milp_recourse.backends.directions import solve_by_direction
from milp_recourse.backends.protocol import Options, Proposal
from milp_recourse.backends.trees import solve_trees, why_not_trees
from milp_recourse.domain.forest import TreeEnsemble
from milp_recourse.domain.network import ReluNetwork
from milp_recourse.instance import Instance
from milp_recourse.judge import judged_together

TOGETHER = 64
"""So many applicants' arrays are made, then their searches, then the judgements of what these found (earlier
after one that has not closed with its first nodes): right after compiled code Python is slower."""


class BabBackend:
    """Networks by the compiled engine, trees by the searches of :mod:`milp_recourse.forests`."""

    name = "bab"
    proves = True
    batch = 1024
    """Most applicants lowered together; :func:`milp_recourse.solve.batch_size` takes fewer."""

    def unavailable(self) -> str | None:
        """None: it needs nothing but the package's dependencies."""
        return None

    def why_not(self, instance: Instance) -> str | None:
        """Why the search of trees, or that of networks, cannot solve this instance, or None."""
        if isinstance(instance.classifier, TreeEnsemble):
            return why_not_trees(instance)
        from milp_recourse.compiled.problem import why_not

        return why_not(instance)

    def solve(self, instance: Instance, options: Options) -> Proposal:
        """One instance."""
        return next(self.solve_many([instance], options))[1]

    def solve_many(self, instances: Sequence[Instance], options: Options) -> Iterator[tuple[int, Proposal]]:
        """(position, proposal), in the order they are finished.

        Instances with conditions are solved case by case, networks under two scales direction by direction.
        """
        of_networks = [isinstance(i.classifier, ReluNetwork) for i in instances]
        two_scales = [k for k, i in enumerate(instances) if i.cost.decrease and of_networks[k]]
        for k in two_scales:
            yield k, solve_by_direction(instances[k], options, self.solve)
        cased = [k for k, i in enumerate(instances) if has_conditions(i) and k not in two_scales]
        if cased:
            from milp_recourse.compiled.nearby import near

            own = [instances[k] for k in cased]
            for position, proposal in solve_cases(own, options, self._solve_plain, near):
                yield cased[position], proposal
        plain = sorted(set(range(len(instances))) - {*cased, *two_scales})
        for position, proposal in self._solve_plain([instances[k] for k in plain], options):
            yield plain[position], proposal

    def _solve_plain(self, instances: Sequence[Instance], options: Options) -> Iterator[tuple[int, Proposal]]:
        """The same for instances without conditions, or with conditions that are rows of the program."""
        trees = [k for k, i in enumerate(instances) if isinstance(i.classifier, TreeEnsemble)]
        for k in trees:
            yield k, solve_trees(instances[k], options)
        rest = sorted(set(range(len(instances))) - set(trees))
        for k, proposal in self._solve_networks([instances[k] for k in rest], options):
            yield rest[k], proposal

    def _solve_networks(
        self, instances: Sequence[Instance], options: Options
    ) -> Iterator[tuple[int, Proposal]]:
        """The same for networks, lowered together and searched one by one; actions are judged after several
        searches."""
        from milp_recourse.compiled.engine import Closed, judged, searched
        from milp_recourse.compiled.problem import impossible, lowered
        from milp_recourse.compiled.propose import ready

        def proposals() -> Iterator[tuple[int, Proposal]]:
            begun = time.perf_counter()
            actions = [found.action() if isinstance(found, Closed) else None for _, _, found in waiting]
            owners = [scaled[person][0] for person, _, _ in waiting]
            pairs = [(one, action) for one, action in zip(owners, actions, strict=True) if action is not None]
            with judged_together(pairs):
                each = (time.perf_counter() - begun) / max(1, len(waiting))
                for (person, seconds, found), action in zip(waiting, actions, strict=True):
                    proposal = judged(found, action, options) if isinstance(found, Closed) else found
                    proposal = replace(proposal, seconds=seconds + each + (proposal.seconds or 0.0))
                    yield person, in_own_units(proposal, scaled[person][1])
            waiting.clear()

        if not instances:
            return
        ready()
        start = time.perf_counter()
        scaled = [cost_units(instance) for instance in instances]
        left = set(range(len(instances)))
        waiting: list[tuple[int, float, Closed | Proposal]] = []
        for people, group in lowered([instance for instance, _ in scaled]):
            share = (time.perf_counter() - start) / len(people)
            left -= set(people)
            for first in range(0, len(people), TOGETHER):
                arrays: list[tuple[int, Any, float]] = []
                for k, person in enumerate(people[first : first + TOGETHER], start=first):
                    begun = time.perf_counter()
                    problem = None if impossible(scaled[person][0], group.moved) else group.problems(k)
                    arrays.append((person, problem, share + time.perf_counter() - begun))
                for person, problem, seconds in arrays:
                    instance, factor = scaled[person]
                    found: Closed | Proposal = Proposal(None, math.inf, "rigorous", 0)
                    if problem is not None:
                        found = searched(instance, options_for_units(options, factor), problem)
                    waiting.append((person, seconds, found))
                    if not isinstance(found, Closed):
                        yield from proposals()
                yield from proposals()
            start = time.perf_counter()
        for person in left:
            yield (
                person,
                Proposal(None, 0.0, "rigorous", 0, "more sets of acted features than the search tells apart"),
            )
