r"""The true functions at points: values, first-order forms, and which points are surely feasible.

Points are (d, B), nodes last. A point counts as feasible only if it is so by more than the rounding
error of the evaluation, so that exact judgement will agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

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
    values: list[Array] = []
    for k, (function, level) in enumerate(stack.units):
        argument = stack.unit_offset[k][who] + np.sum(stack.unit_rows[k][: stack.actions, None] * a, axis=0)
        for j in range(k):
            argument = argument + stack.unit_rows[k][stack.actions + j] * values[j]
        values.append(_function(function, level, argument)[0])
    return np.stack(values) if values else np.zeros((0, a.shape[1]), dtype=a.dtype)


def logits(stack: Stack, a: Array, units: Array, who: Array) -> Array:
    """The network's logit, (B,)."""
    z = stack.first @ np.concat([a, units], axis=0) + np.take(stack.first_offset, who, axis=1)
    for weight, bias in zip(stack.weights, stack.biases, strict=True):
        z = weight @ np.clip(z, 0.0, None) + bias
    return z[0]


def logit_error(stack: Stack, a: Array, units: Array, who: Array) -> Array:
    """Bound of the rounding error of :func:`logits`, (B,): running error analysis (Higham 2002, 3.3).

    inf where units are curves, whose own error is not told.
    """
    if any(function != "relu" for function, _ in stack.units):
        return np.zeros_like(a[0]) + np.inf
    d = stack.actions
    rate = 2.0**-52 * (stack.first.shape[1] + 4)
    values, errors = [np.abs(a[i]) for i in range(d)], [np.zeros_like(a[0]) for _ in range(d)]
    for k in range(len(stack.units)):  # a ReLU passes its argument's error on, at most
        row = [abs(float(c)) for c in stack.unit_rows[k]]
        terms = [(c, v, e) for c, v, e in zip(row, values, errors, strict=False) if c]
        size = np.abs(stack.unit_offset[k][who]) + sum((c * (v + e) for c, v, e in terms), 0.0)
        errors.append(sum((c * e for c, _, e in terms), 0.0) * (1 + 2.0**-40) + rate * size)
        values.append(np.abs(units[k]))
    v, e = np.stack(values), np.stack(errors)
    offset = np.take(stack.first_offset, who, axis=1)
    z = stack.first @ np.concat([a, units], axis=0) + offset
    error = np.abs(stack.first) @ e * (1 + 2.0**-40)
    error = error + rate * (np.abs(stack.first) @ (v + e) + np.abs(offset))
    for weight, bias in zip(stack.weights, stack.biases, strict=True):
        on, rate = np.clip(z, 0.0, None), 2.0**-52 * (weight.shape[1] + 4)
        z = weight @ on + bias
        size = np.abs(weight) @ (on + error) + np.abs(bias)
        error = np.abs(weight) @ error * (1 + 2.0**-40) + rate * size
    return error[0]


def ball_excess(stack: Stack, a: Array, units: Array, who: Array) -> tuple[Array, Array]:
    """Left side of the ball constraint (<= 0 is plausible), (B,), and a bound on its rounding error."""
    if not stack.plausible:
        zero = np.zeros(a.shape[1], dtype=a.dtype)
        return zero - 1.0, zero
    v = np.concat([a, units], axis=0)
    offset = np.take(stack.residual_offset, who, axis=1)
    r = stack.residuals @ v + offset
    size = np.abs(stack.residuals) @ np.abs(v) + np.abs(offset)
    shift = np.take(stack.ball_offset, who, axis=0)
    excess = np.sum(stack.ball_weights * r * r, axis=0) + stack.ball_linear @ v + shift
    error = np.sum(stack.ball_weights * (2 * np.abs(r) + HAIR * size) * size, axis=0)
    return excess, 2.0**-45 * (error + np.abs(stack.ball_linear) @ np.abs(v) + np.abs(shift)) + _curved(
        stack, units
    )


def row_excess(stack: Stack, a: Array, units: Array, who: Array) -> tuple[Array, Array]:
    """Largest violation of a domain row and its rounding error, (B,); minus infinity without rows."""
    if not stack.rows.shape[0]:
        zero = np.zeros_like(a[0])
        return zero - np.inf, zero
    v = np.concat([a, units], axis=0)
    offset = np.take(stack.row_offset, who, axis=1)
    f = stack.rows @ v + offset
    error = 2.0**-45 * (np.abs(stack.rows) @ np.abs(v) + np.abs(offset))
    over = np.maximum(f - np.take(stack.row_high, who, axis=1), np.take(stack.row_low, who, axis=1) - f)
    # a row that is one action's value carries no rounding at all
    plain = np.abs(stack.rows[:, : stack.actions]) == 1
    used = np.sum(np.astype(stack.rows != 0, stack.rows.dtype), axis=1)
    single = ((used == 1) & np.any(plain, axis=1))[:, None]
    error = np.where(single & (offset == 0), 0.0, error)
    return np.max(over, axis=0), np.max(error, axis=0)


