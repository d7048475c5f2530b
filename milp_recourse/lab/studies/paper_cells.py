"""The *cells* of the paper's tables, one per row: who can act on what, and with which weights.

Source: the iCARMA paper, tables 1, 2, 3, 5 and 6, figures 3 and 4, appendices B.2 and C.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from milp_recourse.elicitation.schemes import (
    LOAN_ACTIONABLE,
    CostProfile,
    ProfileName,
    RankingDistribution,
    Scores,
    by_group,
    cut,
    sample_rankings,
    sample_thresholds,
)
from milp_recourse.elicitation.scores_file import preferences_of
from milp_recourse.lab.icarma.sampling import LIKERT, Elicitation
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.population import Population

Scenario = Literal["non-personalized", "random-assigned", "race-correlated", "income-dependent"]
SCENARIOS: tuple[Scenario, ...] = (
    "non-personalized",
    "random-assigned",
    "race-correlated",
    "income-dependent",
)
"""Figure 4's rules by which applicants get the privileged preference profile."""

_STREAM = {"uniform": 0, "threshold": 1, "causal": 2, "reverse-causal": 3, "privileged": 4}
_STREAM |= {"non-privileged": 5, "race": 6, "random-assigned": 7, "race-correlated": 8}
_STREAM |= {"scores": 9, "scores, hard": 10}


@dataclass(frozen=True)
class Cell:
    """One row of a table: the preferences of every applicant, and whether plausibility is demanded.

    Parameters
    ----------
    actionable
        How many of the highest ranked features can be acted on: "4", "3", "2", "1", or a "random" number.
        With scores: "4", or "random", where each feature is left out with probability 1/5.
    distribution
        The distribution of rankings (table 4); for figure 4, the name of a scenario.
    profile
        How weights grow with rank or score.
    w_max, alpha
        The largest weight; the exponent of the profile (None: the profile's own).
    elicitation
        "rank", or "score": each feature is scored by itself, uniformly (table 3).
    """

    actionable: str
    distribution: str = "uniform"
    profile: ProfileName = "constant"
    plausible: bool = True
    w_max: float = 7.0
    alpha: float | None = None
    elicitation: Elicitation = "rank"

    @property
    def name(self) -> str:
        """A short name, different for different cells."""
        more = [] if self.plausible else ["not-plausible"]
        more += [f"wmax{self.w_max:g}"] if self.w_max != 7.0 else []
        more += [f"alpha{self.alpha:g}"] if self.alpha is not None else []
        more += ["score"] if self.elicitation == "score" else []
        return "/".join([self.distribution, self.actionable, self.profile, *more])

    def cost_profile(self) -> CostProfile:
        """The profile that gives weights from ranks or scores."""
        profile = CostProfile.named(self.profile, w_max=self.w_max)
        return profile if self.alpha is None else replace(profile, alpha=self.alpha)


COUNTS = ("4", "3", "2", "1", "random")
PROFILES: tuple[ProfileName, ...] = ("constant", "concave", "linear", "convex")
BIASED: tuple[RankingDistribution, ...] = ("causal", "reverse-causal")

TABLES: Mapping[str, tuple[Cell, ...]] = {
    "table1": tuple(Cell(count) for count in COUNTS),
    "table2": tuple(Cell(count, profile=p) for count in ("4", "random") for p in PROFILES),
    "table3": tuple(
        Cell(count, profile=p, elicitation="score") for count in ("4", "random") for p in PROFILES
    ),
    "table5": tuple(Cell(count, distribution=d) for d in BIASED for count in COUNTS),
    "table6": tuple(
        Cell(count, distribution=d, plausible=plausible)
        for d in ("uniform", *BIASED)
        for count in ("1", "2")
        for plausible in (False, True)
    ),
    "figure3": tuple(Cell(count) for count in COUNTS),
    "figure4": tuple(
        Cell("4" if s == "non-personalized" else "2", distribution="uniform" if s == SCENARIOS[0] else s)
        for s in SCENARIOS
    ),
}
"""Each target's cells, in the paper's order; the same cell in two tables is solved once."""

SENSITIVITY = (
    *(Cell("4", profile=p, w_max=w) for w in (2.0, 20.0) for p in PROFILES[1:]),
    *(Cell("4", profile="convex", alpha=a) for a in (1.5, 4.0)),
    *(Cell("4", profile="concave", alpha=a) for a in (0.25, 0.75)),
)
"""Cells of table 2 with other values of w_max and alpha, which the paper does not print (grid only)."""


