"""Conditions by branch and bound over their alternatives, around any exact back end.

Conditions contain choices: "any of", "at most k actions", "at least k actions". A *case* has decided some of
these choices and ignores the others. What it has decided is written as rows and as features that are acted
on or not (*literals*), which :mod:`milp_recourse.program.presolve` builds into the problem. Ignoring demands
makes the problem easier, so its optimum is a lower bound for the case. If this optimum keeps the ignored
conditions too, it is the optimum of the case. Otherwise the case is split by one condition that the optimum
breaks:

* "any of": one new case per alternative;
* a sum of several levers of an ensemble that is otherwise a choice of cells: one case in which it holds;
* "at most k actions", but the optimum acts on more: take k + 1 features that it acts on. Every allowed action
  leaves at least one of them alone, so there is one new case per such feature, in which it is not acted on.
  Where there are few sets of k features, there is one new case per set instead;
* "at least k actions", but the optimum acts on fewer: every allowed action acts on a feature that the optimum
  leaves alone, so there is one new case per such feature, in which it is acted on.

The new cases together contain every action that the split case allows. So the least lower bound over all
cases that were not split is a lower bound for the applicant. Cases are taken cheapest first. The next
problems of several applicants are solved together.

References
----------
Balas (1979), https://doi.org/10.1016/S0167-5060(08)70342-X (disjunctive programming)
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from milp_recourse.engine.forests.axes import separable
from milp_recourse.judge import held_exactly, judge, known_factual, without_idle_holds, without_search
from milp_recourse.judge.best_first import BestFirst
from milp_recourse.problem.conditions import (
    FALSE,
    TRUE,
    AllOf,
    AnyOf,
    Counted,
    Demand,
    Row,
    Switched,
    all_of,
    factors,
    holds,
    leaves,
    unlabelled,
)
from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Instance, under
from milp_recourse.problem.options import LATE, Clock
from milp_recourse.program.presolve import Folded, Literal, fold, without_conditions
from milp_recourse.solvers.protocol import Options, Proposal

PATIENCE, MOST_PATIENCE = 2.0, 128.0
"""Seconds for the problem of a case that can still be split: the first time limit, and the largest.

