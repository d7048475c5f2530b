"""The benchmark: rows resume, wrong answers are counted, the peers' program is the same problem."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from milp_recourse.cli import main
from milp_recourse.formats import read_instance, read_population
from milp_recourse.lab.benchmarks import peers, speed

INSTANCES = Path(__file__).resolve().parents[3] / "instances"


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
    base = {"instance": "i", "seconds": 1.0, "cpu_seconds": 1.0, "nodes": 1, "exactly_feasible": True}
    rows = [
        {**base, "solver": "highs", "status": "optimal", "cost": 1.0},
        {**base, "solver": "dear", "status": "optimal", "cost": 1.1},
        {**base, "solver": "cheap", "status": "optimal", "cost": 0.9},
        {**base, "solver": "hopeless", "status": "infeasible", "cost": None},
        {**base, "solver": "slow", "status": "limit", "cost": 1.1},
        {**base, "solver": "right", "status": "optimal", "cost": 1.00001},
    ]
    rows.append({**base, "solver": "small", "status": "too large", "cost": None, "exactly_feasible": None})
    summary = {s["solver"]: s for s in speed.summarise(rows)}
    wrong = {name: s["wrong"] for name, s in summary.items()}
    assert wrong == {"highs": 0, "dear": 1, "cheap": 1, "hopeless": 1, "slow": 0, "right": 0, "small": 0}
    assert summary["right"]["off_by_the_gap"] == 1, "1e-5 off is more than the gap allows"
    assert summary["small"]["unsolved"] == summary["slow"]["unsolved"] == 1
    assert summary["dear"]["median_ratio"] == 1.0


def test_where_ours_contradict_each_other_all_of_ours_are_wrong() -> None:
    """The truth is what ours agree on; a limit claims nothing; without a truth no peer is judged."""
    base = {"seconds": 1.0, "cpu_seconds": 2.0, "nodes": 1, "exactly_feasible": True, "status": "optimal"}

    def row(instance: str, solver: str, cost: float, **other: object) -> dict[str, object]:
        return {**base, "instance": instance, "solver": solver, "cost": cost, **other}

    rows = [
        row("i", "bab", 1.0),
        row("i", "highs", 2.0, cpu_seconds=6.0),
        row("i", "peer", 3.0),
        row("j", "bab", 5.0, status="limit"),
        row("j", "highs", 2.0),
        row("j", "peer", 3.0),
    ]
    summary = {s["solver"]: s for s in speed.summarise(rows)}
    assert {name: s["wrong"] for name, s in summary.items()} == {"bab": 1, "highs": 1, "peer": 1}
    assert summary["highs"]["median_ratio"] == 2.0


def test_a_batch_is_solved_together_and_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``bab`` gets all instances at once; only rows that are missing are written."""
    paths = [INSTANCES / "loan" / f"loan_{k}.json" for k in (130, 131)]
    sizes = []
    real = peers.RUNNERS["bab"][0]
    monkeypatch.setitem(
        peers.RUNNERS,
        "bab",
        (lambda all_, limit, others: sizes.append(len(all_)) or real(all_, limit, others), None),
    )
    progress: list[str] = []
    solvers = ["bab-single", "bab"]
    speed.run(paths[:1], solvers, 20.0, tmp_path, progress.append)
    rows = speed.run(paths, solvers, 20.0, tmp_path, progress.append)
    assert sizes == [1, 2]
    assert [(r["instance"], r["solver"]) for r in rows] == [
        (f"loan_{k}", solver) for k in (130, 131) for solver in ("bab", "bab-single")
    ]
    assert speed.run(paths, solvers, 20.0, tmp_path, progress.append) == rows
    assert sizes == [1, 2]
    assert len(progress) == 2 + 4 + 4
    assert {s["solver"]: s["wrong"] for s in speed.summarise(rows)} == {"bab": 0, "bab-single": 0}


def test_company_fills_the_batch_and_is_not_reported() -> None:
    """Applicants of the population that are not the instances themselves; the answers stay the same."""
    people = read_population(INSTANCES / "loan" / "population.json")
    instances = [read_instance(INSTANCES / "loan" / f"loan_00{k}.json") for k in (0, 2)]
    company = speed.filling(instances, people, 8)
    assert [dict(one.factual) for one in company] == [dict(people.factuals[i]) for i in (1, 3, 4, 5, 6, 7)]
    assert speed.filling(instances, people, 1) == []
    together = peers.run_together("bab", instances, 20.0, company)
    alone = peers.run_together("bab", instances, 20.0)
    assert [o.status for o in together] == [o.status for o in alone]
    assert [o.cost for o in together] == pytest.approx([o.cost for o in alone], rel=1e-6)


def test_what_is_no_milp_is_left_out() -> None:
    """Trees and applicants with nothing to act on."""
    smoke = [INSTANCES / "smoke" / f"{name}.json" for name in ("hold", "two_trees", "nothing_actionable")]
    assert speed.with_networks(smoke) == smoke[:1]


def test_the_command_prints_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``bench speed`` on one small folder writes its three files; a wrong solver's name is bad input."""
    folder, out = tmp_path / "instances", tmp_path / "out"
    folder.mkdir()
    for name in ("hold", "plausible_ball"):
        shutil.copy(INSTANCES / "smoke" / f"{name}.json", folder)
    shutil.copy(INSTANCES / "loan" / "classifier.json", folder)  # no instance: passed over
    common = ["lab", "bench", "speed", "--instances", str(folder), "--out", str(out)]
    assert main([*common, "--backends", "highs,scip"]) == 0
    printed = capsys.readouterr().out
    assert "2 instances" in printed
    assert "scip" in printed
    assert {p.name for p in out.iterdir()} == {"speed.csv", "speed.json", "speed.png"}
    assert main([*common, "--backends", "abacus"]) == 2
    assert "abacus" in capsys.readouterr().err


def test_a_licence_that_is_too_small_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gurobi's size limit is an outcome, not a crash."""
    gp = pytest.importorskip("gurobipy")

    def refuse(*_: object) -> None:
        raise gp.GurobiError(gp.GRB.Error.SIZE_LIMIT_EXCEEDED, "too large")

    monkeypatch.setattr(peers, "put_program", refuse)
    instance = read_instance(INSTANCES / "smoke" / "hold.json")
    assert peers.RUNNERS["gurobi"][0]([instance], 1.0, ())[0].status == "too large"


def test_dropping_the_sums_keeps_the_problem() -> None:
    """Gurobi's smaller program has no pre-activation columns and fits its built-in licence."""
    mip = peers.whole_program(read_instance(INSTANCES / "loan" / "loan_000.json"))
    assert not any(name.startswith("pre_") for name in mip.names)
    assert len(mip.names) <= 200


def test_a_program_that_a_peer_does_not_take_is_refused_and_not_too_large() -> None:
    """HiGHS takes no squared costs, whatever their size."""
    instance = read_instance(INSTANCES / "smoke" / "hold.json")
    [outcome] = peers.run_peer("highs-milp", False, [instance], 5.0)
    assert (outcome.status, outcome.cost) == ("refused", None)
    assert outcome.status in speed.UNSOLVED
