"""Simulated people who answer interviews."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from milp_recourse.preferences import Interview, Question
from milp_recourse.preferences.cost_parts import cost_parts, levers, with_weights
from milp_recourse.problem.instance import Instance


@dataclass
class Person:
    """Someone with weights of their own, limits on single levers, and errors.

    Parameters
    ----------
    limits
        Lever -> the largest change, up or down, that is possible for the person.
    noise
        Scale of logistic errors in units of cost.
    tie
        Costs closer than this share are "about the same".
    """

    instance: Instance
    weights: Mapping[str, float]
    limits: Mapping[str, float] = field(default_factory=dict)
    noise: float = 0.0
    tie: float = 0.0
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def cost(self, action: Mapping[str, float]) -> Fraction:
        """What an action costs the person, exactly; for cost l2 its square."""
        names = levers(self.instance)
        parts = cost_parts(self.instance, action, names)
        return sum((Fraction(self.weights[n]) * p for n, p in zip(names, parts, strict=True)), Fraction(0))

    def can(self, action: Mapping[str, float]) -> bool:
        """Whether an action passes none of the person's limits."""
        factual = self.instance.factual
        return all(abs(v - factual[n]) <= self.limits.get(n, np.inf) for n, v in action.items())

    def problem(self) -> Instance:
        """The instance with the person's weights and limits, whose optimum is what they want."""
        own, ranges = self.instance.preferences, dict(self.instance.preferences.ranges)
        for name, most in self.limits.items():
            x, (low, high) = self.instance.factual[name], self.instance.levers[name]
            ranges[name] = (max(low, x - most), min(high, x + most))
        limited = replace(self.instance, preferences=replace(own, ranges=ranges), reference=None)
        return with_weights(limited, self.weights)

    def answer(self, question: Question) -> str:
        """The answer to a question; to how hard a lever is to change, "1"."""
        if question.kind == "lever" and question.left is not None:
            return "yes" if self.can(question.left.numbers) else "no"
        if question.kind == "lever":
            return "yes" if question.answers == ("yes", "no") else "1"
        if question.kind == "levers":
            one, other = question.levers
            return "left" if self.weights[one] <= self.weights[other] else "right"
        assert question.left is not None
        left = question.left.numbers
        if question.kind == "one":
            return "yes" if self.can(left) else "no"
        assert question.right is not None
        right = question.right.numbers
        able = self.can(left), self.can(right)
        if not all(able):
            return "neither" if not any(able) else "only-left" if able[0] else "only-right"
        a, b = float(self.cost(left)), float(self.cost(right))
        if abs(a - b) <= self.tie * min(a, b):
            return "same"
        error = self.rng.logistic() * self.noise if self.noise else 0.0
        return "left" if a + error < b else "right"

    def interviewed(self, interview: Interview) -> Interview:
        """The interview after the person has answered all questions."""
        while (question := interview.ask()) is not None:
            interview.tell(self.answer(question))
        return interview


def random_weights(instance: Instance, rng: np.random.Generator, least: float = 0.05) -> dict[str, float]:
    """Weights with mean 1, uniform among those of at least ``least``."""
    names = levers(instance)
    drawn = rng.dirichlet(np.ones(len(names))) * len(names) * (1 - least) + least
    return dict(zip(names, drawn.tolist(), strict=True))