A problem that reaches its limit is solved again with eight times the limit before its case is split. The case
is split at once if the condition to split by is known and gives few new cases.
"""

MOST_AT_ONCE = 16
"""Most cases whose problems are asked for together."""

MOST_MASKS = 400
"""With at most so many sets of k features, "at most k actions" is split into one case per set."""

SolveMany = Callable[[Sequence[Instance], Options], Iterator[tuple[int, Proposal]]]
Undecided = AnyOf | Counted | Row


@dataclass(frozen=True)
class _Case:
    """Literals that hold, and conditions not yet decided."""

    literals: frozenset[Literal]
    open: tuple[Undecided, ...]
    patience: float = PATIENCE


class CaseSearch(BestFirst[_Case]):
    """The search over one applicant's cases; :func:`solve_cases` runs several searches side by side.

    Parameters
    ----------
    instance
        With conditions.
    repair
        Moves an action that fails by a rounding error inward, or returns None.
    counts
        Whether the back end itself counts the values that change, where an ensemble is a choice of cells:
        "at most k actions" is then a literal from the start (for k = 1 there are few cases).
    """

    def __init__(
        self,
        instance: Instance,
        clock: Clock,
        repair: Callable[[Instance, Mapping[str, float]], Mapping[str, float] | None] | None = None,
        counts: bool = False,
    ) -> None:
        super().__init__(instance, clock)
        self.instance, self.repair, self.seconds = instance, repair, 0.0
        self._known: set[_Case] = set()
        self._asked: list[tuple[float, _Case, Folded]] = []
        self._source = _sources(instance)
        self.rests_on = frozenset[int]()
        forest = isinstance(instance.classifier, TreeEnsemble)
        self._cells = forest and separable(without_conditions(instance))
        demand = unlabelled(instance.demand)
        self._counts = counts and self._cells and not any(map(self._apart, leaves(demand)))
        if demand != FALSE:
            self._open(0.0, frozenset(), (), demand)
        else:
            self.rests_on = frozenset(range(len(instance.all_conditions)))

    def proposal(self) -> Proposal:
        """The outcome, with the conditions that its bound rests on: those that are rows or say of one feature
        whether it is acted on, and those that a case was split by."""
        return replace(self.outcome(self.seconds), rests_on=self.rests_on)

    def ask(self) -> list[Instance]:
        """The problems to be solved next; none if the search is finished."""
        self._asked = []
        while not self._asked and (taken := self.next(MOST_AT_ONCE, 0.0)):
            folds = ((bound, case, fold(self.instance, case.literals)) for bound, case in taken)
            self._asked = [(bound, case, folded) for bound, case, folded in folds if folded is not None]
        return [folded.instance for *_, folded in self._asked]

    def patience(self, position: int) -> float:
        """Seconds that one of the problems asked for may take; infinite where its case cannot be split."""
        case = self._asked[position][1]
        return case.patience if case.open else math.inf

    def tell(self, proposals: Sequence[Proposal]) -> None:
        """Take the proposals for the problems of the last :meth:`ask`, in their order."""
        for (before, case, folded), found in zip(self._asked, proposals, strict=True):
            self.nodes += found.nodes or 1
            if found.proof != "rigorous":
                self.proof = "solver"
            bound = max(before, found.lower_bound or 0.0)
            if bound < math.inf:
                action = None if found.action is None else dict(found.action)
                self._take(case, folded, action, bound, found.message)
        self._asked = []

    # -- inside --------------------------------------------------------------------------

    def _take(
        self,
        case: _Case,
        folded: Folded,
        found: dict[str, float] | None,
        bound: float,
        message: str | None,
    ) -> None:
        """Close a case whose relaxation has this optimum, split it, or put it back for more time.

        Parameters
        ----------
        message
            Why the relaxation was not solved to its optimum, or None. If it was not, a case that can be
            split is split at once if that gives few parts, else tried again with more time, up to
            :data:`MOST_PATIENCE`; a case that cannot be split is closed with the bound in hand.
        """
        action = None if found is None else folded.action(self._tidied(folded.instance, found))
        broken = None if action is None else self._broken(case.open, action)
        refused = action is not None and broken is None and not self.offer(action).feasible
        if refused and action is not None and self.repair is not None:
            repaired = self.repair(folded.instance, action)
            if repaired is not None:
                self.offer(folded.action(dict(repaired)))
        if message is not None and case.open and bound < self.best.target:
            few_parts = broken is not None and (
                not isinstance(broken, Counted) or _few_masks(folded.instance, broken)
            )
            if not few_parts and case.patience < MOST_PATIENCE:
                self.push(bound, replace(case, patience=8 * case.patience))
                return
            broken = broken or case.open[0]
        if broken is not None:
            self._split(case, folded, broken, action or {}, bound)
            return
        self.close(bound)
        if message is not None or self.best.action is None:
            self.message = message or "the optimum of a case fails the exact check"

    def _tidied(self, instance: Instance, action: dict[str, float]) -> dict[str, float]:
        """The action without what rounding alone has put in: changes that are tiny, and holding features that
        nothing moves."""
        kept = without_idle_holds(instance, action)
        verdict = judge(instance, kept)
        return without_idle_holds(instance, held_exactly(verdict).action) if verdict.feasible else kept

    def _split(
        self, case: _Case, folded: Folded, broken: Undecided, action: Mapping[str, float], bound: float
    ) -> None:
        """Add the cases that splitting by a broken condition gives."""
        rest = tuple(one for one in case.open if one is not broken)
        self._rest_on(broken)
        if isinstance(broken, Counted):
            self._split_by_count(case, rest, folded, broken, action, bound)
            return
        if isinstance(broken, Row):
            self._open(bound, case.literals | {broken}, rest, TRUE)
            return
        for part in broken.parts:
            for one in part.parts if isinstance(part, AllOf) else (part,):
                self._source.setdefault(one, self._source.get(broken))
            self._open(bound, case.literals, rest, part)

    def _split_by_count(
        self,
        case: _Case,
        rest: tuple[Undecided, ...],
        folded: Folded,
        count: Counted,
        action: Mapping[str, float],
        bound: float,
    ) -> None:
        """The same where a count is broken; ``rest``: the other conditions that are open."""
        levers = list(folded.instance.levers)
        if count.at_most is not None and not (len(action) < count.at_least):
            if len(levers) <= count.at_most:  # no action can act on more
                self._open(bound, case.literals, rest, Counted(count.at_least))
                return
            if _few_masks(folded.instance, count):
                for kept in combinations(levers, count.at_most):
                    left = [Switched(name, False) for name in levers if name not in kept]
                    self._open(bound, case.literals, rest, all_of([*left, Counted(count.at_least)]))
                return
            first = self._dearest(action)
            others = [name for name in levers if name not in action]
            for name in (first + others)[: count.at_most + 1]:
                self._open(bound, case.literals, case.open, Switched(name, False))
            return
        forced = {one.feature for one in case.literals if isinstance(one, Switched) and one.acted}
        if len(forced) >= count.at_least:
            self._open(bound, case.literals, rest, TRUE)
            return
        for name in levers:
            if name not in (action if len(action) < count.at_least else forced):
                self._open(bound, case.literals, case.open, Switched(name, True))

    def _open(
        self, bound: float, literals: frozenset[Literal], open_: tuple[Undecided, ...], more: Demand
    ) -> None:
        """Add the case in which ``more`` holds too."""
        parts = more.parts if isinstance(more, AllOf) else (more,)
        new = frozenset[Literal](p for p in parts if isinstance(p, Row | Switched) and not self._apart(p))
        others = tuple(p for p in parts if isinstance(p, Undecided) and p not in new)
        if self._counts:  # what is held counts as well, so the count stays open
            counts = (p.at_most or 0 for p in others if isinstance(p, Counted))
            new |= {Counted(0, most) for most in counts if 1 < most < len(self.instance.levers)}
        for part in new:
            self._rest_on(part)
        case = _Case(literals | new, open_ + others)
        if case not in self._known:
            self._known.add(case)
            self.push(bound, case)

    def _apart(self, part: Demand) -> bool:
        """Whether a row would turn a choice of cells, lever by lever, into a harder problem. Such a row is
        ignored until an optimum breaks it."""
        return self._cells and isinstance(part, Row) and sum(len(factors(of)) for of, _ in part.terms) > 1

    def _rest_on(self, part: Demand) -> None:
        """Note that bounds rest on the condition that a demand is part of."""
        source = self._source.get(part)
        self.rests_on |= frozenset() if source is None else {source}

    def _broken(self, open_: Sequence[Undecided], action: Mapping[str, float]) -> Undecided | None:
        """The first open alternative that the action breaks, exactly or in the doubles returned."""
        if not open_:
            return None
        exact = self.instance.scm.counterfactual_exact(known_factual(self.instance), action)
        returned = {name: Enclosure.of(float(value.midpoint)) for name, value in exact.items()}
        for one in open_:
            if not (holds(one, exact, action) and holds(one, returned, action)):
                return one
        return None

    def _dearest(self, action: Mapping[str, float]) -> list[str]:
        """The features acted on, those whose change costs most first: without these, bounds rise soonest."""
        return sorted(action, key=lambda name: -sum(self.instance.lever_costs[name].paid(action[name])))


def _sources(instance: Instance) -> dict[Demand, int | None]:
    """For each part of what an instance's conditions demand together, the first condition that demands it;
    None for what is demanded besides them."""
    found: dict[Demand, int | None] = {}
    each = [(k, under(instance, [k])) for k in range(len(instance.all_conditions))]
    for k, one in [*each, (None, instance)]:
        demand = unlabelled(one.demand)
        for part in demand.parts if isinstance(demand, AllOf) else (demand,):
            found.setdefault(part, k)
    return found


def _few_masks(instance: Instance, count: Counted) -> bool:
    """Whether at most :data:`MOST_MASKS` sets have as many features as may be acted on."""
    return count.at_most is not None and math.comb(len(instance.levers), count.at_most) <= MOST_MASKS


def solve_cases(
    instances: Sequence[Instance],
    options: Options,
    solve_many: SolveMany,
    repair: Callable[[Instance, Mapping[str, float]], Mapping[str, float] | None] | None = None,
    counts: bool = False,
) -> Iterator[tuple[int, Proposal]]:
    """(position, proposal) of instances with conditions, each as soon as it is known.

    With a time limit they are solved one after the other, so that none spends the time of another one.

    Parameters
    ----------
    solve_many
        An exact back end's, for instances without conditions, whose demands are rows and features that must
        be acted on.
    repair, counts
        As in :class:`CaseSearch`.
    """
    options = replace(options, watch=None)  # a case's bound is none of the whole problem
    every = range(len(instances))
    for group in [list(every)] if options.time_limit is None else [[k] for k in every]:
        clock = Clock.start(options.time_limit)
        searches = [CaseSearch(instances[k], clock, repair, counts) for k in group]
        for position, proposal in _side_by_side(searches, options, solve_many, clock):
            yield group[position], proposal


def _side_by_side(
    searches: Sequence[CaseSearch], options: Options, solve_many: SolveMany, clock: Clock
) -> Iterator[tuple[int, Proposal]]:
    """(position, proposal) of several searches, whose next problems are solved together; with a time limit,
    of one."""
    waiting = list(range(len(searches)))
    while waiting:
        asked: list[tuple[int, int, Instance]] = []
        problems: dict[int, list[Proposal | None]] = {}
        begun = time.perf_counter()
        for k in list(waiting):
            found = searches[k].ask()
            problems[k] = without_search(found)
            if not found:
                waiting.remove(k)
                yield k, searches[k].proposal()
            asked += [(k, j, one) for j, one in enumerate(found) if problems[k][j] is None]
        for group, patience in _by_patience(asked, searches, options, clock):
            for position, proposal in solve_many([one for *_, one in group], patience):
                k, j, _ = group[position]
                problems[k][j] = proposal
        took = (time.perf_counter() - begun) / max(1, len(waiting))
        for k in waiting:
            searches[k].seconds += took
            searches[k].tell([one or UNSOLVED for one in problems[k]])


UNSOLVED = Proposal(None, 0.0, "rigorous", 0, LATE)
"""Of a problem for which there was no time."""

Asked = tuple[int, int, Instance]
"""A problem to be solved: the number of the search that asks for it, its position there, and the problem."""


def _by_patience(
    asked: Sequence[Asked], searches: Sequence[CaseSearch], options: Options, clock: Clock
) -> Iterator[tuple[list[Asked], Options]]:
    """Groups of problems that may take the same time, and the options with it; if the clock ends, single
    problems until it has ended."""
    waiting = list(asked)
    while waiting and (left := clock.left(0.0)) != 0.0:
        limit = searches[waiting[0][0]].patience(waiting[0][1])
        if left is None:
            group = [one for one in waiting if searches[one[0]].patience(one[1]) == limit]
            waiting = [one for one in waiting if searches[one[0]].patience(one[1]) != limit]
        else:
            group, waiting, limit = waiting[:1], waiting[1:], min(left, limit)
        yield group, replace(options, time_limit=None if limit == math.inf else limit)


def solve_case_by_case(
    instance: Instance, options: Options, solve: Callable[[Instance, Options], Proposal]
) -> Proposal:
    """One instance with conditions, by a back end that solves one at a time."""

    if not instance.conditional:
        return solve(instance, options)

    def solve_many(some: Sequence[Instance], own: Options) -> Iterator[tuple[int, Proposal]]:
        for k, one in enumerate(some):
            yield k, solve(one, own)

    [(_, proposal)] = solve_cases([instance], options, solve_many)
    return proposal
