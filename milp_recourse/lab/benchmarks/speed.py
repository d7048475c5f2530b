"""``bench speed``: every solver on the same instances, in one run, one thread each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple
from itertools import combinations, islice, repeat
from pathlib import Path
from typing import Any

import numpy as np

from milp_recourse.formats import read_instance
from milp_recourse.lab.benchmarks.peers import RUNNERS, TOGETHER
from milp_recourse.lab.run_table import Key, Row, filled
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import RELATIVE_GAP
from milp_recourse.reports.drawing import draw_shares, panels, save

FIELDS = ["instance", "solver", "status", "cost", "seconds", "cpu_seconds", "nodes", "exactly_feasible"]
OURS = ("bab", "bab-single", "highs")
"""Solvers whose actions are judged exactly. Where they agree, their answer is taken as correct."""
PEER_TOLERANCE = 1e-4
"""A peer's optimum whose cost differs by more than this share from the correct one counts as wrong. Its
default feasibility tolerances change the cost by less."""
UNSOLVED = ("limit", "too large", "refused")
LABELS = {
    "bab": "bab, in one batch",
    "bab-single": "bab, one at a time",
    "gurobi-our-bounds": "gurobi, our bounds (not timed)",
}


def hard_loan(paths: Sequence[Path]) -> list[Path]:
    """The instances with four actions and plausibility."""

    def hard(instance: Instance) -> bool:
        return instance.plausible and len(instance.preferences.actionable) == 4

    return [path for path in paths if hard(read_instance(path))]


def filling(instances: Sequence[Instance], people: Population, batch: int) -> list[Instance]:
    """Applicants of a population who are not among the instances, so many that all together are ``batch``."""
    known = {tuple(sorted(i.factual.items())) for i in instances}
    others = (one for one in people if tuple(sorted(one.factual.items())) not in known)
    return list(islice(others, max(0, batch - len(instances))))


def with_networks(paths: Sequence[Path]) -> list[Path]:
    """The instances that can be written as a MILP: with a network and at least one lever."""

    def fits(instance: Instance) -> bool:
        return isinstance(instance.classifier, ReluNetwork) and bool(instance.levers)

    return [path for path in paths if fits(read_instance(path))]


def run(
    paths: Sequence[Path],
    solvers: Sequence[str],
    time_limit: float,
    folder: Path,
    progress: Callable[[str], object],
    company: Sequence[Instance] = (),
) -> list[dict[str, Any]]:
    """Run what ``folder/speed.csv`` does not hold yet, and write each row as it comes; all rows.

    Solvers of :data:`~milp_recourse.lab.benchmarks.peers.TOGETHER` come first, with all instances in a batch.

    Parameters
    ----------
    company
        Further applicants in that batch; their answers are not reported.
    """
    alone = [solver for solver in solvers if solver not in TOGETHER]
    groups = {solver: ([solver], list(paths)) for solver in solvers if solver in TOGETHER}
    groups |= {f"{path.parent.name}/{path.stem}": (alone, [path]) for path in paths}

    def solved(group: tuple[list[str], list[Path]], done: set[Key]) -> Iterator[Row | None]:
        names, some = group
        for solver in names:
            keys = [(path.stem, solver) for path in some]
            if done.issuperset(keys):
                yield from repeat(None, len(keys))
                continue
            instances = [read_instance(path) for path in some]
            outcomes = RUNNERS[solver][0](instances, time_limit, company if solver in TOGETHER else ())
            for key, outcome in zip(keys, outcomes, strict=True):
                yield None if key in done else dict(zip(FIELDS, (*key, *astuple(outcome)), strict=True))

    return _numbers(filled(folder / "speed.csv", FIELDS, {}, 2, groups, solved, advance=progress))


def _numbers(rows: list[Row]) -> list[Row]:
    """The rows with numbers as numbers."""
    for row in rows:
        row["cost"] = float(row["cost"]) if row["cost"] else None
        row["seconds"], row["cpu_seconds"] = float(row["seconds"]), float(row["cpu_seconds"])
        row["nodes"] = int(row["nodes"]) if row["nodes"] else None
        row["exactly_feasible"] = {"True": True, "False": False}.get(row["exactly_feasible"])
    return rows


def summarise(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Per solver: times, nodes, unsolved instances, wrong answers, actions that are not exactly feasible.

    The answers of :data:`OURS` count as correct; if they contradict each other, all of them are wrong, and
    the peers' answers to that instance are not judged. An unsolved instance counts with the time that was
    spent on it. An answer is ``wrong`` if its status differs, or its cost by more than
    :data:`PEER_TOLERANCE`; ``off_by_the_gap`` counts answers whose cost differs by more than the gap of an
    optimum (1e-6, relative), wrong ones included. Seconds are processor seconds, except in ``median_wall_s``.
    ``median_ratio`` is the median over instances of the time divided by that of the first solver listed.
    """
    order = _solvers(rows)
    first = {r["instance"]: r for r in rows if r["solver"] == order[0]}
    summary = []
    for solver in order:
        mine = [r for r in rows if r["solver"] == solver]
        seconds = np.array([r["cpu_seconds"] for r in mine])
        ratios = [
            r["cpu_seconds"] / first[r["instance"]]["cpu_seconds"]
            for r in mine
            if r["instance"] in first and first[r["instance"]]["cpu_seconds"] > 0
        ]
        summary.append(
            {
                "solver": solver,
                "instances": len(mine),
                "median_s": float(np.median(seconds)),
                "p90_s": float(np.quantile(seconds, 0.9)),
                "max_s": float(seconds.max()),
                "median_wall_s": float(np.median([r["seconds"] for r in mine])),
                "median_nodes": float(np.median([r["nodes"] or 0 for r in mine])),
                "unsolved": sum(r["status"] in UNSOLVED for r in mine),
                "wrong": sum(_wrong(r, rows, PEER_TOLERANCE) for r in mine),
                "off_by_the_gap": sum(_wrong(r, rows, RELATIVE_GAP) for r in mine),
                "not_exactly_feasible": sum(r["exactly_feasible"] is False for r in mine),
                "median_ratio": float(np.median(ratios)) if ratios else None,
            }
        )
    return summary


