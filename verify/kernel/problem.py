"""The problem: what a change costs, what conditions demand, who may act on what, what follows from it.

``verify/files`` makes it of an instance (sections 1 to 3 and 11). A :class:`Model` is what all applicants
share, a :class:`Problem` is one applicant's.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any, NamedTuple

from verify.kernel.checks import Rejected
from verify.kernel.lattice import Lattice
from verify.kernel.trees import Ensemble

Interval = tuple[Fraction, Fraction]


class Piece(NamedTuple):
    """On [low, high] the change to a value a has the size rate a + start, which is at least 0."""

    low: Fraction | float
    high: Fraction | float
    rate: Fraction
    start: Fraction

    def size(self, a: Fraction) -> Fraction:
        """The size of the change to a value a on the piece."""
        return self.rate * a + self.start


class Term(NamedTuple):
    """One action's cost, kappa size^2 + beta size; omega size is its entry in the cost's maximum.

    ``pieces`` ascend. Neighbours meet at an end and agree there, but for labels, between whose numbers there
    are no values. Every way to measure a change has this form: distances, labels and missing values (the
    size is 0 or 1), two scales by direction, percentiles.

    ``gap``: the nearest values below and above the factual one that may be set, if that itself may not be
    set; no size is less than at one of the two.
    """

    kappa: Fraction
    beta: Fraction
    omega: Fraction
    pieces: Sequence[Piece]
    gap: tuple[Fraction | float, Fraction | float] | None = None

    def within(self, low: Fraction, high: Fraction) -> list[Piece]:
        """The pieces that meet an interval, cut to it."""
        met = [piece for piece in self.pieces if piece.low <= high and low <= piece.high]
        return [Piece(max(p.low, low), min(p.high, high), p.rate, p.start) for p in met]

    def paid(self, size: Fraction) -> tuple[Fraction, Fraction]:
        """The cost of a change of this size, and its entry in the cost's maximum."""
        return self.kappa * size * size + self.beta * size, self.omega * size

    def ends(self, low: Fraction, high: Fraction) -> tuple[tuple[Fraction, Fraction], ...]:
        """The least and the most that an action in an interval costs, each as :meth:`paid` returns it."""
        parts = [(low, high)]
        if self.gap and low <= self.gap[0] and self.gap[1] <= high:
            parts = [(low, Fraction(self.gap[0])), (Fraction(self.gap[1]), high)]
        met = [piece for part in parts for piece in self.within(*part)]
        sizes = [p.size(Fraction(a)) for p in met for a in (p.low, p.high)]
        return self.paid(min(sizes)), self.paid(max(sizes))

    def variation(self, low: Fraction, high: Fraction) -> Fraction:
        """How much the size changes on the way from one end of an interval to the other."""
        met = self.within(low, high)
        return sum((abs(p.rate) * (Fraction(p.high) - Fraction(p.low)) for p in met), Fraction(0))


def total(parts: Iterable[tuple[Fraction, Fraction]]) -> Fraction:
    """The sum of the costs plus the largest entry of the maximum."""
    listed = list(parts)
    return sum((cost for cost, _ in listed), Fraction(0)) + max((most for _, most in listed), default=0)


Factor = str | tuple[str, str]
"""What a coefficient multiplies: a feature's value, or the product of two features' values."""


def features(factor: Factor) -> tuple[str, ...]:
    """The features whose values are multiplied."""
    return (factor,) if isinstance(factor, str) else factor


class Row(NamedTuple):
    """sum of coefficient * value >= least; terms by the features' names, then products, none 0."""

    terms: tuple[tuple[Factor, Fraction], ...]
    least: Fraction


class Parts(NamedTuple):
    """A demand that all of its parts hold (``every``), or at least one of them."""

    every: bool
    parts: tuple["Demand", ...]


Demand = Row | Parts
FALSE = Parts(False, ())


def spliced(demand: Demand) -> tuple[Demand, ...]:
    """The demands that together make up this one: its parts if all of them must hold, else itself."""
    return demand.parts if isinstance(demand, Parts) and demand.every else (demand,)


