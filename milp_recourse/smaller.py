"""Smaller changes at no higher cost: what l0 and linf leave open.

Under a sum of all changes an optimal action changes nothing more than it must. Under l0, linf and mixtures
of the two the levers that do not decide the cost may take any value that is accepted. Here every such change
is undone where that is feasible and costs no more, else made smaller: halved towards the factual as often
as that is so, then brought near the smallest value that still is. A courtesy to whoever reads the action: it
changes neither the bound nor, upward, the cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Generic, Protocol, TypeVar

from milp_recourse.instance import Instance

Action = Mapping[str, float]


class Verdict(Protocol):
    """What must be known about an action."""

    @property
    def feasible(self) -> bool:
        """Whether it meets every demand."""

    @property
    def cost(self) -> Fraction:
        """Exact."""


V = TypeVar("V", bound=Verdict)

MOST = 400
"""Most exact judgements per action; they limit the time that one action takes."""

_STEPS = 6  # of the bisection after the last half: what is left of a change is then right to 1/64


def leaves_open(instance: Instance) -> bool:
    """Whether a change can be free: under l0 and linf, or where the distribution function Q is flat."""
    cost = instance.cost
    return not (cost.l1 or cost.l2_squared) or bool(cost.quantiles)


def smaller_changes(
    instance: Instance, action: Action, verdict: V, judge: Callable[[Instance, Action], V]
) -> tuple[Action, V]:
    """A feasible action in which no single change can be undone or halved at no higher cost.

    Parameters
    ----------
    action, verdict
        Feasible, and its judgement.
    judge
        Decides in exact arithmetic and by the deployed model.

    Returns
    -------
    tuple
        The action, at most as dear, and its judgement; less changed than it might be where
        :data:`MOST` judgements do not suffice. Whole numbers are halved towards the factual; labels
        without an order are only undone.
    """
    if not leaves_open(instance):
        return action, verdict
    search = _Search(instance, action, verdict, judge)
    changed = True
    while changed and search.left > 0:
        undone = [search.undone(name) for name in list(search.action)]
        halved = [search.halved(name) for name in list(search.action)]
        changed = any(undone) or any(halved)
    return search.action, search.verdict


class _Search(Generic[V]):
    """The action in hand, its judgement, and how many more may be judged."""

    def __init__(
        self, instance: Instance, action: Action, verdict: V, judge: Callable[[Instance, Action], V]
    ) -> None:
        self.instance, self.action, self.verdict, self.judge = instance, action, verdict, judge
        self.left = MOST

    def take(self, candidate: Action) -> bool:
        """Take a candidate if it is feasible and no dearer; whether it is."""
        if self.left <= 0:
            return False
        self.left -= 1
        found = self.judge(self.instance, candidate)
        if not (found.feasible and found.cost <= self.verdict.cost):
            return False
        self.action, self.verdict = candidate, found
        return True

    def undone(self, name: str) -> bool:
        """Try not to act on the feature at all, then to hold it where it is."""
        x, (low, high) = self.instance.factual[name], self.instance.levers[name]
        if self.take({n: v for n, v in self.action.items() if n != name}):
            return True
        return self.action[name] != x and low <= x <= high and self.take({**self.action, name: x})

    def halved(self, name: str) -> bool:
        """Try half the change, half of that, and so on; then between the last two."""
        feature, x, start = self.instance.feature(name), self.instance.factual[name], self.action[name]
        if feature.kind == "categorical" or not math.isfinite(x):
            return False
        low, high = self.instance.levers[name]
        value, refused = start, x
        while True:
            half = _between(x, value, feature.integral)
            half = min(max(half, low), high)
            if half in (x, value):
                break
            if not self.take({**self.action, name: half}):
                refused = half
                break
            value = half
        for _ in range(_STEPS):
            middle = _between(refused, value, feature.integral)
            if middle in (refused, value) or not low <= middle <= high:
                break
            if self.take({**self.action, name: middle}):
                value = middle
            else:
                refused = middle
        return value != start


def _between(near: float, far: float, whole: bool) -> float:
    """The middle of two values; of whole numbers, rounded towards the first."""
    change = (far - near) / 2
    return near + (float(math.trunc(change)) if whole else change)
