"""Compiled code of the search alone, one Loan applicant after another, and names for a sampling profiler.

    python -m tests.engine.networks.profiled --people 800 --repeats 6
    perf record -e cpu-clock -F 5000 -o DATA python -m tests.engine.networks.profiled --repeats 12 --names
    perf report -i DATA --sort symbol --stdio

perf reads the names of compiled functions from ``/tmp/perf-PID.map``, which ``--names`` writes by ``nm``. To
compare two versions run them in turn, and take each one's least: times of one version differ by a tenth.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numba.core import codegen

from milp_recourse.engine.networks import propose, search
from milp_recourse.engine.networks.problem_arrays import impossible, lowered
from milp_recourse.formats.schema import read_population
from milp_recourse.program.magnitude import cost_units
from milp_recourse.questions.solve import sharing
from tests.engine.networks.phases import POPULATION

FIRST = 1000
"""Most nodes of each search, as in the engine's first slice."""

CACHED: dict[int, bytes] = {}
"""Machine code by library, as it is loaded from the cache."""


def keep_machine_code() -> None:
    """Fill :data:`CACHED` from now on; numba forgets the code once it is loaded."""
    load = codegen.JITCodeLibrary._set_compiled_object

    def loaded(library: Any, code: bytes) -> None:
        CACHED[id(library)] = code
        load(library, code)

    codegen.JITCodeLibrary._set_compiled_object = loaded


def write_names() -> Path:
    """Write where each compiled function of the search lies in memory, for perf; the file's path."""
    (made,) = search.run.overloads.values()
    library, entry = made.library, made.fndesc.llvm_func_name
    code = CACHED.get(id(library)) or library._compiled_object
    with tempfile.NamedTemporaryFile(suffix=".o") as file:
        file.write(code)
        file.flush()
        lines = subprocess.run(["nm", "-S", file.name], capture_output=True, text=True, check=True).stdout
    symbols = [line.split() for line in lines.splitlines() if len(line.split()) == 4]
    start = next(int(at, 16) for at, _, _, name in symbols if name == entry)
    shift = library.get_pointer_to_function(entry) - start
    path = Path(f"/tmp/perf-{os.getpid()}.map")
    with path.open("w", encoding="utf-8") as out:
        for at, size, _, name in symbols:
            short = re.search(r"compiled\d+([a-z_]+)\d+([a-z_]+)B", name)
            plain = ".".join(short.groups()) if short else name
            out.write(f"{int(at, 16) + shift:x} {int(size, 16):x} {plain}\n")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=800)
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--names", action="store_true")
    given = parser.parse_args()
    keep_machine_code()
    propose.ready()
    if given.names:
        print("names in", write_names())
    population = read_population(POPULATION)
    instances = [cost_units(i)[0] for i in sharing([population[k] for k in range(given.people)])]
    problems = [
        (instances[person], group.problems(k))
        for members, group in lowered(instances)
        for k, person in enumerate(members)
        if not impossible(instances[person], group.moved)
    ]
    spent, nodes = np.full(len(problems), np.inf), np.zeros(len(problems))
    for _ in range(given.repeats):
        for k, (instance, problem) in enumerate(problems):
            state = propose.Run(instance, problem)
            start = time.perf_counter()
            state.examine(FIRST)
            spent[k] = min(spent[k], 1e3 * (time.perf_counter() - start))
            nodes[k] = state.tree.now.examined
    few = nodes < np.quantile(nodes, 0.8)
    each = np.polyfit(nodes[few], 1e3 * spent[few], 1)
    print(f"{len(problems)} searches, {nodes.sum():.0f} nodes, ms: median {np.median(spent):.4f}", end="")
    print(f" mean {spent.mean():.4f}; about {each[1]:.0f} us and {each[0]:.1f} us per node")


if __name__ == "__main__":
    main()
