"""Rows as they are proven, one person of a population, people who cannot be read, full disks, odd rows."""

from __future__ import annotations

import csv
import errno
import json
import os
import resource
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from milp_recourse import read_population, solve
from milp_recourse.cli import main
from milp_recourse.errors import BadInput, MachineFailed
from milp_recourse.problem.population import Population
from milp_recourse.questions.solve import batch_size, solve_as_finished, solve_population
from milp_recourse.questions.workers import Workers
from milp_recourse.reports import population_folder
from milp_recourse.reports.population_folder import PopulationFolder
from milp_recourse.solvers import Options
from tests.helpers.processes import check_unwritable
from verify.__main__ import main as verify

ROOT = Path(__file__).parents[2]
OPTIONS = {"backend": "fake", "time_limit": None, "certificates": False}


def rows(out: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((out / "results.csv").read_text(encoding="utf-8").splitlines()))


@pytest.fixture
def with_ids(population_file, tmp_path):
    """The three applicants in a CSV with identifiers, one of them of two lines."""
    data = json.loads(population_file.read_text())
    with (tmp_path / "people.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", *data["factuals"][0]])
        for name, one in zip(("A 1", "B\n2", "A 1"), data["factuals"], strict=True):
            writer.writerow([name, *one.values()])
    data["factuals"] = {"csv": "people.csv"}
    population_file.write_text(json.dumps(data))
    return population_file


def test_finished_rows_wait_for_nobody_and_end_in_order(fake, population_file, tmp_path) -> None:
    """Written as they come, put in order at the end; opened in between, nothing is lost."""
    people = read_population(population_file)
    folder = PopulationFolder(tmp_path / "out", people, OPTIONS)
    results = list(solve_population(people, "fake"))
    folder.add(2, results[2])
    folder.add(0, results[0])
    assert [row["index"] for row in rows(tmp_path / "out")] == ["2", "0"]
    again = PopulationFolder(tmp_path / "out", people, OPTIONS)
    assert again.done == {0, 2} and again.damaged == [] and again.left(range(3)) == [1]
    again.add(1, results[1])
    again.summarise()
    assert [row["index"] for row in rows(tmp_path / "out")] == ["0", "1", "2"]


def test_odd_rows_are_dropped_aloud_and_solved_again(fake, population_file, tmp_path, capsys) -> None:
    """A line in the middle that is no row of this run, a status that does not exist, a row twice."""
    command = ["certify", str(population_file), "--backend", "fake", "--out", str(tmp_path / "out")]
    assert main(command) == 0
    table = tmp_path / "out" / "results.csv"
    whole = table.read_text()
    head, first, second, third = whole.splitlines(keepends=True)
    table.write_text(head + first + "garbage\n" + second.replace("optimal", "optimul") + third + third)
    capsys.readouterr()
    assert main(command) == 0
    assert "dropped: lines 3, 4, 6" in capsys.readouterr().err
    without = [{k: v for k, v in row.items() if k != "seconds"} for row in rows(tmp_path / "out")]
    table.write_text(whole)
    assert without == [{k: v for k, v in row.items() if k != "seconds"} for row in rows(tmp_path / "out")]


def test_identifiers_come_second(fake, with_ids, tmp_path) -> None:
    """In one line each; the same one twice is no matter."""
    assert main(["certify", str(with_ids), "--backend", "fake", "--out", str(tmp_path / "out")]) == 0
    assert list(rows(tmp_path / "out")[0])[:3] == ["index", "id", "status"]
    assert [row["id"] for row in rows(tmp_path / "out")] == ["A 1", "B 2", "A 1"]
    assert read_population(with_ids)[1:].ids == ("B\n2", "A 1")


def test_the_checker_knows_the_columns(with_ids, tmp_path, capsys) -> None:
    """Identifiers, counterfactuals and messages; a changed counterfactual or identifier is rejected."""
    out = tmp_path / "out"
    assert main(["certify", str(with_ids), "--out", str(out)]) == 0
    assert verify([str(out), str(with_ids), "--jobs", "1"]) == 0
    table = out / "results.csv"
    whole = table.read_text()
    row = rows(out)[0]
    assert row["counterfactual_age"] and row["message"] == ""
    for column, other in (("counterfactual_income", "7.25"), ("id", "A 2")):
        table.write_text(
            whole.replace(f",{row[column]},", f",{other},") if column == "id" else changed(out, column, other)
        )
        capsys.readouterr()
        assert verify([str(out), str(with_ids), "--jobs", "1"]) == 4
        said = capsys.readouterr().out
        assert "results.csv: " in said and f"{column} is not" in said
        table.write_text(whole)


