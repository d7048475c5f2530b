r"""Tangents to the cost and to the plausibility ball, for solvers without quadratics.

Both are convex, so a tangent at any column values :math:`v` cuts off no feasible point:

.. math:: \sum_k w_k x_k^2 \ge \sum_k w_k (2 v_k x_k - v_k^2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from milp_recourse.solvers.rows.mixed_integer import LinearRow, MixedInteger, slack

Array = NDArray[np.float64]
Values = Sequence[float] | Array


Tangent = tuple[dict[int, float], float]
"""Coefficients by column, and a constant."""


def cost_tangent(mip: MixedInteger, values: Values) -> Tangent:
    """A form that the cost is nowhere below and that equals the cost at ``values``."""
    return _sum(mip.linear, mip.offset, _tangent(mip.squares, values))


def ball_tangent(mip: MixedInteger, values: Values) -> LinearRow | None:
    """A row that every plausible point satisfies, scaled to about 1; None without a ball."""
    if mip.ball is None:
        return None
    row, constant = _sum(mip.ball.linear, 0.0, _tangent(mip.ball.squares, values))
    norm = max(abs(mip.ball.upper), max((abs(c) for c in row.values()), default=1.0), 1e-9)
    coefficients = {k: c / norm for k, c in row.items()}
    rounding = slack(len(row) + 8) * (abs(mip.ball.upper) + abs(constant))  # the two may cancel
    return LinearRow("tangent", coefficients, -np.inf, (mip.ball.upper - constant + rounding) / norm)


def seeds(mip: MixedInteger, limit: float) -> Iterator[tuple[Literal["cost", "ball"], Array]]:
    """Points for the first tangents: on the surface where the cost is ``limit``, and on that of the ball.

    They lie from the origin in the direction of each axis, and, while columns are few, in that of every sign
    pattern.
    """
    if mip.squares:
        yield from (("cost", v) for v in _around(mip, mip.squares, max(limit - mip.offset, 1e-12)))
    if mip.ball is not None and mip.ball.squares and mip.ball.upper > 0:
        yield from (("ball", v) for v in _around(mip, mip.ball.squares, mip.ball.upper))


def _sum(linear: Mapping[int, float], offset: float, tangent: Tangent) -> Tangent:
    """A linear form plus a tangent."""
    coefficients, constant = tangent
    return {
        k: linear.get(k, 0.0) + coefficients.get(k, 0.0) for k in {**linear, **coefficients}
    }, offset + constant


def _tangent(squares: Mapping[int, float], values: Values) -> Tangent:
    """The tangent to a weighted sum of squares at column values."""
    at = {k: float(values[k]) for k in squares if values[k]}
    return {k: 2 * squares[k] * v for k, v in at.items()}, -sum(squares[k] * v**2 for k, v in at.items())


def _around(mip: MixedInteger, squares: Mapping[int, float], level: float) -> Iterator[Array]:
    """Column values, in several directions, at which a weighted sum of squares is ``level``."""
    columns, weights = np.array(list(squares)), np.array(list(squares.values()))
    for direction in _directions(len(columns)):
        values = np.zeros(len(mip.names))
        values[columns] = direction * np.sqrt(level / max(float((weights * direction**2).sum()), 1e-300))
        yield values


def _directions(n: int) -> Array:
    """Directions in n dimensions, (count, n): the axes, and up to 5 dimensions all sign patterns."""
    axes = np.concatenate([np.eye(n), -np.eye(n)])
    if n > 5 or n == 1:
        return axes
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * n)).reshape(n, -1).T
    return np.concatenate([axes, signs])
