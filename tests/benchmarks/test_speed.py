"""The benchmark: rows resume, wrong answers are counted, the peers' program is the same problem."""

from __future__ import annotations

from pathlib import Path

from milp_recourse.benchmarks import peers, speed
from milp_recourse.formats import read_instance

INSTANCES = Path(__file__).resolve().parents[2] / "instances"


def test_a_rerun_adds_nothing_and_plots(tmp_path: Path) -> None:
    """Rows on disk are not solved again; summary and plot come from them."""
    paths = [INSTANCES / "loan" / "loan_130.json"]
    first = speed.run(paths, ["highs", "scip"], 20.0, tmp_path, lambda _: None)
    before = (tmp_path / "speed.csv").read_text()
    assert speed.run(paths, ["highs", "scip"], 20.0, tmp_path, lambda _: None) == first
    assert (tmp_path / "speed.csv").read_text() == before
    summary = {s["solver"]: s for s in speed.summarise(first)}
    assert summary["scip"]["wrong"] == 0
    assert summary["scip"]["unsolved"] == 0
    assert speed.plot(first, tmp_path, 20.0).stat().st_size > 1000


def test_a_wrong_answer_is_counted() -> None:
    """A finished peer whose optimum or status contradicts ours is wrong; a limit is not."""
    base = {"instance": "i", "seconds": 1.0, "nodes": 1, "exactly_feasible": True}
    rows = [
        {**base, "solver": "highs", "status": "optimal", "cost": 1.0},
        {**base, "solver": "dear", "status": "optimal", "cost": 1.1},
        {**base, "solver": "cheap", "status": "optimal", "cost": 0.9},
        {**base, "solver": "hopeless", "status": "infeasible", "cost": None},
        {**base, "solver": "slow", "status": "limit", "cost": 1.1},
        {**base, "solver": "right", "status": "optimal", "cost": 1.00001},
    ]
    wrong = {s["solver"]: s["wrong"] for s in speed.summarise(rows)}
    assert wrong == {"highs": 0, "dear": 1, "cheap": 1, "hopeless": 1, "slow": 0, "right": 0}


def test_dropping_the_sums_keeps_the_problem() -> None:
    """Gurobi's smaller program has no pre-activation columns and fits its built-in licence."""
    mip = peers.whole_program(read_instance(INSTANCES / "loan" / "loan_000.json"))
    assert not any(name.startswith("pre_") for name in mip.names)
    assert len(mip.names) <= 200
