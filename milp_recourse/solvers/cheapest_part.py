"""Ensembles whose score is the largest of several sums: one problem per sum, and the cheapest action."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from milp_recourse.engine.forests.parts import each_part
from milp_recourse.judge.incumbent import Incumbent
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
    best = Incumbent(instance)
    found: list[Proposal] = []
    for k, part in enumerate(parts):
        left = clock.left()
        share = None if left is None else max(left / (len(parts) - k), 1e-3)
        proposal = solve(part, replace(options, time_limit=share))
        found.append(proposal)
        if proposal.action is not None:
            best.take(proposal.action)
    bounds = [proposal.lower_bound for proposal in found]
    assert all(bound is not None for bound in bounds)
    return Proposal(
        best.action,
        min(bound for bound in bounds if bound is not None),
        found[0].proof,
        sum(proposal.nodes or 0 for proposal in found),
        next((proposal.message for proposal in found if proposal.message), None),
        seconds=time.perf_counter() - start,
    )
