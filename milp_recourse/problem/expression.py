"""The expressions that structural equations are written in.

An expression is a number, a feature, or one of: sum, product, relu, sigmoid, square, and the output of a ReLU
network. It is evaluated in float64 (:meth:`Expression.evaluate`, for search and sampling), evaluated exactly
(:meth:`Expression.enclose`, for judging), and turned into forms of a program
(:mod:`milp_recourse.program.forms`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from operator import add, mul

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.enclosure import Enclosure, gamma
from milp_recourse.problem.network import ReluNetwork

Array = NDArray[np.float64]
Values = Mapping[str, Array]
Enclosures = Mapping[str, Enclosure]
Doubles = Mapping[str, float]
InDoubles = Callable[[Doubles], tuple[float, float]]


class Expression(ABC):
    """A formula over features. Immutable; ``+``, ``-`` and ``*`` build larger ones."""

    @abstractmethod
    def evaluate(self, values: Values) -> Array:
        """Value in float64, elementwise over arrays of a common shape."""

    @abstractmethod
    def enclose(self, values: Enclosures) -> Enclosure:
        """Value in exact arithmetic: a point if no sigmoid is involved, else a proven interval."""

    def shift(self, before: Enclosures, after: Enclosures, moved: Set[str]) -> Enclosure:
        """The value after less the value before, in exact arithmetic.

        Parameters
        ----------
        moved
            Names of all features whose values may differ. Sub-expressions that read none of them are skipped.
        """
        return self.enclose(after) - self.enclose(before)

    @property
    @abstractmethod
    def children(self) -> tuple[Expression, ...]:
        """The direct sub-expressions."""

    def in_doubles(self) -> tuple[InDoubles, int] | None:
        """A function from doubles, each within one rounding of the exact value, to the expression's value and
        the sum of its absolute terms in float64; and the number of roundings. None for expressions with a
        sigmoid or a network in them.
        """
        return None

    @cached_property
    def parents(self) -> frozenset[str]:
        """Names of the features the expression reads."""
        return frozenset().union(*(child.parents for child in self.children))

    def walk(self) -> tuple[Expression, ...]:
        """Every sub-expression, this one first."""
        return (self, *(part for child in self.children for part in child.walk()))

    @cached_property
    def depth(self) -> int:
        """How deep expressions are nested inside; 0 for a constant or a variable."""
        return max((1 + child.depth for child in self.children), default=0)

    def __add__(self, other: Expression | float) -> Expression:
        return Sum((self, as_expression(other)))

    def __radd__(self, other: float) -> Expression:
        return Sum((as_expression(other), self))

    def __neg__(self) -> Expression:
        return Product((Constant(-1.0), self))

    def __sub__(self, other: Expression | float) -> Expression:
        return self + (-as_expression(other))

    def __rsub__(self, other: float) -> Expression:
        return as_expression(other) + (-self)

    def __mul__(self, other: Expression | float) -> Expression:
        return Product((self, as_expression(other)))

    def __rmul__(self, other: float) -> Expression:
        return Product((as_expression(other), self))


def as_expression(value: Expression | float) -> Expression:
    """The expression itself, or a number as a :class:`Constant`."""
    return value if isinstance(value, Expression) else Constant(float(value))


@dataclass(frozen=True)
class Constant(Expression):
    """A constant; its exact value is that of the double."""

    value: float

    def evaluate(self, values: Values) -> Array:
        return np.asarray(self.value)

    @cached_property
    def _exact(self) -> Enclosure:
        return Enclosure.of(self.value)

    def enclose(self, values: Enclosures) -> Enclosure:
        return self._exact

    def in_doubles(self) -> tuple[InDoubles, int] | None:
        held = self.value, abs(self.value)
        return lambda values: held, 0

    @cached_property
    def children(self) -> tuple[Expression, ...]:
        return ()


@dataclass(frozen=True)
class Variable(Expression):
    """The value of a feature."""

    name: str

    def evaluate(self, values: Values) -> Array:
        return values[self.name]

    def enclose(self, values: Enclosures) -> Enclosure:
        return values[self.name]

    def in_doubles(self) -> tuple[InDoubles, int] | None:
        name = self.name
        return lambda values: (x := values[name], abs(x)), 1

    @cached_property
    def children(self) -> tuple[Expression, ...]:
        return ()

    @cached_property
    def parents(self) -> frozenset[str]:
        return frozenset((self.name,))


@dataclass(frozen=True)
class Sum(Expression):
    """t_1 + ... + t_n."""

    terms: tuple[Expression, ...]

    def evaluate(self, values: Values) -> Array:
        return reduce(add, (term.evaluate(values) for term in self.terms))

    def enclose(self, values: Enclosures) -> Enclosure:
        return reduce(add, (term.enclose(values) for term in self.terms))

    def shift(self, before: Enclosures, after: Enclosures, moved: Set[str]) -> Enclosure:
        terms = (t for t in self.terms if not moved.isdisjoint(t.parents))
        return reduce(add, (term.shift(before, after, moved) for term in terms))

    def in_doubles(self) -> tuple[InDoubles, int] | None:
        return _joined(add, self.terms, max)

    @cached_property
    def children(self) -> tuple[Expression, ...]:
        return self.terms


@dataclass(frozen=True)
class Product(Expression):
    """f_1 * ... * f_n."""

    factors: tuple[Expression, ...]

    def evaluate(self, values: Values) -> Array:
        return reduce(mul, (factor.evaluate(values) for factor in self.factors))

    def enclose(self, values: Enclosures) -> Enclosure:
        return reduce(mul, (factor.enclose(values) for factor in self.factors))

    def shift(self, before: Enclosures, after: Enclosures, moved: Set[str]) -> Enclosure:
        factors = [f for f in self.factors if not moved.isdisjoint(f.parents)]
        if len(factors) != 1:
            return super().shift(before, after, moved)
        still = (f.enclose(before) for f in self.factors if f is not factors[0])
        return reduce(mul, still, factors[0].shift(before, after, moved))

    def in_doubles(self) -> tuple[InDoubles, int] | None:
        return _joined(mul, self.factors, sum)

    @cached_property
    def children(self) -> tuple[Expression, ...]:
        return self.factors


@dataclass(frozen=True)
class _OfOne(Expression):
    """A function of one argument."""

    argument: Expression

    @cached_property
    def children(self) -> tuple[Expression, ...]:
        return (self.argument,)


class Relu(_OfOne):
    """max(0, argument)."""

    def evaluate(self, values: Values) -> Array:
        positive: Array = np.maximum(self.argument.evaluate(values), 0.0)
        return positive

    def enclose(self, values: Enclosures) -> Enclosure:
        return self.argument.enclose(values).relu()

    def in_doubles(self) -> tuple[InDoubles, int] | None:
        part = self.argument.in_doubles()
        if part is None:
            return None
        inside, roundings = part

        def relu(values: Doubles) -> tuple[float, float]:
            value, size = inside(values)
            return max(0.0, value), size

        return relu, roundings


class Sigmoid(_OfOne):
    """1 / (1 + exp(-argument))."""

    def evaluate(self, values: Values) -> Array:
        return sigmoid(self.argument.evaluate(values))

    def enclose(self, values: Enclosures) -> Enclosure:
        return self.argument.enclose(values).sigmoid()


class Square(_OfOne):
    """argument^2."""

    def evaluate(self, values: Values) -> Array:
        squared: Array = np.square(self.argument.evaluate(values))
        return squared

    def enclose(self, values: Enclosures) -> Enclosure:
        return self.argument.enclose(values).square()

    def in_doubles(self) -> tuple[InDoubles, int] | None:
        return _joined(mul, (self.argument, self.argument), sum)


@dataclass(frozen=True)
class NetworkOutput(Expression):
    """The single output of a ReLU network whose inputs are expressions."""

    network: ReluNetwork
    inputs: tuple[Expression, ...]

    def evaluate(self, values: Values) -> Array:
        columns = np.broadcast_arrays(*(e.evaluate(values) for e in self.inputs))
        return self.network.evaluate(np.stack(columns, axis=-1))[..., 0]

    def enclose(self, values: Enclosures) -> Enclosure:
        return self.network.enclose([e.enclose(values) for e in self.inputs])[0]

    @cached_property
    def children(self) -> tuple[Expression, ...]:
        return self.inputs


def _joined(
    operation: Callable[[float, float], float],
    parts: tuple[Expression, ...],
    roundings_of: Callable[[list[int]], int],
) -> tuple[InDoubles, int] | None:
    """:meth:`Expression.in_doubles` of a sum or product."""
    found = []
    for part in parts:
        own = part.in_doubles()
        if own is None:
            return None
        found.append(own)
    roundings = roundings_of([own[1] for own in found]) + len(found) - 1
    if roundings > MOST_ROUNDINGS:
        return None
    (first, _), *others = found
    rest = [function for function, _ in others]

    def joined(values: Doubles) -> tuple[float, float]:
        value, size = first(values)
        for function in rest:
            other, more = function(values)
            value, size = operation(value, other), operation(size, more)
        return value, size

    return joined, roundings


def rounded(expression: Expression) -> InDoubles | None:
    """A function from doubles to an expression's value in float64 and a bound on its error.

    The bound holds for all exact values that are within one rounding of the doubles, unless numbers
    underflow. None if the expression has a sigmoid or a network in it, or more than
    :data:`MOST_ROUNDINGS`.
    """
    found = expression.in_doubles()
    if found is None:
        return None
    function, share = found[0], gamma(found[1])

    def near(values: Doubles) -> tuple[float, float]:
        value, size = function(values)
        return value, share * size

    return near


MOST_ROUNDINGS = 1 << 12
"""Expressions with more roundings are evaluated exactly instead."""


def sigmoid(z: Array) -> Array:
    """1 / (1 + exp(-z)) in float64, without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * np.asarray(z, dtype=np.float64)))


def logit(p: Array) -> Array:
    """log(p / (1 - p)) in float64; infinite at 0 and 1, nan outside."""
    with np.errstate(divide="ignore", invalid="ignore"):
        odds: Array = np.log(p) - np.log1p(-np.asarray(p, dtype=np.float64))
        return odds


def as_fraction(value: Expression) -> Fraction | None:
    """The exact value of an expression that reads no feature and is rational, else None."""
    if value.parents:
        return None
    enclosed = value.enclose({})
    return enclosed.lower if enclosed.exact else None
