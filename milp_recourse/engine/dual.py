r"""A proven lower bound of the cost on a box, from multipliers of any origin.

For :math:`\lambda \ge 0` on linear rows :math:`G a \ge k`, :math:`\mu \ge 0` on the plausibility ball and
a point :math:`r^*` of its residuals, every feasible a in the box costs at least

.. math:: D = \sum_i \min_{l_i \le a_i \le u_i} \bigl( c_i(a_i - x_i) - p_i (a_i - x_i) \bigr)
              + \lambda^T (k - G x) + \mu \bigl( t(x) \bigr), \qquad p = G^T \lambda - \mu \nabla t,

where t is the ball's tangent at :math:`r^*`, which lies below it. The minimum is a closed form per
action. Multipliers only decide how good the bound is: any are valid, so they may come from floats.

Nodes are on the last axis: (d, B), rows (m, d, B).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from milp_recourse.engine.batched import Batched

Array = Any

SLACK = 2.0**-44
"""Outward, relative to the absolute values of the sums: covers their rounding up to some 200 terms."""


@dataclass
class Costs(Batched):
    """Cost of a batch of nodes: kappa delta^2 + beta |delta| + largest omega |delta| + fixed.

    Attributes
    ----------
    kappa, beta, omega, x
        (d, B).
    fixed
        Paid whatever the values: acting at all, and categories that must change, (B,).
    """

    kappa: Array
    beta: Array
    omega: Array
    x: Array
    fixed: Array


def inner(kappa: Array, beta: Array, pull: Array, l: Array, u: Array) -> Array:
    """argmin of kappa z^2 + beta |z| - pull z over [l, u], elementwise."""
    excess = np.sign(pull) * np.clip(np.abs(pull) - beta, 0.0, None)
    curved = kappa > 0
    free = np.where(
        curved,
        excess / np.where(curved, 2 * kappa, 1.0),
        np.where(excess > 0, np.inf, np.where(excess < 0, -np.inf, 0.0)),
    )
    return np.clip(free, l, u)


def value(
    costs: Costs, pull: Array, pull_size: Array, constant: Array, size: Array, low: Array, high: Array
) -> tuple[Array, Array]:
    """D of the module's formula, rounded down (it may be negative), and the minimiser's delta.

    Parameters
    ----------
    pull, constant
        p and the constant part at a = x, (d, B) and (B,).
    pull_size, size
        The same sums over absolute values: what their rounding is proportional to.
    """
    l, u = low - costs.x, high - costs.x
    z = inner(costs.kappa, costs.beta, pull, l, u)
    square, linear, bent = costs.kappa * z * z, pull * z, costs.beta * np.abs(z)
    pieces = square + bent - linear
    reach = np.maximum(np.abs(l), np.abs(u))
    hair = size + np.sum(square + bent + pull_size * reach, axis=0)
    total = np.sum(pieces, axis=0) + constant - SLACK * hair
    return total + costs.fixed * (1 - SLACK), z


def halfspace(
    costs: Costs, low: Array, high: Array, slope: Array, offset: Array, steps: int = 8
) -> tuple[Array, Array, Array]:
    """Bound (B,) where slope a + offset >= 0 must hold, by safeguarded Newton on one multiplier.

    Returns
    -------
    bound, point, multiplier
        ``inf`` where no point of the box satisfies the row; the minimiser (d, B); lambda (B,).
    """
    l, u = low - costs.x, high - costs.x
    at_x = offset + np.sum(slope * costs.x, axis=0)
    size_x = np.abs(offset) + np.sum(np.abs(slope * costs.x), axis=0)
    best = at_x + np.sum(np.maximum(slope * l, slope * u), axis=0)
    reach = np.sum(np.abs(slope) * np.maximum(np.abs(low), np.abs(high)), axis=0)
    empty = best < -SLACK * (size_x + reach)
    below = np.zeros_like(at_x)
    above = np.full_like(at_x, np.inf)
    lam = below
    moves = 2 * costs.kappa
    for _ in range(steps):
        z = inner(costs.kappa, costs.beta, lam * slope, l, u)
        need = -at_x - np.sum(slope * z, axis=0)
        short = need > 0
        below = np.where(short, lam, below)
        above = np.where(short, above, lam)
        interior = (z > l) & (z < u) & (costs.kappa > 0) & (np.abs(lam * slope) > costs.beta)
        rate = np.sum(np.where(interior, slope * slope / np.where(costs.kappa > 0, moves, 1.0), 0.0), axis=0)
        newton = lam + need / np.where(rate > 0, rate, 1.0)
        bounded = above < np.inf
        fallback = np.where(
            bounded, (below + np.where(bounded, above, 0.0)) / 2, 4 * below + _unit(costs, slope)
        )
        good = (rate > 0) & (newton > below) & (newton < above)
        lam = np.where(need == 0, lam, np.where(good, newton, fallback))
    lam = np.where(lam < np.inf, lam, below)
    bound, z = value(costs, lam * slope, np.abs(lam * slope), -lam * at_x, lam * size_x, low, high)
    return np.where(empty, np.inf, bound), z + costs.x, lam


def _unit(costs: Costs, slope: Array) -> Array:
    """A multiplier of about the right size to start from: where the steepest action begins to move."""
    steep = np.max(np.abs(slope), axis=0)
    return (np.max(costs.beta + costs.kappa, axis=0) + 1e-12) / np.where(steep > 0, steep, 1.0)
