r"""What levers do to everything else, as arrays: forms over the levers' columns and the causal units.

A program's columns, rows, residuals and arguments are affine in actions, in switches (a lever that others
move is acted on, or follows its causes) and in units: ReLUs, sigmoids, logarithms, squares (a product of
two is two squares, a logit two logarithms). Here every one of them becomes, for each configuration of the
switches, a row over the columns (an action's change, a label) and the causal units (a unit's change): at
the factual all of these are zero, whatever the configuration, because abducted noise gives the factual
back. Rows are composed in doubles next to the same computation on absolute values, which rounding is
proportional to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.compiled.elementary import LOG, RELU, SIGMOID, SQUARE
from milp_recourse.domain.conditions import FALSE, AllOf, Demand, Switched
from milp_recourse.domain.enclosure import Enclosure, round_down, round_up
from milp_recourse.domain.features import Feature
from milp_recourse.domain.network import ReluNetwork
from milp_recourse.domain.noise import Normal
from milp_recourse.instance import Instance
from milp_recourse.program.affine import Affine
from milp_recourse.program.model import Action, Elementary, Program, Switch
from milp_recourse.program.rationals import Rationals, everyone

Array = NDArray[np.float64]

MOST_CONFIGURATIONS = 4096
"""Most configurations of one applicant; each has arrays of its own."""


class NotCovered(Exception):
    """The compiled engine has no arrays for an instance; the message says why."""


@dataclass(frozen=True)
class Forms:
    """Rows over P columns and M causal units, in C configurations.

    Attributes
    ----------
    value, size
        Coefficients and the sums of absolute terms behind them, (C, rows, P + M). A label's entry is the
        form's value there, not yet the change from the applicant's own label.
    """

    value: Array
    size: Array


@dataclass(frozen=True)
class Stated:
    """What a point must meet besides its box: lower <= form <= upper, a program's row.

    Attributes
    ----------
    feature
        Whose domain it is; None: a condition's row.
    lower, upper
        Its ends; a condition's row has no upper one.
    value
        The form at the factual: a Fraction, the applicants' Rationals, or, of a form through curves, an
        Enclosure.
    """

    feature: Feature | None
    lower: float
    upper: float
    value: Any


@dataclass(frozen=True)
class Effects:
    """What the levers of some applicants of one model cause, in each of C configurations.

    Values at the factual are the same in all configurations, and 1 stands for C in their shapes. Scenarios
    are an exception: an action whose target is the factual value may miss it there.

    Attributes
    ----------
    network
        What takes the inputs: the classifier, or with scenarios the least of its logits in any of them.
    acts
        Levers acted on whatever their value, (C, d): those that others move and that are not left to follow,
        and those that conditions ask to be acted on.
    follows
        Levers left to follow their causes, (C, d).
    inputs, arguments, rows, residuals
        Forms of the classifier's inputs, of the causal units' arguments, of the rows, and of the residuals in
        the plausibility ball.
    stated
        What ``rows`` are.
    holds
        1 where a row holds in a configuration whatever the levers do, -1 where it fails, else 0, (C, rows).
    ends
        What conditions on one feature leave of the values that acting may set, (C, d, 2), rounded inward.
    precision
        Weights of the residuals' squares, 0 where they cannot move, (C, F).
    owners
        The lever that each residual is the noise of, (F,), causes before effects.
    inputs_at, arguments_at, noise
        Inputs (None: the factual's columns), arguments and residuals at the factual, (C, inputs),
        (people, C, M) and (people, F).
    kinds, resting
        What causal units are (:mod:`milp_recourse.compiled.elementary`), (M,), and their values at rest,
        (people, C, M).
    bent
        Whether the last residual is the linear part of the ball.
    roundings
        Most roundings that a term of a form has been through.
    """

    network: ReluNetwork
    acts: NDArray[np.uint8]
    follows: NDArray[np.uint8]
    inputs: Forms
    arguments: Forms
    rows: Forms
    residuals: Forms
    stated: tuple[Stated, ...]
    holds: NDArray[np.int64]
    ends: Array
    precision: Array
    owners: NDArray[np.int64]
    inputs_at: Array | None
    arguments_at: Array
    noise: Array
    kinds: NDArray[np.int64]
    resting: Array
    bent: bool
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
    start, levers, begin = column_starts(instance), list(instance.levers), 0
    d, columns = len(levers), int(start[-1])
    value = np.zeros((1, sum(len(f.columns) for f in instance.features), columns))
    for f in instance.features:
        end = begin + len(f.columns)
        if f.name in levers:
            i = levers.index(f.name)
            value[0, begin:end, start[i] : start[i + 1]] = (
                1.0 if f.lookup is None or not is_label(f) else f.lookup.T
            )
        begin = end
    none = Forms(np.zeros((1, 0, columns)), np.zeros((1, 0, columns)))
    flags = np.zeros((1, d), dtype=np.uint8)
    nobody, network = np.zeros((1, 0)), instance.classifier
    assert isinstance(network, ReluNetwork)
    return Effects(
        network,
        flags,
        flags,
        Forms(value, np.abs(value)),
        none,
        none,
        none,
        (),
        np.zeros((1, 0), dtype=np.int64),
        np.tile([-np.inf, np.inf], (1, d, 1)),
        nobody,
        np.zeros(0, dtype=np.int64),
        None,
        nobody[None],
        nobody,
        np.zeros(0, dtype=np.int64),
        nobody[None],
        False,
        0,
    )


def effects_of(instances: list[Instance], program: Program) -> Effects:
    """The effects of the levers of applicants who have a program in common.

    Parameters
    ----------
    instances
        One applicant, or those whom the program was lowered for together. If the program is fixed, these
        instances have no other levers than those that it acts on.

    Raises
    ------
    NotCovered
        There are too many configurations.
    Mixed
        Applicants who have curves must be taken one by one.
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
        moving = _moving(atoms)
        switches = {
            name: [a for a in atoms if isinstance(a, Switch) and a.feature == name] for name in self.levers
        }
        self.moved = [
            name
            for name, own in switches.items()
            if any(moving[k] for a in own for k in a.natural.terms)
            or (instance.scenarios and len(own) > 1)  # whoever acts may miss, whatever the target
        ]
        if 2 ** len(self.moved) > MOST_CONFIGURATIONS:
            raise NotCovered(f"more than {MOST_CONFIGURATIONS} sets of acted features")
        self.must_act = _must_act(program.demand) if program.demand != FALSE else frozenset()
        if not self.must_act <= set(self.levers):
            raise NotCovered("conditions ask to act on what is no lever")
        choices = list(product(*((True,) if f in self.must_act else (True, False) for f in self.moved)))
        self.acted = np.array(choices, dtype=bool).reshape(len(choices), len(self.moved))
        self.columns = int(self.start[-1])
        units = sum(1 + (a.function == "logit") for a in atoms if isinstance(a, Elementary))
        self.shape = (len(self.acted), self.columns + units)
        self.forms: list[Array] = []  # coefficients and the absolute terms behind them, (2, *shape)
        self.at: list[list[Any]] = []  # at the factual: one for every configuration, or one for all
        self.arguments: list[Array] = []
        self.arguments_at: list[list[Any]] = []
        self.kinds: list[int] = []
        self.resting: list[list[Any]] = []
        self.known: dict[Any, int] = {}
        self.forms_at: dict[int, Any] = {}
        needed = _needed(program)
        for k, atom in enumerate(atoms):
            if isinstance(atom, Action):
                self._action(atom)
            elif isinstance(atom, Switch):
                self._switch(atom)
            elif k in needed:
                self._unit(atom)
            else:  # only the cost uses it, and costs are among the levers' numbers
                self._add(np.zeros((2, *self.shape)), [Fraction(0)])

    def effects(self) -> Effects:
        """The composed rows and values; causal units that no lever moves are left out."""
        program, people = self.program, len(self.instances)
        used = self.columns + len(self.arguments)
        moved, cases = [self.levers.index(name) for name in self.moved], len(self.acted)
        acts = np.zeros((cases, len(self.levers)), dtype=np.uint8)
        follows = acts.copy()
        acts[:, moved], follows[:, moved] = self.acted, ~self.acted
        acts[:, [self.levers.index(name) for name in self.must_act - set(self.moved)]] = 1
        residuals = self._residuals()
        owners = np.array([owner for owner, _, _, _ in residuals], dtype=np.int64)
        weights = np.array([weight for _, weight, _, _ in residuals])
        stated = self._stated()
        rows = self._forms([form for form, _ in stated], used)
        holds, ends = self._settle(stated, rows)
        network, inputs_at = program.classifier, None
        assert isinstance(network, ReluNetwork)
        if self.instance.scenarios:
            inputs_at = _table([self._values(form) for form in program.columns], 1)[0]
        return Effects(
            network,
            acts,
            follows,
            self._forms(program.columns, used),
            self._stacked(self.arguments, used),
            rows,
            self._forms([form for _, _, form, _ in residuals], used),
            tuple(required for _, required in stated),
            holds,
            ends,
            np.ascontiguousarray(weights * (follows[:, owners] == 0)),
            owners,
            inputs_at,
            _table(self.arguments_at, people),
            _table([value for _, _, _, value in residuals], people)[:, 0],
            np.array(self.kinds, dtype=np.int64),
            _table(self.resting, people),
            bool((weights == 0.0).any()),
            sum(len(_terms(a)) + 3 for a in program.atoms) + 3,
        )

    def _stated(self) -> list[tuple[Affine, Stated]]:
        """The rows that a point must meet besides its box."""
        features = {f"domain_{f.name}": f for f in self.instance.features}
        stated = []
        for row in self.program.rows:
            feature, value = features.get(row.name), self._values(row.form)[0]
            if feature is None:
                stated.append((row.form, Stated(None, 0.0, math.inf, value)))
            elif feature.name in self.moved or feature.name not in self.levers:
                stated.append((row.form, Stated(feature, row.lower, row.upper, value)))
        if self.program.demand == FALSE:
            stated.append((Affine(Fraction(-1)), Stated(None, 0.0, math.inf, Fraction(-1))))
        return stated

    def _settle(self, stated: list[tuple[Affine, Stated]], rows: Forms) -> tuple[NDArray[np.int64], Array]:
        """The ``holds`` and ``ends`` of :class:`Effects`: rows that hold or fail whatever the levers do, and
        intervals that rows about a single set value leave. ``rows`` gets zeros for all of these."""
        cases = len(self.acted)
        holds = np.zeros((cases, len(stated)), dtype=np.int64)
        ends = np.tile([-np.inf, np.inf], (cases, len(self.levers), 1))
        for k, (form, required) in enumerate(stated):
            for c in range(cases):
                if required.feature is not None:  # a set value's interval is inside the domain already
                    name = required.feature.name
                    if name in self.moved and self.acted[c, self.moved.index(name)]:
                        holds[c, k] = 1
                elif not rows.value[c, k].any():
                    if isinstance(required.value, Fraction):
                        holds[c, k] = 1 if required.value >= 0 else -1
                elif self._narrows(form, c, ends):
                    holds[c, k] = 1
        rows.value[holds != 0], rows.size[holds != 0] = 0.0, 0.0
        return holds, ends

    def _narrows(self, form: Affine, c: int, ends: Array) -> bool:
        """Whether form >= 0 is about one value that configuration ``c`` sets; if so the value's interval in
        ``ends`` is cut, rounded inward (what is set is a double)."""
        if len(form.terms) != 1:
            return False
        [(k, slope)] = form.terms.items()
        atom = self.program.atoms[k]
        if not isinstance(atom, Switch) or atom.feature not in self.moved:
            return False
        if not self.acted[c, self.moved.index(atom.feature)]:
            return False
        interval = ends[c, self.levers.index(atom.feature)]
        end = -form.constant / slope
        if slope > 0:
            interval[0] = max(interval[0], round_up(end))
        else:
            interval[1] = min(interval[1], round_down(end))
        return True

    # -- atoms ---------------------------------------------------------------------------

    def _action(self, atom: Action) -> None:
        """Add an action: the value of its lever, or the number of its label."""
        i = self.levers.index(atom.feature)
        value = np.zeros(self.shape)
        columns = slice(self.start[i], self.start[i + 1])
        labels = is_label(self.instance.feature(atom.feature))
        value[:, columns] = np.arange(self.start[i + 1] - self.start[i]) if labels else 1.0
        x = self.program.factual[atom.feature]
        at = Rationals.of(x) if isinstance(x, np.ndarray) else Fraction(x)
        self._add(np.stack([value, np.abs(value)]), [at])

    def _switch(self, atom: Switch) -> None:
        """Add a switch: in each configuration the form that it stands for there."""
        form = self._form(atom.acted)
        if atom.feature in self.moved:
            acted = self.acted[:, [self.moved.index(atom.feature)]]
            form = np.where(acted, form, self._form(atom.natural))
        at = self._values(atom.natural)
        if self.instance.scenarios and atom.feature in self.moved:
            other, chosen = self._values(atom.acted), self.acted[:, self.moved.index(atom.feature)]
            at = [_of(other if on else at, c) for c, on in enumerate(chosen)]
        self._add(form, at)

    def _unit(self, atom: Elementary) -> None:
        """Add an elementary function: an indicator as a row over its lever's label columns; any other as a
        causal unit (a logit as two) if a lever moves its argument, else as a constant."""
        form = atom.argument
        if atom.function == "indicator":
            at = self._values(form)
            self._add(self._indicator(atom), [_indicator_at(v, atom.level) for v in at])
            return
        value, causes = np.zeros(self.shape), [(atom.function, form, 1.0)]
        if atom.function == "logit":
            causes = [("log", form, 1.0), ("log", Affine.of(1) - form, -1.0)]
        if self._form(form)[0].any():
            for function, argument, sign in causes:
                value[:, self._cause(function, argument)] = sign
        self._add(np.stack([value, np.abs(value)]), [_unit_at(atom.function, v) for v in self._values(form)])

    def _cause(self, function: str, form: Affine) -> int:
        """The column of a causal unit; it is new unless there is one with this function and argument."""
        key, at = (function, tuple(sorted(form.terms.items()))), self._values(form)
        if key in self.known and self.forms_at[self.known[key]] == form.constant:
            return self.known[key]
        column = self.columns + len(self.arguments)
        self.known[key], self.forms_at[column] = column, form.constant
        self.arguments.append(self._form(form))
        self.arguments_at.append(at)
        self.kinds.append(KINDS[function])
        self.resting.append([_unit_at(function, v) for v in at])
        return column

    def _indicator(self, atom: Elementary) -> Array:
        """The row of an indicator: 1 for the lever's label. (Of a feature that is no lever the indicator is
        constant, so that there is no atom.)"""
        form = np.zeros((2, *self.shape))
        [(k, c)] = atom.argument.terms.items()
        source = self.program.atoms[k]
        assert isinstance(source, Switch | Action)
        assert c == 1
        i = self.levers.index(source.feature)
        if is_label(
            self.instance.feature(source.feature)
        ):  # else only the cost, which the lever has, uses it
            form[:, :, self.start[i] + atom.level] = 1.0
        return form

    def _add(self, form: Array, at: list[Any]) -> None:
        """Append an atom's row and values at the factual."""
        self.forms.append(form)
        self.at.append(at)

    # -- forms ---------------------------------------------------------------------------

    def _form(self, form: Affine) -> Array:
        """A form's coefficients over columns and causal units and the absolute terms, (2, C, P + M)."""
        total = np.zeros((2, *self.shape))
        for k, c in form.terms.items():
            total += np.array([float(c), abs(float(c))])[:, None, None] * self.forms[k]
        return total

    def _forms(self, forms: Sequence[Affine], used: int) -> Forms:
        return self._stacked([self._form(form) for form in forms], used)

    def _stacked(self, forms: Sequence[Array], used: int) -> Forms:
        """Forms over the columns that are used, one below the other."""
        made = np.zeros((2, len(self.acted), len(forms), used))
        for k, form in enumerate(forms):
            made[:, :, k] = form[..., :used]
        return Forms(*made)

    def _values(self, form: Affine) -> list[Any]:
        """A form at the factual, for every configuration or once for all."""
        cases = max((len(self.at[k]) for k in form.terms), default=1)
        return [self._value(form, c) for c in range(cases)]

    def _value(self, form: Affine, c: int) -> Any:
        """A form at the factual in one configuration: a Fraction, the applicants' Rationals, or, of a form
        through curves, an Enclosure."""
        at = {k: _of(self.at[k], c) for k in form.terms}
        total: Any
        if any(isinstance(v, Enclosure) for v in at.values()):
            total = Enclosure.of(form.constant)
            for k, v in form.terms.items():
                total = total + Enclosure.of(at[k]) * Enclosure.of(v)
            return total
        total = form.constant
        for k, v in form.terms.items():
            total = total + at[k] * v
        return total

    def _residuals(self) -> list[tuple[int, float, Affine, list[Any]]]:
        """The ball's residuals, causes before effects: the lever that each is the noise of, its weight, its
        form and its values at the factual. The ball's linear part, if any, comes last, with weight 0."""
        ball, mechanisms = self.program.ball, self.instance.scm.mechanisms
        if ball is None:
            return []
        order = (f for f in self.instance.scm.order if f in self.program.factual)
        normal = [f for f in order if isinstance(mechanisms[f].noise, Normal)]
        found = [
            (self.levers.index(f), float(weight), form, self._values(form))
            for f, (weight, form) in zip(normal, ball.squares, strict=True)
            if f in self.levers
        ]
        if self._form(ball.linear)[0].any() or any(instance.offset for instance in self.instances):
            found.append((0, 0.0, ball.linear, [Fraction(0)]))
        return found


def _of(values: list[Any], c: int) -> Any:
    """Configuration ``c``'s entry of a list that has one for each configuration or one for all."""
    return values[c] if len(values) > 1 else values[0]


def _must_act(demand: Demand) -> frozenset[str]:
    """The levers that a demand, besides its rows, asks to be acted on.

    Raises
    ------
    NotCovered
        The demand has alternatives.
    """
    parts = demand.parts if isinstance(demand, AllOf) else (demand,)
    names = {one.feature for one in parts if isinstance(one, Switched) and one.acted}
    if len(names) != len(parts):
        raise NotCovered("alternatives of conditions, which cases take apart")
    return frozenset(names)


def _terms(atom: Any) -> Any:
    """The atoms that an atom is computed from."""
    if isinstance(atom, Switch):
        return [*atom.acted.terms, *atom.natural.terms]
    return atom.argument.terms if isinstance(atom, Elementary) else ()


KINDS = {"relu": RELU, "sigmoid": SIGMOID, "log": LOG, "square": SQUARE}


def _moving(atoms: Sequence[Any]) -> list[bool]:
    """Which atoms an action moves."""
    found: list[bool] = []
    for atom in atoms:
        found.append(isinstance(atom, Action | Switch) or any(found[k] for k in atom.argument.terms))
    return found


def _needed(program: Program) -> set[int]:
    """The positions of the atoms that columns, rows or the ball need, directly or through other atoms."""
    forms = [*program.columns, *(row.form for row in program.rows)]
    if program.ball is not None:
        forms += [program.ball.linear, *(form for _, form in program.ball.squares)]
    found = {k for form in forms for k in form.terms}
    for k in range(len(program.atoms) - 1, -1, -1):
        if k in found:
            found |= set(_terms(program.atoms[k]))
    return found


def _unit_at(function: str, value: Any) -> Any:
    """An elementary function of a value at the factual: exact, or enclosed to 50 digits.

    Raises
    ------
    Mixed
        The values are several applicants' and the function is no ReLU: each applicant is taken alone.
    """
    if isinstance(value, Rationals):
        if function != "relu":
            raise everyone(len(value.numerator))
        return value.relu()
    if isinstance(value, Fraction) and function in ("relu", "square"):
        return max(value, Fraction(0)) if function == "relu" else value * value
    return getattr(Enclosure.of(value), function)()


def _indicator_at(value: Any, level: int) -> Any:
    return value.indicator(level) if isinstance(value, Rationals) else Fraction(int(value == level))


def _table(columns: list[list[Any]], people: int) -> Array:
    """Numbers of each applicant as doubles, (people, configurations, len(columns))."""
    made = np.zeros((people, max(map(len, columns), default=1), len(columns)))
    for k, column in enumerate(columns):
        for c in range(made.shape[1]):
            value = _of(column, c)
            number = value.midpoint if isinstance(value, Enclosure) else value
            made[:, c, k] = number.nearest() if isinstance(number, Rationals) else float(number)
    return made
