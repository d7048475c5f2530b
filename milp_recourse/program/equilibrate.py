r"""A program rewritten, exactly, in units in which its numbers are of similar size.

Solvers and bounds in floating point compare with absolute tolerances, so without this it would matter whether
income is in euros or in millions. Every quantity v of a program is replaced by :math:`v / 2^k` with k chosen
so that its size is about 16 to 32. The size of

* an action is the length of its interval, or 16 cost scales if that is shorter (whole numbers stay);
* a ReLU or square is that of its values, by :math:`\max(0, v) = 2^k \max(0, v / 2^k)`, in equations and in
  the network, whose weights :math:`W_k` become :math:`D_{k+1}^{-1} W_k D_k`;
* a residual follows from its weight, and that of a domain row or of the logit from its values.

Dividing by a power of two is exact in float64, so nothing is rounded. If a number would leave the range of
float64, the program is returned as it is. Sizes are estimated from sample points; a bad estimate gives units
that suit less, and never a wrong program.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.enclosure import exponent
from milp_recourse.problem.instance import Acceptance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.program.forms import Action, Affine, Atom, Switch
from milp_recourse.program.functions import evaluate
from milp_recourse.program.neutral_program import Ball, CostTerm, Program, Row

Array = NDArray[np.float64]

_SAMPLES = 64
_TARGET = 5  # sizes end up in [2^4, 2^5)
_FURTHEST = 400  # quantities whose size has a larger exponent keep their unit


@dataclass(frozen=True)
class Units:
    """By what, powers of two, :func:`equilibrate` has divided the numbers of a program.

    Attributes
    ----------
    atoms, arguments
        Of every atom, and of what it is applied to (1 where it is no elementary function).
    hidden
        Of the hidden units' arguments, one array per layer.
    """

    atoms: Array
    arguments: Array
    hidden: tuple[Array, ...]


def as_it_is(program: Program) -> tuple[Program, Units]:
    """The program as it is, and units of 1."""
    network, count = program.classifier, len(program.atoms)
    layers = network.biases[:-1] if isinstance(network, ReluNetwork) else ()
    return program, Units(np.ones(count), np.ones(count), tuple(np.ones(len(b)) for b in layers))


def equilibrate(program: Program) -> tuple[Program, Units]:
    """The program in units in which its numbers are of similar size, and these units.

    :meth:`Program.decode` converts actions back. Programs with tree ensembles are returned as they are.
    """
    network = program.classifier
    if not isinstance(network, ReluNetwork) or any(a.unit != 1.0 for a in program.actions):
        return as_it_is(program)
    values = _samples(program)
    units, inner, atoms = _atoms(program, values)
    forms = [Affine(terms={k: Fraction(unit)}) for k, unit in enumerate(units)]
    column_units = [_column_unit(form, units, values) for form in program.columns]
    x = np.array([_evaluate(form, values) for form in program.columns]).T
    scaled = _network(network, np.array(column_units), x)
    if scaled is None:
        return as_it_is(program)
    classifier, (*hidden, last) = scaled
    logit_unit = float(last[0])
    action_units = {a.feature: a.unit for a in atoms if isinstance(a, Action)}
    accept = program.accept
    changed = replace(
        program,
        atoms=tuple(atoms),
        columns=tuple(
            form.substitute(forms).scaled(1 / Fraction(unit))
            for form, unit in zip(program.columns, column_units, strict=True)
        ),
        classifier=classifier,
        accept=Acceptance(accept.threshold / logit_unit, accept.margin / logit_unit, accept.strict),
        rows=tuple(_row(row, forms, power(_evaluate(row.form, values))) for row in program.rows),
        ball=None if program.ball is None else _ball(program.ball, forms),
        cost_terms=tuple(_cost_term(program, t, forms, action_units[t.feature]) for t in program.cost_terms),
        factual={name: x / action_units.get(name, 1.0) for name, x in program.factual.items()},
        followed={name: form.substitute(forms) for name, form in program.followed.items()},
    )
    made = changed, Units(np.array(units), np.array(inner), tuple(hidden))
    return made if _exact(program, changed, logit_unit) else as_it_is(program)


def power(sizes: Array | float) -> float:
    """The power of two p for which the largest finite size / p is in [2^4, 2^5); 1 if all are 0."""
    sizes = np.abs(np.asarray(sizes, dtype=np.float64))
    largest = float(np.max(sizes, where=np.isfinite(sizes), initial=0.0))
    exponent = math.frexp(largest)[1] - _TARGET
    return 2.0**exponent if largest > 0 and abs(exponent) <= _FURTHEST else 1.0


def _samples(program: Program) -> Array:
    """Atom values (atoms, samples) in float64: half of the actions at corners, switches decided at random."""
    rng = np.random.default_rng(0)
    values = np.zeros((len(program.atoms), _SAMPLES))
    with np.errstate(all="ignore"):
        for k, atom in enumerate(program.atoms):
            if isinstance(atom, Action):
                share = rng.random(_SAMPLES)
                share[: _SAMPLES // 2] = np.round(share[: _SAMPLES // 2])
                values[k] = atom.lower + share * (atom.upper - atom.lower)
            elif isinstance(atom, Switch):
                acted, natural = _evaluate(atom.acted, values), _evaluate(atom.natural, values)
                values[k] = np.where(rng.random(_SAMPLES) < 0.5, acted, natural)
            else:
                values[k] = evaluate(atom.function, _evaluate(atom.argument, values), atom.level)
    return values


def _evaluate(form: Affine, values: Array) -> Array:
    total = np.full(_SAMPLES, float(form.constant))
    with np.errstate(all="ignore"):
        for k, c in form.terms.items():
            total = total + float(c) * values[k]
    return total


def _atoms(program: Program, values: Array) -> tuple[list[float], list[float], list[Atom]]:
    """The unit of every atom and of its argument, and the atoms rewritten in these units."""
    units: list[float] = []
    arguments: list[float] = []
    atoms: list[Atom] = []
    forms: list[Affine] = []
    terms = {t.feature: t for t in program.cost_terms}
    for k, atom in enumerate(program.atoms):
        unit = inner = 1.0
        scaled: Atom
        if isinstance(atom, Action):
            unit = _action_unit(atom, terms[atom.feature])
            scaled = replace(atom, lower=atom.lower / unit, upper=atom.upper / unit, unit=unit)
        elif isinstance(atom, Switch):
            unit = _switch_unit(program, atom, units, values[k])
            inverse = 1 / Fraction(unit)
            scaled = replace(
                atom,
                acted=atom.acted.substitute(forms).scaled(inverse),
                natural=atom.natural.substitute(forms).scaled(inverse),
            )
        else:
            if atom.function in ("relu", "square"):
                inner = power(_evaluate(atom.argument, values))
                unit = inner if atom.function == "relu" else inner**2
            scaled = replace(atom, argument=atom.argument.substitute(forms).scaled(1 / Fraction(inner)))
        units.append(unit)
        arguments.append(inner)
        atoms.append(scaled)
        forms.append(Affine(terms={k: Fraction(unit)}))
    return units, arguments, atoms


def _action_unit(action: Action, term: CostTerm) -> float:
    if action.integral:
        return 1.0
    size, scaled = action.upper - action.lower, 16 * term.length
    return power(min(size, scaled) if size > 0 else scaled)


def _switch_unit(program: Program, switch: Switch, units: Sequence[float], values: Array) -> float:
    """A switch's unit: that of the action if the switch is between it and the natural value."""
    if len(switch.acted.terms) == 1 and switch.acted.constant == 0:
        [(k, c)] = switch.acted.terms.items()
        if c == 1 and isinstance(program.atoms[k], Action):
            return units[k]
    return power(values)