def _solvers(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The solvers that have rows, in the order of RUNNERS."""
    known = list(RUNNERS)
    found = dict.fromkeys(r["solver"] for r in rows)
    return sorted(found, key=lambda name: known.index(name) if name in known else len(known))


def _wrong(row: dict[str, Any], rows: Sequence[dict[str, Any]], tolerance: float) -> bool:
    """Whether a peer's finished answer contradicts the correct one; for OURS, whether any two of them do."""
    if row["status"] in UNSOLVED:
        return False
    proven = [
        r
        for r in rows
        if r["instance"] == row["instance"] and r["solver"] in OURS and r["status"] not in UNSOLVED
    ]
    quarrel = any(_differ(a, b, tolerance) for a, b in combinations(proven, 2))
    if row["solver"] in OURS or not proven:
        return quarrel
    return not quarrel and _differ(row, proven[0], tolerance)


def _differ(row: dict[str, Any], truth: dict[str, Any], tolerance: float) -> bool:
    """Whether two finished answers differ in status, or in cost by more than a relative tolerance."""
    if row["status"] != truth["status"]:
        return True
    if row["cost"] is None:
        return False
    return bool(abs(row["cost"] - truth["cost"]) > tolerance * truth["cost"])


def plot(rows: Sequence[dict[str, Any]], folder: Path, time_limit: float) -> Path:
    """Share of instances solved within a time, one line per solver: ``folder/speed.png``."""
    figure, axes = panels((7.4, 4.8), grid="both")
    for solver in _solvers(rows):
        mine = [r for r in rows if r["solver"] == solver]
        times = [r["cpu_seconds"] for r in mine if r["status"] not in UNSOLVED]
        draw_shares(axes, times, len(mine), time_limit, label=LABELS.get(solver, solver))
    axes.set(xscale="log", xlabel="processor seconds, one thread", ylabel="share solved", ylim=(0, 1.02))
    axes.set_title(f"Solved within a time: {len({r['instance'] for r in rows})} instances")
    figure.legend(loc="outside lower center", ncols=3)
    return save(figure, folder / "speed.png")
