r"""Exactly which weights a person's answers still allow: a polyhedral cone, by its extreme rays.

A cost that is linear in the weights compares two actions by the sign of a linear form, so each answer "this
one is easier" is a half-space :math:`g \cdot w \le 0` through the origin. Weights matter only up to a common
factor. Without a limit on how little a lever can weigh, a lever could be free, and no statement about
relative regret would hold; so before any answer the weights are those with

.. math:: w_f \ge \varepsilon\, \bar w, \qquad \bar w = \frac1k \sum_g w_g ,

a cone with one extreme ray for each of the k levers. Half-spaces are cut off one after the other (double
description method); everything is in whole numbers, so the rays are exact.

References
----------
Motzkin et al. (1953), "The double description method"; Fukuda and Prodon (1996),
https://doi.org/10.1007/3-540-61576-8_77 (the test for adjacent rays).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import BadInput, is_number

Row = tuple[int, ...]
"""The half-space of the weights w with sum of row * w at most 0."""

ROW_BITS = 30
"""A half-space's largest coefficient is this many bits long; smaller ones are rounded down, which only allows
more weights."""

LEAST_WEIGHT = 0.05
"""The default of the least weight of a lever, as a share of the mean weight."""


def half_space(coefficients: Sequence[Fraction]) -> Row:
    r"""The half-space :math:`g \cdot w \le 0` in whole numbers: no weights :math:`w \ge 0` of it are lost."""
    largest = max((abs(c) for c in coefficients), default=Fraction(0))
    if not largest:
        return (0,) * len(coefficients)
    unit = Fraction(2**ROW_BITS) / largest
    return tuple(math.floor(c * unit) for c in coefficients)


@dataclass(frozen=True)
class Ray:
    """An extreme ray.

    Attributes
    ----------
    weights
        Whole numbers without a common divisor.
    tight
        The half-spaces on whose boundary the ray lies, as bits: bit k is that of the least weight of lever k
        for k below the number of levers, then come the cuts in their order.
    """

    weights: Row
    tight: int


@dataclass(frozen=True)
class WeightCone:
    """The weights that a list of half-spaces leaves of those that are possible before any answer.

    Attributes
    ----------
    rays
        All extreme rays; none if no weights are left.
    cuts
        The half-spaces, in the order in which they were cut off.
    """

    rays: tuple[Ray, ...]
    cuts: tuple[Row, ...] = ()

    @staticmethod
    def of(levers: int, least: float = LEAST_WEIGHT) -> WeightCone:
        """All weights of ``levers`` levers that are at least ``least`` times their mean.

        Raises
        ------
        BadInput
            ``least`` is not above 0 and below 1.
        """
        if not (is_number(least) and 0 < least < 1):
            raise BadInput("least_weight", least, "a number above 0 and below 1")
        share = Fraction(least) / levers
        low, high = share.numerator, share.denominator - (levers - 1) * share.numerator
        everything = (1 << levers) - 1
        rays = (
            Ray(_primitive([high if g == f else low for g in range(levers)]), everything ^ (1 << f))
            for f in range(levers)
        )
        return WeightCone(tuple(rays))

    @property
    def levers(self) -> int:
        """The number of weights."""
        return len(self.rays[0].weights) if self.rays else 0

    def cut(self, row: Row) -> WeightCone:
        """The cone without the weights outside a half-space."""
        rays = self.rays
        values = [value(row, ray.weights) for ray in rays]
        bit = 1 << (self.levers + len(self.cuts))
        kept = [
            Ray(ray.weights, ray.tight | bit) if v == 0 else ray
            for ray, v in zip(rays, values, strict=True)
            if v <= 0
        ]
        inside = [k for k, v in enumerate(values) if v < 0]
        for lost in (k for k, v in enumerate(values) if v > 0):
            for other in self._adjacent(lost, inside):
                pairs = zip(rays[lost].weights, rays[other].weights, strict=True)
                between = [values[lost] * b - values[other] * a for a, b in pairs]
                kept.append(Ray(_primitive(between), rays[lost].tight & rays[other].tight | bit))
        return WeightCone(tuple(kept), (*self.cuts, row))

    def _adjacent(self, one: int, others: Sequence[int]) -> list[int]:
        """The rays among ``others`` that share an edge with ray ``one``: no third ray lies on all
        boundaries of half-spaces on which both lie."""
        tight = self._tight
        common = tight[one] & tight[others]
        enough = np.bitwise_count(common).sum(axis=1) >= self.levers - 2
        found = []
        for other, shared in zip(np.array(others)[enough].tolist(), common[enough], strict=True):
            if ((tight & shared) == shared).all(axis=1).sum() == 2:
                found.append(other)
        return found

    @cached_property
    def _tight(self) -> NDArray[np.uint64]:
        """:attr:`Ray.tight` of all rays, in words of 64 bits."""
        words = (self.levers + len(self.cuts)) // 64 + 1
        whole = 2**64 - 1
        rows = [[(ray.tight >> 64 * k) & whole for k in range(words)] for ray in self.rays]
        return np.array(rows, dtype=np.uint64).reshape(len(rows), words)


def value(row: Row, weights: Sequence[int]) -> int:
    """The sum of row * weights; at most 0 inside the half-space."""
    return sum(a * b for a, b in zip(row, weights, strict=True))


def inside(rows: Sequence[Row], weights: Sequence[float]) -> bool:
    """Whether weights lie in every half-space, in exact arithmetic."""
    exact = [Fraction(w) for w in weights]
    return all(sum(a * b for a, b in zip(row, exact, strict=True)) <= 0 for row in rows)


def _primitive(numbers: Sequence[int]) -> Row:
    common = math.gcd(*numbers)
    return tuple(n // common for n in numbers)
