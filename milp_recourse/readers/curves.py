r"""A piecewise linear function that is nowhere above the logistic function, and hardly below it.

It interpolates the logistic function :math:`\sigma` between knots and is then lowered by what the chords are
above it on the convex side, :math:`z < 0`:

.. math:: \lambda(z) = c + \sum_k w_k \max(0, z - t_k) \le \sigma(z).

Since :math:`-\sigma(z) = \sigma(-z) - 1`, the same function bounds a weighted sum of probabilities
whatever the signs of the weights. The sum of these bounds is a network: where it passes a threshold, the
sum does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from milp_recourse.readers.layers import UNIT
from milp_recourse.readers.scores import NetworkScore, Score, side_by_side, weighted

Array = NDArray[np.float64]

KNOTS = 1600
"""The number of knots of all curves of a model together."""

_LIFT = 1e-11
"""More than what rounding adds to the function: sums of :data:`KNOTS` terms of at most 60 in size."""


@lru_cache(maxsize=8)
def logistic_from_below(count: int) -> tuple[Array, Array, float, float]:
    """The knots t, the weights w and the constant c of the function with ``count`` knots, and how far below
    the logistic function it is at most, of numbers of usual size."""
    # there the logistic function is about as far from its limit as chords are from it
    far = -math.log(0.6 / count**2)
    fine = np.linspace(-far, far, 200_001)
    share = 1.0 / (1.0 + np.exp(-fine))
    bent = np.sqrt(np.abs(share * (1.0 - share) * (1.0 - 2.0 * share)))
    reached = np.concatenate([[0.0], np.cumsum((bent[1:] + bent[:-1]) / 2.0)])
    knots = np.interp(np.linspace(0.0, reached[-1], count), reached, fine)
    values = 1.0 / (1.0 + np.exp(-knots))
    slopes = np.diff(values) / np.diff(knots)
    # a chord is farthest from the curve where the curve has its slope, at one of two places
    root = np.sqrt(np.maximum(1.0 - 4.0 * slopes, 0.0))
    off = np.zeros(1)
    for touched in ((1.0 - root) / 2.0, (1.0 + root) / 2.0):
        at = _logit(touched)
        chord = values[:-1] + slopes * (at - knots[:-1])
        off = np.concatenate([off, (chord - touched)[(at >= knots[:-1]) & (at <= knots[1:])]])
    above, below = max(float(off.max()), float(values[0])), max(float(-off.min()), 1.0 - float(values[-1]))
    weights = np.diff(np.concatenate([[0.0], slopes, [-_LIFT]]))
    lowered = above + _LIFT
    return knots, weights, float(values[0]) - lowered, below + lowered + _LIFT


def _logit(share: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(share) - np.log1p(-share)


@dataclass(frozen=True, eq=False)
class Curve:
    """The logistic function of ``steepness * score + shift``, which the model computes, and adds up, with
    unit roundoff ``unit``."""

    score: NetworkScore
    steepness: float
    shift: float
    unit: float

    def from_below(self, sign: float, knots: int, less: float, segments: int, where: str) -> NetworkScore:
        """A bound from below of the curve less a number, or, for sign -1, of its difference from 1 less that.

        The score's network is lengthened to so many segments first, because curves of one length stay sparse
        side by side.
        """
        at, weights, constant, _ = logistic_from_below(knots)
        (only,) = side_by_side([self.score])
        layers = only.layers.lengthened(segments)
        row = np.zeros((1, layers.outputs or 0))
        row[0, only.output] = sign * self.steepness
        layers.affine(row, [sign * self.shift], where, UNIT["float64"])
        layers.affine(np.ones((len(at), 1)), -at, where)
        layers.relu(where)
        layers.affine(weights[None], [constant - less], where)
        return NetworkScore(layers, 0, only.columns)


def sums_from_below(
    parts: Sequence[Score | Curve], weights: Sequence[float], constant: float, where: str
) -> tuple[Score, Score, float]:
    r"""Bounds from below of :math:`\sum_k w_k p_k + c` and of its negative, and how far below they are.

    Raises
    ------
    Unsupported
        Some parts are sums of trees, and others are not.
    """
    curves = [one for one in parts if isinstance(one, Curve)]
    knots, less = KNOTS // len(curves), (32 + len(parts)) * max(one.unit for one in curves)
    segments = max(len(one.score.layers.segments) for one in curves)

    def bound(sign: float) -> Score:
        scores: list[Score] = []
        factors: list[float] = []
        total = sign * constant
        for part, weight in zip(parts, weights, strict=True):
            own = sign * weight
            if isinstance(part, Curve):
                scores.append(part.from_below(math.copysign(1.0, own), knots, less, segments, where))
                factors.append(abs(own))
                total += min(own, 0.0)
            else:
                scores.append(part)
                factors.append(own)
        return weighted(scores, factors, total, where)

    off = sum(abs(w) for part, w in zip(parts, weights, strict=True) if isinstance(part, Curve))
    return bound(1.0), bound(-1.0), off * (logistic_from_below(knots)[3] + less)
