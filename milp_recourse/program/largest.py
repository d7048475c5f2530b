"""The largest logit over a box on which no unit of the network changes its sign, in rational arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.network import ReluNetwork
from milp_recourse.program.forms import Action, Affine, Elementary
from milp_recourse.program.neutral_program import Program

MOST_UNITS = 4
"""So many units that an action contradicts are asked for their signs: with more, the box is rather split."""

MOST_WEIGHTS = 2**20
"""Larger networks would take seconds, which a time limit may not leave."""

Masks = Sequence[NDArray[np.bool_]]
Values = Mapping[str, Sequence[float]]


def best_of_box(program: Program, active: Masks, values: Values, need: Fraction) -> dict[str, float] | None:
    r"""The action of the largest logit in a box; None if it is proven that no action there reaches ``need``.

    The logit L is affine in the actions and in indicators of their labels, so each action takes the best of
    its values by itself. The action that this gives may contradict the sign s that the argument z of a unit
    is to have. Wherever :math:`s z \ge 0`, no logit is above

    .. math:: \min_{\lambda \ge 0} \max_{box} (L + \lambda s z),

    whose minimum is at a :math:`\lambda` that makes the slope of an action zero.

    Parameters
    ----------
    program
        Fixed.
    active
        A mask for every hidden layer: of the units whose arguments are not negative at any action that
        counts. Those of the others are not positive there.
    values
        Of each action: the ends of its interval, or the numbers of its labels.

    Returns
    -------
    dict or None
        {} where curves, or a ReLU that bends in the box, lead to the classifier's inputs, and for networks of
        more than :data:`MOST_WEIGHTS`.
    """
    found = _line(program, active, values)
    if found is None:
        return {}
    columns, logit, most, action = found
    if most < need:
        return None
    network = _network(program)
    at = {name: [value] for name, value in action.items()}  # inputs that are no forms do not matter there
    row = [
        column.constant if column.is_constant else (_largest(program, column, at) or (Fraction(0),))[0]
        for column in columns
    ]
    for layer, unit, sign in islice(_contradicted(network, row, active), MOST_UNITS):
        argument = _sum(columns, *network.piece(active, layer, unit)).scaled(sign)
        for k, slope in argument.terms.items():
            price = -logit.terms.get(k, Fraction(0)) / slope
            bound = _largest(program, logit + argument.scaled(price), values) if price > 0 else None
            if bound is not None and bound[0] < need:
                return None
    return action


def largest_logit(program: Program, active: Masks, values: Values) -> Fraction | None:
    """The largest logit in a box where exactly these units are active; None where :func:`best_of_box` has
    {}."""
    found = _line(program, active, values)
    return None if found is None else found[2]


def _line(
    program: Program, active: Masks, values: Values
) -> tuple[list[Affine], Affine, Fraction, dict[str, float]] | None:
    """The classifier's inputs, as far as they are forms of actions and indicators in the box, the logit, its
    largest value, and where that is; None where the logit is no such form, and for large networks."""
    network = _network(program)
    if sum(weight.size for weight in network.weights) > MOST_WEIGHTS:
        return None
    forms = _without_relus(program, values)
    columns = [column.substitute(forms) for column in program.columns]
    logit = _sum(columns, *network.piece(active))
    found = _largest(program, logit, values)
    return None if found is None else (columns, logit, *found)


def _network(program: Program) -> ReluNetwork:
    assert isinstance(program.classifier, ReluNetwork)
    return program.classifier


def _sum(columns: Sequence[Affine], slopes: Sequence[Fraction], constant: Fraction) -> Affine:
    """A constant and the columns times their slopes."""
    total, resting = Affine(), [(constant.numerator, constant.denominator)]
    for slope, column in zip(slopes, columns, strict=True):
        if not column.is_constant:
            total = total + column.scaled(slope)
        elif slope:
            one = column.constant  # whole numbers: Fraction would cancel factors in every product
            resting.append((slope.numerator * one.numerator, slope.denominator * one.denominator))
    unit = math.lcm(*(denominator for _, denominator in resting))
    return total + Affine(Fraction(sum(n * (unit // denominator) for n, denominator in resting), unit))


def _contradicted(
    network: ReluNetwork, row: Sequence[Fraction], active: Masks
) -> Iterator[tuple[int, int, int]]:
    """Layer, number and sign of the units whose arguments at an input row have the other sign."""
    for layer, (arguments, on) in enumerate(zip(network.arguments(row, active), active, strict=False)):
        for unit, (z, positive) in enumerate(zip(arguments, on.tolist(), strict=True)):
            if (z < 0) if positive else (z > 0):
                yield layer, unit, 1 if positive else -1


def _without_relus(program: Program, values: Values) -> list[Affine]:
    """Each atom as a form of actions and indicators, where it is one: a ReLU whose argument has one sign in
    the box is its argument, or 0."""
    forms: list[Affine] = []
    for k, atom in enumerate(program.atoms):
        form = Affine.atom(k)
        if isinstance(atom, Elementary) and atom.function == "relu":
            argument = atom.argument.substitute(forms)
            most, least = (_largest(program, argument.scaled(side), values) for side in (1, -1))
            if most is not None and most[0] <= 0:
                form = Affine()
            elif least is not None and least[0] <= 0:
                form = argument
        forms.append(form)
    return forms


def _largest(program: Program, form: Affine, values: Values) -> tuple[Fraction, dict[str, float]] | None:
    """The largest value of a form of actions and indicators, and where; None for one of other atoms."""
    parts: dict[str, list[tuple[Fraction, int | None]]] = {action.feature: [] for action in program.actions}
    for k, slope in form.terms.items():
        of = _label(program, k)
        if of is None:
            return None
        parts[of[0]].append((slope, of[1]))
    best, where = form.constant, {}
    for name, own in parts.items():
        much, where[name] = max((_reached(own, float(value)), float(value)) for value in values[name])
        best += much
    return best, where


def _reached(parts: Sequence[tuple[Fraction, int | None]], value: float) -> Fraction:
    """What an action at a value adds: slopes times the value, or times whether it is a label."""
    exact = Fraction(value)
    return sum((slope * (exact if label is None else exact == label) for slope, label in parts), Fraction(0))


def _label(program: Program, k: int) -> tuple[str, int | None] | None:
    """Of an action its feature and None, of an indicator of an action the feature and the label; None of
    other atoms."""
    atom = program.atoms[k]
    if isinstance(atom, Action):
        return atom.feature, None
    if isinstance(atom, Elementary) and atom.function == "indicator" and not atom.argument.constant:
        [(of, slope), *more] = atom.argument.terms.items()
        source = program.atoms[of]
        if slope == 1 and not more and isinstance(source, Action):
            return source.feature, atom.level
    return None
