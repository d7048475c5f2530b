"""Conditions on one value that an action sets: what is set is a double, and they may leave none."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from milp_recourse.problem.enclosure import round_down, round_up
from milp_recourse.program.affine import Affine
from milp_recourse.program.neutral_program import Program, Switch


def none_left(program: Program, forms: Iterable[Affine], levers: Sequence[str], acts: Iterable[int]) -> bool:
    """Whether the rows form >= 0 that are about one set value leave no double of it (x + 0.1 is seldom one),
    where those levers are set whose ``acts`` are not 0."""
    acted = {name for name, one in zip(levers, acts, strict=True) if one}
    ends: dict[str, tuple[float, float]] = {}
    for form in forms:
        if len(form.terms) != 1:
            continue
        [(k, slope)] = form.terms.items()
        atom = program.atoms[k]
        if isinstance(atom, Switch) and atom.feature in acted:
            end, (low, high) = -form.constant / slope, ends.get(atom.feature, (-math.inf, math.inf))
            low, high = (max(low, round_up(end)), high) if slope > 0 else (low, min(high, round_down(end)))
            ends[atom.feature] = low, high
    return any(low > high for low, high in ends.values())
