"""``python -m verify``: what it prints, its exit codes, and that it needs nothing but Python."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
ACCEPTED = ROOT / "tests/certificates/accepted"
TOY = ROOT / "docs/examples/toy_certificate.json", ROOT / "docs/examples/toy_instance.json"
POPULATION = ROOT / "tests/certificates/instances/toy_population.json"


def run(*arguments: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "verify", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("certificate", "instance", "printed"),
    [
        ("toy.json", "docs/examples/toy_instance.json", "VERIFIED optimal cost=2.25 lower_bound=2.25\n"),
        (
            "infeasible_plausible.json",
            "instances/smoke/infeasible_plausible.json",
            "VERIFIED infeasible\n",
        ),
    ],
)
def test_verified(certificate, instance, printed):
    """One line, exit code 0."""
    done = run(ACCEPTED / certificate, instance)
    assert (done.returncode, done.stdout, done.stderr) == (0, printed, "")


def test_bounds(tmp_path):
    """A weaker bound is a claim of its own."""
    certificate = json.loads(TOY[0].read_text())
    certificate |= {"claim": "bounds", "lower_bound": 2}
    (tmp_path / "c.json").write_text(json.dumps(certificate))
    assert run(tmp_path / "c.json", TOY[1]).stdout == "VERIFIED bounds cost=2.25 lower_bound=2.0\n"


def test_rejected(tmp_path):
    """One line with the reason, exit code 4, no traceback; also for files that are not there."""
    certificate = json.loads(TOY[0].read_text())
    certificate["cost"] = 3
    (tmp_path / "c.json").write_text(json.dumps(certificate))
    wrong = tmp_path / "c.json"
    for arguments in ((wrong, TOY[1]), (tmp_path / "none.json", TOY[1]), (TOY[0], tmp_path / "x")):
        done = run(*arguments)
        assert done.returncode == 4
        assert done.stdout.startswith("REJECTED: ") and done.stdout.count("\n") == 1
        assert done.stderr == ""


def test_folder_of_a_population(tmp_path):
    """A folder is checked in parallel and summed up; one that fails makes the exit code 4."""
    folder = tmp_path / "certificates"
    folder.mkdir()
    for k in (0, 2):
        shutil.copy(ACCEPTED / f"population_{k}.json", folder / f"{k}.json")
    done = run(tmp_path, POPULATION, "--jobs", 2)
    assert done.returncode == 0
    assert done.stdout.startswith("VERIFIED 2 of 2 certificates (1 infeasible, 1 optimal); 2 of 3 app")
    assert "slowest" in done.stdout and "2 of 2 checked" in done.stderr
    shutil.copy(TOY[0], folder / "3.json")
    done = run(tmp_path, POPULATION, "--jobs", 1)
    assert done.returncode == 4
    assert done.stdout.startswith("3.json: REJECTED: index: needed for a population\nREJECTED 2 of 3")


def test_folder_of_instances(tmp_path):
    """Certificates find their instances by digest; an empty folder verifies nothing."""
    done = run(tmp_path, "instances/smoke")
    assert done.returncode == 4 and done.stdout.startswith("REJECTED 0 of 0 certificates (none)")
    for name in ("l0", "linf", "two_trees"):
        shutil.copy(ACCEPTED / f"{name}.json", tmp_path / f"{name}.json")
    done = run(tmp_path, "instances/smoke")
    assert done.returncode == 0
    assert done.stdout.startswith("VERIFIED 3 of 3 certificates (3 optimal); ")


def test_needs_only_python(tmp_path):
    """It runs isolated from every installed package, from a folder that holds nothing else."""
    shutil.copytree(ROOT / "verify", tmp_path / "verify", ignore=shutil.ignore_patterns("__pycache__"))
    start = (
        "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); "
        "runpy.run_module('verify', run_name='__main__', alter_sys=True)"
    )
    command = [sys.executable, "-I", "-S", "-c", start, str(tmp_path), *map(str, TOY)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "VERIFIED optimal cost=2.25 lower_bound=2.25\n"), done.stderr


def test_imports_only_the_standard_library():
    """Nothing of the package, no solver, no numpy."""
    for file in (ROOT / "verify").glob("**/*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0
                names = [str(node.module)]
            for name in names:
                top = name.split(".")[0]
                assert top == "verify" or top in sys.stdlib_module_names, f"{file.name} imports {name}"
