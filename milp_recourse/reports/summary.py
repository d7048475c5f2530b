"""results.json: what a whole run came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from statistics import fmean, median
from typing import Any

from milp_recourse.formats.schema_result import RESULTS_FORMAT


def summarise(rows: Iterable[tuple[str, float | None, float]]) -> dict[str, Any]:
    """Counts per status, mean and median cost, seconds.

    Parameters
    ----------
    rows
        (status, cost or None, seconds) per applicant.
    """
    listed = list(rows)
    costs = [cost for _, cost, _ in listed if cost is not None]
    return {
        "format": RESULTS_FORMAT,
        "applicants": len(listed),
        "counts": dict(Counter(status for status, _, _ in listed)),
        "cost_mean": fmean(costs) if costs else None,
        "cost_median": median(costs) if costs else None,
        "seconds": sum(seconds for _, _, seconds in listed),
    }


def in_words(summary: dict[str, Any]) -> str:
    """One line: ``5 applicants: 3 optimal, 1 infeasible, 1 not solved; cost mean 0.2, median 0.1; 3.2 s``."""
    refused = summary.get("not_solved", 0)
    outcomes = summary["counts"] | ({"not solved": refused} if refused else {})
    counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
    mean, middle = summary["cost_mean"], summary["cost_median"]
    costs = f"; cost mean {mean:.6g}, median {middle:.6g}" if mean is not None else ""
    everyone = summary["applicants"] + refused
    people = f"{everyone} applicant{'' if everyone == 1 else 's'}"
    return f"{people}: {counts}{costs}; {summary['seconds']:.1f} s of solving"