def costs_at(costs: Costs, jump: Array, jump_largest: Array, a: Array) -> Array:
    """Cost of points, (B,); the jumps are what a changed category adds to the sum and to the maximum."""
    delta = np.abs(a - costs.x)
    moved = delta > 0
    total = np.sum(costs.kappa * delta * delta + costs.beta * delta + np.where(moved, jump, 0.0), axis=0)
    return total + np.max(costs.omega * delta + np.where(moved, jump_largest, 0.0), axis=0) + costs.fixed


def feasibility(stack: Stack, a: Array, who: Array, error: Array) -> tuple[Array, Array]:
    """Which points (d, B) are feasible whatever the rounding, and which may be; ``error`` is the logit's."""
    units = unit_values(stack, a, who)
    here = logit_error(stack, a, units, who)
    error = np.where(here < error, here, error)
    clear = logits(stack, a, units, who) - stack.threshold
    excess, slack = ball_excess(stack, a, units, who)
    rows, row_error = row_excess(stack, a, units, who)
    sure = (clear >= error) & (excess + slack <= 0) & (rows + row_error <= 0)
    return sure, (clear >= -error) & (excess - slack <= 0) & (rows - row_error <= 0)


def linearise(stack: Stack, a: Array, who: Array) -> Local:
    """First-order forms of the true functions at points (d, B)."""
    d, batch = a.shape
    forms: list[Array] = []
    for k, (function, level) in enumerate(stack.units):
        base = [np.zeros(batch, dtype=a.dtype) + stack.unit_rows[k][i] for i in range(d)]
        argument = np.stack([*base, stack.unit_offset[k][who]])
        for j in range(k):
            argument = argument + stack.unit_rows[k][d + j] * forms[j]
        at = argument[-1] + np.sum(argument[:-1] * a, axis=0)
        value, slope = _function(function, level, at)
        form = slope * argument
        forms.append(np.concat([form[:-1], (form[-1] + value - slope * at)[None]], axis=0))
    units = np.stack(forms, axis=1) if forms else np.zeros((d + 1, 0, batch), dtype=a.dtype)

    def over(matrix: Array, offset: Array) -> Array:
        base = np.concat(
            [np.broadcast_to(matrix[:, :d].T[:, :, None], (d, *offset.shape)), offset[None]], axis=0
        )
        return base + matrix[:, d:] @ units if forms else base

    form = over(stack.first, np.take(stack.first_offset, who, axis=1))
    point = np.concat([a, np.ones((1, batch), dtype=a.dtype)], axis=0)[:, None]
    for weight, bias in zip(stack.weights, stack.biases, strict=True):
        on = np.sum(form * point, axis=0) > 0
        form = weight @ np.where(on[None], form, 0.0)
        form = np.concat([form[:-1], (form[-1] + bias)[None]], axis=0)
    zero = np.take(stack.ball_offset, who, axis=0)[None]
    return Local(
        form,
        over(stack.residuals, np.take(stack.residual_offset, who, axis=1)),
        over(stack.rows, np.take(stack.row_offset, who, axis=1)),
        over(stack.ball_linear[None], zero),
    )


def _curved(stack: Stack, units: Array) -> Array:
    """What the library's own rounding of curves may add to the ball, (B,)."""
    if all(function in ("relu", "indicator") for function, _ in stack.units):
        return 0.0
    return 1e-12 * (1 + np.sum(np.abs(units), axis=0) * float(np.max(np.abs(stack.ball_linear))))


def _function(function: str, level: int, x: Array) -> tuple[Array, Array]:
    """Value and derivative of a unit."""
    if function == "relu":
        return np.clip(x, 0.0, None), np.where(x > 0, 1.0, 0.0)
    if function == "square":
        return x * x, 2 * x
    if function == "indicator":
        return np.where(np.round(x) == level, 1.0, 0.0), np.zeros_like(x)
    curve = CURVES[function]
    with np.errstate(all="ignore"):
        values = x
        pair = curve.value(values), curve.derivative(values)
    return tuple(np.asarray(v, dtype=x.dtype) for v in pair)  # type: ignore[return-value]
