"""What the long comparisons share: back ends asked about one problem, a certificate checked, a results file.

A comparison draws random problems of several kinds. Of every draw it counts under :data:`TWO` whether two
back ends settled it, and under :data:`BRUTE` whether brute force was asked about it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from milp_recourse import solve
from milp_recourse.errors import Unsupported
from milp_recourse.formats import write_instance
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result, Status
from milp_recourse.reports.progress import progress_bar
from verify.__main__ import examine

TWO, BRUTE = "decided by two", "brute force asked"

Draw = Callable[[int, str, bool, Sequence[str], float, bool], tuple[Counter[str], list[str]]]
"""Seed, kind, trees, back ends, time limit, certificates: what happened, and what is wrong."""


def agreed(
    instance: Instance,
    backends: Sequence[str],
    limit: float,
    complaints: Callable[[Result], list[str]],
    counts: Counter[str],
    wrong: list[str],
) -> dict[str, Result]:
    """The results that back ends are sure of; what happened is counted, and what is wrong is listed.

    ``complaints`` says what else is wrong with a result.
    """
    results: dict[str, Result] = {}
    for name in backends:
        try:
            results[name] = solve(instance, name, limit)
        except Unsupported as refusal:
            counts[f"{name} refuses"] += 1
            if "\n" in str(refusal):
                wrong.append(f"{name}: a refusal of more than one line")
            continue
        counts[f"{name} {results[name].status.value}"] += 1
        wrong += [f"{name}: {line}" for line in complaints(results[name])]
    sure = {n: r for n, r in results.items() if r.status in (Status.OPTIMAL, Status.INFEASIBLE)}
    if len({r.status for r in sure.values()}) > 1:
        wrong.append(f"statuses differ: { {n: r.status.value for n, r in sure.items()} }")
    prices = [r.cost for r in sure.values() if r.cost is not None]
    if not all(same(one, other) for one in prices for other in prices):
        wrong.append(f"costs differ: {prices}")
    counts[TWO] += len(sure) > 1
    return sure


def same(one: float | None, other: float | None) -> bool:
    """Whether two proven costs are the same up to both gaps; None is infeasible."""
    if one is None or other is None:
        return one is other
    return abs(one - other) <= 2e-6 * max(one, other) + 1e-9


def verdict_of(
    instance: Instance, limit: float, before: Callable[[Path], str | None] = lambda file: None
) -> str:
    """What the checker says of the certificate of the default back end's answer; or that there is none.

    ``before`` looks at the instance's file first, and may say instead why there is nothing to check.
    """
    result = solve(instance, time_limit=limit, certificates=True)
    if result.evidence is None:
        return "no certificate"
    with TemporaryDirectory() as folder:
        instance_file, certificate_file = Path(folder) / "instance.json", Path(folder) / "certificate.json.gz"
        write_instance(instance, instance_file)
        said = before(instance_file)
        if said is not None:
            return said
        certificate_file.write_bytes(result.evidence)
        return examine(certificate_file, instance_file, 600).line


def count_verdict(line: str, counts: Counter[str], wrong: list[str]) -> None:
    """Count a verdict of :func:`verdict_of` by its first word; a rejection is wrong."""
    counts[line.partition(" ")[0] if line.startswith(("VERIFIED", "REJECTED")) else line] += 1
    if line.startswith("REJECTED"):
        wrong.append(line)


def compare(description: str | None, kinds: Iterable[str], draw: Draw) -> int:
    """The command of a comparison: every kind, so many draws each; 1 where anything is wrong.

    A kind's row replaces the one that the results file has, so that a run can be had in parts.
    """
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument("--trees", action="store_true")
    arguments.add_argument("--backends", default="bab,highs")
    arguments.add_argument("--first", type=int, default=0)
    arguments.add_argument("--draws", type=int, default=200)
    arguments.add_argument("--time-limit", type=float, default=30.0)
    arguments.add_argument("--certify", action="store_true", help="have a certificate of each answer checked")
    arguments.add_argument("--kinds", default="; ".join(kinds), help="separated by semicolons")
    arguments.add_argument("--out", type=Path)
    asked = arguments.parse_args()
    said = {"backends": asked.backends, "first": asked.first, "time_limit": asked.time_limit}
    said |= {"classifiers": "trees" if asked.trees else "networks", "certify": asked.certify}
    faults, names = 0, asked.backends.split(",")
    for kind in asked.kinds.split("; "):
        begun, counts, wrong = time.process_time(), Counter[str](), list[str]()
        with progress_bar(kind, asked.draws) as bar:
            for seed in range(asked.first, asked.first + asked.draws):
                try:
                    some, lines = draw(seed, kind, asked.trees, names, asked.time_limit, asked.certify)
                except Exception as error:  # a long run goes on, and says so
                    some, lines = Counter(), [f"{type(error).__name__}: {error}"]
                counts += some
                wrong += [f"case {seed} {kind}: {line}" for line in lines]
                bar.advance()
        faults += len(wrong)
        spent = round(time.process_time() - begun, 1)
        row = {"asked": said, "draws": asked.draws, "wrong": wrong, "processor seconds": spent, **counts}
        print(kind, json.dumps(row), flush=True)
        if asked.out is not None:
            asked.out.parent.mkdir(parents=True, exist_ok=True)
            table = json.loads(asked.out.read_text())["kinds"] if asked.out.exists() else {}
            table[kind] = row
            asked.out.write_text(json.dumps({"kinds": table}, indent=1) + "\n")
    return int(faults > 0)
