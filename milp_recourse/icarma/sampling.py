"""Preferences of many applicants as arrays, given or drawn on the fly (iCARMA paper, appendix B.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from milp_recourse.domain.elicitation import (
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
from milp_recourse.instance import Preferences

Elicitation = Literal["rank", "score"]
Profile = Literal["constant", "linear", "convex", "concave", "mixed"]
LIKERT = 5
"""Likert categories of the paper's Loan experiments; the last means not actionable."""

REFERENCE = CostProfile()
"""Between its w_min and w_max the networks see weights, between its priors they are pulled."""


@dataclass(frozen=True)
class Wishes:
    """What n applicants can and would rather do; columns are the k globally actionable features.

    Attributes
    ----------
    actionable
        Which features each person can act on (the masks), boolean, shape (n, k).
    weights
        w, shape (n, k); 0 where not actionable.
    least
        The least preferred actionable features (several where scores tie), boolean, shape (n, k);
        where nothing but a group is known, all of them.
    sides
        1: the feature may only be raised, or held; -1: only lowered, or held; 0: either. None: either
        for all. Shape (n, k).
    """

    actionable: NDArray[np.bool_]
    weights: NDArray[np.float64]
    least: NDArray[np.bool_]
    sides: NDArray[np.int8] | None = None

    def __len__(self) -> int:
        return len(self.actionable)

    @property
    def height(self) -> NDArray[np.float64]:
        """Where a weight stands between w_min (0) and w_max (1), cut there; 0 where not actionable."""
        height = (self.weights - REFERENCE.w_min) / (REFERENCE.w_max - REFERENCE.w_min)
        return np.where(self.actionable, np.clip(height, 0.0, 1.0), 0.0)

    @property
    def priors(self) -> NDArray[np.float64]:
        """Of the mask network: equation 14, which is linear in the weight; 0 where not actionable."""
        span = REFERENCE.pi_max - REFERENCE.pi_min
        return np.where(self.actionable, REFERENCE.pi_max - span * self.height, 0.0)

    def __getitem__(self, rows: slice | NDArray) -> Wishes:
        sides = None if self.sides is None else self.sides[rows]
        return Wishes(self.actionable[rows], self.weights[rows], self.least[rows], sides)

    def __and__(self, acted: NDArray[np.bool_]) -> Wishes:
        """The same wishes with nothing else actionable."""
        weights = np.where(acted, self.weights, 0.0)
        return Wishes(self.actionable & acted, weights, self.least & acted, self.sides)

    def preferences(self, levers: Sequence[str]) -> tuple[Preferences, ...]:
        """As an instance states them."""
        made = []
        for can, weight in zip(self.actionable, self.weights, strict=True):
            names = tuple(name for name, one in zip(levers, can, strict=True) if one)
            made.append(Preferences(names, dict(zip(names, weight[can].tolist(), strict=True))))
        return tuple(made)

    @staticmethod
    def of(preferences: Sequence[Preferences], levers: Sequence[str]) -> Wishes:
        """What instances state, ranges apart.

        The least preferred features are those of the largest weight.
        """
        can = np.array([[f in p.actionable for f in levers] for p in preferences], dtype=bool)
        can = can.reshape(-1, len(levers))
        raw = np.array([[p.weights.get(f, 1.0) for f in levers] for p in preferences], dtype=float)
        weights = np.where(can, raw.reshape(can.shape), 0.0)
        return Wishes(can, weights, can & (weights == weights.max(axis=-1, keepdims=True, initial=0.0)))

    @staticmethod
    def of_scores(scores: Scores, profile: ProfileName) -> Wishes:
        """From elicited scores of many applicants."""
        weights = CostProfile.named(profile).weights(scores)
        can = scores.actionable
        worst = np.where(can, scores.values, 0).max(axis=-1, keepdims=True)
        return Wishes(can, np.where(can, weights, 0.0), can & (scores.values == worst))


@dataclass(frozen=True)
class PreferenceSampler:
    """Draws preferences of applicants with k globally actionable features.

    Parameters
    ----------
    elicitation
        ``rank``: rankings of the four features; ``score``: each scored alone.
    profile
        How weights follow from them; ``mixed`` draws one of the four profiles per applicant.
    hard
        Whether features may also be not actionable: a threshold drawn from 2..5 (rank), scores from
        1..5 (score); else all four are actionable.
    actionable
        Exactly so many are (rank, hard); None draws the number.
    distribution
        Of the rankings: a column of table 4, which is about Loan's four; with other features ``uniform``.
    levers
        k.

    Raises
    ------
    BadInput
        An unknown elicitation or profile; a column of table 4 for other than four features.
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
        weights = np.stack([one.weights for one in each])[which, np.arange(size)]
        return Wishes(each[0].actionable, weights, each[0].least)


def everyone(size: int, levers: int = len(LOAN_ACTIONABLE)) -> Wishes:
    """CARMA's: all k features actionable for everybody, weights 1."""
    can = np.ones((size, levers), dtype=bool)
    return Wishes(can, can.astype(np.float64), can)
