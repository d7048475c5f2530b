r"""What an action costs.

With :math:`\delta_i = a_i - x_i` over acted features, weights w and scales s:

==============  ==========================================================
l2-squared      :math:`\sum_i w_i (\delta_i / s_i)^2`
l1              :math:`\sum_i w_i |\delta_i| / s_i`
linf            :math:`\max_i w_i |\delta_i| / s_i`
l0              :math:`\sum_i w_i` over acted features, held ones included
mixture         a non-negative combination of the four
percentile      l1 with :math:`\delta_i = Q_i(a_i) - Q_i(x_i)` and scales 1
percentile-max  linf with the same
==============  ==========================================================

Q is the feature's distribution function (:mod:`milp_recourse.domain.quantiles`). For a
categorical feature delta is 1 when the label changes; for an ordinal one it is the difference of
indices (or of their Q). What merely flows downstream is free (Karimi et al. 2021).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from milp_recourse.domain.quantiles import Quantiles

LEVER_GAP = 1e-12
"""Share of a lever's interval whose cost counts as no gap."""

_LEVER_GAP = Fraction(LEVER_GAP)


@dataclass(frozen=True)
class Cost:
    """A mixture of the four parts; a pure cost has one coefficient 1 and the others 0.

    Parameters
    ----------
    l2_squared, l1, linf, l0
        Non-negative coefficients, at least one positive.
    scale
        s_i > 0 per feature, in the feature's unit.
    kind
        What the instance file called it.
    quantiles
        Distribution function per feature whose change is measured in percentiles.
    """

    l2_squared: float = 0.0
    l1: float = 0.0
    linf: float = 0.0
    l0: float = 0.0
    scale: Mapping[str, float] = field(default_factory=dict)
    kind: str = "mixture"
    quantiles: Mapping[str, Quantiles] = field(default_factory=dict)

    @staticmethod
    def pure(kind: str, scale: Mapping[str, float]) -> Cost:
        """The cost called ``l2-squared``, ``l1``, ``linf`` or ``l0``."""
        coefficient: dict[str, Any] = {kind.replace("-", "_"): 1.0}
        return Cost(**coefficient, scale=dict(scale), kind=kind)

    @staticmethod
    def percentile(kind: str, quantiles: Mapping[str, Quantiles], categorical: Iterable[str] = ()) -> Cost:
        """The cost called ``percentile`` or ``percentile-max``; a changed category costs its weight."""
        largest = kind == "percentile-max"
        scale = dict.fromkeys([*quantiles, *categorical], 1.0)
        return Cost(
            l1=float(not largest), linf=float(largest), scale=scale, kind=kind, quantiles=dict(quantiles)
        )

    def position(self, name: str, value: float) -> Fraction:
        """Where a value lies on the axis deltas are taken on: Q(value), or the value itself."""
        exact, quantiles = Fraction(value), self.quantiles.get(name)
        return exact if quantiles is None else quantiles.exact(exact)

    def change(self, name: str, before: float, after: float) -> Fraction:
        """How far apart two values lie on that axis, exactly."""
        if name in self.quantiles:
            return self.position(name, after) - self.position(name, before)
        (m, c), (n, d) = after.as_integer_ratio(), before.as_integer_ratio()
        below = max(c, d)  # powers of two
        return Fraction(m * (below // c) - n * (below // d), below)

    @property
    def uses_scale(self) -> bool:
        """Whether distances enter at all (not under pure l0)."""
        return max(self.l2_squared, self.l1, self.linf) > 0

    def gap_allowance(self, widths: Mapping[str, Fraction], weights: Mapping[str, float]) -> float:
        """The cost of moving every lever by 1e-12 of its interval, parts in l0 left out, rounded down.

        What ``optimal`` allows besides its relative gap, so that the unit of the cost does not matter.

        Parameters
        ----------
        widths
            Length of every lever's interval, on the axis deltas are taken on; 0 for categorical
            features, whose labels lie no distance apart that could be divided.
        weights
            w_i per feature.

        Returns
        -------
        float
            At most the exact cost, and 0 where that is below 1e-300.
        """
        moves = {name: _LEVER_GAP * width for name, width in widths.items()}
        cost = float((self if not self.l0 else replace(self, l0=0.0)).exact(moves, weights))
        return cost * (1 - 2.0**-50) if cost > 1e-300 else 0.0

    def exact(self, deltas: Mapping[str, Fraction], weights: Mapping[str, float]) -> Fraction:
        """The cost of an action in exact arithmetic.

        Parameters
        ----------
        deltas
            delta_i of exactly the acted features.
        weights
            w_i per feature.
        """
        terms, largest = [], Fraction(0)
        for name, delta in deltas.items():
            w = weights[name]
            if self.l0:
                terms.append(((self.l0, w, 1.0, 1), 1, 1))
            if not self.uses_scale:
                continue
            scale, n, d = self.scale[name], abs(delta.numerator), delta.denominator
            if self.l2_squared:
                terms.append(((self.l2_squared, w, scale, 2), n * n, d * d))
            if self.l1:
                terms.append(((self.l1, w, scale, 1), n, d))
            if self.linf:
                largest = max(largest, _rate((self.linf, w, scale, 1)) * abs(delta))
        return _total(terms) + largest


_Rate = tuple[float, float, float, int]
"""Coefficient, weight, scale and power."""


def _total(terms: Sequence[tuple[_Rate, int, int]]) -> Fraction:
    """The sum of rate * n / d: over a common denominator, so that common factors are looked for once."""
    if not terms:
        return Fraction(0)
    numerators, below = _together(tuple(rate for rate, _, _ in terms))
    common = math.lcm(*(d for _, _, d in terms))
    above = sum(r * n * (common // d) for r, (_, n, d) in zip(numerators, terms, strict=True))
    return Fraction(above, below * common)


@lru_cache(maxsize=256)
def _together(rates: tuple[_Rate, ...]) -> tuple[tuple[int, ...], int]:
    """Rates over their least common denominator."""
    exact = [_rate(rate) for rate in rates]
    below = math.lcm(*(rate.denominator for rate in exact))
    return tuple(rate.numerator * (below // rate.denominator) for rate in exact), below


@lru_cache(maxsize=4096)
def _rate(rate: _Rate) -> Fraction:
    """coefficient * weight / scale^power: the same few come up for every applicant."""
    coefficient, weight, scale, power = rate
    return Fraction(coefficient) * Fraction(weight) / Fraction(scale) ** power
