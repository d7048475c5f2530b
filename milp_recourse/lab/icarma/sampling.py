"""Preferences of many applicants as arrays, given or drawn on the fly (iCARMA paper, appendix B.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from milp_recourse.elicitation.schemes import (
    ALPHA,
    LOAN_ACTIONABLE,
    CostProfile,
    ProfileName,
    RankingDistribution,
    Scores,
    cut,
    sample_rankings,
)
from milp_recourse.errors import BadInput
from milp_recourse.problem.instance import Preferences

Elicitation = Literal["rank", "score"]
Profile = Literal["constant", "linear", "convex", "concave", "mixed"]
LIKERT = 5
"""Likert categories of the paper's Loan experiments; the last means not actionable."""

REFERENCE = CostProfile()
"""Its w_min and w_max scale the networks' inputs."""


@dataclass(frozen=True)
class Wishes:
    """The preferences of n applicants as arrays; columns are the k globally actionable features.

    Attributes
    ----------
    actionable
        Which features each person can act on (the masks), boolean, shape (n, k).
    weights
        w, shape (n, k); 0 where not actionable.
    least
        Which features are the least preferred actionable ones, boolean, shape (n, k); several if scores tie,
        and all actionable ones if their scores are equal.
    sides
        The directions allowed, shape (n, k): 1 if the feature may only be raised or held, -1 if only lowered
        or held, 0 if both. None allows both for all.
    reverse
        As :attr:`height`, but with the profile's reciprocal exponent, shape (n, k); None where not known.
    """

    actionable: NDArray[np.bool_]
    weights: NDArray[np.float64]
    least: NDArray[np.bool_]
    sides: NDArray[np.int8] | None = None
    reverse: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.actionable)

    @property
    def height(self) -> NDArray[np.float64]:
        """The weights, rescaled from w_min..w_max to 0..1 and cut to that; 0 where not actionable."""
        height = (self.weights - REFERENCE.w_min) / (REFERENCE.w_max - REFERENCE.w_min)
        return np.where(self.actionable, np.clip(height, 0.0, 1.0), 0.0)

    def __getitem__(self, rows: slice | NDArray[Any]) -> Wishes:
        sides = None if self.sides is None else self.sides[rows]
        return Wishes(self.actionable[rows], self.weights[rows], self.least[rows], sides)

    def __and__(self, acted: NDArray[np.bool_]) -> Wishes:
        """The preferences with only features in ``acted`` actionable."""
        weights = np.where(acted, self.weights, 0.0)
        return Wishes(self.actionable & acted, weights, self.least & acted, self.sides)

    def preferences(self, levers: Sequence[str]) -> tuple[Preferences, ...]:
        """As preferences of instances, without sides."""
        found = []
        for can, weight in zip(self.actionable, self.weights, strict=True):
            names = tuple(name for name, one in zip(levers, can, strict=True) if one)
            found.append(Preferences(names, dict(zip(names, weight[can].tolist(), strict=True))))
        return tuple(found)

    @staticmethod
    def of(preferences: Sequence[Preferences], levers: Sequence[str]) -> Wishes:
        """From preferences of instances, without ranges.

        The least preferred features are those with the largest weight.
        """
        can = np.array([[f in p.actionable for f in levers] for p in preferences], dtype=bool)
        can = can.reshape(-1, len(levers))
        raw = np.array([[p.weights.get(f, 1.0) for f in levers] for p in preferences], dtype=float)
        weights = np.where(can, raw.reshape(can.shape), 0.0)
        return Wishes(can, weights, can & (weights == weights.max(axis=-1, keepdims=True, initial=0.0)))

    @staticmethod
    def of_scores(scores: Scores, profile: ProfileName) -> Wishes:
        """From the scores of many applicants, with the weights of a profile."""
        weights = CostProfile.named(profile).weights(scores)
        can = scores.actionable
        worst = np.where(can, scores.values, 0).max(axis=-1, keepdims=True)
        alpha = ALPHA.get(profile)
        reverse = np.zeros(can.shape) if alpha is None else np.nan_to_num(scores.reluctance) ** (1 / alpha)
        return Wishes(can, np.where(can, weights, 0.0), can & (scores.values == worst), reverse=reverse)


@dataclass(frozen=True)
class PreferenceSampler:
    """Draws preferences of applicants with k globally actionable features.

    Parameters
    ----------
    elicitation
        ``rank`` draws rankings of the features, ``score`` a score of each feature by itself.
    profile
        How weights follow from ranks or scores; ``mixed`` draws one of the four profiles per applicant.
    hard
        Whether features can also be not actionable: with ``rank`` by a threshold drawn from 2..k+1, with
        ``score`` by scores drawn from 1..5. Otherwise all are actionable.
    actionable
        With ``rank`` and ``hard``, the number of actionable features; None to draw it.
    distribution
        Distribution of the rankings: a column of table 4, which is for Loan's four features, or ``uniform``.
    levers
        Number k of globally actionable features.

    Raises
    ------
    BadInput
        The elicitation or profile is unknown, or a column of table 4 is asked for with other than four
        features.
    """

    elicitation: Elicitation = "rank"
    profile: Profile = "mixed"
    hard: bool = True
    actionable: int | None = None
    distribution: RankingDistribution = "uniform"
    levers: int = len(LOAN_ACTIONABLE)

    def __post_init__(self) -> None:
        if self.elicitation not in get_args(Elicitation):
            raise BadInput("elicitation", self.elicitation, ", ".join(get_args(Elicitation)))
        if self.profile not in get_args(Profile):
            raise BadInput("profile", self.profile, ", ".join(get_args(Profile)))
        if self.levers != len(LOAN_ACTIONABLE) and self.distribution != "uniform":
            raise BadInput("distribution", self.distribution, "uniform: table 4 is about four features")

    def scores(self, size: int, rng: np.random.Generator) -> Scores:
        """Actionability scores of ``size`` applicants."""
        k = self.levers
        names = tuple(f"lever {i}" for i in range(k))
        if self.elicitation == "score":
            highest = LIKERT if self.hard else LIKERT - 1
            return Scores(names, rng.integers(1, highest + 1, (size, k)), LIKERT)
        if k == len(LOAN_ACTIONABLE):
            ranks = sample_rankings(self.distribution, size, rng)
        else:
            ranks = rng.permuted(np.tile(np.arange(1, k + 1), (size, 1)), axis=1)
        if not self.hard:
            return cut(names, ranks, k + 1)
        drawn = rng.integers(2, k + 2, size)
        return cut(names, ranks, drawn if self.actionable is None else self.actionable + 1)

    def draw(self, size: int, rng: np.random.Generator) -> Wishes:
        """Preferences of ``size`` applicants."""
        scores = self.scores(size, rng)
        if self.profile != "mixed":
            return Wishes.of_scores(scores, self.profile)
        names: list[ProfileName] = ["constant", *sorted(ALPHA)]  # type: ignore[list-item]
        each = [Wishes.of_scores(scores, name) for name in names]
        which = rng.integers(0, len(names), size)
        weights, reverse = (
            np.stack([getattr(one, of) for one in each])[which, np.arange(size)]
            for of in ("weights", "reverse")
        )
        return Wishes(each[0].actionable, weights, each[0].least, reverse=reverse)


def everyone(size: int, levers: int = len(LOAN_ACTIONABLE)) -> Wishes:
    """The preferences that CARMA assumes: everybody can act on all k features, with weights 1."""
    can = np.ones((size, levers), dtype=bool)
    return Wishes(can, can.astype(np.float64), can)
