"""Populations: the problems of many applicants of one model, as one immutable statement.

Applicants' values are read strictly, and errors are kept per applicant.
"""

from __future__ import annotations

import math
import operator
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import BadInput
from milp_recourse.problem.conditions import Condition, meaning
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature, build_factual
from milp_recourse.problem.instance import Instance, Preferences, check_person

if TYPE_CHECKING:
    import pandas as pd

Person = Mapping[str, Any]
"""Values by feature, as a file or a table gives them."""

ID = "id"
"""Column of a factuals CSV with the applicants' own identifiers, unless a feature is called so."""


@dataclass(frozen=True)
class Population:
    """Many applicants of one model: applicant k is ``template`` with the k-th factual and preferences.

    ``population[k]`` is an :class:`Instance`, and a slice is a population.

    Parameters
    ----------
    template
        An instance of any applicant; only its model side is used, not its factual and preferences.
    factuals, preferences
        One per applicant.
    unreadable
        The errors of the applicants who could not be read, by index. ``population[k]`` raises theirs, and
        their entries in ``factuals`` are meaningless.
    ids
        The applicants' own identifiers, if the factuals came with any.
    margins
        Each applicant's margin in place of the template's; None where all have that.
    """

    template: Instance
    factuals: Sequence[Mapping[str, float]]
    preferences: tuple[Preferences, ...]
    unreadable: Mapping[int, BadInput] = field(default_factory=dict)
    ids: tuple[str, ...] | None = None
    margins: tuple[float, ...] | None = None

    @staticmethod
    def of(
        model: Instance,
        factuals: Sequence[Mapping[str, float]],
        preferences: Sequence[Preferences],
        unreadable: Mapping[int, BadInput],
        ids: tuple[str, ...] | None = None,
        margins: Sequence[float] | None = None,
        **changes: Any,
    ) -> Population:
        """The population of a model, whose template is the first applicant who can be read.

        Parameters
        ----------
        margins
            Each applicant's margin; None: all have the model's. If all who can be read have the same, it
            becomes the template's; else the template's is 0.
        changes
            Fields of the model to replace, by name.

        Raises
        ------
        BadInput
            Nobody can be read; the error is that of the first applicant.
        """
        if len(unreadable) == len(factuals):
            raise unreadable[min(unreadable)]
        first = next(k for k in range(len(factuals)) if k not in unreadable)
        own = {"factual": factuals[first], "preferences": preferences[first], "reference": None, **changes}
        if margins is not None:
            known = {margin for k, margin in enumerate(margins) if k not in unreadable}
            own["accept"] = replace(model.accept, margin=known.pop() if len(known) == 1 else 0.0)
            margins = tuple(margins) if known else None
        return Population(replace(model, **own), factuals, tuple(preferences), unreadable, ids, margins)

    @staticmethod
    def from_frame(
        frame: pd.DataFrame,
        model: Instance | Population,
        preferences: Preferences | Sequence[Preferences] | None = None,
        id: str | None = None,
    ) -> Population:
        """One applicant per row of a pandas DataFrame, for the model of an instance or of a population.

        Parameters
        ----------
        frame
            A column per feature, in any order: numbers, labels as text, nan where missing; others ignored.
        model
            Features, causal model, classifier, acceptance (the largest margin of a population that has one
            for each applicant) and cost.
        preferences
            One for everybody or one per row; None takes those of ``model``.
        id
            Column with the applicants' identifiers; None takes the column ``id``, unless there is none or a
            feature is called so.

        Returns
        -------
        Population
            Rows that cannot be read are in :attr:`unreadable`, with an error that names the row's label.

        Raises
        ------
        BadInput
            A column is missing or there twice, ``id`` is no column, no row can be read, or the number of
            preferences is neither 1 nor the number of rows.
        """
        template = model.template if isinstance(model, Population) else model
        names = [f.name for f in template.features]
        columns = list(frame.columns)
        twice = [name for name in names if columns.count(name) > 1]
        missing = [name for name in names if name not in columns]
        for what, found in (("columns twice", twice), ("no column", missing)):
            if found:
                raise BadInput("frame", f"{what} {', '.join(map(repr, found))}", "the features, each once")
        if id is not None and id not in columns:
            raise BadInput("id", id, "the name of a column: " + ", ".join(map(str, columns)))
        if not len(frame):
            raise BadInput("frame", "no rows", "at least one applicant")
        own = [preferences] if isinstance(preferences, Preferences) else preferences
        own = [template.preferences] if own is None else list(own)
        if len(own) == 1:
            own = own * len(frame)
        if len(own) != len(frame):
            raise BadInput("preferences", f"{len(own)}", f"one for all, or one per row ({len(frame)})")
        table, unreadable = as_table(people_in(frame, names), template)
        unreadable |= undefined_values(
            template.features, template.conditions, table, own, unreadable, template.cost
        )
        if id is None and ID in columns and ID not in names:
            id = ID
        ids = None if id is None else tuple(map(str, frame[id]))
        margins = getattr(model, "margins", None)
        all_have = None if margins is None else [max(margins)] * len(frame)
        return Population.of(template, table, own, unreadable, ids, all_have)

    def __repr__(self) -> str:
        """Number of applicants, of those who could not be read, and the classifier."""
        unread = f", {len(self.unreadable)} unreadable" if self.unreadable else ""
        return f"Population({len(self)} applicants{unread}, {self.template.classifier!r})"

    def __len__(self) -> int:
        return len(self.factuals)

    def margin_of(self, index: int) -> float:
        """An applicant's margin."""
        return self.template.accept.margin if self.margins is None else self.margins[index]

    @property
    def rows(self) -> NDArray[np.float64]:
        """The factuals, (n, features), labels by index; nan where a value is missing. The rows of applicants
        who could not be read are meaningless."""
        names = [f.name for f in self.template.features]
        return np.array([[one[name] for name in names] for one in self.factuals], dtype=np.float64)

    @overload
    def __getitem__(self, index: int) -> Instance: ...
    @overload
    def __getitem__(self, index: slice) -> Population: ...
    def __getitem__(self, index: int | slice) -> Instance | Population:
        if isinstance(index, slice):
            return self._part(index)
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"applicant {index} of {len(self)}")
        index %= len(self)
        if index in self.unreadable:
            raise self.unreadable[index]
        accept = replace(self.template.accept, margin=self.margin_of(index))
        factual, own = self.factuals[index], self.preferences[index]
        return replace(self.template, accept=accept, factual=factual, preferences=own, reference=None)

    def _part(self, index: slice) -> Population:
        chosen = range(len(self))[index]
        faults = {k: self.unreadable[old] for k, old in enumerate(chosen) if old in self.unreadable}
        return replace(
            self,
            factuals=self.factuals[index],
            preferences=self.preferences[index],
            unreadable=faults,
            ids=None if self.ids is None else self.ids[index],
            margins=None if self.margins is None else self.margins[index],
        )

    def __iter__(self) -> Iterator[Instance]:
        return (self[i] for i in range(len(self)))


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
