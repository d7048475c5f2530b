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

Q is the feature's distribution function, piecewise linear. L is
interpolated linearly between the same knots; the file gives its values there. How large a change of a feature
is, over which scale, its *measure* says (:mod:`milp_recourse.problem.measures`). For a categorical feature
delta is 1 when the label changes; for an ordinal one it is the difference of indices (or of their Q). Changes
of features that are not acted on are free (Karimi et al. 2021).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from milp_recourse.errors import BadInput
from milp_recourse.problem.enclosure import exponent
from milp_recourse.problem.measures import Distance, Measure, Quantiles, Ranks


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

PARTS = "l0", "l2-squared", "l1", "linf"
"""The names of the parts in files."""

SMALLEST = 2.0**-960
"""Below this, multiplying by a power of two may round."""

PERCENTILES = tuple(name for name, kind in KINDS.items() if kind.axis != "value")
"""The kinds of cost that are measured in Q or L."""

Parts = tuple[float, float, float, float]
"""The coefficients of l0, of the squares, of the absolute values and of their maximum."""


@dataclass(frozen=True)
class Cost:
    """A mixture of the four parts; a pure cost has one coefficient 1 and the others 0.

    Parameters
    ----------
    l2_squared, l1, linf, l0
        Non-negative coefficients, at least one positive.
    measures
        How large a change of a feature is, per feature.
    kind
        The name that the instance file uses: one of :data:`KINDS`, or ``mixture``.
    """

    l2_squared: float = 0.0
    l1: float = 0.0
    linf: float = 0.0
    l0: float = 0.0
    measures: Mapping[str, Measure] = field(default_factory=dict)
    kind: str = "mixture"

    @staticmethod
    def pure(kind: str, scale: Mapping[str, float | Measure]) -> Cost:
        """The cost called ``kind`` in :data:`KINDS`, with these scales, or measures."""
        coefficients: dict[str, Any] = dict(KINDS[kind].parts)
        return Cost(**coefficients, measures=measured(scale), kind=kind)

    @staticmethod
    def percentile(kind: str, quantiles: Mapping[str, Quantiles], categorical: Iterable[str] = ()) -> Cost:
        """A cost of :data:`PERCENTILES`; changing a feature of ``categorical`` costs its weight."""
        ranks = {name: Ranks(levels) for name, levels in quantiles.items()}
        return Cost.pure(kind, {**dict.fromkeys(categorical, 1.0), **ranks})

    @cached_property
    def parts(self) -> Parts:
        """The coefficients, in the order of :attr:`written_parts`."""
        return self.l0, self.l2_squared, self.l1, self.linf

    @property
    def written_parts(self) -> dict[str, float]:
        """The coefficients by the names that they have in files."""
        return dict(zip(PARTS, self.parts, strict=True))

    @property
    def lengths(self) -> Mapping[str, float]:
        """The scales of rises, in features' units; none under costs in percentiles."""
        straight = all(own.straight for own in self.measures.values())
        return {name: own.rise for name, own in self.measures.items()} if straight else {}

    def covers(self, name: str) -> bool:
        """Whether it is defined what changing a feature costs."""
        return name in self.measures or not self.uses_scale

    @property
    def is_root(self) -> bool:
        """Whether the cost is the square root of the sum of its parts, as l2 is."""
        return self.kind in KINDS and KINDS[self.kind].root_of is not None

    def squared(self) -> Cost:
        """l2-squared if the cost is l2, else the cost itself. Both have the same cheapest actions."""
        kind = KINDS[self.kind].root_of if self.kind in KINDS else None
        return self if kind is None else replace(self, kind=kind)

    def of_applicant(self, factual: Mapping[str, float]) -> Cost:
        """The cost for an applicant: relative changes are over their own values.

        Raises
        ------
        BadInput
            A measure is not defined for a factual value.
        """
        if not self._relative:
            return self
        own = dict(self.measures)
        for name in self._relative:
            try:
                own[name] = own[name].of_applicant(factual[name])
            except ValueError as fault:
                raise BadInput(f"cost.scale.{name}", *fault.args) from None
        return replace(self, measures=own)

    @cached_property
    def _relative(self) -> list[str]:
        """Features whose measure depends on the applicant."""
        return [name for name, own in self.measures.items() if own.personal]

    @cached_property
    def uses_scale(self) -> bool:
        """Whether distances enter at all (not under pure l0)."""
        return any(self.parts[1:])

    def without_sizes(self, ends: Mapping[str, tuple[float, float]]) -> Cost:
        """The cost under which changes of some features, each between two values, have the size 0; where
        these are categorical, the size 1."""
        flat = {name: Ranks(Quantiles(pair, (0.0, 0.0))) for name, pair in ends.items()}
        return replace(self, measures={**self._settled, **flat})

    def in_units(self, longer: int, larger: int) -> Cost | None:
        """The same cost with scales times 2^longer, and then the same times 2^larger; None where a number
        would be rounded."""
        powers = {"l2_squared": 2 * longer, "l1": longer, "linf": longer, "l0": 0}
        made = {part: math.ldexp(getattr(self, part), power + larger) for part, power in powers.items()}
        measures = {name: own.times(math.ldexp(1.0, longer)) for name, own in self._settled.items()}
        scales = (scale for own in measures.values() for scale in (own.rise, own.fall))
        numbers = [n for part, n in made.items() if getattr(self, part)]
        if any(math.isinf(n) or n < SMALLEST for n in (*numbers, *scales)):
            return None
        return replace(self, **made, measures=measures)  # type: ignore[arg-type]

    @property
    def _settled(self) -> dict[str, Measure]:
        """The measures as they are for this applicant, and for no other."""
        return {name: own.settled for name, own in self.measures.items()}


def measured(scale: Mapping[str, float | Measure]) -> dict[str, Measure]:
    """Measures, where scales of distances may stand for these."""
    return {n: s if isinstance(s, Measure) else Distance(s, s) for n, s in scale.items()}


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
