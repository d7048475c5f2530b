r"""Linear bounds of the logit on action boxes, back-substituted, with every rounding error paid for.

A ReLU with argument in [l, h] lies between :math:`\alpha y` (any :math:`0 \le \alpha \le 1`) and the
chord :math:`h (y - l)/(h - l)`. Forward, the second layer's arguments become linear in the actions;
deeper layers and the logit are substituted back layer by layer (CROWN; Zhang et al. 2018,
https://arxiv.org/abs/1811.00866). Whatever the slopes :math:`\alpha`, the bound holds; they are
chosen where it is to be tight.

Rounding. A number computed by sums and products differs from its exact value by at most
:math:`n 2^{-53}` times the same computation on absolute values, n counting the operations on its
longest path (Higham 2002, section 3.1). :func:`rounding` makes that computation once per applicant,
on the largest box, and every bound is moved outward by it.

Arrays have nodes on the last axis: boxes (d, B), arguments (h, B), forms (d + 1, h, B) with the
constant last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from milp_recourse.engine.batched import Batched
from milp_recourse.engine.dual import SLACK, Costs
from milp_recourse.engine.stack import Stack
from milp_recourse.engine.units import Signs, UnitForms, unit_forms

Array = Any


@dataclass
class Layer:
    """One hidden layer on a batch of boxes.

    Attributes
    ----------
    low, high
        Its arguments, (h, B).
    lower, upper
        Linear functions of the actions below and above them, (d + 1, h, B).
    chord, intercept
        relu(y) <= chord y + intercept, (h, B).
    """

    low: Array
    high: Array
    lower: Array
    upper: Array
    chord: Array
    intercept: Array

    def take(self, index: Array) -> Layer:
        """The nodes at ``index``."""
        lower = np.take(self.lower, index, axis=2)
        upper = lower if self.upper is self.lower else np.take(self.upper, index, axis=2)
        rest = (np.take(v, index, axis=1) for v in (self.chord, self.intercept))
        return Layer(np.take(self.low, index, axis=1), np.take(self.high, index, axis=1), lower, upper, *rest)


@dataclass
class Relaxed:
    """What is known of a batch of boxes.

    Attributes
    ----------
    low, high
        The boxes, (d, B).
    who
        Applicant of every node, (B,).
    units
        Linear bounds of the structural units.
    layers
        The hidden layers.
    errors
        Rounding errors of every layer's arguments, (h, B) each, and of the logit, (B,).
    """

    stack: Stack
    low: Array
    high: Array
    who: Array
    units: UnitForms
    layers: list[Layer]
    errors: list[Array]

    def take(self, index: Array) -> Relaxed:
        """The nodes at ``index``."""

        def last(array: Array) -> Array:
            return np.take(array, index, axis=array.ndim - 1)

        return Relaxed(
            self.stack,
            last(self.low),
            last(self.high),
            last(self.who),
            self.units.take(index),
            [layer.take(index) for layer in self.layers],
            [last(error) for error in self.errors],
        )

    def open(self) -> Array:
        """How many ReLUs of the network have both signs, (B,)."""
        total = np.zeros(self.low.shape[1], dtype=np.int64)
        for layer in self.layers:
            total = total + np.sum(np.astype((layer.low < 0) & (layer.high > 0), np.int64), axis=0)
        return total


def rounding(stack: Stack, low: Array, high: Array, who: Array) -> list[Array]:
    """Error of the computed arguments of every layer, the logit last: one (B,) array each.

    Valid for every box inside [low, high].
    """
    units = unit_forms(stack, low, high, who)
    z = _first_sizes(stack, units, low, high, who)
    errors = [_rate(stack, units, 0) * np.max(z, axis=0)]
    for k, (weight, bias) in enumerate(zip(stack.weights, stack.biases, strict=True), start=1):
        z = 2.0 * (np.abs(weight) @ z) + np.abs(bias)  # chord y + intercept is at most 2 z: |l|, h <= z
        errors.append(_rate(stack, units, k) * np.max(z, axis=0))
    return errors


def _first_sizes(stack: Stack, units: UnitForms, low: Array, high: Array, who: Array) -> Array:
    """The first arguments computed on absolute values, (h, B)."""
    values = np.concat([np.maximum(np.abs(low), np.abs(high)), units.size], axis=0)
    return np.abs(stack.first) @ values + np.take(np.abs(stack.first_offset), who, axis=1)


def _next_sizes(weight: Array, bias: Array, layer: Layer, z: Array) -> Array:
    """The next layer's arguments on absolute values, from this layer's z; off neurons add nothing."""
    return np.abs(weight) @ np.where(layer.high > 0, z + layer.intercept, 0.0) + np.abs(bias)


def _rate(stack: Stack, units: UnitForms, layer: int) -> float:
    """Rounding error of a layer's forms in proportion to the same computation on absolute values."""
    operations = 4.0 * (stack.first.shape[1] + 8) + units.operations
    operations += sum(4.0 * (weight.shape[1] + 8) for weight in stack.weights[:layer])
    return operations * 2.0**-52


