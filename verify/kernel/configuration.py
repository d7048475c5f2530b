"""The problem where exactly certain features are acted on: forms over a box of actions (section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import inf, nextafter
from typing import Any, NamedTuple

from verify.kernel.box import Signs
from verify.kernel.feasible import impossible, row_form
from verify.kernel.forms import Counterfactual, Form, constant
from verify.kernel.problem import Case, Interval, Problem, case, leaves, total
from verify.kernel.trees import Range, accepts, float64

Cells = Mapping[str, tuple[float, float]]
"""Least and largest double of features whose values were split on."""


class Region(NamedTuple):
    """What the splits on the way to a node leave (section 6).

    Attributes
    ----------
    ends, signs, cells
        Intervals of the actions; signs of neurons; doubles of values.
    case
        The rows of conditions that hold, and the alternatives that are open.
    gone
        What tables of prices took out.
    """

    ends: Sequence[Interval]
    signs: Signs
    cells: Cells
    case: Case
    gone: Any


class Configuration:
    """One configuration.

    Attributes
    ----------
    forests, one_suffices
        What must accept: all of these ensembles, or one of them; in a case one of its parts (section 7.4).
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
        model = problem.model
        self.forests = model.forests if part is None else [model.forests[part]]
        self.one_suffices = model.one_suffices and part is None
        self.box: list[Interval] = [problem.levers[f] for f in acted]
        self.whole = [f.whole for f in model.features if f.name in acted]
        self.terms = [problem.terms[f] for f in acted]
        self.fixed = sum((problem.fixed[f] for f in acted), Fraction(0))
        self.moved = moved = Counterfactual(problem, {f: {k: Fraction(1)} for k, f in enumerate(acted)})
        self.values, self.energy = moved.values, moved.energy
        self.idle = {
            f for f, (low, high), whole in zip(acted, self.box, self.whole, strict=True)
            if not problem.fixed[f] and f not in problem.missing and low <= factual[f] <= high
            and (not whole or factual[f].denominator == 1) and moved.natural[f] == constant(factual[f])
            and f not in problem.asked_about and f not in impossible(problem)
        }  # fmt: skip
        demand = problem.demand(acted)
        self.case = case(demand)
        self.conditions = {row: row_form(row, self.values) for row in leaves(demand)}
        self.missing = problem.missing - set(acted)
        plain = {f.name for f in model.features if f.table is None}
        self.splittable = plain - self.missing - set(acted) if self.forests else set()
        self.widths = [len(layer["bias"]) for layer in (model.layers or ())[:-1]]

    def domains(self, cells: Cells) -> dict[str, tuple[Form, Range]]:
        """Values, and between what they lie: domains, narrowed to what is rounded into cells (section 6)."""
        found: dict[str, tuple[Form, Range]] = {
            f.name: (self.values[f.name], (f.domain[0], f.domain[1]))
            for f in self.problem.model.features
            if f.domain is not None and f.name not in self.missing
        }
        for f, (least, most) in cells.items():
            value, (low, high) = found.get(f, (self.values[f], (-inf, inf)))
            found[f] = value, (max(low, nextafter(least, -inf)), min(high, nextafter(most, inf)))
        return found

    def can_accept(self, intervals: Mapping[str, Interval], cells: Cells) -> bool:
        """Whether trees can accept where values are in these intervals; not where one holds no double."""
        doubles: dict[str, Range] = {f: (float64(low), float64(high)) for f, (low, high) in intervals.items()}
        for f, (least, most) in cells.items():
            doubles[f] = max(doubles[f][0], least), min(doubles[f][1], most)
        if any(low > high for low, high in doubles.values()):
            return False
        known = {f: None if f in self.missing else ends for f, ends in doubles.items()}
        seen = [(f.table, known[f.name]) for f in self.problem.model.features]
        return accepts(self.forests, self.one_suffices, seen, max)

    def costs(self, box: Sequence[Interval]) -> Interval:
        """The least and the most that each part of the cost can be on a box, added up (sections 5, 7.1)."""
        both = [term.ends(*ends) for term, ends in zip(self.terms, box, strict=True)]
        least, most = (self.fixed + total(side) for side in zip(*both, strict=True))
        return least, most
