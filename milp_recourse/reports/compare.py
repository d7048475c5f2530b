"""Comparison of a result with a known answer."""

from __future__ import annotations

import math
from typing import Literal

from milp_recourse.problem.instance import Reference
from milp_recourse.problem.result import Result, Status, gap_tolerance

Verdict = Literal["agrees", "contradicts", "claims nothing"]


def compare(reference: Reference, result: Result) -> Verdict:
    """Whether the known answer and the result can both be true.

    Each claims an interval that contains the optimal cost: from the lower bound to the cost, or infinity
    alone for "infeasible". ``found`` has no lower end. The two intervals must meet, up to the gap tolerance.
    A result without any bound, such as ``not-found``, claims nothing.
    """
    known = _interval(reference.status, reference.cost, reference.lower_bound)
    claimed = _interval(result.status.value, result.cost, result.lower_bound)
    if claimed == (0.0, math.inf):
        return "claims nothing"
    low, high = max(known[0], claimed[0]), min(known[1], claimed[1])
    slack = gap_tolerance(high, result.gap_allowance) * 2 if math.isfinite(high) else 0.0
    return "agrees" if low <= high + slack else "contradicts"


def _interval(status: str, cost: float | None, bound: float | None) -> tuple[float, float]:
    if status == Status.INFEASIBLE.value:
        return math.inf, math.inf
    low = bound if bound is not None else 0.0
    if status == Status.OPTIMAL.value and cost is not None and bound is None:
        low = cost
    return low, math.inf if cost is None else cost
