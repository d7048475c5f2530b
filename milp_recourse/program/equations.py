"""Structural equations as affine forms over atoms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from numpy.typing import NDArray

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
from milp_recourse.program.affine import Affine
from milp_recourse.program.functions import Function
from milp_recourse.program.neutral_program import Atom, Elementary, constant_value


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
