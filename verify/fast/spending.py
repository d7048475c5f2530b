"""The largest value of a row where actions cost no more than a budget, in whole numbers (section 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import floor

from verify.kernel.problem import Interval, Piece, Term


class Spending:
    """What the actions of a box cost, ready to be weighed against many rows.

    What the kernel divides is rounded up here, to a whole number in the row's own units: the fast path may
    reject what the kernel accepts by that much.
    """

    def __init__(
        self,
        budget: Fraction,
        terms: Sequence[Term],
        ends: Sequence[Interval],
        grid: int,
        labels: Mapping[int, Mapping[int, int]],
    ) -> None:
        self.most_spent, self.still, self.moving = budget, [], []
        for place, (term, (low, high)) in enumerate(zip(terms, ends, strict=True), start=1):
            levels = labels.get(place, {})
            if low == high and not levels and not any(term.ends(low, high)[1]):
                self.still.append((place, int(low * grid)))
            else:
                self.moving.append(_Lever(place, term, low, high, grid, levels))

    def most(self, form: Sequence[int], pn: int, pd: int) -> int:
        """The budget at a price pn / pd, and the most that actions make of a form less their costs at it."""
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
        self.place, self.grid = place, grid
        pieces = term.within(low, high)
        points = {Fraction(a): piece for piece in pieces for a in (piece.low, piece.high)}
        if levels:
            whole = map(Fraction, range(floor(low), floor(high) + 1))
            points = {k: piece for k in whole for piece in pieces if piece.low <= k <= piece.high}
        self.points: list[tuple[int | Fraction, int, int, int]] = []
        for a, piece in sorted(points.items()):
            (cost, _), at = term.paid(piece.size(a)), a * grid
            column = levels.get(floor(a), 0)
            where = int(at) if at.denominator == 1 else at
            self.points.append((where, column, cost.numerator, cost.denominator))
        bends = term.kappa > 0 and not levels
        self.bends = [_Bend(piece, term, grid) for piece in pieces if bends and piece.rate]

    def most(self, form: Sequence[int], pn: int, pd: int) -> int:
        """The most of coefficient times value less pn / pd times the cost, rounded up."""
        c = form[self.place]
        found: list[int | Fraction] = []
        for a, column, cn, cd in self.points:
            value = c * a + (self.grid * form[column] if column else 0)
            if cn:
                value -= pn * cn // (pd * cd)
            found.append(value)
        for bend in self.bends if c else ():
            found += bend.most(c, pn, pd)
        return -floor(-max(found))


class _Bend:
    """A piece of the cost on which the derivative may be 0 between the ends: size = rate a + start."""

    def __init__(self, piece: Piece, term: Term, grid: int) -> None:
        origin = -piece.start / piece.rate * grid  # where the size is 0
        self.origin = int(origin) if origin.denominator == 1 else origin
        sizes = sorted(piece.size(Fraction(a)) for a in (piece.low, piece.high))
        self.least, self.most_size = (size.as_integer_ratio() for size in sizes)
        self.gain = (grid / piece.rate).as_integer_ratio()
        self.kappa, self.beta = term.kappa.as_integer_ratio(), term.beta.as_integer_ratio()

    def most(self, c: int, pn: int, pd: int) -> list[int]:
        """The value where the derivative is 0, rounded up, if that lies on the piece."""
        (gn, gd), (kn, kd), (bn, bd) = self.gain, self.kappa, self.beta
        rise = c * gn * bd * pd - pn * bn * gd  # by how much the value grows with the size, times gd bd pd
        if rise <= 0:
            return []
        n, d = rise * kd, 2 * gd * bd * pn * kn  # the size there
        if not (self.least[0] * d <= n * self.least[1] and n * self.most_size[1] <= self.most_size[0] * d):
            return []
        return [-floor(-c * self.origin) - (-rise * rise * kd) // (4 * gd * gd * bd * bd * pd * pn * kn)]
