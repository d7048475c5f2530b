r"""The convex problem of a node, from linear bounds to multipliers to a proven bound.

Rows are linear functions of the actions that must not be negative on the node: lines above the logit
less the threshold, signs of ReLUs that were split on, domains. Together with the ball and the cost they
make a convex problem; its optimum's multipliers, put into :mod:`milp_recourse.engine.dual`, give the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from array_api_compat import array_namespace

from milp_recourse.engine.dual import Costs, value
from milp_recourse.engine.interior import Convex, minimise

Array = Any

_HAIR = 1e-12  # the point keeps so far inside the ball, relatively; the bound does not


@dataclass
class Ball:
    """sum_j w_j r_j^2 + linear <= 0 over forms in the actions.

    Attributes
    ----------
    lower, upper
        Residuals from below and above, (d + 1, q, B); the same object where they are affine.
    weights
        (q, 1).
    linear
        The affine part from below, (d + 1, B).
    """

    lower: Array
    upper: Array
    weights: Array
    linear: Array

    def take(self, index: Array) -> Ball:
        """The nodes at ``index``."""
        xp = array_namespace(self.lower)
        lower = xp.take(self.lower, index, axis=2)
        upper = lower if self.upper is self.lower else xp.take(self.upper, index, axis=2)
        return Ball(lower, upper, self.weights, xp.take(self.linear, index, axis=1))


@dataclass
class Solved:
    """What solving a batch of node problems gave.

    Attributes
    ----------
    bound
        Proven lower bound, (B,).
    point
        Near the relaxed optimum, (d, B).
    centre
        The dual's minimiser: no action of the node that costs at most C is farther from it than
        sqrt((C - bound)/kappa) in any coordinate.
    """

    bound: Array
    point: Array
    centre: Array


def solve(
    costs: Costs,
    low: Array,
    high: Array,
    rows: Array,
    ball: Ball | None,
    target: Array,
    inside: Array | None = None,
    steps: int = 12,
) -> Solved:
    """Bound the cost on boxes (d, B) where rows (d + 1, m, B) are not negative and the ball holds.

    Parameters
    ----------
    target
        Costs of interest end here: the unit the cost is measured in, (B,).
    inside
        How far above zero the point is to keep each row, (m, B): a hair, so that what is computed as
        feasible is so. The bound is that of the rows as they are.
    """
    xp = array_namespace(low)
    d, batch = low.shape
    middle, radius = (low + high) / 2, (high - low) / 2
    unit = 1.0 / xp.where(target > 0, target, 1.0)
    largest = bool(xp.any(costs.omega > 0))
    at = _at(rows, middle)  # (m, B)
    slopes = xp.permute_dims(rows[:-1], (1, 0, 2)) * radius[None]  # (m, d, B)
    scale = xp.sum(xp.abs(slopes), axis=1) + 1e-9 * xp.abs(at) + 1e-300
    g, k = slopes / scale[:, None], -at / scale
    if inside is not None:
        k = k + inside / scale
    delta = middle - costs.x
    # a box that crosses the factual sees |delta| by the average of its two slopes
    side = xp.where(low >= costs.x, 1.0, xp.where(high <= costs.x, -1.0, 0.0))
    q = costs.kappa * radius * radius * unit
    c = (2 * costs.kappa * delta * radius + costs.beta * side * radius) * unit
    if ball is not None:
        residual = (ball.lower + ball.upper) / 2 if ball.upper is not ball.lower else ball.lower
        r0 = _at(residual, middle)
        matrix = xp.permute_dims(residual[:-1], (1, 0, 2)) * radius[None]
        e, rho = ball.linear[:-1] * radius, -(ball.linear[-1] + xp.sum(ball.linear[:-1] * middle, axis=0))
        size = xp.abs(rho) + xp.sum(ball.weights * (r0 * r0), axis=0) + 1e-300
        weights, e, rho = ball.weights / size, e / size, rho / size - _HAIR
    else:
        matrix, r0 = xp.zeros((0, d, batch), dtype=low.dtype), xp.zeros((0, batch), dtype=low.dtype)
        weights, e, rho = xp.zeros((0, batch), dtype=low.dtype), xp.zeros_like(q), xp.zeros_like(unit)
        size = xp.ones_like(unit)
    if largest:
        q, c, g, k, matrix, e = _with_largest(costs, radius, delta, target, unit, q, c, g, k, matrix, e)
    found = minimise(Convex(q, c, g, k, matrix, r0, weights, e, rho), steps)
    y = xp.clip(found.y[:d], -1.0, 1.0)
    point = xp.clip(middle + radius * y, low, high)
    m = rows.shape[1]
    lam = xp.clip(found.rows[:m], 0.0, None) / scale / unit
    lam = xp.where(lam < xp.inf, lam, 0.0)
    beta = costs.beta
    if largest:
        shares = xp.clip(found.rows[m : m + d] + found.rows[m + d :], 0.0, None)
        total = xp.sum(shares, axis=0)
        beta = beta + costs.omega * shares / xp.where(total > 0, total, 1.0) * (1 - 2.0**-40)
    pull = xp.sum(lam[None] * rows[:-1], axis=1)
    pull_size = xp.sum(lam[None] * xp.abs(rows[:-1]), axis=1)
    at_x, size_x = _at(rows, costs.x), _size(rows, costs.x)
    constant, hair = -xp.sum(lam * at_x, axis=0), xp.sum(lam * size_x, axis=0)
    if ball is not None:
        mu = xp.clip(found.ball, 0.0, None) / size / unit
        mu = xp.where(mu < xp.inf, mu, 0.0)
        r = _at(residual, point)
        weight = 2 * mu * ball.weights * r
        side_forms = (
            ball.lower if ball.lower is ball.upper else xp.where((r >= 0)[None], ball.lower, ball.upper)
        )
        pull = pull - xp.sum(weight[None] * side_forms[:-1], axis=1) - mu * ball.linear[:-1]
        pull_size = pull_size + xp.sum(xp.abs(weight)[None] * xp.abs(side_forms[:-1]), axis=1)
        pull_size = pull_size + mu * xp.abs(ball.linear[:-1])
        squares = mu * ball.weights * r * r
        constant = (
            constant
            + xp.sum(weight * _at(side_forms, costs.x), axis=0)
            - xp.sum(squares, axis=0)
            + mu * (ball.linear[-1] + xp.sum(ball.linear[:-1] * costs.x, axis=0))
        )
        hair = (
            hair
            + xp.sum(xp.abs(weight) * _size(side_forms, costs.x) + squares, axis=0)
            + mu * _size(ball.linear[:, None], costs.x)[0]
        )
    priced = Costs(costs.kappa, beta, costs.omega, costs.x, costs.fixed)
    bound, z = value(priced, pull, pull_size, constant, hair, low, high)
    return Solved(bound, point, z + costs.x)


def _with_largest(
    costs: Costs,
    radius: Array,
    delta: Array,
    target: Array,
    unit: Array,
    q: Array,
    c: Array,
    g: Array,
    k: Array,
    matrix: Array,
    e: Array,
) -> tuple[Array, ...]:
    """One more variable: the largest omega |delta|, between 0 and twice the target, and its 2 d rows."""
    xp = array_namespace(radius)
    d, batch = radius.shape
    top = xp.max(costs.omega * (xp.abs(delta) + radius), axis=0) / 2 + 1e-300  # t = top (1 + y)
    zero = xp.zeros((1, batch), dtype=radius.dtype)
    q = xp.concat([q, zero], axis=0)
    c = xp.concat([c, (top * unit)[None]], axis=0)
    pad = xp.zeros((g.shape[0], 1, batch), dtype=radius.dtype)
    g = xp.concat([g, pad], axis=1)
    eye = xp.eye(d, dtype=radius.dtype)[:, :, None]
    blocks, limits = [], []
    for sign in (1.0, -1.0):  # top (1 + y_t) - sign omega (delta + radius y) >= 0, measured in targets
        slope = -sign * eye * (costs.omega * radius * unit)[None]
        last = xp.broadcast_to((top * unit)[None, None], (d, 1, batch))
        blocks.append(xp.concat([slope, last], axis=1))
        limits.append(sign * costs.omega * delta * unit - (top * unit)[None])
    g = xp.concat([g, *blocks], axis=0)
    k = xp.concat([k, *limits], axis=0)
    matrix = xp.concat([matrix, xp.zeros((matrix.shape[0], 1, batch), dtype=radius.dtype)], axis=1)
    return q, c, g, k, matrix, xp.concat([e, zero], axis=0)


def _at(rows: Array, point: Array) -> Array:
    """Values of forms (d + 1, m, B) at points (d, B)."""
    value = rows[-1]
    for i in range(point.shape[0]):
        value = value + rows[i] * point[i]
    return value


def _size(rows: Array, point: Array) -> Array:
    xp = array_namespace(rows)
    value = xp.abs(rows[-1])
    for i in range(point.shape[0]):
        value = value + xp.abs(rows[i] * point[i])
    return value
