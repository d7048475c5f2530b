"""Preferences and costs: what one applicant may do, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from milp_recourse.domain.cost import Cost
from milp_recourse.domain.features import Feature
from milp_recourse.errors import BadInput
from milp_recourse.formats.feature_json import ordered
from milp_recourse.formats.schema import MixtureModel, PreferencesModel
from milp_recourse.formats.validate import dotted
from milp_recourse.instance import Preferences

_PARTS = ("l2_squared", "l1", "linf", "l0")


def build_preferences(
    model: PreferencesModel, features: Sequence[Feature], path: str = "preferences"
) -> Preferences:
    """The applicant's mask in feature order, weights and ranges.

    Raises
    ------
    BadInput
        A name that is unknown, not globally actionable or given twice; lo > hi; a range on a
        categorical feature.
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
    return Preferences(actionable, dict(model.weights), ranges)


def preferences_to_dict(preferences: Preferences) -> dict[str, Any]:
    """The inverse of :func:`build_preferences`, as JSON."""
    return {
        "actionable": list(preferences.actionable),
        "weights": dict(preferences.weights),
        "ranges": {name: list(interval) for name, interval in preferences.ranges.items()},
    }


def build_cost(model: Any, features: Sequence[Feature]) -> Cost:
    """The cost; see :func:`check_scale` for who needs a scale.

    Raises
    ------
    BadInput
        A scale for an unknown feature, or a mixture of nothing.
    """
    names = [f.name for f in features]
    for name in model.scale:
        if name not in names:
            raise BadInput(dotted("cost.scale", name), "an unknown feature", ", ".join(names))
    if not isinstance(model, MixtureModel):
        return Cost.pure(model.kind, model.scale)
    coefficients = {part: getattr(model, part) for part in _PARTS}
    if not any(coefficients.values()):
        raise BadInput("cost", "coefficients that are all 0", "l0, l1, l2-squared or linf above 0")
    return Cost(**coefficients, scale=dict(model.scale), kind="mixture")


def check_scale(cost: Cost, preferences: Preferences, path: str = "preferences") -> None:
    """Every individually actionable feature has a scale, unless only l0 counts."""
    if not cost.uses_scale:
        return
    for name in preferences.actionable:
        if name not in cost.scale:
            allowed = f"a number above 0, since {path}.actionable names it"
            raise BadInput(dotted("cost.scale", name), "nothing", allowed)


def cost_to_dict(cost: Cost) -> dict[str, Any]:
    """The inverse of :func:`build_cost`, as JSON."""
    written: dict[str, Any] = {"kind": cost.kind, "scale": dict(cost.scale)}
    if cost.kind == "mixture":
        written |= {part.replace("_", "-"): getattr(cost, part) for part in _PARTS}
    return written
