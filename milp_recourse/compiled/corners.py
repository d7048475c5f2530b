"""Points on rows and bounds exactly: where rows leave only a corner or an edge, no other point is feasible.

A relaxed optimum is near its active bounds and rows only as far as rounding allows. Here bounds are taken
exactly, and the active rows are solved for as many levers, in rational arithmetic. The others are rounded to
fewer digits, so that what is solved for may be a double. Nothing is proven here: candidates are judged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction

from milp_recourse.compiled.numerics import COARSE
from milp_recourse.program.model import Action, Program

DIGITS = (52, 36, 20)
"""Binary digits of a lever's interval that the free levers keep."""


def onto_rows(program: Program, action: Mapping[str, float]) -> Iterator[dict[str, float]]:
    """Actions near one whose values meet the rows that are nearly active exactly, if doubles can.

    Parameters
    ----------
    program
        Fixed for the features of ``action``.
    """
    atoms = {a.feature: (k, a) for k, a in enumerate(program.atoms) if isinstance(a, Action)}
    values = {name: Fraction(value) for name, value in action.items() if name in atoms}
    if len(values) < len(action) or not program.rows:
        return
    widths = {name: Fraction(a.upper) - Fraction(a.lower) for name, (_, a) in atoms.items()}
    free = []
    for name, (_, a) in atoms.items():
        if a.integral:
            continue
        margin = Fraction(COARSE) * widths[name]
        ends = [Fraction(end) for end in (a.lower, a.upper)]
        near = min(ends, key=lambda end: abs(end - values[name]))
        if abs(near - values[name]) <= margin:
            values[name] = near
        else:
            free.append(name)
    active = list(_active(program, atoms, values, widths))
    for digits in DIGITS:
        rounded = dict(values)
        for name in free:
            step = Fraction(2) ** (math.frexp(float(widths[name]))[1] - digits)
            rounded[name] = round(values[name] / step) * step
        solved = _solved(active, free, rounded)
        yield dict(action) | {name: float(value) for name, value in solved.items()}


Form = tuple[dict[str, Fraction], Fraction]


def _active(
    program: Program,
    atoms: Mapping[str, tuple[int, Action]],
    values: Mapping[str, Fraction],
    widths: Mapping[str, Fraction],
) -> Iterator[Form]:
    """Rows (coefficients and constant) over values alone that are nearly zero, those ends of them."""
    names = {k: name for name, (k, _) in atoms.items()}
    for row in program.rows:
        if not row.form.terms.keys() <= names.keys():
            continue
        terms = {names[k]: c for k, c in row.form.terms.items()}
        value = row.form.constant + sum(c * values[name] for name, c in terms.items())
        margin = Fraction(COARSE) * sum((abs(c) * widths[name] for name, c in terms.items()), Fraction(0))
        for end in (row.lower, row.upper):
            if math.isfinite(end) and abs(value - Fraction(end)) <= margin:
                yield terms, row.form.constant - Fraction(end)


def _solved(active: list[Form], free: list[str], values: dict[str, Fraction]) -> dict[str, Fraction]:
    """The values with one free lever for each independent row moved to meet it."""
    pivots: list[tuple[str, Form]] = []
    for form, constant in active:
        known = constant + sum(c * values[name] for name, c in form.items() if name not in free)
        terms = {name: c for name, c in form.items() if name in free}
        for name, (other, shift) in pivots:
            c = terms.pop(name, Fraction(0))
            known += c * shift
            for also, d in other.items():
                terms[also] = terms.get(also, Fraction(0)) + c * d
        terms = {name: c for name, c in terms.items() if c}
        if not terms:
            continue
        name, lead = max(terms.items(), key=lambda one: abs(one[1]))
        del terms[name]
        pivots.append((name, ({also: -c / lead for also, c in terms.items()}, -known / lead)))
    for name, (other, shift) in reversed(pivots):
        values[name] = shift + sum(c * values[also] for also, c in other.items())
    return values
