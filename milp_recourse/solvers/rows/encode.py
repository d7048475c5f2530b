"""The whole program as a mixed-integer program, for switches open or decided."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import Unsupported
from milp_recourse.problem.asked_model import AskedModel
from milp_recourse.problem.conditions import TRUE, leaves
from milp_recourse.problem.conditions import Row as ConditionRow
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.program.forms import Action, Affine, Elementary, Switch
from milp_recourse.program.lower import lower
from milp_recourse.program.neutral_program import CostTerm, Program
from milp_recourse.solvers.rows.atom_rows import (
    Cut,
    curve_rows,
    equal_parts,
    indicator_rows,
    lattice_rows,
    relu_rows,
    switch_rows,
)
from milp_recourse.solvers.rows.bounds import ProgramBounds, hull
from milp_recourse.solvers.rows.demand_rows import demand_rows
from milp_recourse.solvers.rows.mixed_integer import Form, MixedInteger, QuadraticRow, combine, slack
from milp_recourse.solvers.rows.tree_rows import Input, tree_rows, written_accept

Array = NDArray[np.float64]

SIXTEEN = equal_parts(16)


def encode(program: Program, bounds: ProgramBounds, cut: Cut = SIXTEEN, stated: bool = False) -> MixedInteger:
    """A program as a mixed-integer program: every atom, the network, rows, demand, ball and cost.

    Parameters
    ----------
    bounds
        Derived bounds of this program, e.g. :func:`milp_recourse.solvers.rows.bounds.hull`.
    cut
        Where the parts end into which the interval of each curve (sigmoid, log, ...) is cut.
    stated
        Whether rows ask for the signs that bounds give ReLUs. Without them the program is smaller, and a
        relaxation all the same.
    """
    model = MixedInteger()
    for feature in program.switched:
        model.flags[feature] = model.column(f"act_{feature}", 0.0, 1.0, integer=True)
    forms = _atoms(model, program, bounds, cut, stated)
    _network(model, program, forms, bounds, stated)
    for row in program.rows:
        model.row(row.name, over_columns(row.form, forms), row.lower, row.upper)
    if program.demand != TRUE:
        _demand(model, program, forms)
    if program.ball is not None:
        _ball(model, program, forms)
    _cost(model, program, forms)
    return model


def whole_problem(instance: Instance, cut: Cut = SIXTEEN) -> MixedInteger:
    """One mixed-integer program for an instance, every switch open.

    Raises
    ------
    Unsupported
        As for :func:`bounded` and :func:`keep_lattices`.
    """
    program, bounds = bounded(instance)
    return keep_lattices(encode(program, bounds, cut), program)


def keep_lattices(model: MixedInteger, program: Program) -> MixedInteger:
    """Ask, in place, for the steps and listed values of actions, which :func:`encode` leaves out.

    Raises
    ------
    Unsupported
        As for :func:`milp_recourse.solvers.rows.atom_rows.lattice_rows`.
    """
    for action in program.actions:
        if action.lattice is not None and not action.integral:
            lattice_rows(model, model.actions[action.feature], action.lattice)
    return model


def bounded(
    instance: Instance, target: float | None = None, sign: int | None = None
) -> tuple[Program, ProgramBounds]:
    """What :func:`encode` needs for all of an instance: its program, every switch open, and its bounds.

    Parameters
    ----------
    target
        As for :func:`milp_recourse.solvers.rows.bounds.hull`.
    sign
        As for :func:`milp_recourse.solvers.rows.tree_rows.written_accept`.

    Raises
    ------
    Unsupported
        A model that is asked, a missing value, or no action can be taken at all.
    """
    if isinstance(instance.classifier, AskedModel):
        raise Unsupported("a model that is asked has no rows: only networks and trees can be written")
    if instance.missing:
        raise Unsupported(
            f"{min(instance.missing)} is missing: missing values are not written, solve has them"
        )
    program, forest = lower(instance), instance.classifier
    if isinstance(forest, TreeEnsemble):
        program = replace(program, accept=written_accept(forest, instance.accept, sign))
    bounds = hull(instance, program, target) if program.actions else None
    if bounds is None:
        raise Unsupported("no action can be taken: there is no program to write")
    return program, bounds


def _demand(model: MixedInteger, program: Program, forms: list[Form]) -> None:
    """Add what conditions ask besides rows: alternatives, and how many features are acted on."""
    rows: dict[ConditionRow, tuple[Form, float]] = {}
    for leaf in leaves(program.demand):
        if isinstance(leaf, ConditionRow):
            form = over_columns(program.demand_row("", leaf).form, forms)
            rows[leaf] = form, _range(form, model)[0]
    demand_rows(model, program.demand, rows)


def over_columns(form: Affine, forms: list[Form]) -> Form:
    """A form over atoms as a form over columns, exactly; ``forms`` has every atom so far over columns."""
    return combine((({}, form.constant), 1.0), *((forms[k], c) for k, c in form.terms.items()))


def _range(form: Form, model: MixedInteger) -> tuple[float, float]:
    """The form's range over the columns' bounds, widened by the largest rounding error."""
    low = high = float(form[1])
    if not form[0] and low == form[1]:
        return low, high
    size = abs(low)
    for k, c in form[0].items():
        ends = float(c) * model.lower[k], float(c) * model.upper[k]
        low, high = low + min(ends), high + max(ends)
        size += max(abs(end) for end in ends)
    rounding = slack(len(form[0]) + 2) * size if len(form[0]) > 1 or form[1] else 0.0
    return low - rounding, high + rounding


def _atoms(
    model: MixedInteger, program: Program, bounds: ProgramBounds, cut: Cut, stated: bool
) -> list[Form]:
    """Add every atom's columns and rows; returns every atom as a form over columns."""
    forms: list[Form] = []
    levels: dict[object, dict[int, int]] = {}
    for k, atom in enumerate(program.atoms):
        low, high = (float(v) for v in bounds.atoms[k])
        if isinstance(atom, Action):
            column = model.column(f"set_{atom.feature}", low, high, atom.integral)
            model.actions[atom.feature] = column
            forms.append(({column: 1.0}, 0.0))
        elif isinstance(atom, Switch):
            acted, natural = bounds.branches[k]
            forms.append(
                switch_rows(
                    model,
                    f"value_{atom.feature}_{k}",
                    model.flags[atom.feature],
                    (over_columns(atom.acted, forms), *acted),
                    (over_columns(atom.natural, forms), *natural),
                )
            )
            [column] = forms[-1][0]
            model.integer[column] = all(
                _whole(over_columns(form, forms), model) for form in (atom.acted, atom.natural)
            )
        else:
            argument = over_columns(atom.argument, forms)
            name = f"{atom.function}_{k}"
            l, h = (float(v) for v in bounds.arguments[k])
            if atom.function == "relu":
                forms.append(relu_rows(model, name, argument, l, h, stated))
            elif atom.function == "indicator":
                key = tuple(sorted(atom.argument.terms.items())) + (atom.argument.constant,)
                same = levels.setdefault(key, {})
                if atom.level not in same:  # with switches decided, two atoms may be one
                    same[atom.level] = model.column(f"{name}_is{atom.level}", low, high, integer=True)
                forms.append(({same[atom.level]: 1.0}, 0.0))
            else:
                forms.append(curve_rows(model, name, atom.function, argument, l, h, (low, high), cut))
    _indicators(model, program, forms, levels)
    return forms


