"""Polishing an action whose cost leaves changes open: what it changes beyond need is left out.

Under a sum of all changes an optimal action changes nothing more than it must, up to the gap. Under l0, linf
and mixtures of the two, the levers that do not decide the cost may take any value that is accepted. Here
every such change is undone if the action then stays feasible and costs no more. Otherwise the change is
halved as often as that holds, and a bisection then looks for a still smaller one. The action becomes easier
to read; its cost does not rise, and the lower bound is not touched.
"""

from __future__ import annotations

import math

from milp_recourse.judge.judgement import Action, Judgement, judge
from milp_recourse.problem.features import Feature

MOST = 400
"""The largest number of exact judgements per action, which limits the time."""

_STEPS = 6  # of the bisection: it finds the smallest change to 1/64 of the interval that halving has left


def smaller_changes(judgement: Judgement) -> Judgement:
    """A feasible action in which no single change can be undone or halved at no higher cost.

    Parameters
    ----------
    judgement
        Of a feasible action, for an instance that leaves changes open
        (:attr:`~milp_recourse.problem.instance.Instance.leaves_open`).

    Returns
    -------
    Judgement
        Of an action that costs no more than before. After :data:`MOST` judgements the search stops, and
        changes may be left larger than need be. Halves are rounded towards the factual, to what an action may
        set; changes of labels without an order are only undone.
    """
    search = _Search(judgement)
    changed = True
    while changed and search.left > 0:
        undone = [search.undone(name) for name in list(search.action)]
        halved = [search.halved(name) for name in list(search.action)]
        changed = any(undone) or any(halved)
    return search.verdict


class _Search:
    """The judgement of the action in hand, and how many more actions may be judged."""

    def __init__(self, judgement: Judgement) -> None:
        self.instance, self.verdict, self.left = judgement.instance, judgement, MOST

    @property
    def action(self) -> Action:
        """The action in hand."""
        return self.verdict.action

    def take(self, candidate: Action) -> bool:
        """Take a candidate if it is feasible and costs no more; return whether it was taken."""
        if self.left <= 0:
            return False
        self.left -= 1
        found = judge(self.instance, candidate)
        if not (found.feasible and found.cost <= self.verdict.cost):
            return False
        self.verdict = found
        return True

    def undone(self, name: str) -> bool:
        """Try not to act on the feature at all, then to hold it where it is."""
        x = self.instance.factual[name]
        if self.take({n: v for n, v in self.action.items() if n != name}):
            return True
        held = self.action[name] != x and self.instance.may_hold(name)
        return held and self.take({**self.action, name: x})

    def halved(self, name: str) -> bool:
        """Try half the change, half of that, and so on, then bisect between the last two.

        Returns whether the change became smaller.
        """
        feature, x, start = self.instance.by_name[name], self.instance.factual[name], self.action[name]
        if feature.kind == "categorical" or not math.isfinite(x):
            return False
        low, high = self.instance.levers[name]
        value, refused = start, x
        while True:
            half = _between(x, value, feature)
            half = min(max(half, low), high)
            if not min(x, value) < half < max(x, value):
                break
            if not self.take({**self.action, name: half}):
                refused = half
                break
            value = half
        for _ in range(_STEPS):
            middle = _between(refused, value, feature)
            if middle in (refused, value) or not low <= middle <= high:
                break
            if self.take({**self.action, name: middle}):
                value = middle
            else:
                refused = middle
        return value != start


def _between(near: float, far: float, feature: Feature) -> float:
    """The middle of two values; on a lattice, the value next to it on the side of the first."""
    middle = near + (far - near) / 2
    return feature.floor(middle) if near < far else feature.ceil(middle)
