"""Certified optima of one person's problem under many weights, each found once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from milp_recourse.preferences.cost_parts import Parts, cost_parts, levers, with_weights
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result
from milp_recourse.questions.solve import solve_together

FloatArray = NDArray[np.float64]
Weights = tuple[float, ...]


@dataclass(frozen=True)
class Optimum:
    """The least cost under some weights.

    Attributes
    ----------
    weights
        One per lever, as doubles.
    result
        What a back end proved for them.
    parts
        phi of its action; None without one.
    """

    weights: Weights
    result: Result
    parts: Parts | None

    @cached_property
    def phi(self) -> FloatArray:
        """:attr:`parts` in floating point."""
        return np.array(self.parts, dtype=np.float64)

    @property
    def bound(self) -> Fraction:
        """No feasible action costs less under the weights (for cost l2: its square)."""
        return Fraction(self.result.lower_bound or 0.0) ** self.power

    power: int = 1
    """2 where the cost is the root of a linear one, else 1."""


class Optima:
    """The least costs of a problem under weights, as they are asked for.

    Parameters
    ----------
    instance
        The problem; its own weights of levers do not matter.
    names
        The levers that weights are given for; None: all that the problem has.
    backend, time_limit
        As for :func:`milp_recourse.solve`, for each of the searches.
    """

    def __init__(
        self,
        instance: Instance,
        names: tuple[str, ...] | None = None,
        backend: str | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.instance, self._backend, self._time_limit = instance, backend, time_limit
        self.levers = levers(instance) if names is None else names
        self._found: dict[Weights, Optimum] = {}
        self._power = 2 if instance.cost.is_root else 1

    def at(self, weights: Sequence[Weights]) -> list[Optimum]:
        """The optimum for each of the weights; all that are new are searched for together."""
        new = list(dict.fromkeys(w for w in weights if w not in self._found))
        problems = [self.problem(w) for w in new]
        for w, result in zip(new, solve_together(problems, self._backend, self._time_limit), strict=True):
            parts = None
            if result.action is not None:
                parts = cost_parts(self.instance, self.instance.numbers(result.action), self.levers)
            self._found[w] = Optimum(w, result, parts, self._power)
        return [self._found[w] for w in weights]

    def found(self, weights: Sequence[Weights]) -> list[Optimum]:
        """The optimum for each of the weights for which it is known."""
        return [self._found[w] for w in weights if w in self._found]

    def problem(self, weights: Weights) -> Instance:
        """The problem under weights."""
        return with_weights(self.instance, dict(zip(self.levers, weights, strict=True)))

    @property
    def known(self) -> list[Optimum]:
        """All that were found, in the order in which they were asked for."""
        return list(self._found.values())


def doubles_below(weights: Sequence[int | Fraction]) -> Weights:
    """Weights with mean 1 or a little less as doubles, none above the exact weight: what an action costs
    under the doubles, it costs at least under the exact weights."""
    total = Fraction(sum(weights)) / len(weights)
    return tuple(_double_below(Fraction(w) / total) for w in weights)


def _double_below(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, 0.0)
