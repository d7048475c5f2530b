"""docs/examples/judge_by_hand.py judges every Loan result, or says in one line why not."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from milp_recourse import read_instance, solve
from milp_recourse.formats import write_result
from milp_recourse.formats.instances_path import instance_files, instances_path

SCRIPT = Path(__file__).parents[2] / "docs" / "examples" / "judge_by_hand.py"


def judged(instance: Path, result: Path) -> subprocess.CompletedProcess[str]:
    """The script's run."""
    command = [sys.executable, str(SCRIPT), str(instance), str(result)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["loan/loan_000", "loan/loan_130", "smoke/loan_two_units"])
def test_it_agrees_and_notices_a_changed_action(name, tmp_path):
    """Every line says yes, ``as deployed`` too; with an action moved far off some line says no."""
    file = instances_path() / f"{name}.json"
    write_result(solve(read_instance(file)), tmp_path / "result.json")
    run = judged(file, tmp_path / "result.json")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "NO" not in run.stdout
    assert re.search("^yes  accepted in float(32|64)$", run.stdout, re.MULTILINE)
    result = json.loads((tmp_path / "result.json").read_text())
    result["action"] = {feature: value + 1000.0 for feature, value in result["action"].items()}
    (tmp_path / "result.json").write_text(json.dumps(result))
    run = judged(file, tmp_path / "result.json")
    assert run.returncode == 1
    assert "NO   inside bounds, ranges and domains" in run.stdout


def changed(instance: dict, result: dict, where: str, key: str, value: object) -> None:
    """Put a value into one of the two files."""
    part = instance if where == "instance" else result
    *parents, last = key.split(".")
    for parent in parents:
        part = part.setdefault(parent, {})
    part[last] = value


@pytest.mark.parametrize(
    ("where", "key", "value", "line"),
    [
        ("instance", "preferences.ranges", {"income": [50.0, 60.0]}, "inside bounds, ranges and domains"),
        ("instance", "preferences.actionable", ["amount"], "only what the applicant can act on"),
        ("instance", "accept.at_least", 1.0, "accepted in float32"),
        ("instance", "accept.margin", 1.0, "logit at least threshold plus margin"),
        ("result", "counterfactual.income", 0.0, "leads to the stated counterfactual"),
        ("result", "cost", 0.01, "costs no more than stated"),
        ("result", "lower_bound", 0.01, "stated gap within tolerance"),
    ],
)
def test_each_line_notices_its_fault(where, key, value, line, tmp_path):
    """One changed entry, and the line that looks at it says no; the classifier stays where it is."""
    file = instances_path() / "loan" / "loan_007.json"
    write_result(solve(read_instance(file)), tmp_path / "result.json")
    instance, result = json.loads(file.read_text()), json.loads((tmp_path / "result.json").read_text())
    instance["classifier"]["path"] = str(file.parent / instance["classifier"]["path"])
    changed(instance, result, where, key, value)
    (tmp_path / "instance.json").write_text(json.dumps(instance))
    (tmp_path / "result.json").write_text(json.dumps(result))
    run = judged(tmp_path / "instance.json", tmp_path / "result.json")
    assert run.returncode == 1, run.stderr
    assert f"NO   {line}\n" in run.stdout


def test_monotone_features_are_looked_at(tmp_path):
    """loan_007 lowers amount; an applicant whose amount may only rise could not."""
    file = instances_path() / "loan" / "loan_007.json"
    write_result(solve(read_instance(file)), tmp_path / "result.json")
    instance = json.loads(file.read_text())
    instance["classifier"] = json.loads((file.parent / instance["classifier"]["path"]).read_text())  # inline
    next(f for f in instance["features"] if f["name"] == "amount")["monotone"] = "increase"
    (tmp_path / "instance.json").write_text(json.dumps(instance))
    run = judged(tmp_path / "instance.json", tmp_path / "result.json")
    assert run.returncode == 1, run.stderr
    assert "NO   rises or falls only where it may\n" in run.stdout
    assert run.stdout.count("NO ") == 1


RESULT = {"status": "infeasible", "action": None, "cost": None, "lower_bound": None}
FILES = [*instance_files("smoke"), *instance_files("loan")[:4], instances_path() / "loan" / "population.json"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_it_does_not_cover_is_one_line(file, tmp_path):
    """A result without action, for every kind of instance: no traceback."""
    (tmp_path / "result.json").write_text(json.dumps(RESULT))
    run = judged(file, tmp_path / "result.json")
    assert run.returncode == 2
    assert run.stderr.startswith("not covered: ")
    assert run.stderr.count("\n") == 1
    assert not run.stdout


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("conditions", [{"at_most_actions": 1}], "conditions"),
        ("preferences.conditions", [{"at_most_actions": 1}], "conditions"),
        ("plausibility.offset", 0.5, "plausibility with an offset"),
        ("preferences.density_offset", 0.5, "plausibility with an offset"),
        ("cost.scale.income", "factual", "scales that are no numbers"),
        ("cost.scale.income", {"increase": 1, "decrease": 2}, "scales that are no numbers"),
    ],
)
def test_demands_it_does_not_look_at_are_said(key, value, said, tmp_path):
    """No "yes" for a problem that demands more than the script checks."""
    file = instances_path() / "loan" / "loan_007.json"
    write_result(solve(read_instance(file)), tmp_path / "result.json")
    instance = json.loads(file.read_text())
    instance["classifier"]["path"] = str(file.parent / instance["classifier"]["path"])
    changed(instance, {}, "instance", key, value)
    (tmp_path / "instance.json").write_text(json.dumps(instance))
    run = judged(tmp_path / "instance.json", tmp_path / "result.json")
    assert (run.returncode, run.stderr, run.stdout) == (2, f"not covered: {said}\n", "")
