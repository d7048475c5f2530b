"""Conditions: how files state them, from JSON and back. One object per condition, whose kind is seen from its
keys. Inside the package labels are indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal
from typing import Any as AnyValue

from pydantic import Field, ValidationInfo, ValidatorFunctionWrapHandler, WrapValidator
from typing_extensions import TypeAliasType

from milp_recourse.errors import BadInput, dotted, got_text
from milp_recourse.formats.stated import (
    Forms,
    Known,
    Labels,
    Number,
    Stated,
    Strict,
    Value,
    as_json,
    refused,
    states,
    then,
)
from milp_recourse.problem.conditions import (
    Acted,
    All,
    Any,
    AtMostActions,
    Condition,
    Factor,
    IfThen,
    LabelIn,
    Not,
    Sum,
    one_of,
)
from milp_recourse.problem.features import Feature

DEEPEST = 40
"""The largest number of levels of nesting that is accepted."""

ViewName = Literal["factual", "counterfactual", "change", "relative-change"]


def _levels(value: AnyValue, inside: ValidatorFunctionWrapHandler, info: ValidationInfo) -> AnyValue:
    """Refuses a condition that lies too deep within others."""
    known = info.context or Known()
    if known.levels > DEEPEST:
        raise refused(BadInput("", f"more than {DEEPEST} levels of nesting", f"{DEEPEST} levels or fewer"))
    known.levels += 1
    try:
        return inside(value)
    finally:
        known.levels -= 1


_FORMS: dict[str, AnyValue] = {}  # filled below, as conditions hold conditions

ConditionModel = TypeAliasType(
    "ConditionModel",
    Annotated[AnyValue, Forms(_FORMS, "an object with one of the keys "), WrapValidator(_levels)],
)
"""A condition: a demand of a person or a policy, in addition to acceptance."""

StatedCondition = Annotated[Condition, Stated(ConditionModel)]


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

    def build(self, known: Known) -> Condition:
        """The condition, or two of which both hold.

        Raises
        ------
        BadInput
            The feature or a label is unknown, a feature without an order is compared, ``in`` is asked of a
            change, or bounds are missing or cross.
        """
        feature = known.feature(self.feature, "feature")
        parts = [*self._bounds(feature), *self._listed(feature)]
        if not parts:
            raise BadInput("", "no bound", "at_least, at_most or in")
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _bounds(self, feature: Feature) -> list[Condition]:
        ends = {"at_least": self.at_least, "at_most": self.at_most}
        given = {key: end for key, end in ends.items() if end is not None}
        if not given:
            return []
        if feature.kind == "categorical":
            key, end = next(iter(given.items()))
            raise BadInput(
                key, got_text(end), "nothing: labels of a categorical feature have no order; use in"
            )
        by_label = self.of in ("factual", "counterfactual")
        numbers = {key: _end(feature, end, by_label, key) for key, end in given.items()}
        low, high = numbers.get("at_least"), numbers.get("at_most")
        _check_ends(low, high)
        return [Sum(((feature.name, 1.0),), self.of, low, high)]

    def _listed(self, feature: Feature) -> list[Condition]:
        if self.in_ is None:
            return []
        if self.of not in ("factual", "counterfactual"):
            raise BadInput("of", self.of, "factual or counterfactual, since in names values")
        if feature.categories is None:
            numbers = [_end(feature, value, False, f"in.{k}") for k, value in enumerate(self.in_)]
            return [one_of(feature.name, self.of, numbers)]
        found = {_index(feature, label, f"in.{k}") for k, label in enumerate(self.in_)}
        return [LabelIn(feature.name, self.of, tuple(sorted(found)))]


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

    def build(self, known: Known) -> Condition:
        """The condition.

        Raises
        ------
        BadInput
            A feature is unknown or has no numbers, or bounds are missing or cross.
        """
        products = [((min(names), max(names)), c) for c, *names in self.products or ()]
        places = [(name, dotted("sum", name)) for name in self.sum]
        places += [(name, f"products.{k}") for k, (names, _) in enumerate(products) for name in names]
        for name, where in places:
            if known.feature(name, where).kind == "categorical":
                raise BadInput(
                    where, "a categorical feature", "numeric and ordinal features: labels have no numbers"
                )
        if not places:
            raise BadInput("sum", "{}", "one feature or more, or products")
        if self.at_least is None and self.at_most is None:
            raise BadInput("", "no bound", "at_least, at_most or both")
        _check_ends(self.at_least, self.at_most)
        return Sum((*self.sum.items(), *products), self.of, self.at_least, self.at_most)


_INSIDE = {"Condition": StatedCondition}
_FEATURE = Annotated[str, then(lambda name, known: known.feature(name, "").name)]
_FORMS |= {
    "at_most_actions": states(AtMostActions, count=Field(alias="at_most_actions")),
    "feature": FeatureConditionModel,
    "sum": SumConditionModel,
    "acted": states(Acted, feature=(_FEATURE, Field(alias="acted"))),
    "if": states(IfThen, _INSIDE, condition=Field(alias="if")),
    "any": states(Any, _INSIDE, parts=Field(alias="any")),
    "all": states(All, _INSIDE, parts=Field(alias="all")),
    "not": states(Not, _INSIDE, part=Field(alias="not")),
}


def _end(feature: Feature, end: float | str, by_label: bool, path: str) -> float:
    """A bound as a number; an ordinal label becomes its index."""
    if not isinstance(end, str):
        return float(end)
    if not by_label or feature.categories is None:
        raise BadInput(path, repr(end), "a number")
    return float(_index(feature, end, path))


def _index(feature: Feature, label: float | str, path: str) -> int:
    labels = feature.categories or ()
    if isinstance(label, str):
        if label in labels:
            return labels.index(label)
    elif float(label).is_integer() and 0 <= label < len(labels):
        return int(label)
    raise BadInput(
        path, got_text(label), f"one of {', '.join(labels)}, or an index from 0 to {len(labels) - 1}"
    )


def _check_ends(low: float | None, high: float | None) -> None:
    if low is not None and high is not None and low > high:
        raise BadInput("", f"at_least {low!r} above at_most {high!r}", "at_least <= at_most")


def condition_to_dict(condition: Condition, features: Sequence[Feature] | None = None) -> dict[str, AnyValue]:
    """A condition as JSON.

    Parameters
    ----------
    features
        All of the problem's. None: the canonical form of certificates (section 11 of the document) is
        written, in which labels are indices, bounds of one feature are a sum, and open ends are null.
    """
    labels = None if features is None else {f.name: f.categories or () for f in features}
    written: dict[str, AnyValue] = as_json(condition, labels)
    return written


@as_json.register(LabelIn)
def _(condition: LabelIn, labels: Labels = None) -> dict[str, AnyValue]:
    feature, own = condition.feature, condition.labels
    shown = own if labels is None else [labels[feature][k] for k in own]
    return {"feature": feature, "of": condition.of, "in": list(shown)}


@as_json.register(Sum)
def _(condition: Sum, labels: Labels = None) -> dict[str, AnyValue]:
    terms = condition.terms
    single = len(terms) == 1 and terms[0][1] == 1 and isinstance(terms[0][0], str)
    head = {"feature": terms[0][0]} if single and labels is not None else _added(terms)
    ends = {"at_least": condition.at_least, "at_most": condition.at_most}.items()
    return head | {"of": condition.of} | {k: v for k, v in ends if v is not None or labels is None}


def _added(terms: Sequence[tuple[Factor, float]]) -> dict[str, AnyValue]:
    """The keys that say what is added up."""
    products = [[c, *of] for of, c in terms if not isinstance(of, str)]
    found: dict[str, AnyValue] = {"sum": {of: c for of, c in terms if isinstance(of, str)}}
    return found | ({"products": products} if products else {})
