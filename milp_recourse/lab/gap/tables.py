"""The settings of the iCARMA paper's tables 1, 2, 3 and 5, with the numbers it reports for Loan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from milp_recourse.domain.elicitation import (
    LOAN_ACTIONABLE,
    ProfileName,
    RankingDistribution,
    Scores,
    cut,
    sample_rankings,
)
from milp_recourse.icarma.sampling import LIKERT, Elicitation, Wishes
from milp_recourse.lab.studies.cells import Cell
from milp_recourse.lab.studies.published import Published, published

Row = tuple[float, ...]
"""Validity, plausibility, mean cost and, in tables 2 and 3, hap."""


@dataclass(frozen=True)
class Setting:
    """One row of a table.

    Parameters
    ----------
    table, label
        Where it stands.
    elicitation, profile, distribution
        Of the preferences.
    actionable
        Features each applicant can act on: the highest ranked; None draws 1 to 4 (scores: each
        feature is out with probability 1/5).
    icarma
        What the paper reports.
    """

    table: int
    label: str
    profile: ProfileName = "constant"
    actionable: int | None = 4
    distribution: RankingDistribution = "uniform"
    elicitation: Elicitation = "rank"
    icarma: Row = ()

    @property
    def oracle(self) -> Published | None:
        """What the paper prints for its oracle; None for scores, where it prints nothing."""
        if self.elicitation == "score":
            return None
        actionable = "random" if self.actionable is None else str(self.actionable)
        return published(f"table{self.table}", Cell(actionable, self.distribution, self.profile))

    @property
    def key(self) -> str:
        """Short and unique."""
        return f"table {self.table}: {self.label}"


SETTINGS: tuple[Setting, ...] = (
    Setting(1, "4", icarma=(0.999, 0.886, 0.069)),
    Setting(1, "3", actionable=3, icarma=(0.995, 0.689, 0.073)),
    Setting(1, "2", actionable=2, icarma=(0.991, 0.481, 0.09)),
    Setting(1, "1", actionable=1, icarma=(0.836, 0.258, 0.076)),
    Setting(1, "random", actionable=None, icarma=(0.963, 0.6, 0.08)),
    Setting(2, "constant", icarma=(0.999, 0.886, 0.069, 0.852)),
    Setting(2, "concave", "concave", icarma=(0.998, 0.631, 0.079, 0.044)),
    Setting(2, "linear", "linear", icarma=(0.996, 0.532, 0.077, 0.029)),
    Setting(2, "convex", "convex", icarma=(0.998, 0.541, 0.077, 0.044)),
    Setting(
        2,
        "hard, constant",
        "constant",
        None,
        icarma=(0.963, 0.6, 0.08, 0.859),
    ),
    Setting(
        2,
        "hard, concave",
        "concave",
        None,
        icarma=(0.951, 0.506, 0.081, 0.447),
    ),
    Setting(2, "hard, linear", "linear", None, icarma=(0.958, 0.439, 0.083, 0.44)),
    Setting(
        2,
        "hard, convex",
        "convex",
        None,
        icarma=(0.962, 0.438, 0.085, 0.436),
    ),
    Setting(3, "constant", "constant", elicitation="score", icarma=(0.996, 0.841, 0.067, 0.829)),
    Setting(3, "concave", "concave", elicitation="score", icarma=(0.995, 0.713, 0.073, 0.225)),
    Setting(3, "linear", "linear", elicitation="score", icarma=(0.991, 0.646, 0.074, 0.178)),
    Setting(3, "convex", "convex", elicitation="score", icarma=(0.982, 0.5, 0.081, 0.194)),
    Setting(3, "hard, constant", "constant", None, elicitation="score", icarma=(0.991, 0.712, 0.073, 0.838)),
    Setting(3, "hard, concave", "concave", None, elicitation="score", icarma=(0.99, 0.618, 0.076, 0.415)),
    Setting(3, "hard, linear", "linear", None, elicitation="score", icarma=(0.987, 0.569, 0.078, 0.349)),
    Setting(3, "hard, convex", "convex", None, elicitation="score", icarma=(0.964, 0.443, 0.086, 0.323)),
    Setting(5, "causal 4", "constant", 4, "causal", icarma=(0.998, 0.864, 0.065)),
    Setting(5, "causal 3", "constant", 3, "causal", icarma=(0.997, 0.713, 0.062)),
    Setting(5, "causal 2", "constant", 2, "causal", icarma=(0.997, 0.564, 0.066)),
    Setting(5, "causal 1", "constant", 1, "causal", icarma=(0.886, 0.297, 0.056)),
    Setting(5, "causal random", "constant", None, "causal", icarma=(0.971, 0.611, 0.063)),
    Setting(
        5,
        "reverse-causal 4",
        "constant",
        4,
        "reverse-causal",
        icarma=(1.0, 0.87, 0.074),
    ),
    Setting(
        5,
        "reverse-causal 3",
        "constant",
        3,
        "reverse-causal",
        icarma=(0.992, 0.644, 0.082),
    ),
    Setting(
        5,
        "reverse-causal 2",
        "constant",
        2,
        "reverse-causal",
        icarma=(0.988, 0.399, 0.099),
    ),
    Setting(
        5,
        "reverse-causal 1",
        "constant",
        1,
        "reverse-causal",
        icarma=(0.798, 0.194, 0.099),
    ),
    Setting(
        5,
        "reverse-causal random",
        "constant",
        None,
        "reverse-causal",
        icarma=(0.95, 0.548, 0.089),
    ),
)
"""Every row about Loan, but the model that table 5 trains on reverse-causal preferences."""


def draw(setting: Setting, size: int, seed: int) -> Wishes:
    """The preferences of ``size`` applicants: one seeded ranking each (one set of scores), in every setting.

    The masks of table 1 are those of :func:`milp_recourse.lab.benchmarks.settings.preferences`.
    """
    k = len(LOAN_ACTIONABLE)
    if setting.elicitation == "score":
        stream, highest = (3, LIKERT) if setting.actionable is None else (2, LIKERT - 1)
        values = np.random.default_rng([seed, stream]).integers(1, highest + 1, (size, k))
        return Wishes.of_scores(Scores(LOAN_ACTIONABLE, values, LIKERT), setting.profile)
    ranks = sample_rankings(setting.distribution, size, np.random.default_rng([seed, 0]))
    if setting.actionable is None:
        count = np.random.default_rng([seed, 1]).integers(1, k + 1, size)
    else:
        count = np.full(size, setting.actionable)
    return Wishes.of_scores(cut(LOAN_ACTIONABLE, ranks, count + 1), setting.profile)
