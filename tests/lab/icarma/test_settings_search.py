"""The search for unpublished settings: what a trial's distance is, that a stopped search goes on."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("zuko")
pytest.importorskip("optuna")

from milp_recourse.formats import read_population
from milp_recourse.formats.instances_path import population_file
from milp_recourse.lab.gap.icarma_commands import _learning
from milp_recourse.lab.gap.paper_settings import SETTINGS, draw
from milp_recourse.lab.gap.settings_search import distance, measured, search, seeds
from milp_recourse.lab.icarma.settings import Settings
from milp_recourse.lab.icarma.train import Trainer

LINEAR = next(one for one in SETTINGS if (one.table, one.label) == (2, "linear"))


@pytest.fixture(scope="module")
def few(task):
    """Sixty rows."""
    return replace(task, train=task.train[:40], validation=task.validation[:20])


def test_the_border_of_near_is_one() -> None:
    """0.996 and 0.532 are printed: 0.03 less in validity, or 0.05 more in plausibility."""
    assert distance(LINEAR, {"validity": 0.966, "plausibility": 0.532}) == pytest.approx(1)
    assert distance(LINEAR, {"validity": 0.986, "plausibility": 0.582}) == pytest.approx(1)


def test_numbers_are_those_of_recommendations(few, small_flow) -> None:
    """The same as asking the networks for actions, uncut, and judging these by the flow."""
    trainer = Trainer(few, small_flow, Settings(epochs=1))
    trainer.step()
    found = measured(trainer, trainer.validation, LINEAR, 5)
    wishes = draw(LINEAR, 20, 5)
    action, _ = trainer.model.recommend(few.validation, wishes, within_bounds=False)
    after = small_flow.counterfactual(few.validation, action)
    valid = few.network.evaluate(after)[:, 0] >= few.template.accept.threshold
    columns = trainer.model.columns
    moves = np.nan_to_num((action - few.validation)[:, columns] / few.scale)
    assert found["validity"] == valid.mean()
    assert found["cost"] == pytest.approx(np.square(moves).sum(axis=1)[valid].mean())
    assert found["hap"] == (~np.isnan(action[:, columns]) & wishes.least).any(axis=1).mean()


def test_a_stopped_search_goes_on(few, small_flow, tmp_path) -> None:
    """Trials that are there are not repeated; the first has the published settings; ten seeds follow."""
    search(few, small_flow, "score", tmp_path, 1, 1)
    study = search(few, small_flow, "score", tmp_path, 2, 1)
    assert len(study.trials) == 2
    published = Settings.of_recipe("plain", "score")
    assert all(getattr(published, k) == v for k, v in study.trials[0].params.items() if k != "width")
    with (tmp_path / "search.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["distance"]) for row in rows] == pytest.approx([t.value for t in study.trials], 1e-5)
    made = seeds(few, small_flow, study.trials[1], "score", 1, few.validation, tmp_path)
    assert {row["table"] for row in made} == {3}
    assert {row["seeds"] for row in made} == {10}


def test_the_printed_loan_is_searched_through_its_equations(tmp_path) -> None:
    """Its flow is none: rows are drawn from the printed equations, and counterfactuals come from these."""
    people = read_population(population_file("loan-printed"))
    task, through = _learning(people)
    assert through is not None
    few = replace(task, train=task.train[:40], validation=task.validation[:20])
    study = search(few, through, "rank", tmp_path, 2, 1)
    assert len(study.trials) == 2 and all(np.isfinite(trial.value) for trial in study.trials)
    made = seeds(few, through, study.best_trial, "rank", 1, people.rows[:20], tmp_path)
    assert {row["table"] for row in made} == {1, 2, 5}