def scores_of(cell: Cell, size: int, generator: Callable[[str], np.random.Generator]) -> Scores:
    """Draw the actionability scores of ``size`` applicants in a cell that is no scenario.

    Parameters
    ----------
    generator
        Returns the random generator for a purpose: ``threshold``, ``scores``, ``scores, hard`` or the name of
        a distribution of rankings.
    """
    if cell.elicitation == "score":
        stream, highest = ("scores", LIKERT - 1) if cell.actionable == "4" else ("scores, hard", LIKERT)
        drawn = generator(stream).integers(1, highest + 1, (size, len(LOAN_ACTIONABLE)))
        return Scores(LOAN_ACTIONABLE, drawn, LIKERT)
    if cell.actionable == "random":
        threshold = sample_thresholds(size, generator("threshold"))
    else:
        threshold = np.full(size, int(cell.actionable) + 1)
    distribution = cast(RankingDistribution, cell.distribution)
    return cut(LOAN_ACTIONABLE, sample_rankings(distribution, size, generator(distribution)), threshold)


@dataclass(frozen=True)
class Draws:
    """Random preferences of a population, all from one seed.

    Parameters
    ----------
    seed
        The same seed and applicants give the same preferences for every target of ``reproduce``.
    """

    seed: int
    population: Population

    def generator(self, stream: str) -> np.random.Generator:
        """The random generator of a purpose: each has its own, so that draws do not depend on others."""
        return np.random.default_rng([self.seed, _STREAM[stream]])

    @property
    def size(self) -> int:
        """The number of applicants."""
        return len(self.population)

    def ranks(self, distribution: RankingDistribution) -> NDArray[np.int64]:
        """One ranking per applicant, the same in every cell of the distribution; shape (n, 4)."""
        return sample_rankings(distribution, self.size, self.generator(distribution))

    def race(self) -> NDArray[np.bool_]:
        """The random attribute of the fairness study, True for "white": equal halves within each gender."""
        gender = np.array([one["gender"] for one in self.population.factuals])
        white = np.zeros(self.size, dtype=bool)
        rng = self.generator("race")
        for value in (0.0, 1.0):
            members = rng.permutation(np.flatnonzero(gender == value))
            white[members[: (len(members) + 1) // 2]] = True
        return white

    def privileged(self, scenario: str) -> NDArray[np.bool_]:
        """Who has the privileged preference profile in one of the scenarios (paper, figure 4)."""
        if scenario == "income-dependent":
            income: NDArray[np.float64] = np.array([one["income"] for one in self.population.factuals])
            return income >= np.quantile(income, 0.75)
        chance = self.generator(scenario).random(self.size)
        if scenario == "random-assigned":
            return chance < 0.5
        return chance < np.where(self.race(), 0.9, 0.05)

    def scores(self, cell: Cell) -> Scores:
        """Actionability scores of every applicant."""
        if cell.distribution in SCENARIOS:
            sides: tuple[RankingDistribution, RankingDistribution] = ("privileged", "non-privileged")
            of = [cut(LOAN_ACTIONABLE, self.ranks(side), int(cell.actionable) + 1) for side in sides]
            return by_group(self.privileged(cell.distribution), *of)
        return scores_of(cell, self.size, self.generator)

    def problems(self, cell: Cell) -> list[Problem]:
        """One problem per applicant, in order."""
        rows = preferences_of(self.scores(cell), cell.cost_profile())
        return [
            Problem(k, one.actionable, tuple(one.weights.values()), cell.plausible)
            for k, one in enumerate(rows)
        ]


@dataclass(frozen=True)
class Problem:
    """One applicant with one mask and one set of weights. Cells with equal problems share the answer."""

    applicant: int
    mask: tuple[str, ...]
    weights: tuple[float, ...]
    plausible: bool

    def preferences(self) -> Preferences:
        """The mask and weights as an instance has them."""
        return Preferences(self.mask, dict(zip(self.mask, self.weights, strict=True)))

    def instance(self, template: Instance, factual: Mapping[str, float]) -> Instance:
        """The problem as an instance; it shares the template's objects, so that batches can be formed."""
        return replace(
            template,
            factual=factual,
            preferences=self.preferences(),
            plausible=self.plausible,
            reference=None,
        )
