r"""A mixed-integer program with a separable quadratic objective and one convex quadratic row.

What HiGHS, Pyomo and the LP/MPS writers all receive. Every column has derived, finite bounds. A solver with
an absolute feasibility tolerance gets a relaxation, so that no feasible point is lost.

A sum of n products computed in any order is off by at most
:math:`\gamma_n \sum_i |p_i|,\; \gamma_n = n u / (1 - n u),\; u = 2^{-53}`
(Higham 2002, https://doi.org/10.1137/1.9780898718027, section 3.1): proportional to the absolute
values, not to what is left after they cancel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

ULP = 2.0**-52


def slack(terms: int) -> float:
    """The relative slack that covers sums of up to ``terms`` products and their few roundings each."""
    return ULP * terms


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


DROPPED = 1e-9
"""Coefficients this small are dropped by HiGHS (its ``small_matrix_value``)."""

NARROW = 4.0
"""A column is narrow if its ends are less than so many tolerances apart."""


def tolerant(mip: MixedInteger, tolerance: float) -> MixedInteger:
    """The program with columns that are not narrower than the tolerance, and rows without tiny coefficients.

    A solver takes a column whose ends are nearer than its tolerance for fixed at one of them. Where another
    row multiplies that column (a saturated sigmoid's, say), no feasible point may then be left: HiGHS called
    such a program infeasible. What a tiny coefficient adds to its row goes into the row's ends.
    """
    lower, upper = list(mip.lower), list(mip.upper)
    for k, (low, high, whole) in enumerate(zip(mip.lower, mip.upper, mip.integer, strict=True)):
        if not whole and 0.0 < high - low < NARROW * tolerance:
            lower[k], upper[k] = low - tolerance, high + tolerance
    rows = [without_tiny(row, lower, upper) for row in mip.rows]
    return replace(mip, lower=lower, upper=upper, rows=rows)


Ends = Sequence[float] | NDArray[np.float64]


def without_tiny(row: LinearRow, lower: Ends, upper: Ends) -> LinearRow:
    """The row without coefficients up to :data:`DROPPED`, looser by what they add within bounds."""
    tiny = [(k, c) for k, c in row.coefficients.items() if abs(c) <= DROPPED]
    if not tiny:
        return row
    low, high = row.lower, row.upper
    for k, c in tiny:
        ends = c * lower[k], c * upper[k]
        low, high = low - max(ends), high - min(ends)
    kept = {k: c for k, c in row.coefficients.items() if abs(c) > DROPPED}
    return replace(row, coefficients=kept, lower=low, upper=high)
