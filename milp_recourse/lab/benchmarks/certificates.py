"""``bench certificates``: time to produce and to check certificates, and their size, on shipped instances."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from milp_recourse.certificates import certificates_for, encode, reason_for_none
from milp_recourse.formats import read_instance
from milp_recourse.lab.measured import measured, with_seconds
from milp_recourse.lab.run_table import Key, Row, filled, read_rows
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result
from milp_recourse.questions.solve import CERTIFIED_TOGETHER, choose_backend, sharing, solve, solve_together
from milp_recourse.reports.drawing import draw_shares, panels, save

KINDS = {
    "a": "cuts",
    "s": "strict_cuts",
    "n": "signs",
    "c": "value_cuts",
    "t": "taken_out",
    "m": "merged",
    "e": "interval_leaves",
    "d": "dual_leaves",
    "p": "price_leaves",
}
"""By the letter of a node in the certificate document, the table's column with the number of such nodes."""

IDENTITY = ("time_limit",)

COLUMNS = (
    "instance",
    "model",
    "status",
    "claim",
    "verified",
    "reason",
    "solve_seconds",
    "produce_seconds",
    "solve_alone_seconds",
    "produce_alone_seconds",
    "check_seconds",
    "bytes",
    "unpacked_bytes",
    *KINDS.values(),
    *IDENTITY,
)

MOST_CHECK_SECONDS = 3600.0

Certified = tuple[Instance, Result, dict[str, Any] | None]
"""An instance, its result, and its certificate if there is one."""


