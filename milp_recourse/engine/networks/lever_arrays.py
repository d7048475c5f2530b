r"""The levers' numbers for every applicant of one model: interval, unit, costs, labels, percentiles.

Some levers' steps the engine counts itself, with roundings. Its k-th value of a lever is the sum of two
doubles, k s and the distance from the factual x to the nearest value n. Let s be the step and f the largest
absolute value of the lever's bounds, and let :math:`|x| \le f`. The decimals of s, n and the value are each
off by at most u of themselves, so are the product, the distance and the sum, and none of these is above
:math:`2 f + 2 s`. Together that is less than :math:`10 (f + s) u`. For k = 0 the value is the distance, off
by u of itself; any other value is at least s / 2 away from x. So values have a relative error of at most
:math:`20 (f / s + 1)` roundings, which :func:`~milp_recourse.engine.networks.numerics.slacks` counts like
those of any other term. Where the decimals are doubles (whole numbers, halves), only the distance and the sum
are rounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.compiling import record
from milp_recourse.engine.networks.causes import column_starts, is_label
from milp_recourse.engine.networks.numerics import HUGE
from milp_recourse.problem.enclosure import difference_below, round_down
from milp_recourse.problem.features import Feature, Steps
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.lever_cost import LeverCost

Array = NDArray[np.float64]

EITHER, ACTED, IDLE = 0, 1, 2
"""A numeric lever's mode: it may be acted on or not; it is acted on, within its interval; it is not acted
on."""

Records: TypeAlias = NDArray[Any]
"""An array of one of the records below."""

LEVER = record(
    label=float,
    grid=float,
    factual=float,
    unit=float,
    shift=float,
    knots=float,
    down=float,
    fixed=float,
    linear=float,
    square=float,
    largest=float,
    least=float,
    own_fixed=float,
    rate=float,
    square_rate=float,
    top_rate=float,
)
"""A lever: whether it has labels; the step between whole values in its coordinate, 0 for continuous; x and s;
the coordinate of a whole value (shift); its number of knots, 0 where its size has no bend but the factual;
what falls count as multiples of rises (down); then its cost, rounded down: fixed when acted on, linear u +
square u^2 for a rise by u, and its entry in the maximum, largest u + least. With knots its cost itself is
own_fixed and the rates per size; down to least are then a lower bound of it in the node at hand."""

COSTS = "fixed", "linear", "square", "largest", "least", "own_fixed", "rate", "square_rate", "top_rate"
"""The fields of :data:`LEVER` in units of cost."""

INTERVAL = record(lo=float, hi=float, mode=float)
"""A numeric lever's interval, and :data:`EITHER` and the others."""

