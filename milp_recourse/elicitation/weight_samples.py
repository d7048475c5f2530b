"""Random weights among those that answers allow, or in proportion to how well they explain the answers.

Hit-and-run: from a point in the set, along a random line, to a random point of the line inside the set; where
a density is given, a slice is drawn on the line (Neal 2003), so that the chain's distribution is that
density. Each sample is the end of a chain of its own; all chains take their steps together.

References
----------
Smith (1984), https://doi.org/10.1287/opre.32.6.1296; Neal (2003), https://doi.org/10.1214/aos/1056562461
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

STEPS_PER_LEVER = 40
"""Steps of each chain for every lever."""

_SHRINKS = 60  # of a slice: after that the step is not taken


def weight_samples(
    rows: FloatArray,
    least: float,
    start: FloatArray,
    count: int,
    rng: np.random.Generator,
    log_density: Callable[[FloatArray], FloatArray] | None = None,
) -> FloatArray:
    """Draw weights with mean 1 that lie in every half-space, shape (count, k).

    Parameters
    ----------
    rows
        Half-spaces, ``rows @ w <= 0``, shape (answers, k).
    least
        Every weight is at least this.
    start
        Weights with mean 1 strictly inside.
    log_density
        Log of a density up to a constant, of weights (n, k) as (n,); None for the uniform distribution.
    """
    k = len(start)
    points = np.tile(start.astype(np.float64), (count, 1))
    if k == 1:
        return points
    sides = np.concatenate([rows, -np.eye(k)])
    room_at_zero = np.concatenate([np.zeros(len(rows)), np.full(k, -least)])
    for step in range(STEPS_PER_LEVER * k):
        direction = _directions(points, step, rng)
        slopes = direction @ sides.T
        room = np.maximum(room_at_zero - points @ sides.T, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = room / slopes
        low = np.where(slopes < 0, ends, -np.inf).max(axis=1)
        high = np.where(slopes > 0, ends, np.inf).min(axis=1)
        points = points + _moves(points, direction, low, high, rng, log_density)[:, None] * direction
    return points


def _directions(points: FloatArray, step: int, rng: np.random.Generator) -> FloatArray:
    """Unit directions that keep the mean: every other time for one half of the points those from one point of
    the other half to another, since random ones alone take long to get about in a thin body."""
    count, k = points.shape
    found = rng.normal(size=(count, k))
    half = count // 2
    if step % 2 and half > 1:
        first, second = slice(0, half), slice(half, count)
        moved, others = (first, points[second]) if step % 4 == 1 else (second, points[first])
        ends = rng.integers(len(others), size=(2, len(points[moved])))
        way = others[ends[0]] - others[ends[1]]
        different = np.abs(way).max(axis=1) > 1e-12
        found[moved][different] = way[different]
    found -= found.mean(axis=1, keepdims=True)
    unit: FloatArray = found / np.linalg.norm(found, axis=1, keepdims=True)
    return unit


def _moves(
    points: FloatArray,
    direction: FloatArray,
    low: FloatArray,
    high: FloatArray,
    rng: np.random.Generator,
    log_density: Callable[[FloatArray], FloatArray] | None,
) -> FloatArray:
    """How far each point goes along its direction: between ``low`` and ``high``, which are on either side."""
    t = rng.uniform(low, high)
    if log_density is None:
        return t
    level = log_density(points) - rng.exponential(size=len(points))
    for _ in range(_SHRINKS):
        outside = log_density(points + t[:, None] * direction) < level
        if not outside.any():
            return t
        low = np.where(outside & (t < 0), t, low)
        high = np.where(outside & (t >= 0), t, high)
        t = np.where(outside, rng.uniform(low, high), t)
    return np.where(outside, 0.0, t)
