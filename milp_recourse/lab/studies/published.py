"""The numbers that the iCARMA paper prints, to stand beside what is computed here.

Source: "individualized CARMA", arXiv 2604.08030, tables 1, 2 and 3 (section 5), 5 and 6 (appendix D), for
Loan and for Give Me Some Credit. ``published.csv`` has all their numbers, except those of the model that
table 5 trains on reverse-causal preferences. No computation uses these numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from milp_recourse.lab.run_table import read_rows
from milp_recourse.lab.studies.paper_cells import Cell

Method = Literal["oracle", "iCARMA"]


@dataclass(frozen=True)
class Published:
    """One printed row; None where the paper prints no such number."""

    validity: float
    plausibility: float
    cost_mean: float
    cost_sd: float | None = None
    hap: float | None = None

    def __iter__(self) -> Iterator[float]:
        """Validity, plausibility, mean cost and, where it is printed, hap."""
        numbers = (self.validity, self.plausibility, self.cost_mean, self.hap)
        return (number for number in numbers if number is not None)


@cache
def printed(data: str, method: Method) -> tuple[tuple[dict[str, str], Published], ...]:
    """The rows about a data set and a method: the columns of ``published.csv`` as text, and the numbers."""
    every = read_rows(Path(__file__).with_suffix(".csv"))
    rows = [row for row in every if (row["data"], row["method"]) == (data, method)]
    names = ("validity", "plausibility", "cost", "cost_sd", "hap")
    return tuple((row, Published(*(float(row[n]) if row[n] else None for n in names))) for row in rows)  # type: ignore[arg-type]


def published(target: str, cell: Cell) -> Published | None:
    """The oracle's printed row for a cell of Loan; None for figures and scores, where there is none.

    The rows of table 6 with plausibility are those of tables 1 and 5.
    """
    if cell.elicitation == "score" or not target.startswith("table"):
        return None
    ranked = target == "table2"
    plausible, profile = "yes" if cell.plausible else "no", cell.profile if ranked else "constant"
    wanted = (cell.actionable, cell.distribution, plausible, profile)
    for row, numbers in printed("loan", "oracle"):
        key = (row["actionable"], row["distribution"], row["plausible"], row["profile"])
        if (row["table"] == "2") is ranked and key == wanted:
            return numbers
    return None
