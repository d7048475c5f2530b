"""Pydantic models of an interview's file and of a proven regret."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from milp_recourse.formats.validate import NonNegative, Number, Strict

INTERVIEW_FORMAT = "milp-recourse/interview-1"
REGRET_FORMAT = "milp-recourse/regret-1"

Shown = dict[str, int | float | str]


class AnswerModel(Strict):
    """A question as it was shown, and the answer."""

    kind: Literal["pair", "one", "lever", "levers"]
    left: Shown | None = Field(default=None, description="the recourse shown, or shown first")
    right: Shown | None = None
    levers: list[str] | None = Field(default=None, description="where the question is about features")
    final: Literal[True] | None = Field(default=None, description="whether yes ends the interview")
    answer: str


class OptionsModel(Strict):
    """The arguments of :class:`milp_recourse.preferences.Interview`, beside problem, method, budget, seed."""

    strategy: str = "regret"
    noise: NonNegative = 0.0
    same_within: NonNegative = 0.1
    least_weight: Number = 0.05
    cautious: bool = False
    profile: str = "linear"
    base: str = "growing-spheres"
    rounds: int | None = None
    backend: str | None = None
    time_limit: Number | None = None


class InterviewModel(Strict):
    """An interview: the same answers give the same state."""

    format: Literal["milp-recourse/interview-1"]
    problem: Any = Field(description="an instance-1 document, as it was before the first question")
    method: str
    budget: int
    seed: int = 0
    options: OptionsModel = OptionsModel()
    answers: list[AnswerModel]


class HalfSpaceModel(Strict):
    """What an answer says: left costs at most (1 + more) times right, plus a constant times the mean
    weight."""

    left: Shown
    right: Shown
    more: NonNegative = 0.0
    plus: NonNegative = 0.0


class OrderModel(Strict):
    """What a ranking or a rating says: one lever weighs at most what another does."""

    easier: str
    harder: str


class BoundModel(Strict):
    """A certified optimum: a certificate-1 document of the instance with these weights."""

    weights: dict[str, Annotated[float, Field(gt=0)]]
    certificate: Any


class RegretModel(Strict):
    """That no action is cheaper than an action by more than a share, under all weights that answers allow."""

    format: Literal["milp-recourse/regret-1"]
    action: Shown
    cost: NonNegative = Field(description="of the action under the instance's own weights")
    most: NonNegative = Field(description="the action costs at most 1 + most times the least cost")
    least_weight: Number = Field(description="every lever weighs at least this share of the mean weight")
    levers: list[str]
    answers: list[HalfSpaceModel | OrderModel]
    cuts: list[int] = Field(description="positions of the answers that the cone is cut by, in this order")
    bounds: list[BoundModel]
