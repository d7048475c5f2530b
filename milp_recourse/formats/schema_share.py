"""Pydantic models of an institution's offers and of the answers of ``share``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from milp_recourse.formats.schema_choices import Shown
from milp_recourse.formats.schema_result import StatusName
from milp_recourse.formats.validate import NonNegative, Positive, Strict, Word

OFFERS_FORMAT, SHARE_FORMAT = "milp-recourse/offers-1", "milp-recourse/share-1"


Amount = Annotated[float, Field(ge=-1e100, le=1e100, allow_inf_nan=False)]
NoLessThanNothing = Annotated[Amount, Field(ge=0)]
"""Amounts that a thousand steps, and all people's sums, cannot make overflow."""


class OfferModel(Strict):
    """What the institution may do for one person."""

    name: Word | None = None
    price: NoLessThanNothing = Field(description="what the offer costs the institution")
    lower: NoLessThanNothing = Field(
        default=0.0, description="by how much the threshold of the logit or score is lowered"
    )
    give: dict[str, Amount] = Field(
        default_factory=dict, description="by how much a feature is raised before the person acts"
    )
    cheaper: dict[str, Annotated[Positive, Field(le=1)]] = Field(
        default_factory=dict, description="by what the person's weight of a lever is multiplied"
    )
    times: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=1, description="price, lower and give may be multiplied by 1, 2, ... up to this number"
    )


class OffersModel(Strict):
    """An institution's offers, of which a person gets one or none."""

    format: Literal["milp-recourse/offers-1"]
    offers: Annotated[list[OfferModel], Field(min_length=1)]


class PointModel(Strict):
    """A person's answer under one offer."""

    offer: str | None
    price: NonNegative
    status: StatusName
    cost: NonNegative | None
    lower_bound: NonNegative | None
    action: dict[str, Shown] | None


class SharePersonModel(Strict):
    """One person."""

    index: int
    points: list[PointModel] = Field(
        description="by price; offers after one under which nothing has to be done are left out"
    )
    chosen: int | None = Field(description="the position in points of what was chosen")


class ShareModel(Strict):
    """Who is helped by which offer, and what it costs whom."""

    format: Literal["milp-recourse/share-1"]
    budget: NonNegative | None
    weight: NonNegative = Field(description="what a unit of the offers' prices counts beside people's costs")
    most_cost: NonNegative | None
    served: int
    served_at_most: int = Field(description="no choice of offers serves more people, proven")
    spent: NonNegative
    cost: NonNegative = Field(description="people's own costs together")
    objective: NonNegative = Field(description="cost + weight * spent")
    lower_bound: NonNegative | None = Field(
        description="no choice that serves as many has a smaller objective; null if more might be served"
    )
    proven: bool
    people: list[SharePersonModel]
