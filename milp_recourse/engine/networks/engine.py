"""From an instance to a proposal: search, judge the action exactly, and search again if it does not pass.

A search goes on in slices. :func:`first_slices` hands several applicants to compiled code
(:func:`~milp_recourse.engine.networks.search.run`), which goes from one to the next as long as each one's
first slice closes its search. What has closed is yielded (:func:`searched`) and judged later
(:func:`judged`). The one that has not closed is left in memory as it is and searched on by itself
(:func:`~milp_recourse.engine.networks.search_on.search_on`): slice after slice, what it asks judged exactly
in between.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.networks import search
from milp_recourse.engine.networks.nearby import inside_the_edge
from milp_recourse.engine.networks.problem_arrays import Array, People, Problems, decode, one_of
from milp_recourse.engine.networks.propose import Run
from milp_recourse.engine.networks.search import SLICE, Taken
from milp_recourse.engine.networks.search_on import STUCK, search_on
from milp_recourse.engine.networks.team import Team
from milp_recourse.judge import Judgement, judge
from milp_recourse.judge.conclude import Proposal
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import LATE, Clock, Options

REFUSED = "the deployed model refuses cheaper actions by its rounding: set accept.margin to cover it"
"""The message where the deployed model keeps an exact engine from a proof."""

FAILS = "an action that the search took for feasible fails the exact check"
"""The message where the engine itself was wrong about an action, against whose cost it closed nodes."""

FINER = 0.05
"""The share of the allowed gap that the second search (:func:`_finer`) leaves."""


class Closed(NamedTuple):
    """A search that closed with its first nodes and whose action has not been judged yet.

    Attributes
    ----------
    people, number
        Its arrays.
    action
        Its best action, None without one.
    bound, nodes, seconds
        What it proves, how many nodes it examined, and in what time.
    """

    instance: Instance
    people: People
    number: int
    action: dict[str, float] | None
    bound: float
    nodes: int
    seconds: float


def searched(
    instances: Sequence[Instance], people: People, options: Sequence[Options]
) -> Iterator[list[Closed | Proposal]]:
    """What each search has found, several searches at a time. If its first nodes close it, its action is
    still to be judged (:func:`judged`).

    With many applicants it pays to judge after several searches: right after compiled code, whose
    instructions then fill the processor's caches, Python needs twice the time. None of those that have closed
    waits for one that has not.

    Parameters
    ----------
    people
        The instances' arrays.

    Yields
    ------
    list
        One entry for each of the next instances, in their order.
    """
    count, k = len(instances), 0
    found, numbers = np.zeros((count, people.lever.shape[1])), np.zeros(count, search.FOUND)
    # of plain ones nothing is done or asked between the slices of a search before the first one ends
    plain = all((o.time_limit or SLICE) >= SLICE and o.watch is None and o.starts is None for o in options)
    memory = search.SPARE.take(one_of(people, 0)) if plain else None
    while k < count:
        begun, first, why, spent = time.perf_counter(), k, None, 0.0
        if memory is not None:
            k, why = first_slices(people, first, memory, found, numbers, options[k].time_limit)
            ticks = numbers["ticks"][first : k + 1]
            seconds = ((time.perf_counter() - begun) / max(1.0, ticks.sum()) * ticks).tolist()
            spent, each = seconds[-1], zip(range(first, k), seconds, strict=False)
            closed = [_closed(instances[n], people, n, found[n], numbers[n], s) for n, s in each]
            if closed:
                yield [*closed]
        if why != search.DONE:
            begun = time.perf_counter() - spent
            yield [_alone(instances[k], one_of(people, k), options[k], memory, why, begun)]
            k += 1
    if memory is not None:
        search.SPARE.give(one_of(people, 0), memory)


def first_slices(
    people: People, first: int, memory: Taken, found: Array, numbers: NDArray[Any], limit: float | None
) -> tuple[int, int]:
    """The first slices of several applicants' searches, from number ``first`` on, until one does not finish
    or :data:`SLICE` has passed.

    Parameters
    ----------
    found, numbers
        What is found; see :func:`~milp_recourse.engine.networks.search.run`, whose answer is returned.
    limit
        Most seconds of one applicant's search for good actions; None for no limit.
    """
    p, few = one_of(people, first), people.lever.shape[1] <= search.FEW
    share, around = search.first_slice(p, few)
    settings = search.slice_and(limit), share, few, around, np.zeros((0, found.shape[1]))
    k, why = search.run(people, first, True, *memory, found, numbers, *settings)
    return int(k), int(why)


def _closed(
    instance: Instance, people: People, k: int, values: Array, numbers: Any, seconds: float
) -> Closed:
    """With a bound of at most what nodes were closed against, by compiled code's own cost of the action."""
    cost, case, bound, nodes, _ = numbers.tolist()
    arrays = people.lever[k], people.acts[case], people.ends[k]
    action = decode(instance, *arrays, values) if cost < math.inf else None
    proven = bound if action is None else min(bound, instance.target_below(cost))
    return Closed(instance, people, k, action, proven, nodes, seconds)


