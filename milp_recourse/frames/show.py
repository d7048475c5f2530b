"""Answers to look at: people as the HTML pages show them, missing values shown as missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from milp_recourse.reports.pages import Change, Person, person_of
from milp_recourse.reports.table import BAD_INPUT
from milp_recourse.result import Status

if TYPE_CHECKING:
    from milp_recourse.frames.answers import Answers


def people_of(answers: Answers, positions: Sequence[int]) -> list[Person]:
    """What the pages show about some of the people."""
    return [_person(answers, i) for i in positions]


def _person(answers: Answers, i: int) -> Person:
    name, result = str(answers.rows.frame.index[i]), answers.results[i]
    if result is None or answers.problem is None:
        status, message = answers.table["status"].iloc[i], answers.table["message"].iloc[i]
        assert status in (BAD_INPUT, Status.LIMIT.value)
        return Person(name, status, message=message)
    person = person_of(answers.problem[i], name, result, answers.confirmed[i])
    gaps = {c.name for k, c in enumerate(answers.columns) if answers.rows.missing[i, k]}
    return replace(person, features=[_as_missing(c) if c.feature in gaps else c for c in person.features])


def _as_missing(change: Change) -> Change:
    """A value that an imputer put in is shown as what it is: missing, and still so where nothing moved it."""
    stays = change.cause in ("unchanged", "held")
    return replace(change, before=None, after=None if stays else change.after)
