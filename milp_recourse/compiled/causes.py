r"""What levers do to everything else, as arrays: forms over the levers' columns and the causal units.

A program's columns, domains, residuals and arguments are affine in actions, in switches (a lever that others
move
is acted on, or follows its causes) and in ReLUs. Here every one of them becomes, for each configuration of
the
switches, a row over the columns (an action's change, a label) and the causal units (a ReLU's change): at the
factual all of these are zero, whatever the configuration, because abducted noise gives the factual back.
Rows are composed in doubles next to the same computation on absolute values, which rounding is proportional
to.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.domain.features import Feature
from milp_recourse.instance import Instance
from milp_recourse.program.affine import Affine
from milp_recourse.program.model import Action, Elementary, Program, Switch
from milp_recourse.program.rationals import Rationals

Array = NDArray[np.float64]

MOST_CONFIGURATIONS = 4096
"""Sets of acted features told apart; each has arrays of its own."""


class NotCovered(Exception):
    """The compiled engine has no arrays for an instance; the message says why."""


@dataclass(frozen=True)
class Forms:
    """Rows over P columns and M causal units, in C configurations.

    Attributes
    ----------
    value, size
        Coefficients and the sums of absolute terms behind them, (C, rows, P + M). A label's entry is the
        form's
        value there, not yet the change from the applicant's own label.
    """

    value: Array
    size: Array


@dataclass(frozen=True)
class Effects:
    """What the levers of some applicants of one model do.

    Attributes
    ----------
    acts
        Levers acted on whatever their value, (C, d): those that others move and that are not left to
        follow; the
        same for the others, so only these differ between configurations.
    follows
        Levers left to follow their causes, (C, d).
    inputs, arguments, domains, residuals
        Forms of the classifier's inputs, of the causal units' arguments, of the features whose domain is a
        row, and
        of the residuals in the plausibility ball.
    domain_features
        The features of ``domains``.
    precision
        Weights of the residuals' squares, 0 where they cannot move, (C, F).
    owners
        The lever that each residual is the noise of, (F,), causes before effects.
    arguments_at, noise
        Arguments and residuals at the factual, (people, M) and (people, F).
    roundings
        Most roundings that a term of a form has been through.
    """

    acts: NDArray[np.uint8]
    follows: NDArray[np.uint8]
    inputs: Forms
    arguments: Forms
    domains: Forms
    residuals: Forms
    domain_features: tuple[Feature, ...]
    precision: Array
    owners: NDArray[np.int64]
    arguments_at: Array
    noise: Array
    roundings: int


def is_label(feature: Feature) -> bool:
    """Whether a lever's values have columns of their own; a plain code is a whole number unless unordered."""
    return feature.categories is not None and (feature.encoding != "code" or feature.kind == "categorical")


def column_starts(instance: Instance) -> NDArray[np.int64]:
    """Where each lever's columns begin, (d + 1,)."""
    features = [instance.feature(name) for name in instance.levers]
    sizes = [len(f.categories or ()) if is_label(f) else 1 for f in features]
    return np.cumsum([0, *sizes]).astype(np.int64)


def no_effects(instance: Instance) -> Effects:
    """The effects of levers that cause nothing else, without plausibility."""
    start = column_starts(instance)
    places, inputs = {}, 0
    for f in instance.features:
        places[f.name], inputs = inputs, inputs + len(f.columns)
    value = np.zeros((1, inputs, int(start[-1])))
    for i, name in enumerate(instance.levers):
        feature, at = instance.feature(name), places[name]
        if is_label(feature):
            assert feature.lookup is not None
            value[0, at : at + len(feature.columns), start[i] : start[i + 1]] = feature.lookup.T
        else:
            value[0, at, start[i]] = 1.0
    d, columns = len(instance.levers), int(start[-1])
    none = Forms(np.zeros((1, 0, columns)), np.zeros((1, 0, columns)))
    flags = np.zeros((1, d), dtype=np.uint8)
    nobody = np.zeros((1, 0))
    return Effects(
        flags,
        flags,
        Forms(value, np.abs(value)),
        none,
        none,
        none,
        (),
        nobody,
        np.zeros(0, dtype=np.int64),
        nobody,
        nobody,
        0,
    )


