"""Give Me Some Credit: preprocessing, the learned model, and the whole study on a small table."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("zuko")

from milp_recourse.cli import main
from milp_recourse.errors import BadInput
from milp_recourse.formats import read_population
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.lab.recipe.gmsc import FORMS, reachable_box
from milp_recourse.lab.recipe.gmsc_data import (
    COLUMNS,
    COUNTS,
    FEATURES,
    LEVERS,
    PARENTS,
    dequantised,
    read_gmsc,
)
from milp_recourse.lab.run_table import read_rows, write_table
from milp_recourse.lab.studies.gmsc import models
from milp_recourse.lab.studies.gmsc.fidelity import _adjusted, followers
from milp_recourse.lab.studies.gmsc.seeds import write_spread
from milp_recourse.problem.result import gap_tolerance
from milp_recourse.questions.solve import solve
from verify.__main__ import examine

SHIPPED = instances_path() / "gmsc"
SIZED = 5
"""Applicants on whom the small study compares sizes of the equations."""


def owners_table(folder: Path, rows: int = 900) -> Path:
    """Random rows in the owner's format, with gaps, codes and values above every cap."""
    rng = np.random.default_rng(7)
    worth = rng.normal(0.0, 1.0, rows)
    table = pd.DataFrame(
        {
            "SeriousDlqin2yrs": (worth + 0.4 * rng.normal(size=rows) < -1.2).astype(int),
            COLUMNS["age"]: rng.integers(20, 90, rows),
            COLUMNS["dependents"]: rng.integers(0, 5, rows).astype(float),
            COLUMNS["income"]: np.exp(8.5 + 0.6 * worth + 0.3 * rng.normal(size=rows)).round(),
            COLUMNS["credit_lines"]: rng.integers(0, 25, rows),
            COLUMNS["real_estate_loans"]: rng.integers(0, 4, rows),
            COLUMNS["utilization"]: np.clip(0.4 - 0.3 * worth + 0.2 * rng.normal(size=rows), 0, None),
            COLUMNS["debt_ratio"]: rng.exponential(0.4, rows),
            **{COLUMNS[f]: rng.poisson(np.exp(-1 - worth)) for f in ("late_30", "late_60", "late_90")},
        }
    )
    table.loc[:2, COLUMNS["late_90"]] = 98
    table.loc[3, COLUMNS["utilization"]] = 5000.0
    table.loc[[4, 5], COLUMNS["income"]] = np.nan
    table.loc[6, COLUMNS["income"]] = 90000.0
    path = folder / "cs-training.csv"
    table.to_csv(path)
    return path


def test_preprocessing_is_the_published_one(tmp_path: Path) -> None:
    """Gaps go, caps and codes hold, the label is 1 where nothing defaulted, halves and quarters."""
    data = read_gmsc(owners_table(tmp_path), seed=3)
    assert [len(part.rows) for part in (data.train, data.validation, data.test)] == [449, 225, 224]
    rows = np.concatenate([part.rows for part in (data.train, data.validation, data.test)])
    labels = np.concatenate([part.labels for part in (data.train, data.validation, data.test)])
    of = {f: rows[:, k] for k, f in enumerate(FEATURES)}
    assert (of["utilization"].max(), of["income"].max(), of["debt_ratio"].max()) == (1.0, 17000.0, 1.0)
    assert (of["late_90"] == 18).sum() == 3
    raw = pd.read_csv(tmp_path / "cs-training.csv").dropna()
    assert labels.sum() == (raw["SeriousDlqin2yrs"] == 0).sum()
    assert sum(len(causes) for causes in PARENTS.values()) == 19
    noisy = dequantised(rows, 1)
    counts = np.isin(FEATURES, COUNTS)
    assert (np.round(noisy[:, counts]) == rows[:, counts]).mean() > 0.999
    assert (noisy[:, ~counts] == rows[:, ~counts]).all()


def test_bad_files_are_named(tmp_path: Path) -> None:
    """No file, no zip, a table of something else: one sentence each."""
    with pytest.raises(BadInput, match="cs-training"):
        read_gmsc(tmp_path / "absent.csv")
    (tmp_path / "a.zip").write_text("no zip")
    with pytest.raises(BadInput, match=r"a\.zip"):
        read_gmsc(tmp_path / "a.zip")
    (tmp_path / "b.csv").write_text("i,age\n1,2\n")
    with pytest.raises(BadInput, match="no column SeriousDlqin2yrs"):
        read_gmsc(tmp_path / "b.csv")


