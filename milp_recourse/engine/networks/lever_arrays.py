"""The levers' numbers for every applicant of one model: interval, unit, costs, labels, percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.networks import layout as at
from milp_recourse.engine.networks.causes import column_starts, is_label
from milp_recourse.engine.networks.numerics import HUGE
from milp_recourse.problem.enclosure import difference_below, round_down
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance

Array = NDArray[np.float64]

EITHER, ACTED, IDLE = 0, 1, 2
"""A numeric lever's mode: it may be acted on or not; it is acted on, within its interval; it is not acted
on."""


class Levers:
    """The numbers of d levers for n applicants of one model.

    Parameters
    ----------
    moved
        Which levers others move.

    Attributes
    ----------
    x, unit, intervals
        Factual values and units (of labels 1), (n, d), and what acting may set, (n, 2, d).
    free
        Whether the factual value is in the lever's domain, (n, d).
    fixed
        What acting costs each applicant whatever the value, for each lever.
    numbers, box
        Every applicant's ``lever`` and ``box``, (n, 13, d) and (n, 3, d).
    allowed, column
        Every applicant's labels that may be taken, (n, P), and ``column``, (n, 2, P).
    knots
        Every applicant's knots for each lever whose change is measured in percentiles.
    dearest
        About the largest cost and share in the maximum that intervals or labels have, (n, 2, d).
    """

    def __init__(self, instances: Sequence[Instance], moved: Sequence[bool]) -> None:
        first = instances[0]
        self.instances, self.cost, self.moved, self.start = instances, first.cost, moved, column_starts(first)
        n, d, columns = len(instances), len(first.levers), int(self.start[-1])
        self.x = np.array([[one.factual[name] for name in first.levers] for one in instances], dtype=float)
        given = np.array([[one.levers[name] for name in first.levers] for one in instances], dtype=float)
        self.intervals = np.ascontiguousarray(given.reshape(n, d, 2).transpose(0, 2, 1))
        self.unit = np.ones((n, d))
        self.numbers, self.box, self.dearest = np.zeros((n, 13, d)), np.zeros((n, 3, d)), np.zeros((n, 2, d))
        self.allowed, self.column = np.ones((n, columns), dtype=np.uint8), np.zeros((n, 2, columns))
        self.knots: dict[int, list[Array]] = {}
        self.numbers[:, at.FACTUAL] = self.x
        self.fixed: list[list[Fraction]] = []
        domains = [first.feature(name).domain or (-np.inf, np.inf) for name in first.levers]
        low, high = np.array(domains, dtype=float).reshape(d, 2).T
        self.free = (low <= self.x) & (self.x <= high)
        for i, name in enumerate(first.levers):
            feature = first.feature(name)
            scale = self.cost.scale[name] if self.cost.uses_scale else 1.0
            weights = [one.weight(name) for one in instances]
            held = {w: Fraction(self.cost.l0) * Fraction(w) for w in set(weights)}
            self.fixed.append([held[w] for w in weights])
            (self._labels if is_label(feature) else self._values)(i, feature, weights, scale)

    def _values(self, i: int, feature: Feature, weights: list[float], scale: float) -> None:
        """A numeric lever's box and costs."""
        cost, numbers, box, x = self.cost, self.numbers[:, :, i], self.box[:, :, i], self.x[:, i]
        low, high = self.intervals[:, :, i].T
        shift = np.floor(x) - x if feature.integral else np.zeros(len(x))  # imputed: maybe no whole number
        # the least power of two that the lever does not move farther than
        part, exponent = np.frexp(np.maximum(np.maximum(abs(low - x), abs(high - x)), 1.0 / HUGE))
        self.unit[:, i] = unit = np.ldexp(1.0, exponent - (part == 0.5))
        box[:, at.LO], box[:, at.HI] = in_units(low, high, x, unit)
        idle = (low <= x) & (x <= high) & (shift == 0.0) & (cost.l0 == 0.0)
        box[:, at.MODE] = np.where(idle | ~self.free[:, i], ACTED, EITHER)
        numbers[:, at.UNIT], numbers[:, at.SHIFT] = unit, shift / unit
        numbers[:, at.GRID] = feature.integral / unit
        fixed = np.array([max(0.0, round_down(c)) if c else 0.0 for c in self.fixed[i]])
        if not self.moved[i]:
            numbers[:, at.FIXED] = numbers[:, at.OWN_FIXED] = fixed
        quantiles = cost.quantiles.get(feature.name)
        lengths = (unit if quantiles is None else np.ones(len(x))).tolist()
        linear, square, top = (
            np.array([_rate(part, w, scale, power, u) for w, u in zip(weights, lengths, strict=True)])
            for part, power in ((cost.l1, 1), (cost.l2_squared, 2), (cost.linf, 1))
        )
        if quantiles is None:
            numbers[:, at.LINEAR], numbers[:, at.SQUARE], numbers[:, at.LARGEST] = linear, square, top
            far = np.abs(box[:, : at.MODE]).max(axis=1)
        else:
            everyone = zip(*(a.tolist() for a in (x, low, high, unit)), strict=True)
            self.knots[i] = [quantiles.around(*one) for one in everyone]
            numbers[:, at.RATE], numbers[:, at.TOP_RATE] = linear, top
            numbers[:, at.KNOTS] = [knots.shape[1] for knots in self.knots[i]]
            far = np.array([knots[1].max() for knots in self.knots[i]])
        self.dearest[:, 0, i], self.dearest[:, 1, i] = fixed + (linear + square * far) * far, top * far

    def _labels(self, i: int, feature: Feature, weights: list[float], scale: float) -> None:
        """Which labels a lever may take and what they cost; worked out once for applicants who have the same
        label, interval and weight."""
        self.numbers[:, at.LABEL, i] = self.numbers[:, at.UNIT, i] = 1.0
        self.box[:, at.MODE, i] = ACTED
        here = slice(self.start[i], self.start[i + 1])
        known: dict[tuple[float, ...], tuple[list[bool], Array]] = {}
        for k, (instance, w) in enumerate(zip(self.instances, weights, strict=True)):
            x, (low, high) = float(self.x[k, i]), self.intervals[k, :, i].tolist()
            if (x, low, high, w) not in known:
                idle, labels = self.free[k, i] and not self.moved[i], range(len(feature.categories or ()))
                allowed = [low <= label <= high or (idle and label == x) for label in labels]
                fixed = Fraction(0) if self.moved[i] else self.fixed[i][k]
                known[x, low, high, w] = allowed, _costs(instance, feature, fixed, w, scale)
            self.allowed[k, here], self.column[k, :, here] = known[x, low, high, w]
            self.dearest[k, :, i] = self.column[k, :, here].max(axis=1)


