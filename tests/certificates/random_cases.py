"""Random problems of every kind, certified and checked: ``python -m tests.certificates.random_cases``.

Each problem is solved and certified, written to a file and checked from the file alone. An answer that is
called rigorous must have a certificate that states the result's cost and bound and is accepted. Where there
is none, it is not called so, and its message gives a reason from a closed list (:data:`REASONS`). Every
certificate is checked by the kernel alone too, where that takes no more than a moment. Run from the
repository root.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from milp_recourse.certificates import instance_digest
from milp_recourse.errors import Unsupported
from milp_recourse.formats import write_instance
from milp_recourse.formats.strict_json import read_json
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result, Status
from milp_recourse.questions.solve import solve
from tests.helpers.certificate_kinds import KINDS
from verify.__main__ import examine

REASONS = (
    "plausibility: an action on",  # the end of a sigmoid link
    "a value is missing, and a condition limits a sum of several levers",
    "the proof, or a check of it, would take more",
)
"""How the reason for having no certificate may begin."""

MOST_BYTES_SLOW = 1500
"""Packed certificates up to this size are checked by the kernel alone as well."""


@dataclass
class Tally:
    """What happened: counts, what is wrong, what is worth a note, processor seconds of every check."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: list[tuple[float, str]] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Count what another tally counted."""
        self.counts += other.counts
        self.wrong += other.wrong
        self.notes += other.notes
        self.seconds += other.seconds


def numbered(number: int) -> tuple[str, int]:
    """The kind and the seed of a case: kinds take turns."""
    return list(KINDS)[number % len(KINDS)], number // len(KINDS)


def examined(kind: str, seed: int, time_limit: float, folder: Path) -> Tally:
    """One case: solved, certified, checked from files."""
    tally, name = Tally(), f"{kind} {seed}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        instance = KINDS[kind](seed)
        if instance is None:
            return tally
        try:
            result = solve(instance, None, time_limit, certificates=True)
        except Unsupported:
            tally.counts["unsupported"] += 1
            return tally
    tally.counts += Counter(["problems", f"{result.status.value}, {result.proof}"])
    reason = (result.message or "").partition("No certificate: ")[2]
    if result.evidence is None and reason:
        if result.proof != "solver" or not reason.startswith(REASONS):
            tally.wrong.append(
                f"{name}: called {result.proof} without a certificate, or for what reason? {reason}"
            )
        tally.counts["no certificate, with a reason"] += 1
        tally.notes.append(f"{name}: {result.status.value}: {reason}")
        return tally
    if result.proof != "rigorous" or (result.status is Status.LIMIT and result.evidence is None):
        return tally
    if result.evidence is None:
        tally.wrong.append(f"{name}: rigorous, without a certificate: {result.message}")
        return tally
    tally.counts["certificates"] += 1
    faults = complaints(replace(instance, name=name), result, folder, tally)
    tally.counts["verified"] += not faults
    tally.wrong += [f"{name}: {fault}" for fault in faults]
    return tally


def complaints(instance: Instance, result: Result, folder: Path, tally: Tally | None = None) -> list[str]:
    """What is wrong with a result's certificate, checked from files."""
    assert result.evidence is not None
    problem, file = folder / "instance.json", folder / "certificate.json.gz"
    write_instance(instance, problem)
    file.write_bytes(result.evidence)
    stated, faults = read_json(file), []
    claim = "bounds" if result.status is Status.LIMIT else result.status.value
    if stated["claim"] != claim:
        faults.append(f"claims {stated['claim']}, the result is {result.status.value}")
    if stated["cost"] != result.cost:
        faults.append(f"cost {stated['cost']!r}, the result's is {result.cost!r}")
    if result.cost is not None:
        low, high = result.lower_bound - 0.5 * result.tolerance, result.lower_bound
        if not low <= stated["lower_bound"] <= high:
            faults.append(f"lower bound {stated['lower_bound']!r}, the result's is {high!r}")
    if stated["instance_sha256"] != instance_digest(instance):
        faults.append("another digest")
    start = time.process_time()
    outcome = examine(file, problem, 600.0)
    if not outcome.line.startswith(f"VERIFIED {claim}"):
        faults.append(outcome.line)
    if tally is not None:
        tally.seconds.append((time.process_time() - start, str(instance.name)))
        if len(result.evidence) <= MOST_BYTES_SLOW:
            tally.counts["by the kernel alone"] += 1
            slow = examine(file, problem, 600.0, slow=True).line
            faults += [] if slow == outcome.line else [f"by the kernel alone: {slow}"]
    return faults


