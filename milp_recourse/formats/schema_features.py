"""Features, and one person's preferences about them: how files state them, from JSON and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from milp_recourse.errors import BadInput, dotted, got_text
from milp_recourse.formats.schema_conditions import StatedCondition, condition_to_dict
from milp_recourse.formats.stated import (
    Interval,
    Known,
    Number,
    Positive,
    Stated,
    Strict,
    Value,
    Word,
    as_json,
    document,
    frozen,
    states,
    then,
)
from milp_recourse.problem.features import MOST_VALUES, Encoding, Feature, Kind, Monotone, Steps, Values
from milp_recourse.problem.instance import Preferences

StepModel = states(Steps, origin=Field(0.0, alias="from"))


def _step_form(value: Any) -> str:
    return "from" if isinstance(value, dict) else "number"


class FeatureModel(Strict):
    """One feature. Ordinal and categorical kinds take ``categories``, and ``bounds`` by index."""

    name: Word
    kind: Kind
    actionable: bool
    bounds: Interval | None = Field(
        default=None,
        description="lowest and highest value an action may set; needed where actionable, but for labels",
    )
    categories: Annotated[list[Word], Field(min_length=1)] | None = None
    domain: Interval | None = Field(
        default=None, description="limits of the counterfactual's value; for ordinal features by index"
    )
    monotone: Monotone | None = None
    encoding: Encoding | None = Field(
        default=None, description="how labels enter the model; ordinal: code, categorical: one-hot"
    )
    table: Annotated[list[Annotated[list[Number], Field(min_length=1)]], Field(min_length=1)] | None = Field(
        default=None,
        description="with encoding table: per label, the numbers it puts into the model's columns",
    )
    step: (
        Annotated[
            Annotated[Steps, Stated(Positive, lambda step, _: Steps(step)), Tag("number")]
            | Annotated[Steps, Stated(StepModel), Tag("from")],
            Discriminator(_step_form),
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

    def build(self, _: Known) -> Feature:
        """The feature.

        Raises
        ------
        BadInput
            Fields do not fit each other.
        """
        if self.kind in ("ordinal", "categorical"):
            self._check_labels()
        else:
            self._check_numeric()
        given = {name: frozen(value) for name, value in vars(self).items() if name not in ("step", "values")}
        given["encoding"] = self.encoding or ("one-hot" if self.kind == "categorical" else "code")
        feature = Feature(**given)
        only = self._only(feature)
        return feature if only is None else replace(feature, only=only)

    def _only(self, feature: Feature) -> Steps | Values | None:
        if self.step is None:
            return None if self.values is None else values_of(feature, self.values, "values")
        if self.values is not None:
            raise BadInput("values", got_text(self.values), "nothing, as step says which values there are")
        return steps_of(feature, self.step.step, self.step.origin, "step")

    def _check_labels(self) -> None:
        if self.categories is None:
            raise BadInput("categories", "nothing", f"a list of labels for {self.kind}")
        last = len(self.categories) - 1
        if self.bounds is not None and not all(0 <= k <= last and float(k).is_integer() for k in self.bounds):
            allowed = f"indices of labels, whole numbers from 0 to {last}"
            raise BadInput("bounds", got_text(list(self.bounds)), allowed)
        check_once(self.categories, "categories.{}", "each label once")
        if self.kind == "categorical":
            for key, value in (("domain", self.domain), ("monotone", self.monotone)):
                if value is not None:
                    got = value if isinstance(value, str) else got_text(list(value))
                    raise BadInput(key, got, "nothing: labels have no order")
        self._check_table(len(self.categories))

    def _check_table(self, labels: int) -> None:
        """Check that there is a table exactly if the encoding is ``table``, with one row per label."""
        if self.table is None:
            if self.encoding == "table":
                raise BadInput("table", "nothing", f"one row of numbers per label, {labels}")
            return
        if self.encoding != "table":
            raise BadInput("table", got_text(self.table), "nothing, unless encoding is table")
        if len(self.table) != labels:
            raise BadInput("table", f"{len(self.table)} rows", f"{labels}, one per label")
        for k, row in enumerate(self.table):
            if len(row) != len(self.table[0]):
                raise BadInput(f"table.{k}", f"{len(row)} numbers", f"{len(self.table[0])}, as in row 0")

    def _check_numeric(self) -> None:
        if self.categories is not None:
            raise BadInput("categories", got_text(self.categories), f"nothing: {self.kind} is numeric")
        if self.encoding not in (None, "code"):
            raise BadInput("encoding", self.encoding, f"code: {self.kind} is one column")
        if self.table is not None:
            raise BadInput("table", got_text(self.table), f"nothing: {self.kind} has no labels")
        if self.actionable and self.bounds is None:
            raise BadInput("bounds", "nothing", "[lo, hi], needed because the feature is actionable")
        if self.kind == "binary":
            for key, ends in (("bounds", self.bounds), ("domain", self.domain)):
                if ends is not None and not (ends[0] >= 0 and ends[1] <= 1):
                    raise BadInput(key, list(ends), "an interval within 0 and 1 for a binary feature")


def check_once(names: Sequence[str], path: str, allowed: str) -> None:
    """Check that no name of a list stands in it twice."""
    seen = set[str]()
    for k, name in enumerate(names):
        if name in seen:
            raise BadInput(path.format(k), name, allowed)
        seen.add(name)


def _all_known(features: list[Feature], known: Known) -> list[Feature]:
    check_once([f.name for f in features], "{}.name", "each name once")
    known.features = {f.name: f for f in features}
    return features


StatedFeatures = Annotated[
    list[Annotated[Feature, Stated(FeatureModel)]], Field(min_length=1), then(_all_known)
]
"""The features of a problem, which all that is read after them is about."""


def feature_to_dict(feature: Feature) -> dict[str, Any]:
    """A feature as files state it."""
    stated = {
        "bounds": feature.bounds,
        "categories": feature.categories,
        "encoding": feature.encoding if feature.labelled else None,
        "table": feature.table,
        "domain": feature.domain,
        "monotone": feature.monotone,
    }
    return {
        "name": feature.name,
        "kind": feature.kind,
        "actionable": feature.actionable,
        **{key: as_json(v) for key, v in stated.items() if v is not None},
        **lattice_to_dict(feature),
    }


def lattice_to_dict(feature: Feature) -> dict[str, Any]:
    """A feature's steps or values as in files, with every default filled in; nothing where it has none."""
    only = feature.only
    if isinstance(only, Steps):
        return {"step": as_json(only)}
    return {} if only is None else {"values": [feature.show(v) for v in only.values]}


