"""Rows of a table as factuals, with people's ``preferences``, and counterfactuals as rows of it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from milp_recourse.errors import BadInput, nearest
from milp_recourse.problem.instance import Preferences
from milp_recourse.tables.arguments import intervals, positive, some_columns
from milp_recourse.tables.columns import TableColumn, got_repr, is_missing, known_name, printable
from milp_recourse.tables.conditions_argument import conditions_of


@dataclass(frozen=True)
class Rows:
    """The rows of people, as in the table and as numbers.

    Attributes
    ----------
    frame
        The people's rows, with X's columns.
    values
        The features' numbers, shape (people, features): labels by index, missing values replaced as the
        model's imputer does; nan for a missing value without imputer.
    missing
        Whether the cell is empty or cannot be read, same shape.
    faults
        The errors of people who could not be read, by position.
    unbounded
        Of these the ones whose numbers are so large that the model's rounding has no bound.
    """

    frame: pd.DataFrame
    values: NDArray[np.float64]
    missing: NDArray[np.bool_]
    faults: Mapping[int, BadInput]
    unbounded: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self.values)


def chosen(rows: Rows, positions: Sequence[int]) -> Rows:
    """The rows at these positions, which may repeat, of people who could be read."""
    at = list(positions)
    return Rows(rows.frame.iloc[at].reset_index(drop=True), rows.values[at], rows.missing[at], {})


def read_rows(people: pd.DataFrame, columns: Sequence[TableColumn], order: pd.Index) -> Rows:
    """Read people's rows; the errors of those who cannot be read are in :attr:`Rows.faults`.

    Parameters
    ----------
    people
        A table with X's columns, in any order; others are ignored.
    order
        X's columns.

    Raises
    ------
    BadInput
        A column of X is missing, or stands there twice.
    """
    lost = [c for c in order if c not in people.columns]
    if lost:
        close = nearest(lost[0], [c for c in people.columns if c not in order])
        hint = f" (is {close!r} meant to be {lost[0]!r}?)" if close else ""
        raise BadInput("people", f"a table without {lost[0]!r}", f"rows with the columns of X{hint}")
    if people.columns[people.columns.isin(order)].has_duplicates:
        raise BadInput("people", "two columns of one name", "each column of X once")
    frame = people[list(order)]
    values = np.full((len(frame), len(columns)), np.nan)
    faults: dict[int, BadInput] = {}
    for k, column in enumerate(columns):
        values[:, k] = _codes(frame[column.key], column, faults)
    missing = np.isnan(values)
    for k, column in enumerate(columns):
        empty = missing[:, k]
        if column.imputed is not None:
            values[empty, k] = column.imputed
        elif not column.missing:
            for i in np.flatnonzero(empty).tolist():
                allowed = "a value: the model has no rule for a missing one"
                faults.setdefault(i, BadInput(column.name, "nothing", allowed))
    return Rows(frame, values, missing, faults)


def own_names(index: pd.Index) -> tuple[str, ...] | None:
    """The labels of a table's index as text; None if the index only counts rows from 0."""
    if index.equals(pd.RangeIndex(len(index))):
        return None
    return tuple(printable(label) for label in index)


def values_in_file(rows: Rows, columns: Sequence[TableColumn], i: int) -> dict[str, float | int | str | None]:
    """The values of person i for a file; those that cannot be read are written as they are in the table, and
    numbers that are too large as text, so that the file's readers cannot take them either."""
    found: dict[str, float | int | str | None] = {}
    for column in columns:
        value = rows.frame[column.key].iloc[i]
        try:
            code = column.code(value)
        except (BadInput, TypeError):
            number = isinstance(value, int | float | np.number) and np.isfinite(value)
            found[column.name] = float(value) if number else str(value)
        else:
            found[column.name] = None if np.isnan(code) else column.feature.show(code)
            if i in rows.unbounded and column.name == rows.faults[i].field:
                found[column.name] = str(value)
    return found


def counterfactual_rows(
    rows: Rows, columns: Sequence[TableColumn], changed: Sequence[Mapping[str, float] | None]
) -> pd.DataFrame:
    """The people's rows with the changed values put in, in X's columns and dtypes.

    Parameters
    ----------
    changed
        For each person the features that change, with their new numbers; None leaves the row as it is.
    """
    frame = rows.frame.copy()
    for column in columns:
        at = [i for i, values in enumerate(changed) if values is not None and column.name in values]
        if not at:
            continue
        new = [column.value(changed[i][column.name]) for i in at]  # type: ignore[index]
        cells = frame[column.key].astype(object).to_numpy(copy=True)
        cells[at] = new
        frame[column.key] = _as_before(cells, frame[column.key], column)
    return frame


def _codes(series: pd.Series, column: TableColumn, faults: dict[int, BadInput]) -> NDArray[np.float64]:
    """Every cell's number; nan if it is empty, or cannot be read (the error is then added to ``faults``)."""
    known: dict[object, float] = {}
    codes = np.full(len(series), np.nan)
    cells = series.tolist()
    if series.dtype != object:  # pandas' NA in a column of another type reaches the model as nan
        cells = [np.nan if is_missing(cell) else cell for cell in cells]
    for i, cell in enumerate(cells):
        try:
            key = type(cell), cell  # True is not 1
            if key not in known:
                known[key] = column.code(cell)
            codes[i] = known[key]
        except BadInput as error:
            faults.setdefault(i, error)
        except TypeError:  # not hashable, so no label and no number
            faults.setdefault(i, BadInput(column.name, repr(cell), "a number or a label"))
    return codes


def _as_before(cells: NDArray[np.object_], before: pd.Series, column: TableColumn) -> pd.Series:
    """The cells in the column's dtype in X, or in a wider one if they do not fit into it."""
    dtype = before.dtype if isinstance(before.dtype, pd.CategoricalDtype) else column.dtype
    column_after = pd.Series(cells, index=before.index, name=before.name, dtype=object)  # None stays None
    if isinstance(dtype, pd.CategoricalDtype):
        added = dict.fromkeys(v for v in cells.tolist() if not is_missing(v) and v not in dtype.categories)
        dtype = pd.CategoricalDtype([*dtype.categories, *added], dtype.ordered)
        return pd.Series(pd.Categorical(cells, dtype=dtype), index=before.index, name=before.name)
    doubles = pd.api.types.is_float_dtype(dtype) and getattr(dtype, "itemsize", 0) == 8
    if column.feature.kind == "continuous" and not doubles:
        return column_after.astype(np.float64)
    narrow = pd.api.types.is_float_dtype(dtype) and not doubles  # rounds large whole numbers, silently
    for wide in (dtype, "float64") if narrow else (dtype, "int64", "float64"):
        try:
            after = column_after.astype(wide)
        except (OverflowError, TypeError, ValueError):
            continue
        if not narrow or _equal(after, cells):
            return after
    return column_after


def _equal(column: pd.Series, cells: NDArray[np.object_]) -> bool:
    """Whether no number was rounded."""
    return all(is_missing(a) or a == b for a, b in zip(column.tolist(), cells.tolist(), strict=True))


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
            raise BadInput(where, got_repr(one), f"a mapping with {', '.join(_KEYS)}, or None")
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
