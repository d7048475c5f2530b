"""Populations from published data sets: small tables in the owners' formats, and real files where they are.

The real files are looked for in ``$MILP_RECOURSE_DATA``, else in ``../shared/data``.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from milp_recourse.certificates.produce import certificates_for
from milp_recourse.cli import app
from milp_recourse.errors import BadInput
from milp_recourse.formats import read_population
from milp_recourse.formats.strict_json import write_json
from milp_recourse.judge import judge
from milp_recourse.lab.recipe.real import ADULT, GERMAN, SETS, write_real
from milp_recourse.problem.result import Status, gap_tolerance
from milp_recourse.questions.solve import solve
from verify.__main__ import examine

DATA = Path(os.environ.get("MILP_RECOURSE_DATA", Path(__file__).resolve().parents[4] / "shared" / "data"))


def small(name: str, folder: Path, rows: int = 400) -> None:
    """A random table in the owner's format."""
    rng = np.random.default_rng(len(name))
    wanted = rng.random(rows)
    columns: dict[str, object] = {}
    for column, kind in SETS[name].columns.items():
        if kind.kind == "categorical":
            columns[column] = rng.choice([f"{column[:3]}-{k}" for k in range(3)], rows)
        else:
            values = 100 * rng.random(rows) * (0.5 + wanted)
            columns[column] = values if kind.kind == "continuous" else values.astype(int)
    table = pd.DataFrame(columns)
    path = folder / SETS[name].file
    if name == "adult":
        table["income"] = np.where(wanted > 0.5, ">50K", "<=50K")
        table.loc[0, "workclass"] = "?"
        text = table.reindex(columns=list(ADULT), fill_value="0").to_csv(header=False, index=False)
        member = "adult.data"
    elif name == "compas":
        table["two_year_recid"] = (wanted < 0.5).astype(int)
        text, member = table.to_csv(index=False), "compas-scores-two-years.csv"
    elif name == "gmsc":
        table["SeriousDlqin2yrs"] = (wanted < 0.5).astype(int)
        table.loc[0, "MonthlyIncome"] = np.nan
        text, member = table.to_csv(), "cs-training.csv"
    else:
        table["label"] = np.where(wanted > 0.5, 1, 2)
        table = table.reindex(columns=list(GERMAN), fill_value="0")
        path.write_text(table.to_csv(sep=" ", header=False, index=False))
        return
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, text)


def check(name: str, data: Path, folder: Path, applicants: int) -> None:
    """Three back ends agree, the deployed forest accepts, and certificates verify."""
    report = write_real(name, data, folder, applicants, trees=5, depth=4)
    assert report["applicants"] == applicants
    people = read_population(folder / "population.json")
    for k in range(applicants):
        instance = people[k]
        assert instance.classifier.score(instance.model_rows(instance.factual_row)) <= 0.5
        results = [solve(instance, backend) for backend in ("bab", "cpsat", "highs")]
        assert len({r.status for r in results}) == 1, (k, results)
        assert results[0].status in (Status.OPTIMAL, Status.INFEASIBLE)
        if results[0].cost is not None:
            assert max(r.cost for r in results) - min(r.cost for r in results) <= gap_tolerance(
                results[0].cost
            )
            acted = {f.name: f for f in instance.features}
            action = {n: v if acted[n].categories is None else acted[n].categories.index(v)
                      for n, v in results[0].action.items()}  # fmt: skip
            assert judge(instance, action).accepted_deployed
        [certificate] = certificates_for([instance], results[:1], indices=[k])
        write_json(certificate, folder / f"{k}.json")
        assert examine(folder / f"{k}.json", folder / "population.json", 60).claim == results[0].status.value


@pytest.mark.parametrize("name", list(SETS))
def test_small_tables_in_the_owners_formats(name: str, tmp_path: Path) -> None:
    """Headers, separators, gaps and labels as published."""
    small(name, tmp_path)
    check(name, tmp_path, tmp_path / "out", 2)


@pytest.mark.parametrize("name", list(SETS))
def test_real_files(name: str, tmp_path: Path) -> None:
    """The published rows."""
    if not (DATA / SETS[name].file).is_file():
        pytest.skip(f"{SETS[name].file} is not in {DATA}; set MILP_RECOURSE_DATA to where it is")
    check(name, DATA, tmp_path, 3)


def test_what_is_asked_for_must_be_there(tmp_path: Path) -> None:
    """One line each."""
    with pytest.raises(BadInput, match="adult, compas, german, gmsc"):
        write_real("titanic", tmp_path, tmp_path)
    with pytest.raises(BadInput, match=r"german\.data"):
        write_real("german", tmp_path, tmp_path)


def test_the_command(tmp_path: Path) -> None:
    """Says what it wrote."""
    small("german", tmp_path)
    given = ["lab", "recipe", "real", "german", "--data", str(tmp_path), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, [*given, "--applicants", "2", "--trees", "3"])
    assert done.exit_code == 0 and "2 of " in done.output
    assert len(read_population(tmp_path / "out" / "population.json")) == 2
