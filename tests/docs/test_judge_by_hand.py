"""docs/examples/judge_by_hand.py judges every Loan result, or says in one line why not."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from milp_recourse import read_instance, solve
from milp_recourse.formats import write_result
from milp_recourse.instances_path import instances_path

SCRIPT = Path(__file__).parents[2] / "docs" / "examples" / "judge_by_hand.py"


def judged(instance: Path, result: Path) -> subprocess.CompletedProcess[str]:
    """The script's run."""
    command = [sys.executable, str(SCRIPT), str(instance), str(result)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["loan/loan_000", "loan/loan_130", "smoke/loan_two_units"])
def test_it_agrees_and_notices_a_changed_action(name, tmp_path):
    """Every line says yes; with an action moved far off some line says no."""
    file = instances_path() / f"{name}.json"
    write_result(solve(read_instance(file)), tmp_path / "result.json")
    run = judged(file, tmp_path / "result.json")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "NO" not in run.stdout
    result = json.loads((tmp_path / "result.json").read_text())
    result["action"] = {feature: value + 1000.0 for feature, value in result["action"].items()}
    (tmp_path / "result.json").write_text(json.dumps(result))
    run = judged(file, tmp_path / "result.json")
    assert run.returncode == 1
    assert "NO   inside bounds, ranges and domains" in run.stdout


@pytest.mark.parametrize("name", ["smoke/infeasible_bounds", "smoke/l1", "smoke/two_trees"])
def test_what_it_does_not_cover_is_one_line(name, tmp_path):
    """No traceback."""
    file = instances_path() / f"{name}.json"
    problem = read_instance(file)
    write_result(solve(problem, "grid" if name.endswith("trees") else None), tmp_path / "result.json")
    run = judged(file, tmp_path / "result.json")
    assert run.returncode == 1
    assert run.stderr.startswith("not covered: ")
    assert run.stderr.count("\n") == 1
