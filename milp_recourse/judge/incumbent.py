"""The best feasible action in hand, judged exactly before it counts."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from milp_recourse.judge import already_good, judge
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Proposal


class Incumbent:
    """Keeps the cheapest action that is exactly feasible.

    Attributes
    ----------
    action
        Feature -> value, or None while nothing is known.
    cost
        Its exact cost rounded to a double; ``inf`` without one.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.action: dict[str, float] | None = None
        self.cost = np.inf

    @property
    def target(self) -> float:
        """The incumbent's cost less half the allowed gap; ``inf`` without an incumbent.

        The search is complete once no node can cost less than this.
        """
        return self.cost - 0.5 * self.tolerance if self.action is not None else np.inf

    @property
    def tolerance(self) -> float:
        """The gap up to which the cost counts as optimal."""
        return self.instance.gap_tolerance(self.cost)

    @property
    def cutoff(self) -> float | None:
        """The target, or None if there is no incumbent or the target is not above 0."""
        return self.target if self.action is not None and self.target > 0 else None

    def take(self, action: Mapping[str, float]) -> bool:
        """Judge an action, keep it if it is feasible and the cheapest, and return whether it is feasible."""
        verdict = judge(self.instance, action)
        if verdict.feasible and float(verdict.cost) < self.cost:
            self.action, self.cost = dict(action), float(verdict.cost)
        return verdict.feasible


def without_search(instance: Instance, good: bool | None = None) -> Proposal | None:
    """The proposal if doing nothing is feasible or there is no lever; None if a search is needed.

    Parameters
    ----------
    good
        Whether doing nothing is feasible; None: it is judged here.
    """
    if already_good(instance) if good is None else good:
        return Proposal({}, 0.0, "rigorous")
    if instance.levers:
        return None
    message = "no feature can be acted on: widen the mask, the ranges, the bounds or the domains"
    return Proposal(None, math.inf, "rigorous", message=message)
