"""Pydantic models of conditions: one object per condition, whose kind is seen from its keys."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag
from typing_extensions import TypeAliasType

from milp_recourse.formats.validate import Number, Strict, Value

_FORMS = ("at_most_actions", "feature", "sum", "acted", "if", "any", "all", "not")

ViewName = Literal["factual", "counterfactual", "change", "relative-change"]


def _form(value: Any) -> str | None:
    if not isinstance(value, dict):
        return None
    form = next((form for form in _FORMS if form in value), None)
    return None if form is None else f"{form}: ..."  # unlike any key, so that error paths leave it out


ConditionModel = TypeAliasType(
    "ConditionModel",
    Annotated[
        Annotated["AtMostActionsModel", Tag("at_most_actions: ...")]
        | Annotated["FeatureConditionModel", Tag("feature: ...")]
        | Annotated["SumConditionModel", Tag("sum: ...")]
        | Annotated["ActedModel", Tag("acted: ...")]
        | Annotated["IfModel", Tag("if: ...")]
        | Annotated["AnyModel", Tag("any: ...")]
        | Annotated["AllModel", Tag("all: ...")]
        | Annotated["NotModel", Tag("not: ...")],
        Discriminator(
            _form,
            custom_error_type="unknown_form",
            custom_error_message="an object with one of the keys " + ", ".join(_FORMS),
        ),
    ],
)
"""A condition: a demand of a person or a policy, in addition to acceptance."""


class AtMostActionsModel(Strict):
    """At most at_most_actions features are acted on, held ones included."""

    at_most_actions: Annotated[int, Field(ge=0)]


class FeatureConditionModel(Strict):
    """One feature's value: at least, at most, or one of some labels or numbers."""

    feature: str
    of: ViewName = Field(
        description="before the action, after it (effects included), the difference, or that over |before|"
    )
    at_least: Value | None = Field(default=None, description="ordinal: a label or its index")
    at_most: Value | None = None
    in_: Annotated[list[Value], Field(min_length=1)] | None = Field(
        default=None, alias="in", description="labels or their indices; of numeric features numbers"
    )


class SumConditionModel(Strict):
    """at_least <= sum of coefficient * value <= at_most, over numeric and ordinal features and products of
    two."""

    sum: dict[str, Number]
    products: list[Annotated[tuple[Number, str, str], Field(strict=False)]] | None = Field(
        default=None, description="coefficient and two features, whose product's value it multiplies"
    )
    of: ViewName
    at_least: Number | None = None
    at_most: Number | None = None


class ActedModel(Strict):
    """The feature is acted on; holding it counts as acting on it."""

    acted: str


class IfModel(Strict):
    """The condition ``if`` does not hold, or the condition ``then`` does."""

    if_: ConditionModel = Field(alias="if")
    then: ConditionModel


class AnyModel(Strict):
    """At least one condition of the list holds."""

    any: list[ConditionModel]


class AllModel(Strict):
    """Every condition of the list holds."""

    all: list[ConditionModel]


class NotModel(Strict):
    """The condition does not hold; docs/formats.md defines that at a boundary."""

    not_: ConditionModel = Field(alias="not")
