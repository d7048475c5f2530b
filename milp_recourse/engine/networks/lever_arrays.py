"""The levers' numbers for every applicant of one model: interval, unit, costs, labels, percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.networks import layout as at
from milp_recourse.engine.networks.causes import column_starts, is_label
from milp_recourse.engine.networks.numerics import HUGE
from milp_recourse.problem.enclosure import difference_below, round_down
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.lever_cost import LeverCost

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
        Every applicant's ``lever`` and ``box``, (n, 16, d) and (n, 3, d).
    allowed, column
        Every applicant's labels that may be taken, (n, P), and ``column``, (n, 2, P).
    knots
        Every applicant's knots for each lever whose size bends elsewhere than at the factual value.
    dearest
        About the largest cost and share in the maximum that intervals or labels have, (n, 2, d).
    """

    def __init__(self, instances: Sequence[Instance], moved: Sequence[bool]) -> None:
        first = instances[0]
        self.moved, self.start = moved, column_starts(first)
        n, d, columns = len(instances), len(first.levers), int(self.start[-1])
        self.x = np.array([[one.factual[name] for name in first.levers] for one in instances], dtype=float)
        given = np.array([[one.levers[name] for name in first.levers] for one in instances], dtype=float)
        self.intervals = np.ascontiguousarray(given.reshape(n, d, 2).transpose(0, 2, 1))
        self.unit = np.ones((n, d))
        self.numbers, self.box = np.zeros((n, at.TOP_RATE + 1, d)), np.zeros((n, 3, d))
        self.dearest = np.zeros((n, 2, d))
        self.allowed, self.column = np.ones((n, columns), dtype=np.uint8), np.zeros((n, 2, columns))
        self.knots: dict[int, list[Array]] = {}
        self.numbers[:, at.FACTUAL] = self.x
        self.fixed: list[list[Fraction]] = []
        domains = [first.feature(name).domain or (-np.inf, np.inf) for name in first.levers]
        low, high = np.array(domains, dtype=float).reshape(d, 2).T
        self.free = (low <= self.x) & (self.x <= high)
        for i, name in enumerate(first.levers):
            costs = [one.lever_cost(name) for one in instances]
            self.fixed.append([cost.prices.fixed for cost in costs])
            (self._labels if is_label(first.feature(name)) else self._values)(i, first.feature(name), costs)

    def _values(self, i: int, feature: Feature, costs: list[LeverCost]) -> None:
        """A numeric lever's box and costs."""
        numbers, box, x = self.numbers[:, :, i], self.box[:, :, i], self.x[:, i]
        low, high = self.intervals[:, :, i].T
        steps = None if feature.lattice is None else feature.lattice.spaced
        # x may be no value of the lattice; from the nearest one, sums of steps are relatively accurate
        shift = np.zeros(len(x)) if steps is None else steps.nearests(x) - x
        # the least power of two that the lever does not move farther than
        part, exponent = np.frexp(np.maximum(np.maximum(abs(low - x), abs(high - x)), 1.0 / HUGE))
        self.unit[:, i] = unit = np.ldexp(1.0, exponent - (part == 0.5))
        box[:, at.LO], box[:, at.HI] = in_units(low, high, x, unit)
        fixed = np.array([max(0.0, round_down(c)) if c else 0.0 for c in self.fixed[i]])
        idle = (low <= x) & (x <= high) & (shift == 0.0) & (fixed == 0.0)
        box[:, at.MODE] = np.where(idle | ~self.free[:, i], ACTED, EITHER)
        numbers[:, at.UNIT], numbers[:, at.SHIFT] = unit, shift / unit
        numbers[:, at.GRID] = 0.0 if steps is None else steps.step / unit
        if not self.moved[i]:
            numbers[:, at.FIXED] = numbers[:, at.OWN_FIXED] = fixed
        numbers[:, at.RATE : at.TOP_RATE + 1] = known = _known(costs, unit)
        if costs[0].straight:
            numbers[:, at.LINEAR : at.LEAST] = known
            numbers[:, at.DOWN] = round_down(Fraction(costs[0].rise) / Fraction(costs[0].fall))
            far = np.maximum(box[:, at.HI], -box[:, at.LO] * numbers[:, at.DOWN])
        else:
            everyone = zip(costs, low.tolist(), high.tolist(), unit.tolist(), strict=True)
            self.knots[i] = [cost.knots(*ends) for cost, *ends in everyone]
            numbers[:, at.KNOTS] = [knots.shape[1] for knots in self.knots[i]]
            far = np.array([knots[1].max() for knots in self.knots[i]])
        linear, square, top = known.T
        self.dearest[:, 0, i], self.dearest[:, 1, i] = fixed + (linear + square * far) * far, top * far

    def _labels(self, i: int, feature: Feature, costs: list[LeverCost]) -> None:
        """Which labels a lever may take and what they cost; worked out once for applicants who have the same
        label, interval and weight."""
        self.numbers[:, at.LABEL, i] = self.numbers[:, at.UNIT, i] = 1.0
        self.box[:, at.MODE, i] = ACTED
        here = slice(self.start[i], self.start[i + 1])
        known: dict[tuple[float, ...], tuple[list[bool], Array]] = {}
        lattice = feature.lattice
        settable = [lattice is None or k in lattice for k in range(len(feature.categories or ()))]
        for k, cost in enumerate(costs):
            x, (low, high) = cost.factual, self.intervals[k, :, i].tolist()
            if (x, low, high, cost.weight) not in known:
                idle, labels = self.free[k, i] and not self.moved[i], range(len(feature.categories or ()))
                allowed = [
                    (low <= label <= high and settable[label]) or (idle and label == x) for label in labels
                ]
                # of labels that are all equally far apart, one that is not the factual stands for the others
                keys = [label == x if cost.label else float(label) for label in labels]
                different = {key: float(label) for label, key in enumerate(keys)}
                paid = {key: self._label(cost, label, i) for key, label in different.items()}
                made = [paid[key] for key in keys]
                known[x, low, high, cost.weight] = allowed, np.array(made).T
            self.allowed[k, here], self.column[k, :, here] = known[x, low, high, cost.weight]
            self.dearest[k, :, i] = self.column[k, :, here].max(axis=1)

    def _label(self, cost: LeverCost, label: float, i: int) -> tuple[float, float]:
        """What a label costs, and its entry in the maximum; the factual one stands for not acting, too."""
        paid, entry = cost.paid(label)
        free = self.moved[i] or label == cost.factual
        return round_down(paid - cost.prices.fixed if free else paid), round_down(entry)


def _known(costs: list[LeverCost], unit: Array) -> Array:
    """Everybody's LINEAR to LARGEST of rises by a unit, or of sizes, (n, 3); worked out once for applicants
    with the same weight and unit."""
    known: dict[tuple[float, float], tuple[float, ...]] = {}
    keys = [(cost.weight, u) for cost, u in zip(costs, unit.tolist(), strict=True)]
    for cost, key in zip(costs, keys, strict=True):
        if key not in known:
            known[key] = cost.prices.rounded(
                Fraction(key[1]) / Fraction(cost.rise) if cost.straight else Fraction(1)
            )
    return np.array([known[key] for key in keys])


def in_units(low: Array, high: Array, x: Array, unit: Array) -> tuple[Array, Array]:
    """Intervals as changes from x, rounded outward."""
    return difference_below(low, x) / unit, -difference_below(x, high) / unit
