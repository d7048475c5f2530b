"""Where HARE begins: recourses of methods that need the classifier alone.

Growing Spheres and Wachter's search are written here from their papers; libraries that had them (CARLA) do
not install on the Pythons that this package supports.

References
----------
Laugel et al. (2017), https://arxiv.org/abs/1712.08443; Wachter et al. (2018),
https://arxiv.org/abs/1711.00399"""

from __future__ import annotations

import numpy as np

from milp_recourse.preferences.hare import FloatArray, Landscape

PER_SHELL = 500
"""Points in each shell of growing spheres."""


def growing_spheres(
    land: Landscape, rng: np.random.Generator, first: float = 0.1, most: float = 16.0
) -> FloatArray | None:
    """For one person, the nearest accepted point of spherical shells around x that grow until one holds some;
    then the smallest changes are undone, one after the other, as long as the point stays accepted.

    Parameters
    ----------
    first
        Radius of the first ball. While it holds an accepted point, it is halved.
    most
        Radius at which the search ends; None is returned then.
    """
    x, radius = land.start.reshape(-1), first
    found = _accepted(land, x, 0.0, radius, rng)
    while found is not None and radius > 1e-9:
        radius /= 2
        nearer = _accepted(land, x, 0.0, radius, rng)
        if nearer is None:
            break
        found = nearer
    low = radius
    while found is None and low < most:
        found = _accepted(land, x, low, low + first / 2, rng)
        low += first / 2
    if found is None:
        return None
    while True:  # fewer changes
        moved = np.flatnonzero(found != x)
        smallest = moved[np.argmin(np.abs(found - x)[moved])] if len(moved) > 1 else None
        if smallest is None:
            return found
        fewer = found.copy()
        fewer[smallest] = x[smallest]
        if land.score(fewer[None])[0] <= 0:
            return found
        found = fewer


def _accepted(
    land: Landscape, x: FloatArray, low: float, high: float, rng: np.random.Generator
) -> FloatArray | None:
    """The accepted point nearest to x of random ones at distances from ``low`` to ``high``."""
    way = rng.normal(size=(PER_SHELL, len(x)))
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    points = land.inside(x + way * rng.uniform(low, high, size=(PER_SHELL, 1)) * land.free)
    good = points[land.score(points) > 0]
    return good[np.linalg.norm(good - x, axis=1).argmin()] if len(good) else None


def wachter(land: Landscape, steps: int = 500, rate: float = 0.02, rounds: int = 12) -> FloatArray | None:
    r"""Minimise :math:`\lambda \log(1 + e^{-f(z)}) + |z - x|_1` from x by Adam, with lambda doubled until the
    end is accepted, for each person of the landscape; nan for whom it never is, None if that is everybody."""
    x, weight = np.atleast_2d(land.start), 1.0
    found = np.full_like(x, np.nan)
    for _ in range(rounds):
        point, best = x.copy(), np.full_like(x, np.nan)
        nearest = np.full(x.shape[:-1], np.inf)
        mean, square = np.zeros_like(x), np.zeros_like(x)
        for step in range(1, steps + 1):
            score, far = land.score(point), np.abs(point - x).sum(axis=-1)
            better = (score > 0) & (far < nearest)
            nearest, best = np.where(better, far, nearest), np.where(better[..., None], point, best)
            push = -weight / (1 + np.exp(np.clip(score, -500, 500)))
            slope = push[..., None] * land.gradient(point) + np.sign(point - x)
            mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
            moved = (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
            point = land.inside(point - rate * moved)
        found = np.where(np.isnan(found), best, found)
        if not np.isnan(found).any():
            break
        weight *= 2
    if np.isnan(found).all():
        return None
    return found if land.start.ndim > 1 else found[0]
