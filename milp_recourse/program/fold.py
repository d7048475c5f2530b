"""One alternative of an applicant's conditions, folded into mask and domains where they say it exactly.

What no mask or domain can say, sums and the values of features that others move, stays as a demand, which
the neutral program has as rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from milp_recourse.domain.conditions import Counted, Row, Switched, leaves, unlabelled
from milp_recourse.domain.enclosure import round_down, round_up
from milp_recourse.domain.features import Feature
from milp_recourse.instance import Instance

Literal = Row | Switched


@dataclass(frozen=True)
class Folded:
    """A problem whose conditions are folded in.

    Attributes
    ----------
    instance
        Without conditions; its ``demands`` are what could not be folded.
    held
        Features that must be acted on, and in ``instance`` need not be: holding them is free.
    """

    instance: Instance
    held: tuple[str, ...]

    def action(self, action: dict[str, float]) -> dict[str, float]:
        """An action of the folded problem as one of the applicant's own."""
        return action | {name: self.instance.factual[name] for name in self.held if name not in action}


def fold(instance: Instance, literals: Iterable[Literal]) -> Folded | None:
    """The problem in which all literals hold besides; None where they contradict each other."""
    literals = list(literals)
    wanted = {one.feature: one.acted for one in literals if isinstance(one, Switched)}
    if any(wanted[one.feature] != one.acted for one in literals if isinstance(one, Switched)):
        return None
    mask = tuple(name for name in instance.preferences.actionable if wanted.get(name, True))
    features = {f.name: f for f in instance.features}
    alone = {name for name in features if not driven(instance, name, mask)}
    demands: list[Row | Switched] = []
    for one in literals:
        if isinstance(one, Switched):
            continue
        if len(one.terms) != 1 or one.terms[0][0] not in alone:
            demands.append(one)
            continue
        name = one.terms[0][0]
        narrowed = _narrowed(features[name], instance.factual[name], one)
        if narrowed is None:
            return None
        features[narrowed.name] = narrowed
    preferences = replace(instance.preferences, actionable=mask, conditions=())
    made = replace(
        instance,
        features=tuple(features.values()),
        preferences=preferences,
        conditions=(),
        demands=(),
        reference=None,
    )
    held = []
    for name, acted in wanted.items():
        if not acted:
            continue
        if name not in made.levers:
            return None
        if _held_freely(made, name, mask):
            held.append(name)
        elif name not in alone or not _must_move(features[name], instance.factual[name]):
            demands.append(Switched(name, True))
    return Folded(replace(made, demands=tuple(demands)) if demands else made, tuple(held))


def _must_move(feature: Feature, x: float) -> bool:
    """Whether a value that nothing else moves has to be acted on to lie in its domain."""
    return feature.domain is not None and (x < feature.domain[0] or x > feature.domain[1])


def driven(instance: Instance, name: str, mask: Iterable[str]) -> bool:
    """Whether an action on another feature of the mask moves it."""
    return any(name in instance.scm.descendants({other}) for other in mask if other != name)


def _narrowed(feature: Feature, x: float, row: Row) -> Feature | None:
    """The feature with the row in its domain: its values are doubles, so the end can be one, rounded inward.

    Where it had no domain, the other end is the farthest value it can have.
    """
    [(_, c)] = row.terms
    end = row.at_least / c
    ends = (x, x, *(feature.action_bounds if feature.actionable else ()))
    low, high = feature.domain or (min(ends), max(ends))
    if c > 0 and end > Fraction(low):
        if end > Fraction(high):
            return None
        low = round_up(end)
    elif c < 0 and end < Fraction(high):
        if end < Fraction(low):
            return None
        high = round_down(end)
    return replace(feature, domain=(low, high)) if low <= high else None


def without_conditions(instance: Instance) -> Instance:
    """The same problem without conditions and demands."""
    if not (instance.all_conditions or instance.demands):
        return instance
    return replace(
        instance, conditions=(), demands=(), preferences=replace(instance.preferences, conditions=())
    )


def folds_away(instance: Instance) -> bool:
    """Whether every case of the conditions can be said by masks and domains, without rows of their own."""
    mask = instance.preferences.actionable
    for one in leaves(unlabelled(instance.demand)):
        if isinstance(one, Row) and (len(one.terms) != 1 or driven(instance, one.terms[0][0], mask)):
            return False
        forced = (isinstance(one, Switched) and one.acted) or (isinstance(one, Counted) and one.at_least > 0)
        names = [one.feature] if isinstance(one, Switched) else list(instance.levers)
        if forced and not all(
            _held_freely(instance, name, mask) for name in names if name in instance.levers
        ):
            return False
    return True


def _held_freely(instance: Instance, name: str, mask: tuple[str, ...]) -> bool:
    """Whether holding a lever is the same as leaving it alone."""
    free = not instance.cost.l0 and not instance.plausible
    return free and instance.may_hold(name) and not driven(instance, name, mask)
