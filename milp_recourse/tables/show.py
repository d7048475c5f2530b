"""Prepares answers for the HTML pages, on which values that were missing are shown as missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from milp_recourse.reports.pages import NOT_REACHED, Change, Person, changes_of, group_of, person_of
from milp_recourse.reports.result_rows import BAD_INPUT

if TYPE_CHECKING:
    from milp_recourse.tables.answers import Answers


def people_of(answers: Answers, positions: Sequence[int]) -> list[Person]:
    """The people at these positions as the pages show them."""
    return [_person(answers, i) for i in positions]


def _person(answers: Answers, i: int) -> Person:
    name, result = str(answers.rows.frame.index[i]), answers.results[i]
    if i in answers.rows.faults:
        return Person(name, BAD_INPUT, message=str(answers.rows.faults[i]))
    assert answers.problem is not None  # there is one wherever any row could be read
    problem = answers.problem[i]
    if result is None:
        waiting = changes_of(problem, None, None)
        person = Person(name, NOT_REACHED, features=waiting, group=group_of(problem))
    else:
        person = person_of(problem, name, result, answers.confirmed[i])
    missing = {c.name for k, c in enumerate(answers.columns) if answers.rows.missing[i, k]}
    return replace(person, features=[_as_missing(c) if c.feature in missing else c for c in person.features])


def _as_missing(change: Change) -> Change:
    """The change of a feature whose value was missing: None before, and None after if nothing changed it."""
    stays = change.cause in ("unchanged", "held")
    return replace(change, before=None, after=None if stays else change.after)
