"""What conditions demand of one applicant's counterfactual (section 11).

A demand is a :class:`Row`, a :class:`Count`, or :class:`Parts` all or some of which must hold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Row:
    """sum of coefficient * value >= least; terms in the order of the features' names, none 0."""

    terms: tuple[tuple[str, Fraction], ...]
    least: Fraction


@dataclass(frozen=True)
class Count:
    """least <= how many of these features are acted on <= most."""

    features: frozenset[str]
    least: float
    most: float


@dataclass(frozen=True)
class Parts:
    """Every part holds, or some part does."""

    every: bool
    parts: tuple[Demand, ...]


Demand = Row | Count | Parts
TRUE, FALSE = Parts(True, ()), Parts(False, ())


def join(every: bool, parts: Sequence[Demand]) -> Demand:
    """All or any of some demands: constants settled, equal kinds spliced in, repeats dropped, one bare."""
    ends_it = FALSE if every else TRUE
    if ends_it in parts:
        return ends_it
    kept: dict[Demand, None] = {}
    for part in parts:
        kept |= dict.fromkeys(part.parts if isinstance(part, Parts) and part.every == every else (part,))
    return next(iter(kept)) if len(kept) == 1 else Parts(every, tuple(kept))


def settled(demand: Demand, acted: Collection[str]) -> Demand:
    """What is left of a demand where exactly these features are acted on."""
    if isinstance(demand, Parts):
        return join(demand.every, [settled(part, acted) for part in demand.parts])
    if isinstance(demand, Row):
        return demand
    return TRUE if demand.least <= len(demand.features.intersection(acted)) <= demand.most else FALSE


def leaves(demand: Demand) -> Iterator[Row | Count]:
    """The rows and counts in a demand."""
    if isinstance(demand, Parts):
        for part in demand.parts:
            yield from leaves(part)
    else:
        yield demand


Case = tuple[tuple[Row, ...], tuple[Parts, ...]]
"""The rows that hold, and the alternatives that are open, in order."""


def case(demand: Demand, before: Case = ((), ())) -> Case:
    """A case in which a settled demand holds too."""
    rows, open_ = before
    for part in demand.parts if isinstance(demand, Parts) and demand.every else (demand,):
        if isinstance(part, Row):
            rows = (*rows, part)
        else:
            assert isinstance(part, Parts), "an unsettled part"
            open_ = (*open_, part)
    return rows, open_


def alternatives(before: Case) -> list[Case]:
    """The cases that the first open alternative of a case leaves."""
    rows, (first, *rest) = before
    return [case(part, (rows, tuple(rest))) for part in first.parts]
