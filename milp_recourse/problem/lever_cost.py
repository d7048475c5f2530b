r"""What a lever's value costs: the one table that judging, searching, proving and showing read.

An action on a lever changes it by a *size* :math:`d \ge 0` and costs

.. math:: fixed + square \cdot d^2 + linear \cdot d, \qquad \text{and } largest \cdot d

is its entry in the cost's maximum, which is added once (:class:`Prices`). The size is piecewise linear in the
value: by the feature's measure (:mod:`milp_recourse.problem.cost`), but 1 / scale for every label other
than the factual one, and 1 for every value in place of a missing one. It never falls as the value moves away
from the factual one.

Numbers are exact. The arrays of :meth:`LeverCost.sizes` and :meth:`LeverCost.evaluate` are doubles, whose
relative error is stated there. :mod:`milp_recourse.problem.cost` states a cost in the file's terms, whose
coefficients and distribution functions nothing else reads. Of the scales, ``rise`` and ``fall`` are read
elsewhere where sizes are distances (:attr:`LeverCost.straight`), and by the check of magnitudes.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.cost import (
    NOTHING,
    Cost,
    Distance,
    Measure,
    Parts,
    Piece,
    apart,
    inverse,
    root_above,
)
from milp_recourse.problem.enclosure import round_down, round_up

Array = NDArray[np.float64]

ROUNDINGS = 16
"""At least as many roundings as there are in a number of :meth:`LeverCost.evaluate`, whose terms are never
negative."""

LEVER_GAP = 1e-12
"""The part of a lever's interval whose cost is added to the tolerance for ``optimal``."""

_LARGEST = Fraction(sys.float_info.max)
_ONE, _COUNTED = Fraction(1), Distance(1.0, 1.0)


class Prices(NamedTuple):
    """What an action of a size costs: fixed + square size^2 + linear size; ``largest`` size is its entry in
    the cost's maximum."""

    fixed: Fraction
    square: Fraction
    linear: Fraction
    largest: Fraction

    def paid(self, size: Fraction) -> tuple[Fraction, Fraction]:
        """The cost of an action of this size, and its entry in the cost's maximum."""
        return self.fixed + (self.square * size + self.linear) * size, self.largest * size

    def per(self, rate: Fraction) -> Prices:
        """What a number costs whose size is ``rate`` times itself."""
        return Prices(self.fixed, self.square * rate * rate, self.linear * rate, self.largest * rate)

    def rounded(self, rate: Fraction) -> tuple[float, float, float]:
        """The same rounded down: linear, square, and the entry in the maximum."""
        _, square, linear, largest = (max(0.0, round_down(price)) for price in self.per(rate))
        return linear, square, largest


class _Told(NamedTuple):
    """What decides about a lever's costs, as :func:`lever_costs` reads it."""

    parts: Parts
    weight: float
    factual: float
    label: bool
    measure: Measure


