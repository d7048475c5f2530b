"""Affine forms with rational coefficients over a program's atoms.

Structural equations as affine forms over atoms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.expression import (
    Constant,
    Expression,
    NetworkOutput,
    Product,
    Relu,
    Sigmoid,
    Square,
    Sum,
    Variable,
)
from milp_recourse.program.cohort import Rationals, common_value
from milp_recourse.program.functions import Function
from milp_recourse.program.neutral_program import Atom, Elementary, constant_value

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


class Builder:
    """Collects a program's atoms; an elementary function of the same form is added only once."""

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self._known: dict[tuple, list[tuple[Fraction, Affine]]] = {}

    def add(self, atom: Atom) -> Affine:
        """Append an atom and return the form that equals it."""
        self.atoms.append(atom)
        return Affine.atom(len(self.atoms) - 1)

    def elementary(self, function: Function, argument: Affine, level: int = 0) -> Affine:
        """function(argument): a constant if the argument is constant and the value rational, else an atom.

        Parameters
        ----------
        level
            The argument at which an indicator is 1.
        """
        atom = Elementary(function, argument, level)
        value = constant_value(atom)
        if value is not None:
            return Affine(value)
        known = self._known.setdefault((function, level, tuple(sorted(argument.terms.items()))), [])
        for constant, form in known:
            if constant == argument.constant:
                return form
        known.append((argument.constant, self.add(atom)))
        return known[-1][1]

    def product(self, a: Affine, b: Affine) -> Affine:
        r"""a b, as :math:`((a+b)^2 - (a-b)^2)/4` with two squares if neither is constant."""
        if a.is_constant:
            return b.scaled(a.constant)
        if b.is_constant:
            return a.scaled(b.constant)
        plus, minus = self.elementary("square", a + b), self.elementary("square", a - b)
        return (plus - minus).scaled(Fraction(1, 4))

    def affine(self, weight: NDArray, bias: NDArray, z: Sequence[Affine]) -> list[Affine]:
        """The forms W z + b."""
        return [
            sum((zi.scaled(w) for zi, w in zip(z, row, strict=True) if w), Affine.of(b))
            for row, b in zip(weight.tolist(), bias.tolist(), strict=True)
        ]

    def lower(self, expression: Expression, values: Mapping[str, Affine]) -> Affine:
        """The form of an expression, given the form of every feature."""
        match expression:
            case Constant(value):
                return Affine.of(value)
            case Variable(name):
                return values[name]
            case Sum(terms):
                return sum((self.lower(t, values) for t in terms), Affine())
            case Product(factors):
                total = Affine.of(1)
                for factor in factors:
                    total = self.product(total, self.lower(factor, values))
                return total
            case Relu(argument):
                return self.elementary("relu", self.lower(argument, values))
            case Sigmoid(argument):
                return self.elementary("sigmoid", self.lower(argument, values))
            case Square(argument):
                return self.elementary("square", self.lower(argument, values))
            case NetworkOutput(network, inputs):
                z = [self.lower(e, values) for e in inputs]
                last = len(network.weights) - 1
                for k, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
                    z = self.affine(weight, bias, z)
                    if k < last:
                        z = [self.elementary("relu", v) for v in z]
                return z[0]
        raise TypeError(f"unknown expression {type(expression).__name__}")
