r"""A small dense interior-point method.

Minimises :math:`\sum_i q_i z_i^2 + c^T z` over :math:`G z \le h` and at most one convex
quadratic constraint :math:`\sum_j w_j (R z + r)_j^2 + l^T z + k \le 0`, by a primal-dual method
with predictor and corrector from an infeasible start. Every constraint is first tightened by a
small margin, so what it returns is strictly feasible.

References
----------
Mehrotra (1992), https://doi.org/10.1137/0802028;
Boyd and Vandenberghe (2004), Convex Optimization, chapter 11.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Quadratic:
    """sum_j weights_j (matrix z + offset)_j^2 + linear z + constant <= 0."""

    matrix: Array
    offset: Array
    weights: Array
    linear: Array
    constant: float

    def value(self, z: Array) -> float:
        """Left side at z."""
        r = self.matrix @ z + self.offset
        return float(r @ (self.weights * r) + self.linear @ z + self.constant)

    def gradient(self, z: Array) -> Array:
        """Gradient at z."""
        r = self.matrix @ z + self.offset
        return 2 * self.matrix.T @ (self.weights * r) + self.linear

    def hessian(self) -> Array:
        """Constant second derivative."""
        return 2 * self.matrix.T @ (self.weights[:, None] * self.matrix)


@dataclass(frozen=True)
class ConvexProblem:
    """minimise sum q z^2 + c z subject to G z <= h and ``ball`` (if any)."""

    q: Array
    c: Array
    g: Array
    h: Array
    ball: Quadratic | None = None

    def objective(self, z: Array) -> float:
        """Value at z."""
        return float(self.q @ np.square(z) + self.c @ z)


MARGIN, STEPS = 1e-11, 60
"""How far every constraint (its gradient normalised) is tightened, so that the minimiser is feasible; and how
many steps are taken at most."""


def saddle_point(problem: ConvexProblem, start: Array) -> tuple[Array, Array, float] | None:
    """The minimiser to about ten digits, the multipliers of the rows of G, and the ball's (0 without one).

    Parameters
    ----------
    start
        Any point.

    Returns
    -------
    tuple or None
        None if none was found.
    """
    norms = np.maximum(np.linalg.norm(problem.g, axis=1), 1e-12)
    rows, limits = problem.g / norms[:, None], problem.h / norms
    limits = limits - MARGIN * (1 + np.abs(limits))
    ball, curvature = problem.ball, 2 * np.diag(problem.q)
    scale = 1.0
    if ball is not None:
        scale = max(float(np.linalg.norm(ball.gradient(start))), abs(ball.constant), 1e-9)
        ball_hessian = ball.hessian() / scale

    def constraints(z: Array) -> tuple[Array, Array]:
        values = rows @ z - limits
        if ball is None:
            return values, rows
        values = np.append(values, ball.value(z) / scale + MARGIN)
        return values, np.vstack([rows, ball.gradient(z) / scale])

    z = np.array(start, dtype=np.float64)
    g, jacobian = constraints(z)
    slack = np.maximum(-g, 0.1)
    reach = max(1e-3, float(np.abs(2 * problem.q * z + problem.c).max()))
    dual = np.full(len(g), 0.1 * reach) / np.maximum(slack, 0.1)
    for _ in range(STEPS):
        gradient = 2 * problem.q * z + problem.c
        r_dual, r_primal = gradient + dual @ jacobian, g + slack
        mu = float(slack @ dual) / len(g)
        done = mu * len(g) <= 1e-10 * max(abs(problem.objective(z)), 1e-6)
        if done and np.abs(r_primal).max() < 0.5 * MARGIN and np.abs(r_dual).max() <= 1e-6 * max(1.0, reach):
            break
        hessian = curvature + dual[-1] * ball_hessian if ball is not None else curvature
        ratio = dual / slack
        matrix = hessian + (jacobian * ratio[:, None]).T @ jacobian
        diagonal = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
        try:
            inverse = np.linalg.inv(matrix / diagonal[:, None] / diagonal + 1e-14 * np.eye(len(z)))
        except np.linalg.LinAlgError:
            return None
        inverse = inverse / diagonal[:, None] / diagonal
        corrector = np.zeros(len(g))
        centring = 0.0
        for _ in range(2):  # predictor, then corrector
            r_comp = slack * dual - centring + corrector
            dz = inverse @ (-r_dual - ((dual * r_primal - r_comp) / slack) @ jacobian)
            ds = -r_primal - jacobian @ dz
            dl = (-r_comp - dual * ds) / slack
            length, dual_length = _longest(slack, ds), _longest(dual, dl)
            if centring == 0.0:
                after = float((slack + length * ds) @ (dual + dual_length * dl)) / len(g)
                centring = mu * (after / mu) ** 3
                corrector = ds * dl
        length = dual_length = min(length, dual_length)
        z, slack, dual = z + 0.995 * length * dz, slack + 0.995 * length * ds, dual + 0.995 * dual_length * dl
        if not np.isfinite(z).all() or np.abs(dual).max() > 1e14:
            return None
        g, jacobian = constraints(z)
    if float(g.max(initial=-1.0)) > 0.5 * MARGIN:
        return None
    count = len(limits)
    return z, dual[:count] / norms, float(dual[count]) / scale if ball is not None else 0.0


def _longest(value: Array, change: Array) -> float:
    """The longest step (at most 1) that keeps value + step * change positive."""
    falling = change < 0
    return min(1.0, float((-value[falling] / change[falling]).min(initial=np.inf)))
