"""What is known about a person during an interview, and the optima that questions and answers rest on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from milp_recourse.elicitation.personal_limits import Limits
from milp_recourse.elicitation.weight_samples import FloatArray
from milp_recourse.preferences.cost_parts import Parts, check_linear, cost_parts, levers
from milp_recourse.preferences.known_optima import Optima, Optimum, Weights
from milp_recourse.preferences.learned import Belief, Compared, Learned, learn
from milp_recourse.preferences.question import Option, Question, option
from milp_recourse.preferences.regret import Regret, largest_regret
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.result import Result, Status
from milp_recourse.questions.solve import solve

Confirm = Callable[[Sequence[Option]], list[bool]]
"""Says of each recourse whether the model itself accepts it."""

OUTER, NEAR, MIDDLE, INNER = 1.0, 0.9, 0.5, 0.0
"""Where limits are taken to be: just before what was refused, a tenth before it, half way, at what is known
to be possible. What is proven of regret holds for the first. Nothing is asked or recommended beyond the
second: who refuses 6 is not asked about 5.99."""

PATIENCE = 4
"""After so many questions in a row to which everything shown was refused, nothing is asked or recommended
beyond the third: who refuses all that is shown would be led on in steps of a tenth."""

DRAWS = 256
"""Weights that are drawn after each answer: questions and the recommended weights rest on them."""

SOLVED_FIRST, SOLVED_NEXT = 64, 4
"""For so many of them the optimum is found, before the first question and before each other."""


class Knowledge:
    """A person's answers, and what follows from them.

    Parameters
    ----------
    instance
        The problem before the first question.
    belief
        How the person is taken to answer.
    seed
        Of everything random.
    confirm
        The model's own word on a recourse; None: the exact judge and the deployed model decide alone.
    cautious
        Whether "left is easier" is used only where right is known to be possible for the person, because
        they may have chosen left only for a limit that right passes.
    """

    def __init__(
        self,
        instance: Instance,
        belief: Belief,
        seed: int = 0,
        backend: str | None = None,
        time_limit: float | None = None,
        confirm: Confirm | None = None,
        cautious: bool = False,
    ) -> None:
        self.instance, self.belief, self.seed = instance, belief, seed
        self.backend, self.time_limit, self._confirm, self.cautious = backend, time_limit, confirm, cautious
        self.limits = Limits(instance)
        self.refusals = 0
        self.choices: list[tuple[int, Mapping[str, float], Mapping[str, float], str]] = []
        self.stated: dict[str, float] | None = None
        self.cannot: tuple[str, ...] = ()
        self.chosen: dict[str, float] | None = None
        self._order: list[tuple[str, str]] = []
        self._optima: dict[str, Optima] = {}
        self._learned: Learned | None = None
        self._weights: Weights | None = None
        self._looked_at: list[Weights] = []
        self._options: dict[Parts, Option | None] = {}

    # -- answers ---------------------------------------------------------------------------

    def tell(self, number: int, question: Question, answer: str) -> None:
        """Add the answer to a pair or to one recourse."""
        self._forget()
        if question.kind != "lever":
            self.refusals = self.refusals + 1 if answer in ("neither", "no") else 0
        left = question.left.numbers if question.left else {}
        right = question.right.numbers if question.right else {}
        possible = {"left": [left], "right": [right], "same": [left, right], "yes": [left]}
        possible |= {"only-left": [left], "only-right": [right]}
        refused = {"neither": [left, right], "no": [left], "only-left": [right], "only-right": [left]}
        for action in possible.get(answer, ()):
            self.limits = self.limits.with_possible(action)
        for action in refused.get(answer, ()):
            self.limits = self.limits.with_refused(action)
        if answer in ("left", "same"):
            self.choices.append((number, left, right, "same" if answer == "same" else "first"))
        elif answer == "right":
            self.choices.append((number, right, left, "first"))

    def state(self, weights: Mapping[str, float], order: Sequence[tuple[str, str]]) -> None:
        """Take weights that the person stated for the levers, and pairs of levers, the easier one first."""
        self.stated, self._order = dict(weights), list(order)
        self._forget()

    def _forget(self) -> None:
        """Drop what followed from fewer answers."""
        self._learned = self._weights = None
        self.__dict__.pop("draws", None)

    @property
    def compared(self) -> list[Compared]:
        """The answers that say something about weights: those about two recourses that both may be possible
        for the person."""
        names, found = self.levers, []
        for number, first, second, answer in self.choices:
            doubtful = self.cautious and self.limits.in_question(second)
            if doubtful or not self.limits.allows(second):
                continue
            parts = [cost_parts(self.instance, action, names) for action in (first, second)]
            found.append(Compared(parts[0], parts[1], answer, number, (first, second)))
        single = {name: tuple(Fraction(other == name) for other in names) for name in names}
        return found + [Compared(single[a], single[b], "order", -1, (a, b)) for a, b in self._order]

    def part_of_range(self, name: str, value: float) -> float:
        """How far a lever goes, as a share of the way that it can go; 1 for another label."""
        if not self.instance.by_amount(name):
            return 1.0
        low, high = self.instance.levers[name]
        x = self.instance.factual[name]
        return abs(value - x) / ((high - x if value > x else x - low) or 1.0)

    # -- problems --------------------------------------------------------------------------

    @property
    def levers(self) -> tuple[str, ...]:
        """The levers that have weights; a limit that leaves a lever no value takes none away."""
        return tuple(name for name in levers(self.instance) if name not in self.cannot)

    def own(self, share: float) -> Preferences:
        """The person's mask, ranges and conditions, limits taken at ``share`` between possible and
        refused."""
        own = self.instance.preferences
        actionable = tuple(name for name in own.actionable if name not in self.cannot)
        return self.limits.within(replace(own, actionable=actionable), share)

    def problem(self, share: float) -> Instance:
        """The person's problem with these preferences; weights as they were before the first question."""
        return replace(self.instance, preferences=self.own(share), reference=None)

    def optima(self, share: float) -> Optima:
        """Optima of that problem, kept while the limits stay as they are."""
        problem = self.problem(share)
        key = repr(
            (problem.preferences.actionable, problem.preferences.ranges, problem.preferences.conditions)
        )
        if key not in self._optima:
            self._optima[key] = Optima(problem, self.levers, self.backend, self.time_limit)
        return self._optima[key]

    @property
    def _shares(self) -> tuple[float, ...]:
        """Where limits are taken to be, in turn, until recourse exists."""
        return (MIDDLE,) if self.refusals >= PATIENCE else (MIDDLE, NEAR)

    def feasible(self) -> Optima | None:
        """Optima of the first of the problems with middle and near limits for which recourse exists."""
        for share in self._shares:
            optima = self.optima(share)
            [equal] = optima.at([(1.0,) * len(optima.levers)])
            if equal.result.status is not Status.INFEASIBLE:
                return optima
        return None

    # -- weights ---------------------------------------------------------------------------

    @property
    def learned(self) -> Learned:
        """The weights that the answers allow."""
        if self._learned is None:
            self._learned = learn(self.compared, len(self.levers), self.unit, self.belief)
        return self._learned

    @property
    def unit(self) -> Fraction:
        """The least cost under equal weights (1 if there is no recourse); for cost l2 that of its square."""
        optima = self.optima(OUTER)
        [equal] = optima.at([(1.0,) * len(optima.levers)])
        return sum(equal.parts, Fraction(0)) if equal.parts and any(equal.parts) else Fraction(1)

    @cached_property
    def draws(self) -> FloatArray:
        """Weights in proportion to what is known, shape (:data:`DRAWS`, levers)."""
        return self.learned.samples(DRAWS, np.random.default_rng([self.seed, len(self.choices)]))

    def look_at(self, optima: Optima, weights: Sequence[Weights]) -> list[Optimum]:
        """The optima for weights, which questions may show from now on."""
        self._looked_at += weights
        return optima.at(weights)

    def pool(self, *optima: Optima) -> list[Optimum]:
        """What was looked at of these optima, each recourse once, without those that pass a limit.

        Questions rest on these: not on what else was searched for, such as the regret between them."""
        found: dict[Parts, Optimum] = {}
        for one in (one for some in optima for one in some.found(self._looked_at)):
            if one.parts is not None and self.limits.allows(self.instance.numbers(one.result.action or {})):
                found.setdefault(one.parts, one)
        return list(found.values())

    @property
    def weights(self) -> Weights:
        r"""What the person stated; else, with mean 1, the mean of :math:`w / V(w)` over the weights w that
        are still possible.

        V(w) is the least cost under w, of the recourses that were looked at. The optimum under this mean has
        the least expected regret, :math:`E[w \cdot \phi / V(w)] - 1`.
        """
        names = self.levers
        if self.stated is not None:
            return tuple(self.stated.get(name, 1.0) for name in names)
        if len(names) < 2:
            return (1.0,) * len(names)
        if self._weights is None:
            mean = self.draws.mean(axis=0)
            if pool := self.pool(*self._optima.values()):
                costs = self.draws @ np.array([one.phi for one in pool]).T
                mean = (self.draws / np.maximum(costs.min(axis=1), 1e-300)[:, None]).mean(axis=0)
            self._weights = tuple((mean / mean.mean()).tolist())
        return self._weights

    def preferences(self) -> Preferences:
        """What was learned, as preferences: mask, weights, ranges and conditions.

        Limits are taken at what is known to be possible, or, if that leaves no recourse, half way to what was
        refused, or a tenth before it; after :data:`PATIENCE` refusals in a row no further than half way.
        """
        weights = dict(zip(self.levers, self.weights, strict=True))
        for share in (INNER, *self._shares):
            own = self.own(share)
            own = replace(own, weights={**own.weights, **weights})
            found = solve(
                replace(self.instance, preferences=own, reference=None), self.backend, self.time_limit
            )
            if found.status is not Status.INFEASIBLE:
                break
        return own

    def options(self, optima: Sequence[Optimum]) -> list[tuple[Option, Parts]]:
        """The distinct recourses among optima that the model itself confirms, and phi of each."""
        found: dict[Parts, Option] = {}
        for one in optima:
            if one.parts is not None and one.result.action:
                if one.parts not in self._options:
                    action = self.instance.numbers(one.result.action)
                    self._options[one.parts] = option(self.instance, action)
                if (shown := self._options[one.parts]) is not None:
                    found.setdefault(one.parts, shown)
        said = self.confirms(list(found.values()))
        return [(o, parts) for (parts, o), yes in zip(found.items(), said, strict=True) if yes]

    def confirms(self, options: Sequence[Option]) -> list[bool]:
        """Whether the model itself accepts each recourse."""
        return [True] * len(options) if self._confirm is None else self._confirm(options)

    def regret(self, result: Result, most_solved: int | None = None) -> Regret:
        """The largest regret of a result's action over all weights that the answers allow, and all actions
        that pass no limit for certain."""
        check_linear(self.instance)
        optima = self.optima(OUTER)
        parts = cost_parts(self.instance, self.instance.numbers(result.action or {}), optima.levers)
        return largest_regret(parts, self.learned.rows, optima, self.belief.least_weight, most_solved)