def _costs(instance: Instance, feature: Feature, fixed: Fraction, weight: float, scale: float) -> Array:
    """What every label costs, and its share in the maximum, (2, labels)."""
    cost, x, made = instance.cost, instance.factual[feature.name], []
    parts, w, s = ((cost.l1, 1), (cost.l2_squared, 2), (cost.linf, 1)), Fraction(weight), Fraction(scale)
    linear, square, top = (Fraction(part) * w / s**power for part, power in parts)
    for label in range(len(feature.categories or ())):
        d = abs(cost.position(feature.name, float(label)) - cost.position(feature.name, x))
        if feature.kind == "categorical":
            d = Fraction(int(label != x))
        own = fixed if label != x else 0
        made.append((round_down(own + linear * d + square * d * d), round_down(top * d)))
    return np.array(made).T


def in_units(low: Array, high: Array, x: Array, unit: Array) -> tuple[Array, Array]:
    """Intervals as changes from x, rounded outward."""
    return difference_below(low, x) / unit, -difference_below(x, high) / unit


@lru_cache(maxsize=4096)
def _rate(coefficient: float, weight: float, scale: float, power: int, unit: float) -> float:
    """coefficient * weight * (unit / scale)^power, rounded down: the same few come up for every applicant."""
    exact = Fraction(coefficient) * Fraction(weight) * (Fraction(unit) / Fraction(scale)) ** power
    return max(0.0, round_down(exact))
