"""Pydantic models of the answers of ``choices``, ``robust`` and ``regions``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from milp_recourse.formats.schema_conditions import ConditionModel
from milp_recourse.formats.schema_result import StatusName
from milp_recourse.formats.validate import NonNegative, Number, Strict

Shown = Number | str


class ChoiceModel(Strict):
    """One of the recourses."""

    status: StatusName
    cost: NonNegative
    lower_bound: NonNegative | None
    proof: Literal["rigorous", "solver", "asked"] | None
    action: dict[str, Shown]
    counterfactual: dict[str, Shown | None]
    conditions: list[ConditionModel] = Field(
        description="the conditions that make it differ from earlier choices; "
        "the choice is the answer for the instance with these conditions added"
    )


class TotalModel(Strict):
    """The total cost of a set of choices."""

    cost: NonNegative
    lower_bound: NonNegative


class ChoicesModel(Strict):
    """The cheapest recourses that differ, each proven given those before it."""

    format: Literal["milp-recourse/choices-1"]
    differ: Literal["features", "distance", "effect"]
    apart: NonNegative = Field(description="by how many features, or scales, any two differ at least")
    scale: dict[str, NonNegative] = Field(
        description="the change of each feature that counts as 1, for distance and effect; else empty"
    )
    choices: list[ChoiceModel]
    exhausted: bool = Field(
        description="true if proven that no further recourse differs from those listed (see differ, apart); "
        "for features, no further set of features whose own optimum acts on all of them"
    )
    lower_bound: NonNegative | None = Field(
        description="what differs from all listed ones costs no less; null where exhausted"
    )
    message: str | None
    total: TotalModel | None = Field(description="given if the set of least total cost was asked for")


class WithstandsModel(Strict):
    """What an action must withstand."""

    missed: dict[str, NonNegative] = Field(
        description="by feature, how far its value may be from the value that an action sets, in its unit"
    )
    threshold: Number | None = Field(description="the acceptance threshold may rise to this")
    noise: dict[str, tuple[Number, Number]] = Field(
        description="by feature: the least and largest change of its noise"
    )


class WorstModel(Strict):
    """The lowest output found among an action's outcomes, and the deviations that lead to it."""

    output: Number
    missed: dict[str, Number]
    noise: dict[str, Number]


class RobustModel(Strict):
    """The cheapest action that is accepted in every outcome."""

    format: Literal["milp-recourse/robust-1"]
    status: StatusName
    cost: NonNegative | None
    lower_bound: NonNegative | None
    proof: Literal["rigorous", "solver", "asked"] | None
    action: dict[str, Shown] | None
    counterfactual: dict[str, Shown | None] | None
    withstands: WithstandsModel
    worst: WorstModel | None
    cuts: int = Field(description="number of scenarios, or refused boxes, on which the bound rests")
    rounds: int = Field(description="number of problems solved")
    certificate: str | None = Field(default=None, description="path of the proof that was written")
    message: str | None


class EndsModel(Strict):
    """The lowest and the highest value of a lever."""

    low: Shown
    high: Shown


class LabelsModel(Strict):
    """The labels of a categorical lever."""

    labels: list[str]


class HeldModel(Strict):
    """What holds an end of a box, or keeps a label out."""

    by: Literal["refused", "bounds", "range", "domain", "monotone"] | None = Field(
        description="a refused point, or the limit that is reached; null where the search stopped before"
    )
    refused: dict[str, Shown] | None = Field(
        default=None, description="such a point, inside the box but for this end or label"
    )


class RegionsModel(Strict):
    """A box around an action in which everything is accepted."""

    format: Literal["milp-recourse/regions-1"]
    proven: bool
    action: dict[str, Shown]
    box: dict[str, EndsModel | LabelsModel]
    held: dict[str, dict[str, HeldModel]] = Field(
        description="by lever: what holds ``low`` and ``high``, or keeps each further label out"
    )
    resolution: tuple[Number, Number] = Field(
        description="how far a continuous end may be from a refused point: so many times its distance from "
        "the action, and so many times what the lever may be set to"
    )
    certificate: str | None = Field(default=None, description="path of the proof that was written")
    message: str | None
