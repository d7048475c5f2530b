"""Pydantic model of the answer to "why not?"."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from milp_recourse.formats.schema_base import NonNegative, Number, Strict
from milp_recourse.formats.schema_result import StatusName


class LiftedModel(Strict):
    """A minimal set of restrictions whose lifting makes recourse possible."""

    lift: list[str]
    cost: NonNegative = Field(description="of the optimum without them")
    lower_bound: NonNegative


class WidenedModel(Strict):
    """The least widening of one end that suffices by itself."""

    id: str
    end: Literal["low", "high"]
    from_: Number = Field(alias="from", description="where the end is")
    to: Number = Field(description="where it must be")
    cost: NonNegative
    lower_bound: NonNegative


class WhyModel(Strict):
    """Why an applicant gets what they get."""

    format: Literal["milp-recourse/why-1"]
    status: StatusName
    cost: NonNegative | None
    lower_bound: NonNegative | None
    restrictions: list[str] = Field(description="ids of what can be lifted")
    minimal: list[LiftedModel] = Field(description="infeasible: every inclusion-minimal set, cheapest first")
    complete: bool = Field(description="whether all sets, prices and widenings were settled")
    prices: dict[str, NonNegative] = Field(description="optimal: per id alone, the proven cost without it")
    price_bounds: dict[str, NonNegative] = Field(description="the lower bounds of these costs")
    smallest: list[WidenedModel] = Field(description="infeasible: where one end suffices")
