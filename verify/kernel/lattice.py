"""Which values between two limits an action may set, where not every double (section 2)."""

from bisect import bisect_left, bisect_right
from fractions import Fraction
from math import inf
from typing import NamedTuple

Number = Fraction | float


class Steps(NamedTuple):
    """The doubles nearest to origin + k step, for whole k; step > 0."""

    step: Fraction
    origin: Fraction

    def floor(self, t: Number) -> Number:
        """The largest value that is at most a double."""
        k = (Fraction(t) - self.origin) // self.step
        return above if (above := self.value(k + 1)) <= t else self.value(k)

    def ceil(self, t: Number) -> Number:
        """The least value that is at least a double."""
        k = -((self.origin - Fraction(t)) // self.step)
        return below if (below := self.value(k - 1)) >= t else self.value(k)

    def value(self, k: int) -> Number:
        """The double nearest to origin + k step; beyond the largest double the number itself.

        What is at most a double has a nearest double that is at most that; likewise for at least.
        """
        (a, b), (c, d) = self.origin.as_integer_ratio(), self.step.as_integer_ratio()
        try:
            return Fraction((a * d + k * c * b) / (b * d))  # whole numbers' quotient is the nearest double
        except OverflowError:
            return self.origin + k * self.step


class Values(NamedTuple):
    """Numbers, ascending."""

    values: tuple[Fraction, ...]

    def floor(self, t: Number) -> Number:
        """The largest of the numbers that is at most t; -inf if none is."""
        k = bisect_right(self.values, t)
        return self.values[k - 1] if k else -inf

    def ceil(self, t: Number) -> Number:
        """The least of the numbers that is at least t; inf if none is."""
        k = bisect_left(self.values, t)
        return self.values[k] if k < len(self.values) else inf


Lattice = Steps | Values
