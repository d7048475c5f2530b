r"""A causal problem as pieces on which everything but the trees is affine or a convex quadratic.

A configuration (the set of features acted on) fixes the program's switches; the signs of its structural
ReLUs make every feature affine in the actions. What is left per piece: the trees' columns as affine forms,
rows (domains, signs, conditions), and the plausibility ball, :math:`\sum_k w_k r_k(a)^2 + l(a) \le 0`, in
float64 with slack for what rounding takes away. Conditions on products of actions are left to the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, product

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import Unsupported
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import NEVER, Clock
from milp_recourse.program import Affine, lower
from milp_recourse.program.forms import Action, Elementary
from milp_recourse.program.neutral_program import Program

Array = NDArray[np.float64]

MOST_KINKS = 8
"""Structural ReLUs per configuration; their signs are enumerated."""

MOST_ASKED = 1024
"""Configurations that are asked whether they can be taken, before there is a clock."""


@dataclass(frozen=True)
class Forms:
    """Forms matrix @ a + constant, shapes (n, d) and (n,); ``exact``: the form is one action itself."""

    matrix: Array
    constant: Array
    exact: NDArray[np.bool_]

    @staticmethod
    def of(forms: Sequence[Affine], actions: int) -> Forms:
        """Rational forms, each coefficient rounded once."""
        matrix, constant = np.zeros((len(forms), actions)), np.zeros(len(forms))
        exact = np.zeros(len(forms), dtype=bool)
        for k, form in enumerate(forms):
            for atom, c in form.terms.items():
                matrix[k, atom] = float(c)
            constant[k] = float(form.constant)
            exact[k] = form.constant == 0 and list(form.terms.values()) == [1]
        return Forms(matrix, constant, exact)

    def range(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Enclosing intervals over boxes (B, d): two arrays (B, n), rounded outward."""
        up, down = np.maximum(self.matrix, 0.0).T, np.minimum(self.matrix, 0.0).T
        slack = self.slack(low, high)
        return low @ up + high @ down + self.constant - slack, high @ up + low @ down + self.constant + slack

    def slack(self, low: Array, high: Array) -> Array:
        """What rounding may take from the forms on boxes, (B, n); 0 for a form that is one action."""
        size = np.maximum(np.abs(low), np.abs(high)) @ np.abs(self.matrix).T + np.abs(self.constant)
        return np.where(self.exact, 0.0, 2.0**-50 * (self.matrix.shape[1] + 4) * size)


@dataclass(frozen=True)
class Column:
    """What moves columns of the ensemble together: an affine form, or an action on labels.

    Attributes
    ----------
    columns
        The columns that move together, and for each cell of this one the cell of every such column, as in
        :class:`~milp_recourse.engine.forests.axes.Axis`.
    cuts
        The last value of every cell but the last; for labels, the numbers half way between them.
    labels
        Whether it is an action on labels, each with numbers of its own.
    """

    columns: tuple[tuple[int, NDArray[np.int64]], ...]
    cuts: Array
    labels: bool = False

    def __len__(self) -> int:
        return len(self.cuts) + 1


@dataclass(frozen=True)
class Piece:
    """One configuration with its signs.

    Attributes
    ----------
    names, low, high, integral
        The actions and their box.
    cells
        Per column of the ensemble its cell, where no action moves it.
    columns, forms
        The columns that actions move, and the form that gives the value of each.
    rows, row_low, row_high
        row_low <= rows(a) <= row_high.
    weights, residuals, linear
        The ball; ``weights`` is None without one.
    signs
        By the atom of each structural ReLU, whether its argument is at least 0 or else at most 0.
    sure
        Whether a column's form holds: where the sign of a ReLU that it depends on is left open, it does not.
    """

    names: tuple[str, ...]
    low: Array
    high: Array
    integral: NDArray[np.bool_]
    cells: NDArray[np.int64]
    columns: tuple[Column, ...]
    forms: Forms
    rows: Forms
    row_low: Array
    row_high: Array
    weights: Array | None
    residuals: Forms
    linear: Forms
    signs: Mapping[int, bool]
    sure: NDArray[np.bool_]


def why_not_pieces(instance: Instance) -> str | None:
    """Why an instance does not fall into such pieces, or None if it does.

    Where a reason may hold in some configuration, :data:`MOST_ASKED` are looked at; if there are more, it
    counts.
    """
    try:
        program = lower(instance)
    except Unsupported as refusal:
        return str(refusal)
    reason = _why_not_units(program)
    if reason is None:
        return None
    configurations = (acted for acted in program.configurations() if acted)
    for acted in islice(configurations, MOST_ASKED):
        own = _why_not_units(program.fix(acted))
        if own is not None:
            return own
    return None if next(configurations, None) is None else reason


def _why_not_units(program: Program) -> str | None:
    """Why a program's elementary functions are not taken, or None; of a fixed program there are no more."""
    units = [u.function for _, u in _units(program)]
    curved = next((name for name in units if name not in ("relu", "indicator")), None)
    if curved is not None:
        return f"trees with effects, or plausibility, through a {curved} are not solved"
    return f"more than {MOST_KINKS} structural ReLUs" if units.count("relu") > MOST_KINKS else None


def pieces_of(instance: Instance, clock: Clock = NEVER) -> Iterator[Piece]:
    """Every piece of every configuration that acts on something, unless a row without actions fails there.

    Raises
    ------
    OutOfTime
        The clock's end has passed: there may be very many.
    """
    program = lower(instance)
    for acted in program.configurations(clock):
        if acted:
            fixed = program.fix(acted)
            kinks = [k for k, u in _units(fixed) if u.function == "relu"]
            for signs in product((False, True), repeat=len(kinks)):
                clock.check()
                piece = _piece(instance, fixed, dict(zip(kinks, signs, strict=True)))
                if piece is not None:
                    yield piece


