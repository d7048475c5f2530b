r"""Costs whose scale depends on a change's direction: an exact search around a back end of one scale.

For every lever with two scales a case says whether it rises or falls: an interval on one side of the factual,
and one scale. A lever that is left open has the larger scale, the lower price, whichever way it goes: a
relaxation. Where the optimum moves every open lever in its cheap direction, nothing in the case is cheaper;
else the case is split on the lever whose real price differs most. Not acting is possible in both parts. The
parts cover the case, so the least bound of those that are closed or open is a lower bound. Cheapest first.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from milp_recourse.backends.protocol import Options, Proposal
from milp_recourse.incumbent import Incumbent, without_search
from milp_recourse.instance import Instance
from milp_recourse.judge import deltas
from milp_recourse.options import Clock
from milp_recourse.result import Proof

Rises = Mapping[str, bool]


@dataclass(order=True)
class _Case:
    """Directions that are decided; ordered by the lower bound of what it is a part of."""

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
    heap = [_Case(0.0, 0, _one_sided(instance))]
    while heap and heap[0].bound < best.target:
        if clock.over:
            message = "the time limit was reached"
            break
        case = heapq.heappop(heap)
        own = _with_one_scale(instance, case.rises)
        asked = replace(options, time_limit=clock.left(), watch=None)
        found = without_search(own) or solve(own, asked)
        nodes += found.nodes or 1
        if found.proof != "rigorous":
            proof = "solver"
        bound = max(case.bound, found.lower_bound or 0.0)
        if bound == math.inf:
            continue
        if found.action is not None:
            best.take(found.action)
        dear = _dearest(instance, own, found.action or {}, case.rises)
        if found.message is not None or dear is None:
            closed = min(closed, bound)
            message = found.message or message
            continue
        for rises in (True, False):
            count += 1
            heapq.heappush(heap, _Case(bound, count, {**case.rises, dear: rises}))
    bound = min([closed, *(case.bound for case in heap)])
    if best.action is not None:
        bound = min(bound, best.cost)
    stopped = message if bound < best.target else None
    return Proposal(best.action, max(bound, 0.0), proof, nodes, stopped, seconds=time.perf_counter() - start)


def _one_sided(instance: Instance) -> dict[str, bool]:
    """The directions of those levers with two scales that can go one way only."""
    found = {}
    for name in instance.cost.decrease:
        low, high = instance.levers.get(name, (-math.inf, math.inf))
        x = instance.factual[name]
        if low >= x or high <= x:
            found[name] = low >= x
    return found


def _with_one_scale(instance: Instance, rises: Rises) -> Instance:
    """The instance with one scale per lever: of its direction, or the larger one where that is open."""
    cost, ranges = instance.cost, dict(instance.preferences.ranges)
    scale = dict(cost.scale)
    for name, down in cost.decrease.items():
        if name not in rises:
            scale[name] = max(scale[name], down)
            continue
        scale[name] = scale[name] if rises[name] else down
        side = (instance.factual[name], math.inf) if rises[name] else (-math.inf, instance.factual[name])
        if name in instance.levers:
            low, high = instance.levers[name]
            low, high = max(low, side[0]), min(high, side[1])
            # an end beyond the interval: nothing to do with the feature
            ranges[name] = (low, high) if low <= high else (side[0], side[0])
    return replace(
        instance,
        cost=replace(cost, scale=scale, decrease={}, relative=frozenset()),
        preferences=replace(instance.preferences, ranges=ranges),
    )


def _dearest(instance: Instance, own: Instance, action: Mapping[str, float], rises: Rises) -> str | None:
    """The open lever whose change costs most more than its relaxation says; None: none costs more."""
    most, dearest = Fraction(0), None
    changes = deltas(instance, {name: action[name] for name in instance.cost.decrease if name in action})
    for name, delta in changes.items():
        if name not in rises:
            costs = (one.cost.exact({name: delta}, one.weights) for one in (instance, own))
            more = next(costs) - next(costs)
            if more > most:
                most, dearest = more, name
    return dearest
