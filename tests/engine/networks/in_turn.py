"""Two versions of the package in turn, so that a machine whose speed changes treats them alike.

    python -m tests.engine.networks.in_turn BEFORE AFTER --rounds 4

BEFORE and AFTER are folders that hold a checkout each. One process for each solves the same applicants of the
Loan population, a chunk at a time. Of every applicant the least time counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

CHUNK = 256
WORKER = """
import json, sys
from milp_recourse import solve_population
from milp_recourse.formats.schema import read_population
population = read_population(sys.argv[1])
list(solve_population(population, first=0, last=64))
print(len(population), flush=True)
for line in sys.stdin:
    first, last = map(int, line.split())
    found = list(solve_population(population, first=first, last=last))
    print(json.dumps([[1e3 * one.seconds, one.nodes or 0] for one in found]), flush=True)
"""
POPULATION = Path(__file__).parents[3] / "instances" / "loan" / "population.json"


def worker(folder: Path) -> subprocess.Popen[str]:
    """A process that solves with the package in a folder."""
    command = [sys.executable, "-P", "-c", WORKER, str(POPULATION)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen(command, text=True, env={**os.environ, "PYTHONPATH": str(folder)}, **pipes)


def main() -> None:
    """Print medians and means, and the ratio of the second version's to the first's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("versions", nargs=2, type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    workers = [worker(folder.resolve()) for folder in given.versions]
    people = min(int(one.stdout.readline()) for one in workers)
    spent, nodes = np.zeros((2, given.rounds, people)), np.zeros((2, people))
    for turn in range(given.rounds):
        for first in range(0, people, CHUNK):
            last = min(first + CHUNK, people)
            for k in (0, 1) if turn % 2 == 0 else (1, 0):
                workers[k].stdin.write(f"{first} {last}\n")
                workers[k].stdin.flush()
                found = np.array(json.loads(workers[k].stdout.readline()))
                spent[k, turn, first:last], nodes[k, first:last] = found.T
    for one in workers:
        one.stdin.close()
        one.wait()
    least = spent.min(axis=1)
    for name, number in (("median", np.median(least, axis=1)), ("mean", least.mean(axis=1))):
        print(f"{name}: {number[0]:.3f}, {number[1]:.3f} ms, ratio {number[1] / number[0]:.3f}")
    print(f"medians of each round: {np.round(np.median(spent, axis=2), 2).tolist()}")
    print(f"nodes: {nodes.sum(axis=1).tolist()}")


if __name__ == "__main__":
    main()