def run(
    paths: Sequence[Path], time_limit: float, folder: Path, advance: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Measure what ``folder/certificates.csv`` does not hold yet, and write each row as it comes; all rows.

    Instances are solved and certified in batches, as ``certify`` does with a population, and then again one
    at a time. All seconds are processor seconds. An instance's share of a batch is, for ``solve_seconds``,
    that of its wall time, and for ``produce_seconds`` that of the nodes of its trees.

    Parameters
    ----------
    time_limit
        Seconds per instance, for the solve and for the certificate each.
    advance
        Called after every instance with the name of its batch, which is that of its first instance.
    """

    def solved(batch: list[Path], done: set[Key]) -> Iterator[Row | None]:
        keys = [(path.stem,) for path in batch]
        if done.issuperset(keys):
            yield from repeat(None, len(keys))
            return
        instances = sharing([read_instance(path) for path in batch])
        for key, path, one, share in zip(keys, batch, *_together(instances, time_limit), strict=True):
            row = {"instance": path.stem, **share}
            missing = key not in done
            yield row | _alone(one[0], time_limit) | _checked(one, path, Path(scratch)) if missing else None

    table, groups = folder / "certificates.csv", {batch[0].stem: batch for batch in batches(paths)}
    if len(read_rows(table)) < len(paths):
        solve(read_instance(paths[0]), time_limit=time_limit)  # loading and compiling is not measured
    with TemporaryDirectory() as scratch:
        return filled(table, COLUMNS, {"time_limit": time_limit}, 1, groups, solved, advance=advance)


def batches(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """The paths in batches of one back end and kind of classifier, as large as ``certify`` takes them."""
    groups: dict[tuple[str, bool], list[Path]] = {}
    for path in paths:
        instance = read_instance(path)
        trees = isinstance(instance.classifier, TreeEnsemble)
        groups.setdefault((choose_backend(instance).name, trees), []).append(path)
    for group in groups.values():
        for start in range(0, len(group), CERTIFIED_TOGETHER):
            yield group[start : start + CERTIFIED_TOGETHER]


def _together(
    instances: Sequence[Instance], time_limit: float
) -> tuple[list[Certified], list[dict[str, Any]]]:
    """Solve and certify a batch; return results and certificates, and each instance's share of the time."""
    found = measured(solve_together(instances, time_limit=time_limit))
    results = [result for result, _ in found]
    certificates, produced = with_seconds(lambda: _encoded(instances, results, time_limit))
    nodes = np.array([0 if c is None else 1 + sum(counts(c).values()) for c in certificates])
    shares = [
        {"solve_seconds": _short(a), "produce_seconds": _short(b)}
        for (_, a), b in zip(found, produced * nodes / max(1, nodes.sum()), strict=True)
    ]
    return list(zip(instances, results, certificates, strict=True)), shares


def _alone(instance: Instance, time_limit: float) -> dict[str, Any]:
    """The seconds to solve and to certify one instance alone, as ``solve --certificate`` does."""
    result, solved = with_seconds(lambda: solve(instance, time_limit=time_limit))
    _, produced = with_seconds(lambda: _encoded([instance], [result], time_limit))
    return {"solve_alone_seconds": _short(solved), "produce_alone_seconds": _short(produced)}


def _encoded(
    instances: Sequence[Instance], results: Sequence[Result], time_limit: float
) -> list[dict[str, Any] | None]:
    """The certificates, each of which has been encoded once."""
    certificates = certificates_for(instances, results, time_limit)
    for certificate in certificates:
        if certificate is not None:
            encode(certificate)
    return certificates


def _checked(certified: Certified, path: Path, scratch: Path) -> dict[str, Any]:
    """The columns about the result and its certificate; the time of the check is without Python's start."""
    instance, result, certificate = certified
    model = "trees" if isinstance(instance.classifier, TreeEnsemble) else "network"
    row: dict[str, Any] = {"model": model, "status": result.status.value}
    if certificate is None:
        return row | {"reason": reason_for_none(instance, result)}
    packed = encode(certificate)
    outcome, seconds = checked(packed, path, scratch)
    size = len(json.dumps(certificate, separators=(",", ":")))
    return (
        row
        | {"claim": certificate["claim"], "verified": outcome.claim == certificate["claim"]}
        | {"reason": "" if outcome.claim else outcome.line, "check_seconds": _short(seconds)}
        | {"bytes": len(packed), "unpacked_bytes": size}
        | {column: counts(certificate)[kind] for kind, column in KINDS.items()}
    )


def checked(certificate: bytes, problem: Path, scratch: Path) -> tuple[Any, float]:
    """The checker's outcome for a packed certificate, and its processor seconds.

    The certificate is written to the folder ``scratch``.
    """
    from verify.__main__ import examine

    file = scratch / "certificate.json.gz"
    file.write_bytes(certificate)
    return with_seconds(lambda: examine(file, problem, MOST_CHECK_SECONDS))


def counts(certificate: dict[str, Any]) -> Counter[str]:
    """The number of nodes in all trees, by their letter."""
    proofs = [proof for one in certificate["configurations"] for proof in one.get("cases", [one])]
    return Counter(node[0] for proof in proofs for node in proof["tree"])


def _short(seconds: float) -> str:
    return f"{seconds:.4g}"


def summarise(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Counts, overhead of certifying over solving, sizes and seconds, over all rows of the table."""

    def column(name: str) -> np.ndarray:
        return np.array([float(row[name]) for row in rows if row[name]])

    with_one = [row for row in rows if row["claim"]]
    summary: dict[str, Any] = {
        "instances": len(rows),
        "certificates": len(with_one),
        "verified": sum(row["verified"] == "True" for row in rows),
        "claims": dict(sorted(Counter(row["claim"] for row in with_one).items())),
        "without": {row["instance"]: row["reason"] for row in rows if not row["claim"]},
        "rejected": {row["instance"]: row["reason"] for row in with_one if row["verified"] != "True"},
    }
    for way, suffix in (("in batches", ""), ("one at a time", "_alone")):
        solved, produced = column(f"solve{suffix}_seconds"), column(f"produce{suffix}_seconds")
        summary[way] = {
            "solve_mean": _round(solved.mean()),
            "produce_mean": _round(produced.mean()),
            "overhead": _round(produced.mean() / solved.mean()),
        }
    for name in ("check_seconds", "bytes", *KINDS.values()):
        values = column(name)
        if len(values):
            summary[name] = {
                "mean": _round(values.mean()),
                "median": _round(np.median(values)),
                "p99": _round(np.quantile(values, 0.99)),
                "max": _round(values.max()),
            }
    return summary


def _round(value: Any) -> float:
    return float(f"{float(value):.4g}")


def plot(rows: Sequence[dict[str, Any]], folder: Path) -> Path:
    """Draw ``folder/certificates.png``: the shares of certificates within a size, check time and overhead."""
    figure, axes = panels((10.5, 3.6), 1, 3, grid="both", sharey=True)
    size, check, overhead = axes
    for model in ("network", "trees"):
        mine = [row for row in rows if row["model"] == model and row["claim"]]
        if not mine:
            continue
        label = f"{model}s" if model == "network" else "tree ensembles"
        for panel, values in (
            (size, [float(row["bytes"]) / 1000 for row in mine]),
            (check, [float(row["check_seconds"]) for row in mine]),
            (overhead, [_ratio(row) for row in mine]),
        ):
            draw_shares(panel, np.maximum(values, 1e-4), label=f"{label} ({len(mine)})")
    for panel, median, unit in ((size, 300.0, "kB"), (check, 2.0, "s"), (overhead, 3.0, "")):
        panel.axvline(median, color="0.4", linestyle="--", linewidth=1)
        panel.text(median, 0.03, f"{median:g} {unit} ", color="0.4", ha="right")
        panel.set_xscale("log")
    size.set(xlabel="file, kB compressed", ylabel="share of certificates", ylim=(0, 1.02))
    check.set(xlabel="check, processor seconds")
    overhead.set(xlabel="producing / solving, one at a time")
    overhead.set_xticks([0.5, 1.0, 2.0, 4.0], ["0.5", "1", "2", "4"])
    overhead.set_xticks([], minor=True)
    size.legend(loc="center right")
    return save(figure, folder / "certificates.png")


def _ratio(row: dict[str, Any]) -> float:
    return float(row["produce_alone_seconds"]) / max(1e-4, float(row["solve_alone_seconds"]))
