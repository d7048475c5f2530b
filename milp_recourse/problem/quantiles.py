r"""A feature's distribution function, for costs measured in percentiles.

:math:`Q(v) = P(X \le v)` as a piecewise linear function through knots :math:`(v_k, p_k)`, constant
outside them. A shift from x to a costs :math:`|Q(a) - Q(x)|`: the share of the population overtaken
(Ustun et al. 2019, https://doi.org/10.1145/3287560.3287566; Karimi et al. 2022, section 3.1,
https://doi.org/10.1145/3527848).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np


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

    @property
    def knots(self) -> list[list[float]]:
        """The pairs (v_k, p_k)."""
        return [list(knot) for knot in zip(self.values, self.probabilities, strict=True)]

    def _slope(self, k: int) -> Fraction:
        """Slope between knots k - 1 and k."""
        rise = Fraction(self.probabilities[k]) - Fraction(self.probabilities[k - 1])
        return rise / (Fraction(self.values[k]) - Fraction(self.values[k - 1]))
