r"""Lowering an instance whose levers cause nothing else to arrays.

A lever's coordinate is :math:`u_i = (a_i - x_i) / s_i` with s a power of two near the width of its interval,
so the factual is the
origin and no digit is lost. A lever with labels has one column per label, its own label's being zero.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.compiled.layout import FACTUAL, GRID, LABEL, LEAST, MOST, UNIT
from milp_recourse.compiled.numerics import HUGE, slacks
from milp_recourse.domain.features import Feature
from milp_recourse.domain.network import ReluNetwork
from milp_recourse.instance import Instance

Array = NDArray[np.float64]

MOST_ROWS = 48
"""Rows of one Lagrangian: the logit's lines and the signs split on."""

EITHER, ACTED, IDLE = 0, 1, 2
"""A numeric lever's mode: its interval or not acting; its interval; not acting."""


class Problem(NamedTuple):
    """One applicant's problem as compiled code sees it. d levers, P columns, K hidden layers of at most n
    units.

    Rows of ``lever``, ``box`` and ``column`` have names in :mod:`milp_recourse.compiled.layout`.

    Attributes
    ----------
    start
        Where each lever's columns begin, (d + 1,).
    lever
        Whether it has labels; the step between whole values in its coordinate, 0 for continuous; its cost,
        rounded down: fixed when acted on,
        linear * abs(u), square * u^2, and its share in the maximum; then x, s and the interval of a, (10, d).
    box
        Interval and mode of numeric levers at the root, (3, d).
    allowed
        Labels that may be taken, (P,); numeric columns are 1.
    column
        Cost and share in the maximum of every label, (2, P).
    first, offset
        First layer on u: z = first[0] u + offset[0]; with [1] the sums of absolute terms behind both, (2, n,
        P) and (2, n).
    widths
        Units of each hidden layer, (K,).
    weights, biases
        weights[k] leads from hidden layer k to the next (the last to the logit), (K, n, n) and (K, n).
    turned
        The weights, transposed, (K, n, n).
    need_low, need_high
        The logit that must be reached, rounded down and up.
    has_largest
        Whether the maximum enters the cost.
    line, budget, dual, cost, up, tiny
        See :class:`~milp_recourse.compiled.numerics.Slacks`.
    """

    start: NDArray[np.int64]
    lever: Array
    box: Array
    allowed: NDArray[np.uint8]
    column: Array
    first: Array
    offset: Array
    widths: NDArray[np.int64]
    weights: Array
    biases: Array
    turned: Array
    need_low: float
    need_high: float
    has_largest: bool
    line: float
    budget: float
    dual: float
    cost: float
    up: float
    tiny: float


def why_not(instance: Instance) -> str | None:
    """Why the compiled engine does not cover an instance, or None."""
    if not isinstance(instance.classifier, ReluNetwork):
        return "not a network"
    if instance.plausible:
        return "plausibility"
    if any(instance.scm.descendants({name}) != {name} for name in instance.preferences.actionable):
        return "levers with effects"
    for name in instance.preferences.actionable:
        feature = instance.feature(name)
        if name in instance.cost.quantiles and not _is_label(feature):
            return "percentiles"
        if feature.integral and not float(instance.factual[name]).is_integer():
            return "a factual that is no whole number"
    return None


def impossible(instance: Instance) -> bool:
    """Whether a feature that cannot be acted on leaves its domain at its factual value."""
    return any(
        f.domain is not None
        and f.name not in instance.levers
        and not f.domain[0] <= instance.factual[f.name] <= f.domain[1]
        for f in instance.features
    )


def lower(instance: Instance) -> Problem:
    """The arrays of an instance that :func:`why_not` has nothing against."""
    network = instance.classifier
    assert isinstance(network, ReluNetwork)
    levers = [_Lever(instance, name) for name in instance.levers]
    row = np.concatenate([_columns(f, instance.factual[f.name]) for f in instance.features])
    places, at = {}, 0
    for f in instance.features:
        places[f.name] = slice(at, at + len(f.columns))
        at += len(f.columns)
    weight, bias = network.weights[0], network.biases[0]
    parts, sizes = [], []
    for lever in levers:
        part = weight[:, places[lever.name]]
        parts.append(part @ lever.shift.T)
        sizes.append(np.abs(part) @ lever.shift_size.T)
    start = np.cumsum([0, *(len(lever.shift) for lever in levers)]).astype(np.int64)
    widths = np.array([len(b) for b in network.biases[:-1]], dtype=np.int64)
    most = max([1, *widths.tolist()])
    weights, biases = np.zeros((len(widths), most, most)), np.zeros((len(widths), most))
    for k, (w, b) in enumerate(zip(network.weights[1:], network.biases[1:], strict=True)):
        weights[k, : w.shape[0], : w.shape[1]] = w
        biases[k, : len(b)] = b
    need = Fraction(instance.accept.threshold) + Fraction(instance.accept.margin)
    columns = int(start[-1])
    slack = slacks(widths.tolist(), len(row), columns, MOST_ROWS + columns)
    return Problem(
        start,
        np.ascontiguousarray(np.array([lever.numbers for lever in levers]).T),
        np.ascontiguousarray(np.array([lever.box for lever in levers]).T),
        np.concatenate([lever.allowed for lever in levers]),
        np.concatenate([lever.columns for lever in levers], axis=1),
        np.stack([np.concatenate(parts, axis=1), np.concatenate(sizes, axis=1)]),
        np.stack([weight @ row + bias, np.abs(weight) @ np.abs(row) + np.abs(bias)]),
        widths,
        weights,
        biases,
        np.ascontiguousarray(weights.transpose(0, 2, 1)),
        below(need),
        -below(-need),
        instance.cost.linf > 0,
        *slack,
    )


