"""Trained networks beside the oracle's rows."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("zuko")

from milp_recourse.cli import main
from milp_recourse.errors import BadInput
from milp_recourse.formats import read_population
from milp_recourse.icarma.evaluate import table_one
from milp_recourse.icarma.shipped import shipped
from milp_recourse.instances_path import population_file
from milp_recourse.studies.amortised import amortised_rows, published_icarma, read_networks
from milp_recourse.studies.cells import TABLES, Cell, Draws


@pytest.fixture(scope="module")
def people():
    """Forty applicants."""
    return read_population(population_file("loan-smooth"))[:40]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two shipped networks in the places of two seeds."""
    for seed, kind in ((1000, "constant"), (2000, "rank")):
        (tmp_path / "two" / f"seed_{seed}").mkdir(parents=True)
        shutil.copy(shipped(kind), tmp_path / "two" / f"seed_{seed}" / "recommender.npz")
    return tmp_path / "two"


def test_rows_are_those_of_icarma_evaluate(people) -> None:
    """The same preferences, hence the same shares and costs, in every cell of table 1."""
    networks = read_networks(shipped("constant"))
    for cell, other in zip(TABLES["table1"], table_one(networks.models[0], people), strict=True):
        printed, row = amortised_rows("table1", cell, Draws(0, people), [networks])
        assert (printed["method"], printed["validity"]) == ("iCARMA published", published_icarma(cell)[0])
        assert (row["validity"], row["plausibility"]) == (other["valid_deployed"], other["plausible"])
        assert row["cost mean"] == pytest.approx(other["cost"], nan_ok=True)
        assert other["published"] == " / ".join(f"{x:g}" for x in published_icarma(cell))


def test_mean_and_spread_over_seeds(people, folder) -> None:
    """Two seeds: the mean of two rows and their sample sd."""
    draws, cell = Draws(0, people), TABLES["table1"][2]
    both = amortised_rows("table1", cell, draws, [read_networks(folder)])[1]
    alone = [
        amortised_rows("table1", cell, draws, [read_networks(folder / f"seed_{n}" / "recommender.npz")])[1]
        for n in (1000, 2000)
    ]
    values = [one["cost mean"] for one in alone]
    assert both["seeds"] == 2
    assert both["cost mean"] == pytest.approx(np.mean(values))
    assert both["cost sd of seeds"] == pytest.approx(np.std(values, ddof=1))
    assert values[0] != values[1]


def test_only_where_weights_are_constant(people, tmp_path) -> None:
    """Ranked weights ask for other networks; without networks there are no rows."""
    networks = [read_networks(shipped("constant"))]
    assert amortised_rows("table2", Cell("4", profile="linear"), Draws(0, people), networks) == []
    assert amortised_rows("table1", Cell("4"), Draws(0, people), []) == []
    with pytest.raises(BadInput, match="icarma train"):
        read_networks(tmp_path)


def test_the_command_shows_them_beside_the_oracle(folder, tmp_path) -> None:
    """Table 1: published, grid, certified, then iCARMA's printed row and the networks'."""
    out = tmp_path / "out"
    arguments = ["reproduce", "table1", "--limit", "3", "--certificates", "0", "--jobs", "1"]
    assert main([*arguments, "--networks", str(folder), "--out", str(out)]) == 0
    with (out / "table1.csv").open() as file:
        methods = [row["method"] for row in csv.DictReader(file)]
    assert methods == 5 * ["published", "grid", "certified", "iCARMA published", "iCARMA two"]
