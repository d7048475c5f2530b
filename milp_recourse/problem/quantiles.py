r"""A feature's distribution function, for costs measured in percentiles.

:math:`Q(v) = P(X \le v)` as a piecewise linear function through knots :math:`(v_k, p_k)`, constant
outside them. A shift from x to a costs :math:`|Q(a) - Q(x)|`: the share of the population overtaken
(Ustun et al. 2019, https://doi.org/10.1145/3287560.3287566; Karimi et al. 2022, section 3.1,
https://doi.org/10.1145/3527848).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.enclosure import round_down, round_up

Array = NDArray[np.float64]

ROUNDING = 1e-12
"""More than the error of a probability computed in float64."""


@dataclass(frozen=True)
class Quantiles:
    """A piecewise linear distribution function, given by its knots.

    Parameters
    ----------
    values
        v_k in the feature's unit, ascending, at least two.
    probabilities
        p_k in [0, 1], never falling.
    """

    values: tuple[float, ...]
    probabilities: tuple[float, ...]

    @cached_property
    def jumps(self) -> bool:
        """Whether Q rises by some share d between two values that are nearer than d 2^-30 of the whole range:
        there the rounding of a double decides about what a shift costs."""
        rises = np.diff(self.probabilities)
        return bool((np.diff(self.values) < 2.0**-30 * rises * (self.values[-1] - self.values[0])).any())

    def exact(self, value: Fraction) -> Fraction:
        """Q(value) in exact arithmetic."""
        k = bisect_right(self.values, value)
        if k == 0:
            return Fraction(self.probabilities[0])
        if k == len(self.values):
            return Fraction(self.probabilities[-1])
        return Fraction(self.probabilities[k - 1]) + self._slope(k) * (value - Fraction(self.values[k - 1]))

    def evaluate(self, values: Array) -> Array:
        """Q in float64, elementwise, with an error of at most :data:`ROUNDING`."""
        return np.interp(values, self.values, self.probabilities)

    def kinks(self) -> Iterator[tuple[Fraction, Fraction]]:
        r"""(v_k, change of slope c_k): :math:`Q(v) = p_0 + \sum_k c_k \max(0, v - v_k)`."""
        before = Fraction(0)
        for k, value in enumerate(self.values):
            after = self._slope(k + 1) if k + 1 < len(self.values) else Fraction(0)
            if after != before:
                yield Fraction(value), after - before
            before = after

    def around(self, x: float, low: float, high: float, unit: float) -> Array:
        """The knots of the distance in percentiles from a value x: changes from x in units of a power of two,
        rounded outward, and the distance there, rounded down, (2, knots).

        They cover an interval. The piecewise linear function through them is nowhere above the distance,
        because that never falls as a value moves away from x.
        """
        own, factual = self.exact(Fraction(x)), Fraction(x)
        places = sorted({*map(Fraction, self.values), factual})
        first = max((k for k, v in enumerate(places) if v <= min(low, x)), default=0)
        last = min((k for k, v in enumerate(places) if v >= max(high, x)), default=len(places) - 1)
        made: dict[float, float] = {}
        for v in places[first : last + 1]:
            change = (v - factual) / Fraction(unit)
            place = round_up(change) if v > factual else round_down(change)
            much = max(0.0, round_down(abs(self.exact(v) - own)))
            made[place] = min(much, made.get(place, much))
        return np.array(sorted(made.items())).T

    def least_value(self, probability: Array) -> Array:
        """The least v with Q(v) >= probability, up to rounding.

        It is -inf if all v satisfy this, and the last knot if none does.
        """
        v, p = np.array(self.values), np.array(self.probabilities)
        k = np.clip(np.searchsorted(p, probability, side="left"), 1, len(p) - 1)
        return np.where(probability <= p[0], -np.inf, _between(v, p, k, probability))

    def largest_value(self, probability: Array) -> Array:
        """The largest v with Q(v) <= probability, up to rounding.

        It is inf if all v satisfy this, and the first knot if none does.
        """
        v, p = np.array(self.values), np.array(self.probabilities)
        k = np.clip(np.searchsorted(p, probability, side="right"), 1, len(p) - 1)
        return np.where(probability >= p[-1], np.inf, _between(v, p, k, probability))

    def _slope(self, k: int) -> Fraction:
        """Slope between knots k - 1 and k."""
        rise = Fraction(self.probabilities[k]) - Fraction(self.probabilities[k - 1])
        return rise / (Fraction(self.values[k]) - Fraction(self.values[k - 1]))


def _between(v: Array, p: Array, k: NDArray[np.intp], probability: Array) -> Array:
    """The v between knots k - 1 and k at which the line through them reaches a probability."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip((probability - p[k - 1]) / (p[k] - p[k - 1]), 0.0, 1.0)
    return v[k - 1] + np.nan_to_num(share) * (v[k] - v[k - 1])
