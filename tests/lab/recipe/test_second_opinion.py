"""The Loan model written a second time agrees with the references, and would notice if it did not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from milp_recourse.errors import Unsupported
from milp_recourse.instances_path import instances_path
from milp_recourse.lab.recipe.second_opinion import Opinion, sampled, second_opinion, second_opinions, summary

LOAN = instances_path() / "loan"
# one and two actions, plausible and not, feasible and not: those SCIP finishes in a second or two
QUICK = ("loan_121", "loan_122", "loan_126", "loan_130", "loan_142", "loan_149", "loan_150", "loan_153")


def test_references_are_confirmed() -> None:
    found = summary(second_opinions([LOAN / f"{name}.json" for name in QUICK], time_limit=60))
    assert found["verdicts"] == {"agrees": len(QUICK), "contradicts": 0, "open": 0}
    assert 0 < found["infeasible"] < len(QUICK)
    assert found["largest_relative_difference"] < 1e-6


@pytest.mark.parametrize(("factor", "status"), [(0.99, "optimal"), (1.01, "optimal"), (None, "infeasible")])
def test_a_wrong_reference_is_noticed(tmp_path: Path, factor: float | None, status: str) -> None:
    data = json.loads((LOAN / "loan_122.json").read_text())
    data["classifier"] = json.loads((LOAN / "classifier.json").read_text())
    data["reference"]["status"] = status
    data["reference"]["cost"] = None if factor is None else data["reference"]["cost"] * factor
    file = tmp_path / "loan_999.json"
    file.write_text(json.dumps(data))
    assert second_opinion(file, 60).verdict == "contradicts"


def test_a_limit_is_open_unless_its_bounds_contradict() -> None:
    def verdict(cost: float | None, bound: float | None) -> str:
        return Opinion("f", "optimal", 1.0, "timelimit", cost, bound, 1.0).verdict

    assert verdict(1.5, 0.5) == verdict(None, 0.5) == verdict(None, None) == "open"
    assert verdict(0.9, 0.5) == verdict(1.5, 1.1) == "contradicts"


def test_the_sample_is_seeded_and_holds_infeasible_ones() -> None:
    files = sampled(LOAN, 24, 6, 0)
    assert files == sampled(LOAN, 24, 6, 0) != sampled(LOAN, 24, 6, 1)
    statuses = [json.loads(f.read_text())["reference"]["status"] for f in files]
    assert len(files) == 24 and statuses.count("infeasible") == 6


def test_other_problems_are_refused() -> None:
    with pytest.raises(Unsupported, match="only Loan"):
        second_opinion(next((instances_path() / "smoke").glob("*.json")), 1.0)
