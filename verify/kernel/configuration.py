"""The problem where exactly certain features are acted on: forms over a box of actions (section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf, nextafter

from verify.kernel.conditions import case, for_acted, rows_of
from verify.kernel.forms import Counterfactual, Form, constant
from verify.kernel.problem import Interval, Problem, row_form, total
from verify.kernel.trees import Range, column_ranges, float64

Cells = dict[str, tuple[float, float]]
"""Least and largest double of features whose values were split on."""

Domain = tuple[Form, Fraction | float, Fraction | float]
"""A value, and the ends between which it lies."""


class Configuration:
    """One configuration.

    Attributes
    ----------
    trees
        What must accept: the ensemble, or one of its parts (section 7.4).
    box
        By action, its lever interval; ``whole``: whether it takes whole numbers only.
    terms, fixed
        What the actions cost.
    idle
        The features acted on for which not acting is the same as their factual value, and as cheap.
    values
        Feature -> form over the actions (numbered from 0) and ``moved.units``.
    domains
        Feature -> its value and the ends of its domain, where it has one.
    case
        What conditions demand on this configuration: rows that hold, and alternatives (section 11).
    conditions
        Every row of the conditions -> its form, which is at least 0 where the row holds.
    ball
        Weight and residual of each square, and the rest: a feasible action has sum w r^2 + rest <= 0.
    """

    def __init__(self, problem: Problem, acted: list[str], part: int | None = None) -> None:
        self.problem, self.acted = problem, acted
        whole = problem.model.trees
        self.trees = whole if part is None or whole is None else whole.alone(part)
        self.box: list[Interval] = [problem.levers[f] for f in acted]
        kinds = {f.name: f for f in problem.features}
        self.whole = [kinds[f].whole for f in acted]
        self.terms, self.fixed = [problem.term(f) for f in acted], problem.fixed(acted)
        self.moved = moved = Counterfactual(problem, {f: {k: Fraction(1)} for k, f in enumerate(acted)})
        self.values = moved.values
        self.idle = {
            f for f, (low, high), whole in zip(acted, self.box, self.whole, strict=True)
            if not problem.model.part["l0"] and f not in problem.missing and low <= problem.factual[f] <= high
            and (not whole or problem.factual[f].denominator == 1)
            and moved.natural[f] == constant(problem.factual[f]) and f not in problem.asked_about
            and f not in problem.impossible
        }  # fmt: skip
        self.case = case(for_acted(problem.demand, acted))
        self.conditions = {row: row_form(row, self.values) for row in rows_of(problem.demand)}
        self.ball = moved.ball()
        self.missing = problem.missing - set(acted)
        self.domains: dict[str, Domain] = {
            f.name: (self.values[f.name], Fraction(f.domain[0]), Fraction(f.domain[1]))
            for f in problem.features
            if f.domain is not None and f.name not in self.missing
        }
        plain = {f.name for f in problem.features if f.table is None}
        self.splittable = plain - self.missing - set(acted) if self.trees else set()

    @property
    def widths(self) -> list[int]:
        """Neurons by hidden layer."""
        return [len(layer["bias"]) for layer in (self.problem.model.layers or ())[:-1]]

    def rows(self, cells: Cells) -> dict[str, Domain]:
        """The domains, narrowed to the reals whose nearest doubles are in the cells (section 6)."""
        found = dict(self.domains)
        for f, (least, most) in cells.items():
            value, low, high = found.get(f, (self.values[f], -inf, inf))
            below, above = _exact(nextafter(least, -inf)), _exact(nextafter(most, inf))
            found[f] = value, max(low, below), min(high, above)
        return found

    def seen(self, intervals: dict[str, Interval], cells: Cells) -> list[Range | None] | None:
        """What the trees can see where values are in these intervals; None where one holds no double."""
        doubles: dict[str, Range] = {f: (float64(low), float64(high)) for f, (low, high) in intervals.items()}
        for f, (least, most) in cells.items():
            low, high = doubles[f]
            doubles[f] = max(low, least), min(high, most)
        if any(low > high for low, high in doubles.values()):
            return None
        listed = [None if f in self.missing else ends for f, ends in doubles.items()]
        return column_ranges(self.problem.features, listed)

    def largest_cost(self) -> Fraction:
        """The most that an action in the whole box can cost, each term at its farther end (section 5)."""
        ends = zip(self.terms, self.box, strict=True)
        return self.fixed + total(max(term.parts(low), term.parts(high)) for term, (low, high) in ends)

    def least_cost(self, box: Sequence[Interval]) -> Fraction:
        """The least that each part of the cost can be on a box, added up (section 7.1, rule 1)."""
        ends = zip(self.terms, box, strict=True)
        return self.fixed + total(term.parts(min(max(term.factual, low), high)) for term, (low, high) in ends)


def _exact(end: float) -> Fraction | float:
    return end if abs(end) == inf else Fraction(end)
