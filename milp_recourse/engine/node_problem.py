r"""The convex problem of a node, from linear bounds to multipliers to a proven bound.

Rows are linear functions of the actions that must not be negative on the node: lines above the logit
less the threshold, signs of ReLUs that were split on, domains. Together with the ball and the cost they
make a convex problem; its optimum's multipliers, put into :mod:`milp_recourse.engine.dual`, give the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from milp_recourse.engine.batched import Batched
from milp_recourse.engine.dual import SLACK, Costs, value
from milp_recourse.engine.interior import Convex, minimise

Array = Any

_CLOSED = 1.01  # in units of the target cost
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
    sizes, linear_size
        Absolute values of what was summed for each, (q, B) and (B,): rounding is proportional to them.
    """

    lower: Array
    upper: Array
    weights: Array
    linear: Array
    sizes: Array
    linear_size: Array


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
    multipliers
        What the bound was proven with.
    cut
        All constraints in one, weighted with them: a form (d + 1, B) that is not negative where they hold.
    """

    bound: Array
    point: Array
    centre: Array
    multipliers: Multipliers
    cut: Array


@dataclass
class Multipliers(Batched):
    """Evidence: with these numbers :func:`proven_with` gives the bound again.

    Attributes
    ----------
    rows, ball
        Not negative, (m, B) and (B,).
    touching
        Values of the ball's residuals at which its tangent is taken, (q, B).
    shares
        How the largest omega |delta| is spread over the actions; not negative, sums at most 1, (d, B).
    """

    rows: Array
    ball: Array
    touching: Array
    shares: Array


def solve(
    costs: Costs,
    low: Array,
    high: Array,
    rows: Array,
    ball: Ball | None,
    target: Array,
    inside: Array | None = None,
    steps: int = 16,
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
    point, used = optimum(costs, low, high, rows, ball, target, inside, steps)
    bound, z, cut = _proven(costs, low, high, rows, ball, used)
    if ball is not None:  # the tangent where the Lagrangian is least is better off the optimum
        other = Multipliers(used.rows, used.ball, _at(_middle(ball), z + costs.x), used.shares)
        again, z_again, cut_again = _proven(costs, low, high, rows, ball, other)
        better = again > bound
        bound, z = np.where(better, again, bound), np.where(better, z_again, z)
        cut = np.where(better, cut_again, cut)
        used.touching = np.where(better, other.touching, used.touching)
    return Solved(bound, point, z + costs.x, used, cut)


def optimum(
    costs: Costs,
    low: Array,
    high: Array,
    rows: Array,
    ball: Ball | None,
    target: Array,
    inside: Array | None = None,
    steps: int = 12,
) -> tuple[Array, Multipliers]:
    """The point of :func:`solve` and its multipliers, without the proof."""
    d, m = low.shape[0], rows.shape[1]
    middle, radius = (low + high) / 2, (high - low) / 2
    unit = 1.0 / np.where(target > 0, target, 1.0)
    largest = bool(np.any(costs.omega > 0))
    convex, row_scale, ball_scale = _normalised(costs, low, high, rows, ball, unit, inside)
    if largest:
        convex = _with_largest(convex, costs, radius, middle - costs.x, unit)
    found = minimise(convex, steps)
    point = np.clip(middle + radius * np.clip(found.y[:d], -1.0, 1.0), low, high)
    shares = np.zeros_like(low)
    if largest:
        shares = np.clip(found.rows[m : m + d] + found.rows[m + d :], 0.0, None)
        total = np.sum(shares, axis=0)
        shares = shares / np.where(total > 0, total, 1.0) * (1 - 2.0**-40)
    residuals = low[:0] if ball is None else _at(_middle(ball), point)
    used = Multipliers(
        _usable(found.rows[:m] / row_scale / unit), _usable(found.ball / ball_scale / unit), residuals, shares
    )
    return point, used


def proven_with(
    costs: Costs, low: Array, high: Array, rows: Array, ball: Ball | None, given: Multipliers
) -> tuple[Array, Array]:
    """The bound D of given multipliers, and its minimiser's delta; see :mod:`milp_recourse.engine.dual`."""
    bound, z, _ = _proven(costs, low, high, rows, ball, given)
    return bound, z


def _proven(
    costs: Costs, low: Array, high: Array, rows: Array, ball: Ball | None, given: Multipliers
) -> tuple[Array, Array, Array]:
    """Also the constraints in one, p (a - x) >= constant, as a form with its rounding added."""
    costs = Costs(costs.kappa, costs.beta + costs.omega * given.shares, costs.omega, costs.x, costs.fixed)
    multipliers, ball_multiplier, x = given.rows, given.ball, costs.x
    pull = np.sum(multipliers[None] * rows[:-1], axis=1)
    pull_size = np.sum(multipliers[None] * np.abs(rows[:-1]), axis=1)
    constant = -np.sum(multipliers * _at(rows, x), axis=0)
    size = np.sum(multipliers * _size(rows, x), axis=0)
    if ball is not None:
        r = given.touching
        weight = 2 * ball_multiplier * ball.weights * r
        # the residual is at least its lower form where the tangent rises, at most its upper one elsewhere
        same = ball.lower is ball.upper
        sides = ball.lower if same else np.where((r >= 0)[None], ball.lower, ball.upper)
        squares = np.sum(ball_multiplier * ball.weights * r * r, axis=0)
        linear = ball.linear[:, None]
        pull = pull - np.sum(weight[None] * sides[:-1], axis=1) - ball_multiplier * ball.linear[:-1]
        pull_size = pull_size + np.sum(np.abs(weight)[None] * np.abs(sides[:-1]), axis=1)
        pull_size = pull_size + ball_multiplier * np.abs(ball.linear[:-1])
        constant = constant + np.sum(weight * _at(sides, x), axis=0) - squares
        constant = constant + ball_multiplier * _at(linear, x)[0]
        size = size + np.sum(np.abs(weight) * (_size(sides, x) + ball.sizes), axis=0) + squares
        size = size + ball_multiplier * (_size(linear, x)[0] + ball.linear_size)
    reach = np.maximum(np.abs(low - x), np.abs(high - x)) + np.abs(x)
    hair = SLACK * (size + np.sum(pull_size * reach, axis=0))
    cut = np.concat([pull, (hair - constant - np.sum(pull * x, axis=0))[None]], axis=0)
    return *value(costs, pull, pull_size, constant, size, low, high), cut


