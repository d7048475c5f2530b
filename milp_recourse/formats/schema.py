"""Pydantic models that mirror the instance and population formats, key by key.

They check keys, types and finite numbers. Rules that span several fields (shapes of weights, known labels,
scales for all actionable features) are checked by the builders in the files ``*_json.py``. The JSON Schema
files in ``schemas/`` are generated from these models.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag

from milp_recourse.formats.schema_conditions import ConditionModel
from milp_recourse.formats.schema_scm import Layer, ScmModel
from milp_recourse.formats.validate import Interval, NonNegative, Number, Positive, Strict, Value, Word
from milp_recourse.problem.cost import KINDS, CostKind
from milp_recourse.problem.derived_networks import Bend
from milp_recourse.problem.measures import Distance, Measure, Relative

INSTANCE_FORMAT = "milp-recourse/instance-1"
POPULATION_FORMAT = "milp-recourse/population-1"


class StepModel(Strict):
    """Steps that are counted from a value other than 0."""

    step: Positive
    origin: Number = Field(default=0.0, alias="from")


def _step_form(value: Any) -> str:
    return "from" if isinstance(value, dict) else "number"


class FeatureModel(Strict):
    """One feature. Ordinal and categorical kinds take ``categories``, and ``bounds`` by index."""

    name: Word
    kind: Literal["continuous", "integer", "binary", "ordinal", "categorical"]
    actionable: bool
    bounds: Interval | None = Field(
        default=None,
        description="lowest and highest value an action may set; needed where actionable, but for labels",
    )
    categories: Annotated[list[Word], Field(min_length=1)] | None = None
    domain: Interval | None = Field(
        default=None, description="limits of the counterfactual's value; for ordinal features by index"
    )
    monotone: Literal["increase", "decrease"] | None = None
    encoding: Literal["code", "one-hot", "table"] | None = Field(
        default=None, description="how labels enter the model; ordinal: code, categorical: one-hot"
    )
    table: Annotated[list[Annotated[list[Number], Field(min_length=1)]], Field(min_length=1)] | None = Field(
        default=None,
        description="with encoding table: per label, the numbers it puts into the model's columns",
    )
    step: (
        Annotated[
            Annotated[Positive, Tag("number")] | Annotated[StepModel, Tag("from")], Discriminator(_step_form)
        ]
        | None
    ) = Field(
        default=None,
        description="numeric features: an action sets the double nearest to from + k step, in decimals, for "
        "some whole k; from is 0 if it is not given",
    )
    values: Annotated[list[Value], Field(min_length=1)] | None = Field(
        default=None, description="an action sets one of these numbers, or labels"
    )


class HiddenLayer(Layer):
    """A layer of the classifier."""

    functions: list[Bend] | None = Field(
        None, description="of each output, between this layer and the next; default ReLUs"
    )


class NetworkModel(Strict):
    """A fully connected network on the features' columns; the last layer is one number, the logit."""

    kind: Literal["relu-network"]
    dtype: Literal["float32", "float64"]
    layers: Annotated[list[HiddenLayer], Field(min_length=1)]


class TreeModel(Strict):
    """scikit-learn's node arrays, all of one length; a node is a leaf where left is -1."""

    feature: Annotated[list[int], Field(min_length=1)]
    threshold: list[Number]
    left: list[int]
    right: list[int]
    value: list[Number] = Field(description="probability of class 1 at the node; for sums any number")
    missing_left: list[bool] | None = Field(
        default=None,
        description="whether a missing value goes left at the node; without it, none may be missing",
    )


class EnsembleModel(Strict):
    """Trees whose mean value (or sum) is the score; go left when x, rounded to dtype, is <= threshold."""

    kind: Literal["tree-ensemble"]
    dtype: Literal["float32", "float64"]
    aggregate: Literal["mean", "sum"] = Field(default="mean", description="sum: boosted trees")
    base: Number = Field(default=0.0, description="the number that a sum starts from")
    sum_dtype: Literal["float32", "float64"] = Field(default="float64", description="precision of a sum")
    parts: list[Annotated[int, Field(ge=1)]] | None = Field(
        default=None, min_length=1, description="number of trees of each sum, in order, if there are several"
    )
    combine: Literal["smallest", "largest"] | None = Field(
        default=None,
        description="which of several sums is the score: the smallest (accepted where every sum passes) or "
        "the largest (where one does)",
    )
    trees: Annotated[list[TreeModel], Field(min_length=1)]


class FileModel(Strict):
    """A classifier in a file of its own, identified by its hash."""

    path: Annotated[str, StringConstraints(min_length=1)] = Field(description="relative to this file")
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-fA-F]{64}$")] = Field(
        description="SHA-256 of the file's bytes"
    )


def _classifier_form(value: Any) -> str | None:
    """The tag of a classifier's form. What is no object is taken for a network, so that the error says that
    an object is wanted; a kind that is no text becomes ``?``, an unknown tag."""
    if not isinstance(value, dict):
        return "relu-network"
    if "kind" not in value and ("path" in value or "sha256" in value):
        return "file"
    kind = value.get("kind")
    return kind if isinstance(kind, str) else None if kind is None else "?"


InlineClassifier = Annotated[NetworkModel | EnsembleModel, Field(discriminator="kind")]
ClassifierModel = Annotated[
    Annotated[NetworkModel, Tag("relu-network")]
    | Annotated[EnsembleModel, Tag("tree-ensemble")]
    | Annotated[FileModel, Tag("file")],
    Discriminator(_classifier_form),
]


class AcceptModel(Strict):
    """Networks: logit >= at_least + margin. Trees: score > above, or score >= at_least."""

    at_least: Number | None = Field(default=None, description="networks: default 0; trees: instead of above")
    margin: NonNegative | None = Field(default=None, description="networks; default 0")
    above: Number | None = Field(default=None, description="trees; default 0.5, for sums 0")


