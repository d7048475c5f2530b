r"""How large a change of a feature is: one class for each way to say it.

A *measure* gives the change from the factual value x to a value a its size. It is piecewise linear in a,
0 at x, and never falls as a moves away from x. A new way is a class here, named in :data:`MEASURES`, and the
checker's own reading of it (``verify/files/costs.py``); files, tables and back ends ask the class.

==================  ===================================================
:class:`Distance`   :math:`|a - x| / s`, with one s for rises and one for falls
:class:`Relative`   :math:`|a - x| / |x|`
:class:`Ranks`      :math:`|Q(a) - Q(x)|`, Q being piecewise linear
==================  ===================================================

Of labels, all equally far apart, and of missing values :mod:`milp_recourse.problem.lever_cost` takes the
scale alone.

For costs in percentiles, a feature's distribution function is
:math:`Q(v) = P(X \le v)` as a piecewise linear function through knots :math:`(v_k, p_k)`, constant
outside them. A shift from x to a costs :math:`|Q(a) - Q(x)|`: the share of the population overtaken
(Ustun et al. 2019, https://doi.org/10.1145/3287560.3287566; Karimi et al. 2022, section 3.1,
https://doi.org/10.1145/3527848).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from milp_recourse.problem.decimals import Positive


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


NOTHING = Fraction(0)


class Piece(NamedTuple):
    """On [low, high] the change to a value a has the size start + rate |a - near|.

    ``near`` is the end that is nearer to the factual value, so nothing cancels. ``rate`` is at least 0, and
    may rise or fall from piece to piece. Ends are doubles: one that is computed from the factual value has to
    be rounded as the checker rounds it, and ``start`` is the size at that double.
    """

    low: float
    high: float
    rate: Fraction
    near: float
    start: Fraction

    def size(self, value: float) -> Fraction:
        """The size of the change to a value on the piece."""
        if not self.rate or value == self.near:
            return self.start
        way = self.rate * Fraction(*apart(value, self.near))
        return self.start + way if self.start else way


class Measure(ABC):
    """What all measures are asked; the defaults are right for most.

    Attributes
    ----------
    field
        The field of ``cost`` in files that states it, feature by feature.
    stated
        How files state it in ``cost.scale``: a word, or the keys of an object with the types of their values,
        in the order of the class's parameters.
    rise, fall
        The scales of changes in either direction: how long a change of size 1 is, for a straight measure.
    straight
        Whether sizes are distances over ``rise`` or ``fall``: two pieces. Searches then use those.
    strict
        Whether a larger change always has a larger size.
    jumps
        Whether the rounding of a double decides about the size (:attr:`Quantiles.jumps`).
    personal
        Whether it depends on the applicant's value, which :meth:`of_applicant` is told.
    """

    field: str = "scale"
    stated: ClassVar[str | Mapping[str, Any]] = {}
    rise: float = 1.0
    fall: float = 1.0
    straight: bool = False
    strict: bool = False
    jumps: bool = False
    personal: bool = False

    @property
    def length(self) -> float:
        """About how long a change of size 1 is, in the feature's unit; inf where no change is that large."""
        return min(self.rise, self.fall)

    @property
    @abstractmethod
    def written(self) -> Any:
        """What files state, as JSON: :attr:`stated` with the numbers."""

    @property
    def settled(self) -> Measure:
        """The measure as it is for this applicant, and for no other."""
        return self

    @abstractmethod
    def pieces(self, x: float) -> tuple[Piece, ...]:
        """The sizes of changes from x; pieces ascend, and neighbours meet at an end and agree there."""

    def why_not(self, kind: str) -> tuple[str, str] | None:
        """What is refused, and allowed instead, where a feature of that kind cannot have it; else None."""
        if kind != "categorical":
            return None
        return type(self).__name__, "a number: the labels of a categorical feature have no order"

    def of_applicant(self, x: float) -> Measure:
        """The measure for an applicant who has the value x.

        Raises
        ------
        ValueError
            There is none; with the value as shown, and what is allowed.
        """
        return self

    @abstractmethod
    def times(self, factor: float) -> Measure:
        """The measure whose sizes are those of this one divided by a power of two."""


