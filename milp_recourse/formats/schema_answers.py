"""Pydantic models of answers: results, why, choices, robust, regions, offers, interviews, regret. What is
read of them is an action."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from milp_recourse.formats.schema_conditions import ConditionModel
from milp_recourse.formats.stated import NonNegative, Number, Positive, Strict, Word

RESULT_FORMAT = "milp-recourse/result-1"
RESULTS_FORMAT = "milp-recourse/results-1"

StatusName = Literal["optimal", "infeasible", "limit", "found", "not-found"]
ProofName = Literal["rigorous", "solver", "asked"]
"""What a bound rests on."""

ShownRecourse = dict[str, int | float | str]


class ResultModel(Strict):
    """The result for one applicant as files hold it: the format's definition. Reports make a view of it."""

    format: Literal["milp-recourse/result-1"]
    status: StatusName
    cost: NonNegative | None
    lower_bound: NonNegative | None
    gap: NonNegative | None = Field(description="cost - lower_bound")
    proof: ProofName | None
    action: ShownRecourse | None = Field(description="exactly the features acted on")
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


ShownValue = Number | str


class ChoiceModel(Strict):
    """One of the recourses."""

    status: StatusName
    cost: NonNegative
    lower_bound: NonNegative | None
    proof: ProofName | None
    action: dict[str, ShownValue]
    counterfactual: dict[str, ShownValue | None]
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
    proof: ProofName | None
    action: dict[str, ShownValue] | None
    counterfactual: dict[str, ShownValue | None] | None
    withstands: WithstandsModel
    worst: WorstModel | None
    cuts: int = Field(description="number of scenarios, or refused boxes, on which the bound rests")
    rounds: int = Field(description="number of problems solved")
    certificate: str | None = Field(default=None, description="path of the proof that was written")
    message: str | None


class EndsModel(Strict):
    """The lowest and the highest value of a lever."""

    low: ShownValue
    high: ShownValue


class LabelsModel(Strict):
    """The labels of a categorical lever."""

    labels: list[str]


class HeldModel(Strict):
    """What holds an end of a box, or keeps a label out."""

    by: Literal["refused", "bounds", "range", "domain", "monotone"] | None = Field(
        description="a refused point, or the limit that is reached; null where the search stopped before"
    )
    refused: dict[str, ShownValue] | None = Field(
        default=None, description="such a point, inside the box but for this end or label"
    )


class RegionsModel(Strict):
    """A box around an action in which everything is accepted."""

    format: Literal["milp-recourse/regions-1"]
    proven: bool
    action: dict[str, ShownValue]
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


OFFERS_FORMAT = "milp-recourse/offers-1"


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
    action: dict[str, ShownValue] | None


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


class AnswerModel(Strict):
    """A question as it was shown, and the answer."""

    kind: Literal["pair", "one", "lever", "levers"]
    left: ShownRecourse | None = Field(default=None, description="the recourse shown, or shown first")
    right: ShownRecourse | None = None
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

    left: ShownRecourse
    right: ShownRecourse
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
    action: ShownRecourse
    cost: NonNegative = Field(description="of the action under the instance's own weights")
    most: NonNegative = Field(description="the action costs at most 1 + most times the least cost")
    least_weight: Number = Field(description="every lever weighs at least this share of the mean weight")
    levers: list[str]
    answers: list[HalfSpaceModel | OrderModel]
    cuts: list[int] = Field(description="positions of the answers that the cone is cut by, in this order")
    bounds: list[BoundModel]