def products(demand: "Demand") -> set[tuple[str, str]]:
    """The products that a demand's rows are about."""
    if isinstance(demand, Row):
        return {factor for factor, _ in demand.terms if not isinstance(factor, str)}
    return set().union(*map(products, demand.parts))


def alternatives(case: tuple[Demand, ...]) -> list[tuple[Demand, ...]]:
    """The children of a case under ``["o"]``: one part each of its first open alternative, appended last."""
    for k, one in enumerate(case):
        if isinstance(one, Parts):
            return [(*case[:k], *case[k + 1 :], *spliced(part)) for part in one.parts]
    raise Rejected("got ['o'], but no alternative of the conditions is open here (section 11)")


class Feature(NamedTuple):
    """One feature; the value of a labelled one is its label's number, from 0.

    Attributes
    ----------
    whole
        Whether its values are whole numbers, as those of labels are.
    lattice
        The values that an action may set within the limits; None where these are all doubles.
    domain
        What limits the value after the action.
    table
        By label, its numbers in the classifier's columns; None where the value itself is the column.
    """

    name: str
    whole: bool
    lattice: Lattice | None
    domain: Sequence[float] | None
    table: Sequence[Sequence[Fraction]] | None


class Noise(NamedTuple):
    """A noise u whose -log density is square u^2 + linear u + sum of times log(at + slope u) + a constant.

    ``logs`` has (times, at, slope) for each logarithm; the density is zero unless every at + slope u is
    positive and, with ``coin``, u is 0 or 1.
    """

    square: Fraction = Fraction(0)
    linear: Fraction = Fraction(0)
    logs: Sequence[tuple[Fraction, Fraction, Fraction]] = ()
    coin: bool = False


class Mechanism(NamedTuple):
    """How a feature follows from its causes: an equation as in the file, a link or None, and the noise.

    With a link (offset, scale) the value is offset + scale sigmoid(equation + noise), else equation + noise.
    """

    equation: Any = 0.0
    link: tuple[Fraction, Fraction] | None = None
    noise: Noise = Noise()


@dataclass(frozen=True, eq=False)
class Model:
    """What all applicants share.

    Attributes
    ----------
    features
        In the file's order.
    mechanisms
        By feature, causes before effects.
    plausible
        Whether the counterfactual must not be less plausible than the factual.
    front, layers, single, at_least, margin
        A network's layers up to the last one with curves (section 1), and those after it (None for trees);
        whether the classifier computes in float32, and the two numbers whose sum the network's logit must
        reach.
    forests, one_suffices
        The ensemble's parts (none for a network), and whether one of them must accept, or all.
    """

    features: Sequence[Feature]
    mechanisms: Mapping[str, Mechanism]
    plausible: bool
    front: Sequence[Any]
    layers: Sequence[Any] | None
    single: bool
    at_least: float
    margin: float
    forests: Sequence[Ensemble]
    one_suffices: bool


@dataclass(eq=False)
class Problem:
    """One applicant's problem.

    Attributes
    ----------
    factual, missing
        Values by feature, 0 where one is missing, and the features whose value is missing.
    levers
        By feature, the values that an action may set, where there are any, in the order of ``features``.
    terms, fixed
        For every lever, what changing it costs, and what acting on it costs besides.
    power
        2 where the cost is the root of what its terms add up to, else 1.
    offset
        By how much the counterfactual's log density must exceed the factual's.
    demand, asked_about
        A function from the features acted on to what the conditions then demand; the levers of which the
        conditions ask whether they are acted on (section 11).
    most
        How many levers may be acted on, which ``demand`` leaves out.
    under
        From positions of conditions to the problem with these alone; None where there are none.
    """

    model: Model
    factual: Mapping[str, Fraction]
    missing: set[str]
    levers: Mapping[str, Interval]
    terms: Mapping[str, Term]
    fixed: Mapping[str, Fraction]
    power: int
    offset: Fraction
    demand: Callable[[Collection[str]], Demand]
    asked_about: set[str]
    most: float = inf
    under: Callable[[Sequence[float]], "Problem"] | None = None
