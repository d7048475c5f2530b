r"""A ReLU network that is nowhere below the logarithm of a sum of exponentials, and hardly above it.

Two numbers are taken together by :math:`\log(e^a + e^b) = a + \operatorname{softplus}(b - a)`, and softplus
is replaced by chords: a convex piecewise linear function,
:math:`h(y) = v + \sum_k w_k \max(0, y - t_k)` with all :math:`w_k > 0`, that is above softplus, which is
convex, at each knot and so everywhere. Between knots that are evenly spaced in
:math:`u = \arctan \sinh(y/2)`, whose derivative is the root of softplus' curvature, the distance is the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

KNOTS = 800
"""The most chords of the pairs that are taken together at a time: they bring :func:`excess` to 2e-6."""

_LIFT = 1e-11
"""More than what rounding takes away from the chords: sums of :data:`KNOTS` terms of at most 30 in size."""


def pairwise_log_sum(count: int) -> Iterator[tuple[Array, Array, Array, Array]]:
    """Matrices and shifts (before, shift, after, constant) that leave a number above log(sum of e^z) of
    ``count`` numbers z: z becomes after @ max(0, before @ z + shift) + constant, with half as many numbers
    each time."""
    while count > 1:
        pairs, odd = divmod(count, 2)
        knots, weights, value = chords(KNOTS // pairs)
        each = 2 + len(knots)
        before, shift = np.zeros((each * pairs + 2 * odd, count)), np.zeros(each * pairs + 2 * odd)
        after, constant = np.zeros((pairs + odd, len(before))), np.zeros(pairs + odd)
        for k in range(pairs + odd):
            at = each * k
            before[at, 2 * k], before[at + 1, 2 * k] = 1.0, -1.0
            after[k, at], after[k, at + 1] = 1.0, -1.0
            if k < pairs:
                own = slice(at + 2, at + each)
                before[own, 2 * k], before[own, 2 * k + 1], shift[own] = -1.0, 1.0, -knots
                after[k, own], constant[k] = weights, value
        yield before, shift, after, constant
        count = pairs + odd


@lru_cache(maxsize=8)
def chords(count: int) -> tuple[Array, Array, float]:
    """The knots t, the weights w and the value v of a function h above softplus, with ``count`` knots."""
    # outside the knots softplus is about as far from 0, and from y, as the chords are from it
    end = -math.log(math.pi**2 / (8.0 * count**2))
    far = math.atan(math.sinh(end / 2.0))
    knots = 2.0 * np.arcsinh(np.tan(np.linspace(-far, far, count)))
    values = np.logaddexp(0.0, knots)
    slopes = np.concatenate([[0.0], np.diff(values) / np.diff(knots), [1.0 + _LIFT]])
    return knots, np.diff(slopes), float(values[0]) + _LIFT


def excess(count: int) -> float:
    """How far above log(sum of e^z) of ``count`` numbers the network's number can be, for numbers of usual
    size."""
    total = 0.0
    while count > 1:
        pairs, odd = divmod(count, 2)
        knots, weights, value = chords(KNOTS // pairs)
        slopes = np.cumsum(weights)[:-1]
        # the chord is farthest from softplus where softplus has the chord's slope
        touched = np.log(slopes / (1.0 - slopes))
        above = value + np.maximum(touched[:, None] - knots, 0.0) @ weights - np.logaddexp(0.0, touched)
        total += max(float(above.max()), value)
        count = pairs + odd
    return total
