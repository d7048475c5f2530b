"""``python -m tests.properties.killed_gmsc``: ``gmsc``, killed at three points, ends as undisturbed.

Both runs are on a small random table in the owner's format. The second is killed (SIGKILL) once it has some
classifiers, once it has some equations, and once it has some answers, and is started again each time. All
results must be equal, except times.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from milp_recourse.lab.run_table import read_rows
from tests.lab.studies.test_gmsc import owners_table


def started(data: Path, out: Path) -> subprocess.Popen[str]:
    """The study in a process of its own."""
    options = ["--people", "9", "--certificates", "3", "--epochs", "2", "--flow-epochs", "2"]
    command = [sys.executable, "-m", "milp_recourse", "lab", "gmsc", str(data), "--out", str(out), *options]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def points(out: Path) -> dict[str, Any]:
    """By name, whether a run has come so far."""
    models, answers = out / "models", out / "results" / "certified.csv"
    return {
        "two classifiers": lambda: len(list(models.glob("classifier_*.json"))) >= 2,
        "two causal models": lambda: len(list(models.glob("scm, *.json"))) >= 2,
        "five answers": lambda: len(read_rows(answers)) >= 5,
    }


def content(results: Path) -> dict[str, Any]:
    """Every table and JSON file of the results, without times."""
    found: dict[str, Any] = {path.name: json.loads(path.read_text()) for path in results.glob("*.json")}
    for path in results.glob("*.csv"):
        rows = [{k: v for k, v in row.items() if not k.startswith("seconds")} for row in read_rows(path)]
        found[path.name] = rows
    return found


def main() -> int:
    """Run both; 1 if they differ."""
    with tempfile.TemporaryDirectory() as folder:
        data, whole, killed = owners_table(Path(folder)), Path(folder) / "whole", Path(folder) / "killed"
        process = started(data, whole)
        print(process.communicate()[1], "exit code", code := process.wait())
        for name, reached in points(killed).items():
            process = started(data, killed)
            while not reached() and process.poll() is None:
                time.sleep(0.01)
            process.kill()
            print(f"killed at {name}: exit code {process.wait()}")
        process = started(data, killed)
        print(process.communicate()[1], "exit code", process.returncode)
        one, other = content(whole / "results"), content(killed / "results")
        differ = [name for name in one.keys() | other.keys() if one.get(name) != other.get(name)]
        print(f"{len(one)} tables and files, {len(differ)} differ: {differ}")
        return int(bool(differ) or not one or process.returncode != code)


if __name__ == "__main__":
    sys.exit(main())
