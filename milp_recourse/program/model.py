r"""The program every back end receives.

Atoms are numbered in the order they can be computed:

* :class:`Action`: the value an action sets, free in an interval;
* :class:`Switch`: ``acted`` if its feature is acted on, else ``natural``;
* :class:`Elementary`: a univariate function of an affine form (relu, sigmoid, logit, log, square, or
  the indicator of one whole number).

Everything else is affine in atoms: the classifier's input columns, domain rows, residuals. The
ReLU network stays dense, and a program is exact: coefficients are rational, and no function is
approximated here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import cast

import numpy as np

from milp_recourse.domain import conditions
from milp_recourse.domain.conditions import FALSE, TRUE, Demand
from milp_recourse.domain.enclosure import Enclosure, round_up
from milp_recourse.domain.quantiles import Quantiles
from milp_recourse.instance import Acceptance, Classifier
from milp_recourse.program.affine import Affine
from milp_recourse.program.demands import Span, conjuncts, for_acted, nearest_alternative, told_apart
from milp_recourse.program.functions import Function, enclose
from milp_recourse.program.rationals import Rationals, agreed, everyone


@dataclass(frozen=True)
class Action:
    """The value a_i that an action sets feature ``feature`` to: unit times this atom, lower <= atom <= upper.

    ``unit`` is a power of two; 1 unless :func:`~milp_recourse.program.equilibrate.equilibrate` chose another.
    """

    feature: str
    lower: float
    upper: float
    integral: bool = False
    unit: float = 1.0


@dataclass(frozen=True)
class Switch:
    """``acted`` if ``feature`` is acted on, else ``natural``."""

    feature: str
    acted: Affine
    natural: Affine


@dataclass(frozen=True)
class Elementary:
    """An elementary function of a form; ``level`` is the whole number an indicator stands for."""

    function: Function
    argument: Affine
    level: int = 0


Atom = Action | Switch | Elementary


@dataclass(frozen=True)
class Row:
    """lower <= form <= upper; the form is what is meant, divided by ``unit``, a power of two."""

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
    """What acting on one feature costs: delta is a_i - x_i, Q_i(a_i) - Q_i(x_i), or a category's change.

    With the program's coefficients c: ``c.l2_squared * weight * (delta/scale)^2 + c.l1 * weight
    * |delta|/scale + c.l0 * weight``, and weight * |delta|/scale enters the shared maximum.
    ``delta`` counts only where the feature is acted on. ``quantiles`` is Q_i where delta is made of it
    (as a form it is a sum of relu units), or the function that changes with two scales are measured with.
    """

    feature: str
    delta: Affine
    weight: Fraction
    scale: Fraction
    quantiles: Quantiles | None = None


@dataclass(frozen=True)
class CostCoefficients:
    """Coefficients of the four parts of the cost."""

    l2_squared: Fraction
    l1: Fraction
    linf: Fraction
    l0: Fraction


@dataclass(frozen=True)
class Program:
    """minimise cost subject to acceptance, domain rows and the plausibility ball.

    Parameters
    ----------
    atoms
        In computing order; forms refer to them by index.
    columns
        The classifier's input columns as forms.
    column_names
        Their names.
    classifier, accept
        The network (or trees) on those columns, and when its answer counts.
    rows, ball
        Domain rows; the ball or None.
    cost_terms, cost
        One term per feature that can be acted on.
    factual
        x_i of those features, in units of their action atoms.
    demand
        What conditions ask besides ``rows``: alternatives, and which features are acted on. Back ends that do
        not look at it solve a relaxation.
    followed, spans
        The counterfactual values that its rows are sums of, as forms, and the range of every row's sum.

    Notes
    -----
    A program of several applicants (:func:`~milp_recourse.program.cohort.together`) has arrays, one number
    per applicant, for the actions' bounds and the factual, and
    :class:`~milp_recourse.program.rationals.Rationals` for the forms' constants and the weights. No action is
    decoded with it.
    """

    atoms: tuple[Atom, ...]
    columns: tuple[Affine, ...]
    column_names: tuple[str, ...]
    classifier: Classifier
    accept: Acceptance
    rows: tuple[Row, ...]
    ball: Ball | None
    cost_terms: tuple[CostTerm, ...]
    cost: CostCoefficients
    factual: Mapping[str, float]
    demand: Demand = TRUE
    followed: Mapping[str, Affine] = field(default_factory=dict)
    spans: Mapping[conditions.Row, Span] = field(default_factory=dict)

    @property
    def actions(self) -> tuple[Action, ...]:
        """The action atoms, in order."""
        return tuple(a for a in self.atoms if isinstance(a, Action))

    @property
    def switched(self) -> tuple[str, ...]:
        """Features that may or may not be acted on; () once fixed."""
        names = [a.feature for a in self.atoms if isinstance(a, Switch)]
        return tuple(dict.fromkeys(names))

    def decode(self, values: Iterable[float], acted: Sequence[str] | None = None) -> dict[str, float]:
        """The action that action-atom values (in order of :attr:`actions`) stand for.

        Parameters
        ----------
        acted
            The features acted on; all action atoms' when None (a fixed program).
        """
        return {
            a.feature: float(round(v)) if a.integral else min(max(float(v), a.lower), a.upper) * a.unit
            for a, v in zip(self.actions, values, strict=True)
            if acted is None or a.feature in acted
        }

    def values(self, action: Mapping[str, float]) -> list[float]:
        """Action-atom values (in order of :attr:`actions`) of an action on all of them."""
        return [action[a.feature] / a.unit for a in self.actions]

    def enclose(self, action: Mapping[str, float]) -> list[Enclosure]:
        """Exact value of every atom under an action (action atoms not acted on read as zero)."""
        values: list[Enclosure] = []
        for atom in self.atoms:
            if isinstance(atom, Action):
                values.append(Enclosure.of(action.get(atom.feature, 0.0)) / atom.unit)
            elif isinstance(atom, Switch):
                values.append((atom.acted if atom.feature in action else atom.natural).enclose(values))
            else:
                values.append(enclose(atom.function, atom.argument.enclose(values), atom.level))
        return values

    def configurations(self) -> Iterator[frozenset[str]]:
        """The sets of acted features worth telling apart; together they cover every subset.

        Where not acting leaves a feature at its factual value, holding it there is the same
        and free, so the acted case covers both (unless actions have a fixed cost, or an action
        may not set the factual value, or a condition asks whether the feature is acted on). Sets that
        conditions rule out are left out.
        """
        choices: list[tuple[bool, ...]] = []
        asked = told_apart(self.demand, self.switched)
        for feature in self.switched:
            covers = feature not in asked and self._acting_covers(feature)
            choices.append((True,) if covers else (True, False))
        for choice in product(*choices):
            acted = frozenset(f for f, acted in zip(self.switched, choice, strict=True) if acted)
            if for_acted(self.demand, acted) != FALSE:
                yield acted

    def substitution(self, acted: frozenset[str]) -> tuple[list[Atom], list[Affine]]:
        """What deciding every switch leaves: the atoms that remain, and each old atom as a form in them.

        Atoms that become rational constants disappear. The action of a feature that is not
        acted on reads as zero; only switches that are off refer to it.
        """
        atoms: list[Atom] = []
        forms: list[Affine] = []
        for atom in self.atoms:
            if isinstance(atom, Action):
                if atom.feature not in acted:
                    forms.append(Affine())
                    continue
                kept: Atom = atom
            elif isinstance(atom, Switch):
                forms.append((atom.acted if atom.feature in acted else atom.natural).substitute(forms))
                continue
            else:
                kept = replace(atom, argument=atom.argument.substitute(forms))
                known = constant_value(kept)
                if known is not None:
                    forms.append(Affine(known))
                    continue
            forms.append(Affine.atom(len(atoms)))
            atoms.append(kept)
        return atoms, forms

    def fix(self, acted: frozenset[str], prune: bool = True) -> Program:
        """The program with every switch decided: exactly the features ``acted`` are acted on.

        Parameters
        ----------
        prune
            Drop units that nothing refers to any more; without, atoms are numbered as in
            :meth:`substitution`.
        """
        atoms, forms = self.substitution(acted)
        fixed = self._with(atoms, forms, acted).demanding(for_acted(self.demand, acted))
        if not prune:
            return fixed
        needed = fixed.behind(fixed.forms()) | {k for k, a in enumerate(atoms) if isinstance(a, Action)}
        if len(needed) == len(atoms):
            return fixed
        kept = sorted(needed)
        renamed = [Affine.atom(kept.index(k)) if k in needed else Affine() for k in range(len(atoms))]
        left = [
            replace(a, argument=a.argument.substitute(renamed)) if isinstance(a, Elementary) else a
            for a in (atoms[k] for k in kept)
        ]
        return fixed._with(left, renamed, acted)

    def demanding(self, demand: Demand) -> Program:
        """The program with another demand, what must hold in any case being rows."""
        rows, rest = conjuncts(demand)
        if not rows and rest == self.demand:
            return self
        start = len(self.rows)
        made = [self.demand_row(f"condition_{start + k}", row) for k, row in enumerate(rows)]
        return replace(self, rows=(*self.rows, *made), demand=rest)

    def demand_row(self, name: str, row: conditions.Row) -> Row:
        """sum c x' - b >= 0 as a row, in a unit of its own size.

        Its upper end is twice the largest value it can have, so that it is never reached.
        """
        form = Affine(-row.at_least)
        for feature, c in row.terms:
            form = form + self.followed[feature].scaled(c)
        top = max(round_up(self.spans[row][1]), 0.0)
        unit = math.ldexp(1.0, min(max(math.frexp(top)[1], -400), 400))
        return Row(name, form.scaled(1 / Fraction(unit)), 0.0, 2 * top / unit, unit)

    def at_point(self, atoms: Sequence[float]) -> Program:
        """The fixed program in the alternative that a point meets best, said by rows.

        Parameters
        ----------
        atoms
            Value of every atom there.
        """
        slack = {}
        for row in conditions.leaves(self.demand):
            if isinstance(row, conditions.Row):
                made = self.demand_row("", row).form
                slack[row] = float(made.constant) + sum(float(c) * atoms[k] for k, c in made.terms.items())
        return self.demanding(conditions.all_of(nearest_alternative(self.demand, slack)))

    def forms(self) -> Iterator[Affine]:
        """Every form that is not an atom's own: columns, rows, ball, costs, what conditions may ask for."""
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
        """The atoms of a fixed program that forms refer to, themselves or through arguments."""
        needed = {k for form in forms for k in form.terms}
        for k in range(len(self.atoms) - 1, -1, -1):
            atom = self.atoms[k]
            if k in needed and isinstance(atom, Elementary):
                needed |= set(atom.argument.terms)
        return needed

    def _with(self, atoms: Sequence[Atom], forms: Sequence[Affine], acted: frozenset[str]) -> Program:
        """The same program over other atoms, each old atom k being ``forms[k]``."""
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
        if self.cost.l0:
            return False
        switches = [a for a in self.atoms if isinstance(a, Switch) and a.feature == feature]
        action = next(a for a in self.actions if a.feature == feature)
        x = self.factual[feature]
        return (
            len(switches) == 1
            and switches[0].natural == Affine.of(x)
            and agreed((action.lower <= x) & (x <= action.upper))
            and (not action.integral or agreed(np.floor(x) == x))  # an imputed value may be no whole number
        )


def constant_value(atom: Elementary) -> Fraction | None:
    """The atom's value where it is a rational constant, else None."""
    if not atom.argument.is_constant:
        return None
    argument = atom.argument.constant
    if isinstance(argument, Rationals):
        if atom.function == "indicator":
            return cast(Fraction, argument.indicator(atom.level))
        if atom.function not in ("relu", "square"):
            raise everyone(len(argument.numerator))  # irrational for most, rational for some
        return cast(Fraction, getattr(argument, atom.function)())
    value = enclose(atom.function, Enclosure.of(argument), atom.level)
    return value.lower if value.exact else None
