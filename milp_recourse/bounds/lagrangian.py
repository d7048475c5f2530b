r"""A lower bound on the cost from linear constraints, by weak duality.

For any :math:`\mu \ge 0` every :math:`a` in a box with :math:`G a \ge k` costs at least

.. math:: D(\mu) = \mu^T k + \sum_i \min_{l_i \le a_i \le u_i} \bigl( c_i(a_i - x_i) - (\mu^T G)_i a_i \bigr),

a closed form per feature because the cost is separable. The multipliers only have to be good, not
exact: a poor one gives a weak bound, never a wrong one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from milp_recourse.bounds.tape import Bounds, Tape

Array = NDArray[np.float64]


def least_cost_where(
    tape: Tape, low: Array, high: Array, slope: Array, limit: Array, steps: int = 14
) -> tuple[Array, Array]:
    """Lower bound (B,) of the cost where slope a >= limit on each box, and the minimiser (B, d).

    Parameters
    ----------
    low, high
        Boxes (B, d), not empty.
    slope, limit
        One linear constraint per box, (B, d) and (B,).

    Notes
    -----
    A feature whose cost is not a plain difference counts as free. The bound is infinite where the
    box has no point with slope a >= limit.
    """
    kappa, beta, x = separable_cost(tape, slope)
    l, u = low - x, high - x
    k = limit - slope @ x if x.ndim == 1 else limit - (slope * x).sum(axis=1)
    reach = np.where(slope > 0, slope * u, slope * l).sum(axis=1)
    lam_low, lam_high = np.zeros(len(k)), np.full(len(k), np.inf)
    lam = np.zeros(len(k))
    for _ in range(steps):
        z, curvature = _inner(lam, slope, kappa, beta, l, u)
        need = k - (slope * z).sum(axis=1)
        lam_low = np.where(need > 0, lam, lam_low)
        lam_high = np.where(need > 0, lam_high, lam)
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = lam + need / curvature
        fallback = np.where(
            np.isfinite(lam_high), (lam_low + np.minimum(lam_high, 1e300)) / 2, 4 * lam_low + 1e-3
        )
        inside = (newton > lam_low) & (newton < lam_high) & np.isfinite(newton)
        lam = np.where(need == 0, lam, np.where(inside, newton, fallback))
    lam = np.maximum(np.where(np.isfinite(lam), lam, 0.0), 0.0)
    z, _ = _inner(lam, slope, kappa, beta, l, u)
    pieces = kappa * z * z + beta * np.abs(z) - lam[:, None] * slope * z
    value = pieces.sum(axis=1) + lam * k
    # rounding: every term once more, relatively
    slack = 1e-13 * (np.abs(pieces).sum(axis=1) + np.abs(lam) * (np.abs(k) + np.abs(slope * z).sum(axis=1)))
    bound = np.where(
        reach < k - 1e-12 * (np.abs(k) + np.abs(slope * np.maximum(np.abs(l), np.abs(u))).sum(axis=1)),
        np.inf,
        value - slack,
    )
    return np.maximum(bound, 0.0) + tape.fixed_cost * (1 - 1e-12), z + x


def least_cost_in_ball(
    tape: Tape, low: Array, high: Array, slope: Array, limit: Array, residual: Array, offset: Array, z: Array
) -> Array:
    """As :func:`least_cost_where` with the plausibility ball as a second constraint, by its tangents.

    Parameters
    ----------
    residual, offset
        The ball's residuals as affine functions of the actions on each box, (B, q, d) and (B, q);
        the ball is ``sum w r^2 <= radius`` with the tape's weights and no linear part that moves.
    z
        Points (B, d) to start from: minimisers without the ball.

    Returns
    -------
    Array
        Lower bounds (B,); zero where the ball cuts nothing off.
    """
    kappa, beta, x = separable_cost(tape, slope)
    w = tape.ball_weights
    radius = -tape.ball_offset
    if not (kappa > 0).all() or radius <= 0:
        return np.zeros(len(low))
    l, u = low - x, high - x
    best = np.zeros(len(low))
    multipliers = np.zeros((len(low), 2))
    point = z
    for _ in range(3):
        r = (residual @ point[:, :, None])[:, :, 0] + offset
        size = np.square(r) @ w
        with np.errstate(divide="ignore", invalid="ignore"):
            r = np.where(size[:, None] > 0, r * np.sqrt(radius / size)[:, None], 0.0)
        # sum w (2 r0 r - r0^2) <= radius, as -gradient a >= -rhs
        gradient = 2 * ((w * r)[:, None, :] @ residual)[:, 0]
        rhs = radius + np.square(r) @ w - 2 * ((w * r) * offset).sum(axis=1)
        rows = np.stack([slope, -gradient], axis=1)
        limits = np.stack([limit, -rhs], axis=1) - (
            rows @ x if x.ndim == 1 else (rows * x[:, None]).sum(axis=2)
        )
        value, multipliers, point = _ascend(rows, limits, multipliers, kappa, beta, l, u)
        best = np.maximum(best, value)
        point = point + x
    return np.maximum(best, 0.0) + tape.fixed_cost * (1 - 1e-12)


def _ascend(
    rows: Array, limits: Array, start: Array, kappa: Array, beta: Array, l: Array, u: Array, steps: int = 10
) -> tuple[Array, Array, Array]:
    """Projected Newton ascent on the dual with two multipliers; the best value met and its minimiser."""
    mu = start
    best = np.full(len(l), -np.inf)
    best_mu, best_z = start, np.zeros_like(l)
    step = np.ones(len(l))
    direction = np.zeros_like(mu)
    for _ in range(steps):
        trial = np.maximum(mu + step[:, None] * direction, 0.0)
        pull = (trial[:, :, None] * rows).sum(axis=1)
        excess = np.sign(pull) * np.maximum(np.abs(pull) - beta, 0.0)
        free = excess / (2 * kappa)
        z = np.clip(free, l, u)
        pieces = kappa * z * z + beta * np.abs(z) - pull * z
        dual = trial * limits
        slack = 1e-13 * (np.abs(pieces).sum(axis=1) + np.abs(dual).sum(axis=1) + np.abs(pull * z).sum(axis=1))
        value = pieces.sum(axis=1) + dual.sum(axis=1) - slack
        better = value > best
        best = np.where(better, value, best)
        mu = np.where(better[:, None], trial, mu)
        best_mu, best_z = np.where(better[:, None], trial, best_mu), np.where(better[:, None], z, best_z)
        step = np.where(better, 1.0, step * 0.3)
        gradient = limits - (rows * z[:, None, :]).sum(axis=2)
        moving = ((free > l) & (free < u) & (excess != 0)) / (2 * kappa)
        h = (rows[:, :, None, :] * rows[:, None, :, :] * moving[:, None, None, :]).sum(axis=3)
        held = (trial <= 0) & (gradient < 0)
        g0, g1 = np.where(held[:, 0], 0.0, gradient[:, 0]), np.where(held[:, 1], 0.0, gradient[:, 1])
        cross = np.where(held.any(axis=1), 0.0, h[:, 0, 1])
        ridge = 1e-9 * (h[:, 0, 0] + h[:, 1, 1]) + 1e-12
        a, b = h[:, 0, 0] + ridge, h[:, 1, 1] + ridge
        determinant = np.maximum(a * b - cross * cross, 1e-300)
        newton = np.stack([(b * g0 - cross * g1), (a * g1 - cross * g0)], axis=1) / determinant[:, None]
        direction = np.where(better[:, None], newton, direction)
    return best, best_mu, best_z


def ball_bound(tape: Tape, low: Array, high: Array, bounds: Bounds, cutoff: float) -> Array:
    """The best lower bound (B,) from the logit's line and, where it is affine, from the ball."""
    limit = tape.threshold - bounds.offset
    bound, z = least_cost_where(tape, low, high, bounds.slope, limit)
    if tape.program.ball is None or tape.ball_linear.any():
        return bound
    left = np.flatnonzero(bound <= cutoff)
    if not len(left):
        return bound
    forms = affine_residuals(tape, bounds, left)
    if forms is None:
        return bound
    residual, offset = forms
    sharper = least_cost_in_ball(
        tape, low[left], high[left], bounds.slope[left], limit[left], residual, offset, z[left]
    )
    bound[left] = np.maximum(bound[left], sharper)
    return bound


