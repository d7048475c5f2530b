r"""A primal-dual interior-point method for many small convex problems at once.

Each node's problem, in variables :math:`-1 \le y \le 1`:

.. math:: \min_y \sum_i q_i y_i^2 + c_i y_i \quad\text{s.t.}\quad G y \ge k, \qquad
          \sum_j w_j (R y + r)_j^2 + e^T y \le \rho .

It starts infeasible, takes Mehrotra's predictor and corrector, and never fails: it returns the
multipliers it has, which :mod:`milp_recourse.engine.dual` turns into a proven bound whatever they are. On
an infeasible problem they grow along a ray that proves it.

References
----------
Mehrotra (1992), https://doi.org/10.1137/0802028
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from milp_recourse.engine.batched import Batched, Resting

Array = Any

_STEP = 0.995  # share of the way to the nearest wall
_DONE = 1e-14  # complementarity, in units of the target cost


@dataclass
class Convex(Batched):
    """B problems with n variables, m rows and q residuals: (n, B), (m, n, B), (m, B), (q, n, B), (q, B).

    ``enough``, (B,): no optimum beyond it is asked for.
    """

    q: Array
    c: Array
    rows: Array
    limits: Array
    residuals: Array
    residual_offset: Array
    weights: Array
    linear: Array
    radius: Array
    enough: Array

    @property
    def has_ball(self) -> bool:
        """Whether there is a quadratic constraint."""
        return bool(self.residuals.shape[0])


@dataclass
class Optimum(Batched):
    """y (n, B), multipliers of the rows (m, B) and of the ball (B,)."""

    y: Array
    rows: Array
    ball: Array


def minimise(problem: Convex, steps: int = 12) -> Optimum:
    """Approximate optima and multipliers after at most so many steps.

    A problem rests once its complementarity is down to rounding, it has run out of digits, or its dual value
    has passed ``enough``: half of all nodes are infeasible, and their multipliers would only grow.
    """
    path = _Path(problem)
    resting: Resting[Optimum] = Resting(problem.q)
    for _ in range(steps):
        moving = resting.set_aside(path.step(), path.optimum())
        if moving is None:
            continue
        path = path.take(moving)
        if not moving.shape[0]:
            break
    return resting.joined(path.optimum())


class _Path:
    """Where B problems are on their central paths.

    Slacks and multipliers of all constraints lie in one array each: rows, lower ends, upper ends, ball.
    """

    def __init__(self, problem: Convex) -> None:
        self.problem = problem
        self.n, self.m, self.ball = problem.q.shape[0], problem.rows.shape[0], problem.has_ball
        self.y = np.zeros_like(problem.q)
        one = self.y + 1.0
        first = [_larger(_times(problem.rows, self.y) - problem.limits), one, one]
        self.hessian: Array = None
        if self.ball:
            first.append(_larger(problem.radius - _ball(problem, self.y)[0])[None])
            weighted = problem.weights[:, None] * problem.residuals
            self.hessian = 2 * np.sum(problem.residuals[:, :, None] * weighted[:, None], axis=0)
        self.slack = np.concat(first, axis=0)
        self.multiplier = np.zeros_like(self.slack) + 1.0

    def take(self, index: Array) -> _Path:
        """The problems at ``index``, where they are."""
        taken = copy(self)
        taken.problem = self.problem.take(index)
        for name in ("y", "slack", "multiplier") + ("hessian",) * self.ball:
            array = getattr(self, name)
            setattr(taken, name, np.take(array, index, axis=array.ndim - 1))
        return taken

    def step(self) -> Array:
        """One predictor and corrector; which nodes still move, (B,)."""
        slack, multiplier = self.slack, self.multiplier
        count = float(slack.shape[0])
        product = slack * multiplier
        tau = np.sum(product, axis=0) / count
        newton = _Newton(self)
        running = (tau > _DONE) & ~(newton.dual_value() > self.problem.enough)
        _, ds, dl = newton.direction(-product)
        p, q = _longest(1.0, slack, ds), _longest(1.0, multiplier, dl)
        share = np.sum((slack + p * ds) * (multiplier + q * dl), axis=0) / count / tau
        dy, ds, dl = newton.direction(share * share * share * tau - product - ds * dl)
        p, q = _longest(_STEP, slack, ds), _longest(_STEP, multiplier, dl)
        sound = np.sum(np.abs(dy), axis=0) + np.sum(np.abs(ds) + np.abs(dl), axis=0)
        running = running & np.isfinite(sound)
        self.y = self.y + np.where(running, p * dy, 0.0)
        self.slack = slack + np.where(running, p * ds, 0.0)
        self.multiplier = multiplier + np.where(running, q * dl, 0.0)
        return running

    def parts(self, stacked: Array) -> tuple[Array, Array, Array, Array]:
        """What belongs to rows, lower ends, upper ends and the ball (zero without one)."""
        m, n = self.m, self.n
        return stacked[:m], stacked[m : m + n], stacked[m + n : m + 2 * n], stacked[-1] * float(self.ball)

    def optimum(self) -> Optimum:
        """Where the path has come to."""
        rows, _, _, ball = self.parts(self.multiplier)
        return Optimum(self.y, rows, ball)


class _Newton:
    """The Newton system at a point of the path, factored once for predictor and corrector."""

    def __init__(self, path: _Path) -> None:
        problem, y = path.problem, path.y
        self.path = path
        values = [_times(problem.rows, y) - problem.limits, 1 + y, 1 - y]
        rows, lower, upper, ball = path.parts(path.multiplier)
        gradient = 2 * problem.q * y + problem.c - _transposed(problem.rows, rows)
        ratio = path.multiplier / path.slack
        row_ratio, lower_ratio, upper_ratio, ball_ratio = path.parts(ratio)
        matrix = np.sum(problem.rows[:, :, None] * (row_ratio[:, None] * problem.rows)[:, None], axis=0)
        self.gradient: Array = None
        if path.ball:
            size, self.gradient = _ball(problem, y)
            values.append((problem.radius - size)[None])
            gradient = gradient + ball * self.gradient
            outer = self.gradient[:, None] * self.gradient[None]
            matrix = matrix + ball * path.hessian + ball_ratio * outer
        self.lagrangian = gradient  # of the cost and all constraints but the box
        self.residual = gradient - lower + upper
        self.values = np.concat(values, axis=0)
        self.gap = self.values - path.slack
        self.factor = _cholesky(matrix, 2 * problem.q + lower_ratio + upper_ratio)

    def dual_value(self) -> Array:
        """A lower bound, (B,), as far as floats go: the Lagrangian's tangent at y, minimised on the box."""
        path, problem = self.path, self.path.problem
        y, m = path.y, path.m
        value = np.sum((problem.q * y + problem.c - self.lagrangian) * y - np.abs(self.lagrangian), axis=0)
        value = value - np.sum(path.multiplier[:m] * self.values[:m], axis=0)
        return value - path.multiplier[-1] * self.values[-1] if path.ball else value

    def direction(self, wanted: Array) -> tuple[Array, Array, Array]:
        """Change of y, slacks and multipliers for which slack * multiplier changes by ``wanted``."""
        path, problem = self.path, self.path.problem
        rows, lower, upper, ball = path.parts((wanted - path.multiplier * self.gap) / path.slack)
        rhs = _transposed(problem.rows, rows) + lower - upper - self.residual
        if path.ball:
            rhs = rhs - self.gradient * ball
        dy = _solve(self.factor, rhs)
        changes = [_times(problem.rows, dy), dy, -dy]
        if path.ball:
            changes.append(-np.sum(self.gradient * dy, axis=0)[None])
        ds = np.concat(changes, axis=0) + self.gap
        return dy, ds, (wanted - path.multiplier * ds) / path.slack


