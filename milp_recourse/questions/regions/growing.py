r"""Grows a box of actions, in which nothing is refused, around an action until something holds each side.

The box has an interval for each lever that is acted on, and a set of labels for a categorical one. How far
sides can move is asked of the problem to reach a refused point (:func:`to_refuse`): with a for the action and
s for the lengths that are left to the sides that still move, it finds the least

.. math:: t = \max_i |a'_i - a_i| / s_i

over all refused points a' that lie in the box but for these sides.

1. At first all sides move at once, each by the same share t of the way from the action to its limit, so that
   boxes are no needles. The side along which the refused point that was found is farthest is held there, and
   the others go on.
2. Then each side is moved alone, lever by lever, low end first, unless a refused point just outside it is
   known already. Every box only becomes larger, so a side that is held stays held.
3. At last labels are added one by one, where no point with the label is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice, product
from typing import Literal

from milp_recourse.judge import judge, known_factual
from milp_recourse.problem.cost import Cost, Distance
from milp_recourse.problem.features import Feature, Values
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import Clock
from milp_recourse.problem.result import Status
from milp_recourse.problem.scm import StructuralCausalModel
from milp_recourse.questions.robust.outcomes import to_refuse
from milp_recourse.questions.solve import solve

End = Literal["low", "high"]
Side = tuple[str, End]
Point = dict[str, float]

RESOLUTION = 2e-6, 1e-11
"""How far a continuous side may stay from a refused point: so many times the point's distance from the
action, and the length of what the lever may be set to."""

MOST_CORNERS = 64
"""The most corners of a box that the deployed model is asked about."""

_INSIDE = 1e-7  # by what share of its way a side stays short of where a refused point may be
_FREE = 1e12  # how much farther than its interval a lever would have to move to count as much as a side


@dataclass(frozen=True)
class Box:
    """A box of actions.

    Attributes
    ----------
    ends
        The lowest and highest value by lever, labels without an order left out.
    labels
        The labels in the box by categorical lever, by their numbers, ascending.
    """

    ends: dict[str, tuple[float, float]] = field(default_factory=dict)
    labels: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def moved(self, side: Side, to: float) -> Box:
        """The box with another end on a side."""
        (name, end), (low, high) = side, self.ends[side[0]]
        return replace(self, ends={**self.ends, name: (to, high) if end == "low" else (low, to)})

    def with_labels(self, name: str, labels: tuple[int, ...]) -> Box:
        """The box with other labels of a lever."""
        return replace(self, labels={**self.labels, name: labels})

    def corners(self) -> Iterator[Point]:
        """At most :data:`MOST_CORNERS` of its corners, each with one of its labels."""
        axes = {name: tuple(dict.fromkeys(ends)) for name, ends in self.ends.items()}
        axes |= {name: tuple(map(float, labels)) for name, labels in self.labels.items()}
        for values in islice(product(*axes.values()), MOST_CORNERS):
            yield dict(zip(axes, values, strict=True))

    def levers(self, instance: Instance) -> list[Feature]:
        """The levers with what the box leaves of them, in the order of the features."""
        found = []
        for f in instance.features:
            lever = replace(f, actionable=True, domain=None, monotone=None)
            if f.name in self.labels:
                found.append(replace(lever, only=Values(tuple(map(float, self.labels[f.name])))))
            elif f.name in self.ends:
                found.append(replace(lever, bounds=self.ends[f.name]))
        return found


@dataclass
class Growth:
    """What holds the sides and labels of a box.

    Attributes
    ----------
    held
        By side that is not at its lever's limit, a refused point just outside it; None where the search
        stopped before.
    refused
        By lever and label outside the box, a refused point of the box but for that label, or None likewise.
    """

    box: Box
    held: dict[Side, Point | None] = field(default_factory=dict)
    refused: dict[tuple[str, int], Point | None] = field(default_factory=dict)


def point_box(instance: Instance, action: Mapping[str, float]) -> Box:
    """The box of one action."""
    labelled = {name for name in action if instance.by_name[name].kind == "categorical"}
    ends = {name: (value, value) for name, value in action.items() if name not in labelled}
    return Box(ends, {name: (int(value),) for name, value in action.items() if name in labelled})


class Growing:
    """The search for one box.

    Parameters
    ----------
    action
        Feature -> value, labels by their numbers; feasible.
    backend
        As for :func:`milp_recourse.solve`.
    """

    def __init__(
        self, instance: Instance, action: Mapping[str, float], backend: str | None, clock: Clock
    ) -> None:
        self.instance, self.backend, self.clock = instance, backend, clock
        names = [f.name for f in instance.features if f.name in action]
        self.action = {name: action[name] for name in names}
        self.limits = {name: instance.levers[name] for name in names}
        self.growth = Growth(point_box(instance, self.action))
        self.numeric = list(self.growth.box.ends)
        self.problem = _around(instance, self.action, self.growth.box.levers(instance))
        effects = instance.scm.descendants(set(names)) != set(names)
        self.exact = isinstance(instance.classifier, TreeEnsemble) and not effects

    def run(self) -> Growth:
        """Grow the box until every side and every label is held, or the time is over."""
        moving = [side for side in self.sides() if self.room(side)]
        while moving:
            share, point = self.nearest(self.growth.box, moving)
            if point is None:
                for side in moving:
                    self._move(side, share, None)
                break
            first = max(moving, key=lambda side: self._share(side, point[side[0]]))
            self._move(first, share, point)
            moving.remove(first)
        for side in self.sides():
            if not self.at_limit(side) and not self._is_held(side):
                self._move(side, *self.nearest(self.growth.box, [side]))
        for name, label in self._other_labels():
            self._add(name, label)
        self.hold()
        return self.growth

    def hold(self) -> None:
        """Keep of the points that hold sides those that are refused beyond doubt, just outside the box."""
        self.growth.held = {side: self._witness(side) for side in self.sides() if not self.at_limit(side)}

    def sides(self) -> Iterator[Side]:
        """All sides, lever by lever."""
        for name in self.numeric:
            yield name, "low"
            yield name, "high"

    def limit(self, side: Side) -> float:
        """The end of what an action may set."""
        return self.limits[side[0]][side[1] == "high"]

    def at(self, side: Side) -> float:
        """The end of the box."""
        return self.growth.box.ends[side[0]][side[1] == "high"]

    def room(self, side: Side) -> float:
        """How far the action is from the limit."""
        return abs(self.limit(side) - self.action[side[0]])

    def at_limit(self, side: Side) -> bool:
        """Whether the box reaches the limit."""
        return self.at(side) == self.limit(side)

    def nearest(self, box: Box, moving: list[Side]) -> tuple[float, Point | None]:
        """The least share of their ways that sides have to move for a refused point to be in the box, at
        least; and such a point. Infinite, and None, if there is none.

        Also None if the search stopped before it found one; then the share is below 1.
        """
        rises, falls = {}, {}
        for name in self.action:
            low, high = self.limits[name]
            rises[name] = falls[name] = _FREE * ((high - low) or 1.0)
        for side in moving:
            box = box.moved(side, self.limit(side))
            (rises if side[1] == "high" else falls)[side[0]] = self.room(side)
        cost = Cost.pure("linf", {name: Distance(rise, falls[name]) for name, rise in rises.items()})
        given = {f.name: f for f in box.levers(self.instance)}
        features = tuple(given.get(f.name, f) for f in self.problem.features)
        result = solve(
            replace(self.problem, features=features, cost=cost), self.backend, self.clock.left(least=0.01)
        )
        if result.status is Status.INFEASIBLE:
            return math.inf, None
        share = min(result.lower_bound or 0.0, 1.0 - _INSIDE)
        if result.action is None:
            return share, None
        return share, self.action | self.problem.numbers(result.action)

    def tolerance(self, name: str, value: float) -> float:
        """How near to a value of a continuous lever the search finds out what is refused."""
        low, high = self.limits[name]
        return RESOLUTION[0] * abs(value - self.action[name]) + RESOLUTION[1] * (high - low)

    def _share(self, side: Side, value: float) -> float:
        """How far a value is along the way of a side."""
        way = value - self.action[side[0]] if side[1] == "high" else self.action[side[0]] - value
        return way / self.room(side)

    def _move(self, side: Side, share: float, point: Point | None) -> None:
        """Move a side as far as no refused point is nearer than the share of its way; it is held by a
        point."""
        (name, end), a = side, self.action[side[0]]
        if math.isinf(share):
            self.growth.box = self.growth.box.moved(side, self.limit(side))
            return
        up, lattice = end == "high", self.instance.by_name[name].lattice
        way = self.room(side) if up else -self.room(side)
        to = a + way * share * (1.0 - _INSIDE)
        close = point is not None and abs(point[name] - a - way * share) <= self.tolerance(name, point[name])
        if lattice is not None:
            start = point[name] if point is not None and close else a + way * share
            to = lattice.before(start) if up else lattice.after(start)
        elif point is not None and close and self.exact:
            to = math.nextafter(point[name], a)
        to = min(max(to, a), self.limit(side)) if up else max(min(to, a), self.limit(side))
        if (to > self.at(side)) if up else (to < self.at(side)):
            self.growth.box = self.growth.box.moved(side, to)
        self.growth.held[side] = point

    def _is_held(self, side: Side) -> bool:
        """Whether the point known to be refused lies just outside a side, and inside all others."""
        point, name = self.growth.held.get(side), side[0]
        if point is None:
            return False
        for other, (low, high) in self.growth.box.ends.items():
            if other != name and not low <= point[other] <= high:
                return False
        return abs(point[name] - self.at(side)) <= abs(self._outside(side) - self.at(side))

    def _outside(self, side: Side) -> float:
        """The farthest value outside a side that still shows it to be maximal: the next value that may be
        set, or for a continuous lever the resolution away."""
        (name, end), at = side, self.at(side)
        lattice, (low, high) = self.instance.by_name[name].lattice, self.limits[name]
        if lattice is not None:
            return lattice.after(at) if end == "high" else lattice.before(at)
        away = self.tolerance(name, at)
        return min(at + away, high) if end == "high" else max(at - away, low)

    def _witness(self, side: Side) -> Point | None:
        """A point just outside a side that is refused beyond doubt, as deployed too if there is one."""
        point, found, name = self.growth.held.get(side), None, side[0]
        if point is None or not self._is_held(side):
            return None
        for value in (point[name], self._outside(side)):
            tried = {**point, name: value}
            judgement = judge(self.instance, tried)
            if not judgement.accepted_exact and (found is None or not judgement.accepted_deployed):
                found = tried
        return found

    def _other_labels(self) -> Iterator[tuple[str, int]]:
        """Levers without an order, with each label that may be set and is not in the box."""
        for name in self.growth.box.labels:
            feature, (low, high) = self.instance.by_name[name], self.limits[name]
            assert feature.lattice is not None
            for label in map(int, feature.lattice.within(low, high)):
                if label not in self.growth.box.labels[name]:
                    yield name, label

    def _add(self, name: str, label: int) -> None:
        """Add a label to the box if nothing with it is refused."""
        box = self.growth.box
        share, point = self.nearest(box.with_labels(name, (label,)), [])
        if math.isinf(share):
            self.growth.box = box.with_labels(name, tuple(sorted((*box.labels[name], label))))
        else:
            sure = point is not None and not judge(self.instance, point).accepted_exact
            self.growth.refused[name, label] = point if sure else None


def _around(instance: Instance, action: Mapping[str, float], levers: list[Feature]) -> Instance:
    """The problem to reach a refused point, whose factual is what follows from the action.

    The levers have no causes there, so that not to act on one is to set it as the action does. What they move
    follows from them as before, but for rounding.
    """
    problem, scm = to_refuse(instance, action, levers, {}), instance.scm
    if not problem.demands:
        return problem
    after = scm.counterfactual_exact(known_factual(instance), action)
    mechanisms = {f: one for f, one in scm.mechanisms.items() if f not in action}
    return replace(
        problem,
        scm=StructuralCausalModel(scm.features, mechanisms),
        factual={f: value.nearest for f, value in after.items()},
        demands=(),
    )
