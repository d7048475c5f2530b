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

For a categorical feature delta is 1 when the label changes; for an ordinal one it is the difference of
indices (or of their Q). Changes of features that are not acted on are free (Karimi et al. 2021).

A feature's *measure* gives the change from the factual value x to a value a its size. It is piecewise linear
in a, 0 at x, and never falls as a moves away from x:

==================  ===================================================
:class:`Distance`   :math:`|a - x| / s`, with one s for rises and one for falls
:class:`Relative`   :math:`|a - x| / |x|`
:class:`Ranks`      :math:`|Q(a) - Q(x)|`, or the same of L
==================  ===================================================

:math:`Q(v) = P(X \le v)` is the feature's distribution function, piecewise linear through knots
:math:`(v_k, p_k)` and constant outside them; L is interpolated between the same knots, and files give its
values there. A shift from x to a costs the share of the population overtaken (Ustun et al. 2019,
https://doi.org/10.1145/3287560.3287566; Karimi et al. 2022, section 3.1,
https://doi.org/10.1145/3527848). Of labels, all equally far apart, and of missing values
:mod:`milp_recourse.problem.lever_cost` takes the scale alone.

A new name is a line of :data:`KINDS`. A new measure is a class here, named in :data:`MEASURES`, and the
checker's own reading of it (``verify/files/costs.py``); files, tables and back ends ask the class.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from milp_recourse.errors import BadInput
from milp_recourse.problem.decimals import Positive
from milp_recourse.problem.enclosure import exponent


@dataclass(frozen=True)
class Quantiles:
    """A piecewise linear distribution function, given by its knots.

    Parameters
    ----------
    values
        v_k in the feature's unit, ascending, at least two.
    probabilities
        p_k in [0, 1], never falling.
    """

    values: tuple[float, ...]
    probabilities: tuple[float, ...]

    @cached_property
    def jumps(self) -> bool:
        """Whether Q rises by some share d between two values that are nearer than d 2^-30 of the whole range:
        there the rounding of a double decides about what a shift costs."""
        rises = np.diff(self.probabilities)
        return bool((np.diff(self.values) < 2.0**-30 * rises * (self.values[-1] - self.values[0])).any())

    def exact(self, value: Fraction) -> Fraction:
        """Q(value) in exact arithmetic."""
        k = bisect_right(self.values, value)
        if k == 0:
            return Fraction(self.probabilities[0])
        if k == len(self.values):
            return Fraction(self.probabilities[-1])
        return Fraction(self.probabilities[k - 1]) + self._slope(k) * (value - Fraction(self.values[k - 1]))

    @property
    def knots(self) -> list[list[float]]:
        """The pairs (v_k, p_k)."""
        return [list(knot) for knot in zip(self.values, self.probabilities, strict=True)]

    def _slope(self, k: int) -> Fraction:
        """Slope between knots k - 1 and k."""
        rise = Fraction(self.probabilities[k]) - Fraction(self.probabilities[k - 1])
        return rise / (Fraction(self.values[k]) - Fraction(self.values[k - 1]))


NOTHING = Fraction(0)


class Piece(NamedTuple):
    """On [low, high] the change to a value a has the size start + rate |a - near|.

    ``near`` is the end that is nearer to the factual value, so nothing cancels. ``rate`` is at least 0, and
    may rise or fall from piece to piece. Ends are doubles: one that is computed from the factual value has to
    be rounded as the checker rounds it (``Fraction(float(x) + float(far))``), and ``start`` is the size at
    that double, in exact arithmetic. Two ends may become one; a piece of no length is left out.
    """

    low: float
    high: float
    rate: Fraction
    near: float
    start: Fraction

    def size(self, value: float) -> Fraction:
        """The size of the change to a value on the piece."""
        if not self.rate or value == self.near:
            return self.start
        way = self.rate * Fraction(*apart(value, self.near))
        return self.start + way if self.start else way


class Measure(ABC):
    """What all measures are asked; the defaults are right for most.

    A measure that ``cost.scale`` states is a frozen dataclass of numbers, none called like what is listed
    here unless it is that. Where they do not fit each other, its ``__post_init__`` raises
    ``ValueError(got, allowed)``, or ``ValueError(got, allowed, "parameter")`` where one of them is at fault:
    the value as shown, what is allowed, and the parameter, of which the message names the key in files.

    Attributes
    ----------
    field
        The field of ``cost`` in files that states it, feature by feature.
    word
        By which ``cost.scale`` in files states it; None: by an object of the class's parameters.
    keys
        What the object calls parameters that it does not call by their names.
    rise, fall
        The scales of changes in either direction: how long a change of size 1 is, for a straight measure.
        Others keep 1, and state :attr:`length` instead.
    straight
        Whether sizes are distances over ``rise`` or ``fall``: two pieces. Searches then use those. Others
        use the pieces.
    strict
        Whether a larger change always has a larger size, so that no stretch is flat, not around x either.
        Proofs for trees rest on it.
    jumps
        Whether some stretch is so steep that the rounding of a double decides about the size
        (:attr:`Quantiles.jumps`). Certificates then refuse networks.
    personal
        Whether it depends on the applicant's value, which :meth:`of_applicant` is told.
    """

    field: str = "scale"
    word: ClassVar[str | None] = None
    keys: ClassVar[Mapping[str, str]] = {}
    rise: float = 1.0
    fall: float = 1.0
    straight: bool = False
    strict: bool = False
    jumps: bool = False
    personal: bool = False

    @property
    def length(self) -> float:
        """About how long a change of size 1 is, in the feature's unit; inf where no change is that large."""
        return min(self.rise, self.fall)

    @property
    def settled(self) -> Measure:
        """The measure as it is for this applicant, and for no other."""
        return self

    @abstractmethod
    def pieces(self, x: float) -> tuple[Piece, ...]:
        """The sizes of changes from x: two pieces or more, from -inf to inf, of which neighbours meet at an
        end and agree there; 0 at x, which need not be an end."""

    def why_not(self, kind: str) -> tuple[str, str] | None:
        """What is refused, and allowed instead, where a feature of that kind cannot have it; else None."""
        if kind != "categorical":
            return None
        return type(self).__name__, "a number: the labels of a categorical feature have no order"

    def of_applicant(self, x: float) -> Measure:
        """The measure for an applicant who has the value x.

        Raises
        ------
        ValueError
            There is none; with the value as shown, and what is allowed.
        """
        return self

    @abstractmethod
    def times(self, factor: float) -> Measure:
        """The measure whose sizes are those of this one divided by a power of two; only straight ones are
        asked for another than themselves."""


@dataclass(frozen=True)
class Distance(Measure):
    """The distance over a scale: (a - x) / rise, or (x - a) / fall.

    Parameters
    ----------
    rise, fall
        s > 0 of increases and of decreases, in the feature's unit. A file may state both as one number.
    """

    rise: Positive
    fall: Positive
    keys: ClassVar[Mapping[str, str]] = {"rise": "increase", "fall": "decrease"}
    straight = True
    strict = True

    def pieces(self, x: float) -> tuple[Piece, ...]:
        rise, fall = inverse(self.rise), inverse(self.fall)
        return Piece(-math.inf, x, fall, x, NOTHING), Piece(x, math.inf, rise, x, NOTHING)

    def why_not(self, kind: str) -> tuple[str, str] | None:
        if self.rise == self.fall or kind != "categorical":
            return None
        return "two scales", "a number: the labels of a categorical feature have no order"

    def times(self, factor: float) -> Measure:
        return Distance(self.rise * factor, self.fall * factor)


@dataclass(frozen=True)
class Relative(Distance):
    """The change as a share of the applicant's own |x|.

    :meth:`of_applicant` makes that the scale. Where x is missing the scale is 1: it has no influence, since
    every change has the size 1 there.
    """

    rise: float = 1.0
    fall: float = 1.0
    word = "factual"
    personal = True

    @property
    def settled(self) -> Measure:
        return Distance(self.rise, self.fall)

    def why_not(self, kind: str) -> tuple[str, str] | None:
        if kind not in ("categorical", "ordinal"):
            return None
        return "factual", "a number: labels have no size that a change could be relative to"

    def of_applicant(self, x: float) -> Measure:
        if x == 0:
            raise ValueError("factual 0", "a factual value that is not 0: the cost is of its relative change")
        size = 1.0 if math.isnan(x) else abs(x)
        return Relative(size, size)


@dataclass(frozen=True)
class Ranks(Measure):
    """The difference of ranks: |Q(a) - Q(x)|, or of -log(1 - Q).

    Parameters
    ----------
    levels
        Q, or -log(1 - Q) at the same knots.
    """

    levels: Quantiles
    field = "quantiles"

    @property
    def jumps(self) -> bool:  # type: ignore[override]
        return self.levels.jumps

    @property
    def length(self) -> float:
        (low, *_, high), (first, *_, last) = self.levels.values, self.levels.probabilities
        return (high - low) / (last - first) if last > first else math.inf

    def pieces(self, x: float) -> tuple[Piece, ...]:
        q, made = self.levels.exact, list[Piece]()
        here = q(Fraction(x))
        for low, high in pairwise([-math.inf, *sorted({x, *self.levels.values}), math.inf]):
            near, far = (high, low) if high <= x else (low, high)
            start, steep = abs(q(Fraction(near)) - here), NOTHING
            if math.isfinite(far):
                steep = (abs(q(Fraction(far)) - here) - start) / abs(Fraction(far) - Fraction(near))
            made.append(Piece(low, high, steep, near, start))
        return tuple(made)

    def why_not(self, kind: str) -> tuple[str, str] | None:
        if kind != "categorical":
            return None
        return "quantiles", "nothing: the labels of a categorical feature have no order"

    def times(self, factor: float) -> Measure:
        return self


MEASURES: tuple[type[Measure], ...] = Distance, Relative
"""Those that ``cost.scale`` can state."""


@lru_cache(maxsize=4096)
def inverse(scale: float) -> Fraction:
    """1 / scale exactly."""
    return 1 / Fraction(scale)


def apart(a: float, b: float) -> tuple[int, int]:
    """abs(a - b) exactly, as a numerator and a denominator."""
    (m, c), (n, d) = a.as_integer_ratio(), b.as_integer_ratio()
    below = max(c, d)  # powers of two
    return abs(m * (below // c) - n * (below // d)), below


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

    def by_size(self, counted: Iterable[str], names: Iterable[str]) -> Cost:
        """The cost under which changes of some features have the size 1, and what is fixed is per size.

        Parameters
        ----------
        names
            Every feature: each change has the size 1 where the cost has no sizes.
        """
        one = Distance(1.0, 1.0)
        measures = self._settled if self.uses_scale else dict.fromkeys(names, one)
        own = replace(self, measures={**measures, **dict.fromkeys(counted, one)})
        return replace(own, l0=0.0, l1=self.l1 + self.l0, kind="mixture") if self.l0 else own

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