@dataclass
class Budget(Batched):
    """What the actions of interest obey besides their boxes.

    Attributes
    ----------
    costs, target
        They cost at most the target, (B,).
    cut
        A form that is not negative at any of them, (d + 1, B).
    """

    costs: Costs
    target: Array
    cut: Array


def within_budget(form: Array, sign: float, low: Array, high: Array, budget: Budget) -> Array:
    r"""Largest (sign 1) or smallest (-1) value of forms (d + 1, B) on boxes, within a budget.

    With multipliers :math:`\lambda` on the cut g and :math:`\theta` on the cost,

    .. math:: f a + f_0 \le F x + F_0 + \theta C
              + \sum_i \max_{a_i} (F_i \delta_i - \theta \kappa_i \delta_i^2), \quad F = f + \lambda g .

    Without the box they would be best where :math:`\theta = \tfrac12 \sqrt{\sum_i F_i^2/\kappa_i / C}`, and
    F has its largest value, within the cost alone, where the cut is tight.
    """
    costs, target = budget.costs, budget.target
    l, u = low - costs.x, high - costs.x
    spare = (target - costs.fixed) + 2.0**-50 * (np.abs(target) + costs.fixed)
    spare = np.where(spare > 0, spare, 0.0)
    k = costs.kappa
    inverse = np.where(k > 0, 1.0 / np.where(k > 0, k, 1.0), 0.0)
    share = _cut_share(sign * form, budget.cut, costs.x, inverse, spare)
    f = sign * form + share * budget.cut
    sizes = np.abs(form) + share * np.abs(budget.cut)
    norm = np.sum(f[:-1] * f[:-1] * inverse, axis=0)
    theta = 0.5 * np.sqrt(norm / np.where(spare > 0, spare, 1.0)) + 1e-300
    half = 0.5 / theta
    total = f[-1] + theta * spare
    size = sizes[-1] + theta * spare
    for i in range(low.shape[0]):
        z = f[i] * (half * inverse[i])
        z = np.where(z > u[i], u[i], np.where(z < l[i], l[i], z))
        z = np.where(k[i] > 0, z, np.where(f[i] > 0, u[i], l[i]))
        spent = theta * (k[i] * z * z)
        total = total + f[i] * (costs.x[i] + z) - spent
        size = size + sizes[i] * (np.abs(costs.x[i]) + np.abs(z)) + spent
    return sign * (total + SLACK * size)


def _cut_share(form: Array, cut: Array, x: Array, inverse: Array, spare: Array) -> Array:
    """The multiplier of the cut in :func:`within_budget`: 0 where the form's largest value obeys the cut."""
    f, g = form[:-1], cut[:-1]
    ff, fg, gg = (np.sum(a * b * inverse, axis=0) for a, b in ((f, f), (f, g), (g, g)))
    need = -(cut[-1] + np.sum(g * x, axis=0))  # g delta >= need
    length = np.sqrt(np.where(gg > 0, gg, 1.0))
    along = fg / length
    need = need / length  # in units of the cost's root
    across = np.sqrt(np.clip(ff - along * along, 0.0, None))
    rest = np.sqrt(np.clip(spare - need * need, 1e-12 * spare + 1e-300, None))
    share = (across * need / rest - along) / length
    return np.where((gg > 0) & (share > 0) & (share < np.inf), share, 0.0)


