"""The studio's table of people, and its plots."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from milp_recourse.problem.population import Population
from milp_recourse.reports.pages.overview import Overview
from milp_recourse.reports.pages.person import Outcome, Person, outcome
from milp_recourse.reports.pages.shell import chart
from milp_recourse.studio.studio_says import BADGES, WORDS, Says, local

MOST_ROWS = 1000
"""People in the table; the others are opened by their number."""

MOST_REASONS = 8
"""Reasons in the plot of what stands in the way, the most frequent ones."""

Named = Callable[[int, Person], Person]


def people_said(people: Population, language: str, found: Mapping[str, Any], named: Named) -> dict[str, Any]:
    """Everybody's line, with what is known so far, and when it is complete, what they have in common."""
    rows, persons, says = list[dict[str, Any]](), list[Person](), None
    for index in range(min(len(people), MOST_ROWS)):
        one = found["rows"].get(index)
        if one is None:
            waiting = named(index, Person("", "not-reached"))
            rows.append({"index": index, "id": waiting.id, "kind": "", "what": [], "why": "", "groups": "{}"})
            continue
        says = Says(language, people[index], partial(named, index)) if not isinstance(one, str) else says
        answer, why = (None, None) if isinstance(one, str) else one
        unread = Person("", "bad-input", message=one if answer is None else None)
        person = named(index, unread if answer is None else answer.person)
        persons.append(person)
        reason = one if answer is None else "" if why is None or says is None else says.reason(why)
        rows.append(
            {
                "index": index,
                "id": person.id,
                "kind": BADGES.get(outcome(person), "open_"),
                "what": [c.called for c in person.caused("action", "held")],
                "why": reason,
                "groups": json.dumps(dict(person.group)),
            }
        )
    return {
        "rows": rows,
        "complete": found["complete"],
        "done": len(persons),
        "plots": plots(rows, persons, language),
    }


def plots(
    rows: Sequence[Mapping[str, Any]], people: Sequence[Person], language: str
) -> list[tuple[str, str]]:
    """Headings and charts: how much people have to change, what, and why some have no way."""
    if not people:
        return []
    t, view, made = WORDS[language], Overview.of(people), list[tuple[str, str]]()
    if view.costs:
        says = partial(local, language)
        made.append((t["plot_costs"], chart("histogram", view.costs, t["people"], t["plot_costs"], says)))
    acted = [(name, {"action": count["action"]}) for name, count in view.features if count["action"]]
    if acted:
        heading = t["plot_changes"].format(count=view.acting)
        made.append((heading, chart("frequencies", acted, view.acting, {"action": t["people"]})))
    reasons = Counter(row["why"] for row in rows if row["kind"] == "impossible")
    if reasons:
        some = [(reason, {"held": count}) for reason, count in reasons.most_common(MOST_REASONS)]
        whole = view.counts[Outcome.IMPOSSIBLE]
        heading = t["plot_reasons"].format(count=whole)
        made.append((heading, chart("frequencies", some, whole, {"held": t["people"]})))
    return made
