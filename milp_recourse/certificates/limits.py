"""What a checker may refuse by its size alone (section 9 of the document), told before anything is proven."""

from __future__ import annotations

from fractions import Fraction

from milp_recourse.domain.expression import (
    Constant,
    Expression,
    NetworkOutput,
    Product,
    Relu,
    Sigmoid,
    Square,
    Variable,
)
from milp_recourse.domain.network import ReluNetwork
from milp_recourse.instance import Instance

DEEPEST, MOST_LAYERS, LONGEST = 50, 100, 2**17

_DOUBLE = 128  # digits of ordinary doubles on either side of the point; extreme ones are looked at
_LINE = 40  # digits that replacing a unit by a line adds: slopes are multiples of 2^-32

Digits = tuple[int, int]
"""Binary digits before and behind the point."""


def too_large(instance: Instance) -> str | None:
    """Which limit of the document an instance exceeds, or None."""
    equations = [m.equation for m in instance.scm.mechanisms.values()]
    if max(map(_depth, equations), default=0) > DEEPEST:
        return f"an equation is nested more than {DEEPEST} deep, which version 1 of the certificate excludes"
    parts = [
        part.network for equation in equations for part in equation.walk() if isinstance(part, NetworkOutput)
    ]
    networks = [*parts, *([instance.classifier] if isinstance(instance.classifier, ReluNetwork) else [])]
    if any(len(network.weights) > MOST_LAYERS for network in networks):
        return f"a network has more than {MOST_LAYERS} layers, which version 1 of the certificate excludes"
    known: dict[str, Digits] = {}
    for name in instance.scm.order:
        found = _digits(instance.scm.mechanisms[name].equation, known)
        known[name] = max(found[0], _DOUBLE), max(found[1], _DOUBLE)
        if sum(found) + found[1] > LONGEST:
            return f"exact values of {name!r} take too many digits for version 1 of the certificate"
    return None


def _depth(expression: Expression) -> int:
    return max((1 + _depth(child) for child in expression.children()), default=0)


def _digits(expression: Expression, known: dict[str, Digits]) -> Digits:
    """The most that an equation's exact value may take, roughly and from above."""
    if isinstance(expression, Constant):
        value = Fraction(expression.value)
        return value.numerator.bit_length(), value.denominator.bit_length()
    if isinstance(expression, Variable):
        return known[expression.name]
    inner = [_digits(child, known) for child in expression.children()]
    most = max(before for before, _ in inner), max(behind for _, behind in inner)
    if isinstance(expression, Product):
        return sum(before for before, _ in inner) + _LINE, sum(behind for _, behind in inner) + _LINE
    if isinstance(expression, Square):
        return 2 * most[0] + _LINE, 2 * most[1] + _LINE
    if isinstance(expression, Sigmoid):
        return 1, _DOUBLE
    if isinstance(expression, NetworkOutput):
        layers = len(expression.network.weights)
        return most[0] + layers * _DOUBLE, most[1] + layers * (_DOUBLE + _LINE)
    return most[0] + _LINE, most[1] + (_LINE if isinstance(expression, Relu) else 0)
