"""The fairness study over draws: gaps by hand, chance told from what is there, the same as figure 4."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from milp_recourse.cli import main
from milp_recourse.elicitation.schemes import LOAN_ACTIONABLE
from milp_recourse.formats import read_population
from milp_recourse.formats.instances_path import population_file
from milp_recourse.lab.studies import fairness
from milp_recourse.lab.studies.fairness import GAPS
from milp_recourse.lab.studies.fairness_draws import (
    MASKS,
    MEASURES,
    Offers,
    by_mask,
    certified_offers,
    differences,
    masks_of,
    problems,
    sides,
    study,
    summary,
)
from milp_recourse.lab.studies.kept_answers import Answers
from milp_recourse.lab.studies.paper_cells import SCENARIOS, TABLES, Draws
from milp_recourse.lab.studies.tables import served
from milp_recourse.problem.population import Population

PEOPLE = read_population(population_file("loan-smooth"))
SOME = PEOPLE[:40]


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """Forty applicants under every mask."""
    answers = Answers(tmp_path_factory.mktemp("fairness"), LOAN_ACTIONABLE)
    answers.solve_certified(SOME, problems(SOME), 60.0, 1, lambda: None)
    return answers


def test_gaps_by_hand() -> None:
    """Four people, one of each group: shares, and means over the served."""
    female, white = np.array([True, True, False, False]), np.array([True, False, True, False])
    offered = np.array([[1.0, 1, 1, 0], [0.2, 0.4, 0.1, 0], [-3.0, -5, -4, 0]])
    gap = differences(sides(female, white)[:, :, None], offered)[..., 0]
    expected = [
        [1 - 0.5, 0.5 - 1, 1 - 1],
        [0.3 - 0.1, 0.4 - 0.15, 0.4 - 0.1],
        [-4 - -4, -5 - -3.5, -5 - -4],
    ]
    assert gap == pytest.approx(np.array(expected))


def test_one_draw_is_figure_fours(solved: Answers) -> None:
    """Draw 0 has the gaps that figure 4 computes its own way from the same answers."""
    offers = certified_offers(SOME, solved.known["certified"])
    found = {one.scenario: one for one in study(SOME, [offers], 1, 3, lambda: None)}
    draws = Draws(3, SOME)
    for scenario, cell in zip(SCENARIOS, TABLES["figure4"], strict=True):
        asked = draws.problems(cell)
        answers = {"certified": served(draws, cell, asked, solved.known["certified"])}
        rows = {r["group"]: r for r in fairness.scenario_rows(scenario, draws, asked, answers)}
        for g, gap in enumerate(GAPS):
            for m, key in enumerate(("validity", "cost", "log density")):
                assert found[scenario].gap[m, g] == pytest.approx(rows[gap][key], nan_ok=True), (
                    scenario,
                    gap,
                )


def test_masks_are_those_of_the_draw() -> None:
    """All four without personal constraints, else the two best ranked."""
    draws = Draws(1, SOME)
    assert (masks_of(draws, TABLES["figure4"][0]) == 0).all()
    cell = TABLES["figure4"][2]
    for k, problem in zip(masks_of(draws, cell), draws.problems(cell), strict=True):
        assert MASKS[k] == problem.mask


def _made_up(planted: float, people: Population = PEOPLE) -> Offers:
    """Everybody is served by luck; ``planted`` less often with the masks of the non-privileged."""
    rng = np.random.default_rng(2)
    share = np.full(len(MASKS), 0.6)
    share[1 + MASKS[1:].index(("amount", "duration"))] -= planted
    got = rng.random((len(people), len(MASKS))) < share
    cost = np.where(got, rng.exponential(0.1, got.shape), 0.0)
    return Offers("made up", got, cost, np.where(got, rng.normal(size=got.shape), 0.0))


def test_chance_is_told_from_what_is_there() -> None:
    """Where race means nothing 5% of the draws look significant; a planted gap is seen in nearly all."""
    rows = summary(list(study(PEOPLE, [_made_up(0.0)], 25, 0, lambda: None)))
    of_race = [r for r in rows if r["gap"] == "non-white - white"]
    assert len(rows) == len(SCENARIOS) * len(GAPS) * len(MEASURES)
    assert np.mean([r["share significant"] for r in of_race]) < 0.15
    assert all(r["low"] < 0 < r["high"] for r in of_race)
    planted = summary(list(study(PEOPLE, [_made_up(0.5)], 6, 0, lambda: None)))
    (seen,) = (
        r
        for r in planted
        if (r["scenario"], r["gap"], r["measure"])
        == ("race-correlated", "non-white - white", "share with recourse")
    )
    assert seen["share significant"] == 1.0 and seen["high"] < 0


def test_the_interval_holds_draw_and_sample() -> None:
    """It is wider than the draws alone spread."""
    rows = summary(list(study(PEOPLE[:300], [_made_up(0.0, PEOPLE[:300])], 20, 0, lambda: None)))
    wide = [r["high"] - r["low"] > 2 * 1.96 * r["sd of draws"] for r in rows if r["scenario"] == SCENARIOS[0]]
    assert np.mean(wide) > 0.8


def test_what_each_mask_is_worth(solved: Answers) -> None:
    """All four serve at least whom any two serve, and no dearer on those."""
    offers = certified_offers(SOME, solved.known["certified"])
    four, *pairs = offers.served.T
    for k, pair in enumerate(pairs, start=1):
        assert four[pair].all()
        assert (offers.cost[pair, 0] <= offers.cost[pair, k] * (1 + 1e-6)).all()
    rows = by_mask(SOME, [offers])
    assert len(rows) == 3 * len(MASKS)
    assert rows[2]["share with recourse"] == four.mean()


def test_the_command(tmp_path: Path) -> None:
    """Tables, draws and figure; a rerun solves nothing; another run's folder is refused."""
    arguments = [
        "lab",
        "reproduce",
        "fairness",
        "--limit",
        "20",
        "--draws",
        "3",
        "--jobs",
        "1",
        "--out",
        str(tmp_path),
    ]
    assert main(arguments) == 0
    before = (tmp_path / "answers_certified.csv").read_bytes()
    assert main(arguments) == 0
    assert (tmp_path / "answers_certified.csv").read_bytes() == before
    with (tmp_path / "fairness.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(SCENARIOS) * len(GAPS) * len(MEASURES)
    assert "<svg" in (tmp_path / "fairness.svg").read_text()
    assert (tmp_path / "fairness_draws.csv.gz").stat().st_size > 200
    assert main([*arguments[:3], "21", *arguments[4:]]) == 2