def relax(
    stack: Stack,
    low: Array,
    high: Array,
    who: Array,
    errors: list[Array],
    signs: Signs | None,
    budget: Budget | None = None,
) -> Relaxed:
    """Bounds of every hidden layer on boxes (d, B) of applicants ``who``, on the side of ``signs``.

    With a budget they hold only for the actions of the boxes within it.
    """
    d = stack.actions
    units = unit_forms(stack, low, high, who, signs)
    middle, radius = (low + high) / 2, (high - low) / 2
    offset = np.take(stack.first_offset, who, axis=1)
    plain = stack.first[:, :d]
    if units.count:
        hidden = stack.first[:, d:]
        up, down = np.clip(hidden, 0.0, None), np.clip(hidden, None, 0.0)
        base = np.concat([np.broadcast_to(plain.T[:, :, None], (d, *offset.shape)), offset[None]], axis=0)
        upper = base + up @ units.upper + down @ units.lower
        lower = upper if units.exact else base + up @ units.lower + down @ units.upper
        l, h = _extremes(lower, upper, middle, radius)
    else:
        lower = upper = np.concat(
            [np.broadcast_to(plain.T[:, :, None], (d, *offset.shape)), offset[None]], axis=0
        )
        centre, reach = plain @ middle + offset, np.abs(plain) @ radius
        l, h = centre - reach, centre + reach
    number = units.count
    l, h = _within(l, h, lower, upper, low, high, budget)
    sizes = _first_sizes(stack, units, low, high, who)
    if not stack.weights:
        return Relaxed(
            stack, low, high, who, units, [], [_smaller(errors[0], _rate(stack, units, 0) * sizes)[0]]
        )
    hairs = [_smaller(errors[0], _rate(stack, units, 0) * sizes)]
    layers = [_layer(l - hairs[0], h + hairs[0], lower, upper, signs, number)]
    relaxed = Relaxed(stack, low, high, who, units, layers, hairs)
    for k in range(1, len(stack.weights)):
        previous = layers[-1]
        weight, bias = stack.weights[k - 1], stack.biases[k - 1]
        number += previous.low.shape[0]
        # the second layer's forward forms are the back-substituted ones, and cheaper
        lower, upper = _forward(weight, bias, previous) if k == 1 else _backward(relaxed, k)
        l, h = _extremes(lower, upper, middle, radius)
        l, h = _within(l, h, lower, upper, low, high, budget)
        sizes = _next_sizes(weight, bias, previous, sizes)
        hair = _smaller(errors[k], _rate(stack, units, k) * sizes)
        hairs.append(hair)
        layers.append(_layer(l - hair, h + hair, lower, upper, signs, number))
    sizes = _next_sizes(stack.weights[-1], stack.biases[-1], layers[-1], sizes)
    hairs.append(_smaller(errors[-1], _rate(stack, units, len(stack.weights)) * sizes)[0])
    return relaxed


def _smaller(every: Array, here: Array) -> Array:
    """The error of an applicant's largest box, (B,), or of this box and neuron, (h, B): both hold."""
    return np.where(here < every, here, every)


def value_at(layer: Layer, point: Array) -> Array:
    """Middle of a layer's linear bounds at points (d, B), (h, B)."""
    value = (layer.upper[-1] + layer.lower[-1]) / 2
    for i in range(point.shape[0]):
        value = value + (layer.upper[i] + layer.lower[i]) / 2 * point[i]
    return value


