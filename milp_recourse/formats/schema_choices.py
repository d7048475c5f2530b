"""Pydantic models of several choices, and of a certain action."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from milp_recourse.formats.schema_base import NonNegative, Number, Strict
from milp_recourse.formats.schema_conditions import ConditionModel
from milp_recourse.formats.schema_result import StatusName

Shown = Number | str


class ChoiceModel(Strict):
    """One recourse."""

    status: StatusName
    cost: NonNegative
    lower_bound: NonNegative | None
    proof: Literal["rigorous", "solver"] | None
    action: dict[str, Shown]
    counterfactual: dict[str, Shown | None]
    conditions: list[ConditionModel] = Field(
        description="what makes it differ from those before it; with them the instance is its problem"
    )


class TotalModel(Strict):
    """The total cost of a set of ways."""

    cost: NonNegative
    lower_bound: NonNegative


class ChoicesModel(Strict):
    """The cheapest recourses that differ, each proven given those before it."""

    format: Literal["milp-recourse/choices-1"]
    differ: Literal["features", "distance", "effect"]
    apart: NonNegative
    scale: dict[str, NonNegative]
    choices: list[ChoiceModel]
    exhausted: bool = Field(description="whether it is proven that nothing else differs so")
    lower_bound: NonNegative | None = Field(description="of what is not listed; null where exhausted")
    message: str | None
    total: TotalModel | None = Field(description="where the set of least total cost was asked for")


class WithstandsModel(Strict):
    """What an action must withstand."""

    missed: dict[str, NonNegative]
    threshold: Number | None
    noise: dict[str, tuple[Number, Number]]


class WorstModel(Strict):
    """The lowest output found among an action's outcomes, and what happens there."""

    output: Number
    missed: dict[str, Number]
    noise: dict[str, Number]


class RobustModel(Strict):
    """The cheapest action that holds whatever of this happens."""

    format: Literal["milp-recourse/robust-1"]
    status: StatusName
    cost: NonNegative | None
    lower_bound: NonNegative | None
    proof: Literal["rigorous", "solver"] | None
    action: dict[str, Shown] | None
    counterfactual: dict[str, Shown | None] | None
    withstands: WithstandsModel
    worst: WorstModel | None
    cuts: int = Field(description="scenarios, or refused boxes, that the bound rests on")
    rounds: int = Field(description="problems solved")
    message: str | None
