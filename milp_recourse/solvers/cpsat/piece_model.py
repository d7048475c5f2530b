r"""One piece of a causal problem in whole numbers, relaxed so that no feasible action is lost.

On a piece (:mod:`milp_recourse.engine.forests.causal_pieces`) columns, rows and residuals are affine in the
actions. An action a becomes the whole number A nearest to s (a - x), x the factual, so that

.. math:: s (a - x) = A + e, \qquad |e| \le 1/2 \quad (e = 0 \text{ where actions are whole}),

and a form m a + c, in units of 1/T with coefficients M rounded to whole numbers,

.. math:: T (m a + c) = \sum_i M_i A_i + C + \delta, \qquad
          |\delta| \le \sum_i \bigl(|T m_i/s_i - M_i| \max|A_i| + \tfrac12 |T m_i/s_i|\bigr) + |T c' - C| .

Every constraint is moved outward by the bound of its :math:`\delta`, computed in rational numbers, so that
what holds for a holds for A. Squares are CP-SAT's own products of whole numbers: of residuals, rounded
towards zero, and in the cost,

.. math:: \kappa (a - x)^2 \ge \frac{\kappa}{s^2} \bigl(|A| - \tfrac12\bigr)^2
          \ge \frac{\kappa}{s^2} (A^2 - |A|).

So the optimum of the integers is a lower bound of the piece. How far below does not matter to the result:
:mod:`milp_recourse.solvers.cpsat.causal_trees` solves the leaves it picks exactly, and forbids them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.forests.causal_pieces import Forms, Piece
from milp_recourse.engine.forests.causal_search import Costs
from milp_recourse.engine.forests.table import LeafTable
from milp_recourse.problem.enclosure import exponent
from milp_recourse.solvers.cpsat.leaves import LARGEST, SatModel
from milp_recourse.solvers.leaf_model import Cells

Array = NDArray[np.float64]

GRID_BITS = 14
"""An action's longer side has 2^14 grid steps: enough to tell leaves apart, few enough to be squared."""

MOST_WHOLE = 2**20
"""Whole-valued actions that can be farther from the factual are put on a grid like continuous ones, because
CP-SAT squares in 64 bits."""

FORM_BITS = 20
"""Binary digits of a form's largest coefficient."""


@dataclass(frozen=True)
class _Grid:
    """An action on whole numbers: |scale (a - x) - A| <= half, least <= A <= most."""

    x: Fraction
    scale: Fraction
    half: Fraction
    least: int
    most: int

    @staticmethod
    def of(x: float, low: float, high: float, whole: bool) -> _Grid:
        """The grid of an action with factual value x and this interval."""
        start, ends = Fraction(x), (Fraction(low), Fraction(high))
        if whole and start.denominator == 1 and max(abs(end - start) for end in ends) < MOST_WHOLE:
            least, most = math.ceil(ends[0] - start), math.floor(ends[1] - start)
            return _Grid(start, Fraction(1), Fraction(0), least, most)
        width = max(abs(ends[0] - start), abs(ends[1] - start), Fraction(1, 2**60))
        scale = _power(Fraction(2**GRID_BITS) / width)
        return _Grid(
            start,
            scale,
            Fraction(1, 2),
            math.floor((ends[0] - start) * scale),
            math.ceil((ends[1] - start) * scale),
        )

    @property
    def largest(self) -> int:
        return max(abs(self.least), abs(self.most))


@dataclass(frozen=True)
class _Whole:
    """A form in whole numbers: |unit * form - expression| <= error, least <= expression <= most."""

    expression: Any
    unit: Fraction
    error: Fraction
    least: int
    most: int

    @property
    def size(self) -> int:
        return max(abs(self.least), abs(self.most))


