r"""Costs whose scale depends on a change's direction: an exact search around a back end of one scale.

A case decides for some of the levers with two scales whether they rise or fall. Such a lever has an interval
on one side of the factual, and one scale. A lever that is not decided has the larger of its scales, so that
changes cost less, in either direction: a relaxation. If the optimum moves every undecided lever in the
direction of its larger scale, nothing in the case is cheaper; else the case is split on the lever whose
change really costs most more than that. Not acting is possible in both parts. The parts cover the case, so
the least bound of all closed and open cases is a lower bound. The case with the least bound comes first."""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from milp_recourse.judge import deltas, without_search
from milp_recourse.judge.incumbent import Incumbent
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import Clock
from milp_recourse.problem.result import Proof
from milp_recourse.solvers.protocol import Options, Proposal

Rises = Mapping[str, bool]


@dataclass(order=True)
class _Case:
    """The directions that are decided; ordered by the lower bound of the case that this one is a part of."""

    bound: float
    order: int
    rises: Rises = field(compare=False)


def solve_by_direction(
    instance: Instance, options: Options, solve: Callable[[Instance, Options], Proposal]
) -> Proposal:
    """The proposal for an instance with two scales.

    Parameters
    ----------
    solve
        An exact back end's, for instances whose levers have one scale each.
    """
    start, clock = time.perf_counter(), Clock.start(options.time_limit)
    best, closed, nodes, count = Incumbent(instance), math.inf, 0, 0
    proof: Proof = "rigorous"
    message: str | None = None
    heap = [_Case(0.0, 0, {})]
    while heap and heap[0].bound < best.target:
        if clock.over:
            message = "the time limit was reached"
            break
        case = heapq.heappop(heap)
        own = with_one_scale(instance, case.rises)
        found = without_search([own])[0] or solve(own, replace(options, time_limit=clock.left(), watch=None))
        nodes += found.nodes or 1
        if found.proof != "rigorous":
            proof = "solver"
        bound = max(case.bound, found.lower_bound or 0.0)
        if bound == math.inf:
            continue
        if found.action is not None:
            best.take(found.action)
        dearest = _dearest(instance, own, found.action or {}, case.rises)
        if found.message is not None or dearest is None:
            closed = min(closed, bound)
            message = found.message or message
            continue
        for rises in (True, False):
            count += 1
            heapq.heappush(heap, _Case(bound, count, {**case.rises, dearest: rises}))
    bound = min([closed, *(case.bound for case in heap)])
    if best.action is not None:
        bound = min(bound, best.cost)
    stopped = message if bound < best.target else None
    return Proposal(best.action, max(bound, 0.0), proof, nodes, stopped, seconds=time.perf_counter() - start)


def with_one_scale(instance: Instance, rises: Rises) -> Instance:
    """The instance with one scale per lever.

    A lever in ``rises`` that rises sets values from its factual one up (whole numbers: above it); one that
    falls sets values up to its factual one. A lever that can go either way and is not in ``rises`` has the
    larger of its scales.
    """
    cost, ranges = instance.cost, dict(instance.preferences.ranges)
    scale = dict(cost.scale)
    for name, down in cost.decrease.items():
        if name not in instance.levers:
            continue
        (low, high), x = instance.levers[name], instance.factual[name]
        if name in rises:
            above = math.floor(x) + 1.0 if instance.feature(name).integral else x
            low, high = ranges[name] = (above, high) if rises[name] else (low, x)
        if high <= x:
            scale[name] = down
        elif low < x:
            scale[name] = max(scale[name], down)
    return replace(
        instance,
        cost=replace(cost, scale=scale, decrease={}, relative=frozenset()),
        preferences=replace(instance.preferences, ranges=ranges),
        reference=None,
    )


def _dearest(instance: Instance, own: Instance, action: Mapping[str, float], rises: Rises) -> str | None:
    """The undecided lever whose change costs most more in the instance than in its relaxation ``own``; None
    if none costs more."""
    most, dearest = Fraction(0), None
    changes = deltas(instance, {name: action[name] for name in instance.cost.decrease if name in action})
    for name, delta in changes.items():
        if name not in rises:
            costs = (one.cost.exact({name: delta}, one.weights) for one in (instance, own))
            more = next(costs) - next(costs)
            if more > most:
                most, dearest = more, name
    return dearest
