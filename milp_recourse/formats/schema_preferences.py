"""One person's preferences: how files state them, from JSON and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from milp_recourse.errors import BadInput, dotted
from milp_recourse.formats.schema_conditions import StatedCondition, condition_to_dict
from milp_recourse.formats.schema_features import check_once
from milp_recourse.formats.validate import Interval, Known, Number, Positive, Stated, Strict
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Preferences


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
