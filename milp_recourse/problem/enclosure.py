r"""Exact numbers where possible, proven intervals where not.

A double is a rational number, and sums, products, squares and ReLUs of rationals are
rational, so a ReLU network and a piecewise-linear SCM are evaluated *exactly*. Sigmoids and
logarithms are irrational: they become intervals whose ends are rational and about
:math:`10^{-50}` apart.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

_DIGITS = 60
_DOWN = Context(prec=_DIGITS, rounding=ROUND_FLOOR)
_UP = Context(prec=_DIGITS, rounding=ROUND_CEILING)


class Enclosure:
    """A closed interval with rational ends that contains a number.

    The number is known exactly if ``lower == upper``. Enclosures are immutable.
    """

    def __init__(self, lower: Fraction, upper: Fraction) -> None:
        self.lower, self.upper = lower, upper

    @staticmethod
    def of(value: float | int | Fraction | Enclosure) -> Enclosure:
        """The point enclosure of a double (its exact binary value), integer or rational."""
        if isinstance(value, Enclosure):
            return value
        if isinstance(value, float):
            numerator, denominator = value.as_integer_ratio()
            return Dyadic(numerator, denominator.bit_length() - 1)
        exact = Fraction(value)
        if exact.denominator & (exact.denominator - 1) == 0:
            return Dyadic(exact.numerator, exact.denominator.bit_length() - 1)
        return Enclosure(exact, exact)

    @property
    def exact(self) -> bool:
        """Whether the number is known exactly."""
        return self.lower is self.upper or self.lower == self.upper

    @property
    def midpoint(self) -> Fraction:
        """The middle; the number itself when exact."""
        return self.lower if self.exact else (self.lower + self.upper) / 2

    @property
    def nearest(self) -> float:
        """The double nearest to the middle. Raises OverflowError if the middle is larger than any double."""
        return float(self.midpoint)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Enclosure):
            return NotImplemented
        return self.lower == other.lower and self.upper == other.upper

    def __hash__(self) -> int:
        return hash((self.lower, self.upper))

    def __repr__(self) -> str:
        return f"Enclosure({self.lower!r}, {self.upper!r})"

    def __add__(self, other: Enclosure) -> Enclosure:
        if self.lower is self.upper and other.lower is other.upper:
            return _point(self.lower + other.lower)
        return Enclosure(self.lower + other.lower, self.upper + other.upper)

    def __neg__(self) -> Enclosure:
        if self.lower is self.upper:
            return _point(-self.lower)
        return Enclosure(-self.upper, -self.lower)

    def __sub__(self, other: Enclosure) -> Enclosure:
        return self + (-other)

    def __mul__(self, other: Enclosure) -> Enclosure:
        if self.exact and other.exact:
            return _point(self.lower * other.lower)
        products = [a * b for a in (self.lower, self.upper) for b in (other.lower, other.upper)]
        return Enclosure(min(products), max(products))

    def __truediv__(self, divisor: Fraction | float) -> Enclosure:
        inverse = 1 / Fraction(divisor)
        return self * Enclosure.of(inverse)

    def square(self) -> Enclosure:
        """x^2; the enclosure begins at 0 if x may be 0."""
        if self.lower is self.upper:
            return _point(self.lower * self.lower)
        ends = self.lower**2, self.upper**2
        smallest = Fraction(0) if self.lower <= 0 <= self.upper else min(ends)
        return Enclosure(smallest, max(ends))

    def relu(self) -> Enclosure:
        """max(0, x)."""
        if self.lower is self.upper:
            return self if self.lower >= 0 else _point(Fraction(0))
        return Enclosure(max(Fraction(0), self.lower), max(Fraction(0), self.upper))

    def sigmoid(self) -> Enclosure:
        """1 / (1 + exp(-x))."""
        return Enclosure(_sigmoid(self.lower, _DOWN), _sigmoid(self.upper, _UP))

    def log(self) -> Enclosure:
        """Natural logarithm.

        Raises
        ------
        ValueError
            The lower end is zero or below.
        """
        if self.lower <= 0:
            raise ValueError(f"log of a number that may be <= 0: {float(self.lower)!r}")
        return Enclosure(_monotone(self.lower, _DOWN, Decimal.ln), _monotone(self.upper, _UP, Decimal.ln))

    def logit(self) -> Enclosure:
        """log(x / (1 - x)), for x strictly inside (0, 1)."""
        one = Enclosure.of(1)
        return self.log() - (one - self).log()


class Dyadic(Enclosure):
    """A number known exactly as numerator / 2^bits, as doubles, their sums and their products are.

    Arithmetic on whole numbers and shifts takes a third of the time of Fraction's, which cancels common
    factors.
    """

    def __init__(self, numerator: int, bits: int) -> None:
        self.numerator, self.bits = numerator, bits

    @cached_property
    def lower(self) -> Fraction:  # type: ignore[override]
        """The number."""
        return Fraction(self.numerator, 1 << self.bits)

    @property
    def upper(self) -> Fraction:  # type: ignore[override]
        """The number."""
        return self.lower

    @property
    def exact(self) -> bool:
        """Always."""
        return True

    @property
    def nearest(self) -> float:
        """The double nearest to it; Python divides whole numbers with one rounding."""
        return self.numerator / (1 << self.bits)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dyadic):
            return super().__eq__(other)
        return self.numerator << other.bits == other.numerator << self.bits

    __hash__ = Enclosure.__hash__

    def __add__(self, other: Enclosure) -> Enclosure:
        if not isinstance(other, Dyadic):
            return super().__add__(other)
        more = self.bits - other.bits
        if more >= 0:
            return Dyadic(self.numerator + (other.numerator << more), self.bits)
        return Dyadic((self.numerator << -more) + other.numerator, other.bits)

    def __neg__(self) -> Enclosure:
        return Dyadic(-self.numerator, self.bits)

    def __mul__(self, other: Enclosure) -> Enclosure:
        if not isinstance(other, Dyadic):
            return super().__mul__(other)
        return Dyadic(self.numerator * other.numerator, self.bits + other.bits)

    def square(self) -> Enclosure:
        """x^2."""
        return Dyadic(self.numerator * self.numerator, 2 * self.bits)

    def relu(self) -> Enclosure:
        """max(0, x)."""
        return self if self.numerator >= 0 else Dyadic(0, 0)


class Rounded(Enclosure):
    """A number known as a double with a bound on the rounding error."""

    def __init__(self, value: float, error: float) -> None:
        self.value, self.error = value, error

    @cached_property
    def lower(self) -> Fraction:  # type: ignore[override]
        """The double less the error."""
        return Fraction(self.value) - Fraction(self.error)

    @cached_property
    def upper(self) -> Fraction:  # type: ignore[override]
        """The double plus the error."""
        return Fraction(self.value) + Fraction(self.error)

    @property
    def nearest(self) -> float:
        """The double."""
        return self.value


def _nearest(value: Fraction) -> float:
    """The nearest finite double."""
    try:
        return float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -sys.float_info.max


def round_down(value: Fraction) -> float:
    """The largest double not above a number."""
    nearest = _nearest(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def round_up(value: Fraction) -> float:
    """The smallest double not below a number."""
    nearest = _nearest(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def difference_below(a: NDArray[np.float64] | float, b: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """The largest doubles that are not above a - b, whose rounding error is itself a double (Knuth)."""
    nearest = a - b
    part = nearest - a
    exact = (a - (nearest - part)) - (b + part) >= 0.0
    return np.where(exact, nearest, np.nextafter(nearest, -np.inf))


def exponent(value: Fraction) -> int:
    """k with 2^(k-1) < value < 2^(k+1), for a positive rational."""
    return value.numerator.bit_length() - value.denominator.bit_length()


def gamma(operations: int, roundoff: float = 2.0**-53) -> float:
    r"""A bound on the relative error of a sum of products of which each term is rounded ``operations`` times.

    The error is relative to the sum of absolute terms, as computed with as many roundings:
    :math:`2 n u / (1 - 2 n u)` with n operations and unit roundoff u, rounded up (Higham 2002, section 3.1).
    """
    return 2.0 * operations * roundoff / (1.0 - 2.0 * operations * roundoff) * (1.0 + 2.0**-50)


def _point(value: Fraction) -> Enclosure:
    """An exactly known number. Both ends are the same object, so that ``is`` tells that it is exact."""
    return Enclosure(value, value)


def _monotone(x: Fraction, context: Context, function: Callable[[Decimal, Context], Decimal]) -> Fraction:
    """A bound on an increasing ``function`` at x, rounded in the context's direction.

    The argument is rounded outward. Decimal rounds exp and ln correctly to the nearest value, and one more
    unit in the last place outward makes that a proven bound.
    """
    argument = context.divide(Decimal(x.numerator), Decimal(x.denominator))
    value = function(argument, context)
    if value == 0:
        return Fraction(0)  # log 1 is exactly 0, from where a step outward would be 10^-1000059
    if value.is_infinite():
        raise OverflowError(f"argument out of range: {float(x)!r}")
    step = value.next_minus if context is _DOWN else value.next_plus
    return Fraction(step(context))


def _sigmoid(x: Fraction, context: Context) -> Fraction:
    if abs(x) > 100000:  # Decimal's exp would be slow or overflow, and the sigmoid is within 1e-60 of 0 or 1
        tiny = Fraction(1, 10**_DIGITS)
        if x > 0:
            return Fraction(1) if context is _UP else 1 - tiny
        return tiny if context is _UP else Fraction(0)
    power = _monotone(x, context, Decimal.exp)  # exp(x) / (1 + exp(x)) increases with exp(x)
    quotient = power / (1 + power)
    return Fraction(context.divide(Decimal(quotient.numerator), Decimal(quotient.denominator)))
