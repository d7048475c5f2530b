"""What conditions demand of one applicant's counterfactual (section 11).

A demand is a :class:`Row`, or :class:`Parts` all or some of which must hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Row:
    """sum of coefficient * value >= least; terms in the order of the features' names, none 0."""

    terms: tuple[tuple[str, Fraction], ...]
    least: Fraction


@dataclass(frozen=True)
class Parts:
    """Every part holds, or some part does."""

    every: bool
    parts: tuple[Demand, ...]


Demand = Row | Parts
FALSE = Parts(False, ())


def leaves(demand: Demand) -> Iterator[Row]:
    """The rows in a demand."""
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
            open_ = (*open_, part)
    return rows, open_


def alternatives(before: Case) -> list[Case]:
    """The cases that the first open alternative of a case leaves."""
    rows, (first, *rest) = before
    return [case(part, (rows, tuple(rest))) for part in first.parts]
