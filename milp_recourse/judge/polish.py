"""Polishing an action: idle holds and slight changes are left out where the action stays as good."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction

from milp_recourse.judge.judgement import Action, Judgement, judge
from milp_recourse.problem.conditions import Counted, Switched, leaves
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
        if held and instance.lever_cost(name).about(value) <= share:
            names.append(name)
    return names


def _held(instance: Instance, action: Action, names: Iterable[str]) -> dict[str, float]:
    """The action with features set to their factual values, without idle holds."""
    return without_idle_holds(instance, {**action, **{name: instance.factual[name] for name in names}})
