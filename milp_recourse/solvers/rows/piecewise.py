r"""A program without quadratics: squares become maxima of tangents, which need no 0/1 columns.

For :math:`s \ge x^2` with x in [l, u], tangents at points :math:`t_0 = l < \dots < t_K = u` ask
:math:`s \ge 2 t_k x - t_k^2`. Between two points the largest tangent is below the square by at most
:math:`(t_{k+1} - t_k)^2 / 4`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from milp_recourse.solvers.rows.mixed_integer import MixedInteger, slack

LARGEST = 64.0
"""Of rows whose columns hardly change: HiGHS loses one optimum with 8, another with 2^20."""


@dataclass(frozen=True)
class Gaps:
    """By how much less the linear program demands, at most, of points that can be optimal.

    Attributes
    ----------
    cost
        What the objective is too low.
    ball
        What the left side of the plausibility constraint is too low, in nats.
    """

    cost: float = 0.0
    ball: float = 0.0


def without_squares(mip: MixedInteger, share: float, most: float) -> Gaps:
    """Replace the squares of the objective and of the ball, in place, by columns above tangents.

    Parameters
    ----------
    share
        The largest gap of a square, in shares of the largest square that matters.
    most
        What an action is known to cost; inf if none is known. Where a square alone costs as much, no tangents
        are needed: any point there costs as much in the linear program too.
    """
    cost = 0.0
    for column, weight in mip.squares.items():
        square, gap = _square(mip, column, math.sqrt(max(most - mip.offset, 0.0) / weight), share)
        mip.linear[square] = weight
        cost += weight * gap
    mip.squares = {}
    if mip.ball is None:
        return Gaps(cost)
    sides, size = dict(mip.ball.linear), abs(mip.ball.upper)
    ends = [(c * mip.lower[k], c * mip.upper[k]) for k, c in sides.items()]
    left = mip.ball.upper - sum(map(min, ends))
    size += sum(max(map(abs, pair)) for pair in ends)
    ball = 0.0
    for column, weight in mip.ball.squares.items():
        square, gap = _square(mip, column, math.sqrt(max(left, 0.0) / weight), share)
        sides[square] = weight
        size += weight * mip.upper[square]
        ball += weight * gap
    mip.row(mip.ball.name, (sides, 0.0), upper=mip.ball.upper)
    mip.ball = None
    return Gaps(cost, ball + slack(len(sides) + 2) * size)


def in_units(mip: MixedInteger) -> None:
    """Measure every column but actions and whole numbers, and then every row, in a power of two of its own.

    In place: columns, and changes of rows, up to about 1, coefficients to LARGEST. Nothing is rounded.

    Solvers' tolerances are absolute, and HiGHS was seen to lose the optimum in its presolve where a square of
    4e7 had a coefficient of 4e-8.
    """
    units = [1.0] * len(mip.names)
    for k, ends in enumerate(zip(mip.lower, mip.upper, strict=True)):
        size = max(map(abs, ends))
        if size and not mip.integer[k] and k not in mip.actions.values():
            units[k] = math.ldexp(1.0, math.frexp(size)[1])
            mip.lower[k], mip.upper[k] = ends[0] / units[k], ends[1] / units[k]
    mip.linear = {k: c * units[k] for k, c in mip.linear.items()}
    for j, row in enumerate(mip.rows):
        sides = {k: c * units[k] for k, c in row.coefficients.items()}
        size = max(map(abs, sides.values()), default=1.0)
        moves = (abs(c) * (mip.upper[k] - mip.lower[k]) for k, c in sides.items())
        unit = math.ldexp(1.0, math.frexp(max([size / LARGEST, *moves]))[1])
        mip.rows[j] = replace(
            row,
            coefficients={k: c / unit for k, c in sides.items()},
            lower=row.lower / unit,
            upper=row.upper / unit,
        )


def _square(mip: MixedInteger, column: int, reach: float, share: float) -> tuple[int, float]:
    """A column that is nearly at least the square of another, and its largest gap up to ``reach``."""
    low, high = mip.lower[column], mip.upper[column]
    square = mip.column(f"square_{mip.names[column]}", 0.0, max(low * low, high * high))
    low, high = max(low, -reach), min(high, reach)
    if low > high:  # every point is beyond reach; one tangent says so
        low = high = min(mip.lower[column], mip.upper[column], key=abs)
    widest = max(abs(low), abs(high))
    parts = max(1, math.ceil((high - low) / (2 * widest * math.sqrt(share)))) if high > low else 1
    points = np.unique(np.linspace(low, high, parts + 1))
    for k, t in enumerate(points.tolist()):
        mip.row(f"{mip.names[square]}_{k}", ({square: 1.0, column: -2 * t}, 0.0), lower=-t * t)
    rounding = slack(4) * widest * widest
    return square, float(np.diff(points).max(initial=0.0)) ** 2 / 4 + rounding
