"""Pydantic models of the answer of ``why``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from milp_recourse.formats.schema_result import StatusName
from milp_recourse.formats.validate import NonNegative, Number, Strict


class LiftedModel(Strict):
    """A minimal set of restrictions whose lifting makes recourse possible."""

    lift: list[str]
    cost: NonNegative = Field(description="cost of the optimum without them")
    lower_bound: NonNegative


class WidenedModel(Strict):
    """The least widening of one end that suffices by itself."""

    id: str
    end: Literal["low", "high"]
    from_: Number = Field(alias="from", description="the end's value")
    to: Number = Field(description="the value to which it must be moved")
    cost: NonNegative
    lower_bound: NonNegative


class WhyModel(Strict):
    """How an applicant's restrictions lead to their result."""

    format: Literal["milp-recourse/why-1"]
    status: StatusName
    cost: NonNegative | None
    lower_bound: NonNegative | None
    restrictions: list[str] = Field(description="ids of the restrictions, each of which can be lifted")
    minimal: list[LiftedModel] = Field(
        description="if infeasible, every inclusion-minimal set whose lifting makes recourse possible"
    )
    complete: bool = Field(description="whether no set, price or widening is missing")
    prices: dict[str, NonNegative] = Field(
        description="if optimal, for each id the proven cost without this restriction"
    )
    price_bounds: dict[str, NonNegative] = Field(description="the lower bounds of these costs")
    smallest: list[WidenedModel] = Field(
        description="if infeasible, the least widening of each end that suffices by itself"
    )
