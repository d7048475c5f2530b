r"""The true functions at points: values, first-order forms, and which points are surely feasible.

Points are (d, B), nodes last. A point counts as feasible only if it is so by more than the rounding
error of the evaluation, so that exact judgement will agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, to_device

from milp_recourse.bounds.curves import CURVES
from milp_recourse.engine.contract import HAIR
from milp_recourse.engine.dual import Costs
from milp_recourse.engine.stack import Stack

Array = Any


@dataclass
class Local:
    """First-order forms at points, (d + 1, rows, B) with the value at the origin last.

    Attributes
    ----------
    logit
        One row.
    residuals, rows
        The ball's residuals and the domain rows.
    linear
        The ball's affine part, one row.
    """

    logit: Array
    residuals: Array
    rows: Array
    linear: Array


def unit_values(stack: Stack, a: Array, who: Array) -> Array:
    """Values of the structural units, (u, B)."""
    xp = array_namespace(a)
    values: list[Array] = []
    for k, (function, level) in enumerate(stack.units):
        argument = stack.unit_offset[k][who] + xp.sum(stack.unit_rows[k][: stack.actions, None] * a, axis=0)
        for j in range(k):
            argument = argument + stack.unit_rows[k][stack.actions + j] * values[j]
        values.append(_function(xp, function, level, argument)[0])
    return xp.stack(values) if values else xp.zeros((0, a.shape[1]), dtype=a.dtype)


def logits(stack: Stack, a: Array, units: Array, who: Array) -> Array:
    """The network's logit, (B,)."""
    xp = array_namespace(a)
    z = stack.first @ xp.concat([a, units], axis=0) + xp.take(stack.first_offset, who, axis=1)
    for weight, bias in zip(stack.weights, stack.biases, strict=True):
        z = weight @ xp.clip(z, 0.0, None) + bias
    return z[0]


def logit_error(stack: Stack, a: Array, units: Array, who: Array) -> Array:
    """Bound of the rounding error of :func:`logits`, (B,): running error analysis (Higham 2002, 3.3).

    inf where units are curves, whose own error is not told.
    """
    xp = array_namespace(a)
    if any(function != "relu" for function, _ in stack.units):
        return xp.zeros_like(a[0]) + xp.inf
    d = stack.actions
    rate = 2.0**-52 * (stack.first.shape[1] + 4)
    values, errors = [xp.abs(a[i]) for i in range(d)], [xp.zeros_like(a[0]) for _ in range(d)]
    for k in range(len(stack.units)):  # a ReLU passes its argument's error on, at most
        row = [abs(float(c)) for c in stack.unit_rows[k]]
        terms = [(c, v, e) for c, v, e in zip(row, values, errors, strict=False) if c]
        size = xp.abs(stack.unit_offset[k][who]) + sum((c * (v + e) for c, v, e in terms), 0.0)
        errors.append(sum((c * e for c, _, e in terms), 0.0) * (1 + 2.0**-40) + rate * size)
        values.append(xp.abs(units[k]))
    v, e = xp.stack(values), xp.stack(errors)
    offset = xp.take(stack.first_offset, who, axis=1)
    z = stack.first @ xp.concat([a, units], axis=0) + offset
    error = xp.abs(stack.first) @ e * (1 + 2.0**-40)
    error = error + rate * (xp.abs(stack.first) @ (v + e) + xp.abs(offset))
    for weight, bias in zip(stack.weights, stack.biases, strict=True):
        on, rate = xp.clip(z, 0.0, None), 2.0**-52 * (weight.shape[1] + 4)
        z = weight @ on + bias
        size = xp.abs(weight) @ (on + error) + xp.abs(bias)
        error = xp.abs(weight) @ error * (1 + 2.0**-40) + rate * size
    return error[0]


def ball_excess(stack: Stack, a: Array, units: Array, who: Array) -> tuple[Array, Array]:
    """Left side of the ball constraint (<= 0 is plausible), (B,), and a bound on its rounding error."""
    xp = array_namespace(a)
    if not stack.plausible:
        zero = xp.zeros(a.shape[1], dtype=a.dtype)
        return zero - 1.0, zero
    v = xp.concat([a, units], axis=0)
    offset = xp.take(stack.residual_offset, who, axis=1)
    r = stack.residuals @ v + offset
    size = xp.abs(stack.residuals) @ xp.abs(v) + xp.abs(offset)
    shift = xp.take(stack.ball_offset, who, axis=0)
    excess = xp.sum(stack.ball_weights * r * r, axis=0) + stack.ball_linear @ v + shift
    error = xp.sum(stack.ball_weights * (2 * xp.abs(r) + HAIR * size) * size, axis=0)
    return excess, 2.0**-45 * (error + xp.abs(stack.ball_linear) @ xp.abs(v) + xp.abs(shift)) + _curved(
        stack, units
    )


