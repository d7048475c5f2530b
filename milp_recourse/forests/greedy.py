"""A good action for an ensemble, quickly: climb, then step back. Proves nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from milp_recourse.forests.axes import Axis
from milp_recourse.forests.table import LeafTable

Cells = NDArray[np.int64]


def climb(table: LeafTable, axes: list[Axis], linf: float, threshold: float) -> Cells | None:
    """Cells of an accepted point, or None where the climb gets stuck.

    One axis moves at a time: first to the cell that gains most score per cost until the score is
    accepted, then each axis back to the cheapest cell that keeps it so, dearest axis first.
    """
    if not axes:
        return None
    point = np.array([axis.start for axis in axes], dtype=np.int64)
    dear = [axis.added + linf * axis.widest for axis in axes]
    score = _score(table, point[None])[0]
    for _ in range(4 * len(axes)):
        if score > threshold:
            break
        moves, gains, found = [], [], []
        for i, axis in enumerate(axes):
            here = np.repeat(point[None], len(axis), axis=0)
            here[:, i] = np.arange(len(axis))
            scores = _score(table, here)
            paid = np.maximum(dear[i] - dear[i][point[i]], 0.0) + 1e-9 * (1.0 + dear[i].max())
            worth = np.where(scores > score, np.minimum(scores, threshold + 1e-9) - score, -np.inf) / paid
            k = int(worth.argmax())
            moves.append(here[k])
            gains.append(worth[k])
            found.append(scores[k])
        best = int(np.argmax(gains))
        if gains[best] <= 0:
            return None
        point, score = moves[best], found[best]
    if not score > threshold:
        return None
    for i in sorted(range(len(axes)), key=lambda i: -dear[i][point[i]]):
        here = np.repeat(point[None], len(axes[i]), axis=0)
        here[:, i] = np.arange(len(axes[i]))
        good = _score(table, here) > threshold
        point = here[int(np.argmin(np.where(good, dear[i], np.inf)))]
    return point


def _score(table: LeafTable, points: Cells) -> NDArray[np.float64]:
    return table.bound(table.met(points, points))
