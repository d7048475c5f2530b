"""Bounds for a program whose switches are still open: the hull over its configurations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milp_recourse.bounds.tape import Bounds, Tape
from milp_recourse.program.affine import Affine
from milp_recourse.program.functions import within_domain
from milp_recourse.program.model import Action, Elementary, Program, Switch

Array = NDArray[np.float64]

_OUTWARD = 1e-9  # relative; covers float rounding in the bounds handed to float solvers


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
    branches: dict[int, tuple[tuple[float, float], tuple[float, float]]]
    hidden: list[Array]


def hull(
    program: Program, boxes: dict[frozenset[str], tuple[Array, Array]] | None = None
) -> ProgramBounds | None:
    """Bounds over every configuration; None when every configuration is empty.

    Parameters
    ----------
    boxes
        Configuration -> a box of its actions that holds every solution worth finding; the
        stated action bounds where missing.
    """
    n = len(program.atoms)
    atoms, arguments = _empty(n), _empty(n)
    branches = {k: (_empty(1), _empty(1)) for k, a in enumerate(program.atoms) if isinstance(a, Switch)}
    hidden: list[Array] | None = None
    for acted in program.configurations():
        fixed = program.fix(acted, prune=False)
        tape = Tape(fixed)
        low, high = (boxes or {}).get(acted, (tape.lower, tape.upper))
        if (low > high).any():
            continue
        bounds = tape.bounds(low[None], high[None])
        _, forms = program.substitution(acted)
        for k, atom in enumerate(program.atoms):
            _widen(atoms, k, *_form_range(forms[k], bounds))
            if isinstance(atom, Elementary):
                _widen(arguments, k, *_form_range(atom.argument.substitute(forms), bounds))
            if isinstance(atom, Switch):
                side = 0 if atom.feature in acted else 1
                _widen(branches[k][side], 0, *_form_range(forms[k], bounds))
        layers = [
            np.stack([l[0], h[0]], axis=1) for l, h in zip(bounds.hidden_low, bounds.hidden_high, strict=True)
        ]
        hidden = layers if hidden is None else [_union(a, b) for a, b in zip(hidden, layers, strict=True)]
    if hidden is None:
        return None
    for k, atom in enumerate(program.atoms):
        if isinstance(atom, Action):
            atoms[k] = atom.lower, atom.upper
        elif isinstance(atom, Elementary):
            arguments[k] = within_domain(atom.function, *arguments[k])
    for place, sides in branches.items():
        switch = program.atoms[place]
        assert isinstance(switch, Switch)
        for branch, form in zip(sides, (switch.acted, switch.natural), strict=True):
            if branch[0, 0] > branch[0, 1]:  # no configuration takes it, but its rows need constants
                _widen(branch, 0, *_range_over(form, atoms))
    return ProgramBounds(
        atoms,
        arguments,
        {k: (_pair(a), _pair(b)) for k, (a, b) in branches.items()},
        hidden,
    )


def program_bounds(tape: Tape, bounds: Bounds) -> ProgramBounds:
    """One box's bounds in the form the encoding asks for, widened by a slack."""

    def wide(low: Array, high: Array) -> Array:
        slack = 1e-9 * (1 + np.abs(low) + np.abs(high))
        return np.stack([low - slack, high + slack], axis=-1)

    atoms = np.stack([bounds.atoms_low[0], bounds.atoms_high[0]], axis=-1)
    units = [k for k, *_ in tape.units]
    atoms[units] = wide(bounds.atoms_low[0], bounds.atoms_high[0])[units]
    arguments = wide(bounds.arguments_low[0], bounds.arguments_high[0])
    for k, unit, *_ in tape.units:
        arguments[k] = within_domain(unit.function, *arguments[k])
    return ProgramBounds(
        atoms,
        arguments,
        {},
        [wide(l[0], h[0]) for l, h in zip(bounds.hidden_low, bounds.hidden_high, strict=True)],
    )


def _form_range(form: Affine, bounds: Bounds) -> tuple[float, float]:
    """The range of a form over atoms, with bounds of one box."""
    return _range_over(form, np.stack([bounds.atoms_low[0], bounds.atoms_high[0]], axis=1))


def _range_over(form: Affine, atoms: Array) -> tuple[float, float]:
    """The range of a form over atoms whose intervals are the rows of ``atoms``, widened by a slack."""
    low = high = float(form.constant)
    for k, c in form.terms.items():
        ends = float(c) * atoms[k, 0], float(c) * atoms[k, 1]
        low, high = low + min(ends), high + max(ends)
    slack = _OUTWARD * (1 + abs(low) + abs(high))
    return low - slack, high + slack


def _empty(n: int) -> Array:
    """n empty intervals, (n, 2)."""
    return np.tile([np.inf, -np.inf], (n, 1))


def _widen(array: Array, k: int, low: float, high: float) -> None:
    """Widen interval k to contain another."""
    array[k] = min(array[k, 0], low), max(array[k, 1], high)


def _union(a: Array, b: Array) -> Array:
    """The least intervals that contain those of both arrays."""
    return np.stack([np.minimum(a[:, 0], b[:, 0]), np.maximum(a[:, 1], b[:, 1])], axis=1)


def _pair(a: Array) -> tuple[float, float]:
    return float(a[0, 0]), float(a[0, 1])
