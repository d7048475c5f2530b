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
percentile-max      linf with the deltas of ``percentile``
log-percentile      l1 with :math:`\delta_i = L_i(a_i) - L_i(x_i)`, :math:`L = -\log(1 - Q)`
log-percentile-max  linf with the deltas of ``log-percentile``
==================  ======================================================

Q is the feature's distribution function, piecewise linear (:mod:`milp_recourse.problem.quantiles`). L is
interpolated linearly between the same knots; the file gives its values there. A feature may have one scale
for increases and another for decreases, or the applicant's own :math:`|x_i|` as its scale (``factual``:
relative changes). For a categorical feature delta is 1 when the label changes; for an ordinal one it is the
difference of indices (or of their Q). Changes of features that are not acted on are free (Karimi et al.
2021).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

from milp_recourse.errors import BadInput
from milp_recourse.problem.enclosure import exponent
from milp_recourse.problem.quantiles import Quantiles


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
        What delta is a difference of: values, values of Q (``percentile``), or values of L
        (``log-percentile``).
    root_of
        The kind whose square root this one is, or None. Both have the same cheapest actions.
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
"""Every kind of cost but ``mixture``, whose coefficients a file gives. Formats and pages use this table."""

PERCENTILES = tuple(name for name, kind in KINDS.items() if kind.axis != "value")
"""The kinds of cost that are measured in Q or L."""

LEVER_GAP = 1e-12
"""The part of a lever's interval whose cost is added to the tolerance for ``optimal``."""

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
        The name that the instance file uses: one of :data:`KINDS`, or ``mixture``.
    quantiles
        Distribution function (or L) per feature whose change is measured in percentiles.
    decrease
        s_i of decreases, for features where it differs from that of increases, which is in ``scale``.
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
        """The cost called ``kind`` in :data:`KINDS`, with these scales."""
        coefficients: dict[str, Any] = dict(KINDS[kind].parts)
        return Cost(**coefficients, scale=dict(scale), kind=kind)

    @staticmethod
    def percentile(kind: str, quantiles: Mapping[str, Quantiles], categorical: Iterable[str] = ()) -> Cost:
        """A cost of :data:`PERCENTILES`; changing a feature of ``categorical`` costs its weight."""
        ones = dict.fromkeys([*quantiles, *categorical], 1.0)
        return replace(Cost.pure(kind, ones), quantiles=dict(quantiles))

    def position(self, name: str, value: float) -> Fraction:
        """The number that deltas are differences of: Q(value), L(value), or the value itself."""
        exact, quantiles = Fraction(value), self.quantiles.get(name)
        return exact if quantiles is None else quantiles.exact(exact)

    def change(self, name: str, before: float, after: float) -> Fraction:
        """The exact delta of a change: the :meth:`position` after less the position before.

        Not for categorical features and missing values: these :func:`milp_recourse.judge.deltas` treats.
        """
        if name in self.quantiles:
            return self.position(name, after) - self.position(name, before)
        (m, c), (n, d) = after.as_integer_ratio(), before.as_integer_ratio()
        below = max(c, d)  # powers of two
        return Fraction(m * (below // c) - n * (below // d), below)

    @property
    def is_root(self) -> bool:
        """Whether the cost is the square root of the sum of its parts, as l2 is."""
        return self.kind in KINDS and KINDS[self.kind].root_of is not None

    def squared(self) -> Cost:
        """l2-squared if the cost is l2, else the cost itself. Both have the same cheapest actions."""
        kind = KINDS[self.kind].root_of if self.kind in KINDS else None
        return self if kind is None else replace(self, kind=kind)

    def of_applicant(self, factual: Mapping[str, float]) -> Cost:
        """The cost with the applicant's |x_i| as the scale of every feature in ``relative``.

        Where x_i is missing, the scale is 1; it has no influence, since delta is one scale there.

        Raises
        ------
        BadInput
            A feature in ``relative`` has the factual value 0.
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
        """s_i of a change: of decreases if ``delta`` is below 0, else of increases."""
        return self.decrease.get(name, self.scale[name]) if delta.numerator < 0 else self.scale[name]

    @property
    def uses_scale(self) -> bool:
        """Whether distances enter at all (not under pure l0)."""
        return max(self.l2_squared, self.l1, self.linf) > 0

    def gap_allowance(self, widths: Mapping[str, Fraction], weights: Mapping[str, float]) -> float:
        """The cost of moving every lever by 1e-12 of its interval, without its part in l0, rounded down.

        A result is ``optimal`` up to a relative gap plus this. It scales with the unit of the cost.

        Parameters
        ----------
        widths
            Difference of the :meth:`position` of the ends of every lever's interval; categorical features
            are left out.
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
        """The cost of an action in exact arithmetic; only a root is rounded up, by at most 2^-100 of it.

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
    """The sum of rate * n / d, over a common denominator, so that the fraction is reduced only once."""
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
    """A rational at least the root of a non-negative rational, and above it by at most 2^-100 of it."""
    if value <= 0:
        return Fraction(0)
    shift = max(0, 208 - exponent(value)) // 2 + 1
    part = (value.numerator << (2 * shift)) // value.denominator
    return Fraction(math.isqrt(part) + 1, 1 << shift)


def root_below(value: float) -> float:
    """A double at most the root of a non-negative double, and below it by at most 2^-51 of it."""
    return value if value == math.inf else math.nextafter(math.sqrt(value), 0.0)


@lru_cache(maxsize=4096)
def _rate(rate: _Rate) -> Fraction:
    """coefficient * weight / scale^power, kept because a population's applicants share most of them."""
    coefficient, weight, scale, power = rate
    return Fraction(coefficient) * Fraction(weight) / Fraction(scale) ** power