class LeverCost(_Told):
    """What an applicant's lever costs; see the module's docstring.

    Attributes
    ----------
    label
        Whether its values are labels, all of them equally far apart.
    factual
        Its value before the action, nan where that is missing.
    measure
        How large a change is (:mod:`milp_recourse.problem.cost`).
    """

    @cached_property
    def prices(self) -> Prices:
        """What an action of a size costs."""
        return _prices(self.parts, self.weight)

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The size of a change, by the value it leads to. Pieces ascend; neighbours meet at an end and agree
        there, but for labels, between whose numbers there are no values."""
        x = self.factual
        if math.isnan(x):
            return (Piece(-math.inf, math.inf, NOTHING, 0.0, _ONE),)
        if self.label:
            other = inverse(self.rise)
            return (
                Piece(-math.inf, x - 1.0, NOTHING, x - 1.0, other),
                Piece(x, x, NOTHING, x, NOTHING),
                Piece(x + 1.0, math.inf, NOTHING, x + 1.0, other),
            )
        return self.measure.pieces(x) if self.measure.straight else _in_order(self.measure, x)

    def within(self, low: float, high: float) -> list[Piece]:
        """The pieces that meet an interval, or lie between that and the factual value."""
        low, high = (low, high) if math.isnan(self.factual) else _with(self.factual, low, high)
        return [piece for piece in self.pieces if piece.low <= high and low <= piece.high]

    @cached_property
    def rise(self) -> float:
        """The scale of rises."""
        return self.measure.rise

    @cached_property
    def fall(self) -> float:
        """The scale of falls."""
        return self.measure.fall

    @cached_property
    def graded(self) -> bool:
        """Whether it matters how far the lever moves."""
        return any(self.parts[1:])

    @cached_property
    def straight(self) -> bool:
        """Whether sizes are distances from the factual value, over the scale of their direction: two pieces,
        which ``rise`` and ``fall`` determine. Searches then use those; other ways to measure a change are not
        straight."""
        return self.measure.straight and not self.label and not math.isnan(self.factual)

    @property
    def even(self) -> bool:
        """Whether a rise and a fall by as much have the same size: a distance in one scale, or labels."""
        return self.label or (self.straight and self.rise == self.fall)

    @property
    def flat(self) -> bool:
        """Whether a smaller change can cost as much: it counts in the maximum alone, or not at all, or Q is
        flat somewhere."""
        return not any(self.parts[1:3]) or not self.measure.strict

    @property
    def jumps(self) -> bool:
        """Whether the rounding of a double decides about the cost (:attr:`Quantiles.jumps`)."""
        return self.measure.jumps

    @property
    def length(self) -> float:
        """About how long a change of size 1 is, in the lever's unit; inf where lengths do not matter."""
        if self.label or math.isnan(self.factual) or not self.graded:
            return math.inf
        return self.measure.length

    def size(self, value: float) -> Fraction:
        """The size of the change to a value."""
        return self._piece(value).size(value)

    def paid(self, value: float) -> tuple[Fraction, Fraction]:
        """What setting a value costs, and its entry in the cost's maximum."""
        return self.prices.paid(self.size(value))

    def about(self, value: float) -> float:
        """The size of the change to a value, in doubles."""
        if self.straight:
            return abs(value - self.factual) / (self.fall if value < self.factual else self.rise)
        return float(self.size(value))

    def priced(self, size: float) -> tuple[float, float, float]:
        """What is fixed, what a size costs besides, and its entry in the maximum, in doubles: of at most 5
        roundings of terms that are not negative."""
        fixed, square, linear, largest = self.parts
        w = self.weight
        return w * fixed, w * (square * size + linear) * size, w * largest * size

    def dearest(self, low: float, high: float) -> tuple[float, float, float]:
        """About what the dearest value of an interval costs, as :meth:`priced` tells it."""
        return self.priced(max(self.about(low), self.about(high)))

    def over(self, value: float) -> tuple[int, int, Fraction]:
        """What setting a value costs, as a numerator and a denominator that may have a factor in common, and
        its entry in the maximum."""
        if not self.straight:
            paid, entry = self.paid(value)
            return paid.numerator, paid.denominator, entry
        fixed, square, linear, under = _over(
            self.parts, self.weight, self.fall if value < self.factual else self.rise
        )
        n, d = apart(value, self.factual)
        entry = self.prices.largest * self.size(value) if self.parts[3] else NOTHING
        return fixed * d * d + (linear * d + square * n) * n, under * d * d, entry

    def variation(self, low: float, high: float) -> Fraction:
        """How much the size changes on the way from one end of an interval to the other."""
        total = NOTHING
        for piece in self.pieces:
            first, last = max(piece.low, low), min(piece.high, high)
            if piece.rate and first < last:
                total += piece.rate * Fraction(*apart(last, first))
        return total

    def nearest(self, low: float, high: float) -> float:
        """The value of an interval that costs least."""
        return low if math.isnan(self.factual) else min(max(self.factual, low), high)

    def sizes(self, values: Array) -> Array:
        """The sizes of changes to values, in doubles: of at most 5 roundings of terms that are not
        negative."""
        lows, rates, nears, starts = self._arrays
        k = np.searchsorted(lows, values, side="right")
        return np.asarray(starts[k] + rates[k] * np.abs(values - nears[k]))

    def evaluate(self, values: Array) -> tuple[Array, Array]:
        """What setting values costs, and the entries in the maximum, in doubles (:data:`ROUNDINGS`)."""
        fixed, square, linear, largest = map(float, self.prices)
        size = self.sizes(values)
        return fixed + (square * size + linear) * size, largest * size

    def knots(self, low: float, high: float, unit: float) -> Array:
        """Changes from the factual value, in units of a power of two and rounded outward, and their sizes,
        rounded down, (2, knots); they cover an interval and the factual value.

        The piecewise linear function through them is nowhere above the size, because that never falls as a
        value moves away from the factual one.
        """
        x, made = self.factual, dict[float, float]()
        low, high = _with(x, low, high)
        for v in (low, *(piece.low for piece in self.pieces if low < piece.low < high), high):
            change = (Fraction(v) - Fraction(x)) / Fraction(unit)
            place = round_up(change) if v > x else round_down(change)
            much = max(0.0, round_down(self.size(v)))
            made[place] = min(much, made.get(place, much))
        return np.array(sorted(made.items())).T

    def _piece(self, value: float) -> Piece:
        """The piece that a value lies on."""
        pieces = self.pieces
        if len(pieces) == 2:
            return pieces[1 if value >= pieces[1].low else 0]
        return pieces[bisect_right([piece.low for piece in pieces[1:]], value)]

    @cached_property
    def _arrays(self) -> tuple[Array, Array, Array, Array]:
        """Where pieces but the first begin; rates, nearer ends and the sizes there, of all."""
        _, _, rates, nears, starts = zip(*self.pieces, strict=True)
        lows = [piece.low for piece in self.pieces[1:]]
        return np.array(lows), _doubles(rates), np.array(nears), _doubles(starts)