def test_adjustment_removes_confounding() -> None:
    """Income and real-estate loans both grow with age; adjusted, only the effect of income is left."""
    rng = np.random.default_rng(0)
    rows = np.zeros((60_000, len(FEATURES)))
    of = {f: k for k, f in enumerate(FEATURES)}
    rows[:, of["age"]] = rng.uniform(20, 80, len(rows))
    rows[:, of["income"]] = 50 * rows[:, of["age"]] + rng.uniform(-1500, 1500, len(rows))
    rows[:, of["real_estate_loans"]] = 0.001 * rows[:, of["income"]] + 0.1 * rows[:, of["age"]]
    adjusted, used = _adjusted(rows, of["income"], 2500.0)
    raw = rows[np.abs(rows[:, of["income"]] - 2500.0) < 100, of["real_estate_loans"]].mean()
    low, _ = _adjusted(rows, of["income"], 2000.0)
    effect = adjusted[of["real_estate_loans"]] - low[of["real_estate_loans"]]
    assert effect == pytest.approx(0.5, abs=0.12)  # unadjusted: about 1.2
    assert used > 4000
    assert raw == pytest.approx(7.5, abs=0.2)
    assert followers("utilization") == ("late_30", "late_60", "late_90")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The whole study on the small table: nine people; networks of three epochs, a flow of five."""
    folder = tmp_path_factory.mktemp("gmsc")
    data = owners_table(folder)
    arguments = [
        "lab",
        "gmsc",
        str(data),
        "--out",
        str(folder / "out"),
        "--people",
        "9",
        "--certificates",
        "3",
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("milp_recourse.lab.studies.gmsc.run.SIZED", SIZED)
        patch.setattr(models, "FLOW", replace(models.FLOW, epochs=5))
        assert main([*arguments, "--epochs", "3", "--flow-epochs", "3"]) == 0
    return data, folder / "out"


def test_the_study_proves_and_compares(study: tuple[Path, Path]) -> None:
    """Every person in every setting is proven, certificates verify, no recommendation beats a proof."""
    results = study[1] / "results"
    proofs = read_rows(results / "proofs.csv")
    assert len(proofs) == 5
    assert all(row["limit"] == "0" and row["contradicted"] == "0" for row in proofs)
    checked = json.loads((results / "spot_check.json").read_text())
    assert checked["verified"] == checked["agree"] == checked["drawn"] == 3
    tables = read_rows(results / "tables.csv")
    assert {row["method"] for row in tables} == {
        "published iCARMA",
        "certified",
        "iCARMA, flow",
        "iCARMA, equations",
    }
    for row in tables:
        if row["method"].startswith("iCARMA") and row["cost_ratio_median"]:
            assert float(row["cost_ratio_median"]) >= 1 - 1e-6
        if row["method"] == "certified":
            assert row["valid"] == row["served"]
            assert float(row["missed"]) == 0
    sizes = read_rows(results / "sizes.csv")
    people = len(read_population(study[1] / "models" / "population.json"))
    assert len(sizes) == len(FORMS) * min(SIZED, people)
    assert all((results / f"{name}.svg").stat().st_size > 5000 for name in ("figure_7", "figure_8", "proofs"))


def test_seeds_have_means_spreads_and_a_page(study: tuple[Path, Path], tmp_path: Path) -> None:
    """Two seeds, the second with half the served: by hand."""
    for seed in (0, 1):
        results = tmp_path / f"seed_{seed}" / "results"
        shutil.copytree(study[1] / "results", results)
        (results / "fit.json").write_text(json.dumps({"seed": seed}))
    rows = read_rows(results / "tables.csv")
    write_table(results / "tables.csv", [r | {"served": float(r["served"] or 0) / 2} for r in rows])
    certified = [float(row["served"]) for row in rows if row["method"] == "certified"]
    found = [row for row in write_spread(tmp_path) if row["method"] == "certified"]
    for served, row in zip(certified, found, strict=True):
        assert (row["seeds"], row["proven mean"]) == (2, 1.0)
        assert row["served mean"] == pytest.approx(0.75 * served, rel=1e-5)
        assert row["served sd"] == pytest.approx(served / 2 / np.sqrt(2), rel=1e-5)
    for page in (tmp_path / "report.html", study[1] / "results" / "report.html"):
        text = page.read_text(encoding="utf-8")
        assert text.count('src="data:image/svg+xml;base64,') == (1 if page.parent == tmp_path else 6)
        assert text.count("<tr") > 5 and 'src="http' not in text and "<script" not in text


def test_results_hold_no_row_of_the_data(study: tuple[Path, Path]) -> None:
    """No file that may be passed on has one of the owner's columns, or a factual income."""
    data, out = study
    incomes = {f"{v:.6g}" for v in pd.read_csv(data)[COLUMNS["income"]].dropna() if 100 < v < 17000}
    for path in (out / "results").glob("*.csv"):
        for row in read_rows(path):
            assert not set(row) & {*FEATURES, *COLUMNS.values()}
            if "value" not in row:  # interventions name quantiles
                assert not incomes & set(row.values())


