"""Trained networks beside the oracle's rows."""

from __future__ import annotations

import csv
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("zuko")

from milp_recourse.cli import main
from milp_recourse.errors import BadInput
from milp_recourse.formats import read_population
from milp_recourse.formats.instances_path import population_file
from milp_recourse.lab.gap.paper_settings import SETTINGS, draw
from milp_recourse.lab.icarma.sampling import Wishes
from milp_recourse.lab.icarma.score import recommended, score
from milp_recourse.lab.icarma.shipped import shipped
from milp_recourse.lab.studies.amortised import (
    amortised_rows,
    published_icarma,
    read_networks,
    recommendations,
)
from milp_recourse.lab.studies.paper_cells import TABLES, Cell, Draws
from milp_recourse.lab.studies.tables import served


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


def test_rows_are_those_of_icarma_gap(people) -> None:
    """The same preferences, hence the same shares and costs, in every cell of table 1."""
    networks = read_networks(shipped("constant"))
    for cell, setting in zip(TABLES["table1"], [one for one in SETTINGS if one.table == 1], strict=True):
        wishes = draw(setting, len(people), 0)
        other = recommended(networks.models[0], people, wishes).scored.summary()
        printed, row = amortised_rows("table1", cell, Draws(0, people), [networks])
        assert (printed["method"], printed["validity"]) == ("iCARMA published", published_icarma(cell)[0])
        assert (row["validity"], row["plausibility"]) == (other["valid_deployed"], other["plausible"])
        assert row["cost mean"] == pytest.approx(other["cost"], nan_ok=True)
        assert tuple(setting.icarma) == published_icarma(cell)


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


def test_networks_answer_what_they_were_trained_for(people, tmp_path) -> None:
    """Constant weights; every profile; one distribution of rankings; nothing without networks."""
    constant, every = (read_networks(shipped(kind)) for kind in ("constant", "rank"))
    own = read_networks(shipped("constant"))
    own.models[0].settings = replace(own.models[0].settings, distribution="causal")
    linear, causal = Cell("4", profile="linear"), Cell("3", distribution="causal")
    asked = {
        "uniform": [networks.trained_for(Cell("3")) for networks in (constant, every, own)],
        "linear": [networks.trained_for(linear) for networks in (constant, every, own)],
        "causal": [networks.trained_for(causal) for networks in (constant, every, own)],
        "scenario": [networks.trained_for(TABLES["figure4"][2]) for networks in (constant, every, own)],
        "anything goes": [
            networks.trained_for(Cell("3", plausible=False)) for networks in (constant, every, own)
        ],
    }
    assert asked == {
        "uniform": [True, True, False],
        "linear": [False, True, False],
        "causal": [True, True, True],
        "scenario": [True, True, False],
        "anything goes": [False, False, False],
    }
    draws = Draws(0, people)
    assert amortised_rows("table2", linear, draws, [constant]) == []
    printed, row = amortised_rows("table2", linear, draws, [constant, every])
    assert (printed["hap"], row["method"]) == (0.029, "iCARMA loan_smooth, all profiles")
    scored = read_networks(shipped("rank"))
    scored.models[0].settings = replace(scored.models[0].settings, elicitation="score")
    scores = Cell("4", profile="linear", elicitation="score")
    assert [networks.trained_for(scores) for networks in (every, scored)] == [False, True]
    assert not scored.trained_for(linear)
    printed, row = amortised_rows("table3", scores, draws, [every, scored])
    assert (printed["validity"], printed["hap"], row["seeds"]) == (0.991, 0.178, 1)
    assert own.method == "iCARMA loan_smooth, own orders"
    assert amortised_rows("table1", Cell("4"), draws, []) == []
    with pytest.raises(BadInput, match="icarma train"):
        read_networks(tmp_path)


def test_figures_show_the_accepted(people) -> None:
    """A recommendation is an answer where the deployed model accepts it, with its own action and cost."""
    networks, draws, cell = read_networks(shipped("constant")), Draws(0, people), TABLES["table1"][3]
    problems, model, rows = draws.problems(cell), networks.models[0], people.rows
    wishes = Wishes.of_scores(draws.scores(cell), "constant")
    action, _ = model.recommend(rows, wishes)
    scored = score(people.template, model, rows, wishes, action)
    said = recommendations(networks, cell, problems, draws)
    assert [said[p].status == "found" for p in problems] == scored.valid_deployed.tolist()
    assert 0 < scored.valid_deployed.sum() < len(problems)
    for k, problem in enumerate(problems):
        if said[problem].action is not None:
            (name,) = problem.mask
            expected = action[k, model.flow.features.index(name)]
            assert (said[problem].action, said[problem].cost) == ({name: expected}, scored.cost[k])
    shown = served(draws, cell, problems, said)
    accepted = scored.valid_deployed
    assert (shown.served == accepted).all()
    assert shown.unweighted[accepted] == pytest.approx(scored.plain_cost[accepted])
    assert ((shown.gain >= 0) == scored.plausible)[accepted].all()


def test_the_command_shows_them_beside_the_oracle(folder, tmp_path) -> None:
    """Table 1: published, grid, certified, then iCARMA's printed row and the networks'."""
    out = tmp_path / "out"
    arguments = ["lab", "reproduce", "table1", "--limit", "3", "--certificates", "0", "--jobs", "1"]
    assert main([*arguments, "--networks", str(folder), "--out", str(out)]) == 0
    with (out / "table1.csv").open() as file:
        methods = [row["method"] for row in csv.DictReader(file)]
    assert methods == 5 * ["published", "grid", "certified", "iCARMA published", "iCARMA two"]
