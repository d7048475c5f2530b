"""The summary of a run, as in results.json."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from statistics import fmean, median
from typing import Any

from milp_recourse.formats.schema_answers import RESULTS_FORMAT


class Tally:
    """Counts per status, costs and seconds, added up one applicant at a time; keeps eight bytes per cost."""

    def __init__(self) -> None:
        self.applicants = 0
        self.counts: Counter[str] = Counter()
        self.costs = array("d")
        self.seconds = 0.0

    def add(self, status: str, cost: float | None, seconds: float) -> None:
        """Count an applicant."""
        self.applicants += 1
        self.counts[status] += 1
        self.seconds += seconds
        if cost is not None:
            self.costs.append(cost)

    def summary(self) -> dict[str, Any]:
        """The content of results.json."""
        return {
            "format": RESULTS_FORMAT,
            "applicants": self.applicants,
            "counts": dict(self.counts),
            "cost_mean": fmean(self.costs) if self.costs else None,
            "cost_median": median(self.costs) if self.costs else None,
            "seconds": self.seconds,
        }


def summarise(rows: Iterable[tuple[str, float | None, float]]) -> dict[str, Any]:
    """Counts per status, mean and median cost, seconds.

    Parameters
    ----------
    rows
        (status, cost or None, seconds) per applicant.
    """
    tally = Tally()
    for row in rows:
        tally.add(*row)
    return tally.summary()


def in_words(summary: dict[str, Any]) -> str:
    """One line: ``5 applicants: 3 optimal, 1 infeasible, 1 not solved; cost mean 0.2, median 0.1; 3.2 s``."""
    refused = summary.get("not_solved", 0)
    outcomes = summary["counts"] | ({"not solved": refused} if refused else {})
    counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
    mean, middle = summary["cost_mean"], summary["cost_median"]
    costs = f"; cost mean {mean:.6g}, median {middle:.6g}" if mean is not None else ""
    total = summary["applicants"] + refused
    people = f"{total} applicant{'' if total == 1 else 's'}"
    return f"{people}: {counts}{costs}; {summary['seconds']:.1f} s of solving"
