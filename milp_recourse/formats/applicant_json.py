"""Preferences and costs, from JSON and back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from milp_recourse.errors import BadInput, dotted
from milp_recourse.formats.conditions_json import build_conditions, condition_to_dict
from milp_recourse.formats.feature_json import ordered
from milp_recourse.formats.schema import MixtureModel, PercentileModel, PreferencesModel, measure
from milp_recourse.problem.cost import KINDS, PARTS, PERCENTILES, Cost
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Preferences
from milp_recourse.problem.measures import Measure, Quantiles


def build_preferences(
    model: PreferencesModel, features: Sequence[Feature], path: str = "preferences"
) -> Preferences:
    """The applicant's mask in feature order, weights, ranges, conditions and density offset.

    Raises
    ------
    BadInput
        A name that is unknown or not globally actionable, or in the mask twice; lo > hi; a range on a
        categorical feature; a condition that breaks the format.
    """
    names = [f.name for f in features if f.actionable]
    kinds = {f.name: f.kind for f in features}

    def check(name: str, where: str) -> None:
        if name not in names:
            got = f"{name}, {'not globally actionable' if name in kinds else 'an unknown feature'}"
            raise BadInput(where, got, ", ".join(names) or "nothing: no feature is globally actionable")

    for k, name in enumerate(model.actionable):
        check(name, dotted(path, "actionable", k))
        if name in model.actionable[:k]:
            raise BadInput(dotted(path, "actionable", k), name, "each name once")
    for name in model.weights:
        check(name, dotted(path, "weights", name))
    ranges = {}
    for name, interval in model.ranges.items():
        where = dotted(path, "ranges", name)
        check(name, where)
        if kinds[name] == "categorical":
            raise BadInput(where, "a range", "nothing: the labels of a categorical feature have no order")
        ranges[name] = ordered(interval, where) or (0.0, 0.0)
    actionable = tuple(name for name in names if name in model.actionable)
    conditions = build_conditions(model.conditions, features, dotted(path, "conditions"))
    return Preferences(actionable, dict(model.weights), ranges, conditions, model.density_offset)


def preferences_to_dict(preferences: Preferences, features: Sequence[Feature]) -> dict[str, Any]:
    """The inverse of :func:`build_preferences`, as JSON."""
    written: dict[str, Any] = {
        "actionable": list(preferences.actionable),
        "weights": dict(preferences.weights),
        "ranges": {name: list(interval) for name, interval in preferences.ranges.items()},
    }
    if preferences.conditions:
        written["conditions"] = [condition_to_dict(one, features) for one in preferences.conditions]
    if preferences.density_offset is not None:
        written["density_offset"] = preferences.density_offset
    return written


def build_cost(model: Any, features: Sequence[Feature]) -> Cost:
    """The cost. :func:`check_scale` checks afterwards that no scale is missing.

    Raises
    ------
    BadInput
        A scale or quantiles are given for an unknown feature or for one that cannot have them, all
        coefficients of a mixture are 0, or the knots are not those of a distribution function.
    """
    kinds = {f.name: f.kind for f in features}
    if isinstance(model, PercentileModel):
        return _build_percentile(model, kinds)
    scale = {name: measure(own) for name, own in model.scale.items()}
    _check_measures(scale, kinds)
    if not isinstance(model, MixtureModel):
        return Cost.pure(model.kind, scale)
    coefficients = {part.replace("-", "_"): getattr(model, part.replace("-", "_")) for part in PARTS}
    if not any(coefficients.values()):
        raise BadInput("cost", "coefficients that are all 0", "l0, l1, l2-squared or linf above 0")
    return Cost(**coefficients, measures=scale)


def _check_measures(measures: Mapping[str, Measure], kinds: Mapping[str, str]) -> None:
    """Check that the features exist, and can have the measures that they are given."""
    for name, own in measures.items():
        where = dotted(f"cost.{own.field}", name)
        if name not in kinds:
            raise BadInput(where, "an unknown feature", ", ".join(kinds))
        if fault := own.why_not(kinds[name]):
            raise BadInput(where, *fault)


def _build_percentile(model: PercentileModel, kinds: Mapping[str, str]) -> Cost:
    quantiles = {name: Quantiles(*zip(*knots, strict=True)) for name, knots in model.quantiles.items()}
    cost = Cost.percentile(model.kind, quantiles, [n for n, kind in kinds.items() if kind == "categorical"])
    _check_measures({name: cost.measures[name] for name in quantiles}, kinds)
    for name, knots in model.quantiles.items():
        most = math.inf if KINDS[model.kind].axis == "log-percentile" else 1.0
        _check_knots(knots, dotted("cost.quantiles", name), most)
    return cost


def _check_knots(knots: Sequence[Sequence[float]], where: str, most: float) -> None:
    """Check that values ascend, probabilities (or logarithms) never fall, and slopes are finite."""
    for k, knot in enumerate(knots):
        path, (value, probability) = dotted(where, k), knot
        if not 0 <= probability <= most:
            allowed = "a probability from 0 to 1" if most == 1 else "-log(1 - p), 0 or more"
            raise BadInput(path, list(knot), allowed)
        if k == 0:
            continue
        step, rise = value - knots[k - 1][0], probability - knots[k - 1][1]
        if not (step > 0 and rise >= 0):
            raise BadInput(path, list(knot), "a value above the knot before, and a probability not below it")
        if not (math.isfinite(step) and math.isfinite(rise / step)):
            raise BadInput(path, list(knot), "a value at a distance whose inverse is a number")


def check_scale(cost: Cost, preferences: Preferences, path: str = "preferences") -> None:
    """Check that every individually actionable feature has a scale (or quantiles), unless the cost is l0."""
    field, wanted = ("quantiles", "knots") if cost.kind in PERCENTILES else ("scale", "a number above 0")
    for name in preferences.actionable:
        if not cost.covers(name):
            allowed = f"{wanted}, since {path}.actionable names it"
            raise BadInput(dotted(f"cost.{field}", name), "nothing", allowed)


def scales_to_dict(cost: Cost) -> dict[str, Any]:
    """The scales as JSON: a number, an object of two, or ``"factual"`` per feature; 1 under percentiles."""
    return {name: own.written if own.field == "scale" else 1.0 for name, own in cost.measures.items()}


def cost_to_dict(cost: Cost) -> dict[str, Any]:
    """The inverse of :func:`build_cost`, as JSON."""
    if cost.kind in PERCENTILES:
        ranks = {name: own.written for name, own in cost.measures.items() if own.field == "quantiles"}
        return {"kind": cost.kind, "quantiles": ranks}
    written: dict[str, Any] = {"kind": cost.kind, "scale": scales_to_dict(cost)}
    if cost.kind == "mixture":
        written |= cost.written_parts
    return written
