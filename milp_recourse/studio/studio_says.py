"""Answers about one person in the words of a language, for the templates of the studio."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from milp_recourse.formats.schema_features import preferences_to_dict
from milp_recourse.problem.conditions import condition_text
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Status
from milp_recourse.questions.why import Why
from milp_recourse.reports.answer_kinds import Outcome, outcome
from milp_recourse.reports.letters.letter import contents, heading
from milp_recourse.reports.pages.values import percent, shown
from milp_recourse.reports.view import Change, Person
from milp_recourse.studio.limit_controls import STOPS, stop_of
from milp_recourse.studio.solver_process import Progress
from milp_recourse.studio.studio_tasks import Answer, Asked, Pinned, Ways

WORDS: dict[str, dict[str, str]] = {
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


def local(language: str, value: object, digits: int = 4) -> str:
    """A value in words, a number with the language's signs."""
    return shown(value) if isinstance(value, str) else signed(language, shown(value, digits))


def signed(language: str, number: str) -> str:
    """The text of a number with the language's signs."""
    return number.translate({ord(sign): own for sign, own in SIGNS[language].items()})


class Says:
    """Answers about one person, in words of a language."""

    def __init__(self, language: str, instance: Instance, named: Callable[[Person], Person]) -> None:
        self.language, self.instance, self.named, self.t = language, instance, named, WORDS[language]

    def number(self, value: object) -> str:
        """A value with the language's signs."""
        return local(self.language, value)

    def share(self, part: float) -> str:
        """A share of 1 as percent, rounded up where it is small."""
        return signed(self.language, percent(part, 1.0))

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
        marks = {name: value for name, value in person.said.items() if not isinstance(value, str)}
        return contents(person) | {
            "heading": heading(person, self.language),
            "badge": badge,
            "outcome": kind.name.lower(),
            "what": self.t[what[kind]] if kind in what else None,
            "rests": {"solver": self.t["by_solver"], "asked": self.t["by_asking"]}.get(person.proof or ""),
            "certificate": person.proof == "rigorous"
            and kind in (Outcome.PROVEN, Outcome.IMPOSSIBLE, Outcome.ACCEPTED),
            "marks": json.dumps(marks),
            "state": state_of(self.instance),
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
        f = self.instance.by_name[name]
        whole = f.categories is not None and float(value).is_integer()
        return self.number(f.show(value) if whole else value)

    def restriction(self, id: str) -> str:
        """A limit in words."""
        kind, _, name = id.partition(":")
        if kind == "condition":
            return condition_text(self.instance.all_conditions[int(name)], self.instance.by_name)
        if kind == "plausibility":
            return self.t["plausible"]
        called, feature = self._called(name), self.instance.by_name[name]
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
            take = {"take": state_of(replace(self.instance, preferences=own, reference=None))}
            plans.append(self.answer(plan) | self._size(plan.result.cost, least) | take)
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

    def _size(self, cost: float | None, least: float | None) -> dict[str, Any]:
        """How often the least cost a cost is; None where there is no cost to compare."""
        if cost is None or least is None:
            return {"times": None, "first": False}
        times = cost / least if least else 1.0
        said = self.number(round(times, 2) if times < 10 else round(times))
        return {"times": said, "first": abs(times - 1) <= NEGLIGIBLE}

    def pinned(self, found: Pinned, start: Instance) -> dict[str, Any]:
        """An answer, the limits it was found within, and its size by the weights at the start."""
        own, before, action = self.instance.preferences, start.preferences, found.own.result.action
        limits = [f"mask:{name}" for name in start.levers if name not in own.actionable]
        limits += [f"range:{name}" for name in own.ranges if own.ranges[name] != before.ranges.get(name)]
        first = len(self.instance.conditions)
        limits += [
            f"condition:{first + k}" for k, c in enumerate(own.conditions) if c not in before.conditions
        ]
        stops = self.t["stops"].split("|")
        said = [self.restriction(id) for id in limits]
        for f in self.instance.levers:
            stop = stop_of(self.instance.weight(f), start.weight(f))
            said += [f"{self._called(f)}: {stops[stop]}"] if STOPS[stop] != 1 else []
        usual = replace(self.instance, preferences=replace(own, weights=before.weights), reference=None)
        cost = None if action is None else float(usual.cost_of(usual.numbers(action)))
        return self.answer(found.own) | self._size(cost, found.start.result.cost) | {"limits": said}

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
            "take": state_of(replace(self.instance, preferences=found.learned, reference=None)),
        }


def _verdict(status: Status, action: object) -> str:
    return "alone_yes" if action is not None else "alone_no" if status is Status.INFEASIBLE else "alone_open"


def _plain_changes(name: str) -> list[Any]:
    return [Change(name, None, None)]


def state_of(instance: Instance) -> str:
    """A person's preferences as the JSON that addresses and controls hold."""
    return json.dumps(preferences_to_dict(instance.preferences, instance.features), separators=(",", ":"))
