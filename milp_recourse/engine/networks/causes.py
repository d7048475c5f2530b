"""What levers do to everything else, as arrays: forms over the levers' columns and the causal units.

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

from milp_recourse.engine.networks.elementary import LOG, RELU, SIGMOID, SQUARE
from milp_recourse.problem.conditions import FALSE, TRUE, AllOf, Demand, Switched
from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.noise import Normal
from milp_recourse.program.forms import Action, Affine, Elementary, Rationals, Switch, enclose, everyone
from milp_recourse.program.functions import Function
from milp_recourse.program.neutral_program import Program

Array = NDArray[np.float64]

CONFIGURATIONS, ARRAY_BYTES = 2**12, 2**28
"""Each of an applicant's configurations has arrays of its own. Up to ``CONFIGURATIONS`` are always taken,
and more if their arrays have about ``ARRAY_BYTES`` at most; the process may take three times that."""


class NotCovered(Exception):
    """The compiled engine has no arrays for an instance; the message says why."""


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


def is_label(feature: Feature) -> bool:
    """Whether a lever's values have columns of their own; a plain code is a whole number unless unordered."""
    return feature.categories is not None and (feature.encoding != "code" or feature.kind == "categorical")


def column_starts(instance: Instance) -> NDArray[np.int64]:
    """Where each lever's columns begin, (d + 1,)."""
    features = [instance.by_name[name] for name in instance.levers]
    return np.cumsum([0, *(len(f.categories or ()) if is_label(f) else 1 for f in features)], dtype=np.int64)


