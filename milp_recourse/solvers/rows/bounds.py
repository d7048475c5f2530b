"""Bounds that encodings derive their constants from.

They are for one configuration (what is acted on) and a box of its actions. The compiled engine gives the box
that is left, the least cost in it, and bounds of the network's units, all of them for feasible actions that
cost less than a target. Intervals give the rest: whatever else a program has, and everything where the engine
has no arrays for a program.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.box_bounds import EngineBox, Found
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.program.equilibrate import as_it_is, equilibrate
from milp_recourse.program.forms import Action, Affine, Elementary, Switch
from milp_recourse.program.functions import CURVES, value_range, within_domain
from milp_recourse.program.neutral_program import CostTerm, Program
from milp_recourse.solvers.rows.mixed_integer import slack

Array = NDArray[np.float64]
Interval = tuple[float, float]

OUTWARD = 1e-9
"""Relative; by how much bounds are widened: float solvers take them, and floats compute the intervals."""


@dataclass(frozen=True)
class ProgramBounds:
    """Finite bounds of everything an encoding needs.

    Attributes
    ----------
    atoms
        Shape (atoms, 2).
    arguments
        What each unit is applied to, shape (atoms, 2); nan for other atoms.
    branches
        Switch atom -> ((low, high) of acted, (low, high) of natural).
    hidden
        Pre-activations per hidden layer, shape (width, 2).
    """

    atoms: Array
    arguments: Array
    branches: Mapping[int, tuple[Interval, Interval]]
    hidden: Sequence[Array]

    @property
    def unstable(self) -> int:
        """The number of hidden ReLUs whose sign is open."""
        return sum(int(((one[:, 0] < 0) & (one[:, 1] > 0)).sum()) for one in self.hidden)


@dataclass(frozen=True)
class Bounded:
    """A box of actions and what is proven of the feasible ones in it that cost less than a target.

    Attributes
    ----------
    low, high
        The box that is left, shape (d,).
    least
        None of them costs less.
    bounds
        They lie in these.
    """

    low: Array
    high: Array
    least: float
    bounds: ProgramBounds


class Configuration:
    """A program in which it is decided what is acted on, with its bounds.

    Parameters
    ----------
    fixed
        From :meth:`Program.fix`.
    scaled
        Whether its numbers get units in which they are of similar size.

    Attributes
    ----------
    program
        The program in these units; boxes and bounds are in them, too.
    lower, upper, integral
        The interval of every action, and whether it is a whole number, shape (d,).
    """

    def __init__(self, instance: Instance, fixed: Program, scaled: bool = True) -> None:
        self.program, self._units = (equilibrate if scaled else as_it_is)(fixed)
        program, atoms = self.program, self.program.atoms
        network = program.classifier
        self.network = network if isinstance(network, ReluNetwork) else None
        actions = program.actions
        self.actions = [k for k, a in enumerate(atoms) if isinstance(a, Action)]
        self.lower, self.upper = (np.array([getattr(a, end) for a in actions]) for end in ("lower", "upper"))
        self.integral = np.array([a.integral for a in actions], dtype=bool)
        self._elementary = [
            (k, a, *self.dense([a.argument])) for k, a in enumerate(atoms) if isinstance(a, Elementary)
        ]
        self._columns = self.dense(program.columns)
        self._instance, self._fixed = instance, fixed

    @cached_property
    def _engine(self) -> EngineBox | None:
        """The engine's arrays, made when a box is bounded: there may be many configurations."""
        return EngineBox.of(self._instance, self._fixed) if self.network is not None else None

    def dense(self, forms: Sequence[Affine]) -> tuple[Array, Array]:
        """Forms as a matrix over atoms, shape (len, atoms), and their constants, (len,)."""
        matrix = np.zeros((len(forms), len(self.program.atoms)))
        for row, form in zip(matrix, forms, strict=True):
            for k, c in form.terms.items():
                row[k] = float(c)
        return matrix, np.array([float(form.constant) for form in forms])

    @property
    def fixed_cost(self) -> float:
        """What acting costs whatever the values."""
        return float(sum(term.prices.fixed for term in self.program.cost_terms))

    @cached_property
    def _constrained(self) -> list[Elementary]:
        """The functions that a row, the ball or the network depends on; not those that only the cost uses."""
        used = self.program.behind(self.program.constrained())
        return [a for k, a in enumerate(self.program.atoms) if k in used and isinstance(a, Elementary)]

    @cached_property
    def curved(self) -> bool:
        """Whether one of them is a curve."""
        return any(unit.function in CURVES for unit in self._constrained)

    @cached_property
    def kinks(self) -> list[tuple[int, float]]:
        """Of each of them that is a ReLU of one action alone: its place and its value at the bend."""
        found = []
        for unit in self._constrained:
            form = unit.argument
            if unit.function == "relu" and len(form.terms) == 1:
                [(atom, slope)] = form.terms.items()
                if atom in self.actions:
                    found.append((self.actions.index(atom), float(-form.constant / slope)))
        return found

    @cached_property
    def weight(self) -> Array:
        """How much a change of 1 in each action counts when boxes are split, (d,)."""
        terms = {term.feature: term for term in self.program.cost_terms}
        return np.array([_in_cost(terms[action.feature]) for action in self.program.actions])

    def bound(
        self, low: Array, high: Array, target: float = math.inf, known: ProgramBounds | None = None
    ) -> Bounded | None:
        """What is proven of a box; None if no feasible action in it costs less than the target.

        Parameters
        ----------
        known
            Bounds for a box around it.
        """
        given = [] if known is None else [known.hidden]
        if self._engine is None:
            return Bounded(low, high, 0.0, self._intervals(low, high, given))
        left = self._left(self._engine, low, high, target, known)
        if left is None:
            return None
        low, high, found = left
        return Bounded(low, high, found.least, self._intervals(low, high, given, found))

    def closes(self, low: Array, high: Array, target: float, known: ProgramBounds | None = None) -> bool:
        """Whether :meth:`bound` returns None."""
        return self._engine is not None and self._left(self._engine, low, high, target, known) is None

    def _left(
        self, engine: EngineBox, low: Array, high: Array, target: float, known: ProgramBounds | None
    ) -> tuple[Array, Array, Found] | None:
        """What the engine leaves of a box, and what else it finds; None if that is nothing."""
        units, layers = self._units, [] if known is None else known.hidden
        hidden = [one * unit[:, None] for one, unit in zip(layers, units.hidden, strict=False)]
        scale = units.atoms[self.actions]
        found = engine.bound(low * scale, high * scale, target, hidden)
        if found is None:
            return None
        low, high = np.maximum(low, found.low / scale), np.minimum(high, found.high / scale)
        return None if (low > high).any() else (low, high, found)

    def whole(self, target: float = math.inf) -> Bounded | None:
        """What is proven of the whole box."""
        return self.bound(self.lower, self.upper, target)

    def intervals(self) -> ProgramBounds:
        """What intervals say of all actions, feasible or not."""
        return self._intervals(self.lower, self.upper, [])

    def _intervals(
        self, low: Array, high: Array, known: Sequence[Sequence[Array]], found: Found | None = None
    ) -> ProgramBounds:
        """Interval arithmetic from the actions to the hidden units, cut by what is known of the latter and
        by what the engine has found."""
        count, units = len(self.program.atoms), self._units
        atoms, arguments = np.zeros((count, 2)), np.full((count, 2), np.nan)
        atoms[self.actions, 0], atoms[self.actions, 1] = low, high
        for k, unit, row, offset in self._elementary:
            [argument] = _ranges(row, offset, atoms)
            if found is not None and k in found.causes:
                argument = _cut(argument, found.causes[k] / units.arguments[k])
            arguments[k] = within_domain(unit.function, *_wide(argument))
            atoms[k] = value_range(unit.function, arguments[k, 0], arguments[k, 1], unit.level)
            if found is not None and unit.function == "indicator":
                [action] = unit.argument.terms
                if unit.level in found.barred.get(self.actions.index(action), ()):
                    atoms[k] = 0.0
        if self.network is None:
            return ProgramBounds(atoms, arguments, {}, [])
        z, hidden = _ranges(*self._columns, atoms), []
        for layer, (weight, bias) in enumerate(
            zip(self.network.weights[:-1], self.network.biases[:-1], strict=True)
        ):
            z = _ranges(weight, bias, z)
            for one in known:
                z = _cut(z, one[layer])
            if found is not None:
                z = _cut(z, found.hidden[layer] / units.hidden[layer][:, None])
            hidden.append(_wide(z))
            z = np.maximum(z, 0.0)
        return ProgramBounds(atoms, arguments, {}, hidden)


