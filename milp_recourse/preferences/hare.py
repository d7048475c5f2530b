r"""HARE's candidates: directions that repel each other, and the boundary point on the way to each.

As the paper writes them (its algorithms 1 to 3), in coordinates z with x the person:

* k random unit directions P are moved n times by Adam against the gradient of :math:`\lambda L_1 + L_2`, then
  normalised, with :math:`L_1 = \frac1k \sum_i \max_j (P P^T - 2 I)_{ij}` and L2 the binary cross entropy of
  the classifier at :math:`r + \gamma p_i` with the wanted class. Directions begin, and gradients are, 0 where
  the person cannot act, so that the projection is done once and for all.
* Each candidate :math:`c = r + \gamma p` is moved towards x by bisection until it is within eps of a refused
  point: the middle becomes the new end where it is accepted, else the new start.

Bisection finds one crossing of the boundary, not surely the nearest. Labels are fractions on the way: what is
shown is rounded and judged again.

The search begins at a recourse, r above, of a method that needs the classifier alone. Growing Spheres and
Wachter's search are written here from their papers; libraries that had them (CARLA) do not install on the
Pythons that this package supports.

References
----------
"HARE: Human-in-the-Loop Algorithmic Recourse"; the repulsion is from Mettes et al. (2019), "Hyperspherical
prototype networks"; Laugel et al. (2017), https://arxiv.org/abs/1712.08443; Wachter et al. (2018),
https://arxiv.org/abs/1711.00399
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class Landscape(Protocol):
    """A person, or several of them at once, and a classifier in coordinates; shapes are for one person."""

    @property
    def start(self) -> FloatArray:
        """x, shape (d,); (n, 1, d) of n people, whose points are (n, k, d)."""

    @property
    def free(self) -> FloatArray:
        """1 for coordinates that the person can act on, else 0, (d,)."""

    def score(self, points: FloatArray) -> FloatArray:
        """Above 0 where the classifier accepts, of points (k, d) as (k,)."""

    def gradient(self, points: FloatArray) -> FloatArray:
        """The gradient of :meth:`score`, (k, d), 0 where the person cannot act."""

    def inside(self, points: FloatArray) -> FloatArray:
        """The nearest points whose coordinates the person may set, (k, d)."""


@dataclass(frozen=True)
class Sampling:
    """The paper's settings.

    Attributes
    ----------
    steps, rate
        n and eta, of Adam.
    reach
        gamma, how far from the base recourse candidates begin.
    repulsion
        lambda.
    near
        eps of the bisection.
    """

    steps: int = 100
    rate: float = 0.1
    reach: float = 1.0
    repulsion: float = 10.0
    near: float = 1e-6


def candidates(
    land: Landscape, base: FloatArray, count: int, rng: np.random.Generator, how: Sampling = Sampling()
) -> FloatArray:
    """At most ``count`` boundary points around a base recourse; directions without an accepted end are left
    out."""
    ends = land.inside(base + how.reach * directions(land, base, count, rng, how))
    ends = ends[land.score(ends) > 0]
    return boundary_points(land, ends, how.near)


def directions(
    land: Landscape, base: FloatArray, count: int, rng: np.random.Generator, how: Sampling = Sampling()
) -> FloatArray:
    """Unit directions that repel each other and lead to accepted points, (count, d) or (n, count, d)."""
    found = _unit(rng.normal(size=(*base.shape[:-2], count, base.shape[-1])) * land.free)
    mean, square = np.zeros_like(found), np.zeros_like(found)
    for step in range(1, how.steps + 1):
        slope = how.repulsion * _repulsion(found) + _refusal(land, base, found, how.reach)
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        moved = (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        found = _unit(found - how.rate * moved)
    return found


def far_apart(rng: np.random.Generator, count: int, free: FloatArray, tries: int = 50) -> FloatArray:
    """Unit directions, (count, d): of random ones those of the least L1."""
    return min(_unit(rng.normal(size=(tries, count, len(free))) * free), key=repulsion)


def repulsion(found: FloatArray) -> float:
    """L1 of directions."""
    return float((found @ found.T - 2 * np.eye(len(found))).max(axis=1).mean())


def _repulsion(found: FloatArray) -> FloatArray:
    """The gradient of L1: each row is pulled by the row most like it, and by those it is most like."""
    k, d = found.shape[-2:]
    nearest = (found @ found.swapaxes(-1, -2) - 2 * np.eye(k)).argmax(axis=-1)
    rows = found.reshape(-1, d)
    pulled = np.arange(len(rows)) // k * k + nearest.ravel()
    slope = rows[pulled]
    np.add.at(slope, pulled, rows)
    mean: FloatArray = slope.reshape(found.shape) / k
    return mean


def _refusal(land: Landscape, base: FloatArray, found: FloatArray, reach: float) -> FloatArray:
    """The gradient of L2: of the mean of log(1 + exp(-score))."""
    points = base + reach * found
    push = 1 / (1 + np.exp(np.clip(land.score(points), -500, 500)))
    slope: FloatArray = -reach / found.shape[-2] * push[..., None] * land.gradient(points)
    return slope


def boundary_points(land: Landscape, ends: FloatArray, near: float) -> FloatArray:
    """For each accepted end, an accepted point within ``near`` of a refused one on the way from x."""
    ends, begins = ends.copy(), np.broadcast_to(land.start, ends.shape).copy()
    while ends.size and (open_ := np.linalg.norm(ends - begins, axis=-1) >= near).any():
        middles = (ends + begins) / 2
        good = land.score(middles) > 0
        ends = np.where((open_ & good)[..., None], middles, ends)
        begins = np.where((open_ & ~good)[..., None], middles, begins)
    return ends


def _unit(rows: FloatArray) -> FloatArray:
    unit: FloatArray = rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-12)
    return unit


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
