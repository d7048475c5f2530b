r"""What conditions demand of one applicant's counterfactual, with negations worked in.

Once the factual :math:`x` is known, a sum of factual values, of changes or of relative changes can be written
with counterfactual values :math:`x'`. So only one kind of inequality is left,
:math:`\sum_i c_i x'_i \ge b` with rational numbers. Conditions on factual values alone are decided here.

Negation. The negation of "at most n" is "above n" for factual values, and "at least
:math:`\lfloor n \rfloor + 1`" for counts and for sums of whole-valued features with whole coefficients, if
all of these are whole before the action, too (what an imputer puts in need not be). For all other sums it is
"at least n", so that the boundary belongs to a condition and to its negation: a set without its boundary
would have no cheapest action. A double negation cancels first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from milp_recourse.errors import BadInput
from milp_recourse.problem.conditions.condition_kinds import (
    Acted,
    All,
    Any,
    AtMostActions,
    Condition,
    Factor,
    IfThen,
    LabelIn,
    Not,
    Sum,
    factors,
)
from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.features import Feature


@dataclass(frozen=True)
class Row:
    """sum of coefficient * counterfactual value, or product of two, >= at_least; features come before
    products, each sorted by name, no coefficient 0."""

    terms: tuple[tuple[Factor, Fraction], ...]
    at_least: Fraction


@dataclass(frozen=True)
class Labelled:
    """The feature's counterfactual label is one of ``labels`` (indices)."""

    feature: str
    labels: frozenset[int]


@dataclass(frozen=True)
class Switched:
    """The feature is acted on (``acted``), or it is not."""

    feature: str
    acted: bool


@dataclass(frozen=True)
class Counted:
    """at_least <= number of features acted on <= at_most; None: no upper end."""

    at_least: int = 0
    at_most: int | None = None


@dataclass(frozen=True)
class AllOf:
    """Every part holds; without parts it always does."""

    parts: tuple[Demand, ...]


@dataclass(frozen=True)
class AnyOf:
    """Some part holds; without parts it never does."""

    parts: tuple[Demand, ...]


Demand = Row | Labelled | Switched | Counted | AllOf | AnyOf

TRUE, FALSE = AllOf(()), AnyOf(())


def all_of(parts: Sequence[Demand]) -> Demand:
    """The conjunction of the parts; nested conjunctions are merged, constants and duplicates left out."""
    return _joined(parts, AllOf)


def any_of(parts: Sequence[Demand]) -> Demand:
    """The disjunction of the parts; nested disjunctions are merged, constants and duplicates left out."""
    return _joined(parts, AnyOf)


def _joined(parts: Iterable[Demand], by: type[AllOf | AnyOf]) -> Demand:
    distinct, decisive = dict[Demand, None](), FALSE if by is AllOf else TRUE
    for part in parts:
        if part == decisive:
            return decisive
        distinct |= dict.fromkeys(part.parts if isinstance(part, by) else (part,))
    return next(iter(distinct)) if len(distinct) == 1 else by(tuple(distinct))


def meaning(
    condition: Condition,
    features: Mapping[str, Feature],
    factual: Mapping[str, float],
    path: str = "conditions",
    fixed: Collection[str] = (),
) -> Demand:
    """What a condition demands of the counterfactual of an applicant with these factual values.

    Parameters
    ----------
    fixed
        Features that no action can move: in a product with one of them its value is a coefficient.

    Raises
    ------
    BadInput
        The condition is on the relative change of a value that is 0, or on a value that is missing.
    """
    return _Reader(features, factual, path, fixed).read(condition, True)


class _Reader:
    def __init__(
        self, features: Mapping[str, Feature], factual: Mapping[str, float], path: str, fixed: Collection[str]
    ) -> None:
        self.features, self.factual, self.path, self.fixed = features, factual, path, fixed

    def read(self, condition: Condition, sign: bool) -> Demand:
        """The demand of a condition, or of its negation (``sign`` false)."""
        match condition:
            case Not(part):
                return self.read(part, not sign)
            case IfThen(first, then):
                parts = [self.read(first, not sign), self.read(then, sign)]
                return _joined(parts, AnyOf if sign else AllOf)
            case Any(members) | All(members):
                parts = [self.read(part, sign) for part in members]
                return _joined(parts, AnyOf if isinstance(condition, Any) == sign else AllOf)
            case AtMostActions(count):
                return Counted(at_most=count) if sign else Counted(at_least=count + 1)
            case Acted(feature):
                return Switched(feature, sign)
            case LabelIn():
                return self._labels(condition, sign)
            case Sum():
                return self._sum(condition, sign)
        raise TypeError(condition)  # pragma: no cover

    def _labels(self, condition: LabelIn, sign: bool) -> Demand:
        x = self._known(condition.feature)
        if condition.of == "factual":
            return TRUE if (x in condition.labels) == sign else FALSE
        every = range(len(self.features[condition.feature].categories or ()))
        wanted = frozenset(k for k in every if (k in condition.labels) == sign)
        return TRUE if len(wanted) == len(every) else Labelled(condition.feature, wanted) if wanted else FALSE

    def _sum(self, condition: Sum, sign: bool) -> Demand:
        known = {of: [Fraction(self._known(f)) for f in factors(of)] for of, _ in condition.terms}
        x = {of: Fraction(math.prod(own)) for of, own in known.items()}
        coefficients = dict[Factor, Fraction]()
        for of, c in condition.terms:  # the same product may be named again
            coefficients[of] = coefficients.get(of, Fraction(0)) + Fraction(c)
        if condition.of == "factual":
            total = sum((c * x[of] for of, c in coefficients.items()), Fraction(0))
            low, high = condition.at_least, condition.at_most
            return (
                TRUE if ((low is None or total >= low) and (high is None or total <= high)) == sign else FALSE
            )
        whole = condition.of != "relative-change" and all(
            c.denominator == 1
            and all(self.features[f].integral for f in factors(of))
            and all(value.denominator == 1 for value in known[of])
            for of, c in coefficients.items()
        )
        if condition.of == "relative-change":
            for of in coefficients:
                if not x[of]:
                    allowed = "a factual value that is not 0: the condition asks for its relative change"
                    raise BadInput(f"{self.path}: {of}", "factual 0", allowed)
            coefficients = {of: c / abs(x[of]) for of, c in coefficients.items()}
        start = Fraction(0)
        if condition.of != "counterfactual":
            start = sum((c * x[of] for of, c in coefficients.items()), Fraction(0))
        terms, constant = self._moving(coefficients)
        start -= constant
        sides: list[Demand] = []
        for end, lower in ((condition.at_least, True), (condition.at_most, False)):
            if end is not None:
                sides.append(_side(terms, start, Fraction(end), lower, sign, whole))
        return _joined(sides, AllOf if sign else AnyOf)

    def _moving(self, coefficients: Mapping[Factor, Fraction]) -> tuple[dict[Factor, Fraction], Fraction]:
        """The terms, in which the values of fixed features in products have become coefficients, and what
        products of two of them add up to."""
        terms, known = dict[Factor, Fraction](), Fraction(0)
        for of, c in coefficients.items():
            moving = tuple(f for f in factors(of) if f not in self.fixed)
            if isinstance(of, str) or len(moving) == len(of):
                terms[of] = terms.get(of, Fraction(0)) + c
                continue
            size = c * math.prod(Fraction(self.factual[f]) for f in of if f in self.fixed)
            if moving:
                terms[moving[0]] = terms.get(moving[0], Fraction(0)) + size
            else:
                known += size
        return {of: c for of, c in terms.items() if c}, known

    def _known(self, name: str) -> float:
        x = self.factual[name]
        if math.isnan(x):
            raise BadInput(f"{self.path}: {name}", "a missing value", "a value: a condition looks at it")
        return x


