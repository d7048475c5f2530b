"""Demands in a program: ranges of their rows, and what is left of a demand once something is decided."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from fractions import Fraction

from milp_recourse.problem.conditions import (
    AllOf,
    AnyOf,
    Counted,
    Demand,
    Row,
    Switched,
    all_of,
    leaves,
    settled,
    value_of,
)
from milp_recourse.problem.enclosure import Enclosure

Span = tuple[Fraction, Fraction]
"""Least and largest value of sum c x' - b of a row."""


def spans(demand: Demand, reach: Mapping[str, Enclosure]) -> dict[Row, Span]:
    """The range of sum c x' - b of every row of a demand, from the values that features can reach."""
    found = {}
    for row in leaves(demand):
        if isinstance(row, Row):
            total = Enclosure.of(-row.at_least)
            for of, c in row.terms:
                total = total + Enclosure.of(c) * value_of(of, reach)
            found[row] = total.lower, total.upper
    return found


def reachable_demand(demand: Demand, known: Mapping[Row, Span]) -> Demand:
    """The demand after rows that hold under every action, or under none, have been decided.

    Parameters
    ----------
    known
        The range of every row, from :func:`spans`.
    """

    def decide(leaf: Demand) -> bool | None:
        if not isinstance(leaf, Row):
            return None
        low, high = known[leaf]
        return True if low >= 0 else False if high < 0 else None

    return settled(demand, decide)


def for_acted(demand: Demand, acted: Collection[str]) -> Demand:
    """What is left of a demand if exactly these features are acted on."""

    def decide(leaf: Demand) -> bool | None:
        if isinstance(leaf, Switched):
            return (leaf.feature in acted) == leaf.acted
        if isinstance(leaf, Counted):
            return leaf.at_least <= len(acted) and (leaf.at_most is None or len(acted) <= leaf.at_most)
        return None

    return settled(demand, decide)


def conjuncts(demand: Demand) -> tuple[list[Row], Demand]:
    """The rows that must hold in any case, and the rest."""
    parts = demand.parts if isinstance(demand, AllOf) else (demand,)
    rows = [part for part in parts if isinstance(part, Row)]
    rest = tuple(part for part in parts if not isinstance(part, Row))
    return rows, rest[0] if len(rest) == 1 else AllOf(rest)


def limited(demand: Demand) -> tuple[int | None, Demand]:
    """How many features may be acted on in any case, None without a limit, and the rest of the demand."""
    parts = demand.parts if isinstance(demand, AllOf) else (demand,)
    most = [p.at_most for p in parts if isinstance(p, Counted) and not p.at_least and p.at_most is not None]
    if not most:
        return None, demand
    return min(most), all_of([p for p in parts if not (isinstance(p, Counted) and not p.at_least)])


def told_apart(demand: Demand, features: Collection[str]) -> frozenset[str]:
    """The features for which it matters to a demand whether they are acted on: all, if it counts actions."""
    named = {leaf.feature for leaf in leaves(demand) if isinstance(leaf, Switched)}
    counted = any(isinstance(leaf, Counted) for leaf in leaves(demand))
    return frozenset(features if counted else named)


def nearest_alternative(demand: Demand, slack: Mapping[Row, float]) -> list[Row]:
    """The rows that remain when each disjunction is replaced by the part that a point meets best.

    Of a disjunction's parts, the one whose least slack is largest is taken.

    Parameters
    ----------
    slack
        sum c x' - b of every row at the point.
    """

    def chosen(part: Demand) -> tuple[float, list[Row]]:
        """The least slack and the rows of a part."""
        if isinstance(part, Row):
            return slack[part], [part]
        found = [chosen(one) for one in part.parts] if isinstance(part, AllOf | AnyOf) else []
        if isinstance(part, AnyOf) and found:
            return max(found, key=lambda one: one[0])
        return min((one[0] for one in found), default=math.inf), [row for one in found for row in one[1]]

    return chosen(demand)[1]
