"""One lever's numbers for every applicant of one model: interval, unit, costs, labels, percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from milp_recourse.compiled import layout as at
from milp_recourse.compiled.causes import is_label
from milp_recourse.compiled.numerics import HUGE
from milp_recourse.domain.enclosure import round_down, round_up
from milp_recourse.domain.features import Feature
from milp_recourse.domain.quantiles import Quantiles
from milp_recourse.instance import Instance

Array = NDArray[np.float64]

EITHER, ACTED, IDLE = 0, 1, 2
"""A numeric lever's mode: it may be acted on or not; it is acted on, within its interval; it is not."""

_ZERO = Fraction(0)

_ONE, _NONE = np.ones(1, dtype=np.uint8), np.zeros((2, 1))
"""What a numeric lever, which has one column and no labels, allows and costs by label."""


class Lever:
    """One lever's numbers for applicants of one model, n of them.

    Attributes
    ----------
    x, interval
        Factual values, (n,), and what acting may set, (n, 2).
    unit, fixed
        Its unit, (n,), and what acting on it costs whatever the value.
    numbers, box
        Its column of ``lever`` and ``box``, (n, 13) and (n, 3).
    dearest
        About the largest cost and share in the maximum that its interval or labels have, (n, 2).
    allowed, columns, knots
        Its columns of ``allowed`` and ``column``, and its knots, for each applicant.
    """

    def __init__(self, instances: Sequence[Instance], name: str, moved: bool) -> None:
        n, cost, feature = len(instances), instances[0].cost, instances[0].feature(name)
        self.name, self.cost, self.feature, self.moved = name, cost, feature, moved
        self.x = np.array([one.factual[name] for one in instances])
        self.interval = np.array([one.levers[name] for one in instances])
        weights = [one.weight(name) for one in instances]
        self.scale = cost.scale[name] if cost.uses_scale else 1.0
        held = {w: Fraction(cost.l0) * Fraction(w) if cost.l0 else _ZERO for w in set(weights)}
        self.fixed = [held[w] for w in weights]
        self.unit = np.ones(n)
        self.numbers, self.box, self.dearest = np.zeros((n, 13)), np.zeros((n, 3)), np.zeros((n, 2))
        self.allowed, self.columns, self.knots = [_ONE] * n, [_NONE] * n, [_NONE] * n
        self.numbers[:, at.FACTUAL] = self.x
        low, high = self.interval.T
        free = np.ones(n, dtype=bool)
        if feature.domain is not None:
            free = (feature.domain[0] <= self.x) & (self.x <= feature.domain[1])
        if is_label(feature):
            self._by_label(instances, weights, free)
            return
        shift = np.zeros(n)
        if feature.integral:  # an imputed value may be no whole number
            shift = np.floor(self.x) - self.x
        costs = np.array([max(0.0, round_down(fixed)) if fixed else 0.0 for fixed in self.fixed])
        quantiles = cost.quantiles.get(name)
        self.unit = _units(low, high, self.x)
        self.box[:, at.LO], self.box[:, at.HI] = in_units(low, high, self.x, self.unit)
        idle = (low <= self.x) & (self.x <= high) & (shift == 0.0) & (cost.l0 == 0.0)
        self.box[:, at.MODE] = np.where(idle | ~free, ACTED, EITHER)
        lengths = (self.unit if quantiles is None else np.ones(n)).tolist()
        rates = [
            np.array([_rate(part, w, self.scale, power, u) for w, u in zip(weights, lengths, strict=True)])
            if part
            else np.zeros(n)
            for part, power in ((cost.l1, 1), (cost.l2_squared, 2), (cost.linf, 1))
        ]
        if not moved:
            self.numbers[:, at.FIXED] = self.numbers[:, at.OWN_FIXED] = costs
        self.numbers[:, at.UNIT] = self.unit
        self.numbers[:, at.SHIFT] = shift / self.unit
        if feature.integral:
            self.numbers[:, at.GRID] = 1.0 / self.unit
        if quantiles is None:
            self.numbers[:, at.LINEAR], self.numbers[:, at.SQUARE], self.numbers[:, at.LARGEST] = rates
            far = np.abs(self.box[:, : at.MODE]).max(axis=1)
            self.dearest[:, 0] = costs + (rates[0] + rates[1] * far) * far
            self.dearest[:, 1] = rates[2] * far
            return
        everyone = zip(*(a.tolist() for a in (self.x, low, high, self.unit)), strict=True)
        self.knots = [knots_of(quantiles, *one) for one in everyone]
        self.numbers[:, at.RATE], self.numbers[:, at.TOP_RATE] = rates[0], rates[2]
        self.numbers[:, at.KNOTS] = [knots.shape[1] for knots in self.knots]
        most = np.array([knots[1].max() for knots in self.knots])
        self.dearest[:, 0], self.dearest[:, 1] = costs + rates[0] * most, rates[2] * most

    def _by_label(self, instances: Sequence[Instance], weights: list[float], free: NDArray[np.bool_]) -> None:
        """What labels may be taken and cost; the same for applicants who are alike."""
        assert self.feature.categories is not None
        labels = range(len(self.feature.categories))
        self.numbers[:, at.LABEL] = self.numbers[:, at.UNIT] = 1.0
        self.box[:, at.MODE] = ACTED
        known: dict[tuple[float, ...], tuple[NDArray[np.uint8], Array]] = {}
        for k, (instance, w) in enumerate(zip(instances, weights, strict=True)):
            x, (low, high) = float(self.x[k]), self.interval[k].tolist()
            if (x, low, high, w) not in known:
                idle = free[k] and not self.moved
                allowed = [low <= label <= high or (idle and label == x) for label in labels]
                columns = self._costs(instance, labels, self.fixed[k], w)
                known[x, low, high, w] = np.array(allowed, dtype=np.uint8), columns
            self.allowed[k], self.columns[k] = known[x, low, high, w]
            self.dearest[k] = self.columns[k].max(axis=1)

    def _costs(self, instance: Instance, labels: range, fixed: Fraction, weight: float) -> Array:
        cost, s, w, x = self.cost, Fraction(self.scale), Fraction(weight), instance.factual[self.name]
        parts = (cost.l1, 1), (cost.l2_squared, 2), (cost.linf, 1)
        rates = [Fraction(part) * w / s**power for part, power in parts]
        deltas = [self._delta(instance, self.feature, k) for k in labels]
        costs = [
            (fixed if k != x and not self.moved else 0) + rates[0] * d + rates[1] * d * d
            for k, d in enumerate(deltas)
        ]
        return np.array([[round_down(v) for v in costs], [round_down(rates[2] * d) for d in deltas]])

    @staticmethod
    def _delta(instance: Instance, feature: Feature, k: int) -> Fraction:
        x = instance.factual[feature.name]
        if feature.kind == "categorical":
            return Fraction(int(k != x))
        position = instance.cost.position
        return abs(position(feature.name, float(k)) - position(feature.name, x))


