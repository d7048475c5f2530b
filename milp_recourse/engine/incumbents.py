"""What is in hand for every applicant: the cheapest action, the target it sets, and how much was spent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from milp_recourse.result import RELATIVE_GAP

Array = np.ndarray

Judge = Callable[[int, int, Array], float | None]
"""(stack, applicant's column, values) -> the exact cost if the action is exactly feasible, else None."""


@dataclass
class Best:
    """An action: the stack it belongs to, its column there and its values (d,)."""

    stack: int
    column: int
    action: Array


class Incumbents:
    """The best actions of ``count`` applicants.

    Attributes
    ----------
    cost
        Of the best action; without one inf, or what it is to cost less than, (count,).
    allowance
        The absolute part of every applicant's tolerance, (count,).
    dearest
        More than any action can cost, (count,).
    """

    def __init__(self, count: int, cheaper_than: Array | None = None, allowance: Array | None = None) -> None:
        self.allowance = np.zeros(count) if allowance is None else allowance
        self.cost = np.full(count, np.inf) if cheaper_than is None else cheaper_than.copy()
        self.dearest = np.zeros(count)
        self.best: list[Best | None] = [None] * count

    def target(self, people: Array) -> Array:
        """Nodes whose bound reaches this are closed: the cost less half the allowed gap."""
        cost = self.cost[people]
        known = np.isfinite(cost)
        safe = np.where(known, cost, 0.0)
        tolerance = RELATIVE_GAP * safe + self.allowance[people]
        return np.where(known, safe - 0.5 * tolerance, self.dearest[people])

    def found(self, people: Array) -> Array:
        """Who has an action, (n,)."""
        return np.array([self.best[p] is not None for p in people], dtype=bool)

    def offer(self, stack: int, people: Array, columns: Array, actions: Array, cost: Array) -> None:
        """Take the actions (d, n) that are cheaper than what is in hand; costs of inf are no offers."""
        for j in np.flatnonzero(cost < self.cost[people]):
            p = int(people[j])
            if cost[j] < self.cost[p]:
                self.cost[p] = float(cost[j])
                self.best[p] = Best(stack, int(columns[j]), actions[:, j].copy())
