"""What the studio's solving processes are asked; each function takes one person's problem."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from milp_recourse.errors import Unsupported
from milp_recourse.formats.schema_features import preferences_to_dict
from milp_recourse.judge import conclude
from milp_recourse.judge.conclude import Proposal
from milp_recourse.preferences import Interview
from milp_recourse.preferences.question import Option
from milp_recourse.problem.asked_model import AskedModel
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.options import Options
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Result, Status
from milp_recourse.questions import regions
from milp_recourse.questions.choices import Choices, choices
from milp_recourse.questions.reasons import reasons
from milp_recourse.questions.solve import backend_for, solve, solve_as_finished
from milp_recourse.questions.why import Why, why
from milp_recourse.questions.workers import Workers
from milp_recourse.reports.pages.gather import detailed
from milp_recourse.reports.view import Person, changes_of, person_of
from milp_recourse.studio.earlier_answers import EarlierAnswers

SLICES = (1.0, 4.0, 15.0, 40.0)
"""Seconds of the searches for one answer, one after the other until one ends by itself: whoever stops the
search has the answer of the last one that is complete."""

SECONDS = 20.0
"""The most time for each other question."""

EACH = 3.0
"""The most time for one person of a population's table."""

MOST_LEVERS = 24
"""With more levers, only single ones are tried by themselves, not pairs."""

Tell = Callable[[str, Any], bool]
"""Sends what is known so far ("bound": (cost, bound); "so far": an answer); False: nobody waits any more."""


class Stopped(Exception):
    """Nobody waits for the answer any more."""


@dataclass(frozen=True)
class Answer:
    """The cheapest way within a person's limits."""

    person: Person
    result: Result


@dataclass(frozen=True)
class Pinned:
    """An answer that is compared with others, and the one within the limits that the person came with."""

    own: Answer
    start: Answer


@dataclass(frozen=True)
class Ways:
    """Ways that differ, and sets of levers with what is proven about acting on these alone."""

    plans: tuple[Answer, ...]
    exhausted: bool
    alone: tuple[tuple[tuple[str, ...], Result], ...]
    document: Mapping[str, Any]


@dataclass(frozen=True)
class Asked:
    """An interview's state: the next question with what its sides change, and what is recommended by now."""

    kind: str | None
    sides: tuple[Person, ...]
    levers: tuple[str, ...]
    answers: tuple[str, ...]
    given: int
    best: Answer
    most: float | None
    attained: float | None
    learned: Preferences
    document: Mapping[str, Any] | None


def answer(instance: Instance, tell: Tell) -> Answer:
    """The cheapest way; its bound is told while it is searched for, and each complete search's answer.

    Raises
    ------
    Stopped
        Nobody waits any more.
    """
    if (known := _earlier.about(instance)) is not None:
        return _answer(instance, known)
    one = Population.of(instance, [instance.factual], [instance.preferences], {})
    name = backend_for(one).name

    def watch(cost: float, bound: float) -> None:
        if not tell("bound", (cost if math.isfinite(cost) else None, bound)):
            raise Stopped

    for seconds in SLICES:
        options = Options(seconds, others=True, explain=True, watch=watch)
        [(_, result)] = solve_as_finished(one, name, options, [0], Workers())
        found = _answer(instance, result)
        _earlier.keep(instance, result)
        if result.status is not Status.LIMIT or not tell("so far", found):
            break
    return found


_earlier = EarlierAnswers()


def unsettled(instance: Instance) -> Answer:
    """The answer of a search that was stopped before it knew anything."""
    nothing = Proposal(None, 0.0, message="the search was stopped")
    return _answer(instance, conclude(instance, nothing, "", 0.0))


def proof(instance: Instance, tell: Tell) -> Result:
    """The answer with its certificate."""
    return solve(instance, time_limit=SLICES[-1], certificates=True)


def reasons_why(instance: Instance, tell: Tell) -> Why:
    """What each limit costs, or which limits leave no way."""
    return _without_problem(why(instance, time_limit=SECONDS))