def _indicators(
    model: MixedInteger, program: Program, forms: list[Form], levels: dict[object, dict[int, int]]
) -> None:
    """Add the rows that tie the indicators of one whole number together, and columns for its other levels."""
    for k, atom in enumerate(program.atoms):
        if not (isinstance(atom, Elementary) and atom.function == "indicator"):
            continue
        key = tuple(sorted(atom.argument.terms.items())) + (atom.argument.constant,)
        columns = levels.pop(key, None)
        if columns is None:
            continue
        form = over_columns(atom.argument, forms)
        low, high = _range(form, model)
        for level in range(round(low), round(high) + 1):
            if level not in columns:
                columns[level] = model.column(f"indicator_{k}_level{level}", 0.0, 1.0, integer=True)
        indicator_rows(model, f"indicator_{k}", form, columns)


def _network(
    model: MixedInteger, program: Program, forms: list[Form], bounds: ProgramBounds, stated: bool
) -> None:
    """Add the inputs, and the rows of a network and its logit, or of trees and their score."""
    network = program.classifier
    inputs = []
    for name, affine in zip(program.column_names, program.columns, strict=True):
        form = over_columns(affine, forms)
        ends, whole = _range(form, model), _whole(form, model)
        if form[0] and ([*form[0].values()] != [1] or form[1]):
            form, whole = ({model.fixed_column(f"input_{name}", form, *ends): 1.0}, 0.0), False
        held, levels = _held(affine, program, model), _levels(affine, program, forms)
        inputs.append(Input(form, *ends, whole, held, levels))
    if isinstance(network, TreeEnsemble):
        tree_rows(model, network, inputs, program.accept.above)
        return
    z = [one.form for one in inputs]
    assert isinstance(network, ReluNetwork)
    last = len(network.weights) - 1
    for k, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        pre = [_weighted(z, row, b) for row, b in zip(weight, bias, strict=True)]
        if k == last:
            threshold = program.accept.threshold + program.accept.margin
            model.row("accepted", pre[0], lower=threshold)
            return
        z = []
        for j, sum_ in enumerate(pre):
            low, high = (float(v) for v in bounds.hidden[k][j])
            if high > 0 and len(sum_[0]) > 1:
                sum_ = ({model.fixed_column(f"pre_{k}_{j}", sum_, low, high): 1.0}, 0.0)  # noqa: PLW2901
            z.append(relu_rows(model, f"hidden_{k}_{j}", sum_, low, high, stated))


