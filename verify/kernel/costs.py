"""What an action costs: a quadratic of the size of a change, which is linear by pieces (section 3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

Interval = tuple[Fraction, Fraction]


class Piece(NamedTuple):
    """From ``low`` to ``high`` an action's value a is a change of size rate a + start, at least 0."""

    low: Fraction | float
    high: Fraction | float
    rate: Fraction
    start: Fraction

    def size(self, a: Fraction) -> Fraction:
        """Of the change to a value on the piece."""
        return self.rate * a + self.start


class Term(NamedTuple):
    """One action's cost, kappa size^2 + beta size, and omega size in the cost's maximum.

    ``pieces`` ascend and meet at their ends, where they agree; between labels there is nothing. Every way to
    measure a change is of this kind: distances, labels and missing values (the size is 0 or 1), falls that
    count otherwise than rises, percentiles.
    """

    kappa: Fraction
    beta: Fraction
    omega: Fraction
    pieces: Sequence[Piece]

    def within(self, low: Fraction, high: Fraction) -> list[Piece]:
        """The pieces of an interval."""
        met = [piece for piece in self.pieces if piece.low <= high and low <= piece.high]
        return [Piece(max(p.low, low), min(p.high, high), p.rate, p.start) for p in met]

    def paid(self, size: Fraction) -> tuple[Fraction, Fraction]:
        """The cost of a change, and what enters the maximum."""
        return self.kappa * size * size + self.beta * size, self.omega * size

    def ends(self, low: Fraction, high: Fraction) -> tuple[tuple[Fraction, Fraction], ...]:
        """The least and the most that an action in an interval costs."""
        sizes = [p.size(Fraction(a)) for p in self.within(low, high) for a in (p.low, p.high)]
        return self.paid(min(sizes)), self.paid(max(sizes))

    def variation(self, low: Fraction, high: Fraction) -> Fraction:
        """How much the size changes on the way from one end of an interval to the other."""
        moved = ((p.rate, Fraction(p.high) - Fraction(p.low)) for p in self.within(low, high))
        return sum((abs(rate) * length for rate, length in moved), Fraction(0))


def total(parts: Iterable[tuple[Fraction, Fraction]]) -> Fraction:
    """Costs added up, and the largest of what enters the maximum."""
    listed = list(parts)
    return sum((cost for cost, _ in listed), Fraction(0)) + max((most for _, most in listed), default=0)
