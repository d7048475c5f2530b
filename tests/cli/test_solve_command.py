"""milp-recourse solve, backends, export: what is printed, written and returned."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys

import pytest

import milp_recourse
from milp_recourse.cli import main
from milp_recourse.errors import Unsupported
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.formats.strict_json import read_json


def test_solve_prints_the_answer_and_writes_it(fake, instance_file, capsys):
    """Exit code 0; the file is the result format, gzipped by name."""
    file = instance_file.parent / "new" / "result.json.gz"
    assert main(["solve", str(instance_file), "--backend", "fake", "--json", str(file)]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "optimal (proof: solver)" in printed.out and "savings from -3 to 2.502" in printed.out
    result = json.loads(gzip.decompress(file.read_bytes()))
    assert (result["format"], result["status"], result["backend"]) == (
        "milp-recourse/result-1",
        "optimal",
        "fake",
    )
    assert result["gap"] <= max(1e-6 * result["cost"], 1e-9)
    assert list(result["action"]) == ["savings"] and result["accepted_deployed"] is True


@pytest.mark.parametrize(
    ("deed", "code", "status"),
    [("limit", 3, "limit"), ("infeasible", 0, "infeasible"), ("not found", 0, "not-found")],
)
def test_exit_codes(fake, instance_file, capsys, deed, code, status):
    """3 says that a limit was reached; infeasible, proven, and not-found are answers."""
    fake.script = [deed]
    assert main(["solve", str(instance_file), "--backend", "fake"]) == code
    assert capsys.readouterr().out.startswith(status)


def test_an_accepted_factual_needs_no_back_end(fake, instance_file):
    """Optimal at cost 0 with no action, rigorous, whichever back end is named."""
    data = json.loads(instance_file.read_text())
    data["factual"]["income"] = 9
    instance_file.write_text(json.dumps(data))
    result = milp_recourse.solve(instance_file, backend="fake")
    assert (result.status, result.cost, result.lower_bound) == (milp_recourse.Status.OPTIMAL, 0.0, 0.0)
    assert (result.action, result.proof, fake.calls) == ({}, "rigorous", 0)


def test_an_applicant_without_levers_is_infeasible(fake, instance_file):
    """Proven without a search, with a hint what to relax."""
    data = json.loads(instance_file.read_text())
    data["preferences"] = {"actionable": ["amount"], "ranges": {"amount": [90, 99]}}
    instance_file.write_text(json.dumps(data))
    result = milp_recourse.solve(instance_file, backend="fake")
    assert (result.status.value, result.proof, fake.calls) == ("infeasible", "rigorous", 0)
    assert "ranges" in result.message


@pytest.mark.parametrize("scale", [1e-154, 1e-300])
def test_costs_beyond_a_double_are_refused(fake, instance_file, scale):
    """Never "infeasible" because a cost overflowed during the search."""
    data = json.loads(instance_file.read_text())
    data["cost"]["scale"] = dict.fromkeys(data["cost"]["scale"], scale)
    instance_file.write_text(json.dumps(data))
    with pytest.raises(Unsupported, match=r"more than 1e\+300"):
        milp_recourse.solve(instance_file, backend="fake")
    assert fake.calls == 0


def one_line(capsys) -> str:
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1 and "Traceback" not in printed.err
    return printed.err


def test_what_a_back_end_cannot_solve_is_bad_input(fake, instance_file, capsys):
    """One line that says why; nothing written."""
    fake.script = ["refuse"]
    file = instance_file.parent / "result.json"
    assert main(["solve", str(instance_file), "--backend", "fake", "--json", str(file)]) == 2
    assert "a day off" in one_line(capsys)
    assert not file.exists()


BAD_USAGE = {
    "UnknownBackend": (["--backend", "oracle"], "oracle"),
    "TimeLimitZero": (["--time-limit", "0"], "time_limit: got 0"),
    "TimeLimitNegative": (["--time-limit", "-1"], "time_limit: got -1"),
    "TimeLimitNan": (["--time-limit", "nan"], "time_limit: got nan"),
    "TimeLimitText": (["--time-limit", "soon"], "--time-limit"),
    "UnknownOption": (["--fast"], "--fast"),
    "JsonIsAFolder": (["--json", "."], "--json: got ., a directory"),
    "JsonInsideAFile": (["--json", __file__ + "/result.json"], "file: got an error"),
}


@pytest.mark.parametrize(("options", "word"), BAD_USAGE.values(), ids=BAD_USAGE)
def test_bad_usage(fake, instance_file, capsys, options, word):
    """Exit code 2, one line on stderr."""
    given = options if "--backend" in options else [*options, "--backend", "fake"]
    assert main(["solve", str(instance_file), *given]) == 2
    assert word in one_line(capsys)


@pytest.mark.parametrize("arguments", [["dissolve"], ["solve"], ["solve", "missing.json"]])
def test_bad_commands(arguments, capsys):
    """An unknown command, a missing argument, a missing file."""
    assert main(arguments) == 2
    one_line(capsys)


def test_an_interrupt_is_one_line(fake, instance_file, capsys):
    """Exit code 130."""
    fake.script = ["interrupt"]
    assert main(["solve", str(instance_file), "--backend", "fake"]) == 130
    assert capsys.readouterr().err.strip().endswith("interrupted")


def test_backends_are_listed(fake, capsys):
    """With a reason where one is not usable."""
    assert main(["backends"]) == 0
    assert "fake" in capsys.readouterr().out


def test_help_is_shown_without_arguments(capsys):
    """All documented commands are there."""
    assert main([]) == 0
    printed = capsys.readouterr().out
    assert all(command in printed for command in ("certify", "solve", "backends", "export"))


def test_export_refuses_a_name_it_cannot_write(instance_file, capsys):
    """The format goes by the name of the file, and --format must agree."""
    assert main(["export", str(instance_file), "--format", "mps", "--out", "problem.lp"]) == 2
    one_line(capsys)


def test_export_says_what_it_wrote(instance_file, tmp_path, capsys):
    """One line on success."""
    target = tmp_path / "problem.lp"
    assert main(["export", str(instance_file), "--out", str(target)]) == 0
    assert capsys.readouterr().out == f"written: {target}\n"
    assert target.stat().st_size > 0


def test_python_m_is_the_same_command(tmp_path):
    """No traceback for a missing file either."""
    done = subprocess.run(
        [sys.executable, "-m", "milp_recourse", "solve", "missing.json"],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(milp_recourse.__path__[0] + "/..")},
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "milp-recourse: missing.json: file: got nothing: no such file; "
        "allowed: a JSON file, .json or .json.gz\n"
    )


def test_importing_the_package_loads_no_solver():
    """Nor torch, scikit-learn or pandas; the command line neither."""
    heavy = ("torch", "pyomo", "highspy", "ortools", "gurobipy", "sklearn", "pandas", "pyscipopt", "joblib")
    script = f"import sys, milp_recourse, milp_recourse.cli; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["certificate.json", "certificate.json.gz"])
def test_a_certificate_is_written_by_name(tmp_path, name):
    """Plain or gzipped; the result names it."""
    file, result = tmp_path / name, tmp_path / "result.json"
    instance = str(instances_path() / "smoke" / "hold.json")
    assert main(["solve", instance, "--certificate", str(file), "--json", str(result)]) == 0
    certificate = read_json(file)
    assert certificate["claim"] == "optimal" and certificate["configurations"]
    assert read_json(result)["certificate"] == str(file)


def test_a_false_claim_gets_no_certificate(fake, instance_file, tmp_path, capsys):
    """The made-up back end says optimal of what is not; the proof fails and one line says so."""
    file = tmp_path / "certificate.json"
    assert main(["solve", str(instance_file), "--backend", "fake", "--certificate", str(file)]) == 0
    assert capsys.readouterr().err.startswith("no certificate: ")
    assert not file.exists()
