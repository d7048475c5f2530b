"""A mixed-integer program with a separable quadratic objective and one convex quadratic row.

What HiGHS, Pyomo and the LP/MPS writers all receive. Every column has derived, finite bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Number = float | Fraction
Form = tuple[Mapping[int, Number], Number]
"""An affine form over columns: coefficients and a constant. Fractions stay exact until a row rounds them."""


@dataclass(frozen=True)
class LinearRow:
    """lower <= sum coefficients * column <= upper."""

    name: str
    coefficients: Mapping[int, float]
    lower: float
    upper: float


@dataclass(frozen=True)
class QuadraticRow:
    """sum squares[k] * column_k^2 + sum linear[k] * column_k <= upper; squares are positive."""

    name: str
    squares: Mapping[int, float]
    linear: Mapping[int, float]
    upper: float


@dataclass
class MixedInteger:
    """minimise offset + sum linear * column + sum squares * column^2.

    Attributes
    ----------
    names, lower, upper, integer
        One entry per column.
    rows, ball
        Linear rows; the plausibility ball or None.
    linear, squares, offset
        The objective.
    actions
        Feature -> its action column.
    flags
        Feature -> the 0/1 column that is 1 if it is acted on; features whose switches are decided have none.
    """

    names: list[str] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    integer: list[bool] = field(default_factory=list)
    rows: list[LinearRow] = field(default_factory=list)
    ball: QuadraticRow | None = None
    linear: dict[int, float] = field(default_factory=dict)
    squares: dict[int, float] = field(default_factory=dict)
    offset: float = 0.0
    actions: dict[str, int] = field(default_factory=dict)
    flags: dict[str, int] = field(default_factory=dict)

    def column(self, name: str, lower: float, upper: float, integer: bool = False) -> int:
        """Add a column and return its index.

        Raises
        ------
        ValueError
            A bound is not finite: bounds are derived, never assumed.
        """
        if not (np.isfinite(lower) and np.isfinite(upper)):
            raise ValueError(f"column {name!r} has no derived bounds: [{lower}, {upper}]")
        self.names.append(name)
        self.lower.append(lower)
        self.upper.append(max(lower, upper))
        self.integer.append(integer)
        return len(self.names) - 1

    def row(self, name: str, form: Form, lower: float = -np.inf, upper: float = np.inf) -> None:
        """Add lower <= form <= upper."""
        coefficients, constant = form
        kept = {k: float(c) for k, c in coefficients.items() if c}
        self.rows.append(LinearRow(name, kept, _less(lower, constant), _less(upper, constant)))

    def fixed_column(self, name: str, form: Form, lower: float, upper: float) -> int:
        """Add a column that equals a form, and return its index."""
        k = self.column(name, lower, upper)
        self.row(f"{name}_is", combine((form, 1.0), (({k: 1.0}, 0.0), -1.0)), 0.0, 0.0)
        return k

    def decode(self, values: Sequence[float] | NDArray[np.float64]) -> dict[str, float]:
        """The action that column values stand for."""
        return {
            feature: float(values[k])
            for feature, k in self.actions.items()
            if feature not in self.flags or values[self.flags[feature]] > 0.5
        }

    def objective(self, values: Sequence[float] | NDArray[np.float64]) -> float:
        """Objective at column values."""
        total = self.offset + sum(c * values[k] for k, c in self.linear.items())
        return float(total + sum(c * values[k] ** 2 for k, c in self.squares.items()))


def combine(*parts: tuple[Form, Number]) -> tuple[dict[int, Number], Number]:
    """The sum of forms times factors; exact where the forms' numbers are Fractions."""
    total: dict[int, Number] = {}
    constant: Number = 0.0
    for (coefficients, offset), factor in parts:
        if offset:
            constant = _plus(constant, _times(factor, offset))
        for k, c in coefficients.items():
            term = _times(factor, c)
            total[k] = _plus(total[k], term) if k in total else term
    return total, constant


def _less(end: float, constant: Number) -> float:
    """end - constant, rounded once."""
    if not constant or not np.isfinite(end):
        return end
    return float(Fraction(end) - Fraction(constant))


def _times(a: Number, b: Number) -> Number:
    """a b; a Fraction if one of them is."""
    if a == 1:
        return b
    if b == 1:
        return a
    if isinstance(a, Fraction):
        return a * (b if isinstance(b, Fraction) else Fraction(b))
    return Fraction(a) * b if isinstance(b, Fraction) else a * b


def _plus(a: Number, b: Number) -> Number:
    """a + b; a Fraction if one of them is."""
    if not a:
        return b
    if isinstance(a, Fraction):
        return a + (b if isinstance(b, Fraction) else Fraction(b))
    return Fraction(a) + b if isinstance(b, Fraction) else a + b
