"""``reproduce all`` on three applicants: tables, invariants, resuming, and what its parts compute."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from milp_recourse.cli import main
from milp_recourse.elicitation.schemes import LOAN_ACTIONABLE
from milp_recourse.formats import read_population
from milp_recourse.lab.run_table import read_rows
from milp_recourse.lab.studies import kept_answers as answers_module
from milp_recourse.lab.studies.fairness import bootstrap, bounds_of_mean, largest_costs
from milp_recourse.lab.studies.kept_answers import Answer, Answers
from milp_recourse.lab.studies.paper_cells import SCENARIOS, TABLES, Cell, Draws, Problem
from milp_recourse.lab.studies.published import published
from milp_recourse.lab.studies.tables import contradictions, served, table
from milp_recourse.problem.population import Population

PEOPLE = read_population(Path(__file__).resolve().parents[3] / "instances" / "loan" / "population.json")
FIVE = Population(PEOPLE.template, PEOPLE.factuals[:5], PEOPLE.preferences[:5])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three applicants with three certificates checked."""
    out = tmp_path_factory.mktemp("reproduce")
    arguments = ["lab", "reproduce", "all", "--limit", "3", "--certificates", "3", "--jobs", "1"]
    assert main([*arguments, "--out", str(out)]) == 0
    return out


def test_certified_is_never_behind_the_grid(folder: Path) -> None:
    """In every cell: at least the grid's validity, and over both at most its optimised cost."""
    cells = 0
    for name in ("table1", "table2", "table3", "table5", "table6"):
        of = {
            m: [r for r in read_rows(folder / f"{name}.csv") if r["method"] == m]
            for m in ("grid", "certified")
        }
        for grid, certified in zip(of["grid"], of["certified"], strict=True):
            assert float(certified["validity"]) >= float(grid["validity"])
            if int(grid["both"]):
                optimised = "optimised mean both"
                assert float(certified[optimised]) <= float(grid[optimised]) * (1 + 1e-6)
            cells += 1
    assert cells == 5 + 8 + 8 + 10 + 12


def test_plausible_where_it_was_asked_for(folder: Path) -> None:
    """Plausibility is 1 over the served where it is a constraint; table 6 measures it where not."""
    measured = [
        r for r in read_rows(folder / "table6.csv") if r["method"] != "published" and r["plausibility"]
    ]
    asked = [float(r["plausibility"]) for r in measured if r["plausibility asked"] == "yes"]
    free = [float(r["plausibility"]) for r in measured if r["plausibility asked"] == "no"]
    served_by_any = [value for value in asked if not np.isnan(value)]
    assert served_by_any and set(served_by_any) == {1.0}
    assert min(free) < 1.0


def test_certificates_were_verified_and_verify_again(folder: Path) -> None:
    """The three drawn are verified in the run; each agrees with its row."""
    checked = json.loads((folder / "summary.json").read_text())["spot check"]
    assert checked == {"drawn": 3, "of": checked["of"], "verified": 3, "agree": 3, "complaints": []}
    assert len(list((folder / "spot_check").rglob("certificates/*.json.gz"))) == 3


def test_report_needs_nothing_from_elsewhere(folder: Path) -> None:
    """One file: pictures inline, no address is loaded."""
    text = (folder / "report.html").read_text(encoding="utf-8")
    for forbidden in ("src='http", 'src="http', "<script", "<link", "@import"):
        assert forbidden not in text
    pictures = {path.stem for path in folder.glob("*.png")}
    assert len(pictures) >= 9 and pictures == {path.stem for path in folder.glob("*.svg")}
    assert text.count('src="data:image/svg+xml;base64,') == text.count("<figcaption>") == len(pictures)
    assert all(f'id="picture-{name}"' in text for name in pictures)
    named = re.findall('<a href="#([a-z0-9]+)">', text)
    assert set(TABLES) | {"pictures", "found", "certain", "columns"} <= set(named)
    assert all(f'<h2 id="{name}">' in text for name in named)
    assert text.count("<caption>") == len(TABLES) + 1, "every target's and the sensitivity table"
    assert text.index("<figure") < text.index("<table>"), "pictures first"


