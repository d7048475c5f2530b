"""The largest value of a row where actions cost no more than a budget, in whole numbers (section 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import floor

from verify.kernel.box import Budget
from verify.kernel.curves import Interval
from verify.kernel.problem import Term


class Spending:
    """What the actions of a box cost, ready to be weighed against many rows.

    What the kernel divides is rounded up here, to a whole number in the row's own units: the fast path may
    reject what the kernel accepts by that much.
    """

    def __init__(
        self, budget: Budget, ends: Sequence[Interval], grid: int, labels: Mapping[int, Mapping[int, int]]
    ) -> None:
        self.most_spent, self.still, self.moving = budget.most, [], []
        for place, (term, (low, high)) in enumerate(zip(budget.terms, ends, strict=True), start=1):
            levels = labels.get(place, {})
            if low == high == term.factual and not levels:
                self.still.append((place, int(low * grid)))
            else:
                self.moving.append(_Lever(place, term, low, high, grid, levels))

    def most(self, form: Sequence[int], price: Fraction) -> int:
        """The budget at a price, and the most that actions make of a form less their costs at this price."""
        pn, pd = price.numerator, price.denominator
        found = -(-pn * self.most_spent.numerator // (pd * self.most_spent.denominator))
        for place, a in self.still:
            found += form[place] * a
        for lever in self.moving:
            found += lever.most(form, pn, pd)
        return found


class _Lever:
    def __init__(
        self, place: int, term: Term, low: Fraction, high: Fraction, grid: int, levels: Mapping[int, int]
    ) -> None:
        self.place, self.grid, self.x = place, grid, term.factual
        kinks = [term.factual, *(v for v, _ in term.knots)]
        kinks += [term.factual - 1, term.factual + 1] * term.label
        points = [low, high, *(v for v in kinks if low <= v <= high)]
        if levels:
            points = [Fraction(k) for k in range(floor(low), floor(high) + 1)]
        self.points: list[tuple[int | Fraction, int, int, int]] = []
        for a in dict.fromkeys(points):
            cost = term.parts(a)[0]
            column = levels.get(floor(a), 0)
            at = a * grid
            where = int(at) if at.denominator == 1 else at
            self.points.append((where, column, cost.numerator, cost.denominator))
        self.near, self.far, self.bends = low - self.x, high - self.x, term.kappa > 0 and not levels
        self.rise = *term.kappa.as_integer_ratio(), *term.beta.as_integer_ratio()
        falls = term.kappa * term.fall**2, term.beta * term.fall
        self.fall = *falls[0].as_integer_ratio(), *falls[1].as_integer_ratio()

    def most(self, form: Sequence[int], pn: int, pd: int) -> int:
        """The most of coefficient times value less pn / pd times the cost, rounded up."""
        c = form[self.place]
        found: list[int | Fraction] = []
        for a, column, cn, cd in self.points:
            value = c * a + (self.grid * form[column] if column else 0)
            if cn:
                value -= pn * cn // (pd * cd)
            found.append(value)
        if self.bends and c:
            found += self._between(c, pn, pd)
        return -floor(-max(found))

    def _between(self, c: int, pn: int, pd: int) -> list[int]:
        """The value where the derivative is 0, rounded up, if that lies in the box."""
        kn, kd, bn, bd = self.rise if c > 0 else self.fall
        rise = abs(c) * self.grid * bd * pd - pn * bn  # times bd pd
        if rise <= 0:
            return []
        n, d = rise * kd, 2 * bd * pn * kn  # how far from the factual
        low, high = (self.near, self.far) if c > 0 else (-self.far, -self.near)
        if not (low.numerator * d <= n * low.denominator and n * high.denominator <= high.numerator * d):
            return []
        own = c * self.x * self.grid
        return [-floor(-own) - (-rise * rise * kd) // (4 * bd * bd * pd * pn * kn)]
