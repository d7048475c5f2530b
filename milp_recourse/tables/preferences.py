"""The argument ``preferences``: each person's mask, weights, ranges and conditions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from milp_recourse.errors import BadInput
from milp_recourse.problem.instance import Preferences
from milp_recourse.tables.arguments import intervals, positive, some_columns
from milp_recourse.tables.columns import TableColumn, is_missing, known_name, shown
from milp_recourse.tables.conditions_argument import conditions_of

_KEYS = ("actionable", "weights", "ranges", "conditions")


def people_preferences(
    given: pd.DataFrame | Sequence[Any] | None,
    common: Preferences,
    columns: Sequence[TableColumn],
    people: pd.DataFrame,
) -> list[Preferences]:
    """The preferences of each person.

    Parameters
    ----------
    given
        One entry per person: a mapping with the keys ``actionable``, ``weights``, ``ranges`` and
        ``conditions``, any of which may be left out; a :class:`Preferences`, which replaces ``common``
        entirely; or None. A table has a row per person.
    common
        What holds for everybody who does not state otherwise.
    columns
        The features.
    people
        The people's rows, with X's columns.

    Raises
    ------
    BadInput
        There is not one entry per person, a key or column is unknown, a column is not actionable, or a value
        is not what is allowed.
    """
    if given is None:
        return [common] * len(people)
    if isinstance(given, pd.DataFrame):
        given = _from_frame(given, people)
    if isinstance(given, Mapping | str | bytes) or not isinstance(given, Sequence):
        raise BadInput("preferences", type(given).__name__, "a DataFrame or a list, one per person")
    if len(given) != len(people):
        raise BadInput("preferences", f"{len(given)} of them", f"{len(people)}, one per person")
    own = _Own(common, columns, people.columns)
    return [own.read(one, f"preferences.{k}") for k, one in enumerate(given)]


class _Own:
    """Reads one person's preferences."""

    def __init__(self, common: Preferences, columns: Sequence[TableColumn], names: pd.Index) -> None:
        self._common, self._names = common, names
        self._columns = {c.key: c for c in columns}

    def read(self, one: Any, where: str) -> Preferences:
        """The preferences of one person."""
        if one is None:
            return self._common
        if isinstance(one, Preferences):
            keys = {c.name: c.key for c in self._columns.values()}
            one = {
                "actionable": [keys.get(name, name) for name in one.actionable],
                "weights": {keys.get(name, name): w for name, w in one.weights.items()},
                "ranges": {keys.get(name, name): ends for name, ends in one.ranges.items()},
                "conditions": one.conditions,
            }
            return self._mapping(one, where, Preferences())
        if not isinstance(one, Mapping):
            raise BadInput(where, shown(one), f"a mapping with {', '.join(_KEYS)}, or None")
        for key in one:
            if key not in _KEYS:
                raise BadInput(f"{where}.{key}", "an unknown key", ", ".join(_KEYS))
        return self._mapping(one, where, self._common)

    def _mapping(self, one: Mapping[str, Any], where: str, common: Preferences) -> Preferences:
        actionable = set(common.actionable)
        if one.get("actionable") is not None:
            if isinstance(one["actionable"], Mapping):
                raise BadInput(f"{where}.actionable", "a mapping", "a list of columns of X")
            named = some_columns(f"{where}.actionable", one["actionable"], self._names)
            actionable = {self._lever(key, f"{where}.actionable").name for key in named}
        weights = positive(f"{where}.weights", one.get("weights"), self._names)
        ranges = intervals(f"{where}.ranges", one.get("ranges"), self._names)
        for key in ranges:
            if self._lever(key, f"{where}.ranges.{key}").feature.kind == "categorical":
                raise BadInput(f"{where}.ranges.{key}", "a range", "nothing: its labels have no order")
        conditions = conditions_of(one.get("conditions"), list(self._columns.values()), f"{where}.conditions")
        return Preferences(
            tuple(c.name for c in self._columns.values() if c.name in actionable),
            {
                **common.weights,
                **{self._lever(key, f"{where}.weights.{key}").name: w for key, w in weights.items()},
            },
            {**common.ranges, **{self._columns[key].name: ends for key, ends in ranges.items()}},
            common.conditions + conditions,
        )

    def _lever(self, key: Hashable, where: str) -> TableColumn:
        """The column called ``key``, after a check that it is globally actionable."""
        column = self._columns.get(key)
        if column is None or not column.feature.actionable:
            reason = "which the model does not read" if column is None else "not globally actionable"
            levers = ", ".join(c.name for c in self._columns.values() if c.feature.actionable)
            raise BadInput(where, f"{key}, {reason}", levers or "nothing: no column is globally actionable")
        return column


def _from_frame(frame: pd.DataFrame, people: pd.DataFrame) -> list[Any]:
    """One mapping per person from the rows of a table.

    The table's columns are either keys of ``_KEYS`` or columns of X. A column of X holds the person's weight
    of it, and is empty if the person cannot act on it.

    Raises
    ------
    BadInput
        The table has another number of rows or another index than the people, or other columns.
    """
    if len(frame) != len(people):
        raise BadInput("preferences", f"{len(frame)} rows", f"{len(people)}, one per person")
    if frame.columns.has_duplicates:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise BadInput("preferences", f"two columns called {twice!r}", "each name once")
    if not frame.index.equals(people.index):
        if not (frame.index.is_unique and set(frame.index) == set(people.index)):
            raise BadInput("preferences", "another index", "rows indexed as people are")
        frame = frame.loc[people.index]
    by_key = set(frame.columns) <= set(_KEYS)
    if not by_key:
        for name in frame.columns:
            if name in _KEYS and name not in people.columns:
                raise BadInput(
                    "preferences",
                    f"a column {name!r} beside others",
                    f"the columns {', '.join(_KEYS)} alone, or columns of X that hold weights",
                )
            known_name("preferences", name, people.columns)
    rows = [{k: v for k, v in row.items() if not is_missing(v)} for row in frame.to_dict("records")]
    return rows if by_key else [{"actionable": list(row), "weights": row} for row in rows]
