"""The benchmark of forests: its rows, its way of counting, its files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from milp_recourse.benchmarks.trees import Row, problem, run, summarise, write

pytest.importorskip("sklearn")


def test_both_back_ends_prove_the_same_costs(tmp_path: Path) -> None:
    """On a small forest: all proven, all flip the forest, differences of cost within the gap."""
    made = problem(4, 3, 3)
    rows = run(made, 30.0, None, in_process=False)
    summary = summarise(rows, 30.0)
    assert [(s["solver"], s["proven"], s["queries"]) for s in summary] == [("bab", 3, 3), ("cpsat", 3, 3)]
    assert all(s["answers_refused_by_the_forest"] == 0 for s in summary)
    assert all(s["largest_difference_of_cost"] <= 1e-6 for s in summary)
    write(rows, summary, tmp_path, 30.0)
    assert json.loads((tmp_path / "summary.json").read_text())["summary"] == summary
    assert len((tmp_path / "queries.csv").read_text().splitlines()) == 7


def test_what_is_not_answered_counts_at_the_limit() -> None:
    """Even if little of the processor was had."""
    row = Row("f", 0, "bab", "optimal", 1.0, 0.5, 0.4, True)
    late = replace(row, solver="oceanpy", status="limit", cost=None, processor_seconds=9.0, flips=False)
    proven, open_ = summarise([row, late], 60.0)
    assert (proven["median_s"], open_["median_s"], open_["proven"]) == (0.4, 60.0, 0)
    assert open_["answers_refused_by_the_forest"] == 1