def knots_of(quantiles: Quantiles, x: float, low: float, high: float, unit: float) -> Array:
    """Where a lever's percentiles from the factual bend, as coordinates rounded outward, and how many they
    are there, rounded down: linear between them it is nowhere above what it is, because it never falls with
    the distance.
    """
    own, factual = quantiles.exact(Fraction(x)), Fraction(x)
    places = sorted({*map(Fraction, quantiles.values), factual})
    first = max((k for k, v in enumerate(places) if v <= min(low, x)), default=0)
    last = min((k for k, v in enumerate(places) if v >= max(high, x)), default=len(places) - 1)
    made: dict[float, float] = {}
    for v in places[first : last + 1]:
        change = (v - factual) / Fraction(unit)
        place = round_up(change) if v > factual else round_down(change)
        much = max(0.0, round_down(abs(quantiles.exact(v) - own)))
        made[place] = min(much, made.get(place, much))
    return np.array(sorted(made.items())).T


def _units(low: Array, high: Array, x: Array) -> Array:
    """The least powers of two that numeric levers do not move farther than."""
    far = np.maximum(np.maximum(np.abs(low - x), np.abs(high - x)), 1.0 / HUGE)
    part, exponent = np.frexp(far)
    return np.ldexp(1.0, exponent - (part == 0.5))


def in_units(low: Array, high: Array, x: Array, unit: Array) -> tuple[Array, Array]:
    """Intervals as changes from x, rounded outward."""
    return _difference_below(low, x) / unit, -_difference_below(x, high) / unit


def _difference_below(a: Array, b: Array) -> Array:
    """The largest doubles that are not above a - b, whose rounding error is itself a double (Knuth)."""
    nearest = a - b
    part = nearest - a
    exact = (a - (nearest - part)) - (b + part) >= 0.0
    return np.where(exact, nearest, np.nextafter(nearest, -np.inf))


@lru_cache(maxsize=4096)
def _rate(coefficient: float, weight: float, scale: float, power: int, unit: float) -> float:
    """coefficient * weight * (unit / scale)^power, rounded down: the same few come up for every applicant."""
    exact = Fraction(coefficient) * Fraction(weight) * (Fraction(unit) / Fraction(scale)) ** power
    return max(0.0, round_down(exact))
