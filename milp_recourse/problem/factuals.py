"""Factual values from files and tables as numbers, read strictly; errors are kept per applicant."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import BadInput, dotted, shown
from milp_recourse.problem.conditions import Condition, meaning
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance, Preferences, check_missing

if TYPE_CHECKING:
    import pandas as pd

Person = Mapping[str, Any]
"""Values by feature, as a file or a table gives them."""

ID = "id"
"""Column of a factuals CSV with the applicants' own identifiers, unless a feature is called so."""


def build_factual(values: Mapping[str, Any], features: Sequence[Feature], path: str) -> dict[str, float]:
    """One applicant's values as numbers.

    Raises
    ------
    BadInput
        A feature is missing or unknown, or :func:`as_number` refuses a value. The error names the path, e.g.
        ``factual.income``.
    """
    names = {f.name for f in features}
    for name in values:
        if name not in names:
            raise BadInput(dotted(path, name), "an unknown feature", ", ".join(f.name for f in features))
    for f in features:
        if f.name not in values:
            raise BadInput(dotted(path, f.name), "nothing", "a value for every feature")
    try:
        return {f.name: as_number(values[f.name], f, f.name, imputed=True) for f in features}
    except BadInput as fault:
        raise BadInput(dotted(path, fault.field), fault.got, fault.allowed) from None


def as_number(value: float | str | None, feature: Feature, path: str, imputed: bool = False) -> float:
    """A file's value of a feature as the number used inside: labels by their index, null as nan.

    Parameters
    ----------
    imputed
        Whether the value of an integer feature may be a fraction, as a mean put in by an imputer is.

    Raises
    ------
    BadInput
        An unknown label, text for a number, or a fraction where a whole number is due.
    """
    if value is None:
        return math.nan
    if feature.categories is not None:
        if not isinstance(value, str) or value not in feature.categories:
            raise BadInput(path, shown(value), "one of " + ", ".join(feature.categories))
        return float(feature.categories.index(value))
    if isinstance(value, str):
        raise BadInput(path, repr(value), "a number")
    if feature.kind == "binary" and value not in (0, 1):
        raise BadInput(path, value, "0 or 1")
    if feature.integral and not float(value).is_integer() and not (imputed and feature.kind == "integer"):
        raise BadInput(path, value, "a whole number")
    return float(value)


def check_abduction(problem: Instance, x: Mapping[str, float], path: str = "factual") -> None:
    """Check that values of features with a sigmoid link lie inside the link's range.

    Only features whose noise is needed are checked: an action can move one of their causes, or the density is
    asked for.

    Raises
    ------
    BadInput
        A value lies outside the range, so that no noise explains it.
    """
    scm = problem.scm
    bounded = {f: m.link for f, m in scm.mechanisms.items() if m.link.kind == "sigmoid"}
    if not bounded:
        return
    moved = scm.descendants({f.name for f in problem.features if f.actionable})
    for name, link in bounded.items():
        if scm.parents(name) & moved or (problem.plausible and name in moved):
            low, high = sorted((link.offset, link.offset + link.scale))
            if not low < x[name] < high:
                raise BadInput(dotted(path, name), x[name], f"a number strictly between {low} and {high}")


def check_person(problem: Instance, x: Mapping[str, float], path: str = "factual") -> None:
    """Check one applicant's numbers against the model: :func:`check_missing` and :func:`check_abduction`.

    Parameters
    ----------
    problem
        The model side; its own factual does not matter.
    """
    check_missing(problem, {name for name, value in x.items() if math.isnan(value)}, path)
    check_abduction(problem, x, path)


