"""The page, and the fragment, about a population: counts, plots, and a table that can be searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from milp_recourse.reports.pages.html import json_island
from milp_recourse.reports.pages.overview import Overview
from milp_recourse.reports.pages.people_table import table_data
from milp_recourse.reports.pages.person import Outcome, Person
from milp_recourse.reports.pages.shell import asset, document, rendered

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