def changed(out: Path, column: str, value: str) -> str:
    """results.csv with one cell of its first row changed."""
    found = rows(out)
    found[0][column] = value
    lines = [",".join(found[0])] + [",".join(row.values()) for row in found]
    return "\n".join(lines) + "\n"


def test_who_cannot_be_read_has_a_row_and_holds_up_nobody(fake, population_file, tmp_path) -> None:
    """Status bad-input, the reason as message; solve_population raises at their turn."""
    people = read_population(population_file)
    fault = BadInput("factuals.1.income", "nothing", "a number")
    people = replace(people, unreadable={1: fault})
    with pytest.raises(BadInput, match="income"):
        people[1]
    folder = PopulationFolder(tmp_path / "out", people, OPTIONS)
    left = folder.left(range(3))
    assert left == [0, 2]
    for index, result in solve_as_finished(people, "fake", Options(), left, Workers()):
        folder.add(index, result)
    summary = folder.summarise()
    assert summary["counts"] == {"bad-input": 1, "optimal": 2}
    row = rows(tmp_path / "out")[1]
    assert (row["status"], row["message"]) == ("bad-input", str(fault)) and row["cost"] == ""
    assert PopulationFolder(tmp_path / "out", people, OPTIONS).done == {0, 1, 2}
    with pytest.raises(BadInput, match="income"):
        list(solve_population(people, "fake"))
    assert people[1:].unreadable == {0: fault} and isinstance(people[1:], Population)


def test_what_the_model_itself_says_is_the_last_column(fake, population_file, tmp_path) -> None:
    """True, False, or nothing where it was not asked."""
    people = read_population(population_file)
    folder = PopulationFolder(tmp_path / "out", people, OPTIONS, confirmed=True)
    for k, (result, said) in enumerate(
        zip(solve_population(people, "fake"), (True, False, None), strict=True)
    ):
        folder.add(k, result, said)
    assert [row["confirmed"] for row in rows(tmp_path / "out")] == ["True", "False", ""]
    assert list(rows(tmp_path / "out")[0])[-2:] == ["message", "confirmed"]


def test_one_of_a_population(population_file, tmp_path, capsys) -> None:
    """solve, certify, export, alternatives and prove; its certificate is the population's."""
    people, cert = str(population_file), tmp_path / "c.json"
    assert main(["solve", people, "--index", "1", "--certificate", str(cert)]) == 0
    assert json.loads(cert.read_text())["index"] == 1
    assert main(["verify", str(cert), people]) == 0
    out = ["--out", str(tmp_path / "out")]
    assert main(["certify", people, "--index", "1", *out]) == 0
    assert [row["index"] for row in rows(tmp_path / "out")] == ["1"]
    assert main(["verify", str(tmp_path / "out"), people]) == 0
    assert main(["export", people, "--index", "1", "--out", str(tmp_path / "m.lp")]) == 0
    assert main(["alternatives", people, "--index", "1", "--by", "features", "--count", "1"]) == 0
    (tmp_path / "a.json").write_text(json.dumps(dict(solve(read_population(people)[1]).action)))
    arguments = ["--action", str(tmp_path / "a.json"), "--certificate", str(cert)]
    assert main(["prove", people, "--index", "1", *arguments]) == 0
    assert main(["verify", str(cert), people]) == 0


