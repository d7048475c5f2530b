"""Atoms of a program, affine forms with rational coefficients over them, and equations as such forms.

Atoms are numbered in the order they can be computed:

* :class:`Action`: the value an action sets, free in an interval;
* :class:`Switch`: ``acted`` if its feature is acted on, else ``natural``;
* :class:`Elementary`: a univariate function of an affine form (relu, sigmoid, logit, log, square, or
  the indicator of one whole number).

Where several applicants are lowered to one program, a vector of rationals, one per applicant, replaces a
Fraction in forms (:class:`Rationals`). Numbers on which the structure of the program depends must
be the same for all applicants; if they are not, :class:`Mixed` is raised and says which applicants differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.expression import (
    Array,
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
from milp_recourse.problem.features import Lattice
from milp_recourse.program.functions import Function


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
    """The error that makes :func:`~milp_recourse.program.lower.together` lower each applicant separately."""
    return Mixed(np.arange(count))


def _whole(values: list[int]) -> NDArray[np.object_]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


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


@dataclass(frozen=True)
class Action:
    """The value a_i that an action sets ``feature`` to, divided by ``unit``; it lies in [lower, upper].

    ``unit`` is a power of two; 1 unless :func:`~milp_recourse.program.equilibrate.equilibrate` chose another.
    ``lattice``: what may be set, in the feature's unit; only ``integral`` is a part of the program.
    """

    feature: str
    lower: float
    upper: float
    integral: bool = False
    unit: float = 1.0
    lattice: Lattice | None = None

    @property
    def inputs(self) -> tuple[int, ...]:
        """An action is computed from no atoms."""
        return ()


@dataclass(frozen=True)
class Switch:
    """``acted`` if ``feature`` is acted on, else ``natural``."""

    feature: str
    acted: Affine
    natural: Affine

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """The atoms that it is computed from."""
        return *self.acted.terms, *self.natural.terms


@dataclass(frozen=True)
class Elementary:
    """An elementary function of a form; ``level`` is the argument at which an indicator is 1."""

    function: Function
    argument: Affine
    level: int = 0

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """The atoms that it is computed from."""
        return tuple(self.argument.terms)


Atom = Action | Switch | Elementary


def constant_value(atom: Elementary) -> Fraction | None:
    """The atom's value if it is a rational constant, else None.

    Raises
    ------
    Mixed
        The argument is constant, one number per applicant, and the function can be irrational.
    """
    if not atom.argument.is_constant:
        return None
    argument = atom.argument.constant
    if isinstance(argument, Rationals):
        if atom.function == "indicator":
            return cast(Fraction, argument.indicator(atom.level))
        if atom.function not in ("relu", "square"):
            raise everyone(len(argument.numerator))  # irrational for most, rational for some
        return cast(Fraction, getattr(argument, atom.function)())
    value = enclose(atom.function, Enclosure.of(argument), atom.level)
    return value.lower if value.exact else None


def enclose(function: Function, x: Enclosure, level: int = 0) -> Enclosure:
    """An elementary function in exact arithmetic."""
    if function == "indicator":
        low, high = (Fraction(int(end == level)) for end in (x.lower, x.upper))
        return Enclosure(low, high) if x.exact else Enclosure(Fraction(0), Fraction(1))
    result: Enclosure = getattr(x, function)()
    return result


class Builder:
    """Collects a program's atoms; an elementary function of the same form is added only once."""

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self._known: dict[tuple[object, ...], list[tuple[Fraction, Affine]]] = {}

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

    def affine(self, weight: Array, bias: Array, z: Sequence[Affine]) -> list[Affine]:
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
