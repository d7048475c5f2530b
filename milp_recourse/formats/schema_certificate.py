"""Pydantic models of a certificate; ``docs/certificate_spec_v2.md`` defines its meaning."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from milp_recourse.formats.stated import NonNegative, Number, Strict, Value, Word

Index = Annotated[int, Field(ge=0)]
Digest = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9a-f]{64}$"),
    Field(description="SHA-256 of the instance's canonical content"),
]
Slopes = Annotated[str, StringConstraints(pattern=r"^[01]*$")]


class TermModel(Strict):
    """A term of a leaf: multipliers of rows that no feasible action makes negative; absent means zero."""

    s: Slopes = Field(default="", description="slopes of this term; without them those of the leaf")
    g: NonNegative = Field(default=0.0, description="multiplier of the logit row")
    n: list[NonNegative] = Field(
        default_factory=list,
        description="multipliers of the sign rows, in the order of the splits from the root",
    )
    r: dict[str, Annotated[list[NonNegative], Field(min_length=2, max_length=2)]] = Field(
        default_factory=dict, description="multipliers of a feature's domain rows, low and high"
    )
    b: Annotated[list[Number], Field(min_length=1)] = Field(
        default_factory=lambda: [0.0],
        description="multiplier of the ball, then the points at which its squares have their tangents",
    )
    q: list[NonNegative] = Field(
        default_factory=list,
        description="multipliers of the rows of conditions that hold on the node, in their order",
    )


Split = tuple[Literal["a", "s"], Index, Number]
SignSplit = tuple[Literal["n"], Index, Index]
CellSplit = tuple[Literal["c"], Word, Number]
ConditionSplit = tuple[Literal["o"]]
ClosedLeaf = tuple[Literal["e"]]
PriceLeaf = tuple[Literal["p"], Index]
TakingOut = tuple[Literal["t"], Index]
Merging = tuple[Literal["m"]]
BoxLeaf = tuple[Literal["x"], dict[Word, tuple[Number, Number]]]
Leaf = tuple[Literal["d"], Slopes, list[TermModel]]
LeafWithShares = tuple[Literal["d"], Slopes, list[TermModel], list[NonNegative]]
LeafWithThetas = tuple[Literal["d"], Slopes, list[TermModel], list[NonNegative], list[Number]]
Node = (
    Split
    | SignSplit
    | CellSplit
    | ConditionSplit
    | ClosedLeaf
    | PriceLeaf
    | TakingOut
    | Merging
    | BoxLeaf
    | Leaf
    | LeafWithShares
    | LeafWithThetas
)


class PricesModel(Strict):
    """A table of prices: whole numbers of units per tree, action and class of cells.

    An empty list means zeros; a number n in place of lists means n empty lists.
    """

    unit: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    mu: NonNegative = Field(description="multiplier of the score")
    trees: list[Index | list[Index | list[int]]]
    weights: list[NonNegative] = Field(
        default_factory=list, description="weights of the sums, if there are several that all count"
    )
    shares: list[NonNegative] = Field(
        default_factory=list, description="each action's share of the cost's maximum; without it zeros"
    )
    steps: bool = Field(False, description="whether lists are [class, price from it on, ...], 0 before")
    runs: Annotated[str, Field(pattern=r"^(-?\d+( -?\d+)*)?$")] | list[int] | None = Field(
        None, description="all classes' prices in a row, in text a space apart; -n: n times the one before"
    )


class CaseModel(Strict):
    """The proof about one of several sums, any of which may be accepted."""

    tree: Annotated[list[Node], Field(min_length=1)]
    prices: list[PricesModel] = Field(default_factory=list, description="tables that leaves name by number")


class ConfigurationModel(Strict):
    """One set of features acted on, and its tree in preorder, or a case per sum."""

    acted: Annotated[list[Word], Field(min_length=1)]
    tree: Annotated[list[Node], Field(min_length=1)] | None = None
    prices: list[PricesModel] = Field(default_factory=list, description="tables that leaves name by number")
    cases: list[CaseModel] | None = None
    scenarios: list[Index] = Field(
        default_factory=list, description="the scenarios in which the network must accept, by number"
    )


class ScenarioModel(Strict):
    """A way in which an action can turn out."""

    missed: dict[Word, Number] = Field(description="by feature, what is added to its value if it is acted on")
    noise: dict[Word, Number] = Field(description="by feature, what is added to its noise if others move it")


class OutcomesModel(Strict):
    """The proof that no outcome of the action is refused: a tree in preorder, or a case per sum."""

    tree: Annotated[list[Node], Field(min_length=1)] | None = None
    prices: list[PricesModel] = Field(default_factory=list, description="tables that leaves name by number")
    cases: list[CaseModel] | None = None


class CertainModel(Strict):
    """What a certain action withstands, with the proof about its outcomes."""

    missed: dict[Word, NonNegative] = Field(
        description="by feature, how far its value may be from the target"
    )
    threshold: Number | None = Field(description="the acceptance threshold may rise to this")
    noise: dict[Word, tuple[Number, Number]] = Field(
        description="by feature: the least and largest change of its noise"
    )
    scenarios: list[ScenarioModel]
    outcomes: OutcomesModel | None = Field(
        description="null where the action has one outcome, or there is none"
    )


class RegionCertificateModel(OutcomesModel):
    """A box around an action in which everything is accepted, with the proof that nothing is refused."""

    format: Literal["milp-recourse/region-certificate-1"]
    instance_sha256: Digest
    index: Index = Field(default=0, description="only for a population's: the applicant, from 0")
    action: dict[str, Value] = Field(description="exactly the features acted on")
    cost: NonNegative
    box: dict[str, list[Value]] = Field(
        description="by feature acted on the lowest and the highest value; the labels of a categorical one"
    )


class CertificateModel(Strict):
    """A claim about one applicant, with all that a checker needs besides the instance."""

    format: Literal["milp-recourse/certificate-1"]
    claim: Literal["optimal", "infeasible", "bounds"]
    instance_sha256: Digest
    index: Index = Field(default=0, description="only for a population's certificate: the applicant, from 0")
    action: dict[str, Value] | None = Field(description="exactly the features acted on")
    cost: NonNegative | None
    lower_bound: NonNegative | None
    conditions: list[Index] | None = Field(
        default=None, description="positions of the conditions that the bound rests on; absent: all"
    )
    configurations: list[ConfigurationModel]
    withstands: CertainModel | None = Field(
        default=None, description="only for a claim about actions that are accepted in every outcome"
    )