def _side(
    terms: Mapping[Factor, Fraction], start: Fraction, end: Fraction, lower: bool, sign: bool, whole: bool
) -> Demand:
    """sum c x' - start >= end (``lower``) or <= end, or the negation of that, as one row."""
    if not sign:
        if whole:
            end = Fraction(math.ceil(end) - 1 if lower else math.floor(end) + 1)
        lower = not lower
    if not terms:
        return TRUE if (start + end <= 0 if lower else start + end >= 0) else FALSE
    ordered = sorted(terms.items(), key=lambda term: (len(factors(term[0])), factors(term[0])))
    if lower:
        return Row(tuple(ordered), start + end)
    return Row(tuple((of, -c) for of, c in ordered), -(start + end))


def value_of(of: Factor, values: Mapping[str, Enclosure]) -> Enclosure:
    """A feature's value, or the product of two."""
    first, *others = (values[f] for f in factors(of))
    return first * others[0] if others else first


def holds(demand: Demand, values: Mapping[str, Enclosure], acted: Collection[str]) -> bool:
    """Whether a demand surely holds, in exact arithmetic.

    Parameters
    ----------
    values
        The counterfactual, by feature. The demand must hold for all values in the enclosures.
    acted
        The features acted on.
    """
    match demand:
        case Row(terms, at_least):
            total = Enclosure.of(0)
            for of, c in terms:
                total = total + Enclosure.of(c) * value_of(of, values)
            return total.lower >= at_least
        case Labelled(feature, labels):
            value = values[feature]
            return value.exact and value.lower in labels
        case Switched(feature, wanted):
            return (feature in acted) == wanted
        case Counted(low, high):
            return low <= len(acted) and (high is None or len(acted) <= high)
        case AllOf(parts):
            return all(holds(part, values, acted) for part in parts)
        case AnyOf(parts):
            return any(holds(part, values, acted) for part in parts)
    raise TypeError(demand)  # pragma: no cover


def unlabelled(demand: Demand) -> Demand:
    """The demand, its sets of labels written as rows: each run of consecutive labels is an interval."""
    if isinstance(demand, AllOf | AnyOf):
        return _joined(map(unlabelled, demand.parts), type(demand))
    if not isinstance(demand, Labelled):
        return demand
    runs = []
    for label in sorted(demand.labels):
        if label - 1 not in demand.labels:
            last = next(k for k in range(label, label + len(demand.labels)) if k + 1 not in demand.labels)
            first = Row(((demand.feature, Fraction(1)),), Fraction(label))
            runs.append(all_of([first, Row(((demand.feature, Fraction(-1)),), Fraction(-last))]))
    return any_of(runs)


def leaves(demand: Demand) -> Iterator[Row | Labelled | Switched | Counted]:
    """The rows, labels, switches and counts of a demand."""
    if isinstance(demand, AllOf | AnyOf):
        for part in demand.parts:
            yield from leaves(part)
    else:
        yield demand


def has_products(demand: Demand) -> bool:
    """Whether some row is about a product of two features that actions move."""
    rows = (one for one in leaves(demand) if isinstance(one, Row))
    return any(not isinstance(of, str) for row in rows for of, _ in row.terms)


def settled(demand: Demand, decide: Callable[[Demand], bool | None]) -> Demand:
    """The demand after leaves for which ``decide`` returns a truth value have been replaced by it.

    Leaves for which it returns None stay.
    """
    if isinstance(demand, AllOf | AnyOf):
        return _joined((settled(part, decide) for part in demand.parts), type(demand))
    known = decide(demand)
    return demand if known is None else TRUE if known else FALSE