def lever_costs(
    cost: Cost, labels: Mapping[str, bool], factual: Mapping[str, float], weights: Mapping[str, float]
) -> dict[str, LeverCost]:
    """What changing features costs an applicant; features without a scale, which the cost does not cover,
    are left out.

    Parameters
    ----------
    labels
        By feature, whether it is categorical: all its labels are equally far apart.
    factual
        The applicant's values, nan where one is missing.
    weights
        w where it is not 1.
    """
    measures = cost.measures if cost.uses_scale else dict.fromkeys(labels, _COUNTED)
    return {
        name: LeverCost(cost.parts, weights.get(name, 1.0), factual[name], label, measures[name])
        for name, label in labels.items()
        if name in measures
    }


def exact_cost(moves: Iterable[tuple[LeverCost, float]], root: bool = False) -> Fraction:
    """What levers' values cost together; with ``root`` the root of that, rounded up by at most 2^-100."""
    above, below, most = 0, 1, NOTHING
    for lever, value in moves:  # the fraction is reduced only once
        n, d, entry = lever.over(value)
        above, below = above * d + n * below, below * d
        most = max(most, entry) if entry else most
    total = Fraction(above, below) + most if most else Fraction(above, below)
    return root_above(total) if root else total


def gap_allowance(levers: Iterable[tuple[LeverCost, float, float]], root: bool) -> float:
    """The cost of moving every lever by 1e-12 of its interval, without what is fixed, rounded down.

    A result is ``optimal`` up to a relative gap plus this. It scales with the unit of the cost.

    Parameters
    ----------
    levers
        Each with the ends of its interval.

    Returns
    -------
    float
        At most the exact cost, and 0 where that is below 1e-300.
    """
    total, most, roundings = 0.0, 0.0, ROUNDINGS
    for lever, low, high in levers:
        even = lever.straight and lever.even
        width = (high - low) / lever.rise if even else float(lever.variation(low, high))
        _, paid, entry = lever.priced(LEVER_GAP * width)
        total, most, roundings = total + paid, max(most, entry), roundings + 1
    cost = (math.sqrt(total + most) if root else total + most) * (1 - roundings * 2.0**-52)
    return cost if cost > 1e-300 else 0.0


def _in_order(measure: Measure, x: float) -> tuple[Piece, ...]:
    """A measure's pieces; of two ends that rounding has made one, there is no piece between.

    Raises
    ------
    ValueError
        The measure does not keep what :meth:`Measure.pieces` promises.
    """
    pieces = tuple(piece for piece in measure.pieces(x) if piece.low != piece.high)
    ends = [-math.inf, *(piece.high for piece in pieces)]
    meet = len(ends) > 2 and ends == [*(piece.low for piece in pieces), math.inf]
    rise = all(low < high for low, high in pairwise(ends)) and min(piece.rate for piece in pieces) >= 0
    if not (meet and rise and all(p.near in (p.low, p.high) and math.isfinite(p.near) for p in pieces)):
        raise ValueError(
            f"{type(measure).__name__}.pieces({x!r}): allowed: two or more, ascending from -inf to inf, each "
            "from where the one before ends, with a rate of at least 0 and one of its ends, finite, as near"
        )
    return pieces


def _with(x: float, low: float, high: float) -> tuple[float, float]:
    """The interval that holds a value, too."""
    return min(low, x), max(high, x)


def _doubles(numbers: Iterable[Fraction]) -> Array:
    """The nearest doubles; the largest one for what is larger, as only pieces have that no lever reaches
    (:mod:`milp_recourse.program.magnitude`)."""
    return np.array([float(min(number, _LARGEST)) for number in numbers])


@lru_cache(maxsize=4096)
def _prices(parts: Parts, weight: float) -> Prices:
    return Prices(*(Fraction(part) * Fraction(weight) for part in parts))


@lru_cache(maxsize=4096)
def _over(parts: Parts, weight: float, scale: float) -> tuple[int, int, int, int]:
    """What a distance costs: what is fixed, per its square and per itself, over their least common
    denominator, which comes last."""
    prices = _prices(parts, weight).per(inverse(scale))[:3]
    under = math.lcm(*(price.denominator for price in prices))
    fixed, square, linear = (price.numerator * (under // price.denominator) for price in prices)
    return fixed, square, linear, under