def slopes_at(relaxed: Relaxed, point: Array) -> list[Array]:
    """Lower slopes alpha that make the bound tight at points (d, B): 1 where the argument is positive there.

    Together with the chords these are a supergradient of the relaxed logit, so a line per point met is a
    cutting-plane method for the best slopes.
    """
    result = []
    for layer in relaxed.layers:
        positive = (layer.low >= 0) | (value_at(layer, point) > 0)
        result.append(np.where((layer.high > 0) & positive, 1.0, 0.0))
    return result


def adaptive(layer: Layer) -> Array:
    """The usual lower slopes: 1 where most of the interval is positive."""
    return np.where(layer.high > -layer.low, 1.0, 0.0)


def logit_line(relaxed: Relaxed, alphas: list[Array], error: Array) -> tuple[Array, Array, list[Array]]:
    """logit <= slope a + offset on each box: (d, B), (B,); and the multiplier each ReLU's bound got."""
    stack, layers = relaxed.stack, relaxed.layers
    batch = relaxed.low.shape[1]
    if not stack.weights:  # the classifier is affine: its first arguments are the logit
        one = np.ones((1, batch), dtype=relaxed.low.dtype)
        return *_to_actions(relaxed, one, np.zeros_like(one[0]), error), []
    last = stack.weights[-1]
    coefficient = np.broadcast_to(last.T, (last.shape[1], batch))
    constant = np.zeros(batch, dtype=relaxed.low.dtype) + stack.biases[-1][0, 0]
    multipliers: list[Array] = []
    for k in range(len(layers) - 1, -1, -1):
        layer = layers[k]
        multipliers.insert(0, coefficient)
        helping = coefficient > 0
        constant = constant + np.sum(np.where(helping, coefficient * layer.intercept, 0.0), axis=0)
        coefficient = coefficient * np.where(helping, layer.chord, alphas[k])
        if k > 0:
            constant = constant + np.sum(coefficient * stack.biases[k - 1], axis=0)
            coefficient = stack.weights[k - 1].T @ coefficient
    return *_to_actions(relaxed, coefficient, constant, error), multipliers


def _to_actions(relaxed: Relaxed, coefficient: Array, constant: Array, error: Array) -> tuple[Array, Array]:
    """A form over first-layer arguments as one over actions, from above."""
    stack, d = relaxed.stack, relaxed.stack.actions
    offset = constant + error + np.sum(coefficient * np.take(stack.first_offset, relaxed.who, axis=1), axis=0)
    over = stack.first.T @ coefficient
    return substitute_units(relaxed.units, over[:d], offset, over[d:])


def substitute_units(units: UnitForms, slope: Array, offset: Array, over: Array) -> tuple[Array, Array]:
    """slope a + over v + offset from above, as a form in the actions alone; ``over`` is (u, B)."""
    if not units.count:
        return slope, offset
    up, down = np.clip(over, 0.0, None), np.clip(over, None, 0.0)
    total = np.sum(up[None] * units.upper + down[None] * units.lower, axis=1)
    return slope + total[:-1], offset + total[-1]


def extreme(form: Array, middle: Array, radius: Array, sign: float) -> Array:
    """Largest (sign 1) or smallest (-1) value of forms (d + 1, h, B) on boxes."""
    value = form[-1]
    for i in range(middle.shape[0]):
        value = value + form[i] * middle[i] + sign * np.abs(form[i]) * radius[i]
    return value


def _extremes(lower: Array, upper: Array, middle: Array, radius: Array) -> tuple[Array, Array]:
    if lower is not upper:
        return extreme(lower, middle, radius, -1.0), extreme(upper, middle, radius, 1.0)
    centre, reach = lower[-1], np.zeros_like(lower[-1])
    for i in range(middle.shape[0]):
        centre = centre + lower[i] * middle[i]
        reach = reach + np.abs(lower[i]) * radius[i]
    return centre - reach, centre + reach


