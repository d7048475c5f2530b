"""A result against a known answer."""

from __future__ import annotations

import math
from typing import Literal

from milp_recourse.instance import Reference
from milp_recourse.result import Result, Status, gap_tolerance

Verdict = Literal["agrees", "contradicts", "claims nothing"]


def compare(reference: Reference, result: Result) -> Verdict:
    """Whether both can be true: each claims an interval that holds the optimal cost.

    A lower bound and a cost are such an interval; "infeasible" is the interval at infinity;
    ``found`` bounds from above only. The intervals must meet up to the gap tolerance; one without
    any bound, as ``not-found`` has, claims nothing that could.
    """
    known = _interval(reference.status, reference.cost, reference.lower_bound)
    here = _interval(result.status.value, result.cost, result.lower_bound)
    if here == (0.0, math.inf):
        return "claims nothing"
    low, high = max(known[0], here[0]), min(known[1], here[1])
    slack = gap_tolerance(high, result.gap_allowance) * 2 if math.isfinite(high) else 0.0
    return "agrees" if low <= high + slack else "contradicts"


def _interval(status: str, cost: float | None, bound: float | None) -> tuple[float, float]:
    if status == Status.INFEASIBLE.value:
        return math.inf, math.inf
    low = bound if bound is not None else 0.0
    if status == Status.OPTIMAL.value and cost is not None and bound is None:
        low = cost
    return low, math.inf if cost is None else cost