def _larger(value: Array) -> Array:
    """At least 1: where the slacks start."""
    return np.where(value > 1.0, value, 1.0)


def _ball(problem: Convex, y: Array) -> tuple[Array, Array]:
    """Left side of the quadratic constraint and its gradient."""
    r = _times(problem.residuals, y) + problem.residual_offset
    size = np.sum(problem.weights * r * r, axis=0) + np.sum(problem.linear * y, axis=0)
    return size, 2 * _transposed(problem.residuals, problem.weights * r) + problem.linear


def _times(matrix: Array, v: Array) -> Array:
    """(m, n, B) times (n, B)."""
    return np.sum(matrix * v[None], axis=1)


def _transposed(matrix: Array, v: Array) -> Array:
    """(m, n, B) transposed times (m, B)."""
    return np.sum(matrix * v[:, None], axis=0)


def _longest(share: float, value: Array, change: Array) -> Array:
    """Longest step up to 1 that keeps (M, B) values positive, (B,)."""
    worst = np.max(-change / value, axis=0)
    return np.where(worst > share, share / np.where(worst > share, worst, 1.0), 1.0)


def _cholesky(matrix: Array, diagonal: Array) -> list[list[Array]]:
    """Lower factor of matrix + diag(diagonal), one plane (B,) per entry: many tiny factors at once."""
    n = diagonal.shape[0]
    factor: list[list[Array]] = []
    for i in range(n):
        row: list[Array] = []
        for j in range(i + 1):
            total = matrix[i, j] + (diagonal[i] if i == j else 0.0)
            for k in range(j):
                total = total - row[k] * (factor[j][k] if j < i else row[k])
            if i == j:
                row.append(np.sqrt(np.where(total > 1e-300, total, 1e-300)))
            else:
                row.append(total / factor[j][j])
        factor.append(row)
    return factor


def _solve(factor: list[list[Array]], rhs: Array) -> Array:
    """x with L L^T x = rhs, (n, B)."""
    n = len(factor)
    forward: list[Array] = []
    for i in range(n):
        total = rhs[i]
        for k in range(i):
            total = total - factor[i][k] * forward[k]
        forward.append(total / factor[i][i])
    back: list[Array] = [rhs[0]] * n
    for i in range(n - 1, -1, -1):
        total = forward[i]
        for k in range(i + 1, n):
            total = total - factor[k][i] * back[k]
        back[i] = total / factor[i][i]
    return np.stack(back)