def _alone(
    instance: Instance, problem: Problems, options: Options, own: Taken | None, why: int | None, begun: float
) -> Proposal:
    """One search, or the rest of it after its first slice, which has returned because of ``why``, in its
    ``own`` memory."""
    clock = Clock.start(options.time_limit, begun)
    watch = options.watch or (lambda cost, bound: None)
    given = instance, problem, options.starts, own
    with closing(Run(*given) if options.threads == 1 else Team(options.threads, *given)) as state:
        made = search_on(state, clock, watch, partial(inside_the_edge, clock=clock), why)
        return _proposal(state, *made, int(state.tree.now.examined), begun, clock)


def judged(found: Closed, verdict: Judgement | None, factor: float, options: Options) -> Proposal:
    """The proposal of a search that has closed.

    Parameters
    ----------
    verdict
        The judgement of its action, None without one; for the instance itself or for one whose costs are
        those of the instance divided by ``factor``.
    options
        Its time limit holds where the action does not pass and another one is looked for.
    """
    begun, bound = time.perf_counter() - found.seconds, found.bound
    if found.action is not None and verdict is not None:
        bound = min(bound, found.instance.target_below(float(verdict.cost) * factor))
        if not verdict.feasible:
            clock = Clock.start(options.time_limit, begun)
            with closing(Run(found.instance, one_of(found.people, found.number))) as state:
                state.offer(found.action)
                return _proposal(state, bound, None, found.nodes, begun, clock)
    made = found.nodes, None, time.perf_counter() - begun, verdict
    return Proposal(found.action, max(0.0, bound), "rigorous", *made)


def _proposal(
    state: Run, bound: float, message: str | None, nodes: int, begun: float, clock: Clock
) -> Proposal:
    """What a search has found and proven. If the deployed model refuses the cheapest action, one that it
    accepts is looked for next to that, and for :data:`SLICE` at least."""
    best = state.best
    if state.refused is not None:
        inside_the_edge(state, clock.at_least(SLICE))
        if best.action is not None and bound < best.target:
            bound = max(bound, _finer(state, clock))
        if best.action is None or bound < best.target:
            wrong = FAILS if judge(state.instance, state.refused).faults else REFUSED
            message = (LATE if clock.over else wrong) if message in (None, STUCK) else message
    made = nodes, message, time.perf_counter() - begun, best.judgement
    return Proposal(best.action, max(0.0, min(bound, best.target)), "rigorous", *made)


def _finer(state: Run, clock: Clock) -> float:
    """The bound of another search, which leaves only a part of the gap below the action that the deployed
    model refuses: the one that it accepts may cost more by up to the rest."""
    with closing(Run(state.instance, state.problem)) as again:
        again.offer(state.refused or {})
        again.work.now.allowance -= (1.0 - FINER) * state.instance.gap_tolerance(state.least)
        bound, _ = search_on(again, clock)
    if again.best.action is not None:
        state.offer(again.best.action)
    return bound
