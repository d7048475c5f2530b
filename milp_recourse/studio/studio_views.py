"""What the studio's templates get, and the same as JSON: answers, the table of people, its plots."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from milp_recourse.formats.schema_features import preferences_to_dict
from milp_recourse.formats.write import result_to_dict
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.population import Population
from milp_recourse.questions.why import Why
from milp_recourse.reports.answer_kinds import Outcome, outcome
from milp_recourse.reports.letters.letter import amount_said
from milp_recourse.reports.own_words import OwnWords
from milp_recourse.reports.pages.gather import group_of
from milp_recourse.reports.pages.overview import Overview
from milp_recourse.reports.pages.shell import chart
from milp_recourse.reports.view import Person
from milp_recourse.studio.check_on_the_spot import Checked
from milp_recourse.studio.limit_controls import STOPS, controls
from milp_recourse.studio.solver_process import Progress
from milp_recourse.studio.studio_says import BADGES, LANGUAGES, SIGNS, WORDS, Says, local, state_of
from milp_recourse.studio.studio_tasks import Answer, Asked, Pinned, Ways


def data_of(found: Any, instance: Instance) -> Any:
    """An answer of the studio as JSON, in the formats of the files."""
    if isinstance(found, Answer):
        person = found.person
        return {**result_to_dict(found.result), "shown": person.said, "confirmed": person.confirmed}
    if isinstance(found, Pinned):
        return data_of(found.own, instance)
    if isinstance(found, Why):
        return found.to_dict()
    if isinstance(found, Ways):
        alone = [{"levers": list(levers), **_bounds(one)} for levers, one in found.alone]
        return {"choices": found.document, "reasons": alone}
    if isinstance(found, Asked):
        return {
            "interview": found.document,
            "recommended": data_of(found.best, instance),
            "preferences": preferences_to_dict(found.learned, instance.features),
            "regret": {"most": found.most, "attained": found.attained},
        }
    if isinstance(found, Checked):
        return asdict(found)
    if isinstance(found, Progress):
        return {"seconds": found.seconds, "cost": found.cost, "lower_bound": found.bound}
    if found is None or "rows" not in found:
        return found
    rows = {
        k: {"error": one} if isinstance(one, str) else data_of(one[0], instance)
        for k, one in found["rows"].items()
    }
    return {"complete": found["complete"], "people": rows}


def _bounds(result: Any) -> dict[str, Any]:
    return {"status": result.status.value, "cost": result.cost, "lower_bound": result.lower_bound}


class Views:
    """The pages and their parts.

    Parameters
    ----------
    root
        The path in front of every address: the secret.
    """

    def __init__(self, people: Population, root: str) -> None:
        self.people, self.root = people, root
        self._templates = Environment(
            loader=FileSystemLoader(Path(__file__).parent / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=_readable,
        )
        self._templates.filters |= {"said": amount_said, "quoted": lambda text: quote(text, safe="")}

    def population(self, language: str) -> str:
        """The table of people."""
        groups = sorted({name for k in self._first_readable() for name in group_of(self.people[k])})
        return self._render(
            "population", language, count=len(self.people), groups=groups, index=0, page="population"
        )

    def _first_readable(self) -> list[int]:
        return [k for k in range(len(self.people)) if k not in self.people.unreadable][:1]

    def page(self, page: str, language: str, index: int, instance: Instance, id: str, words: OwnWords) -> str:
        """A page about one person."""
        start = self.people[index]
        return self._render(
            page, language, index=index, id=id, page=page, count=len(self.people),
            controls=controls(instance, start, words), stops=STOPS, number=partial(local, language),
            state=state_of(instance), start=state_of(start), changed=state_of(instance) != state_of(start),
        )  # fmt: skip

    def part(self, task: str, language: str, index: int, instance: Instance, found: Any, named: Named) -> str:
        """A part of a page: an answer in words."""
        says = Says(language, instance, partial(named, index))
        if isinstance(found, Answer):
            more: dict[str, Any] = {"answer": says.answer(found)}
        elif isinstance(found, Pinned):
            more = {"plan": says.pinned(found, self.people[index])}
        elif isinstance(found, Why):
            more = says.why(found)
        elif isinstance(found, Ways):
            more = says.ways(found)
        elif isinstance(found, Asked):
            more = says.asked(found)
        elif task == "people":
            more = people_said(self.people, language, found, named)
        else:
            more = {"found": found, "gap": says.gap(found) if isinstance(found, Progress) else None}
        name = "progress" if task == "stop" else task
        return self._render(f"part_{name}", language, index=index, count=len(self.people), **more)

    def _render(self, template: str, language: str, **more: Any) -> str:
        signs = SIGNS[language]
        given = {
            "t": WORDS[language], "language": language, "root": self.root, "decimal": signs["."],
            "other": next(one for one in LANGUAGES if one != language),
            "thousands": signs[","], "missing": WORDS[language]["now_missing"],
        }  # fmt: skip
        return self._templates.get_template(f"{template}.html.j2").render(**given, **more)


def _readable(value: Any) -> Any:
    """Text that can be encoded; what is HTML already stays as it is."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return value.encode("utf-8", "replace").decode("utf-8")
    return value


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