def _whole(form: Form, model: MixedInteger) -> bool:
    """Whether a form takes whole values only."""
    return all(c == round(c) for c in (form[1], *form[0].values())) and all(model.integer[k] for k in form[0])


def _held(form: Affine, program: Program, model: MixedInteger) -> tuple[int, float] | None:
    """Of one lever's value: the flag of acting on it, and the value it has otherwise."""
    atom = program.atoms[next(iter(form.terms))] if [*form.terms.values()] == [1] else None
    if form.constant or not isinstance(atom, Switch) or atom.natural.terms:
        return None
    return model.flags[atom.feature], float(atom.natural.constant)


def _levels(form: Affine, program: Program, forms: list[Form]) -> dict[int | None, float] | None:
    """Of one label's column: its value by the indicator's column; None stands for all other labels."""
    atoms = [program.atoms[k] for k in form.terms]
    arguments = {str(a.argument) for a in atoms if isinstance(a, Elementary) and a.function == "indicator"}
    if len(arguments) != 1 or not all(isinstance(a, Elementary) for a in atoms):
        return None
    if not all([*forms[k][0].values()] == [1] and not forms[k][1] for k in form.terms):
        return None
    columns: dict[int | None, float] = {None: float(form.constant)}
    for k, c in form.terms.items():
        columns[next(iter(forms[k][0]))] = float(form.constant + c)
    return columns


def _weighted(forms: list[Form], weights: Array, bias: float) -> Form:
    """The sum of weights times forms, plus a bias, in rationals, because terms of one column may cancel."""
    terms = ((f, Fraction(float(w))) for f, w in zip(forms, weights, strict=True) if w)
    return combine((({}, Fraction(bias)), 1.0), *terms)


def _ball(model: MixedInteger, program: Program, forms: list[Form]) -> None:
    """Add the ball, sum w r^2 + linear <= 0, with a column for each residual r that is not constant."""
    assert program.ball is not None
    squares: dict[int, float] = {}
    linear, constant = over_columns(program.ball.linear, forms)
    for j, (weight, residual) in enumerate(program.ball.squares):
        form = over_columns(residual, forms)
        if not form[0]:
            constant += weight * Fraction(form[1]) ** 2
            continue
        squares[model.fixed_column(f"residual_{j}", form, *_range(form, model))] = float(weight)
    kept = {k: float(c) for k, c in linear.items() if c}
    model.ball = QuadraticRow("plausible", squares, kept, -float(constant))


def _cost(model: MixedInteger, program: Program, forms: list[Form]) -> None:
    """Add the cost: a column for each delta (0 where its feature is not acted on), and columns that are at
    least abs(delta), and at least the maximum."""
    top: int | None = None
    for term in program.cost_terms:
        delta = _delta(model, term, forms)
        _, square, linear, largest = map(float, term.prices.per(1 / term.unit))
        if square:
            model.squares[delta] = square
        if not (linear or largest):
            continue
        size = _size(model, term.feature, delta)
        if linear:
            model.linear[size] = linear
        if largest:
            if top is None:
                top = model.column("largest", 0.0, 0.0)
                model.linear[top] = 1.0
            model.upper[top] = max(model.upper[top], largest * model.upper[size])
            model.row(f"largest_{term.feature}", ({top: 1.0, size: -largest}, 0.0), lower=0.0)


def _delta(model: MixedInteger, term: CostTerm, forms: list[Form]) -> int:
    """Add the column of one delta. What acting costs whatever the value is the coefficient of the feature's
    flag, or part of the offset if it is decided that the feature is acted on."""
    form = over_columns(term.delta, forms)
    low, high = _range(form, model)
    flag = model.flags.get(term.feature)
    name, fixed = f"delta_{term.feature}", float(term.prices.fixed)
    if flag is None:
        model.offset += fixed
        return model.fixed_column(name, form, low, high)
    if fixed:
        model.linear[flag] = model.linear.get(flag, 0.0) + fixed
    value, _ = switch_rows(model, name, flag, (form, low, high), (({}, 0.0), 0.0, 0.0))
    return next(iter(value))


def _size(model: MixedInteger, feature: str, delta: int) -> int:
    """Add a column that is at least abs(delta)."""
    size = model.column(f"size_{feature}", 0.0, max(abs(model.lower[delta]), abs(model.upper[delta])))
    for label, sign in (("up", 1.0), ("down", -1.0)):
        model.row(f"size_{feature}_{label}", ({size: 1.0, delta: -sign}, 0.0), lower=0.0)
    return size
