"""Writes one alternative of an applicant's conditions as a mask and domains, as far as these can express it.

Sums, and conditions on the values of features that others move, cannot be expressed so. They stay demands,
which become rows of the neutral program.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from milp_recourse.problem.conditions import Counted, Row, Switched, leaves, unlabelled
from milp_recourse.problem.enclosure import round_down, round_up
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance

Literal = Row | Switched | Counted


@dataclass(frozen=True)
class Folded:
    """A problem whose conditions have been written as mask and domains.

    Attributes
    ----------
    instance
        The problem without conditions; its ``demands`` are what mask and domains cannot express.
    held
        Features that the conditions want acted on, which ``instance`` does not ask: holding them is free.
    """

    instance: Instance
    held: tuple[str, ...]

    def action(self, action: dict[str, float]) -> dict[str, float]:
        """An action of ``instance`` as one of the original problem: features in ``held`` are held, too."""
        return action | {name: self.instance.factual[name] for name in self.held if name not in action}


def fold(instance: Instance, literals: Iterable[Literal]) -> Folded | None:
    """The problem with all literals in place of its conditions; None if they contradict each other.

    A count is left out beside other demands, which only searches without counts know.
    """
    literals = list(literals)
    wanted = {one.feature: one.acted for one in literals if isinstance(one, Switched)}
    if any(wanted[one.feature] != one.acted for one in literals if isinstance(one, Switched)):
        return None
    mask = tuple(name for name in instance.preferences.actionable if wanted.get(name, True))
    features = {f.name: f for f in instance.features}
    undriven = {name for name in features if not driven(instance, name, mask)}
    demands: list[Literal] = []
    for one in literals:
        if isinstance(one, Switched):
            continue
        if isinstance(one, Counted) or len(one.terms) != 1 or one.terms[0][0] not in undriven:
            demands.append(one)
            continue
        name = one.terms[0][0]
        narrowed = _narrowed(features[name], instance.factual[name], one)
        if narrowed is None:
            return None
        features[narrowed.name] = narrowed
    preferences = replace(instance.preferences, actionable=mask, conditions=())
    folded = replace(
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
        if name not in folded.levers:
            return None
        if _held_freely(folded, name, mask):
            held.append(name)
        elif name not in undriven or not _must_move(features[name], instance.factual[name]):
            demands.append(Switched(name, True))
    others = [one for one in demands if not isinstance(one, Counted)]
    return Folded(replace(folded, demands=tuple(others or demands)) if demands else folded, tuple(held))


def _must_move(feature: Feature, x: float) -> bool:
    """Whether a feature that no other moves must be acted on, because its factual is outside its domain."""
    return feature.domain is not None and (x < feature.domain[0] or x > feature.domain[1])


def driven(instance: Instance, name: str, mask: Iterable[str]) -> bool:
    """Whether an action on another feature of the mask can move the feature."""
    return any(name in instance.scm.descendants({other}) for other in mask if other != name)


def _narrowed(feature: Feature, x: float, row: Row) -> Feature | None:
    """The feature with its domain cut to where a row on its value alone holds; None if nothing is left.

    The new end is rounded inward to a double, which excludes no value, since the values are doubles. A
    feature without a domain gets the smallest one that contains all its possible values.
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
    """Whether every case of the conditions can be expressed by mask and domains, without demands."""
    mask = instance.preferences.actionable
    for one in leaves(unlabelled(instance.demand)):
        if isinstance(one, Row):
            of = one.terms[0][0]
            if len(one.terms) != 1 or not isinstance(of, str) or driven(instance, of, mask):
                return False
        forced = (isinstance(one, Switched) and one.acted) or (isinstance(one, Counted) and one.at_least > 0)
        names = [one.feature] if isinstance(one, Switched) else list(instance.levers)
        if forced and not all(
            _held_freely(instance, name, mask) for name in names if name in instance.levers
        ):
            return False
    return True


def told_apart_by_scenarios(instance: Instance) -> set[str]:
    """The features of which a scenario tells whether they are acted on, even at their factual values."""
    found, scm = set[str](), instance.scm
    for scenario in instance.scenarios:
        missed, noisy = ({f for f, e in one.items() if e} for one in (scenario.missed, scenario.noise))
        found |= {f for f in scm.features if scm.descendants({f}) & noisy} | scm.descendants(missed | noisy)
    return found


def _held_freely(instance: Instance, name: str, mask: tuple[str, ...]) -> bool:
    """Whether holding a lever has the same cost and effect, in every scenario, as not acting on it."""
    costs = instance.lever_cost(name).prices.fixed or instance.plausible
    free = not costs and name not in told_apart_by_scenarios(instance)
    return free and instance.may_hold(name) and not driven(instance, name, mask)