def test_a_rerun_solves_nothing_and_a_cut_off_row_is_solved_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stopped run goes on after its last whole row; another seed is refused."""
    asked: list[int] = []
    real = answers_module._certified_part

    def counted(template, time_limit, batch):  # type: ignore[no-untyped-def]
        asked.append(len(batch))
        return real(template, time_limit, batch)

    monkeypatch.setattr(answers_module, "_certified_part", counted)
    arguments = ["--limit", "3", "--certificates", "0", "--jobs", "1", "--out", str(folder)]
    before = read_rows(folder / "table1.csv")
    assert main(["lab", "reproduce", "table1", *arguments]) == 0
    assert asked == []
    table_file = folder / "answers_certified.csv"
    text = table_file.read_text()
    table_file.write_text(text[:-20])
    assert main(["lab", "reproduce", "table6", *arguments]) == 0  # which asks what was written last
    assert asked == [1]
    assert main(["lab", "reproduce", "table1", *arguments]) == 0
    after = read_rows(folder / "table1.csv")
    assert [r["cost mean"] for r in after] == [r["cost mean"] for r in before]
    assert main(["lab", "reproduce", "table1", "--seed", "1", *arguments]) == 2
    assert "another run" in capsys.readouterr().err
    assert main(["lab", "reproduce", "table4", *arguments]) == 2


def test_draws_are_those_of_the_paper() -> None:
    """Masks nested by rank, scenarios of two features, races in equal halves of each gender."""
    draws = Draws(0, Population(PEOPLE.template, PEOPLE.factuals[:400], PEOPLE.preferences[:400]))
    by_count = {c: draws.problems(Cell(c)) for c in ("1", "2", "3", "4", "random")}
    for fewer, more in (("1", "2"), ("2", "3"), ("3", "4")):
        for a, b in zip(by_count[fewer], by_count[more], strict=True):
            assert set(a.mask) < set(b.mask) and len(a.mask) == int(fewer)
    shared = {p for c in ("1", "2", "3", "4") for p in by_count[c]}
    assert set(by_count["random"]) <= shared, "table 1's last row asks nothing new"
    gender = np.array([one["gender"] for one in draws.population.factuals])
    for value in (0.0, 1.0):
        assert abs(draws.race()[gender == value].mean() - 0.5) <= 0.5 / (gender == value).sum()
    income = np.array([one["income"] for one in draws.population.factuals])
    rich = draws.privileged("income-dependent")
    assert rich.mean() == pytest.approx(0.25, abs=0.01) and income[rich].min() >= income[~rich].max()
    race = draws.race()
    correlated = draws.privileged("race-correlated")
    assert correlated[race].mean() == pytest.approx(0.9, abs=0.06)
    assert correlated[~race].mean() == pytest.approx(0.05, abs=0.05)
    for scenario, cell in zip(SCENARIOS[1:], TABLES["figure4"][1:], strict=True):
        assert cell.distribution == scenario
        assert {len(p.mask) for p in draws.problems(cell)} == {2}


def test_every_cell_of_a_table_has_its_printed_row() -> None:
    """And table 6 without plausibility is not table 1's."""
    for name in ("table1", "table2", "table5", "table6"):
        assert all(published(name, cell) is not None for cell in TABLES[name])
    assert published("table6", Cell("1", plausible=False)) != published("table6", Cell("1"))
    assert published("figure3", Cell("4")) is None


def test_what_a_row_counts() -> None:
    """hap over the served, missed over those with recourse, unweighted cost beside the optimised."""
    draws = Draws(0, FIVE)
    cell = Cell("2", profile="linear")
    problems = draws.problems(cell)
    scores = draws.scores(cell)
    scale, known = PEOPLE.template.cost.lengths, {}
    for k, problem in enumerate(problems):
        least = LOAN_ACTIONABLE[np.where(scores.actionable[k], scores.values[k], 0).argmax()]
        best = next(name for name in problem.mask if name != least)
        name = least if k == 0 else best  # only the first one's least preferred feature moves
        weight = dict(zip(problem.mask, problem.weights, strict=True))[name]
        action = {name: FIVE.factuals[k][name] + scale[name]}
        known[problem] = Answer("optimal", weight, weight, action, 1.0)
    known[problems[4]] = Answer("infeasible", None, None, None, 1.0)
    fewer = dict(known)
    fewer[problems[0]] = Answer("not-found", None, None, None, 1.0)

    # every action here raises a feature, and what follows: the sum of a row grows
    grid = served(draws, cell, problems, fewer, lambda points: -points.sum(axis=1))
    certified = served(draws, cell, problems, known, lambda points: points.sum(axis=1))
    row = {r["method"]: r for r in table("table2", Cell("random", profile="linear"), grid, certified)}
    assert row["certified"]["served"] == 4 and row["certified"]["validity"] == 0.8
    assert row["certified"]["hap"] == 0.25 and row["grid"]["hap"] == 0.0
    assert row["certified"]["cost mean"] == pytest.approx(1.0)
    assert (row["grid"]["plausibility learned"], row["certified"]["plausibility learned"]) == (0.0, 1.0)
    assert row["grid"]["missed"] == 1 and row["grid"]["missed share"] == 0.25
    assert row["certified"]["optimised mean both"] == pytest.approx(1.0), "w = 1 for the preferred"
    assert certified.optimised[0] == pytest.approx(7.0)