class PreferencesModel(Strict):
    """The applicant's mask, weights, ranges, conditions and density offset."""

    actionable: list[str]
    weights: dict[str, Positive] = Field(default_factory=dict)
    ranges: dict[str, Interval] = Field(default_factory=dict, description="for ordinal features by index")
    conditions: list[ConditionModel] = Field(
        default_factory=list, description="conditions of this applicant; all must hold"
    )
    density_offset: Number | None = Field(
        default=None, description="offset of this applicant, instead of plausibility.offset"
    )


class TwoScales(Strict):
    """One scale for increases, another for decreases."""

    increase: Positive
    decrease: Positive


def _scale_form(value: Any) -> str:
    return "two" if isinstance(value, dict) else "factual" if isinstance(value, str) else "number"


ScaleOf = Annotated[
    Annotated[Positive, Tag("number")]
    | Annotated[TwoScales, Tag("two")]
    | Annotated[Literal["factual"], Tag("factual")],
    Discriminator(_scale_form),
    Field(description="s > 0; two, for increases and for decreases; or factual: the applicant's own |x|"),
]
Scale = dict[str, ScaleOf]


def measure(stated: float | TwoScales | str) -> Measure:
    """What a form of :data:`ScaleOf` states."""
    if isinstance(stated, TwoScales):
        return Distance(stated.increase, stated.decrease)
    return Relative() if isinstance(stated, str) else Distance(stated, stated)


def _kinds(choose: Callable[[CostKind], bool]) -> Any:
    """A type of the names of those costs that ``choose`` is true of."""
    return Literal[tuple(name for name, kind in KINDS.items() if choose(kind))]


if TYPE_CHECKING:
    ScaledKind = str
    CountKind = str
    PercentileKind = str
else:
    ScaledKind = _kinds(lambda kind: kind.axis == "value" and set(kind.parts) != {"l0"})
    CountKind = _kinds(lambda kind: set(kind.parts) == {"l0"})
    PercentileKind = _kinds(lambda kind: kind.axis != "value")


class ScaledModel(Strict):
    """A cost of changes in units of the features' scales."""

    kind: ScaledKind
    scale: Scale


class CountModel(Strict):
    """The cost l0: the sum of w over the features acted on."""

    kind: CountKind
    scale: Scale = Field(default_factory=dict)


class MixtureModel(Strict):
    """A non-negative combination of the costs l2-squared, l1, linf and l0; some coefficient is positive."""

    kind: Literal["mixture"]
    l2_squared: NonNegative = Field(default=0.0, alias="l2-squared")
    l1: NonNegative = 0.0
    linf: NonNegative = 0.0
    l0: NonNegative = 0.0
    scale: Scale = Field(default_factory=dict)


Knot = Annotated[
    list[Number],
    Field(
        min_length=2, max_length=2, description="value, and its probability p (log-percentile: -log(1 - p))"
    ),
]


class PercentileModel(Strict):
    """Sum (or maximum) of w |Q(a) - Q(x)|, Q being piecewise linear through the knots."""

    kind: PercentileKind
    quantiles: dict[str, Annotated[list[Knot], Field(min_length=2)]]


CostModel = Annotated[ScaledModel | CountModel | MixtureModel | PercentileModel, Field(discriminator="kind")]


class PlausibilityModel(Strict):
    """log p(counterfactual) >= log p(factual) + offset under the SCM."""

    kind: Literal["scm-density"]
    at_least: Literal["factual"]
    offset: Number = Field(default=0.0, description="in nats; below 0, the density may fall so far")


class ReferenceModel(Strict):
    """The known answer, for regression tests."""

    status: Literal["optimal", "infeasible", "limit", "found", "not-found"]
    cost: Number | None = None
    lower_bound: Number | None = None


class Problem(Strict):
    """What an instance and a population share."""

    name: str | None = None
    description: str | None = None
    features: Annotated[list[FeatureModel], Field(min_length=1)]
    scm: ScmModel
    classifier: ClassifierModel
    accept: AcceptModel = AcceptModel()
    cost: CostModel
    plausibility: PlausibilityModel | None = None
    conditions: list[ConditionModel] = Field(
        default_factory=list, description="conditions for every applicant; all must hold"
    )


class InstanceModel(Problem):
    """One applicant's recourse problem."""

    format: Literal["milp-recourse/instance-1"]
    factual: dict[str, Value | None] = Field(
        description="value per feature; null if it is missing, which trees with missing_left allow"
    )
    preferences: PreferencesModel
    reference: ReferenceModel | None = None


class CsvModel(Strict):
    """A CSV table with a column per feature, and perhaps a column id; one applicant per row."""

    csv: Annotated[str, StringConstraints(min_length=1)] = Field(description="relative to this file")


def _list_or_object(value: Any) -> str:
    return "list" if isinstance(value, list) else "object"


class PopulationModel(Problem):
    """Many applicants, one model."""

    format: Literal["milp-recourse/population-1"]
    factuals: Annotated[
        Annotated[list[dict[str, Value | None]], Field(min_length=1), Tag("list")]
        | Annotated[CsvModel, Tag("object")],
        Discriminator(_list_or_object),
    ]
    preferences: Annotated[
        Annotated[list[PreferencesModel], Tag("list")] | Annotated[PreferencesModel, Tag("object")],
        Discriminator(_list_or_object),
    ]
    ids: list[str] | None = Field(
        None, description="the applicants' own identifiers, beside a list of factuals"
    )
    margins: list[NonNegative | None] | None = Field(
        None, description="networks: each applicant's margin; null, or no list: accept.margin"
    )
