"""Random problems certified and checked: ``python -m tests.certificates.random_cases --cases 300``.

Each problem of tests/properties is solved and certified, written to a file and checked from the file
alone: it must state the result's cost and bound, and must be accepted. Where the document covers a problem
and it was solved, but no certificate was managed, a note says so. Run from the repository root.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "properties"))

from run import case

from milp_recourse.certificates import instance_digest
from milp_recourse.domain.expression import Sigmoid
from milp_recourse.domain.noise import Normal
from milp_recourse.errors import Unsupported
from milp_recourse.formats import write_instance
from milp_recourse.formats.strict_json import read_json
from milp_recourse.instance import Instance
from milp_recourse.result import Result, Status, gap_tolerance
from milp_recourse.solve import solve
from verify.__main__ import examine


def covered(instance: Instance) -> bool:
    """Whether section 9 of the document leaves the problem in."""
    if instance.cost.quantiles:
        return False
    if not instance.plausible:
        return True
    mechanisms = instance.scm.mechanisms
    moved = {name: mechanisms[name] for name in instance.scm.descendants(set(instance.levers))}
    acted = [mechanisms[name] for name in instance.levers]
    curved = any(isinstance(part, Sigmoid) for m in acted for part in m.equation.walk())
    linked = any(m.link.kind == "sigmoid" for m in (*moved.values(), *acted))
    return not curved and not linked and all(isinstance(m.noise, Normal) for m in acted)


def examined(seed: int, time_limit: float, folder: Path) -> tuple[Counter[str], list[str], list[str]]:
    """What to count of one case, what is wrong with it, and notes."""
    instance = case(seed)
    try:
        result = solve(instance, "bab", time_limit, certificates=True)
    except Unsupported:
        return Counter(["unsupported"]), [], []
    counts = Counter(["solved", result.status.value])
    if result.evidence is None:
        decided = result.status in (Status.OPTIMAL, Status.INFEASIBLE)
        if not covered(instance):
            counts["not covered"] += 1
        elif decided:
            counts["not managed"] += 1
            return counts, [], [f"case {seed}: {result.status.value}, but no certificate"]
        return counts, [], []
    counts["certificates"] += 1
    faults = complaints(instance, result, folder)
    counts["verified"] += not faults
    return counts, [f"case {seed}: {fault}" for fault in faults], []


def complaints(instance: Instance, result: Result, folder: Path) -> list[str]:
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
        low, high = result.lower_bound - 0.5 * gap_tolerance(result.cost), result.lower_bound
        if not low <= stated["lower_bound"] <= high:
            faults.append(f"lower bound {stated['lower_bound']!r}, the result's is {high!r}")
    if stated["instance_sha256"] != instance_digest(instance):
        faults.append("another digest")
    line = examine(file, problem, 600.0).line
    if not line.startswith(f"VERIFIED {claim}"):
        faults.append(line)
    return faults


def main() -> int:
    """Run, print, write; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0, help="number of the first case")
    parser.add_argument("--time-limit", type=float, default=10.0)
    parser.add_argument("--json", type=Path, default=Path("random_certificates.json"))
    options = parser.parse_args()
    from rich.progress import track

    counts, wrong, notes, start = Counter[str](), [], [], time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        for seed in track(range(options.seed, options.seed + options.cases), description="certified"):
            counted, faults, said = examined(seed, options.time_limit, Path(scratch))
            counts += counted
            wrong += faults
            notes += said
    report = {
        "cases": options.cases,
        "seconds": round(time.perf_counter() - start, 1),
        "counts": dict(sorted(counts.items())),
        "wrong": wrong,
        "notes": notes,
    }
    options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
