"""``bench speed``: every solver on the same instances, in one run, one thread each."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from milp_recourse.benchmarks.peers import RUNNERS, Outcome
from milp_recourse.formats import read_instance
from milp_recourse.instance import Instance
from milp_recourse.result import gap_tolerance

FIELDS = ["instance", "solver", "status", "cost", "seconds", "nodes", "exactly_feasible"]
PEER_TOLERANCE = 1e-4
"""A peer's optimum further than this (relative) from the certified one is a wrong answer."""


def hard_loan(paths: Sequence[Path]) -> list[Path]:
    """The instances with four actions and plausibility."""
    chosen = []
    for path in paths:
        instance = read_instance(path)
        if instance.plausible and len(instance.preferences.actionable) == 4:
            chosen.append(path)
    return chosen


def run(
    paths: Sequence[Path],
    solvers: Sequence[str],
    time_limit: float,
    folder: Path,
    progress: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Run what ``folder/speed.csv`` does not hold yet, writing each row as it comes; all rows."""
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / "speed.csv"
    rows = read_rows(table)
    done = {(r["instance"], r["solver"]) for r in rows}
    with table.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not rows:
            writer.writeheader()
        for path in paths:
            instance: Instance | None = None
            for solver in solvers:
                progress(f"{path.stem} {solver}")
                if (path.stem, solver) in done:
                    continue
                instance = instance or read_instance(path)
                outcome: Outcome = RUNNERS[solver][0](instance, time_limit)
                row = {"instance": path.stem, "solver": solver, **asdict(outcome)}
                writer.writerow(row)
                file.flush()
                rows.append(row)
    return read_rows(table)


def read_rows(table: Path) -> list[dict[str, Any]]:
    """Rows of an earlier run, numbers as numbers; [] where there is none."""
    if not table.exists():
        return []
    with table.open(newline="", encoding="utf-8") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    for row in rows:
        row["cost"] = float(row["cost"]) if row["cost"] else None
        row["seconds"] = float(row["seconds"])
        row["nodes"] = int(row["nodes"]) if row["nodes"] else None
        row["exactly_feasible"] = {"True": True, "False": False}.get(row["exactly_feasible"])
    return rows


def summarise(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Per solver: times, nodes, what stayed unsolved, wrong answers, raw points not exactly feasible.

    The truth is ``highs``' certified answer. An unsolved instance counts at the time it was given.
    """
    truth = {r["instance"]: r for r in rows if r["solver"] == "highs"}
    summary = []
    for solver in dict.fromkeys(r["solver"] for r in rows):
        mine = [r for r in rows if r["solver"] == solver]
        seconds = np.array([r["seconds"] for r in mine])
        wrong = sum(_wrong(r, truth.get(r["instance"])) for r in mine)
        summary.append(
            {
                "solver": solver,
                "instances": len(mine),
                "median_s": float(np.median(seconds)),
                "p90_s": float(np.quantile(seconds, 0.9)),
                "max_s": float(seconds.max()),
                "median_nodes": float(np.median([r["nodes"] or 0 for r in mine])),
                "unsolved": sum(r["status"] == "limit" for r in mine),
                "wrong": wrong,
                "not_exactly_feasible": sum(r["exactly_feasible"] is False for r in mine),
            }
        )
    base = next((s["median_s"] for s in summary if s["solver"] == "highs"), None)
    for s in summary:
        s["median_over_highs"] = s["median_s"] / base if base else None
    return summary


def _wrong(row: dict[str, Any], truth: dict[str, Any] | None) -> bool:
    """Whether a finished answer contradicts the certified one."""
    if truth is None or "limit" in (row["status"], truth["status"]) or row is truth:
        return False
    if row["status"] != truth["status"]:
        return True
    if row["cost"] is None:
        return False
    return bool(
        abs(row["cost"] - truth["cost"]) > max(PEER_TOLERANCE * truth["cost"], gap_tolerance(truth["cost"]))
    )


def write_summary(summary: Sequence[dict[str, Any]], folder: Path, time_limit: float) -> None:
    """``folder/speed.json``."""
    text = json.dumps({"time_limit": time_limit, "threads": 1, "solvers": list(summary)}, indent=2)
    (folder / "speed.json").write_text(text + "\n", encoding="utf-8")


def plot(rows: Sequence[dict[str, Any]], folder: Path, time_limit: float) -> Path:
    """Share of instances solved within a time, one line per solver: ``folder/speed.png``."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for solver in dict.fromkeys(r["solver"] for r in rows):
        mine = [r for r in rows if r["solver"] == solver]
        times = np.sort([r["seconds"] for r in mine if r["status"] != "limit"])
        share = np.arange(1, len(times) + 1) / len(mine)
        axes.step(
            [*times, time_limit], [*share, share[-1] if len(share) else 0.0], where="post", label=solver
        )
    axes.set(xscale="log", xlabel="seconds, one thread", ylabel="share solved", ylim=(0, 1.02))
    axes.set_title("Loan applicants, four actions, plausibility: solved within a time")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    target = folder / "speed.png"
    figure.savefig(target, dpi=130)
    plt.close(figure)
    return target
