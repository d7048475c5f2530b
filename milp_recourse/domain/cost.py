r"""What an action costs.

With :math:`\delta_i = a_i - x_i` over acted features, weights w and scales s:

==================  ======================================================
l2-squared          :math:`\sum_i w_i (\delta_i / s_i)^2`
l2                  :math:`\sqrt{\sum_i w_i (\delta_i / s_i)^2}`
l1                  :math:`\sum_i w_i |\delta_i| / s_i`
linf                :math:`\max_i w_i |\delta_i| / s_i`
l0                  :math:`\sum_i w_i` over acted features, held ones included
mixture             a non-negative combination of the four
percentile          l1 with :math:`\delta_i = Q_i(a_i) - Q_i(x_i)` and scales 1
percentile-max      linf with the same
log-percentile      l1 with :math:`\delta_i = L_i(a_i) - L_i(x_i)`, :math:`L = -\log(1 - Q)`
log-percentile-max  linf with the same
==================  ======================================================

Q is the feature's distribution function (:mod:`milp_recourse.domain.quantiles`); L is linear between
knots too, its values given in the file. A scale may be two, one for increases and one for decreases, or the
applicant's own :math:`|x_i|` (``factual``: relative changes). For a categorical feature delta is 1 when the
label changes; for an ordinal one it is the difference of indices (or of their Q). What merely flows
downstream is free (Karimi et al. 2021).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

from milp_recourse.domain.enclosure import exponent
from milp_recourse.domain.quantiles import Quantiles
from milp_recourse.errors import BadInput


@dataclass(frozen=True)
class CostKind:
    """A name that files use for a combination of the four parts.

    Parameters
    ----------
    says
        The formula in words.
    parts
        Coefficients of the parts (``l2_squared``, ``l1``, ``linf``, ``l0``); 0 where not named.
    axis
        What changes are measured on: values in units of the scale, shares of people, or the logarithm of the
        share above.
    root_of
        The kind whose root this one is: the same actions are cheapest.
    """

    says: str
    parts: Mapping[str, float]
    axis: Literal["value", "percentile", "log-percentile"] = "value"
    root_of: str | None = None


KINDS: dict[str, CostKind] = {
    "l1": CostKind("sum of weight × |change| / scale", {"l1": 1.0}),
    "l2-squared": CostKind("sum of weight × (change / scale)²", {"l2_squared": 1.0}),
    "l2": CostKind(
        "root of the sum of weight × (change / scale)²", {"l2_squared": 1.0}, root_of="l2-squared"
    ),
    "linf": CostKind("the largest weight × |change| / scale", {"linf": 1.0}),
    "l0": CostKind("sum of the weights of what is acted on, held features included", {"l0": 1.0}),
    "percentile": CostKind("sum of weight × shift in percentile ranks", {"l1": 1.0}, "percentile"),
    "percentile-max": CostKind("the largest weight × shift in percentile ranks", {"linf": 1.0}, "percentile"),
    "log-percentile": CostKind(
        "sum of weight × shift of −log(1 − percentile rank)", {"l1": 1.0}, "log-percentile"
    ),
    "log-percentile-max": CostKind(
        "the largest weight × shift of −log(1 − percentile rank)", {"linf": 1.0}, "log-percentile"
    ),
}
"""Every name but ``mixture``, whose coefficients a file gives. Files, tables and pages read this."""

PERCENTILES = tuple(name for name, kind in KINDS.items() if kind.axis != "value")
"""Costs whose distances are differences of a distribution function, or of the logarithm of its tail."""

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
        Distribution function (or L) per feature whose change is measured in percentiles.
    decrease
        s_i of decreases, where it is another one than that of increases in ``scale``.
    relative
        Features whose scale is the applicant's own |x_i|; :meth:`of_applicant` puts it into ``scale``.
    """

    l2_squared: float = 0.0
    l1: float = 0.0
    linf: float = 0.0
    l0: float = 0.0
    scale: Mapping[str, float] = field(default_factory=dict)
    kind: str = "mixture"
    quantiles: Mapping[str, Quantiles] = field(default_factory=dict)
    decrease: Mapping[str, float] = field(default_factory=dict)
    relative: frozenset[str] = frozenset()

    @staticmethod
    def pure(kind: str, scale: Mapping[str, float]) -> Cost:
        """The cost of a name in :data:`KINDS`, changes measured in units of ``scale``."""
        coefficients: dict[str, Any] = dict(KINDS[kind].parts)
        return Cost(**coefficients, scale=dict(scale), kind=kind)

    @staticmethod
    def percentile(kind: str, quantiles: Mapping[str, Quantiles], categorical: Iterable[str] = ()) -> Cost:
        """The cost called one of :data:`PERCENTILES`; a changed category costs its weight."""
        ones = dict.fromkeys([*quantiles, *categorical], 1.0)
        return replace(Cost.pure(kind, ones), quantiles=dict(quantiles))

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
    def is_root(self) -> bool:
        """Whether the cost is the root of what the parts say: l2."""
        return self.kind in KINDS and KINDS[self.kind].root_of is not None

    def squared(self) -> Cost:
        """l2-squared instead of l2: the same actions are cheapest, and every cost is the square."""
        kind = KINDS[self.kind].root_of if self.kind in KINDS else None
        return self if kind is None else replace(self, kind=kind)

    def of_applicant(self, factual: Mapping[str, float]) -> Cost:
        """The cost of an applicant's own changes, relative scales filled in.

        A missing value counts as one scale from every other, whatever the scale.

        Raises
        ------
        BadInput
            A value that changes are relative to is 0.
        """
        if not self.relative:
            return self
        own = {name: abs(factual[name]) for name in self.relative}
        for name, size in own.items():
            if size == 0:
                allowed = "a factual value that is not 0: the cost is of its relative change"
                raise BadInput(f"cost.scale.{name}", "factual 0", allowed)
        own = {name: 1.0 if math.isnan(size) else size for name, size in own.items()}
        return replace(self, scale={**self.scale, **own})

    def scale_of(self, name: str, delta: Fraction) -> float:
        """s_i of a change: that of increases or of decreases."""
        return self.decrease.get(name, self.scale[name]) if delta.numerator < 0 else self.scale[name]

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
        """The cost of an action in exact arithmetic; a root is rounded up by a share of at most 2^-100.

        Parameters
        ----------
        deltas
            delta_i of exactly the acted features, with its sign.
        weights
            w_i per feature.
        """
        terms, largest, uses_scale = [], Fraction(0), self.uses_scale
        for name, delta in deltas.items():
            w = weights[name]
            if self.l0:
                terms.append(((self.l0, w, 1.0, 1), 1, 1))
            if not uses_scale:
                continue
            scale = self.scale_of(name, delta)
            n, d = abs(delta.numerator), delta.denominator
            if self.l2_squared:
                terms.append(((self.l2_squared, w, scale, 2), n * n, d * d))
            if self.l1:
                terms.append(((self.l1, w, scale, 1), n, d))
            if self.linf:
                largest = max(largest, _rate((self.linf, w, scale, 1)) * abs(delta))
        total = _total(terms)
        return root_above(total) if self.is_root else total + largest


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


def root_above(value: Fraction) -> Fraction:
    """A number at least the root of a non-negative rational, and above it by a share of at most 2^-100."""
    if value <= 0:
        return Fraction(0)
    shift = max(0, 208 - exponent(value)) // 2 + 1
    part = (value.numerator << (2 * shift)) // value.denominator
    return Fraction(math.isqrt(part) + 1, 1 << shift)


def root_below(value: float) -> float:
    """A double at most the root of a non-negative double, by a share of at most 2^-51."""
    return value if value == math.inf else math.nextafter(math.sqrt(value), 0.0)


@lru_cache(maxsize=4096)
def _rate(rate: _Rate) -> Fraction:
    """coefficient * weight / scale^power: the same few come up for every applicant."""
    coefficient, weight, scale, power = rate
    return Fraction(coefficient) * Fraction(weight) / Fraction(scale) ** power
