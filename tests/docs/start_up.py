"""How long whole processes take here: ``python -m tests.docs.start_up --before FOLDER --json FILE``.

Each command runs in turn by the sources here and by those in another folder, an older version's, several
times. What counts is the least processor time of a process and its children: other programs on the machine
change it least. Bytecode and compiled code are kept; with ``--first`` a wheel of either is also built, and
solves once with an empty cache.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.helpers.wheels import build

ROOT = Path(__file__).parents[2]

SOLVE = ("-m", "milp_recourse", "solve")
COMMANDS = {
    "`import milp_recourse`": ("-c", "import milp_recourse"),
    "`milp-recourse --help`": ("-m", "milp_recourse", "--help"),
    "`solve`, trees": (*SOLVE, "instances/credit_trees/credit_000.json"),
    "`solve`, a network with causes": (*SOLVE, "instances/loan/loan_001.json"),
}
"""The processes, by what a page calls them."""

FIRST = "`solve`, a network with causes"
"""The one whose first use is measured too."""


def run(sources: Path, command: tuple[str, ...], package: Path, cache: str | None = None) -> None:
    """One process in a folder that runs a package."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPATH": str(package), "OMP_NUM_THREADS": "1"}
    environment |= {"NUMBA_CACHE_DIR": cache} if cache else {}
    command = (sys.executable, "-P", *command)
    subprocess.run(command, env=environment, cwd=sources, check=True, capture_output=True)


def measured(act: Callable[..., object], *arguments: object) -> tuple[float, float]:
    """Processor and wall seconds of the processes that something starts."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    act(*arguments)
    took, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, took


def first_use(sources: Path) -> dict[str, tuple[float, float]]:
    """Processor and wall seconds of building a wheel, and of the first problem that it solves, installed."""
    with tempfile.TemporaryDirectory() as aside:
        folder = Path(aside)
        built = measured(lambda: build(folder, sources=sources))
        [wheel] = folder.glob("*.whl")
        install = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", "--target"]
        subprocess.run([*install, str(folder / "site"), str(wheel)], check=True)
        solved = measured(run, sources, COMMANDS[FIRST], folder / "site", str(folder / "empty"))
    return {"building a wheel": built, "its first `solve`": solved}


def compared(folders: dict[str, Path], repeats: int, first: bool) -> dict[str, dict[str, list[float]]]:
    """By command and version the least (processor, wall) seconds, and those of the first use."""
    found: dict[str, dict[str, list[float]]] = {}
    for name, command in COMMANDS.items():
        runs: dict[str, list[tuple[float, float]]] = {version: [] for version in folders}
        for _ in range(repeats):
            for version, at in folders.items():
                runs[version].append(measured(run, at, command, at))
        found[name] = {v: [min(ones) for ones in zip(*many, strict=True)] for v, many in runs.items()}
    for version, at in folders.items() if first else ():
        for name, seconds in first_use(at).items():
            found.setdefault(name, {})[version] = list(seconds)
    return found


def main() -> None:
    """Measure, print, and write the results file."""
    parser = argparse.ArgumentParser(description="Processor and wall seconds of whole processes.")
    parser.add_argument("--before", type=Path, help="a folder with an older version's sources")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--first", action="store_true", help="also a wheel's first use: some minutes")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    folders = {"now": ROOT} | ({"before": given.before.resolve()} if given.before else {})
    found = compared(folders, given.repeats, given.first)
    for name, versions in found.items():
        print(name, {version: [round(s, 3) for s in seconds] for version, seconds in versions.items()})
    if given.json:
        rounded = {n: {v: [round(s, 3) for s in own] for v, own in one.items()} for n, one in found.items()}
        given.json.write_text(json.dumps(rounded, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
