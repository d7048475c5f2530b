"""What the long comparisons share: several back ends asked about one problem, and a certificate checked."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from milp_recourse import solve
from milp_recourse.errors import Unsupported
from milp_recourse.formats import write_instance
from milp_recourse.instance import Instance
from milp_recourse.result import Result, Status
from verify.__main__ import examine


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
    if prices and max(prices) - min(prices) > 2e-6 * max(prices) + 1e-9:
        wrong.append(f"costs differ: {prices}")
    return sure


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


def parser(description: str | None) -> argparse.ArgumentParser:
    """The arguments of a comparison of random draws, but for ``--kinds`` and ``--out``."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--trees", action="store_true")
    made.add_argument("--backends", default="bab,highs")
    made.add_argument("--first", type=int, default=0)
    made.add_argument("--draws", type=int, default=200)
    made.add_argument("--time-limit", type=float, default=30.0)
    made.add_argument("--certify", action="store_true", help="have a certificate of each answer checked")
    return made