def without_signs(instance: Instance, fixed: Program) -> Piece | None:
    """A whole configuration, its program fixed, as one piece in which no ReLU's sign is known: rows and ball
    that depend on one are left out. None where a row without actions fails."""
    return _piece(instance, fixed, {})


def _units(program: Program) -> list[tuple[int, Elementary]]:
    """Positions and elementary functions that a column, a row or the ball depends on."""
    needed = program.behind(program.constrained())
    return [(k, a) for k, a in enumerate(program.atoms) if isinstance(a, Elementary) and k in needed]


def _piece(instance: Instance, program: Program, signs: dict[int, bool]) -> Piece | None:
    """The piece of a fixed program with these signs of its ReLUs (position -> whether the argument is at
    least 0); None where a row without actions fails."""
    forest = instance.classifier
    assert isinstance(forest, TreeEnsemble)
    forms: list[Affine] = []
    bounds: list[tuple[Affine, float, float]] = []
    labels: dict[int, tuple[Affine, int]] = {}
    needed = program.behind(program.constrained())
    count, actions = 0, len(program.actions)
    for k, atom in enumerate(program.atoms):
        if isinstance(atom, Action):
            forms.append(Affine.atom(count))
            count += 1
        elif k in signs:
            assert isinstance(atom, Elementary)
            argument = atom.argument.substitute(forms)
            forms.append(argument if signs[k] else Affine())
            bounds.append((argument, 0.0, np.inf) if signs[k] else (argument, -np.inf, 0.0))
        elif k in needed and isinstance(atom, Elementary) and atom.function != "indicator":
            forms.append(Affine.atom(actions + k))  # a ReLU of unknown sign, or a square in a row: any number
        else:  # an indicator, or what only the cost needs
            if isinstance(atom, Elementary) and atom.function == "indicator":
                labels[k] = (atom.argument.substitute(forms), atom.level)
            forms.append(Affine())
    for row in program.rows:
        bounds.append((row.form.substitute(forms), row.lower, row.upper))
    for form, least, most in bounds:
        if form.is_constant and not (least <= form.constant <= most):
            return None

    def sure(form: Affine) -> bool:
        return all(atom < actions for atom in form.terms)

    moving = [b for b in bounds if not b[0].is_constant and sure(b[0])]
    cells, columns, column_forms = _columns(program, forest, forms, labels)
    known = [sure(form) for form in column_forms]
    column_forms = [form if k else Affine() for form, k in zip(column_forms, known, strict=True)]
    squares = [] if program.ball is None else [(w, f.substitute(forms)) for w, f in program.ball.squares]
    linear = Affine() if program.ball is None else program.ball.linear.substitute(forms)
    ball = program.ball is not None and all(map(sure, [linear, *(form for _, form in squares)]))
    return Piece(
        tuple(a.feature for a in program.actions),
        np.array([a.lower for a in program.actions]),
        np.array([a.upper for a in program.actions]),
        np.array([a.integral for a in program.actions], dtype=bool),
        cells,
        tuple(columns),
        Forms.of(column_forms, count),
        Forms.of([b[0] for b in moving], count),
        np.array([b[1] for b in moving], dtype=np.float64),
        np.array([b[2] for b in moving], dtype=np.float64),
        np.array([float(w) for w, _ in squares]) if ball else None,
        Forms.of([form for _, form in squares] if ball else [], count),
        Forms.of([linear if ball else Affine()], count),
        signs,
        np.array(known, dtype=bool),
    )


def _columns(
    program: Program, forest: TreeEnsemble, forms: list[Affine], labels: dict[int, tuple[Affine, int]]
) -> tuple[NDArray[np.int64], list[Column], list[Affine]]:
    """The cells of the columns that no action moves, the other columns, and the forms that move these."""
    cells = np.zeros(forest.inputs, dtype=np.int64)
    columns: list[Column] = []
    column_forms: list[Affine] = []
    groups: dict[int, list[tuple[int, Affine]]] = {}  # action -> (column, form over indicators)
    for c, form in enumerate(program.columns):
        cuts = forest.cuts[c]
        indicator = next((labels[k] for k in form.terms if k in labels), None)
        if indicator is not None:
            [action] = indicator[0].terms
            groups.setdefault(action, []).append((c, form))
            continue
        value = form.substitute(forms)
        if value.is_constant:
            cells[c] = _cell(cuts, value.constant)
        elif len(cuts):
            columns.append(Column(((c, np.arange(len(cuts) + 1)),), cuts))
            column_forms.append(value)
    for action, members in groups.items():
        low, high = (int(getattr(program.actions[action], end)) for end in ("lower", "upper"))
        values = np.arange(low, high + 1)
        on = []
        for c, form in members:
            numbers = {labels[k][1]: float(number) for k, number in form.terms.items()}
            found = np.array([numbers.get(label, 0.0) for label in values.tolist()])
            on.append((c, np.searchsorted(forest.cuts[c], found)))
        if len(values) == 1:
            for c, cell in on:
                cells[c] = cell[0]
            continue
        columns.append(Column(tuple(on), values[:-1].astype(np.float64), labels=True))
        column_forms.append(Affine.atom(action))
    return cells, columns, column_forms


def _cell(cuts: Array, value: Fraction) -> int:
    """The cell of the double nearest to a constant value."""
    return int(np.searchsorted(cuts, float(value)))
