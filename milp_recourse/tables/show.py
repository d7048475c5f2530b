"""Prepares answers for the HTML pages, on which values that were missing are shown as missing."""

from __future__ import annotations

from dataclasses import replace

from milp_recourse.judge.as_printed import AsPrinted
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Result
from milp_recourse.reports.pages import NOT_REACHED, Change, Person, changes_of, group_of, person_of
from milp_recourse.reports.result_rows import BAD_INPUT
from milp_recourse.tables.people_rows import Rows


def person_at(
    i: int,
    rows: Rows,
    population: Population | None,
    result: Result | None,
    confirmed: bool | None,
    printed: AsPrinted | None,
) -> Person:
    """The person at a position of the rows as the pages show them."""
    name = str(rows.frame.index[i])
    if i in rows.faults:
        return Person(name, BAD_INPUT, message=str(rows.faults[i]))
    assert population is not None  # there is one wherever any row could be read
    problem = population[i]
    if result is None:
        waiting = changes_of(problem, None, None)
        person = Person(name, NOT_REACHED, features=waiting, group=group_of(problem))
    else:
        person = person_of(
            problem, name, result, confirmed, None if printed is None else printed.counterfactual
        )
    missing = {f.name for f, gone in zip(problem.features, rows.missing[i], strict=True) if gone}
    return replace(person, features=[_as_missing(c) if c.feature in missing else c for c in person.features])


def _as_missing(change: Change) -> Change:
    """The change of a feature whose value was missing: None before, and None after if nothing changed it."""
    stays = change.cause in ("unchanged", "held")
    return replace(change, before=None, after=None if stays else change.after)