def too_many_sets(instance: Instance, network: ReluNetwork) -> str | None:
    """A line if there are more sets of acted features to tell apart than there may be, else None."""
    if 2 ** len(instance.levers) <= CONFIGURATIONS:
        return None
    moved = {f for lever in instance.levers for f in instance.scm.descendants({lever}) - {lever}}
    # in scenarios whoever acts may miss the target, so acting always differs from not acting
    told_apart = instance.levers if instance.scenarios else moved & instance.levers.keys()
    # an estimate: 8 doubles for each column and unit of the widest layer
    each = 64 * int(column_starts(instance)[-1]) * max(len(bias) for bias in network.biases)
    most = max(CONFIGURATIONS, ARRAY_BYTES // each)
    return f"more than {most} sets of acted features to tell apart" if 2 ** len(told_apart) > most else None


class Effects:
    """What the levers of applicants who have a program in common cause, in each of C configurations: every
    atom is a row over the columns and the causal units, in the order they can be computed.

    Values at the factual are the same in all configurations, and 1 stands for C in their shapes. Scenarios
    are an exception: an action whose target is the factual value may miss it there.

    *Forms* over P columns and M causal units are arrays (C, 2, forms, P + M): coefficients and the sums of
    absolute terms behind them. A label's entry is the form's value there, not yet the change from the
    applicant's own label.

    Parameters
    ----------
    instances
        One applicant, or those whom the program was lowered for together. If the program is fixed, these
        instances have no other levers than those that it acts on.

    Raises
    ------
    NotCovered
        Conditions ask for alternatives, or to act on what is no lever.
    Mixed
        Applicants who have curves must be taken one by one.

    Attributes
    ----------
    network
        What takes the inputs: the classifier, or with scenarios the least of its logits in any of them, or
        of a classifier with curves the layers after these.
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
    precision
        Weights of the residuals' squares, 0 where they cannot move, (C, F).
    owners
        The lever that each residual is the noise of, (F,), causes before effects.
    inputs_at, arguments_at, noise
        Inputs (None: the factual's columns), arguments and residuals at the factual, (people, C, inputs),
        (people, C, M) and (people, F).
    kinds, resting
        What causal units are (:mod:`milp_recourse.engine.networks.elementary`), (M,), and their values at
        rest, (people, C, M).
    bent
        Whether the last residual is the linear part of the ball.
    units_of
        By the number of an atom that is an elementary function, its causal units; of a logit those of the
        logarithms of its argument and of 1 less that.
    roundings
        Most roundings that a term of a form has been through.
    """

    def __init__(self, instances: list[Instance], program: Program) -> None:
        self.program, atoms, self.instance = program, program.atoms, instances[0]
        self.levers, self.start = list(self.instance.levers), column_starts(self.instance)
        self._place = {name: i for i, name in enumerate(self.levers)}
        self.columns, self.stated = int(self.start[-1]), list[Stated]()
        self.inputs_at: Array | None = None
        self.moved, must_act = set[str](), _must_act(program.demand)
        for name in self.levers:
            own = program.switches.get(name, [])
            misses = self.instance.scenarios and len(own) > 1  # whoever acts may miss, whatever the target
            causes = program.behind([a.natural for a in own])
            if misses or any(isinstance(atoms[k], Action | Switch) for k in causes):
                self.moved.add(name)
        if not must_act <= set(self.levers):
            raise NotCovered("conditions ask to act on what is no lever")
        choices = {f: [(1, 0), (0, 1)] for f in self.moved} | {f: [(1, 0)] for f in must_act}
        chosen = list(product(*(choices.get(f, [(0, 0)]) for f in self.levers)))
        both = np.array(chosen, dtype=np.uint8).reshape(len(chosen), len(self.levers), 2)
        self.acts, self.follows = (np.ascontiguousarray(both[:, :, k]) for k in range(2))
        units = sum(1 + (a.function == "logit") for a in atoms if isinstance(a, Elementary))
        self._shape = (len(both), 2, self.columns + units)
        # of each atom: its form, of this shape; at the factual, one value for every configuration or for all
        self._atoms: list[tuple[Array, list[Any]]] = []
        self._units: list[tuple[int, Array, list[Any], list[Any]]] = []  # kind, argument, both at the factual
        self._known: dict[Any, tuple[Any, int]] = {}
        self.units_of: dict[int, list[int]] = {}
        needed = program.behind(program.constrained())
        for k, atom in enumerate(atoms):
            if isinstance(atom, Action):
                self._action(atom)
            elif isinstance(atom, Switch):
                self._switch(atom)
            elif k in needed:
                self._unit(atom)
            else:  # only the cost uses it, and costs are among the levers' numbers
                self._atoms.append((np.zeros(self._shape), [Fraction(0)]))
        self._read(instances)

    def _read(self, instances: list[Instance]) -> None:
        """Set the attributes of :class:`Effects`; causal units that no lever moves are left out."""
        program, people = self.program, len(instances)
        assert isinstance(program.classifier, ReluNetwork)
        self.network, self.inputs = program.classifier, self._forms(program.columns)
        if self.network is not self.instance.classifier:
            self.inputs_at = _table([self._values(form) for form in program.columns], people)
        self.arguments = self._stacked([argument for _, argument, _, _ in self._units])
        self.kinds = np.array([kind for kind, _, _, _ in self._units], dtype=np.int64)
        self.arguments_at = _table([value for _, _, value, _ in self._units], people)
        self.resting = _table([value for _, _, _, value in self._units], people)
        residuals = self._residuals(instances)
        self.residuals = self._forms([form for _, _, form, _ in residuals])
        self.owners = np.array([owner for owner, _, _, _ in residuals], dtype=np.int64)
        weights = np.array([weight for _, weight, _, _ in residuals])
        self.precision = np.ascontiguousarray(weights * (self.follows[:, self.owners] == 0))
        self.noise = _table([value for _, _, _, value in residuals], people)[:, 0]
        ball = self.program.ball  # a weight may be 0 by underflow
        self.bent = any(ball is not None and form is ball.linear for _, _, form, _ in residuals)
        self._state()
        self.roundings = sum(len(a.inputs) + 3 for a in program.atoms) + 3
        self._atoms.clear()  # large where there are many configurations

    def _state(self) -> None:
        """The rows that a point must meet besides its box. Rows that hold or fail in a configuration whatever
        the levers do become zeros. Without conditions, domains of what no lever moves are left out:
        ``impossible`` asks for them."""
        features, forms = {f"domain_{f.name}": f for f in self.instance.features}, []
        for row in self.program.rows:
            feature, value = features.get(row.name), self._values(row.form)[0]
            if feature is None:
                self.stated.append(Stated(None, 0.0, math.inf, value))
            elif (feature.name in self.moved or feature.name not in self.levers) and (
                row.form.terms or self.instance.demand != TRUE
            ):
                self.stated.append(Stated(feature, row.lower, row.upper, value))
            else:
                continue
            forms.append(row.form)
        if self.program.demand == FALSE:
            self.stated.append(Stated(None, 0.0, math.inf, Fraction(-1)))
            forms.append(Affine(Fraction(-1)))
        self.rows = self._forms(forms)
        self.holds = np.zeros((len(self.acts), len(forms)), dtype=np.int64)
        for k, one in enumerate(self.stated):
            if one.feature is None and isinstance(one.value, Fraction):
                self.holds[~self.rows[:, 1, k].any(axis=1), k] = 1 if one.value >= 0 else -1
            elif one.feature is not None and one.feature.name in self.levers:  # set inside the domain already
                self.holds[:, k] = self.acts[:, self.levers.index(one.feature.name)]
        conditions = [form for form, one in zip(forms, self.stated, strict=True) if one.feature is None]
        self.holds[[self.program.none_left(conditions, self.levers, acts) for acts in self.acts]] = -1
        self.rows.transpose(0, 2, 1, 3)[self.holds != 0] = 0.0

    # -- atoms ---------------------------------------------------------------------------

    def _action(self, atom: Action) -> None:
        """Add an action: the value of its lever, or the number of its label."""
        i, form = self._place[atom.feature], np.zeros(self._shape)
        labels = is_label(self.instance.by_name[atom.feature])
        values = np.arange(self.start[i + 1] - self.start[i]) if labels else 1.0
        form[..., self.start[i] : self.start[i + 1]] = values
        x = self.program.factual[atom.feature]
        self._atoms.append((form, [Rationals.of(x) if isinstance(x, np.ndarray) else Fraction(x)]))

    def _switch(self, atom: Switch) -> None:
        """Add a switch: in each configuration the form that it stands for there."""
        form, at = self._form(atom.acted), self._values(atom.natural)
        if atom.feature in self.moved:
            acted = self.acts[:, self._place[atom.feature]] > 0
            form = np.where(acted[:, None, None], form, self._form(atom.natural))
            if self.instance.scenarios:
                other = self._values(atom.acted)
                at = [_of(other if on else at, c) for c, on in enumerate(acted)]
        self._atoms.append((form, at))

    def _unit(self, atom: Elementary) -> None:
        """Add an elementary function: an indicator as a row over its lever's label columns; any other as a
        causal unit (a logit as two) if a lever moves its argument, else as a constant."""
        argument, form = atom.argument, np.zeros(self._shape)
        if atom.function == "indicator":
            # of a feature that is no lever it is constant, so that there is no atom
            source = self.program.atoms[next(iter(argument.terms))]
            assert isinstance(source, Switch | Action)
            # a code without columns of its own is used by the cost only, which the lever has
            if is_label(self.instance.by_name[source.feature]):
                form[..., self.start[self.levers.index(source.feature)] + atom.level] = 1.0
        elif self._form(argument)[:, 0].any():
            causes: list[tuple[Function, Affine, float]] = [(atom.function, argument, 1.0)]
            if atom.function == "logit":
                causes = [("log", argument, 1.0), ("log", Affine.of(1) - argument, -1.0)]
            for function, own, sign in causes:
                column = self._cause(function, own)
                form[:, :, column] = sign, 1.0
                self.units_of.setdefault(len(self._atoms), []).append(column - self.columns)
        self._atoms.append((form, [_unit_at(atom.function, v, atom.level) for v in self._values(argument)]))

    def _cause(self, function: Function, form: Affine) -> int:
        """The column of a causal unit; it is new unless there is one with this function and argument."""
        key, at = (function, tuple(sorted(form.terms.items()))), self._values(form)
        constant, column = self._known.get(key, (None, -1))
        if constant is None or constant != form.constant:
            column = self.columns + len(self._units)
            self._known[key] = form.constant, column
            resting = [_unit_at(function, v) for v in at]
            self._units.append((KINDS[function], self._form(form), at, resting))
        return column

    # -- forms ---------------------------------------------------------------------------

    def _form(self, form: Affine) -> Array:
        """A form's coefficients over columns and causal units and the absolute terms, (C, 2, P + M)."""
        total = np.zeros(self._shape)
        for k, c in form.terms.items():
            total += np.array([[float(c)], [abs(float(c))]]) * self._atoms[k][0]
        return total

    def _forms(self, forms: Sequence[Affine]) -> Array:
        return self._stacked([self._form(form) for form in forms])

    def _stacked(self, forms: Sequence[Array]) -> Array:
        """Forms one below the other, cut to the columns and units that there are, (C, 2, forms, P + M)."""
        made = np.zeros((len(self.acts), 2, len(forms), self.columns + len(self._units)))
        for k, form in enumerate(forms):
            made[:, :, k] = form[..., : made.shape[3]]
        return made

    def _values(self, form: Affine) -> list[Any]:
        """A form at the factual, for every configuration or once for all: a Fraction, the applicants'
        Rationals, or, of a form through curves, an Enclosure."""
        found: list[Any] = []
        for c in range(max((len(self._atoms[k][1]) for k in form.terms), default=1)):
            at = {k: _of(self._atoms[k][1], c) for k in form.terms}
            if any(isinstance(v, Enclosure) for v in at.values()):
                found.append(form.enclose({k: Enclosure.of(v) for k, v in at.items()}))
            else:
                found.append(sum((at[k] * v for k, v in form.terms.items()), form.constant))
        return found

    def _residuals(self, instances: list[Instance]) -> list[tuple[int, float, Affine, list[Any]]]:
        """The ball's residuals, causes before effects: the lever that each is the noise of, its weight, its
        form and its values at the factual. The ball's linear part, if any, comes last, with weight 0."""
        ball, mechanisms = self.program.ball, self.instance.scm.mechanisms
        if ball is None or not self.levers:
            return []
        order = (f for f in self.instance.scm.order if f in self.program.factual)
        normal = [f for f in order if isinstance(mechanisms[f].noise, Normal)]
        found = [
            (self.levers.index(f), float(weight), form, self._values(form))
            for f, (weight, form) in zip(normal, ball.squares, strict=True)
            if f in self.levers
        ]
        if self._form(ball.linear)[:, 0].any() or any(instance.offset for instance in instances):
            found.append((0, 0.0, ball.linear, [Fraction(0)]))
        return found


def _of(values: list[Any], c: int) -> Any:
    """Configuration ``c``'s entry of a list that has one for each configuration or one for all."""
    return values[c] if len(values) > 1 else values[0]


def _must_act(demand: Demand) -> frozenset[str]:
    """The levers that a demand without rows asks to be acted on.

    Raises
    ------
    NotCovered
        The demand asks for anything else, such as alternatives.
    """
    parts = demand.parts if isinstance(demand, AllOf) else () if demand == FALSE else (demand,)
    names = {one.feature for one in parts if isinstance(one, Switched) and one.acted}
    if len(names) != len(parts):
        raise NotCovered("alternatives of conditions, which cases take apart")
    return frozenset(names)


KINDS = {"relu": RELU, "sigmoid": SIGMOID, "log": LOG, "square": SQUARE}


def _unit_at(function: Function, value: Any, level: int = 0) -> Any:
    """An elementary function of a value at the factual: exact, or enclosed to 50 digits.

    Raises
    ------
    Mixed
        The values are several applicants' and the function is neither a ReLU nor an indicator: each applicant
        is taken alone.
    """
    if isinstance(value, Rationals):
        if function not in ("relu", "indicator"):
            raise everyone(len(value.numerator))
        return value.relu() if function == "relu" else value.indicator(level)
    found = enclose(function, Enclosure.of(value), level)
    return found.lower if found.exact else found


def _table(columns: list[list[Any]], people: int) -> Array:
    """Numbers of each applicant as doubles, (people, configurations, len(columns))."""
    made = np.zeros((people, max(map(len, columns), default=1), len(columns)))
    for k, column in enumerate(columns):
        for c in range(made.shape[1]):
            value = _of(column, c)
            number = value.midpoint if isinstance(value, Enclosure) else value
            made[:, c, k] = number.nearest() if isinstance(number, Rationals) else float(number)
    return made
