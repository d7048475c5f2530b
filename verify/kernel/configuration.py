"""The problem where exactly certain features are acted on: forms over a box of actions (section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import inf, nextafter
from typing import NamedTuple

from verify.kernel.box import Signs
from verify.kernel.conditions import Row, case, leaves, settled
from verify.kernel.curves import Interval
from verify.kernel.forms import Counterfactual, Form, constant
from verify.kernel.problem import Problem, row_form, total
from verify.kernel.trees import Range, column_ranges, float64

Cells = Mapping[str, tuple[float, float]]
"""Least and largest double of features whose values were split on."""


class Region(NamedTuple):
    """What the splits on the way to a node leave (section 6).

    Attributes
    ----------
    ends, signs, cells, conditions
        Intervals of the actions; signs of neurons; doubles of values; the rows of conditions that hold.
    """

    ends: Sequence[Interval]
    signs: Signs
    cells: Cells
    conditions: Sequence[Row]


class Configuration:
    """One configuration.

    Attributes
    ----------
    trees
        What must accept: the ensemble, or one of its parts (section 7.4).
    box, whole
        By action, its lever interval, and whether it takes whole numbers only.
    terms, fixed
        What the actions cost.
    idle
        The features acted on for which not acting is the same as their factual value, and as cheap.
    values
        Feature -> form over the actions (numbered from 0) and ``moved.units``.
    case
        What conditions demand on this configuration: rows that hold, and alternatives (section 11).
    conditions
        Every row of the conditions -> its form, which is at least 0 where the row holds.
    energy
        What plausibility is measured by: at most 0 for a feasible action.
    splittable
        The features that a cell can be split on.
    """

    def __init__(self, problem: Problem, acted: list[str], part: int | None = None) -> None:
        self.problem, self.acted, factual = problem, acted, problem.factual
        whole = problem.model.trees
        self.trees = whole if part is None or whole is None else whole.alone(part)
        self.box: list[Interval] = [problem.levers[f] for f in acted]
        self.whole = [f.whole for f in problem.features if f.name in acted]
        self.terms, self.fixed = list(problem.terms(acted).values()), problem.fixed(acted)
        self.moved = moved = Counterfactual(problem, {f: {k: Fraction(1)} for k, f in enumerate(acted)})
        self.values, self.energy = moved.values, moved.energy
        self.idle = {
            f for f, (low, high), whole in zip(acted, self.box, self.whole, strict=True)
            if not problem.model.part["l0"] and f not in problem.missing and low <= factual[f] <= high
            and (not whole or factual[f].denominator == 1) and moved.natural[f] == constant(factual[f])
            and f not in problem.asked_about and f not in problem.impossible
        }  # fmt: skip
        self.case = case(settled(problem.demand, acted))
        rows = (leaf for leaf in leaves(problem.demand) if isinstance(leaf, Row))
        self.conditions = {row: row_form(row, self.values) for row in rows}
        self.missing = problem.missing - set(acted)
        plain = {f.name for f in problem.features if f.table is None}
        self.splittable = plain - self.missing - set(acted) if self.trees else set()
        self.widths = [len(layer["bias"]) for layer in (problem.model.layers or ())[:-1]]

    def domains(self, cells: Cells) -> dict[str, tuple[Form, Range]]:
        """Values, and between what they lie: domains, narrowed to what is rounded into cells (section 6)."""
        found: dict[str, tuple[Form, Range]] = {
            f.name: (self.values[f.name], (f.domain[0], f.domain[1]))
            for f in self.problem.features
            if f.domain is not None and f.name not in self.missing
        }
        for f, (least, most) in cells.items():
            value, (low, high) = found.get(f, (self.values[f], (-inf, inf)))
            found[f] = value, (max(low, nextafter(least, -inf)), min(high, nextafter(most, inf)))
        return found

    def seen(self, intervals: Mapping[str, Interval], cells: Cells) -> list[Range | None] | None:
        """What the trees can see where values are in these intervals; None where one holds no double."""
        doubles: dict[str, Range] = {f: (float64(low), float64(high)) for f, (low, high) in intervals.items()}
        for f, (least, most) in cells.items():
            doubles[f] = max(doubles[f][0], least), min(doubles[f][1], most)
        if any(low > high for low, high in doubles.values()):
            return None
        features = self.problem.features
        return column_ranges(
            features, [None if f.name in self.missing else doubles[f.name] for f in features]
        )

    def largest_cost(self) -> Fraction:
        """The most that an action in the whole box can cost, each term at its farther end (section 5)."""
        ends = zip(self.terms, self.box, strict=True)
        return self.fixed + total(max(map(term.parts, both)) for term, both in ends)

    def least_cost(self, box: Sequence[Interval]) -> Fraction:
        """The least that each part of the cost can be on a box, added up (section 7.1, rule 1)."""
        ends = zip(self.terms, box, strict=True)
        return self.fixed + total(term.nearest(*both) for term, both in ends)
