"""Affine bounds of structural units on a box (section 6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import floor, lcm
from operator import mul
from typing import Any, NamedTuple

from verify import curves
from verify.reading import Clock, bounded

Row = Sequence[Fraction]
"""Coefficients of 1, the actions and the units, in this order."""

Interval = tuple[Fraction, Fraction]


class Unit(NamedTuple):
    """A function of an affine argument over 1, the actions and the units before it."""

    function: str
    level: int
    argument: Row


def whole_numbers(rows: Iterable[Row]) -> tuple[list[list[int]], int]:
    """The rows times their least common denominator, and that."""
    listed = [list(row) for row in rows]
    unit = lcm(*(c.denominator for row in listed for c in row))
    return [[c.numerator * (unit // c.denominator) for c in row] for row in listed], unit


def lines(function: str, level: int, low: Fraction, high: Fraction) -> tuple[Interval, Interval]:
    """Slope and intercept of a unit's lower and upper line on an interval of its argument."""
    zero, one = Fraction(0), Fraction(1)
    if function == "sigmoid":
        return curves.sigmoid_lines(low, high)
    if function == "logit":  # of a number
        below, above = curves.logit(low)
        return (zero, below), (zero, above)
    if function == "square":
        low, high = bounded(low), bounded(high)
        return (low + high, -((low + high) ** 2) / 4), (low + high, -low * high)
    if function == "indicator":
        return (zero, Fraction(low == level == high)), (zero, Fraction(low <= level <= high))
    if low >= 0:
        return (one, zero), (one, zero)
    if high <= 0:
        return (zero, zero), (zero, zero)
    slope = Fraction(floor(high / (high - low) * 2**32), 2**32)
    return (one if high > -low else zero, zero), (slope, max(-slope * low, (1 - slope) * high))


class Box:
    """A box of actions, and every unit's lines on it.

    Actions are counted in units of 1 / grid, so that the box has whole ends, and every other
    quantity with them: a row of a form f stands for ``grid`` f. Replacing the units multiplies a row by
    ``factor``.
    """

    def __init__(self, ends: Sequence[Interval], units: Sequence[Unit]) -> None:
        self.ends = ends
        self.grid = lcm(*(end.denominator for pair in ends for end in pair))
        self.low, self.high = ([self.grid, *(int(p[k] * self.grid) for p in ends)] for k in (0, 1))
        self.low[0] = self.high[0] = 1
        self.lower: list[list[int]] = []
        self.upper: list[list[int]] = []
        self.factors: list[int] = []
        self.factor = 1
        for unit in units:
            Clock.look()
            chosen = lines(unit.function, unit.level, *self.interval(unit.argument))
            rows = [[slope * c for c in self.row(unit.argument)] for slope, _ in chosen]
            for row, (_, intercept) in zip(rows, chosen, strict=True):
                row[0] += intercept * self.grid
            (lower, upper), factor = whole_numbers(rows)
            self.lower.append(lower)
            self.upper.append(upper)
            self.factors.append(factor)
            self.factor *= factor

    def row(self, form: Row) -> list[Fraction]:
        """A form in the box's own units."""
        return [form[0] * self.grid, *form[1:]]

    def above(self, row: Sequence[Any]) -> list[Any]:
        """The row with each unit replaced from above, the last first; times the factors."""
        form = list(row)
        for k in range(len(form) - len(self.low) - 1, -1, -1):
            c, factor = form.pop(), self.factors[k]
            line = self.upper[k] if c > 0 else self.lower[k]
            form = [factor * a + c * b for a, b in zip(form, line, strict=True)]
        return form

    def most(self, row: Sequence[Any]) -> Any:
        """The maximum of a row from above."""
        form = self.above(row) if len(row) > len(self.low) else row
        return sum(map(max, map(mul, form, self.low), map(mul, form, self.high)))

    def maximum(self, form: Row) -> Fraction:
        """The maximum of a form from above, in its own unit."""
        factor = self.grid
        for k in range(len(form) - len(self.low)):
            factor *= self.factors[k]
        return Fraction(self.most(self.row(form)), factor)

    def interval(self, form: Row) -> Interval:
        """The form's interval: from below and from above (section 6)."""
        return -self.maximum([-c for c in form]), self.maximum(form)
