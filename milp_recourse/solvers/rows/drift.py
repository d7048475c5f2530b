r"""By how much a written program's quantities can differ from the exact ones of the same action.

A program's rows hold every curve only up to its band, and every coefficient up to its rounding. If atom j may
be off by :math:`e_j`, a form :math:`\sum_j c_j a_j` may be off by :math:`\sum_j |c_j| e_j` plus rounding, a
ReLU by as much as its argument, and a curve f by its band's width plus :math:`\max |f'|` times that. The same
goes on through the network to its logit. It takes rows that state what bounds say of stable units
(``stated``): else a point may break them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.conditions import Factor
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.program.forms import Action, Affine, Switch
from milp_recourse.program.functions import CURVES, band
from milp_recourse.program.neutral_program import Program
from milp_recourse.solvers.rows.atom_rows import Cut
from milp_recourse.solvers.rows.bounds import ProgramBounds
from milp_recourse.solvers.rows.mixed_integer import MixedInteger, slack

Array = NDArray[np.float64]

UP = 1 + 1e-9
"""What errors are multiplied by, so that the rounding of their own computation is covered."""


@dataclass(frozen=True)
class Drift:
    """What the quantities of a written program can be off by.

    Attributes
    ----------
    logit, ball, cost
        The network's logit, or inf where a column that trees split on can be off; the left side of the
        plausibility constraint, the cost.
    rows
        Rows of the program, by name.
    followed
        Counterfactual values that conditions are about, by feature or pair of features.
    """

    logit: float
    ball: float
    cost: float
    rows: Mapping[str, float]
    followed: Mapping[Factor, float]

    @staticmethod
    def largest(several: Sequence[Drift]) -> Drift:
        """What the quantities of any of several programs of one problem can be off by."""

        def each(name: str) -> dict[Any, float]:
            keys = {key for one in several for key in getattr(one, name)}
            return {key: max(getattr(one, name).get(key, 0.0) for one in several) for key in keys}

        logit, ball, cost = (max(getattr(one, name) for one in several) for name in ("logit", "ball", "cost"))
        return Drift(logit, ball, cost, each("rows"), each("followed"))


def drift(program: Program, bounds: ProgramBounds, mip: MixedInteger, cut: Cut) -> Drift:
    """What the rows that :func:`~milp_recourse.solvers.rows.encode.encode` writes leave open."""
    rounding = 4 * max((_rounding(mip, k) for k in range(len(mip.rows))), default=0.0)
    errors: list[float] = []

    def off(form: Affine) -> float:
        numbers = (form.constant, *form.terms.values())
        exact = all(Fraction(float(c)) == c for c in numbers) and not any(errors[k] for k in form.terms)
        return 0.0 if exact else UP * sum(abs(float(c)) * errors[k] for k, c in form.terms.items()) + rounding

    for k, atom in enumerate(program.atoms):
        if isinstance(atom, Action):
            errors.append(0.0)
        elif isinstance(atom, Switch):
            plain = all(_plain(form) for form in (atom.acted, atom.natural))
            errors.append(max(off(atom.acted), off(atom.natural)) + (0.0 if plain else rounding))
        elif atom.function in CURVES:
            low, high = (float(end) for end in bounds.arguments[k])
            ends = cut(atom.function, low, high)
            _, below, above = band(atom.function, ends[:-1], ends[1:])
            rows = rounding if len(ends) > 2 else 0.0  # of several parts round where they start
            error = _carried(atom.function, low, high, off(atom.argument) + rows)
            errors.append(UP * float((above - below).max()) + rows + error)
        elif atom.function == "indicator":
            errors.append(0.0 if off(atom.argument) < 0.5 else 1.0)
        else:
            errors.append(off(atom.argument))
    cost = 0.0
    for term in program.cost_terms:
        error, size = off(term.delta), _size(mip, f"delta_{term.feature}")
        _, square, linear, largest = map(float, term.prices.per(1 / term.unit))
        cost += UP * (square * (2 * size * error + error**2) + (linear + largest) * error)
    ball = 0.0
    if program.ball is not None:
        ball = off(program.ball.linear)
        for j, (weight, residual) in enumerate(program.ball.squares):
            error, size = off(residual), _size(mip, f"residual_{j}")
            ball += UP * float(weight) * (2 * size * error + error**2)
    return Drift(
        _logit(program, np.array([off(one) for one in program.columns]), rounding),
        ball,
        cost,
        {row.name: off(row.form) for row in program.rows},
        {name: off(form) for name, form in program.followed.items()},
    )


def _plain(form: Affine) -> bool:
    """Whether a form is a double or an atom alone: the rows of a switch between such forms round nothing."""
    return not form.terms or (not form.constant and [*form.terms.values()] == [1])


def _logit(program: Program, error: Array, rounding: float) -> float:
    if isinstance(program.classifier, TreeEnsemble):
        return math.inf if error[[*program.classifier.split]].any() else 0.0
    assert isinstance(program.classifier, ReluNetwork)
    for weight in program.classifier.weights:
        error = UP * (np.abs(weight) @ error) + rounding
    return float(error[0])


def _carried(function: str, low: float, high: float, error: float) -> float:
    """By how much a curve moves where its argument moves by ``error`` from a point of an interval."""
    if not error:
        return 0.0
    curve, low, high = CURVES[function], low - error, high + error
    if low <= curve.low or high >= curve.high:
        return math.inf
    at = np.array([low, high, *([0.0] if low < 0 < high else [])])  # all slopes are largest at one of these
    return UP * float(np.abs(curve.derivative(at)).max()) * error


def _size(mip: MixedInteger, name: str) -> float:
    """The largest absolute value that a column can have; 0 if there is none, because it is constant."""
    if name not in mip.names:
        return 0.0
    k = mip.names.index(name)
    return max(abs(mip.lower[k]), abs(mip.upper[k]))


def _rounding(mip: MixedInteger, k: int) -> float:
    """By how much the coefficients' rounding can move a row's left side."""
    row = mip.rows[k]
    sizes = [abs(c) * max(abs(mip.lower[j]), abs(mip.upper[j])) for j, c in row.coefficients.items()]
    ends = [abs(end) for end in (row.lower, row.upper) if math.isfinite(end)]
    return slack(2) * (sum(sizes) + max(ends, default=0.0))
