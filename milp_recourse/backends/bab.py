"""Branch and bound over the action box: ours, rigorous, and made for many applicants at once."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from milp_recourse.backends.cases import has_conditions, solve_cases
from milp_recourse.backends.cost_units import cost_units, in_own_units
from milp_recourse.backends.directions import solve_by_direction
from milp_recourse.backends.protocol import Options, Proposal
from milp_recourse.backends.trees import solve_trees, why_not_trees
from milp_recourse.bounds.tape import Tape
from milp_recourse.domain.forest import TreeEnsemble
from milp_recourse.domain.network import ReluNetwork
from milp_recourse.engine.search import Finished, Search
from milp_recourse.engine.stack import Stack, signature, stack
from milp_recourse.instance import Instance
from milp_recourse.judge import judge
from milp_recourse.program.cohort import programs
from milp_recourse.program.model import Program
from milp_recourse.search.repair import repair

Array = NDArray[np.float64]


class BabBackend:
    """The compiled engine, one applicant at a time; for trees theirs."""

    name = "bab"
    proves = True
    batch = 1024
    """Applicants solved together."""

    def unavailable(self) -> str | None:
        """Never."""
        return None

    def why_not(self, instance: Instance) -> str | None:
        """For trees, what their search asks for."""
        return why_not_trees(instance) if isinstance(instance.classifier, TreeEnsemble) else None

    def solve(self, instance: Instance, options: Options) -> Proposal:
        """One instance."""
        return next(self.solve_many([instance], options))[1]

    def solve_many(self, instances: Sequence[Instance], options: Options) -> Iterator[tuple[int, Proposal]]:
        """(position, proposal), in the order they are finished.

        Trees and the networks that the compiled engine covers one by one, other networks in one batch. Who
        has conditions is solved case by case.
        """
        of_networks = [isinstance(i.classifier, ReluNetwork) for i in instances]
        bent = [k for k, i in enumerate(instances) if i.cost.decrease and of_networks[k]]
        for k in bent:
            yield k, solve_by_direction(instances[k], options, self.solve)
        cased = [k for k, i in enumerate(instances) if has_conditions(i) and k not in bent]
        if cased:
            own = [instances[k] for k in cased]
            for position, proposal in solve_cases(own, options, self._solve_plain, repair):
                yield cased[position], proposal
        plain = sorted(set(range(len(instances))) - {*cased, *bent})
        for position, proposal in self._solve_plain([instances[k] for k in plain], options):
            yield plain[position], proposal

    def _solve_plain(self, instances: Sequence[Instance], options: Options) -> Iterator[tuple[int, Proposal]]:
        """The same for instances whose conditions a program says by itself."""
        trees = [k for k, i in enumerate(instances) if isinstance(i.classifier, TreeEnsemble)]
        for k in trees:
            yield k, solve_trees(instances[k], options)
        rest = sorted(set(range(len(instances))) - set(trees))
        plain = [k for k in rest if not instances[k].scenarios]  # these are for the batched engine
        done = set()
        for k, proposal in self._solve_compiled([instances[k] for k in plain], options):
            done.add(plain[k])
            yield plain[k], proposal
        rest = [k for k in rest if k not in done]
        if rest:
            networks = self._solve_networks([instances[k] for k in rest], options)
            yield from ((rest[position], proposal) for position, proposal in networks)

    def _solve_compiled(
        self, instances: Sequence[Instance], options: Options
    ) -> Iterator[tuple[int, Proposal]]:
        """The compiled engine's proposals for those instances that it covers.

        Where rounding stops it short of a proof, the batched engine's.
        """
        from milp_recourse.compiled.door import STUCK, ready, solve
        from milp_recourse.compiled.problem import impossible, lowered

        if not instances:
            return
        ready()
        start = time.perf_counter()
        scaled = [cost_units(instance) for instance in instances]
        for people, group in lowered([instance for instance, _ in scaled]):
            share = (time.perf_counter() - start) / len(people)
            for k, person in enumerate(people):
                instance, factor = scaled[person]
                if impossible(instance, group.moved):
                    yield person, Proposal(None, math.inf, "rigorous", 0, seconds=share)
                    continue
                begun = time.perf_counter()
                proposal = solve(instance, options, group.problems(k))
                proposal = replace(proposal, seconds=share + time.perf_counter() - begun)
                proposal = in_own_units(proposal, factor)
                if proposal.message == STUCK:
                    [(_, other)] = self._solve_networks([instances[person]], options)
                    proposal = other if other.message is None else proposal
                yield person, proposal
            start = time.perf_counter()

    def none_below(
        self, instances: Sequence[Instance], costs: Array, options: Options, node_limit: int
    ) -> NDArray[np.bool_]:
        """Which instances of networks are proven to have no action cheaper, by half the gap or more."""
        proven = np.zeros(len(instances), dtype=bool)
        if not instances:
            return proven
        people, limit = People(instances), options.time_limit
        with np.errstate(all="ignore"):
            search = Search(
                people.stacks,
                len(instances),
                people.judge,
                limit,
                cheaper_than=costs,
                node_limit=node_limit,
                allowance=people.allowance,
            )
            for outcome in search.run():
                proven[outcome.person] = outcome.best is None and not (outcome.late or outcome.stuck)
        return proven

    def _solve_networks(
        self, instances: Sequence[Instance], options: Options
    ) -> Iterator[tuple[int, Proposal]]:
        start = time.perf_counter()
        people = People(instances)
        each = (time.perf_counter() - start) / max(1, len(instances))
        with np.errstate(all="ignore"):  # infinities and what comes of them never close a node
            search = Search(
                people.stacks,
                len(instances),
                people.judge,
                options.time_limit,
                spent=each,
                allowance=people.allowance,
            )
            for outcome in search.run():
                yield outcome.person, people.proposal(outcome)


class People:
    """The applicants of a batch: their programs, grouped into stacks.

    Parameters
    ----------
    fixed
        Positions of instances and their common fixed program; None: those of every configuration.

    Attributes
    ----------
    instances
        In the order given; their numbers are the people of the stacks.
    members
        Per stack, the person and the fixed program behind every column.
    allowance
        The absolute part of every applicant's tolerance, (people,).
    stacks
        The stacks, with the person of every column.
    """

    def __init__(
        self,
        instances: Sequence[Instance],
        fixed: Iterable[tuple[list[int], Program]] | None = None,
    ) -> None:
        self.instances = instances
        self.allowance = np.array([instance.gap_allowance for instance in instances])
        groups: defaultdict[tuple[object, ...], list[tuple[list[int], Tape]]] = defaultdict(list)
        for people, program in programs(instances) if fixed is None else fixed:
            tape = Tape(program)
            groups[signature(tape)].append((people, tape))
        self.members: list[list[tuple[int, Tape]]] = []
        self.stacks: list[tuple[Stack, NDArray[np.int64]]] = []
        for group in sorted(groups.values(), key=lambda group: min(people[0] for people, _ in group)):
            columns = [(person, tape) for people, tape in group for person in people]
            order = sorted(range(len(columns)), key=lambda k: columns[k][0])
            self.members.append([columns[k] for k in order])
            persons = np.array([person for person, _ in self.members[-1]])
            self.stacks.append((stack([tape for _, tape in group], order), persons))

    def action(self, k: int, column: int, values: Array) -> dict[str, float]:
        """The action that values of a stack's actions stand for, in one of its columns."""
        limits, actions = self.stacks[k][0], self.members[k][column][1].program.actions
        kept = np.clip(values, limits.lower[:, column], limits.upper[:, column])
        return {
            a.feature: float(round(v)) if a.integral else v
            for a, v in zip(actions, kept.tolist(), strict=True)
        }

    def judge(self, k: int, column: int, values: Array) -> float | None:
        """Exact judgement of an action: its cost, or None if it is not feasible."""
        person = self.members[k][column][0]
        verdict = judge(self.instances[person], self.action(k, column, values))
        return float(verdict.cost) if verdict.feasible else None

    def missed(self, k: int, column: int, values: Array) -> float:
        """How far an exact logit stays below what it must reach, rounded down; 0 where it does not."""
        instance = self.instances[self.members[k][column][0]]
        logit = judge(instance, self.action(k, column, values)).logit
        if logit is None:
            return 0.0
        short = Fraction(instance.accept.threshold) + Fraction(instance.accept.margin) - logit.upper
        return max(0.0, float(short) * (1 - 2.0**-50))

    def proposal(self, outcome: Finished) -> Proposal:
        """What an outcome says, with this applicant's share of the common work."""
        action = None
        best = outcome.best
        if best is not None:
            action = self.action(best.stack, best.column, best.action)
        message = None
        if outcome.late:
            message = "the time limit was reached"
        elif outcome.stuck:
            message = "a box became too small to split"
        return Proposal(action, outcome.bound, "rigorous", outcome.nodes, message, outcome.seconds)
