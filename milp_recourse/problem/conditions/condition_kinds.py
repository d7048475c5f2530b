"""The kinds of conditions, independent of any applicant's values; labels are given by their indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge

View = Literal["factual", "counterfactual", "change", "relative-change"]
"""Which value of a feature: before the action, after it (effects included), the change (after minus before),
or the change divided by the absolute value before."""


Factor = str | tuple[str, str]
"""What a coefficient multiplies: a feature's value, or the product of two features' values."""


def factors(of: Factor) -> tuple[str, ...]:
    """The features whose values are multiplied."""
    return (of,) if isinstance(of, str) else of


@dataclass(frozen=True)
class AtMostActions:
    """At most ``count`` (in files ``at_most_actions``) features are acted on, held ones included."""

    count: Annotated[int, Ge(0)]


@dataclass(frozen=True)
class Acted:
    """The feature is acted on; holding it at its factual value is an action too."""

    feature: str


@dataclass(frozen=True)
class Sum:
    """at_least <= sum of coefficient * value <= at_most; a side that is None is open.

    Parameters
    ----------
    terms
        Pairs of feature, or two features in order, and coefficient; features are numeric or ordinal. Of two
        the product counts: its value before and after the action, and its change.
    of
        Which value of the features is summed.
    """

    terms: tuple[tuple[Factor, float], ...]
    of: View
    at_least: float | None = None
    at_most: float | None = None


@dataclass(frozen=True)
class LabelIn:
    """The feature's label, factual or counterfactual, is one of ``labels`` (indices, ascending)."""

    feature: str
    of: View
    labels: tuple[int, ...]


@dataclass(frozen=True)
class IfThen:
    """``condition`` (``if`` in files) does not hold, or ``then`` does."""

    condition: Condition
    then: Condition


@dataclass(frozen=True)
class Any:
    """At least one part holds."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class All:
    """Every part holds."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Not:
    """The part does not hold; docs/formats.md defines that at a boundary."""

    part: Condition


Condition = AtMostActions | Acted | Sum | LabelIn | IfThen | Any | All | Not


def one_of(feature: str, of: View, numbers: Sequence[float]) -> Sum | Any:
    """The condition that a numeric feature has one of some values: any of its equalities."""
    parts = tuple(Sum(((feature, 1.0),), of, v, v) for v in sorted(set(numbers)))
    return parts[0] if len(parts) == 1 else Any(parts)
