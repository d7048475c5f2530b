"""The page, and the fragment, about a population: counts, plots, and a table that can be searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from milp_recourse.reports.pages import overview
from milp_recourse.reports.pages.html import el, join, json_island
from milp_recourse.reports.pages.people_table import people_table, table_data
from milp_recourse.reports.pages.person import Person
from milp_recourse.reports.pages.person_page import pill, value
from milp_recourse.reports.pages.shell import asset, document, facts_card, fragment, table_head
from milp_recourse.reports.pages.values import shown

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
    answers = overview.answers_of(people)
    body = el(
        "article",
        el(
            "header",
            el("p", title, class_="eyebrow"),
            el("h1", overview.headline(answers)),
            el("p", overview.lead(answers), class_="lead"),
            class_="top",
        ),
        overview.tiles(answers),
        el("div", overview.cost_card(answers), overview.feature_card(answers), class_="pair"),
        overview.group_card(answers),
        people_table(answers),
        facts_card("What the answers rest on", dict(facts)),
        json_island(table_data(answers), "data"),
    )
    return document(title, body, asset("population.js"))


def population_fragment(people: Sequence[Person]) -> str:
    """Counts, plots and the first rows, as HTML without script for a notebook's cell.

    Raises
    ------
    ValueError
        ``people`` is empty, or a person's status is not among those of results.
    """
    answers = overview.answers_of(people)
    head = table_head("Person", "Answer", "Cost", "Changes")
    rows = (
        el(
            "tr",
            el("th", person.id, scope="row"),
            el("td", pill(kind)),
            el("td", None if person.cost is None else value(person.cost, shown(person.cost))),
            el("td", ", ".join(c.called for c in person.caused("action"))),
        )
        for person, kind in answers[:FIRST_ROWS]
    )
    rest = len(answers) - FIRST_ROWS
    more = el("p", f"and {rest} more", class_="note") if rest > 0 else None
    lines = [
        el("p", el("strong", overview.headline(answers))),
        el("p", overview.lead(answers), class_="note"),
    ]
    plots = el("div", overview.cost_card(answers), overview.feature_card(answers), class_="pair")
    return fragment(
        join(*lines, overview.outcome_bar(answers), plots, el("table", head, el("tbody", *rows)), more)
    )
