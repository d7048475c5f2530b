r"""Shrinking boxes by what a solution must obey, before any network is looked at; nodes last.

With the cost separable, :math:`\sum_i c_i(\delta_i) \le C`, and a box on which the other terms cost at
least :math:`m_j`, action i has only :math:`C - \sum_{j \ne i} m_j` left to spend. The plausibility ball
leaves each residual only :math:`R - \sum_{j \ne i} w_j \min r_j^2`, which carries over to the actions in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from milp_recourse.engine.dual import Costs
from milp_recourse.engine.relaxation import extreme
from milp_recourse.engine.stack import Stack
from milp_recourse.engine.units import UnitForms, unit_forms

Array = Any

HAIR = 1e-12
"""Relative outward slack of a shrunk end: thousands of times the rounding of the operations behind it."""


def least_cost(costs: Costs, low: Array, high: Array) -> Array:
    """The least cost on each box, (B,), rounded down."""
    near = _nearest(costs, low, high)
    total = np.sum(costs.kappa * near * near + costs.beta * near, axis=0)
    if low.shape[0]:
        total = total + np.max(costs.omega * near, axis=0)
    return (total + costs.fixed) * (1 - HAIR)


def contract(
    stack: Stack, costs: Costs, low: Array, high: Array, who: Array, target: Array, rounds: int = 2
) -> tuple[Array, Array]:
    """Boxes (d, B) less what costs above ``target`` (B,), breaks the ball or a domain; empty: low > high."""
    for _ in range(rounds):
        low, high = by_cost(costs, low, high, target)
        if stack.plausible or stack.rows.shape[0]:
            alive = np.all(low <= high, axis=0)
            safe_low, safe_high = np.where(alive, low, high), np.where(alive, high, low)
            units = unit_forms(stack, np.minimum(safe_low, safe_high), np.maximum(safe_low, safe_high), who)
            if stack.plausible:
                low, high = _by_ball(stack, units, low, high, who)
            if stack.rows.shape[0]:
                low, high = _by_rows(stack, units, low, high, who)
        if any(stack.integral):
            whole = np.asarray(stack.integral)[:, None]
            low = np.where(whole, np.ceil(low - 1e-9), low)
            high = np.where(whole, np.floor(high + 1e-9), high)
    return low, high


def by_cost(costs: Costs, low: Array, high: Array, target: Array) -> tuple[Array, Array]:
    """Ends no farther from the factual than the target pays for."""
    near = _nearest(costs, low, high)
    terms = costs.kappa * near * near + costs.beta * near
    room = target * (1 + HAIR) - costs.fixed - (np.sum(terms, axis=0) - terms)
    room = room + HAIR * (np.abs(target) + np.sum(terms, axis=0))
    spent = np.any(room < 0, axis=0)
    room = np.clip(room, 0.0, None)
    k, b = costs.kappa, costs.beta
    # kappa r^2 + beta r <= room
    root = np.sqrt(b * b + 4 * k * room) + b
    reach = np.where(root > 0, 2 * room / np.where(root > 0, root, 1.0), np.inf)
    top = np.clip(target * (1 + HAIR) - costs.fixed, 0.0, None)
    reach = np.minimum(
        reach, np.where(costs.omega > 0, top / np.where(costs.omega > 0, costs.omega, 1.0), np.inf)
    )
    slack = HAIR * (reach + np.abs(costs.x))
    low = np.maximum(low, costs.x - reach - slack)
    high = np.minimum(high, costs.x + reach + slack)
    return _emptied(low, high, spent)


def _by_ball(stack: Stack, units: UnitForms, low: Array, high: Array, who: Array) -> tuple[Array, Array]:
    offset = np.take(stack.residual_offset, who, axis=1)
    lower, upper = residual_forms(stack, units, offset)
    middle, radius = (low + high) / 2, np.clip((high - low) / 2, 0.0, None)
    rl, rh = extreme(lower, middle, radius, -1.0), extreme(upper, middle, radius, 1.0)
    size = magnitudes(stack.residuals, units, low, high, offset)
    rl, rh = rl - HAIR * size, rh + HAIR * size
    weights = stack.ball_weights
    least = np.where((rl <= 0) & (rh >= 0), 0.0, np.minimum(rl * rl, rh * rh)) * weights
    total = np.sum(least, axis=0)
    rest, rest_size = linear_least(stack, units, low, high, who)
    room = -rest - (total - least)
    hair = HAIR * (rest_size + total)
    spent = -rest - total + hair < 0
    reach = np.sqrt(np.clip(room + hair, 0.0, None) / weights) * (1 + HAIR)
    low, high = _by_forms(low, high, lower, upper, rl, rh, -reach, reach, size)
    return _emptied(low, high, spent)


def _by_rows(stack: Stack, units: UnitForms, low: Array, high: Array, who: Array) -> tuple[Array, Array]:
    offset = np.take(stack.row_offset, who, axis=1)
    lower, upper = forms(stack.rows, stack.actions, units, offset)
    middle, radius = (low + high) / 2, np.clip((high - low) / 2, 0.0, None)
    size = magnitudes(stack.rows, units, low, high, offset)
    rl = extreme(lower, middle, radius, -1.0) - HAIR * size
    rh = extreme(upper, middle, radius, 1.0) + HAIR * size
    least, most = np.take(stack.row_low, who, axis=1), np.take(stack.row_high, who, axis=1)
    spent = np.any((rh < least) | (rl > most), axis=0)
    low, high = _by_forms(low, high, lower, upper, rl, rh, least, most, size)
    return _emptied(low, high, spent)


def _by_forms(
    low: Array,
    high: Array,
    lower: Array,
    upper: Array,
    rl: Array,
    rh: Array,
    least: Array,
    most: Array,
    size: Array,
) -> tuple[Array, Array]:
    """Ends that lower <= most and upper >= least leave each action, the others anywhere.

    Parameters
    ----------
    lower, upper
        Forms, (d + 1, rows, B).
    rl, rh
        Their extremes on the boxes, (rows, B).
    least, most, size
        Limits, and the sizes of what was summed, (rows, B).
    """
    lows, highs = [low[i] for i in range(low.shape[0])], [high[i] for i in range(low.shape[0])]
    for j in range(lower.shape[1]):
        for i in range(low.shape[0]):
            if not bool(np.any(lower[i, j] != 0)) and not bool(np.any(upper[i, j] != 0)):
                continue
            sides = ((lower[i, j], most[j], rl[j], 1.0), (upper[i, j], least[j], rh[j], -1.0))
            for c, limit, extreme_value, keep in sides:
                lows[i], highs[i] = _one(lows[i], highs[i], c, limit, extreme_value, keep, size[j])
    return np.stack(lows), np.stack(highs)


def _one(
    low: Array, high: Array, c: Array, limit: Array, extreme_value: Array, keep: float, size: Array
) -> tuple[Array, Array]:
    """An action's ends where a form with coefficient c is at most (keep 1) or least (-1) the limit."""
    usable = np.abs(c) > 1e-12 * (1 + size)
    c = np.where(usable, c, 1.0)
    upward = keep * c > 0
    # the form's extreme on the box, without this action's share
    share = c * np.where(upward, low, high)
    bound = (limit - (extreme_value - share)) / c
    slack = HAIR * (size / np.abs(c) + np.abs(bound))
    new_high = np.where(usable & upward, np.minimum(high, bound + slack), high)
    return np.where(usable & ~upward, np.maximum(low, bound - slack), low), new_high


