"""Finding out what a person wants, question by question; at any time a certified recommendation.

>>> interview = Interview(recourse, person)                            # doctest: +SKIP
>>> while (question := interview.ask()) is not None:                   # doctest: +SKIP
...     interview.tell("left" if prefers(question) else "right")
>>> interview.recommend(), interview.regret().most                     # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast, get_args

from milp_recourse.elicitation.schemes import ALPHA, CostProfile, ProfileName
from milp_recourse.elicitation.weight_cone import LEAST_WEIGHT
from milp_recourse.errors import BadInput, got_text, is_number, nearest
from milp_recourse.formats import instance_from_dict, instance_to_dict, read_any
from milp_recourse.formats.schema_answers import InterviewModel
from milp_recourse.formats.stated import document, validate
from milp_recourse.formats.strict_json import read_json, write_json
from milp_recourse.preferences.cost_parts import check_linear
from milp_recourse.preferences.dialogues import Dialogue, by_awp, by_choices, by_groups, by_ranks, by_ratings
from milp_recourse.preferences.hare_dialogue import BASES, by_exact_hare, by_hare
from milp_recourse.preferences.knowledge import OUTER, Knowledge
from milp_recourse.preferences.learned import SAME_WITHIN, Belief
from milp_recourse.preferences.next_pair import STRATEGIES, Strategy
from milp_recourse.preferences.question import Question
from milp_recourse.preferences.regret import Regret
from milp_recourse.preferences.regret_file import regret_document
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Result
from milp_recourse.questions.prove import prove
from milp_recourse.questions.solve import as_instance, check_options, solve
from milp_recourse.questions.why import Why, why

Method = Literal["choices", "awp", "group", "rank", "likert", "hare", "multi-hare", "exact-hare"]
METHODS: tuple[Method, ...] = get_args(Method)

ABOUT_RECOURSES = ("choices", "awp")
"""Methods that learn weights from choices; the cost must be linear in these."""


class Interview:
    """A dialogue with one person about which recourse they want.

    Parameters
    ----------
    recourse
        A :class:`~milp_recourse.tables.recourse.Recourse`; or an instance, its JSON value, or its file's
        path.
    person
        With a Recourse: the person's row, a Series or a table with one row. With a population: the person's
        index. Else None.
    method
        ``choices``: which of two recourses is easier? ``awp``: the same, then whether the recommended one is
        possible. ``group``, ``rank``, ``likert``: about levers one by one. ``hare``, ``multi-hare``,
        ``exact-hare``: a tournament of recourses.
    budget
        The most questions that are asked.
    seed
        Of everything random; the same answers then give the same questions.
    strategy
        For ``choices`` and ``awp``: how the next pair is chosen, see :mod:`.next_pair`.
    noise
        The scale of a person's errors, as a share of the least cost under equal weights; 0: every answer is
        taken as meant. See :mod:`.learned`.
    same_within
        "About the same" means that the costs differ by at most this share.
    least_weight
        No lever is taken to weigh less than this share of the mean weight.
    cautious
        Use "left is easier" only where right is known to be possible for the person.
    profile
        For ``rank`` and ``likert``: how weights rise with the rank or rating.
    base
        For ``hare`` and ``multi-hare``: where the search begins, ``growing-spheres``, ``wachter`` or
        ``exact``.
    rounds
        Of ``multi-hare`` and ``exact-hare``; None: 5, or fewer where the budget is less than two per round.
    backend, time_limit
        As for :func:`milp_recourse.solve`, for each search.

    Raises
    ------
    BadInput
        An argument is not what is allowed, or the person's row cannot be read.
    Unsupported
        The cost is not linear in the weights, and the method learns weights.
    """

    def __init__(
        self,
        recourse: Any,
        person: Any = None,
        method: Method = "choices",
        budget: int = 10,
        seed: int = 0,
        *,
        strategy: Strategy = "regret",
        noise: float = 0.0,
        same_within: float = SAME_WITHIN,
        least_weight: float = LEAST_WEIGHT,
        cautious: bool = False,
        profile: ProfileName = "linear",
        base: str = "growing-spheres",
        rounds: int | None = None,
        backend: str | None = None,
        time_limit: float | None = None,
    ) -> None:
        _one_of("method", method, METHODS)
        _one_of("strategy", strategy, STRATEGIES)
        _one_of("profile", profile, ("constant", *ALPHA))
        _one_of("base", base, BASES)
        for name, number, least in (("budget", budget, 0), ("seed", seed, 0), ("rounds", rounds or 1, 1)):
            if isinstance(number, bool) or not isinstance(number, int) or number < least:
                raise BadInput(name, got_text(number), f"a whole number, {least} or more")
        for name, share in (("noise", noise), ("same_within", same_within)):
            if not (is_number(share) and share >= 0):
                raise BadInput(name, got_text(share), "a number, 0 or more")
        if not (is_number(least_weight) and 0 < least_weight < 1):
            raise BadInput("least_weight", got_text(least_weight), "a number above 0 and below 1")
        check_options(time_limit)
        self.method, self.budget, self.seed = method, budget, seed
        self.options: dict[str, Any] = {
            "strategy": strategy, "noise": noise, "same_within": same_within, "least_weight": least_weight,
            "cautious": cautious, "profile": profile, "base": base, "rounds": rounds, "backend": backend,
            "time_limit": time_limit,
        }  # fmt: skip
        self.instance, self._model = _problem(recourse, person)
        if method in ABOUT_RECOURSES:
            check_linear(self.instance)
        self.answers: list[tuple[Question, str]] = []
        belief = Belief(noise, same_within, least_weight)
        confirm = None if self._model is None else self._model.confirms
        self._known = Knowledge(self.instance, belief, seed, backend, time_limit, confirm, cautious)
        self._dialogue = self._start()
        self._question: Question | None = None
        self._begun = False

    def _start(self) -> Dialogue:
        known, budget = self._known, self.budget
        strategy, profile = self.options["strategy"], CostProfile.named(self.options["profile"])
        rounds = self.options["rounds"] or max(1, min(5, budget // 2))
        dialogues = {
            "choices": lambda: by_choices(known, budget, strategy),
            "awp": lambda: by_awp(known, budget, strategy),
            "group": lambda: by_groups(known, budget, profile),
            "rank": lambda: by_ranks(known, budget, profile),
            "likert": lambda: by_ratings(known, budget, profile),
            "hare": lambda: by_hare(known, budget, 1, self.options["base"]),
            "multi-hare": lambda: by_hare(known, budget, rounds, self.options["base"]),
            "exact-hare": lambda: by_exact_hare(known, budget, rounds),
        }
        return dialogues[self.method]()

    def ask(self) -> Question | None:
        """The next question; the same one until it is answered. None: nothing is left to ask."""
        if not self._begun:
            self._begun = True
            self._advance(None)
        return self._question

    def tell(self, answer: str) -> None:
        """Answer the question.

        Raises
        ------
        BadInput
            No question is open, or the answer is none of those that the question takes.
        """
        question = self.ask()
        if question is None:
            raise BadInput("answer", got_text(answer), "nothing: no question is left")
        _one_of("answer", answer, question.answers)
        self.answers.append((question, answer))
        self._advance(answer)

    def _advance(self, answer: str | None) -> None:
        try:
            self._question = next(self._dialogue) if answer is None else self._dialogue.send(answer)
        except StopIteration:
            self._question = None

    def preferences(self) -> Preferences:
        """What was learned, for ``certify``: mask, weights with mean 1, ranges and conditions."""
        return self._known.preferences()

    def problem(self) -> Instance:
        """The person's problem under these preferences, whose answer is :meth:`recommend`."""
        return replace(self.instance, preferences=self.preferences(), reference=None)

    def recommend(self, certificates: bool = False) -> Result:
        """The certified optimum under the person's learned preferences; of HARE's methods the winner of the
        tournament, with what it costs and the least cost under these.

        Parameters
        ----------
        certificates
            Whether the result is to carry its certificate (:attr:`Result.evidence`).
        """
        backend, limit = self.options["backend"], self.options["time_limit"]
        chosen = self._chosen()
        result = solve(self.problem(), backend, limit, certificates) if chosen is None else chosen
        return result if self._model is None else self._model.compared(result)

    def _chosen(self) -> Result | None:
        """The recourse that a tournament ended with, and how far it is from the optimum; None without one."""
        chosen = self._known.chosen
        if chosen is None or not self._known.limits.allows(chosen):
            return None
        own = replace(self._known.own(OUTER), weights=self.preferences().weights)
        problem = replace(self.instance, preferences=own, reference=None)
        return prove(problem, chosen, self.options["time_limit"]).result

    def regret(self, result: Result | None = None, most_solved: int | None = None) -> Regret:
        """How much an action can cost beyond the person's own optimum, over all weights the answers allow.

        Parameters
        ----------
        result
            A result with an action; None: the recommended one.
        most_solved
            Stop after this many searches; what is proven by then is returned.

        Raises
        ------
        BadInput
            There is no action.
        """
        result = self.recommend() if result is None else result
        if result.action is None:
            raise BadInput("result", result.status.value, "a result with an action")
        return self._known.regret(result, most_solved)

    def proof(self) -> tuple[dict[str, Any], Instance]:
        """The proven regret of the recommended action as a ``regret-1`` document, and the instance that
        ``verify`` takes with it: the person's problem with every action that may be possible for them.

        Raises
        ------
        BadInput
            There is no action.
        Unsupported
            An optimum that the regret rests on has no certificate.
        """
        result = self.recommend()
        regret, known = self.regret(result), self._known
        own = replace(known.own(OUTER), weights=self.preferences().weights)
        problem = replace(self.instance, preferences=own, reference=None)
        return regret_document(result, regret, known.learned, known.optima(OUTER)), problem

    def why(self) -> Why:
        """Which restrictions, limits that the person stated among them, stand in the way of recourse."""
        return why(self.problem(), self.options["backend"], self.options["time_limit"])

    @property
    def set_aside(self) -> tuple[int, ...]:
        """The numbers, from 0, of the questions whose answers contradict the others and are not used."""
        return self._known.learned.set_aside

    def to_dict(self) -> dict[str, Any]:
        """As an ``interview-1`` document."""
        answers = [{**question.to_dict(), "answer": answer} for question, answer in self.answers]
        problem, options = instance_to_dict(self.instance), dict(self.options)
        return document(InterviewModel, self, problem=problem, options=options, answers=answers)

    def save(self, file: str | Path) -> None:
        """Write the interview: its problem, arguments, questions and answers."""
        write_json(self.to_dict(), file)

    @staticmethod
    def load(file: str | Path, recourse: Any = None, person: Any = None) -> Interview:
        """Read what :meth:`save` wrote, and give the same answers again.

        Parameters
        ----------
        recourse, person
            As for :class:`Interview`, so that the model itself is asked again; None: the problem in the file.

        Raises
        ------
        BadInput
            The file breaks the format, or an answer in it is to another question than is asked now.
        """
        try:
            model = validate(InterviewModel, read_json(file))
            problem = instance_from_dict(model.problem) if recourse is None else recourse
            options = model.options.model_dump()
            interview = Interview(
                problem, person, cast(Method, model.method), model.budget, model.seed, **options
            )
            for k, given in enumerate(model.answers):
                said = given.model_dump(exclude_none=True)
                answer, question = said.pop("answer"), interview.ask()
                if question is None or question.to_dict() != said:
                    asked = "no question" if question is None else f"another question, {question.to_dict()}"
                    raise BadInput(f"answers.{k}", asked, "the question that this version asks")
                interview.tell(answer)
        except BadInput as error:
            raise error.in_file(str(file)) from None
        return interview

    def __repr__(self) -> str:
        open_ = "" if self.ask() is None else ", one question open"
        return f"Interview({self.method}, {len(self.answers)} answers of at most {self.budget}{open_})"


def _one_of(argument: str, given: object, allowed: Sequence[str]) -> None:
    if not (isinstance(given, str) and given in allowed):
        close = nearest(given, allowed)
        raise BadInput(
            argument, got_text(given), ", ".join(allowed) + (f" (is {close!r} meant?)" if close else "")
        )


def _problem(recourse: Any, person: Any) -> tuple[Instance, Any]:
    """The person's problem, and, where a model is at hand, what it says of recourses."""
    if hasattr(recourse, "one_person"):
        model = recourse.one_person(person)
        return model.instance, model
    if isinstance(recourse, str | Path):
        recourse = read_any(recourse)
    if isinstance(recourse, Population):
        if isinstance(person, bool) or not isinstance(person, int) or not 0 <= person < len(recourse):
            raise BadInput("person", got_text(person), f"an index from 0 to {len(recourse) - 1}")
        return recourse[person], None
    if person is not None:
        raise BadInput("person", got_text(person), "None, where the problem is one person's")
    return as_instance(recourse), None