def _column_unit(form: Affine, units: Sequence[float], values: Array) -> float:
    """A column's unit: that of the atom if the column is one atom, so that both are the same variable."""
    if len(form.terms) == 1 and form.constant == 0:
        [(k, c)] = form.terms.items()
        if c == 1:
            return units[k]
    return power(_evaluate(form, values))


def _network(network: ReluNetwork, units: Array, x: Array) -> tuple[ReluNetwork, list[Array]] | None:
    """The network for columns in the given units, and the units of each layer's arguments; None if a weight
    would be rounded."""
    weights, biases, layers = [], [], []
    with np.errstate(all="ignore"):
        for weight, bias in zip(network.weights, network.biases, strict=True):
            pre = x @ weight.T + bias
            outer = np.array([power(column) for column in pre.T])
            w, b = weight * units / outer[:, None], bias / outer
            if not (np.array_equal(w * outer[:, None] / units, weight) and np.array_equal(b * outer, bias)):
                return None
            weights.append(w)
            biases.append(b)
            layers.append(outer)
            x, units = np.maximum(pre, 0.0), outer
    return ReluNetwork(tuple(weights), tuple(biases)), layers


def _row(row: Row, forms: Sequence[Affine], unit: float) -> Row:
    form = row.form.substitute(forms).scaled(1 / Fraction(unit))
    return replace(row, form=form, lower=row.lower / unit, upper=row.upper / unit)


def _ball(ball: Ball, forms: Sequence[Affine]) -> Ball:
    """The ball with residuals in units near their deviation: w r^2 = (w 4^k) (r / 2^k)^2, w 4^k about 1."""
    squares = []
    for weight, form in ball.squares:
        unit = Fraction(2) ** -(exponent(weight) // 2)
        squares.append((weight * unit**2, form.substitute(forms).scaled(1 / unit)))
    return Ball(tuple(squares), ball.linear.substitute(forms))


def _cost_term(program: Program, term: CostTerm, forms: Sequence[Affine], unit: float) -> CostTerm:
    """The term in the action's unit; so is its change where that is an affine form of the action."""
    delta, length = term.delta.substitute(forms), term.length / unit
    if not all(isinstance(program.atoms[k], Action) for k in term.delta.terms):
        return replace(term, delta=delta, length=length)
    exact, graded = Fraction(unit), math.isfinite(length)
    size = term.unit / exact if graded else term.unit
    return replace(term, delta=delta.scaled(1 / exact), unit=size, length=length)


def _exact(program: Program, changed: Program, logit_unit: float) -> bool:
    """Whether no number was rounded, which happens if one leaves the range of float64."""
    pairs = [
        (changed.accept.threshold * logit_unit, program.accept.threshold),
        (changed.accept.margin * logit_unit, program.accept.margin),
    ]
    for old, new in zip(program.actions, changed.actions, strict=True):
        x = program.factual[old.feature]
        pairs += [(new.lower * new.unit, old.lower), (new.upper * new.unit, old.upper)]
        pairs.append((changed.factual[old.feature] * new.unit, x))
    for row, scaled in zip(program.rows, changed.rows, strict=True):
        for a, b in ((row.lower, scaled.lower), (row.upper, scaled.upper)):
            if a and (not math.isfinite(a / b) or math.frexp(a / b)[0] != 0.5):
                return False
    return all(a == b for a, b in pairs)
