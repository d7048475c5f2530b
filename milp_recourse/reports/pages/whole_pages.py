"""Whole pages, and fragments for notebooks: one about a person, one about a population.

A person's shows the answer and its changes; a population's counts, plots and a table to search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from milp_recourse.reports.answer_kinds import Outcome, outcome
from milp_recourse.reports.pages.overview import Overview
from milp_recourse.reports.pages.people_table import table_data
from milp_recourse.reports.pages.shell import asset, document, rendered
from milp_recourse.reports.pages.values import json_island
from milp_recourse.reports.view import Person


def person_page(person: Person, title: str, facts: Mapping[str, str]) -> str:
    """A whole HTML file about one person.

    Parameters
    ----------
    title
        The title, e.g. the name of the population.
    facts
        Facts about the problem in words, by name: model, cost formula, margin, and so on.

    Raises
    ------
    ValueError
        The person's status is not among those of results.
    """
    own: dict[str, Any] = {
        "person": person,
        "kind": outcome(person),
        "changes": Markup(changes_table(person)),
    }
    return document("person", f"{person.id} · {title}", title=title, known=facts, **own)


def person_fragment(person: Person) -> str:
    """The answer, the changes and how sure they are, as HTML without script for a notebook's cell.

    Raises
    ------
    ValueError
        The person's status is not among those of results.
    """
    changes = Markup(changes_table(person, stays=False))
    return rendered("person_fragment", person=person, kind=outcome(person), changes=changes)


def changes_table(person: Person, stays: bool = True) -> str:
    """A table of features before and after, by cause; with ``stays`` another one, folded away where there are
    changes, of those that do not change."""
    stay = person.caused("unchanged") if stays else []
    found = outcome(person) in (Outcome.PROVEN, Outcome.UNPROVEN, Outcome.ACCEPTED)
    moved = (
        ("To change", "", person.caused("action")),
        ("To hold", "acted on at its own value, so that nothing else moves it", person.caused("held")),
        ("Follows by itself", "by the causal model, at no cost", person.caused("effect")),
    )
    still = (
        ("Could have changed, need not" if found else "May change", "", [c for c in stay if c.lever]),
        ("Stays as it is", "not this person's to change", [c for c in stay if not c.lever]),
    )
    parts = [[part for part in some if part[2]] for some in (moved, still)]
    names = [f"{name} ({len(changes)})" for name, _, changes in parts[1]]
    summary = ", ".join([*names[:1], *(name[0].lower() + name[1:] for name in names[1:])])
    return rendered("changes", moved=parts[0], still=parts[1], summary=summary)


WORDS, SIZES = ("any", "yes", "no", "not asked"), ("25", "50", "100", "500")
"""What can be chosen: the model's own word, and how many rows are shown."""
FIRST_ROWS = 20
"""The number of people that a fragment lists."""


def population_page(people: Sequence[Person], title: str, facts: Mapping[str, str]) -> str:
    """A whole HTML file about many people.

    The table draws one page at a time, so that many thousands do not slow it down.

    Parameters
    ----------
    title
        The title.
    facts
        Facts about the problem in words, by name: model, cost formula, margin, and so on.

    Raises
    ------
    ValueError
        ``people`` is empty, or a person's status is not among those of results.
    """
    view = Overview.of(people)
    place = list(Outcome).index
    words, sizes = (list(zip(some, some, strict=True)) for some in (WORDS, SIZES))
    data = json_island(table_data(view.answers), "data")
    shown = {"view": view, "known": facts, "words": words, "sizes": sizes, "place": place, "data": data}
    return document("population", title, asset("population.js"), title=title, **shown)


def population_fragment(people: Sequence[Person]) -> str:
    """Counts, plots and the first rows, as HTML without script for a notebook's cell.

    Raises
    ------
    ValueError
        ``people`` is empty, or a person's status is not among those of results.
    """
    view = Overview.of(people)
    first = view.answers[:FIRST_ROWS]
    return rendered("population_fragment", view=view, first=first, rest=len(people) - FIRST_ROWS)