def test_scores_are_uniform_and_ties_count_for_hap(tmp_path: Path) -> None:
    """Table 3: 1..4 where all can be acted on, 1..5 else; every least preferred feature of a tie counts; who
    scores everything out has no recourse, on disk too."""
    draws = Draws(0, Population(PEOPLE.template, PEOPLE.factuals[:2000], PEOPLE.preferences[:2000]))
    soft, hard = Cell("4", elicitation="score"), Cell("random", elicitation="score")
    for cell, highest in ((soft, 4), (hard, 5)):
        values, counts = np.unique(draws.scores(cell).values, return_counts=True)
        assert values.tolist() == list(range(1, highest + 1))
        assert counts / counts.sum() == pytest.approx(1 / highest, abs=0.02)
    assert {len(p.mask) for p in draws.problems(soft)} == {4}
    nobody = next(k for k, p in enumerate(draws.problems(hard)) if not p.mask)
    one = Population(PEOPLE.template, PEOPLE.factuals[nobody : nobody + 1], PEOPLE.preferences[:1])
    kept, problem = Answers(tmp_path, LOAN_ACTIONABLE), Problem(0, (), (), True)
    kept.solve_certified(one, [problem], 60.0, 1, lambda: None)
    kept.solve_grid(one, [problem], 1, lambda: None)
    again = Answers(tmp_path, LOAN_ACTIONABLE).known
    assert again["certified"][problem].status == "infeasible"
    assert again["grid"][problem].status == "not-found"

    scores = draws.scores(soft)
    worst = scores.values == scores.values.max(axis=1, keepdims=True)
    tied = [k for k in range(200) if worst[k].sum() == 2]
    known, expected = {}, []
    for k, problem in enumerate(draws.problems(soft)[:200]):
        moved = int(np.flatnonzero(worst[k])[-1]) if k in tied else k % 4
        name = LOAN_ACTIONABLE[moved]
        known[problem] = Answer("optimal", 1.0, 1.0, {name: draws.population.factuals[k][name] + 1e3}, 0.0)
        expected.append(worst[k, moved])
    first = Draws(0, Population(PEOPLE.template, PEOPLE.factuals[:200], PEOPLE.preferences[:200]))
    assert tied and (first.scores(soft).values == scores.values[:200]).all()
    shown = served(first, soft, first.problems(soft), known)
    assert shown.hard.tolist() == shown.hard_large.tolist() == expected


def test_contradictions_are_noticed() -> None:
    """A grid point below the bound, where infeasibility is claimed, or cheaper than the optimum."""
    problem = Problem(0, ("amount",), (1.0,), True)
    point = {problem: Answer("found", 1.0, None, {"amount": 0.0}, 0.0)}
    good = Answer("optimal", 0.9, 0.9, {"amount": 0.0}, 0.0)
    assert contradictions([problem], point, {problem: good}) == []
    for bad in (
        replace(good, lower_bound=1.1, cost=1.1),
        replace(good, status="infeasible", cost=None, lower_bound=None),
        replace(good, status="limit", cost=1.2, lower_bound=0.5),
    ):
        assert len(contradictions([problem], point, {problem: bad})) == 1


def test_answers_survive_the_disk(tmp_path: Path) -> None:
    """Costs and actions come back to the last bit; holding nothing and finding nothing differ."""
    problem = Draws(0, FIVE).problems(Cell("4"))[:2]
    kept = Answers(tmp_path, LOAN_ACTIONABLE)
    kept.solve_certified(FIVE, problem, 60.0, 1, lambda: None)
    again = Answers(tmp_path, LOAN_ACTIONABLE)
    assert again.files["certified"].missing(problem) == []
    for one in problem:
        before, after = kept.known["certified"][one], again.known["certified"][one]
        assert (after.cost, after.lower_bound, after.action) == (
            before.cost,
            before.lower_bound,
            before.action,
        )


def test_bounds_of_a_mean_are_the_extremes_over_every_case() -> None:
    """Undecided applicants count or not, whichever is worse: brute force over all subsets."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        lower = rng.uniform(0, 1, 6)
        upper = lower + rng.uniform(0, 1, 6)
        certain = rng.random(6) < 0.4
        cases = []
        for taken in product((False, True), repeat=6):
            who = certain | np.array(taken)
            if who.any():
                cases.append((lower[who].mean(), upper[who].mean()))
        low, high = bounds_of_mean(lower, upper, certain)
        assert low == pytest.approx(min(a for a, _ in cases))
        assert high == pytest.approx(max(b for _, b in cases))


def test_bootstrap_intervals_have_the_right_width() -> None:
    """The standard error of a mean, to a few percent."""
    values = np.random.default_rng(0).normal(3.0, 2.0, 400)
    samples = bootstrap(values, np.random.default_rng(1))
    assert samples.mean() == pytest.approx(values.mean(), abs=0.01)
    assert samples.std() == pytest.approx(values.std() / 20, rel=0.08)


def test_no_optimum_costs_more_than_the_most_expensive_action() -> None:
    """The ceiling of an unfinished search is the far corner of its box."""
    draws = Draws(0, FIVE)
    problems = draws.problems(Cell("2"))
    ceiling = largest_costs(draws, problems)
    for k, problem in enumerate(problems):
        corners = product(*(PEOPLE.template.by_name[name].action_bounds for name in problem.mask))
        costs = [
            sum(
                ((value - FIVE.factuals[k][name]) / PEOPLE.template.cost.lengths[name]) ** 2
                for name, value in zip(problem.mask, corner, strict=True)
            )
            for corner in corners
        ]
        assert ceiling[k] == pytest.approx(max(costs))
