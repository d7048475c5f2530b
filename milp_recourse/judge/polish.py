"""Polishing an action: what it changes beyond need is left out where it stays feasible and costs no more.

Idle holds and slight changes are left out under any cost. Further changes: under a sum of all changes an
optimal action changes nothing more than it must, up to the gap. Under l0, linf and mixtures of the two, the
levers that do not decide the cost may take any value that is accepted. Here every such change is undone if
the action then stays feasible and costs no more. Otherwise the change is halved as often as that holds, and a
bisection then looks for a still smaller one. The action becomes easier to read; its cost does not rise, and
the lower bound is not touched.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction

from milp_recourse.judge.judgement import Action, Judgement, judge
from milp_recourse.problem.conditions import Counted, Switched, leaves
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import gap_tolerance

Repair = Callable[[Instance, Action], "Action | None"]


def without_idle_holds(instance: Instance, action: Action) -> dict[str, float]:
    """The action without idle holds: features set to the factual value that they would have anyway.

    The action stays as it is if it would become infeasible without them. That can be so only with scenarios,
    and with conditions on which features, or how many, are acted on.
    """
    shorter = _without_idle_holds(instance, action)
    if len(shorter) == len(action):
        return shorter
    depends = instance.scenarios or any(
        isinstance(one, Switched | Counted) for one in leaves(instance.demand)
    )
    return dict(action) if depends and not judge(instance, shorter).feasible else shorter


def _without_idle_holds(instance: Instance, action: Action) -> dict[str, float]:
    moving = {n for n, v in action.items() if v != instance.factual[n]}
    if len(moving) == len(action):
        return dict(action)
    downstream = instance.scm.descendants(moving)
    return {n: v for n, v in action.items() if n in moving or n in downstream}


NEGLIGIBLE = 2e-3
"""The largest size of changes that :func:`held_exactly` looks at: squared costs hide changes up to about the
root of the gap."""


def held_exactly(judgement: Judgement) -> Judgement:
    """The action with values near the factual set exactly to it, where it stays feasible and costs no more.

    A search with squared costs may leave a change that is too small to matter for the cost; "hold duration"
    is easier to read than a change of 1e-5.
    """
    instance = judgement.instance
    for name in _negligible(judgement):
        verdict = judge(instance, _held(instance, judgement.action, [name]))
        if verdict.feasible and verdict.cost <= judgement.cost:
            judgement = verdict
    return judgement


SLIGHT = 1e-4
"""Up to what size a change is slight: it is left out if others, a little larger, spare it."""


def without_slight_changes(judgement: Judgement, repair: Repair, bound: float | None) -> Judgement:
    """The action without its slight changes, if others can replace these and the proof still holds.

    A search that ends within the gap may leave many changes of 1e-7 that one larger change spares. What is
    left of the action alone is hardly ever feasible; ``repair`` makes it so.
    """
    instance, slight = judgement.instance, _negligible(judgement, SLIGHT)
    if bound is None or not math.isfinite(bound) or not slight or len(slight) == len(judgement.action):
        return judgement
    spared = repair(instance, _held(instance, judgement.action, slight))
    if spared is None:
        return judgement
    found = judge(instance, spared)
    dearest = max(0.0, bound) + 0.75 * gap_tolerance(max(0.0, bound), instance.gap_allowance)
    cheap = found.feasible and found.cost <= max(judgement.cost, Fraction(dearest))
    return found if cheap and len(_negligible(found, SLIGHT)) < len(slight) else judgement


def _negligible(judgement: Judgement, share: float = NEGLIGIBLE) -> list[str]:
    """The features whose change is of at most that size, and which may be held."""
    instance, names = judgement.instance, []
    for name, value in judgement.action.items():
        held = value != instance.factual[name] and instance.may_hold(name)
        if held and instance.lever_costs[name].about(value) <= share:
            names.append(name)
    return names


def _held(instance: Instance, action: Action, names: Iterable[str]) -> dict[str, float]:
    """The action with features set to their factual values, without idle holds."""
    return without_idle_holds(instance, {**action, **{name: instance.factual[name] for name in names}})


MOST = 400
"""The largest number of exact judgements per action, which limits the time."""

_STEPS = 6  # of the bisection: it finds the smallest change to 1/64 of the interval that halving has left


def leaves_open(instance: Instance) -> bool:
    """Whether a change can be free: under l0 and linf, or where the distribution function Q is flat."""
    return any(instance.lever_costs[name].flat for name in instance.levers)


def smaller_changes(judgement: Judgement) -> Judgement:
    """A feasible action in which no single change can be undone or halved at no higher cost.

    Parameters
    ----------
    judgement
        Of a feasible action.

    Returns
    -------
    Judgement
        Of an action that costs no more than before. After :data:`MOST` judgements the search stops, and
        changes may be left larger than need be. Halves are rounded towards the factual, to what an action may
        set; changes of labels without an order are only undone.
    """
    if not leaves_open(judgement.instance):
        return judgement
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