def test_the_same_command_computes_nothing_twice(study: tuple[Path, Path], monkeypatch) -> None:
    """Everything is there: nothing is trained, nothing is solved, and tables are the same."""
    data, out = study
    before = (out / "results" / "tables.csv").read_bytes()

    def never(*_: object, **__: object) -> None:
        raise AssertionError("solved again")

    monkeypatch.setattr("milp_recourse.lab.studies.gmsc.run.SIZED", SIZED)
    for name in (
        "studies.gmsc.certified.solve",
        "studies.gmsc.run.solve",
        "studies.gmsc.run.spot_check",
        "studies.gmsc.gmsc_networks.train",
        "studies.gmsc.models.fit_flow",
        "recipe.gmsc.fit_relu",
        "recipe.gmsc.fit_scm",
    ):
        monkeypatch.setattr(f"milp_recourse.lab.{name}", never)
    arguments = ["lab", "gmsc", str(data), "--out", str(out), "--people", "9", "--certificates", "3"]
    assert main([*arguments, "--epochs", "3", "--flow-epochs", "3"]) == 0
    assert (out / "results" / "tables.csv").read_bytes() == before


def test_shipped_people_have_the_answers_that_are_written(tmp_path: Path) -> None:
    """Two of the shipped synthetic people: as expected.csv says, and with certificates that verify."""
    people = read_population(SHIPPED / "population.json")
    expected = read_rows(SHIPPED / "expected.csv")
    assert len(people) == len(expected) == 8
    assert sorted({row["status"] for row in expected}) == ["infeasible", "optimal"]
    assert sum(row["confirmed_by"] == "highs" for row in expected) >= 4
    for k in range(2):
        result = solve(people[k], "bab", certificates=True, index=k)
        assert result.status.value == expected[k]["status"]
        if result.cost is not None:
            known = float(expected[k]["cost"])
            assert result.cost == pytest.approx(known, abs=2 * gap_tolerance(known))
        (tmp_path / "c.json.gz").write_bytes(result.evidence)
        outcome = examine(tmp_path / "c.json.gz", SHIPPED / "population.json", 600.0)
        assert outcome.claim is not None, outcome.line


def test_nobody_leaves_the_box_that_the_margin_rests_on() -> None:
    """Random actions on shipped people: the counterfactual stays in the reachable box."""
    people = read_population(SHIPPED / "population.json")
    bounds = {f: people.template.by_name[f].action_bounds for f in LEVERS}
    rows = np.array([[one[f] for f in FEATURES] for one in people.factuals])
    low, high = reachable_box(rows, people.template.scm, bounds)
    rng = np.random.default_rng(1)
    for _ in range(300):
        action = np.full(rows.shape, np.nan)
        for f in LEVERS:
            if rng.random() < 0.6:
                action[:, FEATURES.index(f)] = rng.uniform(*bounds[f], len(rows))
        after = people.template.scm.counterfactual(rows, action)
        assert ((after >= low - 1e-9) & (after <= high + 1e-9)).all()
