r"""What an action costs.

With :math:`\delta_i = a_i - x_i` over acted features, weights w and scales s:

==============  ==========================================================
l2-squared      :math:`\sum_i w_i (\delta_i / s_i)^2`
l1              :math:`\sum_i w_i |\delta_i| / s_i`
linf            :math:`\max_i w_i |\delta_i| / s_i`
l0              :math:`\sum_i w_i` over acted features, held ones included
mixture         a non-negative combination of the four
==============  ==========================================================

For a categorical feature delta is 1 when the label changes; for an ordinal one it is the
difference of indices. What merely flows downstream is free (Karimi et al. 2021).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction


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
    """

    l2_squared: float = 0.0
    l1: float = 0.0
    linf: float = 0.0
    l0: float = 0.0
    scale: Mapping[str, float] = field(default_factory=dict)
    kind: str = "mixture"

    @staticmethod
    def pure(kind: str, scale: Mapping[str, float]) -> Cost:
        """The cost called ``l2-squared``, ``l1``, ``linf`` or ``l0``."""
        return Cost(**{kind.replace("-", "_"): 1.0}, scale=dict(scale), kind=kind)

    @property
    def uses_scale(self) -> bool:
        """Whether distances enter at all (not under pure l0)."""
        return max(self.l2_squared, self.l1, self.linf) > 0

    def exact(self, deltas: Mapping[str, Fraction], weights: Mapping[str, float]) -> Fraction:
        """The cost of an action in exact arithmetic.

        Parameters
        ----------
        deltas
            delta_i of exactly the acted features.
        weights
            w_i per feature.
        """
        total, largest = Fraction(0), Fraction(0)
        for name, delta in deltas.items():
            w = Fraction(weights[name])
            total += Fraction(self.l0) * w
            if self.uses_scale:
                step = abs(delta) / Fraction(self.scale[name])
                total += w * (Fraction(self.l2_squared) * step**2 + Fraction(self.l1) * step)
                largest = max(largest, w * step)
        return total + Fraction(self.linf) * largest
