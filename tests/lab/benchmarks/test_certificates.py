"""``bench certificates``: a row per instance, resumed; what a summary says."""

from __future__ import annotations

import json
from pathlib import Path

from milp_recourse.cli import main
from milp_recourse.lab.benchmarks import certificates as bench

INSTANCES = Path(__file__).resolve().parents[3] / "instances"
SMOKE = [INSTANCES / "smoke" / f"{name}.json" for name in ("hold", "two_trees", "infeasible_plausible")]
SECONDS = [name for name in bench.COLUMNS if "seconds" in name]


def untimed(rows):
    return [{k: v for k, v in row.items() if k not in SECONDS} for row in rows]


def test_a_rerun_fills_what_is_missing(tmp_path, monkeypatch):
    """Each instance is checked once; a stopped run goes on; a finished batch is not solved again."""
    seen = []
    rows = bench.run(SMOKE, 60.0, tmp_path, seen.append)
    assert len(seen) == len(SMOKE)
    by_name = {row["instance"]: row for row in rows}
    assert by_name["hold"]["model"] == "network" and by_name["two_trees"]["model"] == "trees"
    assert {row["verified"] for row in rows} == {"True"}
    assert by_name["infeasible_plausible"]["claim"] == "infeasible"
    for row in rows:
        inner = sum(int(row[kind]) for kind in ("cuts", "strict_cuts", "signs", "value_cuts"))
        leaves = sum(int(row[kind]) for kind in ("interval_leaves", "dual_leaves", "price_leaves"))
        assert leaves > inner >= 0 and int(row["bytes"]) > 100
    table = tmp_path / "certificates.csv"
    lines = table.read_text().splitlines(keepends=True)
    table.write_text("".join(lines[:-1]) + lines[-1][:9])  # stopped while it wrote the last row
    solved = []
    real = bench.solve_together
    monkeypatch.setattr(bench, "solve_together", lambda *a, **k: solved.append(len(a[0])) or real(*a, **k))
    again = bench.run(SMOKE, 60.0, tmp_path, lambda _: None)
    assert untimed(again) == untimed(rows)
    assert solved == [1], "the trees' batch is the one whose row was cut off"


def test_a_rejected_certificate_is_seen(tmp_path, monkeypatch):
    """The checker is asked, not assumed: a spoilt bound shows in the row and in the summary."""
    real = bench.certificates_for
    spoil = lambda *a: [c and c | {"lower_bound": 0.5 * c["lower_bound"]} for c in real(*a)]  # noqa: E731
    monkeypatch.setattr(bench, "certificates_for", spoil)
    rows = bench.run(SMOKE[:1], 60.0, tmp_path, lambda _: None)
    summary = bench.summarise(rows)
    assert (summary["certificates"], summary["verified"]) == (1, 0)
    assert "too far apart" in summary["rejected"]["hold"]


def test_summary():
    """Means, their ratio, and who has none."""
    row = dict.fromkeys(bench.COLUMNS, "1") | {"verified": "True", "claim": "optimal", "model": "network"}
    slow = row | {"solve_seconds": "3", "produce_seconds": "7", "bytes": "5", "claim": "infeasible"}
    empty = dict.fromkeys(("claim", "verified", "bytes", "check_seconds", *bench.KINDS.values()), "")
    none = row | empty | {"instance": "none", "reason": "percentiles"}
    summary = bench.summarise([row, slow, none])
    assert (summary["instances"], summary["certificates"], summary["verified"]) == (3, 2, 2)
    assert summary["claims"] == {"infeasible": 1, "optimal": 1}
    assert summary["without"] == {"none": "percentiles"}
    assert summary["in batches"] == {"solve_mean": 1.667, "produce_mean": 3.0, "overhead": 1.8}
    assert summary["one at a time"]["overhead"] == 1.0
    assert summary["bytes"] == {"mean": 3.0, "median": 3.0, "p99": 4.96, "max": 5.0}


def test_the_command(tmp_path, capsys):
    """Tables, summary and plot; other options are another run."""
    command = ["lab", "bench", "certificates", "--out", str(tmp_path), "--limit", "1"]
    assert main(command) == 0
    assert "3 instances; 3 certificates; 3 verified" in capsys.readouterr().out
    summary = json.loads((tmp_path / "certificates.json").read_text())
    assert summary["verified"] == 3
    assert (tmp_path / "certificates.png").stat().st_size > 1000
    assert main([*command, "--time-limit", "7"]) == 2
    assert "another run" in capsys.readouterr().err


def test_counts_are_the_trees_nodes():
    """Every node counts once, in all configurations."""
    trees = [[["a", 0, 1.0], ["e"], ["d", "", []]], [["s", 0, 1.0], ["e"], ["e"]]]
    counted = bench.counts({"configurations": [{"acted": [], "tree": tree} for tree in trees]})
    assert counted == {"a": 1, "s": 1, "e": 3, "d": 1}
