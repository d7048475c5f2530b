"""What the studio's templates get, and the same answers as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from milp_recourse.formats.applicant_json import preferences_to_dict
from milp_recourse.formats.write import result_to_dict
from milp_recourse.problem.conditions import condition_text
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Status
from milp_recourse.questions.why import Why
from milp_recourse.reports.letters.letter import amount_said, contents, heading
from milp_recourse.reports.own_words import OwnWords
from milp_recourse.reports.pages.gather import group_of
from milp_recourse.reports.pages.person import Outcome, Person, outcome
from milp_recourse.reports.pages.values import percent, shown
from milp_recourse.studio.check_on_the_spot import Checked
from milp_recourse.studio.limit_controls import STOPS, controls
from milp_recourse.studio.solver_process import Progress
from milp_recourse.studio.studio_tasks import Answer, Asked, Ways

WORDS = {
    file.stem: json.loads(file.read_text(encoding="utf-8"))
    for file in sorted((Path(__file__).parent / "words").glob("*.json"))
}
"""What the studio says, by language. Braces are filled in; the letters have words of their own."""

LANGUAGES = tuple(WORDS)

SIGNS = {"en": {".": ".", ",": ","}, "de": {".": ",", ",": "\u202f"}}
"""How numbers are written: the signs in place of the decimal point and of the comma between thousands."""

NEGLIGIBLE = 1e-4
"""A part of a change that is not worth a word."""

BADGES = {
    Outcome.PROVEN: "proven",
    Outcome.ACCEPTED: "accepted",
    Outcome.IMPOSSIBLE: "impossible",
    Outcome.UNPROVEN: "unproven",
    Outcome.CONTRADICTED: "contradicted",
    Outcome.UNREADABLE: "unreadable",
}

Named = Callable[[int, Person], Person]


def data_of(found: Any, instance: Instance) -> Any:
    """An answer of the studio as JSON, in the formats of the files."""
    if isinstance(found, Answer):
        shown_values = {c.feature: c.said for c in found.person.caused("action", "held", "effect")}
        return {**result_to_dict(found.result), "shown": shown_values, "confirmed": found.person.confirmed}
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
            controls=controls(instance, start, words), stops=STOPS,
            state=_state(instance), start=_state(start), changed=_state(instance) != _state(start),
        )  # fmt: skip

    def part(self, task: str, language: str, index: int, instance: Instance, found: Any, named: Named) -> str:
        """A part of a page: an answer in words."""
        says = _Says(language, instance, partial(named, index))
        if isinstance(found, Answer):
            more: dict[str, Any] = {"answer": says.answer(found)}
        elif isinstance(found, Why):
            more = says.why(found)
        elif isinstance(found, Ways):
            more = says.ways(found)
        elif isinstance(found, Asked):
            more = says.asked(found)
        elif task == "people":
            more = self._rows(language, found, named)
        else:
            more = {"found": found, "gap": says.gap(found) if isinstance(found, Progress) else None}
        name = "progress" if task == "stop" else task
        return self._render(f"part_{name}", language, index=index, count=len(self.people), **more)

    def _rows(self, language: str, found: Mapping[str, Any], named: Named) -> dict[str, Any]:
        rows = []
        for index, one in sorted(found["rows"].items()):
            if isinstance(one, str):
                person = named(index, Person("", "bad-input", message=one))
                rows.append(
                    {
                        "index": index,
                        "id": person.id,
                        "kind": "unreadable",
                        "what": [],
                        "why": one,
                        "groups": "{}",
                    }
                )
                continue
            answer, why = one
            says = _Says(language, self.people[index], partial(named, index))
            person = named(index, answer.person)
            rows.append(
                {
                    "index": index,
                    "id": person.id,
                    "kind": BADGES.get(outcome(person), "open_"),
                    "what": [c.called for c in person.caused("action", "held")],
                    "why": says.reason(why) if why is not None else "",
                    "groups": json.dumps(dict(person.group)),
                }
            )
        return {"rows": rows, "complete": found["complete"], "done": len(rows)}

    def _render(self, template: str, language: str, **more: Any) -> str:
        signs = SIGNS[language]
        given = {
            "t": WORDS[language], "language": language, "root": self.root, "decimal": signs["."],
            "other": next(one for one in LANGUAGES if one != language),
            "thousands": signs[","], "missing": WORDS[language]["now_missing"],
        }  # fmt: skip
        return self._templates.get_template(f"{template}.html.j2").render(**given, **more)


class _Says:
    """Answers about one person, in words of a language."""

    def __init__(self, language: str, instance: Instance, named: Callable[[Person], Person]) -> None:
        self.language, self.instance, self.named, self.t = language, instance, named, WORDS[language]

    def number(self, value: object) -> str:
        """A value with the language's signs."""
        text = shown(value)
        return text if isinstance(value, str) else self._local(text)

    def _local(self, text: str) -> str:
        return text.translate({ord(sign): own for sign, own in SIGNS[self.language].items()})

    def share(self, part: float) -> str:
        """A share of 1 as percent, rounded up where it is small."""
        return self._local(percent(part, 1.0))

    def gap(self, progress: Progress) -> str | None:
        """How much too much the best action in hand is at most."""
        return self._gap(progress.cost, progress.bound)

    def _gap(self, cost: float | None, bound: float | None) -> str | None:
        if not cost or not bound:
            return None
        more = Fraction(cost) / Fraction(bound) - 1
        return (
            None
            if more > 10
            else self.share(min(float(more), 0.99))
            if more < 1
            else f"{100 * float(more):.0f}%"
        )

    def answer(self, found: Answer) -> dict[str, Any]:
        """An answer for its template."""
        person = self.named(found.person)
        kind = outcome(person)
        badge = self.t[BADGES.get(kind, "open_")]
        if kind is Outcome.UNPROVEN:
            gap = self._gap(person.cost, person.lower_bound)
            badge = self.t["unproven_open"] if gap is None else badge.format(share=gap)
        what = {
            Outcome.IMPOSSIBLE: "impossible_what",
            Outcome.UNPROVEN: "unproven_what",
            Outcome.PROVEN: "proven_what",
        }
        marks = {
            c.feature: c.said
            for c in person.caused("action", "held", "effect")
            if not isinstance(c.said, str)
        }
        return contents(person) | {
            "heading": heading(person, self.language),
            "badge": badge,
            "outcome": kind.name.lower(),
            "what": self.t[what[kind]] if kind in what else None,
            "rests": {"solver": self.t["by_solver"], "asked": self.t["by_asking"]}.get(person.proof or ""),
            "certificate": person.proof == "rigorous"
            and kind in (Outcome.PROVEN, Outcome.IMPOSSIBLE, Outcome.ACCEPTED),
            "marks": json.dumps(marks),
            "state": _state(self.instance),
        }

    def why(self, found: Why) -> dict[str, Any]:
        """What each limit costs, or what stands in the way."""
        cost, lines = found.result.cost, list[dict[str, Any]]()
        if found.result.status is Status.INFEASIBLE:
            for one in found.minimal:
                lines.append(
                    {
                        "words": [self.restriction(id) for id in one.lift],
                        "drop": list(one.lift),
                        "saves": None,
                    }
                )
            for end in found.smallest:
                name = end.id.partition(":")[2]
                if end.id.startswith("range:"):
                    to, start = (self._of(name, value) for value in (end.to, end.start))
                    words = self.t[f"widened_{end.end}"].format(name=self._called(name), to=to, start=start)
                    lines.append({"words": [words], "drop": [f"{end.end}:{name}", end.to], "saves": None})
        elif cost:
            for id, result in found.prices.items():
                less = 1 - (result.cost or 0.0) / cost
                saves = self.share(less) if less > NEGLIGIBLE else None
                lines.append({"words": [self.restriction(id)], "drop": [id], "saves": saves})
        for line in lines:
            line["possible"] = all(self._droppable(one) for one in line["drop"])
            line["drop"] = json.dumps([self._own(one) for one in line["drop"]])
        return {
            "lines": lines,
            "impossible": found.result.status is Status.INFEASIBLE,
            "complete": found.complete,
        }

    def reason(self, found: Why) -> str:
        """The cheapest set of limits whose dropping makes a way possible, in a line."""
        if not found.minimal:
            return self.t["beyond"] if found.complete else self.t["not_settled"]
        return self.t["and"].join(self.restriction(id) for id in found.minimal[0].lift)

    def _droppable(self, id: object) -> bool:
        if not isinstance(id, str):
            return True
        kind, _, name = id.partition(":")
        own = kind == "condition" and int(name) >= len(self.instance.conditions)
        return kind in ("mask", "range", "low", "high") or own

    def _own(self, id: object) -> object:
        """A condition's id by its position among the person's own."""
        if isinstance(id, str) and id.startswith("condition:"):
            return f"condition:{int(id.partition(':')[2]) - len(self.instance.conditions)}"
        return id

    def _called(self, name: str) -> str:
        features = self.named(Person("", "not-reached", features=_plain_changes(name))).features
        return features[0].called

    def _of(self, name: str, value: float) -> str:
        f = self.instance.feature(name)
        whole = f.categories is not None and float(value).is_integer()
        return self.number(f.show(value) if whole else value)

    def restriction(self, id: str) -> str:
        """A limit in words."""
        kind, _, name = id.partition(":")
        if kind == "condition":
            features = {f.name: f for f in self.instance.features}
            return condition_text(self.instance.all_conditions[int(name)], features)
        if kind == "plausibility":
            return self.t["plausible"]
        called, feature = self._called(name), self.instance.feature(name)
        if kind == "mask":
            return self.t["lock_of"].format(name=called)
        if kind == "monotone":
            return self.t["monotone_up" if feature.monotone == "increase" else "monotone_down"].format(
                name=called
            )
        ends = self.instance.preferences.ranges[name] if kind == "range" else feature.domain or (0.0, 0.0)
        low, high = (self._of(name, end) for end in ends)
        return self.t[f"{kind}_of"].format(name=called, low=low, high=high)

    def ways(self, found: Ways) -> dict[str, Any]:
        """Plans side by side, and what is enough alone."""
        least = found.plans[0].result.cost if found.plans else None
        plans = []
        for plan in found.plans:
            acted = tuple(plan.result.action or ())
            own = replace(self.instance.preferences, actionable=acted)
            times = (plan.result.cost or 0.0) / least if least else 1.0
            plans.append(
                self.answer(plan)
                | {
                    "times": self.number(round(times, 2) if times < 10 else round(times)),
                    "first": times <= 1 + NEGLIGIBLE,
                }
                | {"take": _state(replace(self.instance, preferences=own, reference=None))}
            )
        enough = {levers[0] for levers, one in found.alone if len(levers) == 1 and one.action is not None}
        alone = [
            {
                "levers": [self._called(name) for name in levers],
                "verdict": _verdict(result.status, result.action),
            }
            for levers, result in found.alone
            if len(levers) == 1 or not enough & set(levers)
        ]
        return {"plans": plans, "alone": alone, "exhausted": found.exhausted}

    def asked(self, found: Asked) -> dict[str, Any]:
        """A question with its sides, and the recommendation."""
        most = None if found.most is None else self.share(found.most) if found.most > NEGLIGIBLE else ""
        return {
            "found": found,
            "sides": [contents(self.named(replace(side))) for side in found.sides],
            "levers": [self._called(name) for name in found.levers],
            "best": self.answer(found.best),
            "most": most,
            "attained": self.share(max(0.0, found.attained or 0.0)),
            "take": _state(replace(self.instance, preferences=found.learned, reference=None)),
        }


def _verdict(status: Status, action: object) -> str:
    return "alone_yes" if action is not None else "alone_no" if status is Status.INFEASIBLE else "alone_open"


def _plain_changes(name: str) -> list[Any]:
    from milp_recourse.reports.pages.person import Change

    return [Change(name, None, None)]


def _state(instance: Instance) -> str:
    """A person's preferences as the JSON that addresses and controls hold."""
    return json.dumps(preferences_to_dict(instance.preferences, instance.features), separators=(",", ":"))


def _readable(value: Any) -> Any:
    """Text that can be encoded; what is HTML already stays as it is."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return value.encode("utf-8", "replace").decode("utf-8")
    return value
