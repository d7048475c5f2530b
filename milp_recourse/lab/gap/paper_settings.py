"""The settings of the iCARMA paper's tables, with the numbers it reports for its networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from milp_recourse.elicitation.schemes import ProfileName
from milp_recourse.lab.icarma.sampling import Elicitation, Wishes
from milp_recourse.lab.studies.paper_cells import Cell, scores_of
from milp_recourse.lab.studies.published import Published, printed, published


@dataclass(frozen=True)
class Setting:
    """One row of a table.

    Parameters
    ----------
    table, label
        The number of the table, and the label of the row.
    cell
        The applicants' preferences.
    icarma
        The numbers that the paper reports for iCARMA; costs are means over the valid recommendations, with
        weights 1.
    """

    table: int
    label: str
    cell: Cell
    icarma: Published

    @property
    def oracle(self) -> Published | None:
        """The numbers that the paper prints for its oracle; None for scores, for which it prints none."""
        return published(f"table{self.table}", self.cell)

    @property
    def key(self) -> str:
        """The row's name, for tables and pictures."""
        return f"table {self.table}: {self.label}"


def settings_of(data: str) -> tuple[Setting, ...]:
    """Every row that the paper prints for iCARMA on a data set (``loan`` or ``gmsc``)."""
    found = []
    for row, numbers in printed(data, "iCARMA"):
        profile, elicitation = cast(ProfileName, row["profile"]), cast(Elicitation, row["elicitation"])
        cell = Cell(row["actionable"], row["distribution"], profile, elicitation=elicitation)
        found.append(Setting(int(row["table"]), row["label"], cell, numbers))
    return tuple(found)


SETTINGS = settings_of("loan")


def draw(setting: Setting, size: int, seed: int) -> Wishes:
    """The preferences of ``size`` applicants. Each has one random ranking, or set of scores, in all settings.

    The masks of table 1 are those of :func:`milp_recourse.lab.benchmarks.bench_settings.preferences`.
    """
    streams = {"threshold": 1, "scores": 2, "scores, hard": 3}  # 0: rankings of any distribution

    def generator(purpose: str) -> np.random.Generator:
        return np.random.default_rng([seed, streams.get(purpose, 0)])

    return Wishes.of_scores(scores_of(setting.cell, size, generator), setting.cell.profile)
