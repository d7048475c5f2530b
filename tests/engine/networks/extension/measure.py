"""numba beside a compiled extension: ``python -m tests.engine.networks.extension.measure``.

One family of functions, which bounds lines within a budget
(:func:`~milp_recourse.engine.networks.linear_bounds.within` and what it calls), stands in ``within.cpp`` too.
It is built by scikit-build-core and nanobind, for this processor and for any x86-64 as a wheel would be, and
both get the same lines: random ones over the root box of a network with 23 levers. Writes
``docs/results/engine/extension.json``. Needs a C++ compiler and the internet.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from milp_recourse.engine.compiling import allocated, entry
from milp_recourse.engine.networks import linear_bounds, propose
from milp_recourse.engine.networks.work import Lines
from milp_recourse.lab.benchmarks.fitted import fit_network

HERE = Path(__file__).parent
RESULTS = HERE.parents[3] / "docs" / "results" / "engine" / "extension.json"
PROCESSORS = {"native": "this processor", "x86-64": "any x86-64"}
CASES = (("l1", 64, 0.3), ("l2-squared", 64, 0.1))
"""Cost, number of lines, budget."""
REPEATS, ROUNDS = 1000, 9
ROWS = "const", "spread", "top", "bound", "theta", "left", "fall", "right", "climb"
WORK = "tried", "gains", "pays", "here", "own"
"""The arrays of :class:`~milp_recourse.engine.networks.work.Lines`, as ``within.cpp`` takes them."""


@entry
def by_numba(p, w, count, budget, size, repeats):
    """The bounds of the first lines, many times over."""
    for _ in range(repeats):
        linear_bounds.within(p, w, count, budget, (0.0, size), 0)


def built(processor: str, folder: Path) -> tuple[Any, float]:
    """The extension for a processor, and the processor seconds that its build and installation took."""
    target, config = folder / processor, f"--config-settings=cmake.define.ARCH={processor}"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target), config, str(HERE)]
    start = used()
    subprocess.run(command, check=True)
    seconds = used() - start
    sys.path.insert(0, str(target))
    sys.modules.pop("prototype", None)
    try:
        import prototype  # type: ignore[import-not-found]
    finally:
        sys.path.pop(0)
    return prototype, seconds


def used() -> float:
    """The processor seconds of processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def least(function: Callable[..., object], *given: Any) -> float:
    """The least processor time of several calls, in microseconds for each of :data:`REPEATS`."""
    seconds = []
    for _ in range(ROUNDS):
        start = time.process_time()
        function(*given, REPEATS)
        seconds.append(time.process_time() - start)
    return 1e6 * min(seconds) / REPEATS


def problem(cost: str, count: int) -> tuple[Any, Any]:
    """Arrays of a root node of a network with 23 levers, and a memory with random lines over its box."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit does not converge
        network = fit_network("whole", "32x32", None, 1)
    state = propose.Run(network.instance(int(network.refused[0]), cost))
    state.examine(1)
    p, w, rng = state.problem, state.work, np.random.default_rng(0)
    lines = allocated(Lines, L=len(w.columns.line), **{"2 n": count})
    lines.terms[:], lines.const[:] = rng.normal(size=lines.terms.shape), rng.normal(size=count)
    lines.terms[len(w.box) :] = 0.0  # no kinks
    far = np.maximum(np.abs(w.box["lo"]), np.abs(w.box["hi"]))
    lines.top[:] = lines.spread[:] = lines.const + far @ np.abs(lines.terms[: len(far)])
    w.points.least_paid[:] = 0.0
    return p, w._replace(lines=lines)


def arguments(p: Any, w: Any) -> tuple[list[Any], Any]:
    """The same for the extension, and its copy of the rows in :data:`ROWS`."""
    raw = [np.frombuffer(bytearray(one.tobytes()), np.uint8) for one in (p.lever, w.box, p.column)]
    rows = np.array([getattr(w.lines, name) for name in (*ROWS, *WORK)])
    whole = np.array(p.start, np.int64), np.array(w.allowed, np.uint8)
    read = (np.array(one) for one in (w.columns.cut, w.points.cut_shares, w.points.least_paid))
    numbers = float(w.now.cut_const), float(p.slacks.budget), float(p.slacks.tiny)
    return [*raw, *whole, *read, rows, np.ascontiguousarray(w.lines.terms), *numbers], rows


def main() -> None:
    """Build, measure, and write both."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter).parse_args()
    found: dict[str, Any] = {"microseconds": {}, "build_seconds": {}}
    with tempfile.TemporaryDirectory() as folder:
        made = {name: built(name, Path(folder)) for name in PROCESSORS}
        for cost, count, budget in CASES:
            p, w = problem(cost, count)
            by_numba(p, w, count, budget, 1.0, 1)
            times = {"numba": least(by_numba, p, w, count, budget, 1.0)}
            for name, (module, seconds) in made.items():
                given, rows = arguments(p, w)
                times[name] = least(module.within, *given, budget, 0.0, 1.0)
                assert (rows[ROWS.index("bound")] == w.lines.bound).all(), "not the same bounds"
                found["build_seconds"][name] = round(seconds, 1)
            found["microseconds"][f"{cost}, {count} lines"] = {k: round(t, 1) for k, t in times.items()}
    source = (HERE / "within.cpp").read_text().splitlines()
    found["lines"] = sum(bool(line.strip()) and not line.strip().startswith("//") for line in source)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
