"""What is one person's, from JSON and back: preferences, costs, and conditions.

Inside the package labels are indices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any as AnyValue

from milp_recourse.errors import BadInput, dotted, shown
from milp_recourse.formats import schema_conditions as schema
from milp_recourse.formats.feature_json import ordered
from milp_recourse.formats.schema import MixtureModel, PercentileModel, PreferencesModel, measure
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


def preferences_to_dict(preferences: Preferences, features: Sequence[Feature]) -> dict[str, AnyValue]:
    """The inverse of :func:`build_preferences`, as JSON."""
    written: dict[str, AnyValue] = {
        "actionable": list(preferences.actionable),
        "weights": dict(preferences.weights),
        "ranges": {name: list(interval) for name, interval in preferences.ranges.items()},
    }
    if preferences.conditions:
        written["conditions"] = [condition_to_dict(one, features) for one in preferences.conditions]
    if preferences.density_offset is not None:
        written["density_offset"] = preferences.density_offset
    return written


def build_cost(model: AnyValue, features: Sequence[Feature]) -> Cost:
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


def scales_to_dict(cost: Cost) -> dict[str, AnyValue]:
    """The scales as JSON: a number, an object of two, or ``"factual"`` per feature; 1 under percentiles."""
    return {name: own.written if own.field == "scale" else 1.0 for name, own in cost.measures.items()}


def cost_to_dict(cost: Cost) -> dict[str, AnyValue]:
    """The inverse of :func:`build_cost`, as JSON."""
    if cost.kind in PERCENTILES:
        ranks = {name: own.written for name, own in cost.measures.items() if own.field == "quantiles"}
        return {"kind": cost.kind, "quantiles": ranks}
    written: dict[str, AnyValue] = {"kind": cost.kind, "scale": scales_to_dict(cost)}
    if cost.kind == "mixture":
        written |= cost.written_parts
    return written


DEEPEST = 40
"""The largest number of levels of nesting that is accepted."""


def build_conditions(
    models: Sequence[AnyValue], features: Sequence[Feature], path: str = "conditions"
) -> tuple[Condition, ...]:
    """The conditions of a list.

    Raises
    ------
    BadInput
        As for :func:`build_condition`.
    """
    builder = _Builder(features)
    return tuple(builder.build(model, dotted(path, k), 0) for k, model in enumerate(models))


def build_condition(model: AnyValue, features: Sequence[Feature], path: str) -> Condition:
    """One condition.

    Parameters
    ----------
    path
        The condition's path in its file, for errors.

    Raises
    ------
    BadInput
        A feature or label is unknown, a feature without an order is compared or added up, ``in`` is asked of
        a change, a bound is missing, at_least is above at_most, or the nesting
        is too deep. The error names the path, e.g. ``conditions.0.then.feature``.
    """
    return _Builder(features).build(model, path, 0)


class _Builder:
    def __init__(self, features: Sequence[Feature]) -> None:
        self.features = {f.name: f for f in features}

    def build(self, model: AnyValue, path: str, depth: int) -> Condition:
        if depth > DEEPEST:
            raise BadInput(path, f"more than {DEEPEST} levels of nesting", f"{DEEPEST} levels or fewer")
        match model:
            case schema.AtMostActionsModel():
                return AtMostActions(model.at_most_actions)
            case schema.ActedModel():
                return Acted(self.named(model.acted, dotted(path, "acted")).name)
            case schema.SumConditionModel():
                return self.sum(model, path)
            case schema.FeatureConditionModel():
                return self.feature(model, path)
            case schema.IfModel():
                first = self.build(model.if_, dotted(path, "if"), depth + 1)
                return IfThen(first, self.build(model.then, dotted(path, "then"), depth + 1))
            case schema.AnyModel():
                return Any(self.parts(model.any, dotted(path, "any"), depth))
            case schema.AllModel():
                return All(self.parts(model.all, dotted(path, "all"), depth))
            case schema.NotModel():
                return Not(self.build(model.not_, dotted(path, "not"), depth + 1))
        raise TypeError(model)  # pragma: no cover

    def parts(self, models: Sequence[AnyValue], path: str, depth: int) -> tuple[Condition, ...]:
        return tuple(self.build(part, dotted(path, k), depth + 1) for k, part in enumerate(models))

    def named(self, name: str, path: str) -> Feature:
        if name not in self.features:
            raise BadInput(path, f"{name}, an unknown feature", ", ".join(self.features))
        return self.features[name]

    def sum(self, model: schema.SumConditionModel, path: str) -> Condition:
        products = [(c, (min(names), max(names))) for c, *names in model.products or ()]
        places = [(name, dotted(path, "sum", name)) for name in model.sum]
        for k, (_, names) in enumerate(products):
            places += [(name, dotted(path, "products", k)) for name in names]
        for name, where in places:
            if self.named(name, where).kind == "categorical":
                raise BadInput(
                    where, "a categorical feature", "numeric and ordinal features: labels have no numbers"
                )
        if not places:
            raise BadInput(dotted(path, "sum"), "{}", "one feature or more, or products")
        if model.at_least is None and model.at_most is None:
            raise BadInput(path, "no bound", "at_least, at_most or both")
        _check_ends(model.at_least, model.at_most, path)
        terms: list[tuple[Factor, float]] = [*model.sum.items(), *((pair, c) for c, pair in products)]
        return Sum(tuple(terms), model.of, model.at_least, model.at_most)

    def feature(self, model: schema.FeatureConditionModel, path: str) -> Condition:
        feature = self.named(model.feature, dotted(path, "feature"))
        parts: list[Condition] = []
        ends = {key: getattr(model, key) for key in ("at_least", "at_most")}
        if any(end is not None for end in ends.values()):
            if feature.kind == "categorical":
                key = next(key for key, end in ends.items() if end is not None)
                raise BadInput(
                    dotted(path, key),
                    shown(ends[key]),
                    "nothing: labels of a categorical feature have no order; use in",
                )
            by_label = model.of in ("factual", "counterfactual")
            low, high = (
                None if end is None else _end(feature, end, by_label, dotted(path, key))
                for key, end in ends.items()
            )
            _check_ends(low, high, path)
            parts.append(Sum(((feature.name, 1.0),), model.of, low, high))
        if model.in_ is not None:
            where = dotted(path, "in")
            if model.of not in ("factual", "counterfactual"):
                raise BadInput(
                    dotted(path, "of"), model.of, "factual or counterfactual, since in names values"
                )
            if feature.categories is None:
                numbers = [_end(feature, v, False, dotted(where, k)) for k, v in enumerate(model.in_)]
                parts.append(one_of(feature.name, model.of, numbers))
            else:
                found = {_index(feature, label, dotted(where, k)) for k, label in enumerate(model.in_)}
                parts.append(LabelIn(feature.name, model.of, tuple(sorted(found))))
        if not parts:
            raise BadInput(path, "no bound", "at_least, at_most or in")
        return parts[0] if len(parts) == 1 else All(tuple(parts))


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
    raise BadInput(path, shown(label), f"one of {', '.join(labels)}, or an index from 0 to {len(labels) - 1}")


def _check_ends(low: float | None, high: float | None, path: str) -> None:
    if low is not None and high is not None and low > high:
        raise BadInput(path, f"at_least {low!r} above at_most {high!r}", "at_least <= at_most")


def _sum_to_dict(terms: Sequence[tuple[Factor, float]]) -> dict[str, AnyValue]:
    """The keys that say what is added up."""
    products = [[c, *of] for of, c in terms if not isinstance(of, str)]
    found: dict[str, AnyValue] = {"sum": {of: c for of, c in terms if isinstance(of, str)}}
    return found | ({"products": products} if products else {})


def condition_to_dict(condition: Condition, features: Sequence[Feature]) -> dict[str, AnyValue]:
    """The inverse of :func:`build_conditions` for one condition, as JSON."""
    by_name = {f.name: f for f in features}

    def write(one: Condition) -> dict[str, AnyValue]:
        match one:
            case AtMostActions(count):
                return {"at_most_actions": count}
            case Acted(feature):
                return {"acted": feature}
            case LabelIn(feature, of, labels):
                categories = by_name[feature].categories or ()
                return {"feature": feature, "of": of, "in": [categories[k] for k in labels]}
            case Sum(terms, of, low, high):
                single = len(terms) == 1 and terms[0][1] == 1 and isinstance(terms[0][0], str)
                head: dict[str, AnyValue] = {"feature": terms[0][0]} if single else _sum_to_dict(terms)
                ends = {"at_least": low, "at_most": high}
                return head | {"of": of} | {key: end for key, end in ends.items() if end is not None}
            case IfThen(first, then):
                return {"if": write(first), "then": write(then)}
            case Any(parts):
                return {"any": [write(part) for part in parts]}
            case All(parts):
                return {"all": [write(part) for part in parts]}
            case Not(part):
                return {"not": write(part)}
        raise TypeError(one)  # pragma: no cover

    return write(condition)
