"""Thousands of random problems against brute force: ``python -m tests.properties.run --cases 2000``.

Each problem is solved, its answer re-judged (mask, bounds, exactly, as deployed), and a dense grid,
zoomed in, looks for anything cheaper than the stated lower bound, or feasible where the status says
infeasible. ``--other`` solves with a second back end and compares. Run from the repository root.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from milp_recourse import solve
from milp_recourse.errors import Unsupported
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result, Status
from tests.helpers.brute_force import Best, attack, brute_force, complaints
from tests.helpers.generators import Style, bernoulli_instance, random_instance
from tests.helpers.random_actions import COUNT, actions, cheapest

STYLES = (
    Style(),
    Style(levers=1, plausible=0.5),
    Style(levers=2, curves=False, gamma=False),
    Style(levers=4, depth=2),
    Style(levers=2, discrete=False, plausible=1.0),
    Style(causes=False, levers=3),
)
"""Case k is drawn in style k modulo their number."""

DEEP = (
    Style(levers=6, depth=4, width=8),
    Style(levers=5, depth=4, curves=False, discrete=False),
    Style(levers=6, depth=1, plausible=1.0, curves=False),
    Style(levers=4, depth=4, plausible=0.7),
)
"""Deeper and with more levers: what cases from :data:`FIRST_DEEP` on are drawn in."""

FIRST_DEEP = 10_000

CONFIRMED = 1e-4
"""Brute force confirms an optimum when it finds one as cheap to this, relatively."""


@dataclass
class Tally:
    """What happened, counted; ``disagreements`` are the lines to read."""

    counts: Counter[str] = field(default_factory=Counter)
    disagreements: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    slowest: float = 0.0

    def add(self, other: Tally) -> None:
        """Count what another tally counted."""
        self.counts += other.counts
        self.disagreements += other.disagreements
        self.notes += other.notes
        self.slowest = max(self.slowest, other.slowest)

    def blame(self, seed: int, kind: str, text: str) -> None:
        """Count a disagreement."""
        self.counts[kind] += 1
        self.disagreements.append(f"case {seed}: {kind}: {text}")


def case(seed: int) -> Instance:
    """The problem of a case number."""
    if seed % 50 == 49:
        return bernoulli_instance(seed)
    styles = STYLES if seed < FIRST_DEEP else DEEP
    return random_instance(seed, styles[seed % len(styles)])


def examined(seed: int, backend: str, other: str | None, time_limit: float | None) -> Tally:
    """The tally of one case."""
    tally = Tally()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        examine(seed, backend, other, time_limit, tally)
    return tally


def examine(seed: int, backend: str, other: str | None, time_limit: float | None, tally: Tally) -> None:
    """Solve one case, check the answer every way there is, and count."""
    examine_instance(seed, case(seed), backend, other, time_limit, tally)


def examine_instance(
    seed: int, instance: Instance, backend: str, other: str | None, time_limit: float | None, tally: Tally
) -> None:
    """As :func:`examine`, for any problem; ``seed`` is what disagreements are filed under."""
    start = time.perf_counter()
    try:
        result = solve(instance, backend, time_limit)
    except Unsupported as error:
        tally.counts["unsupported"] += 1
        tally.notes.append(f"case {seed}: {error}")
        return
    except Exception as error:
        tally.blame(seed, "exception", f"{type(error).__name__}: {error}")
        return
    seconds = time.perf_counter() - start
    tally.slowest = max(tally.slowest, seconds)
    tally.counts["solved"] += 1
    tally.counts[result.status.value] += 1
    if result.status is Status.LIMIT:
        tally.notes.append(
            f"case {seed}: limit after {seconds:.1f} s: cost {result.cost}, bound {result.lower_bound}: "
            f"{result.message}"
        )
    if result.action is not None:
        tally.counts["actions"] += 1
    for text in complaints(instance, result):
        kind = {"mask": "mask", "bounds": "bounds", "deployed": "deployed"}.get(text.split(":")[0], "invalid")
        tally.blame(seed, kind, text)
    _against_brute_force(seed, instance, result, tally)
    if other is not None:
        _against_other(seed, instance, result, other, time_limit, tally)


def _against_brute_force(seed: int, instance: Instance, result: Result, tally: Tally) -> None:
    if result.action == {}:
        return  # the factual is accepted as it is
    found, rng = brute_force(instance), np.random.default_rng(seed)
    near = attack(instance, result, rng) if result.action else _sampled(instance, rng)
    least = min((b for b in (found, near) if b is not None), key=lambda b: b.cost, default=None)
    if least is None:
        return
    if result.status is Status.LIMIT and result.action is None:
        tally.blame(seed, "no action", f"none found, but {least.cost!r}: {least.action}")
    if result.status is Status.INFEASIBLE:
        tally.blame(seed, "wrong infeasible", f"feasible at {least.cost!r}: {least.action}")
    elif result.lower_bound is not None and least.cost < result.lower_bound * (1 - 1e-12):
        tally.blame(seed, "wrong bound", f"bound {result.lower_bound!r}, but {least.cost!r}: {least.action}")
    if result.status is Status.OPTIMAL and found is not None:
        tally.counts["compared"] += 1
        close = found.cost <= result.cost * (1 + CONFIRMED) + 1e-9
        tally.counts["confirmed"] += close
        if len(instance.levers) <= 2:
            tally.counts["compared, up to two levers"] += 1
            tally.counts["confirmed, up to two levers"] += close


def _sampled(instance: Instance, rng: np.random.Generator) -> Best | None:
    return cheapest(instance, actions(instance, None, COUNT, rng))[1]


def _against_other(
    seed: int, instance: Instance, result: Result, other: str, time_limit: float | None, tally: Tally
) -> None:
    try:
        second = solve(instance, other, time_limit)
    except Exception as error:
        tally.blame(seed, "other: exception", f"{type(error).__name__}: {error}")
        return
    tally.counts[f"other: {second.status.value}"] += 1
    for text in complaints(instance, second):
        tally.blame(seed, "other: invalid", text)
    decided = {Status.OPTIMAL, Status.INFEASIBLE}
    if result.status in decided and second.status in decided and result.status is not second.status:
        tally.blame(seed, "disagreement", f"{result.status.value} against {second.status.value}")
    pairs = ((result, second), (second, result))
    for one, two in pairs:
        if one.cost is None or two.lower_bound is None:
            continue
        if one.cost < two.lower_bound - one.tolerance:
            tally.blame(
                seed, "disagreement", f"{one.backend} {one.cost!r} below the bound {two.lower_bound!r}"
            )


def report(tally: Tally, cases: int, seconds: float) -> dict:
    """The counts as one JSON value."""
    return {
        "cases": cases,
        "seconds": round(seconds, 1),
        "slowest": round(tally.slowest, 2),
        "counts": dict(sorted(tally.counts.items())),
        "disagreements": tally.disagreements,
        "notes": tally.notes,
    }


def main() -> int:
    """Run, print, write; 1 if anything disagreed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="number of the first case")
    parser.add_argument("--backend", default="highs")
    parser.add_argument("--other", default=None)
    parser.add_argument("--time-limit", type=float, default=20.0)
    parser.add_argument("--json", type=Path, help="where to write what is printed; nowhere without")
    options = parser.parse_args()
    from rich.progress import track

    tally, start = Tally(), time.perf_counter()
    worker = ProcessPoolExecutor(1)  # a solver that crashes takes only its worker with it
    for seed in track(range(options.seed, options.seed + options.cases), description=options.backend):
        try:
            job = worker.submit(examined, seed, options.backend, options.other, options.time_limit)
            tally.add(job.result())
        except BrokenProcessPool:
            tally.blame(seed, "crash", "the process died")
            worker = ProcessPoolExecutor(1)
    worker.shutdown()
    result = report(tally, options.cases, time.perf_counter() - start)
    if options.json is not None:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))
    return 1 if tally.disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
