"""What conditions demand of one applicant's counterfactual (section 11).

A demand is a :class:`Row`, :class:`Acts`, :class:`Count`, :class:`Every` or :class:`Some`. Negations are
pushed to the leaves while it is made; what concerns factual values alone is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any

from verify.kernel.shapes import Rejected


@dataclass(frozen=True)
class Row:
    """sum of coefficient * value >= least; terms in the order of the features' names, none 0."""

    terms: tuple[tuple[str, Fraction], ...]
    least: Fraction


@dataclass(frozen=True)
class Acts:
    """The feature is acted on (``wanted``), or is not."""

    feature: str
    wanted: bool


@dataclass(frozen=True)
class Count:
    """least <= features acted on <= most; None: without end."""

    least: int
    most: int | None


@dataclass(frozen=True)
class Every:
    """Every part holds."""

    parts: tuple[Demand, ...]


@dataclass(frozen=True)
class Some:
    """Some part holds."""

    parts: tuple[Demand, ...]


Demand = Row | Acts | Count | Every | Some
TRUE, FALSE = Every(()), Some(())


def join(kind: type[Every] | type[Some], parts: Sequence[Demand]) -> Demand:
    """All or any of some demands: constants settled, equal kinds spliced in, repeats dropped, one bare."""
    ends_it = FALSE if kind is Every else TRUE
    if ends_it in parts:
        return ends_it
    kept: dict[Demand, None] = {}
    for part in parts:
        kept |= dict.fromkeys(part.parts if isinstance(part, kind) else (part,))
    return next(iter(kept)) if len(kept) == 1 else kind(tuple(kept))


class Reader:
    """Reads canonical conditions of an applicant.

    Parameters
    ----------
    whole
        Features whose values are whole numbers.
    labels
        How many labels a labelled feature has.
    factual, missing
        Values by feature, and the features without one.
    """

    def __init__(
        self,
        whole: Collection[str],
        labels: Mapping[str, int],
        factual: Mapping[str, Fraction],
        missing: Collection[str],
    ) -> None:
        self.whole, self.labels, self.factual, self.missing = whole, labels, factual, missing

    def all(self, conditions: Sequence[Any]) -> Demand:
        """What a list of conditions demands."""
        return join(Every, [self.read(one, True) for one in conditions])

    def read(self, one: Any, sign: bool) -> Demand:
        """What a condition demands; its negation where ``sign`` is false."""
        if "not" in one:
            return self.read(one["not"], not sign)
        if "if" in one:
            return join(
                Some if sign else Every, [self.read(one["if"], not sign), self.read(one["then"], sign)]
            )
        for key, kind in (("any", Some), ("all", Every)):
            if key in one:
                other = Every if kind is Some else Some
                return join(kind if sign else other, [self.read(part, sign) for part in one[key]])
        if "at_most_actions" in one:
            k = int(one["at_most_actions"])
            return Count(0, k) if sign else Count(k + 1, None)
        if "acted" in one:
            return Acts(one["acted"], sign)
        return self._labels(one, sign) if "in" in one else self._sum(one, sign)

    def _value(self, name: str) -> Fraction:
        if name in self.missing:
            raise Rejected(f"conditions: {name} is missing, and a condition looks at it")
        return self.factual[name]

    def _labels(self, one: Any, sign: bool) -> Demand:
        name, x = one["feature"], self._value(one["feature"])
        named = set(one["in"])
        chosen = {k for k in range(self.labels[name]) if (k in named) == sign}
        if one["of"] == "factual":
            return TRUE if x in chosen else FALSE
        if len(chosen) == self.labels[name]:
            return TRUE
        runs: list[Demand] = []
        for first in sorted(k for k in chosen if k - 1 not in chosen):
            last = next(k for k in range(first, first + len(chosen)) if k + 1 not in chosen)
            ends = ((Fraction(1), Fraction(first)), (Fraction(-1), Fraction(-last)))
            runs.append(join(Every, [Row(((name, c),), end) for c, end in ends]))
        return join(Some, runs)

    def _sum(self, one: Any, sign: bool) -> Demand:
        of, ends = one["of"], [one["at_least"], one["at_most"]]
        x = {name: self._value(name) for name in one["sum"]}
        c = {name: Fraction(factor) for name, factor in one["sum"].items()}
        low, high = (None if end is None else Fraction(end) for end in ends)
        start = sum((c[name] * x[name] for name in c), Fraction(0))
        if of == "factual":
            inside = (low is None or start >= low) and (high is None or start <= high)
            return TRUE if inside == sign else FALSE
        whole = all(name in self.whole and factor.denominator == 1 for name, factor in c.items())
        if of == "relative-change":
            if 0 in x.values():
                raise Rejected("conditions: the relative change of a value that is 0")
            c, whole = {name: factor / abs(x[name]) for name, factor in c.items()}, False
            start = sum((c[name] * x[name] for name in c), Fraction(0))
        if of == "counterfactual":
            start = Fraction(0)
        terms = tuple(sorted((name, factor) for name, factor in c.items() if factor))
        sides = []
        for end, above in ((low, True), (high, False)):
            if end is None:
                continue
            upward, limit = above == sign, end
            if not sign and whole:
                limit = Fraction(ceil(end) - 1 if above else floor(end) + 1)
            factor = 1 if upward else -1
            row = Row(
                tuple((name, factor * coefficient) for name, coefficient in terms), factor * (start + limit)
            )
            sides.append(row if terms else TRUE if row.least <= 0 else FALSE)
        return join(Every if sign else Some, sides)