def undefined_values(
    features: Sequence[Feature],
    conditions: tuple[Condition, ...],
    factuals: Sequence[Mapping[str, float]],
    preferences: Sequence[Preferences],
    unreadable: Mapping[int, BadInput],
    cost: Cost | None = None,
    path: str = "factuals.{0}: ",
) -> dict[int, BadInput]:
    """The errors of applicants for whose values a condition, or a cost of relative changes, is not defined.

    Applicants in ``unreadable`` are left out. Keys are the applicants' indices.

    Parameters
    ----------
    path
        What a message about a condition begins with; ``{0}`` stands for the applicant's index.
    """
    by_name, faults = {f.name: f for f in features}, dict[int, BadInput]()
    for k, own in enumerate(preferences):
        wanted = conditions + own.conditions
        if k in unreadable:
            continue
        try:
            if cost is not None:
                cost.of_applicant(factuals[k])
            for j, one in enumerate(wanted):
                meaning(one, by_name, factuals[k], f"{path.format(k)}condition {j}")
        except BadInput as error:
            faults[k] = error
    return faults


class FactualTable(Sequence[Mapping[str, float]]):
    """Factuals as one matrix of doubles, so that a million applicants fit into memory.

    Parameters
    ----------
    names
        Features, one per column.
    values
        Row by row, (applicants x features).
    """

    def __init__(self, names: Sequence[str], values: NDArray[np.float64]) -> None:
        self.names, self.values = tuple(names), values

    def __repr__(self) -> str:
        """Number of applicants and of features."""
        return f"FactualTable({len(self.values)} x {len(self.names)})"

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, index: int) -> Mapping[str, float]: ...
    @overload
    def __getitem__(self, index: slice) -> FactualTable: ...
    def __getitem__(self, index: int | slice) -> Mapping[str, float] | FactualTable:
        if isinstance(index, slice):
            return FactualTable(self.names, self.values[index])
        return dict(zip(self.names, self.values[index].tolist(), strict=True))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(self) != len(other):
            return False
        if not all(row.keys() == set(self.names) for row in other):
            return False
        rows = np.array([[row[name] for name in self.names] for row in other]).reshape(self.values.shape)
        return np.array_equal(self.values, rows, equal_nan=True)

    __hash__ = None  # type: ignore[assignment]


def as_table(
    people: Iterable[tuple[str, Person]], problem: Instance, file: str | None = None
) -> tuple[FactualTable, dict[int, BadInput]]:
    """One row per person, of nan where the person cannot be read, and these people's errors by index.

    Parameters
    ----------
    people
        For each person the path that error messages name, and the values.

    Raises
    ------
    BadInput
        Nobody can be read; the error is the first person's.
    """
    names = [f.name for f in problem.features]
    values, unreadable = array("d"), {}
    for k, (path, person) in enumerate(people):
        try:
            row: Mapping[str, float] = _read(person, problem, path)
        except BadInput as error:
            unreadable[k] = error if file is None else error.in_file(file)
            row = dict.fromkeys(names, math.nan)
        values.extend(row[name] for name in names)
    table = FactualTable(names, np.frombuffer(values, dtype=np.float64).reshape(-1, len(names)))
    if len(unreadable) == len(table) > 0:
        raise unreadable[0]
    return table, unreadable


def _read(person: Person, problem: Instance, path: str) -> dict[str, float]:
    factual = build_factual(person, problem.features, path)
    check_person(problem, factual, path)
    return factual


def people_in(frame: pd.DataFrame, names: Sequence[str]) -> Iterator[tuple[str, Person]]:
    """A frame's rows as values by feature, with missing values as None and truth values as 1 and 0.

    Yields for each row the path that error messages name, and the values.
    """
    columns = [frame[name].tolist() for name in names]
    for label, values in zip(frame.index, zip(*columns, strict=True), strict=True):
        yield f"row {label!r}", {name: _plain(value) for name, value in zip(names, values, strict=True)}


def _plain(value: Any) -> Any:
    """None for each of pandas' missing values, 1 and 0 for truth values, text for whatever is no number."""
    if value is None or value != value or type(value).__name__ in ("NAType", "NaTType"):  # noqa: PLR0124
        return None
    if isinstance(value, bool | np.bool_):
        return int(value)
    return value if isinstance(value, int | float | str) else str(value)
