"""A measure that is no shipped one: free near the factual value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from milp_recourse.problem.cost import NOTHING, Measure, Piece, inverse


@dataclass(frozen=True)
class FreeZone(Measure):
    """Nothing up to some distance, then the rest over a scale, and three times that beyond a far one."""

    scale: float
    free: float
    far: float = 1e308

    @property
    def length(self) -> float:
        return self.scale

    def pieces(self, x: float) -> tuple[Piece, ...]:
        rate = inverse(self.scale)
        low, under, over, high = (x - self.far, x - self.free, x + self.free, x + self.far)
        below, above = ((Fraction(b) - Fraction(a)) * rate for a, b in ((low, under), (over, high)))
        return (
            Piece(-math.inf, low, 3 * rate, low, below),
            Piece(low, under, rate, under, NOTHING),
            Piece(under, over, NOTHING, under, NOTHING),
            Piece(over, high, rate, over, NOTHING),
            Piece(high, math.inf, 3 * rate, high, above),
        )

    def times(self, factor: float) -> Measure:
        return FreeZone(self.scale * factor, self.free, self.far)
