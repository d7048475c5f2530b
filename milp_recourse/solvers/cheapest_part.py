"""Ensembles whose score is the largest of several sums: one problem per sum, and the cheapest action."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from milp_recourse.engine.forests.parts import each_part
from milp_recourse.judge.best_first import BestFirst
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import Clock
from milp_recourse.solvers.protocol import Options, Proposal


def cheapest_part(
    instance: Instance, options: Options, solve: Callable[[Instance, Options], Proposal]
) -> Proposal:
    """Solve one problem per sum. What is accepted is accepted by at least one of the sums, so the least bound
    of these problems is a bound of the whole.

    The time limit is for all of them together; each may take an equal share of what is left of it.
    """
    parts = each_part(instance)
    if len(parts) == 1:
        return solve(parts[0], options)
    start, clock = time.perf_counter(), Clock.start(options.time_limit)
    search = BestFirst[Instance](instance, clock)
    for part in parts:
        search.push(0.0, part)
    waiting = len(parts)
    while taken := search.next():
        [(_, part)], left = taken, clock.left()
        share = None if left is None else max(left / waiting, 1e-3)
        found = solve(part, replace(options, time_limit=share))
        waiting, search.nodes = waiting - 1, search.nodes + (found.nodes or 0)
        search.proof = found.proof or search.proof
        search.message = search.message or found.message
        search.close(found.lower_bound or 0.0)
        if found.action is not None:
            search.offer(found.action)
    return search.outcome(time.perf_counter() - start)
