"""What was inferred from a model and its table, and what an answer rests on, for people to read.

Of each assumption it is said whether it was given or taken from the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from milp_recourse.formats.schema import scales_to_dict
from milp_recourse.problem.features import Feature, Values
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.population import Population
from milp_recourse.readers import Reading
from milp_recourse.tables.columns import TableColumn, is_missing
from milp_recourse.tables.features_of_columns import ColumnArguments
from milp_recourse.tables.own_margins import margin_in_words

SHOWN_LABELS = 6
"""The most labels of a column that :attr:`Recourse.features` shows."""


def inferred(problem: Instance, columns: Sequence[TableColumn]) -> pd.DataFrame:
    """A row per column, as :attr:`~milp_recourse.tables.recourse.Recourse.features` describes."""
    cost = problem.cost
    scales = scales_to_dict(cost) if cost.uses_scale else {}
    rows = {
        c.key: {
            "kind": c.feature.kind,
            "lever": c.name in problem.preferences.actionable,
            "direction": c.feature.monotone or "",
            "values": _values(c.feature),
            "scale": _scale(scales.get(c.name, np.nan)),
            "if missing": _if_missing(c),
        }
        for c in columns
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def facts_of_answers(
    reading: Reading,
    cost: str,
    asked: bool,
    margin: float | None,
    confidence: float | None,
    people: Population | None,
) -> dict[str, str]:
    """The lines of a summary about model, cost and margin, by name.

    Parameters
    ----------
    cost
        The cost in words.
    asked
        Whether the model is asked, not read.
    margin, confidence
        As given to :class:`~milp_recourse.tables.recourse.Recourse`.
    people
        None where nobody could be read.
    """
    facts = {"desired": reading.desired, "cost": cost}
    if asked:
        facts["model"] = "asked, not read: it refused every cheaper action"
    words = None if people is None else margin_in_words(reading, margin, people)
    if words is not None:
        facts["margin"] = words
    if confidence is not None:
        near, network = reading.near, isinstance(reading.classifier, ReluNetwork)
        scale = "log odds" if reading.measure == "logit" else "probabilities"
        over = f", with {scale} up to {near:.1g} above that" if near and network else ""
        facts["confidence"] = f"accepted means a probability of at least {confidence:g}{over}"
    return facts


def _values(feature: Feature) -> str:
    """The interval that an action may set, with its steps, or the first :data:`SHOWN_LABELS` labels or listed
    values."""
    if feature.categories is None and not isinstance(feature.only, Values):
        steps = "" if feature.only is None else f" in steps of {feature.only.step:g}"
        return f"{feature.bounds[0]:g} to {feature.bounds[1]:g}{steps}" if feature.bounds else ""
    several = (
        [str(feature.show(v)) for v in feature.only.values] if isinstance(feature.only, Values) else None
    )
    several = several or list(feature.categories or ())
    first, more = several[:SHOWN_LABELS], len(several) - SHOWN_LABELS
    return ", ".join(first) + (f" and {more} more" if more > 0 else "")


def _scale(scale: Any) -> Any:
    """The scale of a change, in words where it is more than a number."""
    if isinstance(scale, Mapping):
        words = {"increase": "{:g} up", "decrease": "{:g} down"}
        return ", ".join(words.get(key, f"{key} {{:g}}").format(number) for key, number in scale.items())
    return scale


def _if_missing(column: TableColumn) -> str:
    """How a missing value of the column is treated, in words."""
    if column.labels is not None and any(map(is_missing, column.labels)):
        return "a label of its own"
    if column.imputed is not None:
        return f"imputed as {column.value(column.imputed)}"
    return "judged by the model's own rule" if column.missing else "that person cannot be read"


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
