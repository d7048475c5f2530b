"""milp-recourse certify without argument, or with one instance."""

from __future__ import annotations

import csv
import json

import pytest
from jsonschema import Draft202012Validator

import milp_recourse.formats.instances_path
from milp_recourse.cli import main
from milp_recourse.formats.json_schemas import FOLDER
from milp_recourse.problem.instance import Reference
from milp_recourse.problem.result import Result, Status
from milp_recourse.questions.solve import DEFAULTS
from milp_recourse.reports.instances import compare
from tests.helpers.format_samples import loan_instance, tree_instance

KNOWN = 2 * (5.501 / 5) ** 2


@pytest.fixture
def shipped(fake, tmp_path, monkeypatch):
    """A shelf of instances: two smoke, three Loan, and files that are no instances."""
    monkeypatch.setattr(milp_recourse.formats.instances_path, "instances_path", lambda: tmp_path / "shelf")

    def put(name, data):
        file = tmp_path / "shelf" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(data))

    sample = loan_instance() | {"plausibility": None}
    put("smoke/known.json", sample | {"name": "known", "reference": {"status": "optimal", "cost": KNOWN}})
    put("smoke/open.json", sample | {"name": "open"})
    put("loan/classifier.json", sample["classifier"])
    for k in range(3):
        put(f"loan/loan_{k}.json", sample | {"name": f"loan_{k}"})
    return put


def run(tmp_path, *options):
    return main(["certify", "--backend", "fake", "--out", str(tmp_path / "out"), *options])


def test_the_shipped_instances_are_run_and_compared(shipped, tmp_path, capsys):
    """All of smoke, the first Loan instances, a table to read, files for scripts."""
    fits = pytest.approx(KNOWN, rel=2e-3)
    assert run(tmp_path, "--limit", "2") == 4, "the fake back end stays just above the margin"
    printed = capsys.readouterr().out
    assert "contradicts" in printed and "savings from -3 to 2.502" in printed
    summary = json.loads((tmp_path / "out" / "results.json").read_text())
    Draft202012Validator(json.loads((FOLDER / "results-1.schema.json").read_text())).validate(summary)
    assert [one["name"] for one in summary["results"]] == ["known", "open", "loan_0", "loan_1"]
    assert summary["results"][0]["result"]["cost"] == fits
    table = list(csv.DictReader((tmp_path / "out" / "results.csv").read_text().splitlines()))
    assert [row["name"] for row in table] == ["known", "open", "loan_0", "loan_1"]


def test_a_known_answer_that_agrees_is_said(shipped, tmp_path, capsys):
    """Exit code 0; running again overwrites the folder."""
    shipped(
        "smoke/known.json",
        loan_instance() | {"plausibility": None, "reference": {"status": "limit", "cost": 9}},
    )
    for _ in range(2):
        assert run(tmp_path) == 0
        assert "1 agree with their known answer, 0 contradict it" in capsys.readouterr().out