def forms(matrix: Array, d: int, units: UnitForms, offset: Array) -> tuple[Array, Array]:
    """Rows over actions and units as forms over actions from below and above, (d + 1, rows, B)."""
    base = np.concat([np.broadcast_to(matrix[:, :d].T[:, :, None], (d, *offset.shape)), offset[None]], axis=0)
    if not units.count:
        return base, base
    rest = matrix[:, d:]
    up, down = np.clip(rest, 0.0, None), np.clip(rest, None, 0.0)
    upper = base + up @ units.upper + down @ units.lower
    return (upper if units.exact else base + up @ units.lower + down @ units.upper), upper


def residual_forms(stack: Stack, units: UnitForms, offset: Array) -> tuple[Array, Array]:
    """The ball's residuals as forms over actions."""
    return forms(stack.residuals, stack.actions, units, offset)


def linear_form(stack: Stack, units: UnitForms, who: Array) -> Array:
    """The ball's affine part from below, as a form over actions, (d + 1, B)."""
    offset = np.take(stack.ball_offset, who, axis=0)[None]
    return forms(stack.ball_linear[None], stack.actions, units, offset)[0][:, 0]


def linear_least(stack: Stack, units: UnitForms, low: Array, high: Array, who: Array) -> tuple[Array, Array]:
    """Least value of the ball's affine part on each box, and the size of what was summed."""
    form = linear_form(stack, units, who)[:, None]
    middle, radius = (low + high) / 2, abs(high - low) / 2
    shift = np.take(stack.ball_offset, who, axis=0)[None]
    return extreme(form, middle, radius, -1.0)[0], magnitudes(
        stack.ball_linear[None], units, low, high, shift
    )[0]


def magnitudes(matrix: Array, units: UnitForms, low: Array, high: Array, offset: Array) -> Array:
    """Largest absolute values of what is summed for rows, before anything cancels, (rows, B)."""
    below, above = np.abs(low), np.abs(high)
    reach = np.concat([np.where(below > above, below, above), units.size], axis=0)
    return np.abs(matrix) @ reach + np.abs(offset)


def _nearest(costs: Costs, low: Array, high: Array) -> Array:
    """Least |delta| on each box."""
    return np.clip(np.maximum(low - costs.x, costs.x - high), 0.0, None)


def _emptied(low: Array, high: Array, empty: Array) -> tuple[Array, Array]:
    """Boxes marked empty get low > high."""
    return np.where(empty, np.maximum(low, high) + 1.0, low), high