def steps_of(feature: Feature, step: float, origin: float, path: str) -> Steps:
    """The steps of a numeric feature.

    Raises
    ------
    BadInput
        Its kind has no steps, or not these; or too many values are within its bounds.
    """
    if feature.labelled or feature.kind == "binary":
        raise BadInput(
            path, got_text(step), f"nothing: it is {feature.kind}; values can list what may be set"
        )
    if feature.integral and not (float(step).is_integer() and float(origin).is_integer()):
        raise BadInput(
            path, f"{step!r} from {origin!r}", "whole numbers: it is integer; else make it continuous"
        )
    steps = Steps(float(step), float(origin))
    if feature.bounds is not None and steps.count(*feature.bounds) > MOST_VALUES:
        few = f"at most {MOST_VALUES} values within the bounds: make the step larger, or leave it out"
        raise BadInput(path, got_text(step), few)
    return steps


def values_of(feature: Feature, given: Sequence[Any], path: str) -> Values:
    """The listed values of a feature, labels by their index.

    Raises
    ------
    BadInput
        One is no value of the feature, or is listed twice; or there are too many.
    """
    if not 1 <= len(given) <= MOST_VALUES:
        raise BadInput(path, f"{len(given)} values", f"1 to {MOST_VALUES} values")
    numbers = [_listed(feature, value, f"{path}.{k}") for k, value in enumerate(given)]
    if len(set(numbers)) < len(numbers):
        twice = next(value for k, value in enumerate(given) if numbers[k] in numbers[:k])
        raise BadInput(path, f"{got_text(twice)} twice", "each value once")
    return Values(tuple(sorted(numbers)))


def _listed(feature: Feature, value: Any, path: str) -> float:
    if feature.categories is not None:
        if value not in feature.categories:
            raise BadInput(path, got_text(value), "one of " + ", ".join(feature.categories))
        return float(feature.categories.index(value))
    if isinstance(value, str):
        raise BadInput(path, got_text(value), f"a number: {feature.kind} has no labels")
    if feature.integral and not float(value).is_integer():
        raise BadInput(path, got_text(value), f"a whole number: it is {feature.kind}")
    if feature.kind == "binary" and value not in (0, 1):
        raise BadInput(path, got_text(value), "0 or 1: it is binary")
    return float(value) + 0.0


class PreferencesModel(Strict):
    """The applicant's mask, weights, ranges, conditions and density offset."""

    actionable: list[str]
    weights: dict[str, Positive] = Field(default_factory=dict)
    ranges: dict[str, Interval] = Field(default_factory=dict, description="for ordinal features by index")
    conditions: list[StatedCondition] = Field(
        default_factory=list, description="conditions of this applicant; all must hold"
    )
    density_offset: Number | None = Field(
        default=None, description="offset of this applicant, instead of plausibility.offset"
    )

    def build(self, known: Known) -> Preferences:
        """The preferences, the mask in feature order.

        Raises
        ------
        BadInput
            A name is unknown or not globally actionable, or in the mask twice; or a range is one of a
            categorical feature.
        """
        names = [f.name for f in known.features.values() if f.actionable]
        places = [(name, "actionable", str(k)) for k, name in enumerate(self.actionable)]
        places += [(name, "weights", name) for name in self.weights]
        places += [(name, "ranges", name) for name in self.ranges]
        for name, *where in places:
            if name not in names:
                fault = "not globally actionable" if name in known.features else "an unknown feature"
                allowed = ", ".join(names) or "nothing: no feature is globally actionable"
                raise BadInput(dotted(*where), f"{name}, {fault}", allowed)
        check_once(self.actionable, "actionable.{}", "each name once")
        for name in self.ranges:
            if known.features[name].kind == "categorical":
                allowed = "nothing: the labels of a categorical feature have no order"
                raise BadInput(dotted("ranges", name), "a range", allowed)
        actionable = tuple(name for name in names if name in self.actionable)
        return Preferences(
            actionable, dict(self.weights), dict(self.ranges), tuple(self.conditions), self.density_offset
        )


StatedPreferences = Annotated[Preferences, Stated(PreferencesModel)]


def preferences_to_dict(preferences: Preferences, features: Sequence[Feature]) -> dict[str, Any]:
    """The preferences as JSON."""
    conditions = [condition_to_dict(one, features) for one in preferences.conditions]
    return document(PreferencesModel, preferences, conditions=conditions or None)