@dataclass(frozen=True)
class Distance(Measure):
    """The distance over a scale: (a - x) / rise, or (x - a) / fall.

    Parameters
    ----------
    rise, fall
        s > 0 of increases and of decreases, in the feature's unit. A file may state both as one number.
    """

    rise: float
    fall: float
    stated: ClassVar[str | Mapping[str, Any]] = {"increase": Positive, "decrease": Positive}
    straight = True
    strict = True

    @property
    def written(self) -> Any:
        return self.rise if self.rise == self.fall else {"increase": self.rise, "decrease": self.fall}

    def pieces(self, x: float) -> tuple[Piece, ...]:
        rise, fall = inverse(self.rise), inverse(self.fall)
        return Piece(-math.inf, x, fall, x, NOTHING), Piece(x, math.inf, rise, x, NOTHING)

    def why_not(self, kind: str) -> tuple[str, str] | None:
        if self.rise == self.fall or kind != "categorical":
            return None
        return "two scales", "a number: the labels of a categorical feature have no order"

    def times(self, factor: float) -> Measure:
        return Distance(self.rise * factor, self.fall * factor)


@dataclass(frozen=True)
class Relative(Distance):
    """The change as a share of the applicant's own |x|.

    :meth:`of_applicant` makes that the scale. Where x is missing the scale is 1: it has no influence, since
    every change has the size 1 there.
    """

    rise: float = 1.0
    fall: float = 1.0
    stated = "factual"
    personal = True

    @property
    def written(self) -> Any:
        return "factual"

    @property
    def settled(self) -> Measure:
        return Distance(self.rise, self.fall)

    def why_not(self, kind: str) -> tuple[str, str] | None:
        if kind not in ("categorical", "ordinal"):
            return None
        return "factual", "a number: labels have no size that a change could be relative to"

    def of_applicant(self, x: float) -> Measure:
        if x == 0:
            raise ValueError("factual 0", "a factual value that is not 0: the cost is of its relative change")
        size = 1.0 if math.isnan(x) else abs(x)
        return Relative(size, size)


@dataclass(frozen=True)
class Ranks(Measure):
    """The difference of ranks: |Q(a) - Q(x)|, or of -log(1 - Q).

    Parameters
    ----------
    levels
        Q, or -log(1 - Q) at the same knots.
    """

    levels: Quantiles
    field = "quantiles"

    @property
    def jumps(self) -> bool:  # type: ignore[override]
        return self.levels.jumps

    @property
    def length(self) -> float:
        (low, *_, high), (first, *_, last) = self.levels.values, self.levels.probabilities
        return (high - low) / (last - first) if last > first else math.inf

    @property
    def written(self) -> Any:
        return self.levels.knots

    def pieces(self, x: float) -> tuple[Piece, ...]:
        q, made = self.levels.exact, list[Piece]()
        here = q(Fraction(x))
        for low, high in pairwise([-math.inf, *sorted({x, *self.levels.values}), math.inf]):
            near, far = (high, low) if high <= x else (low, high)
            start, steep = abs(q(Fraction(near)) - here), NOTHING
            if math.isfinite(far):
                steep = (abs(q(Fraction(far)) - here) - start) / abs(Fraction(far) - Fraction(near))
            made.append(Piece(low, high, steep, near, start))
        return tuple(made)

    def why_not(self, kind: str) -> tuple[str, str] | None:
        if kind != "categorical":
            return None
        return "quantiles", "nothing: the labels of a categorical feature have no order"

    def times(self, factor: float) -> Measure:
        return self


MEASURES: tuple[type[Measure], ...] = Distance, Relative
"""Those that ``cost.scale`` can state."""


@lru_cache(maxsize=4096)
def inverse(scale: float) -> Fraction:
    """1 / scale exactly."""
    return 1 / Fraction(scale)


def apart(a: float, b: float) -> tuple[int, int]:
    """abs(a - b) exactly, as a numerator and a denominator."""
    (m, c), (n, d) = a.as_integer_ratio(), b.as_integer_ratio()
    below = max(c, d)  # powers of two
    return abs(m * (below // c) - n * (below // d)), below
