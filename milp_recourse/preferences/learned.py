r"""From answers about pairs to the weights that they allow, and how likely each of these is.

An answer "a is easier than b" is taken to mean :math:`w \cdot \phi(a) \le w \cdot \phi(b)`; "about the same",
that neither costs more than a stated share above the other. People err: with noise :math:`\nu`, the answer a
is given with the probability of a Bradley-Terry model,

.. math:: P(a) = \sigma\left(\frac{w \cdot \phi(b) - w \cdot \phi(a)}{\nu\, c}\right),

w having mean 1 and c being the least cost under equal weights. An answer then still excludes weights, namely
those under which it would have been too unlikely an error: for all n answers together, an error as large as
:math:`\nu c \log(20 n - 1)` happens with probability at most 5%. So the true weights are among those that are
left with probability at least 95%. Without noise they are for certain, if every answer was meant.

Answers that no weights satisfy together are contradictory. Then the fewest are set aside, and are named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from milp_recourse.elicitation.weight_cone import Row, half_space
from milp_recourse.elicitation.weight_samples import FloatArray, weight_samples
from milp_recourse.preferences.cost_parts import Parts

SAME_WITHIN = 0.1
"""Two recourses that are "about the same" differ in cost by at most this share of the cheaper one."""

DOUBT = 0.05
"""With noise, the probability that the true weights are excluded is at most this."""


@dataclass(frozen=True)
class Compared:
    """An answer about two recourses.

    Attributes
    ----------
    first, second
        phi of the two.
    answer
        ``first``: the first is easier; ``same``: about the same; ``order``: the first is easier, and stated
        so, which no noise disturbs.
    question
        The number of the question, from 0.
    shown
        The two actions, labels by their index; of an ``order``, the two levers' names.
    """

    first: Parts
    second: Parts
    answer: str
    question: int
    shown: tuple[Any, Any] = ((), ())


@dataclass(frozen=True)
class HalfSpace:
    r"""What an answer says: :math:`w \cdot \phi(left) \le (1 + more)\, w \cdot \phi(right) + plus\, \bar w`.

    Attributes
    ----------
    shown
        As for :class:`Compared`, the left one first.
    row
        The same in whole numbers.
    """

    shown: tuple[Any, Any]
    row: Row
    question: int
    more: float = 0.0
    plus: float = 0.0


@dataclass(frozen=True)
class Belief:
    """How people are taken to answer.

    Attributes
    ----------
    noise
        nu, 0 or more: the scale of errors, as a share of the least cost under equal weights.
    same_within
        The largest relative difference that is called "about the same".
    least_weight
        No lever weighs less than this share of the mean weight.
    """

    noise: float = 0.0
    same_within: float = SAME_WITHIN
    least_weight: float = 0.05


@dataclass(frozen=True)
class Learned:
    """The weights that answers allow.

    Attributes
    ----------
    halves
        What the answers say, two half-spaces for "about the same", without those set aside.
    set_aside
        The numbers of the questions whose answers contradict the others.
    middle
        Weights with mean 1 that all kept answers allow, far from all half-spaces' boundaries.
    """

    halves: tuple[HalfSpace, ...]
    set_aside: tuple[int, ...]
    middle: FloatArray
    belief: Belief
    differences: FloatArray
    """phi(second) - phi(first) of the kept answers with a choice, in units of nu c; shape (n, k)."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """The half-spaces in whole numbers."""
        return tuple(half.row for half in self.halves)

    def samples(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Weights with mean 1, (count, k): uniform where there is no noise, else as likely as they make the
        answers."""
        rows = _unit(self.rows, len(self.middle))
        explain = _log_likelihood(self.differences) if self.belief.noise else None
        return weight_samples(rows, self.belief.least_weight, self.middle, count, rng, explain)


def learn(answers: Sequence[Compared], levers: int, unit: Fraction, belief: Belief) -> Learned:
    """What follows from answers about pairs.

    Parameters
    ----------
    levers
        The number of weights.
    unit
        c, the least cost under equal weights.
    """
    from milp_recourse.solvers.highs.consistent_weights import consistent_weights  # loads HiGHS

    choices = sum(one.answer == "first" for one in answers)
    error = belief.noise * math.log(max(1.0, choices / DOUBT - 1)) * float(unit)
    halves = [half for one in answers for half in _halves(one, error, belief.same_within) if any(half.row)]
    kept = np.ones(len(halves), dtype=bool)
    middle = np.ones(levers)
    if halves and levers > 1:
        rows = _unit([half.row for half in halves], levers)
        kept, middle = consistent_weights(rows, belief.least_weight)
    aside = sorted({half.question for half, keep in zip(halves, kept, strict=True) if not keep})
    used = [one for one in answers if one.answer == "first" and one.question not in aside]
    scale = belief.noise * float(unit) or 1.0
    differences = [[float(b - a) / scale for a, b in zip(one.first, one.second, strict=True)] for one in used]
    return Learned(
        tuple(half for half in halves if half.question not in aside),
        tuple(aside),
        middle,
        belief,
        np.array(differences).reshape(len(used), levers),
    )


def _halves(one: Compared, error: float, same_within: float) -> list[HalfSpace]:
    if one.answer == "same":
        return [
            _half(one.first, one.second, one.shown, one.question, more=same_within),
            _half(one.second, one.first, one.shown[::-1], one.question, more=same_within),
        ]
    plus = error if one.answer == "first" else 0.0
    return [_half(one.first, one.second, one.shown, one.question, plus=plus)]


def _half(
    left: Parts, right: Parts, shown: tuple[Any, Any], question: int, more: float = 0.0, plus: float = 0.0
) -> HalfSpace:
    share = Fraction(plus) / len(left)
    row = half_space([a - (1 + Fraction(more)) * b - share for a, b in zip(left, right, strict=True)])
    return HalfSpace(shown, row, question, more, plus)


def _unit(rows: Sequence[Row], levers: int) -> FloatArray:
    """Half-spaces in floating point, the largest coefficient of each 1."""
    found = [[c / max(map(abs, row)) for c in row] for row in rows]
    return np.array(found, dtype=np.float64).reshape(len(found), levers)


def _log_likelihood(differences: FloatArray) -> Callable[[FloatArray], FloatArray]:
    return lambda weights: -np.logaddexp(0.0, -(weights @ differences.T)).sum(axis=1)