def _without_problem(found: Why) -> Why:
    """Whoever asked has the problem; a model may be large."""
    return replace(found, instance=None)  # type: ignore[arg-type]


def ways(instance: Instance, tell: Tell) -> Ways:
    """Up to four ways that differ, and what single levers and pairs of them can do alone."""
    found = choices(instance, count=4, time_limit=SECONDS)
    most = 2 if len(instance.levers) <= MOST_LEVERS else 1
    alone = [(one.levers, one.result) for one in reasons(instance, most, time_limit=SECONDS)]
    plans = tuple(_answer(instance, one.result) for one in _with_actions(found))
    return Ways(plans, found.exhausted, tuple(alone), found.to_dict())


def _with_actions(found: Choices) -> list[Any]:
    return [one for one in found.choices if one.result.action is not None]


def interview(instance: Instance, tell: Tell, answers: Sequence[str] = (), budget: int = 10) -> Asked:
    """The state of an interview after these answers."""
    dialogue = _dialogue(instance, budget, tuple(answers))
    question, result = dialogue.ask(), dialogue.recommend()
    regret = None if not result.action else dialogue.regret(result, most_solved=64)
    learned = dialogue.problem()
    sides = () if question is None else (question.left, question.right)
    return Asked(
        kind=None if question is None else question.kind,
        sides=tuple(_side(instance, side) for side in sides if side is not None),
        levers=() if question is None else question.levers,
        answers=() if question is None else question.answers,
        given=len(dialogue.answers),
        best=_answer(learned, result),
        most=None if regret is None or math.isinf(regret.most) else regret.cheaper,
        attained=None if regret is None else 1 - 1 / (1 + regret.attained),
        learned=learned.preferences,
        document=None if isinstance(instance.classifier, AskedModel) else dialogue.to_dict(),
    )


def _dialogue(instance: Instance, budget: int, answers: tuple[str, ...]) -> Interview:
    """The interview with these answers; one that was just asked about goes on where it was."""
    own = preferences_to_dict(instance.preferences, instance.features)
    key = repr((own, dict(instance.factual), budget))
    kept = _kept.pop(key, None)
    if kept is None or [given for _, given in kept.answers] != list(answers[: len(kept.answers)]):
        kept = Interview(instance, budget=budget, time_limit=SECONDS)
    for given in answers[len(kept.answers) :]:
        kept.tell(given)
    _kept.clear()
    _kept[key] = kept
    return kept


_kept: dict[str, Interview] = {}


def row(instance: Instance, tell: Tell) -> tuple[Answer, Why | None]:
    """A person of the population's table: the answer, and where there is no way, why."""
    result = solve(instance, time_limit=EACH)
    explained = why(instance, time_limit=EACH) if result.status is Status.INFEASIBLE else None
    return _answer(instance, result), None if explained is None else _without_problem(explained)


def region(instance: Instance, tell: Tell) -> Mapping[str, Any] | None:
    """The box around the action in which everything is accepted, as a ``regions-1`` document; None where none
    is proven."""
    with suppress(Unsupported):
        result = solve(instance, time_limit=EACH)
        if result.action:
            found = regions.region(instance, instance.numbers(result.action), time_limit=SECONDS / 2)
            document: Mapping[str, Any] = found.to_dict()
            return document if found.proven else None
    return None


def _answer(instance: Instance, result: Result) -> Answer:
    return Answer(detailed(person_of(result, instance), instance), replace(result, evidence=None))


def _side(instance: Instance, shown: Option) -> Person:
    cost = float(instance.cost_of(shown.numbers))
    changes = changes_of(instance, shown.action, shown.counterfactual)
    return detailed(Person("", "found", cost, features=changes), instance)


TASKS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "answer": answer,
        "proof": proof,
        "why": reasons_why,
        "ways": ways,
        "interview": interview,
        "row": row,
        "region": region,
    }
)
"""By name, what can be asked."""
