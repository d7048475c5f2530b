r"""From answers about pairs to the weights that they allow, and how likely each of these is.

An answer "a is easier than b" is taken to mean :math:`w \cdot \phi(a) \le w \cdot \phi(b)`; "about the same",
that neither costs more than a stated share above the other. People err: with noise :math:`\nu`, the answer a is
given with the probability of a Bradley-Terry model,

.. math:: P(a) = \sigma\left(\frac{w \cdot \phi(b) - w \cdot \phi(a)}{\nu\, c}\right),

w having mean 1 and c being the least cost under equal weights. An answer then still excludes weights, namely
those under which it would have been too unlikely an error: for all n answers together, an error as large as
:math:`\nu c \log(20 n - 1)` happens with probability at most 5%. So the true weights are among those that are
left with probability at least 95%. Without noise they are for certain, if every answer was meant.

Answers that no weights satisfy together are contradictory. Then the fewest are set aside, and are named.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

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
    """

    first: Parts
    second: Parts
    answer: str
    question: int


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
    rows
        Half-spaces, one for an answer and two for "about the same", without those set aside.
    set_aside
        The numbers of the questions whose answers contradict the others.
    middle
        Weights with mean 1 that all kept answers allow, far from all half-spaces' boundaries.
    """

    rows: tuple[Row, ...]
    set_aside: tuple[int, ...]
    middle: FloatArray
    belief: Belief
    differences: FloatArray
    """phi(second) - phi(first) of the kept answers with a choice, in units of nu c; shape (n, k)."""

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
    rows: list[Row] = []
    source: list[Compared] = []
    for one in answers:
        for row in _rows(one, unit, belief, choices):
            if any(row):
                rows.append(row)
                source.append(one)
    kept = np.ones(len(rows), dtype=bool)
    middle = np.ones(levers)
    if rows and levers > 1:
        kept, middle = consistent_weights(_unit(rows, levers), belief.least_weight)
    aside = sorted({one.question for one, keep in zip(source, kept, strict=True) if not keep})
    used = [one for one in answers if one.answer == "first" and one.question not in aside]
    scale = belief.noise * float(unit) or 1.0
    differences = [
        [float(b - a) / scale for a, b in zip(one.first, one.second, strict=True)] for one in used
    ]
    return Learned(
        tuple(row for row, one in zip(rows, source, strict=True) if one.question not in aside),
        tuple(aside),
        middle,
        belief,
        np.array(differences).reshape(len(used), levers),
    )


def _rows(one: Compared, unit: Fraction, belief: Belief, choices: int) -> list[Row]:
    if one.answer == "same":
        more = 1 + Fraction(belief.same_within)
        pairs = (one.first, one.second), (one.second, one.first)
        return [half_space([a - more * b for a, b in zip(*pair, strict=True)]) for pair in pairs]
    if one.answer == "order":
        return [half_space([a - b for a, b in zip(one.first, one.second, strict=True)])]
    error = Fraction(belief.noise * math.log(max(1.0, choices / DOUBT - 1))) * unit / len(one.first)
    return [half_space([a - b - error for a, b in zip(one.first, one.second, strict=True)])]


def _unit(rows: Sequence[Row], levers: int) -> FloatArray:
    """Half-spaces in floating point, the largest coefficient of each 1."""
    found = [[c / max(map(abs, row)) for c in row] for row in rows]
    return np.array(found, dtype=np.float64).reshape(len(found), levers)


def _log_likelihood(differences: FloatArray) -> NDArray:
    return lambda weights: -np.logaddexp(0.0, -(weights @ differences.T)).sum(axis=1)
