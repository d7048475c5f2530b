r"""A lower bound on the cost from linear constraints, by weak duality.

For any :math:`\mu \ge 0` every :math:`a` in a box with :math:`G a \ge k` costs at least

.. math:: D(\mu) = \mu^T k + \sum_i \min_{l_i \le a_i \le u_i} \bigl( c_i(a_i - x_i) - (\mu^T G)_i a_i \bigr),

a closed form per feature because the cost is separable. The multipliers only have to be good, not
exact: a poor one gives a weak bound, never a wrong one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from milp_recourse.bounds.tape import Tape

Array = NDArray[np.float64]


STEPS = 14
"""Newton steps, or bisections, towards the best multiplier."""


def least_cost_where(tape: Tape, low: Array, high: Array, slope: Array, limit: Array) -> Array:
    """Lower bound (B,) of the cost where slope a >= limit on each box.

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
    k = limit - slope @ x
    reach = np.where(slope > 0, slope * u, slope * l).sum(axis=1)
    lam_low, lam_high = np.zeros(len(k)), np.full(len(k), np.inf)
    lam = np.zeros(len(k))
    for _ in range(STEPS):
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
    return np.maximum(bound, 0.0) + tape.fixed_cost * (1 - 1e-12)


def separable_cost(tape: Tape, slope: Array) -> tuple[Array, Array, Array]:
    """(kappa, beta, x): without l0 the cost is at least the sum of kappa d^2 + beta |d| with d = a - x.

    The maximum (linf) is at least any convex combination of its members. The combination is one per box, with
    shares proportional to the slope over the member's rate, so that beta may have shape (B, d).
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