def test_what_cannot_be_solved_is_said_and_passed_over(shipped, fake, tmp_path, capsys, monkeypatch):
    """An instance the defaults refuse is named as such; the other instances are solved all the same."""
    for name in DEFAULTS:
        monkeypatch.setitem(milp_recourse.solvers._MODULES, name, "tests.helpers.fake_backend:FakeBackend")
    shipped("smoke/known.json", tree_instance())
    assert main(["certify", "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "not solved" in printed and "it climbs no trees" in printed
    assert "5 applicants: 4 optimal, 1 not solved" in printed
    summary = json.loads((tmp_path / "out" / "results.json").read_text())
    assert (summary["applicants"], summary["not_solved"]) == (4, 1)
    Draft202012Validator(json.loads((FOLDER / "results-1.schema.json").read_text())).validate(summary)


def test_an_answer_that_claims_nothing_does_not_agree(shipped, fake, tmp_path, capsys):
    """The grid's not-found says nothing about a known answer."""
    fake.script = ["not found"]
    shipped(
        "smoke/known.json", loan_instance() | {"plausibility": None, "reference": {"status": "infeasible"}}
    )
    assert run(tmp_path) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "0 agree with their known answer, 0 contradict it, 1 claim nothing" in printed


def test_an_interrupt_keeps_what_is_solved(shipped, fake, tmp_path, capsys):
    """Exit code 130 and one line; results so far are written."""
    fake.script = ["solve", "interrupt"]
    shipped("smoke/known.json", loan_instance() | {"plausibility": None})
    assert run(tmp_path) == 130
    assert "1 of 5 instances kept" in capsys.readouterr().err
    assert json.loads((tmp_path / "out" / "results.json").read_text())["applicants"] == 1


def test_one_instance_has_a_table_of_one_row(fake, instance_file, tmp_path, capsys):
    """certify FILE works for an instance too; a limit is exit code 3."""
    command = ["certify", str(instance_file), "--backend", "fake", "--out", str(tmp_path / "out")]
    assert main(command) == 0
    assert len((tmp_path / "out" / "results.csv").read_text().splitlines()) == 2
    fake.script, fake.calls = ["limit"], 0
    assert main(command) == 3
    assert "time is up" not in capsys.readouterr().err


def test_one_refused_instance_is_bad_input(fake, instance_file, tmp_path, capsys):
    """Exit code 2, and no folder is made."""
    fake.script = ["refuse"]
    assert main(["certify", str(instance_file), "--backend", "fake", "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def result(status, cost=None, bound=None):
    proof = "solver" if status in ("optimal", "infeasible", "limit") else None
    action = None if cost is None else {}
    accepted = cost is not None
    return Result(
        Status(status), cost, bound, proof, action, accepted_exact=accepted, accepted_deployed=accepted
    )


@pytest.mark.parametrize(
    ("reference", "answer", "verdict"),
    [
        (("optimal", 2.0, 2.0), ("optimal", 2.0, 2.0), "agrees"),
        (("optimal", 2.0), ("optimal", 2.0 + 1e-6, 2.0), "agrees"),
        (("optimal", 2.0), ("optimal", 2.1, 2.1), "contradicts"),
        (("optimal", 2.0), ("infeasible",), "contradicts"),
        (("infeasible",), ("infeasible",), "agrees"),
        (("infeasible",), ("found", 3.0), "contradicts"),
        (("infeasible",), ("not-found",), "claims nothing"),
        (("optimal", 2.0), ("not-found",), "claims nothing"),
        (("optimal", 2.0), ("limit", None, 0.0), "claims nothing"),
        (("infeasible",), ("limit", None, 0.5), "agrees"),
        (("optimal", 2.0), ("found", 3.0), "agrees"),
        (("optimal", 2.0), ("found", 1.5), "contradicts"),
        (("optimal", 2.0), ("limit", 3.0, 1.0), "agrees"),
        (("optimal", 2.0), ("limit", None, 2.5), "contradicts"),
        (("limit", 3.0, 1.0), ("optimal", 2.0, 2.0), "agrees"),
    ],
)
def test_answers_are_compared_as_intervals(reference, answer, verdict):
    """Two answers agree when both can be true."""
    assert compare(Reference(*reference), result(*answer)) == verdict


def test_certificates_of_an_earlier_run_do_not_stay(tmp_path):
    """The same instance, without certificates, in the same folder."""
    smoke = milp_recourse.formats.instances_path.instances_path() / "smoke"
    out = tmp_path / "out"
    assert main(["certify", str(smoke / "hold.json"), "--out", str(out)]) == 0
    assert [file.name for file in (out / "certificates").iterdir()] == ["0.json.gz"]
    assert main(["certify", str(smoke / "hold.json"), "--out", str(out), "--no-certificates"]) == 0
    assert not list((out / "certificates").iterdir())
