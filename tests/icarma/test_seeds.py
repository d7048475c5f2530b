"""Table 1 over several trained seeds: rows, mean and spread, picture."""

from __future__ import annotations

import csv
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("zuko")

from typer.testing import CliRunner

from milp_recourse.cli import app
from milp_recourse.errors import BadInput
from milp_recourse.formats import read_population
from milp_recourse.icarma.shipped import shipped
from milp_recourse.instances_path import instances_path
from milp_recourse.lab.gap.evaluate import spread, table_one_of_seeds

PEOPLE = instances_path() / "loan_smooth" / "population.json"


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """Two shipped networks in the places of two seeds."""
    for seed, name in ((1000, "constant"), (10000, "rank")):
        (tmp_path / f"seed_{seed}").mkdir()
        shutil.copy(shipped(name), tmp_path / f"seed_{seed}" / "recommender.npz")
    return tmp_path


def test_mean_and_spread(trained: Path) -> None:
    """Sample standard deviation over the seeds, by hand."""
    people = read_population(PEOPLE)
    some = replace(people, factuals=people.factuals[:50], preferences=people.preferences[:50])
    rows = table_one_of_seeds(trained, some)
    assert [row["seed"] for row in rows] == [1000] * 5 + [10000] * 5
    four = [row["valid"] for row in rows if row["actionable"] == "4"]
    mean, half = sum(four) / 2, abs(four[0] - four[1]) / 2**0.5
    assert spread(rows)[0]["valid"] == f"{mean:.3f} +- {half:.3f}"
    assert spread(rows[:5])[0]["valid"] == f"{four[0]:.3f} +- 0.000"


def test_the_command_writes_rows_and_a_picture(trained: Path, tmp_path: Path) -> None:
    """One row per seed and setting."""
    done = CliRunner().invoke(app, ["icarma", "seeds", str(trained), "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    rows = list(csv.DictReader((tmp_path / "out" / "seeds.csv").read_text().splitlines()))
    assert len(rows) == 10 and (tmp_path / "out" / "seeds.png").stat().st_size > 10_000


def test_a_folder_without_seeds(tmp_path: Path) -> None:
    """One line."""
    with pytest.raises(BadInput, match="seed_"):
        table_one_of_seeds(tmp_path, read_population(PEOPLE))