def again(kept: Path) -> dict[str, Any]:
    """Certificates that earlier runs kept, checked by the checker as it is now, and by the kernel alone."""
    lines, seconds, slow = Counter[str](), list[tuple[float, str]](), Counter[str]()
    for file in sorted(kept.glob("**/certificate.json.gz")):
        problem, start = file.parent / "instance.json", time.process_time()
        line = examine(file, problem, 600.0).line
        seconds.append((time.process_time() - start, file.parent.name))
        lines[line.split()[0] + ("" if line.startswith("VERIFIED") else f" {file.parent.name}: {line}")] += 1
        if file.stat().st_size <= MOST_BYTES_SLOW:
            slow[
                "the same" if examine(file, problem, 600.0, slow=True).line == line else file.parent.name
            ] += 1
    slowest = [[name, round(one, 3)] for one, name in sorted(seconds, reverse=True)[:10]]
    times = [one for one, _ in seconds] or [0.0]
    return {
        "lines": dict(lines),
        "by the kernel alone": dict(slow),
        "check_seconds_median": round(median(times), 4),
        "check_seconds_slowest": slowest,
    }


def joined(paths: list[Path]) -> dict[str, Any]:
    """Reports of several runs as one; of the notes only how many there are of each kind."""
    parts = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    counts, kinds, notes = Counter[str](), {kind: Counter[str]() for kind in KINDS}, Counter[str]()
    for part in parts:
        counts += Counter(part["counts"])
        for kind, own in part["kinds"].items():
            kinds[kind] += Counter(own)
        notes += Counter(next(r for r in REASONS if r in note) for note in part["notes"])
    slowest = sorted(
        (one for part in parts for one in part["check_seconds_slowest"]), key=lambda one: -one[1]
    )
    return {
        "cases": [[part["first"], part["first"] + part["cases"] - 1] for part in parts],
        "seconds": round(sum(part["seconds"] for part in parts)),
        "check_seconds_medians": [part["check_seconds_median"] for part in parts],
        "check_seconds_slowest": slowest[:10],
        "counts": dict(sorted(counts.items())),
        "kinds": {kind: dict(sorted(own.items())) for kind, own in kinds.items()},
        "wrong": [one for part in parts for one in part["wrong"]],
        "reasons": dict(notes),
    }


def main() -> int:
    """Run, print, write; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--time-limit", type=float, default=10.0)
    parser.add_argument("--minutes", type=float, default=1e9, help="no new case after so many")
    parser.add_argument("--keep", type=Path, help="a folder for instances and certificates, to check again")
    parser.add_argument("--again", type=Path, help="check those of such a folder instead, and solve nothing")
    parser.add_argument("--json", type=Path, required=True, help="where the report goes")
    parser.add_argument(
        "--join", type=Path, nargs="+", help="reports of earlier runs, to be added up instead"
    )
    options = parser.parse_args()
    if options.join:
        options.json.write_text(json.dumps(joined(options.join), indent=1) + "\n", encoding="utf-8")
        return 0
    if options.again:
        found = again(options.again)
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(json.dumps(found, indent=1))
        return (
            0
            if set(found["lines"]) <= {"VERIFIED"} and set(found["by the kernel alone"]) <= {"the same"}
            else 1
        )
    tally, kinds, start, done = Tally(), {kind: Tally() for kind in KINDS}, time.perf_counter(), 0
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(options.first, options.first + options.cases):
            if time.perf_counter() - start > 60 * options.minutes:
                break
            kind, seed = numbered(number)
            folder = Path(scratch)
            if options.keep is not None:
                folder = options.keep / f"{kind.replace(' ', '_')}_{seed}"
                folder.mkdir(parents=True, exist_ok=True)
            one = examined(kind, seed, options.time_limit, folder)
            tally.add(one)
            kinds[kind].add(one)
            done += 1
            if done % 100 == 0:
                print(f"{done} of {options.cases}, {len(tally.wrong)} wrong", file=sys.stderr, flush=True)
    slowest = sorted(tally.seconds, reverse=True)[:10]
    report = {
        "cases": done,
        "first": options.first,
        "seconds": round(time.perf_counter() - start, 1),
        "check_seconds_median": round(median([seconds for seconds, _ in tally.seconds] or [0]), 4),
        "check_seconds_slowest": [[name, round(seconds, 3)] for seconds, name in slowest],
        "counts": dict(sorted(tally.counts.items())),
        "kinds": {kind: dict(sorted(one.counts.items())) for kind, one in kinds.items()},
        "wrong": tally.wrong,
        "notes": tally.notes,
    }
    options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=1))
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