def affine_residuals(tape: Tape, bounds: Bounds, which: NDArray[np.int64]) -> tuple[Array, Array] | None:
    """Residuals as functions of the actions, (B, q, d) and (B, q); None where a unit is open."""
    matrix = np.broadcast_to(tape.residuals, (len(which), *tape.residuals.shape)).copy()
    offset = np.broadcast_to(tape.residual_offset, (len(which), len(tape.residual_offset))).copy()
    for k, unit, row, shift in reversed(tape.units):
        if not matrix[:, :, k].any():
            continue
        low, high = bounds.arguments_low[which, k], bounds.arguments_high[which, k]
        if unit.function != "relu" or ((low < 0) & (high > 0)).any():
            return None
        on = (low >= 0).astype(np.float64)[:, None]
        offset += matrix[:, :, k] * on * shift[0]
        matrix += (matrix[:, :, k] * on)[:, :, None] * row[0]
        matrix[:, :, k] = 0.0
    return matrix[:, :, tape.actions], offset


def separable_cost(tape: Tape, slope: Array) -> tuple[Array, Array, Array]:
    """kappa delta^2 + beta |delta| per action, and the factual x; the maximum is split over features.

    ``linf`` is at least any convex combination of its members; shares follow the slope, (B, d).
    """
    c = tape.program.cost
    d = len(tape.actions)
    kappa, beta, x, unit = np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d)
    place = {a.feature: k for k, a in enumerate(tape.program.actions)}
    for j, term in enumerate(tape.program.cost_terms):
        k = place[term.feature]
        x[k] = tape.term_factuals[j]
        if tape.plain_terms[j]:
            w, s = tape.cost_weights[j], tape.cost_scales[j]
            kappa[k], beta[k], unit[k] = float(c.l2_squared) * w / s**2, float(c.l1) * w / s, w / s
    if not c.linf:
        return kappa, beta, x
    share = np.where(unit > 0, np.abs(slope) / np.where(unit > 0, unit, 1.0), 0.0)
    total = share.sum(axis=1, keepdims=True)
    share = np.where(total > 0, share / np.where(total > 0, total, 1.0), 0.0)
    return kappa, beta + float(c.linf) * share * unit * (1 - 1e-12), x


def _inner(lam: Array, slope: Array, kappa: Array, beta: Array, l: Array, u: Array) -> tuple[Array, Array]:
    """Minimiser of kappa z^2 + beta |z| - lam slope z on [l, u], and d(slope z)/d lam."""
    pull = lam[:, None] * slope
    excess = np.sign(pull) * np.maximum(np.abs(pull) - beta, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        free = np.where(
            kappa > 0, excess / (2 * kappa), np.where(excess > 0, np.inf, np.where(excess < 0, -np.inf, 0.0))
        )
        z = np.clip(free, l, u)
        moving = (free > l) & (free < u) & (excess != 0) & (kappa > 0)
        curvature = np.where(moving, slope * slope / (2 * kappa), 0.0).sum(axis=1)
    return z, curvature