COLUMN = record(cost=float, top=float)
"""Cost and share in the maximum of a label."""


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
        Every applicant's ``lever`` and ``box``, (n, d).
    allowed, column
        Every applicant's labels that may be taken, and ``column``, (n, P).
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
        self.numbers, self.box = np.zeros((n, d), LEVER), np.zeros((n, d), INTERVAL)
        self.dearest = np.zeros((n, 2, d))
        self.allowed, self.column = np.ones((n, columns), dtype=np.uint8), np.zeros((n, columns), COLUMN)
        self.knots: dict[int, list[Array]] = {}
        self.numbers["factual"] = self.x
        self.fixed: list[list[Fraction]] = []
        domains = [first.by_name[name].domain or (-np.inf, np.inf) for name in first.levers]
        low, high = np.array(domains, dtype=float).reshape(d, 2).T
        self.free = (low <= self.x) & (self.x <= high)
        for i, name in enumerate(first.levers):
            costs = [one.lever_costs[name] for one in instances]
            self.fixed.append([cost.prices.fixed for cost in costs])
            (self._labels if is_label(first.by_name[name]) else self._values)(i, first.by_name[name], costs)

    def _values(self, i: int, feature: Feature, costs: list[LeverCost]) -> None:
        """A numeric lever's box and costs."""
        numbers, box, x = self.numbers[:, i], self.box[:, i], self.x[:, i]
        low, high = self.intervals[:, :, i].T
        steps = None if feature.lattice is None else feature.lattice.spaced
        # x may be no value of the lattice; from the nearest one, sums of steps are relatively accurate
        shift = np.zeros(len(x)) if steps is None else steps.nearests(x) - x
        # the least power of two that the lever does not move farther than
        part, exponent = np.frexp(np.maximum(np.maximum(abs(low - x), abs(high - x)), 1.0 / HUGE))
        self.unit[:, i] = unit = np.ldexp(1.0, exponent - (part == 0.5))
        box["lo"], box["hi"] = in_units(low, high, x, unit)
        fixed = np.array([max(0.0, round_down(c)) if c else 0.0 for c in self.fixed[i]])
        idle = (low <= x) & (x <= high) & (shift == 0.0) & (fixed == 0.0)
        box["mode"] = np.where(idle | ~self.free[:, i], ACTED, EITHER)
        numbers["unit"], numbers["shift"] = unit, shift / unit
        numbers["grid"] = 0.0 if steps is None else steps.step / unit
        if not self.moved[i]:
            numbers["fixed"] = numbers["own_fixed"] = fixed
        linear, square, top = _known(costs, unit).T
        numbers["rate"], numbers["square_rate"], numbers["top_rate"] = linear, square, top
        if costs[0].straight:
            numbers["linear"], numbers["square"], numbers["largest"] = linear, square, top
            numbers["down"] = round_down(Fraction(costs[0].rise) / Fraction(costs[0].fall))
            far = np.maximum(box["hi"], -box["lo"] * numbers["down"])
        else:
            everyone = zip(costs, low.tolist(), high.tolist(), unit.tolist(), strict=True)
            self.knots[i] = [cost.knots(*ends) for cost, *ends in everyone]
            numbers["knots"] = [knots.shape[1] for knots in self.knots[i]]
            far = np.array([knots[1].max() for knots in self.knots[i]])
        self.dearest[:, 0, i], self.dearest[:, 1, i] = fixed + (linear + square * far) * far, top * far

    def _labels(self, i: int, feature: Feature, costs: list[LeverCost]) -> None:
        """Which labels a lever may take and what they cost; worked out once for applicants who have the same
        label, interval and weight."""
        self.numbers["label"][:, i] = self.numbers["unit"][:, i] = 1.0
        self.box["mode"][:, i] = ACTED
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
                each = {key: self._label(cost, label, i) for key, label in different.items()}
                made = [each[key] for key in keys]
                known[x, low, high, cost.weight] = allowed, np.array(made).T
            self.allowed[k, here], (paid, entry) = known[x, low, high, cost.weight]
            self.column["cost"][k, here], self.column["top"][k, here] = paid, entry
            self.dearest[k, :, i] = paid.max(), entry.max()

    def _label(self, cost: LeverCost, label: float, i: int) -> tuple[float, float]:
        """What a label costs, and its entry in the maximum; the factual one stands for not acting, too."""
        paid, entry = cost.paid(label)
        free = self.moved[i] or label == cost.factual
        return round_down(paid - cost.prices.fixed if free else paid), round_down(entry)


def _known(costs: list[LeverCost], unit: Array) -> Array:
    """Everybody's ``linear``, ``square`` and ``largest`` of rises by a unit, or of sizes, (n, 3); worked out
    once for applicants with the same weight and unit."""
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


MOST_STEPS = 5000
"""The largest f / s, so that the slack stays below 3e-11. Indices of steps are then off by less than 1e-11,
and the engine takes what is within 2^-30 of one for it."""


def counts_steps(instance: Instance, name: str) -> bool:
    """Whether the engine itself keeps to what an action on a lever may set, with bounds that hold.

    Parameters
    ----------
    name
        A lever. Labels with columns of their own are taken one by one.
    """
    feature = instance.by_name[name]
    if feature.only is None or is_label(feature):
        return True
    steps, x = feature.only.spaced, instance.factual[name]
    if steps is None:
        return False
    straight = instance.lever_costs[name].straight  # else sizes are not relatively as accurate as values
    if steps.exact(*feature.action_bounds):
        return straight or x in steps
    far = _farthest(feature)
    return straight and abs(x) <= far and far <= MOST_STEPS * steps.step


def roundings(instance: Instance) -> int:
    """The roundings that the values of any lever cost; the same for all applicants of one model."""
    each = [_roundings(f) for f in instance.features if f.actionable]
    return max(each, default=0)


def _roundings(feature: Feature) -> int:
    steps: Steps | None = None if feature.only is None else feature.only.spaced
    if steps is None or is_label(feature) or steps.exact(*feature.action_bounds):
        return 0
    return math.ceil(20 * (min(_farthest(feature) / steps.step, MOST_STEPS) + 1))


def _farthest(feature: Feature) -> float:
    return max(map(abs, feature.action_bounds))
