"""Where the assumptions of a problem come from: which were given, which were taken from the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from milp_recourse.tables.columns import TableColumn
from milp_recourse.tables.features_of_columns import ColumnArguments

DATA, DEFAULT = "taken from X", "assumed, nothing else was said"


def given(argument: str) -> str:
    """The source of what the caller said."""
    return f"given as {argument}="


def sources_of(
    columns: Sequence[TableColumn], about: ColumnArguments, arguments: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Per feature and for the whole problem, the source of each assumption in an auditor's file.

    Parameters
    ----------
    about
        The arguments about columns.
    arguments
        Others of :class:`~milp_recourse.tables.recourse.Recourse` by name.
    """
    scale = arguments["scale"]
    features = {}
    for column in columns:
        key = column.key

        def first(names: Sequence[str], otherwise: str, key: Any = key) -> str:
            known = {**vars(about), **arguments}
            named = (n for n in names if isinstance(known[n], Mapping | frozenset) and key in known[n])
            return next(map(given, named), otherwise)

        lever = DEFAULT if column.feature.actionable else "the model does not read it"
        rule = given("scale") if isinstance(scale, Mapping) else f"{DATA}, by the rule scale={scale!r}"
        features[column.name] = {
            "kind": first(["categories", "kinds"], DATA),
            "changed by an action": first(["immutable"], lever),
            "direction": first(["increase", "decrease"], DEFAULT),
            "lowest and highest value of an action": first(["bounds", "values"], DATA),
            "labels": first(["categories"], DATA),
            "steps": given("steps"),
            "values": given("values"),
            "lowest and highest value afterwards": first(["domain"], given("plausibility")),
            "range that people accept": given("ranges"),
            "scale of a change": rule,
            "weight": first(["weights"], DEFAULT),
        }

    def of(name: str, default: Any = None, otherwise: str = DEFAULT) -> str:
        value = arguments[name]
        usual = value is default or (isinstance(value, str) and value == default)
        return otherwise if usual else given(name)

    wished = [name for name in ("desired", "confidence", "margin") if arguments[name] is not None]
    wish = " and ".join(map(given, wished)) or DEFAULT
    if "margin" not in wished:
        wish += "; the margin by the model's own arithmetic"
    problem = {
        "Model": "read from the fitted model",
        "Accepted": wish,
        "Causal": of("scm"),
        "Cost": of("cost", "l1"),
        "Plausibility": of("plausibility"),
        "Condition": "given as conditions=, or plausibility=",
    }
    return {"features": features, "problem": problem}