def below(value: Fraction) -> float:
    """The largest double that is not above a number."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def coordinates(instance: Instance, problem: Problem, rows: Array) -> Array:
    """Feature rows (n, features) as coordinates (n, d): the levers' values, labels as they are."""
    names = [f.name for f in instance.features]
    result = np.empty((len(rows), len(instance.levers)))
    for i, name in enumerate(instance.levers):
        values = rows[:, names.index(name)]
        if problem.lever[LABEL, i]:
            result[:, i] = values
        else:
            result[:, i] = (values - problem.lever[FACTUAL, i]) / problem.lever[UNIT, i]
    return result


def decode(instance: Instance, problem: Problem, values: Array) -> dict[str, float]:
    """The action that coordinates stand for; levers that stay where they are are not acted on."""
    action = {}
    for i, name in enumerate(instance.levers):
        if problem.lever[LABEL, i]:
            a = float(values[i])
        elif values[i] == 0.0:
            continue
        else:
            a = problem.lever[FACTUAL, i] + problem.lever[UNIT, i] * values[i]
            a = float(min(max(a, problem.lever[LEAST, i]), problem.lever[MOST, i]))
            a = float(round(a)) if problem.lever[GRID, i] else a
        if a != instance.factual[name]:
            action[name] = a
    return action


class _Lever:
    """One lever's numbers.

    Attributes
    ----------
    shift, shift_size
        What a column adds to the classifier's inputs per unit of its coordinate, (columns, inputs), and the
        absolute terms behind that.
    numbers, box, columns
        Its column of ``lever`` and ``box``, and its columns of ``column``.
    """

    def __init__(self, instance: Instance, name: str) -> None:
        self.name = name
        feature, x = instance.feature(name), instance.factual[name]
        low, high = instance.levers[name]
        free = feature.domain is None or feature.domain[0] <= x <= feature.domain[1]
        cost, weight = instance.cost, Fraction(instance.weight(name))
        scale = Fraction(cost.scale[name]) if cost.uses_scale else Fraction(1)
        fixed = Fraction(cost.l0) * weight
        rates = Fraction(cost.l1) * weight / scale, Fraction(cost.l2_squared) * weight / scale**2
        top = Fraction(cost.linf) * weight / scale
        if _is_label(feature):
            lookup = feature.lookup
            assert lookup is not None
            own = lookup[int(x)]
            self.shift, self.shift_size = lookup - own, np.abs(lookup) + np.abs(own)
            self.shift_size[int(x)] = 0.0
            labels = range(len(lookup))
            self.allowed = np.array([low <= k <= high or (free and k == x) for k in labels], dtype=np.uint8)
            deltas = [self._delta(instance, feature, k) for k in labels]
            costs = [(fixed if k != x else 0) + rates[0] * d + rates[1] * d * d for k, d in enumerate(deltas)]
            self.columns = np.array([[below(v) for v in costs], [below(top * d) for d in deltas]])
            self.box = [0.0, 0.0, ACTED]
            self.numbers = [1.0, *[0.0] * 5, x, 1.0, low, high]
            return
        ends = Fraction(low) - Fraction(x), Fraction(high) - Fraction(x)
        unit = 2.0 ** math.ceil(math.log2(max(abs(float(ends[0])), abs(float(ends[1])), 1.0 / HUGE)))
        self.shift = self.shift_size = np.array([[unit]])
        self.allowed = np.ones(1, dtype=np.uint8)
        self.columns = np.zeros((2, 1))
        mode = ACTED if (low <= x <= high and not fixed) or not free else EITHER
        s = Fraction(unit)
        self.box = [below(ends[0] / s), -below(-ends[1] / s), mode]
        rate = [max(0.0, below(v)) for v in (fixed, rates[0] * s, rates[1] * s * s, top * s)]
        self.numbers = [0.0, 1.0 / unit if feature.integral else 0.0, *rate, x, unit, low, high]

    @staticmethod
    def _delta(instance: Instance, feature: Feature, k: int) -> Fraction:
        x = instance.factual[feature.name]
        if feature.kind == "categorical":
            return Fraction(int(k != x))
        position = instance.cost.position
        return abs(position(feature.name, float(k)) - position(feature.name, x))


def _is_label(feature: Feature) -> bool:
    """Whether a lever's values have columns of their own; a plain code is a whole number unless unordered."""
    return feature.categories is not None and (feature.encoding != "code" or feature.kind == "categorical")


def _columns(feature: Feature, value: float) -> Array:
    lookup: Any = feature.lookup
    return np.array([value]) if lookup is None else lookup[int(value)]
