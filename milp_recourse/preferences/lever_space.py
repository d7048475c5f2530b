"""A person's levers as coordinates from 0 to 1, for methods that move through space (HARE and its bases)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from milp_recourse.judge import judge
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork

FloatArray = NDArray[np.float64]

STEP = 1e-4
"""Of the differences that stand for gradients. A network with ReLUs is linear on such a step, but for kinks;
trees have the gradient 0."""

OUTWARD = 33
"""Points between a boundary point and its end that are tried where rounding its labels lets the model refuse
it; and between an accepted aim and the person."""


@dataclass(frozen=True)
class _Axis:
    """A lever's coordinates.

    Attributes
    ----------
    first, width
        Its coordinates: one, or of a feature without an order one per label.
    low, span
        The lever's value is low + span * coordinate.
    ends
        Coordinates that an action may set.
    """

    feature: Feature
    first: int
    width: int
    low: float
    span: float
    ends: tuple[float, float]

    @property
    def last(self) -> int:
        return self.first + self.width


class LeverSpace:
    """The levers of an instance: numbers by their place between the bounds, a coordinate from 0 to 1 per
    label of a feature without an order. Levers whose value is missing are left out.

    It is a :class:`~milp_recourse.preferences.hare.Landscape`: labels may be fractions there, and the score
    is the classifier's on such a row (of trees, on the row with the largest labels)."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self._axes: list[_Axis] = []
        first = 0
        for name, (least, most) in instance.levers.items():
            feature = instance.by_name[name]
            if name in instance.missing:
                continue
            if feature.kind == "categorical":
                axis = _Axis(feature, first, len(feature.categories or ()), 0.0, 1.0, (0.0, 1.0))
            else:
                low, high = feature.action_bounds
                span = high - low if high > low else 1.0
                x = instance.factual[name]
                ends = (min(least, x) - low) / span, (max(most, x) - low) / span
                axis = _Axis(feature, first, 1, low, span, ends)
            self._axes.append(axis)
            first = axis.last
        self.size = first

    @cached_property
    def start(self) -> FloatArray:
        """The person's coordinates."""
        return self.at(self.instance.factual)

    @property
    def free(self) -> FloatArray:
        """1 for every coordinate: levers are what the person can act on."""
        return np.ones(self.size)

    def at(self, values: Mapping[str, float]) -> FloatArray:
        """The coordinates of values; levers that are not named stay where the person is."""
        point = np.zeros(self.size)
        for axis in self._axes:
            value = values.get(axis.feature.name, self.instance.factual[axis.feature.name])
            if axis.feature.kind == "categorical":
                point[axis.first + int(value)] = 1.0
            else:
                point[axis.first] = (value - axis.low) / axis.span
        return point

    def inside(self, points: FloatArray) -> FloatArray:
        """The nearest points that the person's bounds, ranges, domains and directions allow."""
        points = points.copy()
        for axis in self._axes:
            part = points[:, axis.first : axis.last]
            part[:] = np.clip(part, *axis.ends)
        return points

    def score(self, points: FloatArray) -> FloatArray:
        """The logit or score beyond what acceptance needs, (n,)."""
        instance = self.instance
        classifier, accept = instance.classifier, instance.accept
        if isinstance(classifier, ReluNetwork):
            return classifier.scores(self._rows(points)) - float(accept.needed)
        return classifier.scores(self._rows(points)) - accept.threshold

    def gradient(self, points: FloatArray) -> FloatArray:
        """Central differences of :meth:`score`, (n, d)."""
        n, d = points.shape
        steps = np.eye(d) * STEP
        ahead = self.score((points[:, None, :] + steps).reshape(n * d, d))
        behind = self.score((points[:, None, :] - steps).reshape(n * d, d))
        return ((ahead - behind) / (2 * STEP)).reshape(n, d)

    def _rows(self, points: FloatArray) -> FloatArray:
        """The classifier's columns at points, effects of the levers included."""
        instance, n = self.instance, len(points)
        names = [f.name for f in instance.features]
        x = np.tile(instance.factual_row, (n, 1))
        action = np.full_like(x, np.nan)
        parts: dict[str, FloatArray] = {}
        soft = isinstance(instance.classifier, ReluNetwork)
        for axis in self._axes:
            at, name = points[:, axis.first : axis.last], axis.feature.name
            if axis.feature.kind == "categorical":
                value = at.argmax(axis=1).astype(np.float64)
                lookup = axis.feature.lookup
                if soft and axis.feature.by_label and lookup is not None:
                    parts[name] = at @ lookup
            else:
                value = axis.low + axis.span * at[:, 0]
                if axis.feature.lattice is not None and (axis.feature.by_label or not soft):
                    value = np.clip(axis.feature.lattice.nearests(value), *instance.levers[name])
            moved = np.abs(at - self.start[axis.first : axis.last]).max(axis=1) > 1e-9
            action[:, names.index(name)] = np.where(moved, value, np.nan)
        after = instance.scm.counterfactual(x, action)
        columns = []
        for k, f in enumerate(instance.features):
            own = parts.get(f.name)
            lookup = f.lookup if f.by_label else None
            if own is not None:
                columns.append(own)
            elif lookup is None:
                columns.append(after[:, k : k + 1])
            else:
                shares = (after[:, k : k + 1] == np.arange(len(lookup))).astype(np.float64) @ lookup
                columns.append(np.where(np.isnan(after[:, k : k + 1]), np.nan, shares))
        return np.concatenate(columns, axis=1)

    def action(self, point: FloatArray) -> dict[str, float]:
        """The action that a point stands for: rounded to what may be set, levers that stay left out."""
        found = {}
        for axis in self._axes:
            name = axis.feature.name
            if axis.feature.kind == "categorical":
                value = float(point[axis.first : axis.last].argmax())
            else:
                value = float(axis.low + axis.span * point[axis.first])
                least, most = self.instance.levers[name]
                value = axis.feature.nearest(value)
                value = float(min(max(value, least), most)) if value != self.instance.factual[name] else value
            still = abs(self.at({name: value}) - self.start).max() < 1e-9
            if not still:
                found[name] = value
        return found

    def settled(self, point: FloatArray, end: FloatArray) -> dict[str, float] | None:
        """The first feasible action on the way from a boundary point to the accepted end that it came from,
        as the exact judge says; where there is none, without the smallest change, and so on; else None."""
        for t in np.linspace(0.0, 1.0, OUTWARD):
            action = self.action(point + t * (end - point))
            if action and judge(self.instance, action).feasible:
                return action
        if len(action := self.action(end)) > 1:  # a condition may forbid so many changes at once
            smallest = min(
                action, key=lambda name: float(np.abs(self.at({name: action[name]}) - self.start).max())
            )
            fewer = {name: value for name, value in action.items() if name != smallest}
            return self.settled(self.at(fewer), self.at(fewer) + (self.at(fewer) - self.start))
        return None