def row_excess(stack: Stack, a: Array, units: Array, who: Array) -> tuple[Array, Array]:
    """Largest violation of a domain row and its rounding error, (B,); minus infinity without rows."""
    xp = array_namespace(a)
    if not stack.rows.shape[0]:
        zero = xp.zeros_like(a[0])
        return zero - xp.inf, zero
    v = xp.concat([a, units], axis=0)
    offset = xp.take(stack.row_offset, who, axis=1)
    f = stack.rows @ v + offset
    error = 2.0**-45 * (xp.abs(stack.rows) @ xp.abs(v) + xp.abs(offset))
    over = xp.maximum(f - xp.take(stack.row_high, who, axis=1), xp.take(stack.row_low, who, axis=1) - f)
    # a row that is one action's value carries no rounding at all
    plain = xp.abs(stack.rows[:, : stack.actions]) == 1
    used = xp.sum(xp.astype(stack.rows != 0, stack.rows.dtype), axis=1)
    single = ((used == 1) & xp.any(plain, axis=1))[:, None]
    error = xp.where(single & (offset == 0), 0.0, error)
    return xp.max(over, axis=0), xp.max(error, axis=0)


def costs_at(costs: Costs, jump: Array, jump_largest: Array, a: Array) -> Array:
    """Cost of points, (B,); the jumps are what a changed category adds to the sum and to the maximum."""
    xp = array_namespace(a)
    delta = xp.abs(a - costs.x)
    moved = delta > 0
    total = xp.sum(costs.kappa * delta * delta + costs.beta * delta + xp.where(moved, jump, 0.0), axis=0)
    return total + xp.max(costs.omega * delta + xp.where(moved, jump_largest, 0.0), axis=0) + costs.fixed


def feasibility(stack: Stack, a: Array, who: Array, error: Array) -> tuple[Array, Array]:
    """Which points (d, B) are feasible whatever the rounding, and which may be; ``error`` is the logit's."""
    units = unit_values(stack, a, who)
    here = logit_error(stack, a, units, who)
    error = array_namespace(a).where(here < error, here, error)
    clear = logits(stack, a, units, who) - stack.threshold
    excess, slack = ball_excess(stack, a, units, who)
    rows, row_error = row_excess(stack, a, units, who)
    sure = (clear >= error) & (excess + slack <= 0) & (rows + row_error <= 0)
    return sure, (clear >= -error) & (excess - slack <= 0) & (rows - row_error <= 0)


def linearise(stack: Stack, a: Array, who: Array) -> Local:
    """First-order forms of the true functions at points (d, B)."""
    xp = array_namespace(a)
    d, batch = a.shape
    forms: list[Array] = []
    for k, (function, level) in enumerate(stack.units):
        base = [xp.zeros(batch, dtype=a.dtype) + stack.unit_rows[k][i] for i in range(d)]
        argument = xp.stack([*base, stack.unit_offset[k][who]])
        for j in range(k):
            argument = argument + stack.unit_rows[k][d + j] * forms[j]
        at = argument[-1] + xp.sum(argument[:-1] * a, axis=0)
        value, slope = _function(xp, function, level, at)
        form = slope * argument
        forms.append(xp.concat([form[:-1], (form[-1] + value - slope * at)[None]], axis=0))
    units = xp.stack(forms, axis=1) if forms else xp.zeros((d + 1, 0, batch), dtype=a.dtype)

    def over(matrix: Array, offset: Array) -> Array:
        base = xp.concat(
            [xp.broadcast_to(matrix[:, :d].T[:, :, None], (d, *offset.shape)), offset[None]], axis=0
        )
        return base + matrix[:, d:] @ units if forms else base

    form = over(stack.first, xp.take(stack.first_offset, who, axis=1))
    point = xp.concat([a, xp.ones((1, batch), dtype=a.dtype)], axis=0)[:, None]
    for weight, bias in zip(stack.weights, stack.biases, strict=True):
        on = xp.sum(form * point, axis=0) > 0
        form = weight @ xp.where(on[None], form, 0.0)
        form = xp.concat([form[:-1], (form[-1] + bias)[None]], axis=0)
    zero = xp.take(stack.ball_offset, who, axis=0)[None]
    return Local(
        form,
        over(stack.residuals, xp.take(stack.residual_offset, who, axis=1)),
        over(stack.rows, xp.take(stack.row_offset, who, axis=1)),
        over(stack.ball_linear[None], zero),
    )


def _curved(stack: Stack, units: Array) -> Array:
    """What the library's own rounding of curves may add to the ball, (B,)."""
    xp = array_namespace(units)
    if all(function in ("relu", "indicator") for function, _ in stack.units):
        return 0.0
    return 1e-12 * (1 + xp.sum(xp.abs(units), axis=0) * float(xp.max(xp.abs(stack.ball_linear))))


def _function(xp: Any, function: str, level: int, x: Array) -> tuple[Array, Array]:
    """Value and derivative of a unit."""
    if function == "relu":
        return xp.clip(x, 0.0, None), xp.where(x > 0, 1.0, 0.0)
    if function == "square":
        return x * x, 2 * x
    if function == "indicator":
        return xp.where(xp.round(x) == level, 1.0, 0.0), xp.zeros_like(x)
    curve = CURVES[function]
    with np.errstate(all="ignore"):
        values = np.asarray(to_device(x, "cpu"))
        pair = curve.value(values), curve.derivative(values)
    return tuple(xp.asarray(v, dtype=x.dtype, device=device(x)) for v in pair)  # type: ignore[return-value]