@pytest.mark.parametrize("command", ["solve", "export", "alternatives", "prove"])
def test_an_index_is_asked_for_where_it_is_needed(command, population_file, instance_file, tmp_path, capsys):
    """And refused where it is not, or names nobody; one line each."""
    more = {"export": ["--out", "x.lp"], "prove": ["--action", "a.json"]}.get(command, [])
    for file, index in (
        (population_file, []),
        (population_file, ["--index", "3"]),
        (instance_file, ["--index", "0"]),
    ):
        assert main([command, str(file), *index, *more]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and "--index: got" in said


def test_own_preferences_leave_an_instance_that_verifies(instance_file, population_file, tmp_path) -> None:
    """solve writes it beside the certificate, certify into the folder."""
    (tmp_path / "p.txt").write_text("can: savings, income")
    own = ["--preferences", str(tmp_path / "p.txt")]
    assert main(["solve", str(instance_file), *own, "--certificate", str(tmp_path / "c.json.gz")]) == 0
    assert main(["verify", str(tmp_path / "c.json.gz"), str(tmp_path / "c.instance.json")]) == 0
    for file, name in ((instance_file, "instance"), (population_file, "population")):
        out = tmp_path / name
        assert main(["certify", str(file), *own, "--out", str(out)]) == 0
        assert main(["verify", str(out), str(out / f"{name}.json")]) == 0


def test_an_empty_mask_is_said(fake, instance_file, capsys) -> None:
    """Likely a mistake: the answer, no action exists, is right all the same."""
    data = json.loads(instance_file.read_text())
    data["preferences"] = {"actionable": []}
    instance_file.write_text(json.dumps(data))
    assert main(["solve", str(instance_file), "--backend", "fake"]) == 0
    assert "preferences.actionable is empty" in capsys.readouterr().err


def test_a_full_disk_leaves_no_half_row(fake, population_file, tmp_path, monkeypatch) -> None:
    """MachineFailed, the table as before; the next run goes on."""
    people = read_population(population_file)
    folder = PopulationFolder(tmp_path / "out", people, OPTIONS)
    first, second, _ = solve_population(people, "fake")
    folder.add(0, first)
    before = folder.table.read_bytes()
    size = len(before) + 20
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        with pytest.raises(MachineFailed, match="row 1 not written"):
            folder.add(1, second)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert folder.table.read_bytes() == before and folder.done == {0}

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(MachineFailed, match="No space left"):
        population_folder.write_json({}, tmp_path / "x.json")
    assert not list(tmp_path.glob("*x.json*"))


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_exit_code_1_and_one_line(unbuffered: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where only stdout is full; a reader that has gone is no error to talk about."""
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    check_unwritable("-m", "milp_recourse", "solve", "instances/smoke/hold.json")


def test_a_batch_is_smaller_where_levers_move_many_others(population_file) -> None:
    """Half as many per lever beyond four that others move: the first rows come as soon."""
    from milp_recourse.problem.expression import Variable
    from milp_recourse.problem.instance import Preferences
    from milp_recourse.problem.scm import Mechanism, StructuralCausalModel, independent
    from milp_recourse.solvers import backend

    people, names = read_population(population_file), list(map(str, range(20)))
    chain = {later: Mechanism(Variable(one)) for one, later in pairwise(names)}
    sizes = []
    for scm in (StructuralCausalModel(names, chain), independent(names)):
        template = SimpleNamespace(scm=scm, classifier=people.template.classifier, scenarios=())
        for count in (2, 5, 6, 11, 15, 20):
            own = (Preferences(tuple(names[:count])),) * len(people)
            sizes.append(batch_size(replace(people, template=template, preferences=own), backend("bab")))
    assert sizes == [256, 256, 256, 16, 1, 1] + 6 * [256]
    assert batch_size(people, backend("highs")) == 1


def test_dictionaries_are_problems_too(instance_file, population_file) -> None:
    """What json.load gives; anything else is one clear line."""
    data = json.loads(instance_file.read_text())
    assert solve(data).cost == solve(instance_file).cost
    people = json.loads(population_file.read_text())
    assert len(list(solve_population(people))) == 3
    with pytest.raises(BadInput, match="problem: got a list; allowed: an Instance"):
        solve([data])  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="population: got a int"):
        solve_population(3)  # type: ignore[arg-type]
    for one in (read_population(population_file), solve(data), read_population(population_file)[0]):
        assert len(repr(one)) < 400


def test_wrong_columns_are_named(with_ids, capsys) -> None:
    """Which are missing, which unknown, which twice; a missing file is a CSV file."""
    file = with_ids.parent / "people.csv"
    text = file.read_text()
    for head, said in (
        (text.replace("income", "incom", 1), "no column 'income'; unknown columns 'incom'"),
        (text.replace("income", "age", 1), "columns twice 'age'; no column 'income'"),
    ):
        file.write_text(head)
        assert main(["certify", str(with_ids)]) == 2
        assert said in capsys.readouterr().err
    file.unlink()
    assert main(["certify", str(with_ids)]) == 2
    assert "allowed: a CSV file" in capsys.readouterr().err


def test_nothing_is_left_behind_by_what_is_refused(instance_file, population_file, tmp_path) -> None:
    """A back end that cannot solve networks; a target that does not exist."""
    out = tmp_path / "out"
    for file in (instance_file, population_file):
        assert main(["certify", str(file), "--backend", "cpsat", "--out", str(out)]) == 2
    assert main(["lab", "reproduce", "table9", "--out", str(out)]) == 2
    assert not out.exists()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_tables_cut_nothing_off(width) -> None:
    """Cells and headings are folded where a terminal is narrow."""
    from io import StringIO

    from rich.console import Console

    from milp_recourse.formats import read_instance
    from milp_recourse.lab.run_table import folded
    from milp_recourse.lab.studies.reproduce_command import SHOWN
    from milp_recourse.reports.result_rows import print_table

    instance = read_instance(ROOT / "instances/smoke/hold.json")
    printed = StringIO()
    console = Console(file=printed, width=width, force_terminal=True)
    print_table([("a_name_of_some_length", instance, solve(instance), "agrees")], console)
    columns = list(SHOWN)[:8]
    console.print(folded("table", [dict.fromkeys(columns, 0.123)], columns))
    assert "…" not in printed.getvalue()