def hull(instance: Instance, program: Program, target: float | None = None) -> ProgramBounds | None:
    """Bounds over every configuration; None if every configuration is found to be empty.

    Parameters
    ----------
    target
        None: intervals alone, so that a solver's answer is independent of the engine. A number: the engine's
        bounds, in which actions that cost at least so much need not lie.
    """
    n = len(program.atoms)
    atoms, arguments = _empty(n), _empty(n)
    branches = {k: (_empty(1), _empty(1)) for k, a in enumerate(program.atoms) if isinstance(a, Switch)}
    hidden: list[Array] | None = None
    boxes = {k: _empty(1) for k, a in enumerate(program.atoms) if isinstance(a, Action)}
    for acted in program.configurations():
        part = Configuration(instance, program.fix(acted, prune=False), scaled=False)
        found = None if target is None else part.whole(target)
        if found is None and target is not None and target < math.inf:
            continue
        own = part.intervals() if found is None else found.bounds
        _, forms = program.substitution(acted)
        for k, atom in enumerate(program.atoms):
            ends = _range_over(forms[k], own.atoms)
            _widen(atoms, k, ends)
            if isinstance(atom, Action) and atom.feature in acted:
                _widen(boxes[k], 0, ends)
            if isinstance(atom, Elementary):
                _widen(arguments, k, _range_over(atom.argument.substitute(forms), own.atoms))
            if isinstance(atom, Switch):
                side = 0 if atom.feature in acted else 1
                _widen(branches[k][side], 0, _range_over(forms[k], own.atoms))
        hidden = (
            [*own.hidden]
            if hidden is None
            else [_union(a, b) for a, b in zip(hidden, own.hidden, strict=True)]
        )
    if hidden is None:
        return None
    for k, atom in enumerate(program.atoms):
        if isinstance(atom, Action):
            left = boxes[k][0] if target is not None and boxes[k][0, 0] < np.inf else (-np.inf, np.inf)
            atoms[k] = max(atom.lower, left[0]), min(atom.upper, left[1])
        elif isinstance(atom, Elementary):
            arguments[k] = within_domain(atom.function, *arguments[k])
    _complete(branches, program, atoms)
    return ProgramBounds(
        atoms, arguments, {k: (_pair(a), _pair(b)) for k, (a, b) in branches.items()}, hidden
    )


