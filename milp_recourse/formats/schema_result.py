"""Pydantic models of one result, and of the summary of many."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from milp_recourse.formats.validate import NonNegative, Number, Strict

RESULT_FORMAT = "milp-recourse/result-1"
RESULTS_FORMAT = "milp-recourse/results-1"

StatusName = Literal["optimal", "infeasible", "limit", "found", "not-found"]
Shown = dict[str, int | float | str]


class ResultModel(Strict):
    """The result for one applicant."""

    format: Literal["milp-recourse/result-1"]
    status: StatusName
    cost: NonNegative | None
    lower_bound: NonNegative | None
    gap: NonNegative | None = Field(description="cost - lower_bound")
    proof: Literal["rigorous", "solver", "asked"] | None
    action: Shown | None = Field(description="exactly the features acted on")
    counterfactual: dict[str, int | float | str | None] | None = Field(
        description="value of every feature after the action; null if it is missing and stays missing"
    )
    logit: Number | None = Field(default=None, description="for networks")
    score: Number | None = Field(default=None, description="for trees")
    accepted_exact: bool
    accepted_deployed: bool
    backend: str
    seconds: NonNegative
    nodes: int | None = None
    certificate: str | None = None
    message: str | None = None


class NamedResultModel(Strict):
    """The result for one of several instances."""

    name: str
    instance_sha256: str | None = Field(
        default=None, description="of the instance, as in certificates; earlier answers are told apart by it"
    )
    result: ResultModel | None = Field(description="null if the instance was not solved")
    refused: str | None = Field(default=None, description="why it was not solved")
    reference: str | None = Field(default=None, description="comparison with the known answer")


class ResultsModel(Strict):
    """Summary of a run over a population or several instances."""

    format: Literal["milp-recourse/results-1"]
    applicants: int = Field(
        description="number of applicants with a result or, in a population, with the status bad-input"
    )
    counts: dict[StatusName | Literal["bad-input"], int] = Field(
        description="number of applicants per status"
    )
    not_solved: int = Field(default=0, description="number of instances that the back end cannot solve")
    cost_mean: NonNegative | None = Field(description="over the applicants with an action")
    cost_median: NonNegative | None
    seconds: NonNegative | None = Field(default=None, description="sum over applicants; none in an audit")
    backend: str | None = None
    time_limit: Number | None = None
    index: int | None = Field(default=None, description="index of the applicant, if only one was solved")
    certificates: bool | None = Field(default=None, description="whether certificates were asked for")
    results: list[NamedResultModel] | None = Field(default=None, description="not given for populations")
