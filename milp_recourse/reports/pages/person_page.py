"""The page, and the fragment, about one person's answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from milp_recourse.reports.pages.person import Outcome, Person, outcome
from milp_recourse.reports.pages.shell import document, rendered


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
