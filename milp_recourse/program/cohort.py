"""Programs of many applicants: those whose programs differ in numbers only are lowered once, together.

What :func:`~milp_recourse.program.lower.lower` computes for one applicant with Fractions is computed for
all at once with :class:`~milp_recourse.program.cohort.Rationals`, by the same functions. The structure
of a program can depend on numbers: a factual outside its bounds may not be held, a factual can be the
coefficient of a product, and categories give different atoms. Applicants who differ in that are separated
and lowered again.

Vectors of rationals, one per applicant, for lowering several applicants to one program.

A :class:`Rationals` replaces a Fraction in forms. Numbers on which the structure of the program depends must
be the same for all applicants; if they are not, :class:`Mixed` is raised and says which applicants differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.instance import Instance
from milp_recourse.problem.population import of_one_model
from milp_recourse.program.lower import lower, lower_together
from milp_recourse.program.neutral_program import Program


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
        left, right = denominator // self.denominator, denominator // other.denominator
        return Rationals(self.numerator * left + other.numerator * right, denominator)

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
    """The truth value of a condition on which the program's structure depends.

    ``condition`` is given for one applicant or, as an array, for each of several.

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
    """The one value of a number on which the program's structure depends.

    ``value`` is given for one applicant or, as :class:`Rationals`, for each of several.

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


T = TypeVar("T")

_FEW = 4  # with fewer people per group on average, lowering together is not tried again


def together(
    instances: Sequence[Instance], make: Callable[[list[Instance], Program], T]
) -> Iterator[tuple[list[int], T]]:
    """Apply a function to every applicant's program, once for all who share the program.

    Parameters
    ----------
    make
        The function of applicants and their common program, which has no cost terms. If it raises
        :class:`Mixed`, the applicants are separated and lowered again.

    Yields
    ------
    tuple
        Positions of applicants in ``instances``, and the function's value for them.
    """
    waiting = of_one_model(instances)
    while waiting:
        people = waiting.pop(0)
        members = [instances[person] for person in people]
        try:
            program = lower(members[0], costs=False) if len(members) == 1 else lower_together(members)
            value = make(members, program)
        except Mixed as mixed:
            waiting[:0] = _parts(people, mixed.labels)
        else:
            yield people, value


def _parts(people: list[int], labels: NDArray[Any]) -> list[list[int]]:
    """Groups of people with equal labels; groups of one if the groups would be small."""
    parts: dict[Any, list[int]] = {}
    for person, label in zip(people, labels.tolist(), strict=True):
        parts.setdefault(label, []).append(person)
    if len(parts) * _FEW > len(people):
        return [[person] for person in people]
    return list(parts.values())
