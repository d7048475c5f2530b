"""milp-recourse certify POPULATION: one row per applicant, in order, and a way to go on."""

from __future__ import annotations

import csv
import json

import pytest
from jsonschema import Draft202012Validator

from milp_recourse import read_population, solve_population
from milp_recourse.cli import main
from milp_recourse.errors import BadInput
from milp_recourse.formats.json_schemas import FOLDER

COLUMNS = "index,status,cost,lower_bound,gap,proof,backend,seconds,certificate"
ACTIONS = (
    ",action_gender,action_age,action_education,action_amount,action_duration,action_income,action_savings"
)


@pytest.fixture
def certify(fake, population_file, tmp_path):
    """Runs the command on the three applicants into one folder."""

    def run(*options: str) -> int:
        out = [] if "--out" in options else ["--out", str(tmp_path / "out")]
        return main(["certify", str(population_file), "--backend", "fake", *out, *options])

    return run


def rows(tmp_path):
    return list(csv.DictReader((tmp_path / "out" / "results.csv").read_text().splitlines()))


def test_a_population_writes_its_table_and_summary(certify, tmp_path, capsys):
    """The documented columns, empty cells for null, a summary that fits its schema."""
    assert certify() == 0
    text = (tmp_path / "out" / "results.csv").read_text()
    assert (
        text.splitlines()[0] == COLUMNS + ACTIONS + ACTIONS.replace("action_", "counterfactual_") + ",message"
    )
    table = rows(tmp_path)
    assert [row["index"] for row in table] == ["0", "1", "2"]
    assert [row["status"] for row in table] == ["optimal"] * 3
    assert [row["proof"] for row in table] == ["solver", "solver", "rigorous"]
    assert float(table[0]["action_savings"]) == pytest.approx(2.502)
    assert table[0]["action_income"] == table[0]["certificate"] == ""
    assert table[2]["action_savings"] == "" and float(table[2]["cost"]) == 0
    summary = json.loads((tmp_path / "out" / "results.json").read_text())
    Draft202012Validator(json.loads((FOLDER / "results-1.schema.json").read_text())).validate(summary)
    assert (summary["applicants"], summary["counts"], summary["backend"]) == (3, {"optimal": 3}, "fake")
    costs = sorted(float(row["cost"]) for row in table)
    assert summary["cost_median"] == costs[1] and summary["cost_mean"] == pytest.approx(sum(costs) / 3)
    printed = capsys.readouterr()
    assert "3 applicants: 3 optimal" in printed.out and printed.err == ""


def test_one_limit_makes_exit_code_3(certify, fake, tmp_path):
    """The row has both bounds."""
    fake.script = ["solve", "limit"]
    assert certify() == 3
    row = rows(tmp_path)[1]
    assert row["status"] == "limit" and float(row["gap"]) > 0 and row["action_savings"] != ""


def test_infeasible_and_not_found_rows_have_no_action(certify, fake, tmp_path):
    """Exit code 0; null is an empty cell."""
    fake.script = ["infeasible", "not found"]
    assert certify() == 0
    first, second, _ = rows(tmp_path)
    assert (first["status"], first["cost"], first["lower_bound"], first["proof"]) == (
        "infeasible",
        "",
        "",
        "solver",  # a false claim has no certificate
    )
    assert (second["status"], second["cost"], second["proof"]) == ("not-found", "", "")


def test_an_interrupted_run_goes_on(certify, fake, tmp_path, capsys):
    """Ctrl-C keeps the rows so far; the same command solves only the rest."""
    fake.script = ["solve", "interrupt"]
    assert certify() == 130
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "1 of 3 applicants kept" in error
    kept = (tmp_path / "out" / "results.csv").read_text()
    assert kept.count("\n") == 2
    assert json.loads((tmp_path / "out" / "results.json").read_text())["applicants"] == 1
    fake.script, fake.calls = [], 0
    assert certify() == 0
    assert fake.calls == 1
    assert "going on after 1" in capsys.readouterr().out
    assert (tmp_path / "out" / "results.csv").read_text().startswith(kept)
    assert [row["index"] for row in rows(tmp_path)] == ["0", "1", "2"]


@pytest.mark.parametrize("torn", ["1,opti", "1,optimal,0.5,0.5", "7" + "," * 15 + "\n", '1,"opt'])
def test_a_torn_last_row_is_solved_again(certify, fake, tmp_path, torn):
    """A run killed while writing leaves half a row; it does not count."""
    assert certify("--limit", "1") == 0
    whole = (tmp_path / "out" / "results.csv").read_text()
    (tmp_path / "out" / "results.csv").write_text(whole + torn)
    assert certify() == 0
    assert (tmp_path / "out" / "results.csv").read_text().startswith(whole)
    assert [row["index"] for row in rows(tmp_path)] == ["0", "1", "2"]


def test_another_input_or_other_options_are_refused(
    certify, population_file, instance_file, tmp_path, capsys
):
    """A folder belongs to one run; what lies there is not touched."""
    assert certify() == 0
    before = (tmp_path / "out" / "results.csv").read_text()
    capsys.readouterr()

    def refused() -> bool:
        error = capsys.readouterr().err
        return error.count("\n") == 1 and "--out: got " in error

    assert certify("--time-limit", "9") == 2 and refused()
    out = ["--out", str(tmp_path / "out")]
    assert main(["certify", str(instance_file), "--backend", "fake", *out]) == 2 and refused()
    data = json.loads(population_file.read_text())
    data["factuals"][0]["savings"] = -2.5
    population_file.write_text(json.dumps(data))
    assert certify() == 2 and refused()
    assert (tmp_path / "out" / "results.csv").read_text() == before


def test_results_of_something_else_are_not_overwritten(certify, instance_file, tmp_path, capsys):
    """A single instance's results.csv is no half-finished population."""
    out = ["--out", str(tmp_path / "out")]
    assert main(["certify", str(instance_file), "--backend", "fake", *out]) == 0
    assert certify() == 2
    assert "got other results" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options", [("--jobs", "0"), ("--limit", "0"), ("--time-limit", "0"), ("--backend", "no")]
)
def test_bad_options_write_nothing(certify, tmp_path, options):
    """Exit code 2 before any folder is made."""
    assert certify(*options) == 2
    assert not (tmp_path / "out").exists()


def test_an_unwritable_folder_is_refused(certify, population_file, capsys):
    """Here: one that would lie inside a file."""
    assert certify("--out", str(population_file / "out")) == 2
    assert capsys.readouterr().err.startswith("milp-recourse: --out: got ")


def test_applicants_are_solved_lazily_and_in_order(fake, population_file):
    """The Python call is an iterator; its arguments are checked before the first applicant."""
    population = read_population(population_file)
    results = solve_population(population, backend="fake")
    assert fake.calls == 0
    assert next(results).status.value == "optimal" and fake.calls == 1
    assert [r.cost for r in solve_population(population, "fake", first=2)] == [0.0]
    with pytest.raises(BadInput, match="jobs: got 0"):
        solve_population(population, "fake", jobs=0)


def test_processes_give_the_same_rows_in_order(population_file, tmp_path):
    """Two processes, the real back end."""
    population = read_population(population_file)
    one, two = (list(solve_population(population, "highs", jobs=jobs)) for jobs in (1, 2))
    assert [r.status for r in one] == [r.status for r in two]
    assert [r.cost for r in one] == pytest.approx([r.cost for r in two], rel=2e-6)
