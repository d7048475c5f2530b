"""A good action for an ensemble, found quickly by moving one axis at a time. Nothing is proven.

For back ends that hand cells to a solver; the search by prices has
:mod:`milp_recourse.engine.forests.starts`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.forests.axes import Axis
from milp_recourse.engine.forests.table import LeafTable

Cells = NDArray[np.int64]


def climb(table: LeafTable, axes: list[Axis], threshold: float) -> Cells | None:
    """Cells of an accepted point, or None where the climb gets stuck.

    One axis moves at a time: first to the cell that gains most score per cost until the score is
    accepted, then each axis back to the cheapest cell that keeps it so, dearest axis first.

    Raises
    ------
    OutOfTime
        The table's clock has ended.
    """
    if not axes:
        return None
    point = np.array([axis.start for axis in axes], dtype=np.int64)
    cost = [axis.added + axis.widest for axis in axes]
    score = _score(table, point[None])[0]
    for _ in range(4 * len(axes)):
        if score > threshold:
            break
        moves, gains, found = [], [], []
        for i, axis in enumerate(axes):
            table.clock.check()
            points = _along(point, i, len(axis))
            scores = _score(table, points)
            paid = np.maximum(cost[i] - cost[i][point[i]], 0.0) + 1e-9 * (1.0 + cost[i].max())
            worth = np.where(scores > score, np.minimum(scores, threshold + 1e-9) - score, -np.inf) / paid
            k = int(worth.argmax())
            moves.append(points[k])
            gains.append(worth[k])
            found.append(scores[k])
        best = int(np.argmax(gains))
        if gains[best] <= 0:
            return None
        point, score = moves[best], found[best]
    if not score > threshold:
        return None
    for i in sorted(range(len(axes)), key=lambda i: -cost[i][point[i]]):
        table.clock.check()
        points = _along(point, i, len(axes[i]))
        accepted = _score(table, points) > threshold
        point = points[int(np.argmin(np.where(accepted, cost[i], np.inf)))]
    return point


def _along(point: Cells, i: int, count: int) -> Cells:
    """A point with each cell of axis i in turn, (count, axes)."""
    points = np.repeat(point[None], count, axis=0)
    points[:, i] = np.arange(count)
    return points


def _score(table: LeafTable, points: Cells) -> NDArray[np.float64]:
    """The deployed scores of points, (n,)."""
    return table.bound(table.met(points, points))