class PieceModel(SatModel):
    """The relaxation of one piece.

    Parameters
    ----------
    piece, costs
        What is lowered, and what it costs to act on its features.
    table
        Leaves over the piece's columns.
    incumbent
        The cost of the best action in hand, inf without one; dearer actions are excluded.
    """

    def __init__(
        self, piece: Piece, costs: Costs, table: LeafTable, threshold: float, incumbent: float
    ) -> None:
        super().__init__(piece.columns, table, threshold)
        self.piece = piece
        self.fixed = float(sum(cost.prices.fixed for cost in costs.levers))
        self.label = np.array([cost.label for cost in costs.levers], dtype=bool)
        # per unit of a distance, or of another label
        last = ((cost.prices, cost.pieces[-1]) for cost in costs.levers)
        prices = [prices.rounded(piece.rate or piece.start) for prices, piece in last]
        self.linear, self.square, self.top = np.array(prices).reshape(-1, 3).T
        low, high = self._affordable(costs.factual, incumbent)
        self.empty = bool((low > high).any())
        if self.empty:
            return
        self.box = low, high
        ends = zip(costs.factual, low, high, piece.integral, strict=True)
        self.grid = [_Grid.of(float(x), float(l), float(h), bool(w)) for x, l, h, w in ends]
        self.empty = any(g.least > g.most for g in self.grid)
        if self.empty:
            return
        self.steps = [self.model.new_int_var(g.least, g.most, f"a{i}") for i, g in enumerate(self.grid)]
        self._columns()
        for row, least, most in zip(self._wholes(piece.rows), piece.row_low, piece.row_high, strict=True):
            self._at_most(row, most)
            self._at_least(row, least)
        if piece.weights is not None:
            self._ball(piece.weights)
        self._cost(incumbent)

    def solve(self, seconds: float | None) -> tuple[str, float, Cells | None]:
        """``optimal``, ``infeasible`` or ``stopped``; the lower bound of exact costs; the cells."""
        if self.empty:
            return "infeasible", math.inf, None
        status, whole, point = self.run(seconds)
        if status == "infeasible":
            return status, math.inf, None
        low = self.fixed + max(float(whole) / self.unit - self.lost, 0.0)
        return status, low * (1 - 2.0**-40), point

    # -- forms ---------------------------------------------------------------------------

    def _wholes(self, forms: Forms) -> list[_Whole]:
        """Several forms in whole numbers."""
        slack = forms.slack(self.box[0][None], self.box[1][None])[0]
        rows = zip(forms.matrix, forms.constant, slack, strict=True)
        return [self._whole(row, float(c), float(h)) for row, c, h in rows]

    def _whole(self, row: Array, constant: float, slack: float, unit: Fraction | None = None) -> _Whole:
        """A form; ``slack`` is what its own float64 coefficients may be off by."""
        exact = [Fraction(float(m)) for m in row]
        shift = Fraction(constant) + sum(m * g.x for m, g in zip(exact, self.grid, strict=True))
        slopes = [m / g.scale for m, g in zip(exact, self.grid, strict=True)]
        if unit is None:
            size = sum(abs(m) * g.largest for m, g in zip(slopes, self.grid, strict=True)) + abs(shift)
            fine = Fraction(2**FORM_BITS) / (max(map(abs, slopes), default=Fraction(0)) or Fraction(1))
            unit = _power(min(fine, Fraction(2**50) / (size or 1)))
        steps = [round(m * unit) for m in slopes]
        start = round(shift * unit)
        error = abs(shift * unit - start) + Fraction(slack) * unit
        for m, step, g in zip(slopes, steps, self.grid, strict=True):
            error += abs(m * unit - step) * g.largest + abs(m) * unit * g.half
        ends = [sorted((k * g.least, k * g.most)) for k, g in zip(steps, self.grid, strict=True)]
        expression = sum(k * a for k, a in zip(steps, self.steps, strict=True) if k) + start
        least, most = (start + sum(end[side] for end in ends) for side in (0, 1))
        return _Whole(expression, unit, error, least, most)

    def _at_most(self, form: _Whole, most: float, *when: Any) -> None:
        """Add form <= most where the literals hold."""
        limit = math.floor(Fraction(most) * form.unit + form.error) if math.isfinite(most) else form.most
        if most == -math.inf or limit < form.least:
            self.model.add_bool_or([literal.negated() for literal in when])
        elif limit < form.most:
            self.model.add(form.expression <= limit).only_enforce_if(*when)

    def _at_least(self, form: _Whole, least: float, *when: Any) -> None:
        """Add form >= least where the literals hold."""
        limit = math.ceil(Fraction(least) * form.unit - form.error) if math.isfinite(least) else form.least
        if least == math.inf or limit > form.most:
            self.model.add_bool_or([literal.negated() for literal in when])
        elif limit > form.least:
            self.model.add(form.expression >= limit).only_enforce_if(*when)

    # -- constraints ---------------------------------------------------------------------

    def _columns(self) -> None:
        """Add rows: a column is in a cell only where its form, rounded to a double, may lie in that cell."""
        piece = self.piece
        for i, (column, form) in enumerate(zip(piece.columns, self._wholes(piece.forms), strict=True)):
            exact = bool(piece.forms.exact[i])
            integral = exact and bool(np.abs(piece.forms.matrix[i]) @ piece.integral > 0)
            for k, cut in enumerate(column.cuts.tolist()):
                after = math.nextafter(cut, math.inf)
                start = math.floor(cut) + 1 if integral and math.isfinite(cut) else after if exact else cut
                self._at_most(form, cut if exact else after, self.at[i][k])
                self._at_least(form, start, self.at[i][k].negated())

    def _ball(self, weights: Array) -> None:
        """Add the ball, sum of w r^2 + l <= 0, with residuals rounded towards zero and weights down."""
        piece, sizes, squares = self.piece, [], []
        for k, form in enumerate(self._wholes(piece.residuals)):
            coarse = max(0, form.size.bit_length() - GRID_BITS)
            most = (form.size >> coarse) + 1
            n = self.model.new_int_var(0, most, f"r{k}")
            for sign in (1, -1):  # holds for n = floor(abs(residual) / 2^coarse), and for more
                self.model.add((n + 1) * 2**coarse >= sign * form.expression - math.floor(form.error) - 1)
            squares.append(self._square(n, most, f"rr{k}"))
            weight = Fraction(float(weights[k]) * (1 - 2.0**-52)) * (Fraction(2**coarse) / form.unit) ** 2
            sizes.append((weight, most * most))
        row, constant = piece.linear.matrix[0], float(piece.linear.constant[0])
        slack = float(piece.linear.slack(self.box[0][None], self.box[1][None])[0, 0])
        linear = self._whole(row, constant, slack)
        reach = sum(w * q for w, q in sizes) + Fraction(linear.size) / linear.unit
        linear = self._whole(row, constant, slack, _power(Fraction(int(LARGEST)) / (reach or 1)))
        terms = [math.floor(w * linear.unit) * q for (w, _), q in zip(sizes, squares, strict=True)]
        self.model.add(sum(terms) + linear.expression <= math.floor(linear.error))

    def _square(self, n: Any, most: int, name: str) -> Any:
        """A variable that is the square of n, which is at most ``most``."""
        q = self.model.new_int_var(0, most * most, name)
        self.model.add_multiplication_equality(q, [n, n])
        return q

    # -- cost ----------------------------------------------------------------------------

    def _cost(self, incumbent: float) -> None:
        """Minimise the cost, rounded down; ``lost`` is what rounding actions takes from its linear parts."""
        scale = np.array([float(g.scale) for g in self.grid])
        far = np.where(self.label, 1.0, np.array([g.largest for g in self.grid]) / scale)
        most = float((self.square * far**2 + (self.linear + self.top) * far + self.top).sum())
        self.unit = float(_power(Fraction(LARGEST / 4) / (Fraction(most) or 1)))
        half = np.where(self.label, 0.0, np.array([float(g.half) for g in self.grid]) / scale)
        self.lost = float((self.linear * half).sum() + (self.top * half).max(initial=0.0)) * (1 + 1e-12)
        terms: list[Any] = []
        steps: list[Any] = []
        for i, (g, a) in enumerate(zip(self.grid, self.steps, strict=True)):
            if not g.largest:
                continue
            if self.label[i]:
                moved = self.model.new_bool_var(f"moved{i}")
                self.model.add(a == 0).only_enforce_if(moved.negated())
                terms.append(self._rate(self.linear[i] + self.square[i]) * moved)
                steps.append(self._rate(self.top[i]) * moved)
                continue
            n = self.model.new_int_var(0, g.largest, f"n{i}")
            self.model.add_abs_equality(n, a)
            if self.square[i]:
                q = self._square(n, g.largest, f"q{i}")
                terms.append(self._rate(self.square[i] / scale[i] ** 2) * (q - n if g.half else q))
            terms.append(self._rate(self.linear[i] / scale[i]) * n)
            steps.append(self._rate(self.top[i] / scale[i]) * n)
        if self.top.any():
            widest = self.model.new_int_var(0, int(LARGEST), "widest")
            for step in steps:
                self.model.add(widest >= step)
            terms.append(widest)
        objective = sum(terms)
        if math.isfinite(incumbent):
            paid = max(incumbent - self.fixed, 0.0) * (1 + 1e-9) + self.lost
            self.model.add(objective <= min(math.ceil(paid * self.unit) + 1, int(LARGEST)))
        self.model.minimize(objective)

    def _affordable(self, x: Array, incumbent: float) -> tuple[Array, Array]:
        """The piece's box without the ends of intervals that by themselves cost more than the incumbent."""
        low, high = self.piece.low, self.piece.high
        if not math.isfinite(incumbent):
            return low, high
        paid = max(incumbent - self.fixed, 0.0) * (1 + 1e-9)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.minimum(np.sqrt(paid / self.square), np.minimum(paid / self.linear, paid / self.top))
        reach = np.where(self.label | np.isnan(reach), np.inf, reach * (1 + 1e-9))
        slack = 1e-12 * (np.abs(x) + reach)
        slack = np.where(np.isfinite(slack), slack, 0.0)
        return np.maximum(low, x - reach - slack), np.minimum(high, x + reach + slack)

    def _rate(self, rate: float) -> int:
        """A coefficient of the cost in its integer unit, rounded down."""
        return math.floor(float(rate) * self.unit * (1 - 2.0**-48))


def _power(value: Fraction) -> Fraction:
    """The largest power of two not above a positive number."""
    power = Fraction(2) ** exponent(value)
    return power if power <= value else power / 2