def effects_of(instances: list[Instance], program: Program) -> Effects:
    """The effects of the levers of applicants who have a program in common.

    Parameters
    ----------
    instances
        One, or those that the program was lowered for together.

    Raises
    ------
    NotCovered
        An equation that moves is no affine form with ReLUs, or there are too many configurations.
    """
    return _Composer(instances, program).effects()


class _Composer:
    """Every atom of a program as a row, in the order they can be computed."""

    def __init__(self, instances: list[Instance], program: Program) -> None:
        self.instances, self.program = instances, program
        self.instance = instance = instances[0]
        self.levers = list(instance.levers)
        self.start = column_starts(instance)
        atoms = program.atoms
        self.moved = [
            name
            for name in self.levers
            if any(isinstance(a, Switch) and a.feature == name and a.natural.terms for a in atoms)
        ]
        if 2 ** len(self.moved) > MOST_CONFIGURATIONS:
            raise NotCovered(f"more than {MOST_CONFIGURATIONS} sets of acted features")
        choices = np.array(list(product((True, False), repeat=len(self.moved))), dtype=bool)
        self.acted = choices.reshape(2 ** len(self.moved), len(self.moved))
        self.columns = int(self.start[-1])
        units = sum(isinstance(a, Elementary) and a.function != "indicator" for a in atoms)
        self.shape = (len(self.acted), self.columns + units)
        self.values: list[Array] = []
        self.sizes: list[Array] = []
        self.at: list[Any] = []
        self.arguments: list[tuple[Array, Array]] = []
        self.arguments_at: list[Any] = []
        for atom in atoms:
            if isinstance(atom, Action):
                self._action(atom)
            elif isinstance(atom, Switch):
                self._switch(atom)
            else:
                self._unit(atom)

    def effects(self) -> Effects:
        """All rows; causal units that nothing moves are none."""
        program, people = self.program, len(self.instances)
        used = self.columns + len(self.arguments)
        bound = [
            (f, row.form)
            for row in program.rows
            for f in self.instance.features
            if row.name == f"domain_{f.name}" and (f.name in self.moved or f.name not in self.levers)
        ]
        squares = program.ball.squares if program.ball else ()
        if program.ball is not None and program.ball.linear.terms:
            raise NotCovered("plausibility with other than normal noise")
        owners = [self._owner(form) for _, form in squares]
        weights = np.array([float(w) for w, _ in squares])
        loose = np.array(
            [[o not in self.moved or row[self.moved.index(o)] for o in owners] for row in self.acted]
        )
        precision = weights * loose.reshape(len(self.acted), len(squares))
        acts = np.zeros((len(self.acted), len(self.levers)), dtype=np.uint8)
        follows = acts.copy()
        for k, name in enumerate(self.moved):
            acts[:, self.levers.index(name)] = self.acted[:, k]
            follows[:, self.levers.index(name)] = ~self.acted[:, k]
        domains = self._forms([form for _, form in bound], used)
        for k, (f, _) in enumerate(bound):  # a value that is set is inside by its interval
            if f.name in self.moved:
                set_ = self.acted[:, self.moved.index(f.name)]
                domains.value[set_, k], domains.size[set_, k] = 0.0, 0.0
        arguments = [np.stack(parts, axis=1) for parts in zip(*self.arguments, strict=True)]
        if not arguments:
            arguments = [np.zeros((len(self.acted), 0, used))] * 2
        return Effects(
            acts,
            follows,
            self._forms(list(program.columns), used),
            Forms(arguments[0][..., :used], arguments[1][..., :used]),
            domains,
            self._forms([form for _, form in squares], used),
            tuple(f for f, _ in bound),
            precision,
            np.array([self.levers.index(o) for o in owners], dtype=np.int64),
            _table(self.arguments_at, people),
            _table([self._value(form) for _, form in squares], people),
            sum(len(_terms(a)) + 3 for a in program.atoms) + 3,
        )

    # -- atoms ---------------------------------------------------------------------------

    def _action(self, atom: Action) -> None:
        i = self.levers.index(atom.feature)
        value = np.zeros(self.shape)
        here = slice(self.start[i], self.start[i + 1])
        labels = is_label(self.instance.feature(atom.feature))
        value[:, here] = np.arange(self.start[i + 1] - self.start[i]) if labels else 1.0
        x = self.program.factual[atom.feature]
        self._add(value, np.abs(value), Rationals.of(x) if isinstance(x, np.ndarray) else Fraction(x))

    def _switch(self, atom: Switch) -> None:
        value, size = self._form(atom.acted)
        if atom.feature in self.moved:
            followed = self._form(atom.natural)
            acted = self.acted[:, [self.moved.index(atom.feature)]]
            value, size = np.where(acted, value, followed[0]), np.where(acted, size, followed[1])
        self._add(value, size, self._value(atom.natural))

    def _unit(self, atom: Elementary) -> None:
        argument, at = self._form(atom.argument), self._value(atom.argument)
        if atom.function == "indicator":
            self._add(*self._indicator(atom), _indicator_at(at, atom.level))
            return
        if not atom.argument.terms or not argument[0].any():
            raise NotCovered(f"a {atom.function} of what nobody moves")
        if atom.function != "relu":
            raise NotCovered(f"a {atom.function} that levers move")
        value = np.zeros(self.shape)
        value[:, self.columns + len(self.arguments)] = 1.0
        self.arguments.append(argument)
        self.arguments_at.append(at)
        self._add(value, np.abs(value), _relu_at(at))

    def _indicator(self, atom: Elementary) -> tuple[Array, Array]:
        """Whether a lever has a label; a feature nobody acts on is constant and no atom."""
        value = np.zeros(self.shape)
        [(k, c)] = atom.argument.terms.items()
        source = self.program.atoms[k]
        assert isinstance(source, Switch | Action)
        assert c == 1
        i = self.levers.index(source.feature)
        if not is_label(self.instance.feature(source.feature)):
            return value, value  # a cost's: whole numbers have theirs from the lever
        value[:, self.start[i] + atom.level] = 1.0
        return value, value

    def _add(self, value: Array, size: Array, at: Any) -> None:
        self.values.append(value)
        self.sizes.append(size)
        self.at.append(at)

    # -- forms ---------------------------------------------------------------------------

    def _form(self, form: Affine) -> tuple[Array, Array]:
        value, size = np.zeros(self.shape), np.zeros(self.shape)
        for k, c in form.terms.items():
            value = value + float(c) * self.values[k]
            size = size + abs(float(c)) * self.sizes[k]
        return value, size

    def _forms(self, forms: list[Affine], used: int) -> Forms:
        pairs = [self._form(form) for form in forms]
        if not pairs:
            none = np.zeros((len(self.acted), 0, used))
            return Forms(none, none)
        value, size = (np.stack(parts, axis=1)[..., :used] for parts in zip(*pairs, strict=True))
        return Forms(value, size)

    def _value(self, form: Affine) -> Any:
        """A form at the factual, exactly: a Fraction, or the applicants' Rationals."""
        total: Any = form.constant
        for k, c in form.terms.items():
            total = total + self.at[k] * c
        return total

    def _owner(self, residual: Affine) -> str:
        """The feature whose residual a form is: without its switch it is constant."""
        for k in residual.terms:
            atom = self.program.atoms[k]
            if isinstance(atom, Switch) and not (residual - Affine.atom(k) + atom.natural).terms:
                return atom.feature
        raise NotCovered("a residual through a curve")


def _terms(atom: Any) -> Any:
    if isinstance(atom, Switch):
        return [*atom.acted.terms, *atom.natural.terms]
    return atom.argument.terms if isinstance(atom, Elementary) else ()


def _relu_at(value: Any) -> Any:
    return value.relu() if isinstance(value, Rationals) else max(value, Fraction(0))


def _indicator_at(value: Any, level: int) -> Any:
    return value.indicator(level) if isinstance(value, Rationals) else Fraction(int(value == level))


def _table(columns: list[Any], people: int) -> Array:
    """Numbers of each applicant as doubles, (people, len(columns))."""
    made = np.zeros((people, len(columns)))
    for k, column in enumerate(columns):
        made[:, k] = column.nearest() if isinstance(column, Rationals) else float(column)
    return made
