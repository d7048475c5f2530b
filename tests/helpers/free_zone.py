"""A measure that is no shipped one: free near the factual value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from milp_recourse.formats.stated import as_json
from milp_recourse.problem.cost import NOTHING, Measure, Piece, inverse


@dataclass(frozen=True)
class FreeZone(Measure):
    """Nothing up to some distance, then the rest over a scale, and several times that beyond a far one."""

    scale: float
    free: float
    far: float = 1e308
    beyond: float = 3.0

    @property
    def length(self) -> float:
        return self.scale

    def pieces(self, x: float) -> tuple[Piece, ...]:
        rate = inverse(self.scale)
        steep = rate * Fraction(self.beyond)
        low, under, over, high = (x - self.far, x - self.free, x + self.free, x + self.far)
        below, above = ((Fraction(b) - Fraction(a)) * rate for a, b in ((low, under), (over, high)))
        return (
            Piece(-math.inf, low, steep, low, below),
            Piece(low, under, rate, under, NOTHING),
            Piece(under, over, NOTHING, under, NOTHING),
            Piece(over, high, rate, over, NOTHING),
            Piece(high, math.inf, steep, high, above),
        )

    def times(self, factor: float) -> Measure:
        return self


as_json.register(FreeZone, lambda zone, labels=None: [zone.scale, zone.free, zone.far, zone.beyond])
