"""Vectors of rationals, one per applicant, for lowering several applicants to one program.

A :class:`Rationals` replaces a Fraction in forms. Numbers on which the structure of the program depends must
be the same for all applicants; if they are not, :class:`Mixed` is raised and says which applicants differ.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Mixed(Exception):
    """Applicants lowered together need programs of different structure.

    Attributes
    ----------
    labels
        One per applicant. Applicants with different labels need programs of different structure.
    """

    def __init__(self, labels: NDArray[Any]) -> None:
        super().__init__("applicants differ in structure")
        self.labels = labels


class Rationals:
    """N rationals over one denominator, exact; arithmetic with each other and with a Fraction.

    Parameters
    ----------
    numerator
        Whole numbers of any size, an object array of shape (N,).
    denominator
        Above 0; common factors are left in.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, numerator: NDArray[np.object_], denominator: int) -> None:
        self.numerator, self.denominator = numerator, denominator

    @staticmethod
    def of(values: NDArray[np.float64]) -> Rationals:
        """The exact values of doubles, shape (N,)."""
        ratios = [v.as_integer_ratio() for v in values.tolist()]
        denominator = max(d for _, d in ratios)  # each is a power of two
        return Rationals(_whole([n * (denominator // d) for n, d in ratios]), denominator)

    def __add__(self, other: Rationals | Fraction) -> Rationals:
        denominator = math.lcm(self.denominator, other.denominator)
        mine, its = denominator // self.denominator, denominator // other.denominator
        return Rationals(self.numerator * mine + other.numerator * its, denominator)

    __radd__ = __add__

    def __mul__(self, other: Rationals | Fraction) -> Rationals:
        return Rationals(self.numerator * other.numerator, self.denominator * other.denominator)

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rationals | Fraction | int):
            return NotImplemented
        return agreed(self.numerator * other.denominator == self.denominator * other.numerator)

    def __bool__(self) -> bool:
        raise TypeError("whether a number is zero may differ between applicants: compare with 0")

    def relu(self) -> Rationals:
        """max(0, x)."""
        return Rationals(np.maximum(self.numerator, 0), self.denominator)

    def square(self) -> Rationals:
        """x^2."""
        return self * self

    def indicator(self, level: int) -> Rationals:
        """1 if x equals ``level``, else 0."""
        hit = self.numerator == level * self.denominator
        return Rationals(_whole([int(h) for h in hit.tolist()]), 1)

    def nearest(self) -> NDArray[np.float64]:
        """The nearest doubles."""
        return np.array([n / self.denominator for n in self.numerator.tolist()], dtype=np.float64)


def agreed(condition: bool | NDArray[np.bool_]) -> bool:
    """A truth value on which the structure depends, given for one applicant or for each of several.

    Raises
    ------
    Mixed
        It is not the same for all applicants.
    """
    answers = np.asarray(condition, dtype=bool)
    if answers.all():
        return True
    if answers.any():
        raise Mixed(answers)
    return False


def common_value(value: Fraction | Rationals) -> Fraction:
    """A number on which the structure depends, given for one applicant or for each of several.

    Raises
    ------
    Mixed
        It is not the same for all applicants.
    """
    if isinstance(value, Fraction):
        return value
    if not (value.numerator == value.numerator[0]).all():
        raise Mixed(value.numerator)
    return Fraction(value.numerator[0], value.denominator)


def everyone(count: int) -> Mixed:
    """The error that makes :func:`~milp_recourse.program.cohort.together` lower each applicant separately."""
    return Mixed(np.arange(count))


def _whole(values: list[int]) -> NDArray[np.object_]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
