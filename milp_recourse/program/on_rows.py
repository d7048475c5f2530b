"""Points on rows and bounds exactly: where rows leave only a corner or an edge, no other point is feasible.

A relaxed optimum is near its active bounds and rows only as far as rounding allows. Here bounds are taken
exactly, and the active rows are solved for as many levers, in rational arithmetic. The others are rounded to
fewer digits, so that what is solved for may be a double. Nothing is proven here: candidates are judged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction

from milp_recourse.program.forms import Action, Affine
from milp_recourse.program.neutral_program import Program

NEARLY = Fraction(1, 2**20)
"""Of an interval's width, how near to its end a value is taken to be at the end; and likewise for rows."""

DIGITS = (52, 36, 20)
"""Binary digits of a lever's interval that the free levers keep."""


def onto_rows(program: Program, action: Mapping[str, float]) -> Iterator[dict[str, float]]:
    """Actions near a given one that meet, as exactly as doubles can, the rows that the given one nearly meets
    with equality.

    Parameters
    ----------
    program
        Fixed for the features of ``action``.
    """
    own = {k: a for k, a in enumerate(program.atoms) if isinstance(a, Action)}
    if len(own) < len(action) or not program.rows:
        return
    steady = [Affine.atom(k) for k in range(len(program.atoms))]
    values, widths, forms = [Fraction(0)] * len(steady), [Fraction(0)] * len(steady), list(steady)
    for k, a in own.items():
        ends, values[k] = [Fraction(a.lower), Fraction(a.upper)], Fraction(action[a.feature])
        widths[k], off = ends[1] - ends[0], [abs(end - values[k]) for end in ends]
        if not a.integral and min(off) <= NEARLY * widths[k]:
            values[k] = ends[off.index(min(off))]
        elif not a.integral:
            continue
        forms[k] = Affine(values[k])
    at_point = [Affine(value) for value in values]
    for row in program.rows:
        if not row.form.terms.keys() <= own.keys():
            continue
        size = sum((abs(c) * widths[k] for k, c in row.form.terms.items()), Fraction(0))
        for end in (row.lower, row.upper):
            if math.isfinite(end):
                above = row.form - Affine(Fraction(end))
                left = above.substitute(forms)
                if left.terms and abs(above.substitute(at_point).constant) <= NEARLY * size:
                    k, lead = max(left.terms.items(), key=lambda one: abs(one[1]))
                    solved = [*steady[:k], steady[k] - left.scaled(1 / lead), *steady[k + 1 :]]
                    forms = [form.substitute(solved) for form in forms]
    for digits in DIGITS:
        steps = [Fraction(2) ** (math.frexp(float(width))[1] - digits) for width in widths]
        rounded = [Affine(round(v / step) * step) for v, step in zip(values, steps, strict=True)]
        yield {**action, **{a.feature: float(forms[k].substitute(rounded).constant) for k, a in own.items()}}