def _normalised(
    costs: Costs, low: Array, high: Array, rows: Array, ball: Ball | None, unit: Array, inside: Array | None
) -> tuple[Convex, Array, Array]:
    """The node's problem with every action in [-1, 1], rows and ball of size 1; and those sizes."""
    middle, radius = (low + high) / 2, (high - low) / 2
    at = _at(rows, middle)
    slopes = np.permute_dims(rows[:-1], (1, 0, 2)) * radius[None]  # (m, d, B)
    scale = np.sum(np.abs(slopes), axis=1) + 1e-9 * np.abs(at) + 1e-300
    limits = -at / scale if inside is None else (inside - at) / scale
    delta = middle - costs.x
    # a box that crosses the factual sees |delta| by the average of its two slopes
    side = np.where(low >= costs.x, 1.0, np.where(high <= costs.x, -1.0, 0.0))
    q = costs.kappa * radius * radius * unit
    c = (2 * costs.kappa * delta * radius + costs.beta * side * radius) * unit
    paid = np.sum((costs.kappa * delta + costs.beta * side) * delta, axis=0) + costs.fixed
    enough = _CLOSED - unit * paid  # the problem counts from the cost at the middle
    if ball is None:
        none = np.zeros_like(slopes[:0])
        nothing = none[:, 0]
        size = np.ones_like(unit)
        return (
            Convex(q, c, slopes / scale[:, None], limits, none, nothing, nothing, q * 0.0, size, enough),
            scale,
            size,
        )
    residual = _middle(ball)
    at_middle = _at(residual, middle)
    radius_of = -_at(ball.linear[:, None], middle)[0]
    size = np.abs(radius_of) + np.sum(ball.weights * (at_middle * at_middle), axis=0) + 1e-300
    matrix = np.permute_dims(residual[:-1], (1, 0, 2)) * radius[None]
    convex = Convex(
        q,
        c,
        slopes / scale[:, None],
        limits,
        matrix,
        at_middle,
        ball.weights / size,
        ball.linear[:-1] * radius / size,
        radius_of / size - _HAIR,
        enough,
    )
    return convex, scale, size


def _middle(ball: Ball) -> Array:
    """Residuals as single forms: exact where they are affine."""
    return ball.lower if ball.lower is ball.upper else (ball.lower + ball.upper) / 2


def _usable(multipliers: Array) -> Array:
    """Multipliers that prove something: negative ones, infinities and what is no number become 0."""
    return np.where((multipliers > 0) & (multipliers < np.inf), multipliers, 0.0)


def _with_largest(problem: Convex, costs: Costs, radius: Array, delta: Array, unit: Array) -> Convex:
    """One more variable, the largest omega |delta| as top (1 + y), and its 2 d rows, measured in targets."""
    d, batch = radius.shape
    top = unit * np.max(costs.omega * (np.abs(delta) + radius), axis=0) / 2 + 1e-300
    eye = np.eye(d, dtype=radius.dtype)[:, :, None]
    last = np.broadcast_to(top[None, None], (d, 1, batch))
    blocks, limits = [], []
    for sign in (1.0, -1.0):  # top (1 + y_t) - sign omega (delta + radius y) >= 0
        blocks.append(np.concat([-sign * eye * (costs.omega * radius * unit)[None], last], axis=1))
        limits.append(sign * costs.omega * delta * unit - top[None])

    def wider(array: Array) -> Array:
        """A column for the new variable, which the old rows do not see."""
        return np.concat([array, np.zeros_like(array[:, :1])], axis=1)

    zero = np.zeros_like(top)[None]
    return Convex(
        np.concat([problem.q, zero], axis=0),
        np.concat([problem.c, top[None]], axis=0),
        np.concat([wider(problem.rows), *blocks], axis=0),
        np.concat([problem.limits, *limits], axis=0),
        wider(problem.residuals),
        problem.residual_offset,
        problem.weights,
        np.concat([problem.linear, zero], axis=0),
        problem.radius,
        problem.enough,
    )


def _at(rows: Array, point: Array) -> Array:
    """Values of forms (d + 1, m, B) at points (d, B)."""
    value = rows[-1]
    for i in range(point.shape[0]):
        value = value + rows[i] * point[i]
    return value


def _size(rows: Array, point: Array) -> Array:
    value = np.abs(rows[-1])
    for i in range(point.shape[0]):
        value = value + np.abs(rows[i] * point[i])
    return value
