"""Affine forms with rational coefficients over a program's atoms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, cast

import numpy as np

from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.program.rationals import Rationals, common_value

Number = Fraction | float | int


@dataclass(frozen=True, eq=False)
class Affine:
    """constant + sum of terms[k] * atom k; no zero coefficients are stored.

    In a program of several applicants the constant is a :class:`Rationals`, one number per applicant;
    coefficients are the same for all of them.
    """

    constant: Fraction = Fraction(0)
    terms: Mapping[int, Fraction] = field(default_factory=dict)

    @staticmethod
    def of(value: Any) -> Affine:
        """A constant form: the exact value of a double or rational, or an array's, one per applicant."""
        if type(value) is float:
            return _of_double(value)
        if isinstance(value, np.ndarray):
            value = Rationals.of(value)
        return Affine(cast(Fraction, value) if isinstance(value, Rationals) else Fraction(value))

    @staticmethod
    def atom(index: int) -> Affine:
        """The form that equals atom ``index``."""
        return Affine(Fraction(0), {index: Fraction(1)})

    @property
    def is_constant(self) -> bool:
        """Whether the form contains no atom."""
        return not self.terms

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Affine):
            return NotImplemented
        return self.terms == other.terms and self.constant == other.constant

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Affine) -> Affine:
        if not other.terms:
            return self if _is_zero(other) else Affine(self.constant + other.constant, self.terms)
        if _is_zero(self):
            return other
        terms = dict(self.terms)
        for k, c in other.terms.items():
            total = terms.get(k, Fraction(0)) + c
            if total:
                terms[k] = total
            else:
                terms.pop(k, None)
        return Affine(self.constant + other.constant, terms)

    def __sub__(self, other: Affine) -> Affine:
        return self + other.scaled(-1)

    def scaled(self, factor: Number) -> Affine:
        """The form times a number."""
        if isinstance(factor, Rationals):  # one number per applicant
            if self.is_constant:
                return Affine(self.constant * factor)
            factor = common_value(factor)
        f = factor if isinstance(factor, Fraction) else Fraction(factor)
        if not f:
            return Affine()
        if f == 1:
            return self
        return Affine(self.constant * f, {k: c * f for k, c in self.terms.items()})

    def substitute(self, forms: Sequence[Affine]) -> Affine:
        """The form with every atom k replaced by ``forms[k]``."""
        if not self.terms:
            return self
        total = Affine(self.constant)
        for k, c in self.terms.items():
            total = total + forms[k].scaled(c)
        return total

    def enclose(self, values: Sequence[Enclosure] | Mapping[int, Enclosure]) -> Enclosure:
        """The form's value where atom k has value ``values[k]``."""
        total = Enclosure.of(self.constant)
        for k, c in self.terms.items():
            total = total + Enclosure.of(c) * values[k]
        return total


def _is_zero(form: Affine) -> bool:
    """Whether the form is the constant 0; False for :class:`Rationals`, even if all are 0."""
    return not form.terms and type(form.constant) is Fraction and not form.constant


@lru_cache(maxsize=4096)
def _of_double(value: float) -> Affine:
    """The constant form of a double, cached because all applicants share the constants of equations."""
    return Affine(Fraction(value))
