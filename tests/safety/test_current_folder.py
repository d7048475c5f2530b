"""Nothing of the current folder runs: not its modules, in no child process, and not its programs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from milp_recourse.formats.instances_path import instances_path
from milp_recourse.solvers import processes
from tests.helpers.hostile_folder import MODULES, plant, ran

ROOT = Path(__file__).resolve().parents[2]
LOAN = str(instances_path() / "loan" / "population.json")
TREES = str(instances_path() / "credit_trees" / "credit_003.json")

COMMANDS = {  # the commands of a line are run in one process, one after the other
    "by processes": [
        ["certify", LOAN, "--limit", "8", "--jobs", "2", "--out", "{out}/people"],
        ["certify", "--limit", "1", "--jobs", "2", "--out", "{out}/instances"],
        ["evaluate", "{out}/actions.csv", "--limit", "2", "--jobs", "2", "--out", "{out}/actions"],
    ],
    "alone": [
        ["solve", TREES, "--backend", "highs"],
        ["solve", TREES, "--backend", "cpsat"],
        ["backends"],
        ["certify", LOAN, "--limit", "2", "--report", "--out", "{out}/pages"],
    ],
}


@pytest.fixture
def here(tmp_path):
    """The hostile folder, and the file in which what runs leaves its name."""
    folder, trace = tmp_path / "here", tmp_path / "ran.txt"
    plant(folder, trace)
    return folder, trace


def commands(several: list[list[str]]) -> list[str]:
    """The console script, for several commands: it puts its own folder on the path of modules, not the
    current one."""
    code = f"import sys\nfrom milp_recourse.cli import main\nsys.exit(max([main(c) for c in {several!r}]))"
    return [sys.executable, "-P", "-c", code]


def run(arguments: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    known = os.environ | {"PYTHONPATH": str(ROOT)} | environment
    return subprocess.run(
        arguments, cwd=folder, env=known, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.parametrize("case", COMMANDS)
def test_no_command_runs_them(case, here, tmp_path):
    """Each does its work and returns 0."""
    folder, trace = here
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "actions.csv").write_text("index,income\n0,1.0\n")
    several = [[part.format(out=tmp_path / "out") for part in one] for one in COMMANDS[case]]
    done = run(commands(several), folder)
    assert (done.returncode, ran(trace)) == (0, set()), done.stderr


def test_pyomo_does_not_take_its_solvers_from_there(here):
    """Pyomo itself looks in the current folder first."""
    folder, trace = here
    code = f"""
from milp_recourse import read_instance
from milp_recourse.solvers.pyomo import solve_model
from milp_recourse.solvers.pyomo_model import pyomo_model
instance = read_instance({str(instances_path() / "smoke" / "range_misses_bounds.json")!r})
for solver in ("glpk", "cbc", "scip", "gurobi"):
    model = pyomo_model(instance)
    print(solve_model(solver, model, [model.component(f"set_{{n}}") for n in instance.levers], 5.0).kind)
"""
    done = run([sys.executable, "-P", "-c", code], folder)
    assert done.returncode == 0 and ran(trace) == set(), done.stderr
    assert len(done.stdout.splitlines()) == 4


def test_children_of_a_script(here, tmp_path):
    """A script in the hostile folder's neighbour, run in that folder: its joblib processes are safe, too."""
    folder, trace = here
    script = tmp_path / "script.py"
    script.write_text(f"""
if __name__ == "__main__":
    from milp_recourse import solve_population
    from milp_recourse.lab.benchmarks.child import of_solver
    from milp_recourse import read_population
    people = read_population({LOAN!r})
    print([r.status.value for r in solve_population(people, jobs=2, first=0, last=2)])
    with of_solver("highs", "networks") as child:
        print(child.ask(people[0], 20.0)["status"])
""")
    done = run([sys.executable, str(script)], folder)
    assert done.returncode == 0 and ran(trace) == set(), done.stderr
    assert done.stdout.split("\n")[1] == "optimal"


def test_a_trace_beside_the_script(here, tmp_path):
    """``answers.verify()`` comes to a verdict and does not end the script; the ``trace.py``, with which the
    checker would refuse to start, is not taken for Python's own."""
    folder, trace = here
    (tmp_path / "trace.py").write_text((folder / "trace.py").read_text())
    script = tmp_path / "script.py"
    script.write_text("""
if __name__ == "__main__":
    import os, sys
    import pandas as pd
    from sklearn.linear_model import LogisticRegression
    from milp_recourse import Recourse
    X = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0]})
    answers = Recourse(LogisticRegression().fit(X, [0, 0, 1, 1]), X).certify(X.head(1), certificates=True)
    print(answers.verify())
    os.chdir(sys.argv[1])
    print(answers.verify())
    print("went on")
""")
    done = run([sys.executable, str(script), str(tmp_path)], folder)
    assert (done.returncode, ran(trace)) == (0, set()), done.stderr
    *verdicts, went = done.stdout.splitlines()
    assert [line[:15] for line in verdicts] == ["VERIFIED 1 of 1"] * 2 and went == "went on"


def test_the_planted_modules_do_run_where_the_folder_is_on_the_path(here):
    """So that the tests above could fail: ``python -m`` puts the folder first, before any code of ours."""
    folder, trace = here
    assert run([sys.executable, "-m", "milp_recourse", "backends"], folder).returncode == 9
    assert len(ran(trace)) == 1
    done = run([sys.executable, "-P", "-m", "milp_recourse", "backends"], folder)
    assert done.returncode == 0 and len(ran(trace)) == 1


def test_a_started_process_has_the_package_and_not_the_folder(here, monkeypatch):
    """Also where the package itself is only found through the current folder: it is taken from there by
    name, and nothing beside it."""
    folder, trace = here
    (folder / "milp_recourse.py").unlink()
    (folder / "milp_recourse").symlink_to(ROOT / "milp_recourse")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", ["", "relative", str(folder), *sys.path])
    code = "import json, milp_recourse.errors as e; print(json.dumps([sys.path, e.__file__, sys.argv[1:]]))"
    done = run([*processes.python(code, "milp_recourse"), "one", "two"], folder)
    assert done.returncode == 0 and ran(trace) == set(), done.stderr
    assert "relative" not in done.stdout and str(folder) not in done.stdout.split("]")[0]
    assert '["one", "two"]' in done.stdout


def test_twenty_names_at_least():
    """What the folder holds is enough to mean something."""
    assert len(MODULES) >= 20
