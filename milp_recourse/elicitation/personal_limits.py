"""How far a person would go with each lever, from recourses that they called possible or out of the question.

Every lever is taken to have a limit of its own in each direction (of a feature without an order: a set of
labels), and a recourse to be possible for the person if it passes none of them (AWP's acceptability). So a
possible recourse says "at least this far" of all its levers; one that is out of the question says only that
at least one of its levers goes too far, and which one is known if the others are known to be possible."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from milp_recourse.problem.conditions import Acted, Condition, LabelIn, Not, Sum
from milp_recourse.problem.conditions import Any as AnyOf
from milp_recourse.problem.instance import Instance, Preferences

Action = Mapping[str, float]


@dataclass(frozen=True)
class Limits:
    """What is known of a person's limits.

    Attributes
    ----------
    instance
        The person's problem as it was before the first question.
    possible, refused
        The recourses that the person called possible, and out of the question.
    """

    instance: Instance = field(repr=False)
    possible: tuple[Action, ...] = ()
    refused: tuple[Action, ...] = ()

    def with_possible(self, action: Action) -> Limits:
        """The limits after a recourse was called possible; what contradicts it was said earlier, and goes."""
        grown = replace(self, possible=(*self.possible, dict(action)))
        return replace(grown, refused=tuple(one for one in self.refused if grown.in_question(one)))

    def with_refused(self, action: Action) -> Limits:
        """The limits after a recourse was called out of the question; of earlier recourses that contradict
        it, the oldest go."""
        found = replace(self, refused=(*self.refused, dict(action)))
        while found.possible and not all(found.in_question(one) for one in found.refused):
            found = replace(found, possible=found.possible[1:])
        return found

    def in_question(self, action: Action) -> tuple[str, ...]:
        """The levers of an action that go further than in any possible recourse."""
        return tuple(name for name, value in action.items() if not self._reached(name, value))

    def allows(self, action: Action) -> bool:
        """Whether an action may be possible: it passes no limit for certain."""
        return not any(
            all(name in action and self._as_far(name, action[name], bad[name]) for name in names)
            for bad in self.refused
            if (names := self.in_question(bad))
        )

    def explained(self, action: Action) -> bool:
        """Whether a lever of an action is known to go too far, whatever the others do."""
        return any(
            name in action and self._as_far(name, action[name], bad[name])
            for bad in self.refused
            if len(names := self.in_question(bad)) == 1
            for name in names
        )

    def preferences(self, share: float) -> tuple[dict[str, tuple[float, float]], tuple[Condition, ...]]:
        """Ranges and conditions that keep actions within the limits.

        Parameters
        ----------
        share
            Where each limit is taken to be between the furthest value known to be possible (0) and the
            nearest that was refused (1: just before it, so that nothing possible is excluded).
        """
        ranges: dict[str, tuple[float, float]] = {}
        conditions: dict[Condition, None] = {}
        for action in self.refused:
            names = self.in_question(action)
            if not names:  # it changes nothing
                continue
            if len(names) > 1 and self.explained(action):
                continue
            ends = {name: self._end(name, action[name], share) for name in names}
            if len(names) == 1 and (end := ends[names[0]]) is not None:
                ranges[names[0]] = self._within(names[0], action[names[0]], end, ranges)
                continue
            parts: list[Condition] = []
            for name in names:
                parts.append(Not(Acted(name)))
                parts += self._short_of(name, action[name], ends[name])
            conditions[AnyOf(tuple(parts))] = None
        return ranges, tuple(conditions)

    def within(self, own: Preferences, share: float) -> Preferences:
        """The preferences with these limits; see :meth:`preferences`."""
        ranges, conditions = self.preferences(share)
        merged = dict(own.ranges)
        for name, ends in ranges.items():
            before = merged.get(name, (-math.inf, math.inf))
            low, high = max(ends[0], before[0]), min(ends[1], before[1])
            merged[name] = (low, high) if low <= high else (high, high)
        return replace(own, ranges=merged, conditions=(*own.conditions, *conditions))

    def _as_far(self, name: str, value: float, other: float) -> bool:
        """Whether a lever at ``value`` goes at least as far as at ``other``."""
        if name in self.instance.missing:
            return True
        if not self.instance.by_amount(name):
            return value == other
        x = self.instance.factual[name]
        return (value - x) * (other - x) >= 0 and abs(value - x) >= abs(other - x)

    def _reached(self, name: str, value: float) -> bool:
        """Whether a possible recourse goes at least as far."""
        still = name not in self.instance.missing and value == self.instance.factual[name]
        return still or any(name in one and self._as_far(name, one[name], value) for one in self.possible)

    def _furthest(self, name: str, upwards: bool) -> float:
        """The furthest value in a direction that is known to be possible."""
        x = self.instance.factual[name]
        values = [x, *(one[name] for one in self.possible if name in one)]
        return max(values) if upwards else min(values)

    def _end(self, name: str, refused: float, share: float) -> float | None:
        """The furthest value that is left of a lever that was refused; None for a feature without an
        order."""
        if not self.instance.by_amount(name):
            return None
        upwards = refused > self.instance.factual[name]
        known = self._furthest(name, upwards)
        if self.instance.by_name[name].integral:
            step = share * (abs(refused - known) - 1)
            known = math.ceil(known) if upwards else math.floor(known)
            return known + math.floor(step) if upwards else known - math.floor(step)
        if share >= 1:
            return math.nextafter(refused, known)
        end = known + share * (refused - known)
        return (
            min(end, math.nextafter(refused, known)) if upwards else max(end, math.nextafter(refused, known))
        )

    def _within(
        self, name: str, refused: float, end: float, ranges: Mapping[str, tuple[float, float]]
    ) -> tuple[float, float]:
        """The lever's values up to an end, inside what is allowed and an earlier range."""
        low, high = ranges.get(name, self.instance.levers.get(name, (end, end)))
        if refused > self.instance.factual[name]:
            high = min(high, end)
        else:
            low = max(low, end)
        return (low, high) if low <= high else (end, end)

    def _short_of(self, name: str, refused: float, end: float | None) -> list[Condition]:
        """That a lever does not go as far as where it was refused."""
        if name in self.instance.missing:
            return []
        if end is None:
            labels = range(len(self.instance.by_name[name].categories or ()))
            return [LabelIn(name, "counterfactual", tuple(k for k in labels if k != refused))]
        bounds = {"at_most": end} if refused > self.instance.factual[name] else {"at_least": end}
        return [Sum(((name, 1.0),), "counterfactual", **bounds)]