def settle(demand: Demand, decide: Callable[[Demand], bool | None]) -> Demand:
    """A demand with the leaves decided that ``decide`` answers for."""
    if isinstance(demand, Every | Some):
        return join(type(demand), [settle(part, decide) for part in demand.parts])
    known = decide(demand)
    return demand if known is None else TRUE if known else FALSE


def for_acted(demand: Demand, acted: Collection[str]) -> Demand:
    """What is left of a demand where exactly these features are acted on."""

    def decide(leaf: Demand) -> bool | None:
        if isinstance(leaf, Acts):
            return (leaf.feature in acted) == leaf.wanted
        if isinstance(leaf, Count):
            return leaf.least <= len(acted) and (leaf.most is None or len(acted) <= leaf.most)
        return None

    return settle(demand, decide)


def asked_about(demand: Demand, levers: Collection[str]) -> set[str]:
    """The levers of which a demand asks whether they are acted on."""
    if isinstance(demand, Every | Some):
        return set().union(*(asked_about(part, levers) for part in demand.parts))
    if isinstance(demand, Acts):
        return {demand.feature} & set(levers)
    return set(levers) if isinstance(demand, Count) else set()


def rows_of(demand: Demand) -> list[Row]:
    """Every row in a demand."""
    if isinstance(demand, Every | Some):
        return [row for part in demand.parts for row in rows_of(part)]
    return [demand] if isinstance(demand, Row) else []


Case = tuple[tuple[Row, ...], tuple[Some, ...]]
"""The rows that hold, and the alternatives that are open, in order."""


def case(demand: Demand, before: Case = ((), ())) -> Case:
    """A case in which a demand holds too; who is acted on must be settled."""
    rows, open_ = before
    for part in demand.parts if isinstance(demand, Every) else (demand,):
        if isinstance(part, Row):
            rows = (*rows, part)
        elif isinstance(part, Some):
            open_ = (*open_, part)
        else:
            raise TypeError("an unsettled part")
    return rows, open_


def alternatives(before: Case) -> list[Case]:
    """The cases that the first open alternative of a case leaves."""
    rows, (first, *rest) = before
    return [case(part, (rows, tuple(rest))) for part in first.parts]
