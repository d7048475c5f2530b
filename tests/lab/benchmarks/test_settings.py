"""The settings of table 1: masks, resuming, what a row says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from milp_recourse.cli import main
from milp_recourse.errors import BadInput
from milp_recourse.formats import read_population
from milp_recourse.lab.benchmarks import bench_settings as settings
from milp_recourse.lab.run_table import read_rows
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Result, Status

LOAN = Path(__file__).resolve().parents[3] / "instances" / "loan" / "population.json"


@pytest.fixture(scope="module")
def few() -> Population:
    """Three refused applicants."""
    people = read_population(LOAN)
    return Population(people.template, people.factuals[:3], people.preferences[:3])


def test_masks_are_nested_and_seeded() -> None:
    """Fewer actionable features are the higher ranked of more; ``random`` draws every number."""
    masks = {name: settings.preferences(name, 200, 0) for name in settings.SETTINGS}
    for fewer, more in (("1", "2"), ("2", "3"), ("3", "4")):
        for a, b in zip(masks[fewer], masks[more], strict=True):
            assert len(a.actionable) == int(fewer)
            assert set(a.actionable) < set(b.actionable)
    sizes = [len(p.actionable) for p in masks["random"]]
    assert np.bincount(sizes, minlength=5)[1:].min() > 30
    assert masks["random"] == settings.preferences("random", 200, 0)
    assert masks["1"] != settings.preferences("1", 200, 1)
    assert {p.actionable for p in masks["1"]} == {("amount",), ("duration",), ("income",), ("savings",)}


def test_a_rerun_adds_nothing(
    few: Population, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command writes a row per setting and a plot; a stopped run goes on; other options are refused."""
    command = ["lab", "bench", "settings", "--out", str(tmp_path), "--limit", "1", "--jobs", "1"]
    assert main(command) == 0
    table = tmp_path / "settings.csv"
    first = table.read_text()
    rows = read_rows(table)
    assert [(r["actionable"], r["plausible"]) for r in rows] == [
        (name, str(plausible)) for plausible in (True, False) for name in settings.SETTINGS
    ]
    for row in rows:
        assert int(row["optimal"]) + int(row["infeasible"]) + int(row["limit"]) == 1
        assert float(row["validity"]) == pytest.approx(int(row["optimal"]))
    assert (tmp_path / "settings.png").stat().st_size > 1000
    lines = first.splitlines(keepends=True)
    table.write_text("".join(lines[:-1]) + lines[-1][:20])  # stopped while it wrote the last row
    solved = []
    real = settings.solve_population
    monkeypatch.setattr(settings, "solve_population", lambda *a, **k: solved.append(a) or real(*a, **k))
    assert main(command) == 0
    assert len(solved) == 1, "only the row that was cut off is solved again"
    again = read_rows(table)
    same = [name for name in rows[0] if "seconds" not in name and "cpu" not in name]
    assert [[r[c] for c in same] for r in again] == [[r[c] for c in same] for r in rows]
    assert "10" not in capsys.readouterr().err
    assert main([*command, "--seed", "1"]) == 2
    assert "another run" in capsys.readouterr().err
    with pytest.raises(BadInput, match="another run"):
        options = {"seed": 0, "time_limit": 60.0, "backend": "highs"}
        settings.run(few, tmp_path, options, 1, lambda _: None)


def test_plausibility_is_switched(few: Population) -> None:
    """The template's plausibility is the setting's, whatever the population says."""
    for plausible in (True, False):
        people = settings.in_setting(few, "2", plausible, 0)
        assert people[1].plausible is plausible
        assert len(people[1].preferences.actionable) == 2
        assert people[2].factual == few[2].factual


def test_summary_counts_a_limit_with_an_action_as_recourse() -> None:
    """Validity is the share with an action in hand; costs are over those."""
    found = Result(
        Status.OPTIMAL, 2.0, 2.0, "rigorous", {}, accepted_exact=True, accepted_deployed=True, seconds=1.0
    )
    stopped = replace(found, status=Status.LIMIT, cost=4.0, lower_bound=0.0, seconds=3.0)
    row = settings.summary([found, stopped, Result(Status.INFEASIBLE, proof="rigorous")])
    assert (row["optimal"], row["infeasible"], row["limit"]) == (1, 1, 1)
    assert float(row["validity"]) == pytest.approx(2 / 3, abs=1e-5)
    assert float(row["cost_mean"]) == 3.0
    assert float(row["cost_sd"]) == pytest.approx(2**0.5, abs=1e-5)
    assert float(row["seconds_max"]) == 3.0
    nobody = settings.summary([Result(Status.INFEASIBLE, proof="rigorous")])
    assert (nobody["validity"], nobody["cost_mean"]) == ("0", "nan")
