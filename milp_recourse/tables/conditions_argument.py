"""Conditions about the columns of a table, given as lines of text, JSON values or Condition objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from milp_recourse.errors import BadInput, dotted
from milp_recourse.formats.conditions_json import build_condition, condition_to_dict
from milp_recourse.formats.schema_conditions import ConditionModel
from milp_recourse.formats.validate import validate
from milp_recourse.problem.conditions import Condition, condition_from_text
from milp_recourse.tables.columns import TableColumn, shown
from milp_recourse.tables.moving_together import says_together


def conditions_of(
    given: Sequence[Any] | None, columns: Sequence[TableColumn], where: str = "conditions"
) -> tuple[Condition, ...]:
    """The conditions of a list.

    Parameters
    ----------
    given
        Lines such as ``"at most 2 actions"``, JSON values as in files with the table's names of columns, or
        objects of :mod:`milp_recourse.problem.conditions`.

    Raises
    ------
    BadInput
        It is no list, or a condition breaks the format. The error names the place, e.g.
        ``conditions.0.feature``.
    """
    if given is None:
        return ()
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Sequence):
        raise BadInput(where, shown(given), "a list of conditions: lines of text, or objects as in files")
    return tuple(_one(one, columns, dotted(where, k)) for k, one in enumerate(given))


def _one(one: Any, columns: Sequence[TableColumn], where: str) -> Condition:
    features = [c.feature for c in columns]
    if isinstance(one, str):
        if says_together(one, [f.name for f in features]):
            raise BadInput(where, one, "conditions of everybody: how columns move together is one model")
        return condition_from_text(one, {f.name: f for f in features}, where)
    if isinstance(one, get_args(Condition)):
        try:
            value = condition_to_dict(one, features)
        except (KeyError, IndexError):
            raise BadInput(where, shown(one), "features and labels that exist") from None
    elif isinstance(one, Mapping):
        value = _plain(one, {c.key: c for c in columns})
    else:
        raise BadInput(where, shown(one), "a line of text, or an object as in files")
    return build_condition(validate(ConditionModel, value, where), features, where)


def _plain(one: Any, columns: Mapping[Any, TableColumn]) -> Any:
    """The JSON value of a condition, with features in place of columns and labels as text."""
    if isinstance(one, list | tuple):
        return [_plain(part, columns) for part in one]
    if not isinstance(one, Mapping):
        return one
    plain: dict[str, Any] = {}
    for key, value in one.items():
        if key in ("feature", "acted"):
            plain[key] = columns[value].name if _among(value, columns) else str(value)
        elif key == "sum" and isinstance(value, Mapping):
            plain[key] = {columns[k].name if k in columns else str(k): c for k, c in value.items()}
        elif key == "products" and isinstance(value, Sequence) and not isinstance(value, str):
            name = {k: column.name for k, column in columns.items()}
            plain[key] = [[c, *(name.get(k, str(k)) for k in names)] for c, *names in value]
        elif key == "in" and isinstance(value, Sequence) and not isinstance(value, str):
            plain[key] = [_label(label, one.get("feature"), columns) for label in value]
        elif key in ("at_least", "at_most"):
            plain[key] = _label(value, one.get("feature"), columns)
        else:
            plain[str(key)] = _plain(value, columns)
    return plain


def _among(key: Any, columns: Mapping[Any, TableColumn]) -> bool:
    return isinstance(key, str | int | float | tuple) and key in columns


def _label(value: Any, feature: Any, columns: Mapping[Any, TableColumn]) -> Any:
    """The text of a label of the table; numbers are returned as they are."""
    column = columns.get(feature) if _among(feature, columns) else None
    if column is not None and column.labels is not None and column.feature.categories is not None:
        found = [k for k, label in enumerate(column.labels) if type(label) is type(value) and label == value]
        if found:
            return column.feature.categories[found[0]]
    return value.item() if hasattr(value, "item") else value