def _within(
    l: Array,
    h: Array,
    lower: Array,
    upper: Array,
    low: Array,
    high: Array,
    budget: Budget | None,
) -> tuple[Array, Array]:
    """A layer's interval, intersected with what the budget allows where that may matter: around zero."""
    if budget is None:
        return l, h
    rows, nodes = np.nonzero((l < 0) & (h > 0))
    low, high = np.take(low, nodes, axis=1), np.take(high, nodes, axis=1)
    budget = budget.take(nodes)
    here = (slice(None), rows, nodes)
    below = within_budget(lower[here], -1.0, low, high, budget)
    above = within_budget(upper[here], 1.0, low, high, budget)
    l, h = l + 0.0, h + 0.0
    before, after = l[rows, nodes], h[rows, nodes]
    l[rows, nodes] = np.where(below > before, below, before)
    h[rows, nodes] = np.where(above < after, above, after)
    return l, h


def _layer(low: Array, high: Array, lower: Array, upper: Array, signs: Signs | None, number: int) -> Layer:
    """The ReLU's chord; its intercept is rounded outward."""
    if signs is not None:
        low, high = signs.clamp(number, low, high)
    high = np.maximum(high, low)
    spans = (low < 0) & (high > 0)
    width = np.where(spans, high - low, 1.0)
    chord = np.where(spans, high / width, np.where(low >= 0, 1.0, 0.0))
    intercept = np.where(spans, np.maximum(-chord * low, (1.0 - chord) * high) * (1 + 2.0**-48), 0.0)
    return Layer(low, high, lower, upper, chord, intercept)


def _forward(weight: Array, bias: Array, layer: Layer) -> tuple[Array, Array]:
    """Forms of the next layer's arguments, from below and above.

    With W = W+ - W-, the upper form is W+ top - W- bottom and the lower W+ bottom - W- top: half the sum and
    difference of W (top + bottom) and abs(W) (top - bottom), in half the work. What is summed is at most
    twice as large in absolute value; :func:`_rate` has room for eight times.
    """
    top = layer.chord[None] * layer.upper
    top = np.concat([top[:-1], (top[-1] + layer.intercept)[None]], axis=0)
    bottom = adaptive(layer)[None] * layer.lower
    middle, reach = (weight / 2) @ (top + bottom), (np.abs(weight) / 2) @ (top - bottom)
    shift = np.concat([np.zeros((top.shape[0] - 1, *bias.shape), dtype=bias.dtype), bias[None]], axis=0)
    middle = middle + shift
    return middle - reach, middle + reach


def _backward(relaxed: Relaxed, k: int) -> tuple[Array, Array]:
    """Forms of hidden layer k's arguments (0 the first), substituted back, from below and above."""
    stack, d = relaxed.stack, relaxed.stack.actions
    batch = relaxed.low.shape[1]
    found = []
    for sign in (-1.0, 1.0):
        weight, bias = stack.weights[k - 1], stack.biases[k - 1]
        coefficient = np.broadcast_to(sign * weight[:, :, None], (*weight.shape, batch))
        constant = np.broadcast_to(sign * bias, (bias.shape[0], batch))
        for j in range(k - 1, -1, -1):
            layer = relaxed.layers[j]
            helping = coefficient > 0
            constant = constant + np.sum(np.where(helping, coefficient * layer.intercept, 0.0), axis=1)
            coefficient = coefficient * np.where(helping, layer.chord, adaptive(layer))
            if j > 0:
                constant = constant + np.sum(coefficient * stack.biases[j - 1], axis=1)
                coefficient = stack.weights[j - 1].T @ coefficient
        constant = constant + np.sum(coefficient * np.take(stack.first_offset, relaxed.who, axis=1), axis=1)
        over = stack.first.T @ coefficient  # (h, d + u, B)
        slope = over[:, :d]
        if relaxed.units.count:
            rest = over[:, d:]
            up, down = np.clip(rest, 0.0, None), np.clip(rest, None, 0.0)
            total = np.sum(
                up[:, None] * relaxed.units.upper[None] + down[:, None] * relaxed.units.lower[None], axis=2
            )
            slope, constant = slope + total[:, :-1], constant + total[:, -1]
        found.append(np.concat([np.permute_dims(slope, (1, 0, 2)), constant[None]], axis=0))
    return -found[0], found[1]
