"""Answers as tables: what was proven for each person, and whether the model's own ``predict`` agrees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from milp_recourse.errors import BadInput
from milp_recourse.judge.as_printed import AsPrinted
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Result, Status
from milp_recourse.reports.own_words import OwnWords
from milp_recourse.reports.view import NOT_REACHED, NUMBERS, Person, changes_of, person_of, unread
from milp_recourse.tables.against_model import Accepts, Compare, rows_after, said_values
from milp_recourse.tables.columns import TableColumn, got_repr, position
from milp_recourse.tables.people_rows import Rows

COLUMNS = ("status", "cost", "lower_bound", "gap", "proof", "confirmed", "message", "seconds")
"""The columns of :attr:`AnsweredPeople.table` that follow from answers alone."""


@dataclass(frozen=True, repr=False)
class AnsweredPeople:
    """People with an answer each, in the order of the people's table.

    Attributes
    ----------
    rows
        The people.
    columns
        The features, and how values of the table become numbers.
    problem
        The population that was solved; None if nobody could be read.
    results
        A result per person; None for a person who could not be read or was not reached.
    confirmed
        Whether the model's own ``predict`` confirms the action; None if there is no action, or if ``predict``
        was not called.
    facts
        Lines of the summary about model, cost and margin.
    options
        Back end, time limit and whether certificates were asked for.
    compare
        :func:`~milp_recourse.tables.against_model.compared_with_model` as a function of ``rows``, ``results``
        and ``population``.
    unit
        How much of the classifier's score one unit of the margin is.
    asked
        The back end that was asked for; None: the default, which may be another one for somebody.
    accepts
        What the model itself says of rows, each asked alone; None if it cannot be asked.
    words
        The user's words for columns, and their units.
    sources
        Where the problem's assumptions come from, for an auditor's file.
    """

    rows: Rows
    columns: Sequence[TableColumn]
    problem: Population | None
    results: Sequence[Result | None]
    confirmed: Sequence[bool | None]
    facts: Mapping[str, str]
    options: Mapping[str, Any]
    compare: Compare
    unit: float = 1.0
    asked: str | None = None
    accepts: Accepts | None = None
    words: OwnWords = field(default_factory=OwnWords)
    sources: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def table(self) -> pd.DataFrame:
        """status, cost, lower_bound, gap, proof, confirmed, message, seconds, margin and shown_cost, indexed
        as people.

        ``margin`` is how far the person's logit must pass the threshold (of trees, the score); nan for people
        who could not be read. ``shown_cost`` is what the values in :attr:`changes` as shown cost, where
        ``cost`` is what the exact ones do.
        """
        said = [None if printed is None else float(printed.cost) for printed in self.printed]
        return self._proven.assign(shown_cost=np.array(said, dtype=np.float64))

    @cached_property
    def _proven(self) -> pd.DataFrame:
        """:attr:`table` without what values cost as shown, for which values to say have to be found."""
        people = [self._row(i) for i in range(len(self))]
        rows = [[getattr(person, name) for name in COLUMNS] for person in people]
        frame = pd.DataFrame(rows, index=self.rows.frame.index, columns=list(COLUMNS))
        frame = frame.astype(dict.fromkeys(NUMBERS, np.float64))
        frame["confirmed"] = pd.array([person.confirmed for person in people], dtype="boolean")
        for name in ("proof", "message"):  # else the dtype would depend on whether all are None
            frame[name] = pd.Series([getattr(p, name) for p in people], index=frame.index, dtype=object)
        margins = [
            None if self.problem is None or i in self.rows.faults else self.problem.margin_of(i) / self.unit
            for i in range(len(self))
        ]
        return frame.assign(margin=np.array(margins, dtype=np.float64))

    def _row(self, i: int) -> Person:
        """The answer of a row of :attr:`table`, in which who was not reached has a ``limit``."""
        person = self._answer(i)
        if person.status == NOT_REACHED:
            message = "interrupted before this person's turn"
            person = replace(person, status=Status.LIMIT.value, lower_bound=0.0, message=message)
        return person if self.results[i] is not None else replace(person, seconds=0.0)

    def _answer(self, i: int, name: str = "", problem: Instance | None = None) -> Person:
        """The view of a person's answer; with their problem, that of their features, too."""
        result = self.results[i]
        if i in self.rows.faults:
            return unread(str(self.rows.faults[i]), name)
        if result is None:
            return Person(name, NOT_REACHED, features=() if problem is None else changes_of(problem))
        return person_of(result, problem, name, self.confirmed[i])

    @property
    def _not_reached(self) -> int:
        """How many people's turn did not come."""
        return sum(one is None and i not in self.rows.faults for i, one in enumerate(self.results))

    @cached_property
    def counterfactuals(self) -> pd.DataFrame:
        """The people's rows after their actions; a person without an action keeps their row."""
        return rows_after(self.rows, self.columns, self.results)

    @cached_property
    def printed(self) -> list[AsPrinted | None]:
        """For each person with an action the values to say: the shortest decimals that the model accepts when
        they are set together (:func:`~milp_recourse.tables.against_model.said_values`)."""
        return said_values(self.rows, self.columns, self.problem, self.results, self.confirmed, self.accepts)

    @cached_property
    def changes(self) -> pd.DataFrame:
        """A row per change, indexed as people: feature, before, after, shown, and cause (``action`` or
        ``effect``).

        ``shown`` is the value to say (:attr:`printed`): shorter than ``after``, and accepted by the model. A
        feature that an action holds is listed too, with ``after`` equal to ``before``.
        """
        rows, people = [], []
        for i, (result, printed) in enumerate(zip(self.results, self.printed, strict=True)):
            if result is None or printed is None or self.problem is None:
                continue
            changes = changes_of(self.problem[i], result.action, result.counterfactual)
            for column, change in zip(self.columns, changes, strict=True):
                if change.cause == "unchanged":
                    continue
                values = (frame[column.key].iloc[i] for frame in (self.rows.frame, self.counterfactuals))
                said = column.value(printed.counterfactual[column.name])
                cause = "effect" if change.cause == "effect" else "action"
                rows.append((column.key, *values, said, cause))
                people.append(i)
        frame = pd.DataFrame(rows, columns=["feature", "before", "after", "shown", "cause"], dtype=object)
        return frame.set_axis(self.rows.frame.index[people], axis=0)

    @cached_property
    def directions(self) -> pd.DataFrame:
        """How often each lever's value was raised, lowered or given another label, and what would forbid it.

        Which direction makes sense is not known from a model: where people are told to do what nobody should
        be, the argument of :class:`~milp_recourse.tables.recourse.Recourse` in the last column forbids it.
        """
        rows = {}
        acted = self.changes[self.changes["cause"] == "action"]
        levers = () if self.problem is None else self.problem.template.preferences.actionable
        for column in (c for c in self.columns if c.name in levers or (acted["feature"] == c.key).any()):
            own = acted[acted["feature"] == column.key]
            up = down = other = 0
            for before, after in zip(own["before"], own["after"], strict=True):
                if column.feature.kind == "categorical" or pd.isna(before):
                    other += before != after
                else:
                    up += column.code(after) > column.code(before)
                    down += column.code(after) < column.code(before)
            key, forbid = column.key, []
            forbid += [f"decrease=[{key!r}]"] if up else []
            forbid += [f"increase=[{key!r}]"] if down else []
            forbid += [f"immutable=[{key!r}]"] if other else []
            rows[key] = {
                "raised": up,
                "lowered": down,
                "relabelled": other,
                "to forbid it": " or ".join(forbid),
            }
        names = ["raised", "lowered", "relabelled", "to forbid it"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=names)

    def summary(self) -> str:
        """A few lines: counts per status, the confirmed actions, costs, and what was proven."""
        table = self._proven
        counts = Counter(table["status"])
        counts["not reached"] = self._not_reached
        counts[Status.LIMIT.value] -= counts["not reached"]
        known = ", ".join(f"{n} {status}" for status, n in counts.items() if n)
        lines = [f"{len(self)} people: {known or 'none'}"]
        acted = table["cost"].notna()
        if acted.any():
            checked = table["confirmed"][acted].dropna()
            share = f"{int(checked.sum())} of {len(checked)} actions"
            confirmed = f"{share} are confirmed by the model's own predict"
            lines.append(confirmed if len(checked) else "the model itself was not asked: give predict")
            lines.append(
                f"cost: median {table['cost'][acted].median():.6g}, mean {table['cost'][acted].mean():.6g}"
            )
        proven = (r for r in self.results if r is not None and r.status is Status.OPTIMAL)
        already = sum(not r.action for r in proven)  # a cost of 0 is not enough: some actions are free
        if already:
            lines.append(f"{already} of them are accepted without any action")
        lines += [f"{name}: {text}" for name, text in self.facts.items()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.summary().splitlines()[0]})"

    def _position(self, person: Hashable) -> int:
        labels = self.rows.frame.index.tolist() if isinstance(person, Hashable) else []
        found = [k for k, label in enumerate(labels) if position([label], person) is not None]
        if len(found) != 1:
            raise BadInput("person", got_repr(person), "a label of the people's index that one person has")
        return found[0]
