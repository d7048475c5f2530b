"""Rows of rationals as whole numbers over a common denominator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import lcm

Row = Sequence[Fraction]
"""Coefficients of 1, the actions and the units, in this order."""


def whole_numbers(rows: Iterable[Row]) -> tuple[list[list[int]], int]:
    """The rows times their least common denominator, and that."""
    listed = [list(row) for row in rows]
    unit = lcm(*(c.denominator for row in listed for c in row))
    return [[c.numerator * (unit // c.denominator) for c in row] for row in listed], unit
