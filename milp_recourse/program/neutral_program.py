"""The neutral program, which every back end that needs one starts from.

The classifier's input columns, domain rows and residuals are affine forms of atoms
(:mod:`~milp_recourse.program.forms`). The classifier itself is kept as it is. A program is exact: its
coefficients are rational, and no function is approximated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np

from milp_recourse.problem import conditions
from milp_recourse.problem.conditions import FALSE, TRUE, Demand
from milp_recourse.problem.enclosure import Enclosure, round_down, round_up
from milp_recourse.problem.instance import Acceptance, Classifier
from milp_recourse.problem.lever_cost import Prices
from milp_recourse.problem.options import NEVER, Clock
from milp_recourse.program.demands import Span, conjuncts, for_acted, nearest_alternative, told_apart
from milp_recourse.program.forms import (
    Action,
    Affine,
    Atom,
    Elementary,
    Switch,
    agreed,
    constant_value,
    enclose,
)


@dataclass(frozen=True)
class Row:
    """lower <= form <= upper; form and ends have been divided by ``unit``, a power of two."""

    name: str
    form: Affine
    lower: float
    upper: float
    unit: float = 1.0


@dataclass(frozen=True)
class Ball:
    """sum of weight * form^2 + linear <= 0: the plausibility constraint, convex in the forms.

    The offset of the log density is part of ``linear``'s constant.
    """

    squares: tuple[tuple[Fraction, Affine], ...]
    linear: Affine


@dataclass(frozen=True)
class CostTerm:
    """What acting on one feature costs, the size of its change being abs(delta) / unit.

    Parameters
    ----------
    delta
        The change: a_i - x_i, or with its size's bends as a sum of ReLUs, or the indicator of another
        category.
    prices
        What a change of a size costs. Their entries in the maximum count once, the largest of all terms.
    length
        About how long a change of size 1 is, in units of the action atom.
    """

    feature: str
    delta: Affine
    unit: Fraction
    prices: Prices
    length: float


@dataclass(frozen=True)
class Program:
    """Minimise the cost subject to acceptance, rows, the plausibility ball and the demand.

    Parameters
    ----------
    atoms
        In an order in which each can be computed from those before it; forms refer to them by index.
    columns
        The classifier's input columns as forms.
    column_names
        Their names.
    classifier, accept
        The network or trees on those columns, and when it accepts.
    rows, ball
        Rows of domains and conditions; the ball, or None without plausibility.
    cost_terms, free
        One term per feature that can be acted on; whether acting costs nothing where nothing changes.
    factual
        x_i of the features that can be acted on, in units of their action atoms.
    demand
        The part of the conditions that is not in ``rows``: alternatives, and which features are acted on. A
        back end that ignores it solves a relaxation.
    followed, spans
        For the rows in ``demand``: the counterfactual values that they are sums of, by feature, as forms; and
        the range of each row's sum.

    Notes
    -----
    In a program of several applicants (:func:`~milp_recourse.program.lower.together`) the bounds of actions
    and the factual are arrays with one number per applicant, and the constants of forms and the weights are
    :class:`~milp_recourse.program.forms.Rationals`. Such a program cannot decode actions.
    """

    atoms: tuple[Atom, ...]
    columns: tuple[Affine, ...]
    column_names: tuple[str, ...]
    classifier: Classifier
    accept: Acceptance
    rows: tuple[Row, ...]
    ball: Ball | None
    cost_terms: tuple[CostTerm, ...]
    free: bool
    factual: Mapping[str, float]
    demand: Demand = TRUE
    followed: Mapping[conditions.Factor, Affine] = field(default_factory=dict)
    spans: Mapping[conditions.Row, Span] = field(default_factory=dict)

    @cached_property
    def actions(self) -> tuple[Action, ...]:
        """The action atoms, in order."""
        return tuple(a for a in self.atoms if isinstance(a, Action))

    @property
    def switched(self) -> tuple[str, ...]:
        """Features that can be acted on or not; () in a program in which that is decided (:meth:`fix`)."""
        return tuple(self.switches)

    @cached_property
    def switches(self) -> dict[str, list[Switch]]:
        """The switches by feature."""
        found: dict[str, list[Switch]] = {}
        for atom in self.atoms:
            if isinstance(atom, Switch):
                found.setdefault(atom.feature, []).append(atom)
        return found

    @cached_property
    def _action_of(self) -> dict[str, Action]:
        return {action.feature: action for action in reversed(self.actions)}

    def decode(self, values: Iterable[float], acted: Sequence[str] | None = None) -> dict[str, float]:
        """The action with the given values of the action atoms, in the order of :attr:`actions`.

        Parameters
        ----------
        acted
            The features acted on; None for all that have an action atom, as in a fixed program.
        """
        return {
            a.feature: float(round(v)) if a.integral else min(max(float(v), a.lower), a.upper) * a.unit
            for a, v in zip(self.actions, values, strict=True)
            if acted is None or a.feature in acted
        }

    def values(self, action: Mapping[str, float]) -> list[float]:
        """The values of the action atoms, in the order of :attr:`actions`, of an action on all of them."""
        return [action[a.feature] / a.unit for a in self.actions]

    def enclose(self, action: Mapping[str, float]) -> list[Enclosure]:
        """The exact value of every atom under an action; action atoms of other features are 0."""
        values: list[Enclosure] = []
        for atom in self.atoms:
            if isinstance(atom, Action):
                values.append(Enclosure.of(action.get(atom.feature, 0.0)) / atom.unit)
            elif isinstance(atom, Switch):
                values.append((atom.acted if atom.feature in action else atom.natural).enclose(values))
            else:
                values.append(enclose(atom.function, atom.argument.enclose(values), atom.level))
        return values

    def configurations(self, clock: Clock = NEVER) -> Iterator[frozenset[str]]:
        """The sets of acted features that must be solved separately; together they cover every subset.

        If a feature that is not acted on stays at its factual value, holding it there has the same effect and
        is free. Acting on it then covers both cases, unless actions have a fixed cost, an action may not set
        the factual value, or a condition asks whether the feature is acted on. Sets that conditions exclude
        are left out.

        Raises
        ------
        OutOfTime
            The clock's end has passed: there may be very many sets.
        """
        choices: list[tuple[bool, ...]] = []
        distinguished = told_apart(self.demand, self.switched)
        for feature in self.switched:
            covers = feature not in distinguished and self._acting_covers(feature)
            choices.append((True,) if covers else (True, False))
        for choice in product(*choices):
            clock.check()
            acted = frozenset(f for f, acted in zip(self.switched, choice, strict=True) if acted)
            if for_acted(self.demand, acted) != FALSE:
                yield acted

    def substitution(self, acted: frozenset[str]) -> tuple[list[Atom], list[Affine]]:
        """Decide every switch: returns the remaining atoms, and each atom of this program as a form in them.

        Atoms that become rational constants disappear. The action atom of a feature that is not acted on
        becomes the constant 0; only switches that ignore it refer to it.
        """
        atoms: list[Atom] = []
        forms: list[Affine] = []
        for atom in self.atoms:
            if isinstance(atom, Action):
                if atom.feature not in acted:
                    forms.append(Affine())
                    continue
                remaining: Atom = atom
            elif isinstance(atom, Switch):
                forms.append((atom.acted if atom.feature in acted else atom.natural).substitute(forms))
                continue
            else:
                remaining = replace(atom, argument=atom.argument.substitute(forms))
                known = constant_value(remaining)
                if known is not None:
                    forms.append(Affine(known))
                    continue
            forms.append(Affine.atom(len(atoms)))
            atoms.append(remaining)
        return atoms, forms

    def fix(self, acted: frozenset[str], prune: bool = True) -> Program:
        """The program with every switch decided: exactly the features ``acted`` are acted on.

        Parameters
        ----------
        prune
            Whether to drop elementary functions that nothing refers to any more. Without it, atoms are
            numbered as in :meth:`substitution`.
        """
        atoms, forms = self.substitution(acted)
        fixed = self._with(atoms, forms, acted).demanding(for_acted(self.demand, acted))
        if not prune:
            return fixed
        needed = fixed.behind(fixed.forms()) | {k for k, a in enumerate(atoms) if isinstance(a, Action)}
        if len(needed) == len(atoms):
            return fixed
        order = sorted(needed)
        renamed = [Affine.atom(order.index(k)) if k in needed else Affine() for k in range(len(atoms))]
        pruned = [
            replace(a, argument=a.argument.substitute(renamed)) if isinstance(a, Elementary) else a
            for a in (atoms[k] for k in order)
        ]
        return fixed._with(pruned, renamed, acted)

    def demanding(self, demand: Demand) -> Program:
        """The program with another demand, whose rows that must hold in any case are added to ``rows``."""
        rows, rest = conjuncts(demand)
        if not rows and rest == self.demand:
            return self
        start = len(self.rows)
        more = [self.demand_row(f"condition_{start + k}", row) for k, row in enumerate(rows)]
        return replace(self, rows=(*self.rows, *more), demand=rest)

    def demand_row(self, name: str, row: conditions.Row) -> Row:
        """A condition's row sum c x' - b >= 0 as a row of the program.

        It is divided by a power of two near its size. The upper end is twice the largest value that the row
        can have, so that it never binds.
        """
        form = Affine(-row.at_least)
        for feature, c in row.terms:
            form = form + self.followed[feature].scaled(c)
        top = max(round_up(self.spans[row][1]), 0.0)
        unit = math.ldexp(1.0, min(max(math.frexp(top)[1], -400), 400))
        return Row(name, form.scaled(1 / Fraction(unit)), 0.0, 2 * top / unit, unit)

    def at_point(self, atoms: Sequence[float]) -> Program:
        """The fixed program with rows in place of the demand.

        Of each alternative that the demand leaves open, the part is taken that a point meets best.

        Parameters
        ----------
        atoms
            Value of every atom at the point.
        """
        slack = {}
        for row in conditions.leaves(self.demand):
            if isinstance(row, conditions.Row):
                form = self.demand_row("", row).form
                slack[row] = float(form.constant) + sum(float(c) * atoms[k] for k, c in form.terms.items())
        return self.demanding(conditions.all_of(nearest_alternative(self.demand, slack)))

    def forms(self) -> Iterator[Affine]:
        """All forms but those inside atoms: columns, rows, ball, costs, and the values in ``followed``."""
        yield from self.constrained()
        yield from (term.delta for term in self.cost_terms)
        yield from self.followed.values()

    def constrained(self) -> Iterator[Affine]:
        """The forms of columns, rows and ball."""
        yield from self.columns
        yield from (row.form for row in self.rows)
        if self.ball is not None:
            yield self.ball.linear
            yield from (form for _, form in self.ball.squares)

    def behind(self, forms: Iterable[Affine]) -> set[int]:
        """The atoms to which forms refer, directly or through other atoms."""
        needed = {k for form in forms for k in form.terms}
        for k in range(max(needed, default=-1), -1, -1):
            if k in needed:
                needed.update(self.atoms[k].inputs)
        return needed

    def none_left(self, forms: Iterable[Affine], levers: Sequence[str], acts: Iterable[int]) -> bool:
        """Whether the rows form >= 0 that are about one set value leave no double of it (x + 0.1 is seldom
        one), where those levers are set whose ``acts`` are not 0."""
        acted = {name for name, one in zip(levers, acts, strict=True) if one}
        ends: dict[str, tuple[float, float]] = {}
        for form in forms:
            if len(form.terms) != 1:
                continue
            [(k, slope)] = form.terms.items()
            atom = self.atoms[k]
            if isinstance(atom, Switch) and atom.feature in acted:
                end, (low, high) = -form.constant / slope, ends.get(atom.feature, (-math.inf, math.inf))
                inside = (max(low, round_up(end)), high) if slope > 0 else (low, min(high, round_down(end)))
                ends[atom.feature] = inside
        return any(low > high for low, high in ends.values())

    def _with(self, atoms: Sequence[Atom], forms: Sequence[Affine], acted: frozenset[str]) -> Program:
        """The program over other atoms, with every old atom k replaced by ``forms[k]``."""
        ball = self.ball and Ball(
            tuple((w, f.substitute(forms)) for w, f in self.ball.squares), self.ball.linear.substitute(forms)
        )
        return replace(
            self,
            atoms=tuple(atoms),
            columns=tuple(c.substitute(forms) for c in self.columns),
            rows=tuple(replace(r, form=r.form.substitute(forms)) for r in self.rows),
            followed={name: form.substitute(forms) for name, form in self.followed.items()},
            ball=ball,
            cost_terms=tuple(
                replace(t, delta=t.delta.substitute(forms)) for t in self.cost_terms if t.feature in acted
            ),
        )

    def _acting_covers(self, feature: str) -> bool:
        if not self.free:
            return False
        switches, action = self.switches[feature], self._action_of[feature]
        x = self.factual[feature]
        return (
            len(switches) == 1
            and switches[0].natural == Affine.of(x)
            and agreed((action.lower <= x) & (x <= action.upper))
            and (action.lattice is None or agreed(action.lattice.floors(np.asarray(x)) == x))
        )
