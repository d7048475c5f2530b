"""Each person's margin: how far the logit has to pass the threshold, so that the model's own one does.

It is computed on the values that this person alone can reach, so it does not depend on who else is asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import BadInput
from milp_recourse.problem.enclosure import round_up
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.population import Population
from milp_recourse.program.lower import reachable
from milp_recourse.readers import Column, Reading, rounding_margins
from milp_recourse.tables.columns import printable
from milp_recourse.tables.people_rows import Rows

TOGETHER = 1024
"""So many people's margins are computed at a time."""


def own_margins(
    problem: Instance, reading: Reading, given: float | None, rows: Rows, own: Sequence[Preferences]
) -> NDArray[np.float64]:
    """Everybody's margin: the one that was given, or else the one that a network's rounding needs; and that
    of :attr:`~milp_recourse.readers.Reading.unsure`.

    Returns
    -------
    NDArray
        In units of the classifier's score, (people,): nan for people who cannot be read, inf where rounding
        has no bound.
    """
    margins = np.full(len(rows), np.nan)
    readable = [i for i in range(len(rows)) if i not in rows.faults]
    unsure = Fraction(reading.unsure.margin)
    if given is not None or not isinstance(reading.classifier, ReluNetwork):
        margins[readable] = round_up(Fraction(given or 0.0) * Fraction(reading.unit) + unsure)
        return margins
    for first in range(0, len(readable), TOGETHER):
        some = readable[first : first + TOGETHER]
        reach = [_reached(_problem_of(problem, rows, own, i)) for i in some]
        ends = [
            _column_ranges(np.array([one[printable(c.name)] for one in reach]), c) for c in reading.columns
        ]
        lower, upper = (np.concatenate(side, axis=1) for side in zip(*ends, strict=True))
        finite = np.isfinite(lower).all(axis=1) & np.isfinite(upper).all(axis=1)
        margins[some] = np.inf
        margins[np.array(some)[finite]] = rounding_margins(reading, lower[finite], upper[finite])
    return np.nextafter(margins + float(unsure), np.inf) if unsure else margins


def _column_ranges(
    values: NDArray[np.float64], read: Column
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The least and largest number that a column puts into each of its inputs of the classifier, for each of
    several people, (n, inputs) each.

    Parameters
    ----------
    values
        The least and largest value of the column for each person, (n, 2).
    """
    if read.labels is None:
        return values[:, :1], values[:, 1:]
    if read.encoding == "one-hot":
        ends = np.zeros(len(read.labels)), np.ones(len(read.labels))
    else:
        table = np.array(read.table, dtype=np.float64)
        ends = table.min(axis=0), table.max(axis=0)
    return np.tile(ends[0], (len(values), 1)), np.tile(ends[1], (len(values), 1))


def without_unbounded(
    problem: Instance, rows: Rows, own: Sequence[Preferences], margins: Sequence[float]
) -> Rows:
    """The rows, with a fault for each person for whom rounding has no bound."""
    unbounded = [i for i, margin in enumerate(margins) if margin == math.inf]
    faults = dict(rows.faults)
    for i in unbounded:
        ends = _reached(_problem_of(problem, rows, own, i))
        far = {name: max(pair, key=abs) for name, pair in ends.items()}
        name = max(far, key=lambda name: abs(far[name]))
        allowed = "numbers for which the model's rounding has a bound (is the unit right?), or a margin"
        faults[i] = BadInput(name, f"values up to {far[name]:g}", allowed)
    return replace(rows, faults=faults, unbounded=frozenset(unbounded)) if unbounded else rows


def margin_in_words(reading: Reading, given: float | None, population: Population) -> str | None:
    """What accepted means, if there is a margin."""
    readable = [k for k in range(len(population)) if k not in population.unreadable]
    margins = [population.margin_of(k) / reading.unit for k in readable]
    low, high, at = min(margins), max(margins), reading.accept.threshold / reading.unit
    if not high:
        return None
    if reading.near and given is None:
        return f"a {reading.measure} up to {high:.2g} beyond the threshold can count as refused"
    own = f"{high:.3g}" if low == high else f"each person's own margin, {low:.3g} to {high:.3g}"
    why = "which covers the model's rounding" if given is None else "as margin asks"
    return f"accepted means a {reading.measure} of at least {f'{at:.6g} + ' if at else ''}{own}, {why}"


def _problem_of(problem: Instance, rows: Rows, own: Sequence[Preferences], i: int) -> Instance:
    """The problem of a person who could be read, but for the margin."""
    factual = dict(zip((f.name for f in problem.features), rows.values[i].tolist(), strict=True))
    return replace(problem, factual=factual, preferences=own[i])


def _reached(one: Instance) -> dict[str, tuple[float, float]]:
    """The least and largest value of every feature under all actions of one person."""
    if one.scm.edges:
        return {name: (_double(e.lower), _double(e.upper)) for name, e in reachable(one).items()}
    ends = {name: (x, x) for name, x in one.factual.items()}
    for name, (low, high) in one.levers.items():
        ends[name] = min(low, ends[name][0]), max(high, ends[name][1])
    return ends


def _double(value: Fraction) -> float:
    """The nearest double, infinite where there is none."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
