"""The best feasible action in hand, judged exactly before it counts."""

from __future__ import annotations

import math
from collections.abc import Callable

from milp_recourse.judge.judgement import Action, Judgement, judge
from milp_recourse.problem.enclosure import round_down
from milp_recourse.problem.instance import Instance


def target_below(instance: Instance, cost: float) -> float:
    """A lower bound that proves an action of this cost optimal, with half the allowed gap to spare."""
    return cost - 0.5 * instance.gap_tolerance(cost)


class Incumbent:
    """Keeps the cheapest action that is exactly feasible.

    Parameters
    ----------
    instance
        The problem.
    found
        Called with each action that is kept.

    Attributes
    ----------
    judgement
        Of the action; None while nothing is known.
    cost
        Its exact cost rounded to a double; ``inf`` without one.
    """

    def __init__(self, instance: Instance, found: Callable[[Action], object] | None = None) -> None:
        self.instance, self.found = instance, found
        self.judgement: Judgement | None = None
        self.cost = math.inf

    @property
    def action(self) -> Action | None:
        """Feature -> value, or None while nothing is known."""
        return None if self.judgement is None else self.judgement.action

    @property
    def target(self) -> float:
        """The incumbent's cost less half the allowed gap; ``inf`` without an incumbent.

        The search is complete once no node can cost less than this.
        """
        return math.inf if self.judgement is None else target_below(self.instance, self.cost)

    @property
    def proven(self) -> float:
        """The largest double that is not above its exact cost: no lower bound is higher; inf without one."""
        return math.inf if self.judgement is None else round_down(self.judgement.cost)

    @property
    def tolerance(self) -> float:
        """The gap up to which the cost counts as optimal."""
        return self.instance.gap_tolerance(self.cost)

    @property
    def cutoff(self) -> float | None:
        """The target, or None if there is no incumbent or the target is not above 0."""
        return self.target if 0 < self.target < math.inf else None

    def take(self, action: Action) -> Judgement:
        """Judge an action, and keep it if it is feasible and the cheapest."""
        verdict = judge(self.instance, action)
        if verdict.feasible and float(verdict.cost) < self.cost:
            self.judgement, self.cost = verdict, float(verdict.cost)
            if self.found is not None:
                self.found(verdict.action)
        return verdict