def _complete(branches: Mapping[int, tuple[Array, Array]], program: Program, atoms: Array) -> None:
    """Ranges for the branches of switches that no configuration takes: their rows need constants, too."""
    for place, sides in branches.items():
        switch = program.atoms[place]
        assert isinstance(switch, Switch)
        for branch, form in zip(sides, (switch.acted, switch.natural), strict=True):
            if branch[0, 0] > branch[0, 1]:
                _widen(branch, 0, _range_over(form, atoms))


def _in_cost(term: CostTerm) -> float:
    """The root of what a change of size 1 costs, for each unit of the action in such a change."""
    return math.sqrt(float(sum(term.prices[1:]))) / term.length


def _ranges(matrix: Array, offset: Array, values: Array) -> Array:
    """Intervals (m, 2) of m sums of products and an offset, over intervals (n, 2) of n values."""
    positive, negative = np.maximum(matrix, 0.0), np.minimum(matrix, 0.0)
    low = positive @ values[:, 0] + negative @ values[:, 1] + offset
    high = positive @ values[:, 1] + negative @ values[:, 0] + offset
    size = np.abs(matrix) @ np.abs(values).max(axis=1, initial=0.0) + np.abs(offset)
    rounding = slack(matrix.shape[1] + 2) * size
    return np.stack([low - rounding, high + rounding], axis=1)


def _range_over(form: Affine, atoms: Array) -> Interval:
    """The range of a form over atoms whose intervals are the rows of ``atoms``, widened."""
    low = high = float(form.constant)
    for k, c in form.terms.items():
        ends = float(c) * atoms[k, 0], float(c) * atoms[k, 1]
        low, high = low + min(ends), high + max(ends)
    low, high = _wide(np.array([low, high])).tolist()
    return low, high


def _cut(ends: Array, known: Array) -> Array:
    """Intervals cut by others, (..., 2); what rounding makes empty becomes a point."""
    low = np.fmax(ends[..., 0], known[..., 0])
    return np.stack([low, np.fmax(low, np.fmin(ends[..., 1], known[..., 1]))], axis=-1)


def _wide(ends: Array) -> Array:
    """Intervals (..., 2) widened by :data:`OUTWARD`."""
    room = OUTWARD * (1 + np.abs(ends).sum(axis=-1))
    return np.stack([ends[..., 0] - room, ends[..., 1] + room], axis=-1)


def _empty(n: int) -> Array:
    """n empty intervals, (n, 2)."""
    return np.tile([np.inf, -np.inf], (n, 1))


def _widen(array: Array, k: int, ends: Interval) -> None:
    """Widen interval k to contain another."""
    array[k] = min(array[k, 0], ends[0]), max(array[k, 1], ends[1])


def _union(a: Array, b: Array) -> Array:
    """The least intervals that contain those of both arrays."""
    return np.stack([np.minimum(a[:, 0], b[:, 0]), np.maximum(a[:, 1], b[:, 1])], axis=1)


def _pair(a: Array) -> Interval:
    return float(a[0, 0]), float(a[0, 1])
