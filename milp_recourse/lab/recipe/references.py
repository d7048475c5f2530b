"""Reference answers: found by one back end, confirmed by another, compared with the grid."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd

from milp_recourse.errors import Unsupported
from milp_recourse.formats import read_instance, read_population
from milp_recourse.formats.instances_path import instance_files_in
from milp_recourse.formats.strict_json import read_json, write_json
from milp_recourse.formats.write import result_part
from milp_recourse.judge import conclude
from milp_recourse.lab.recipe.files import sha256
from milp_recourse.lab.recipe.index import BY_HAND, Row, describe, read_index, refreshed, write_index
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result, Status, gap_tolerance
from milp_recourse.questions.solve import solve
from milp_recourse.questions.workers import Workers
from milp_recourse.solvers.grid import GridBackend
from milp_recourse.solvers.protocol import Options

AGREEMENT = 1e-6
"""Relative difference of cost up to which two back ends agree."""

Solver = Callable[[Instance, str, float | None], Result]


@dataclass(frozen=True)
class Answer:
    """The results of two back ends for one file.

    Attributes
    ----------
    file
        Relative to the folder, with forward slashes.
    found, confirmed
        The two results; None where the back end does not support the instance.
    complaint
        The reason why they give no reference, or None.
    """

    file: str
    found: Result | None
    confirmed: Result | None
    complaint: str | None


def fill_references(
    folder: Path,
    backend: str,
    confirm: str,
    *,
    time_limit: float | None = None,
    jobs: int = 1,
    force: bool = False,
    solver: Solver = solve,
    on_start: Callable[[int], None] = lambda files: None,
    on_file: Callable[[], None] = lambda: None,
) -> list[str]:
    """Find and confirm the missing references below ``folder``; each is written to its file and the index.

    A reference derived by hand is never overwritten: both back ends must agree with it, unless
    they do not support the instance.

    Parameters
    ----------
    backend, confirm
        Names of back ends.
    time_limit
        Wall seconds per file and back end.
    force
        Solve again what is already confirmed.

    Returns
    -------
    list of str
        One sentence per file for which the two give no reference that they agree on; such files are left as
        they were. None for a reference by hand where one of the two does not support the file.
    """
    rows = refreshed(folder, read_index(folder))
    todo = [
        path
        for path in instance_files_in(folder)
        if force or not rows[path.relative_to(folder).as_posix()].get("confirmed_by")
    ]
    on_start(len(todo))
    complaints = []
    backends = backend, confirm
    work = partial(_answer, folder, backends=backends, time_limit=time_limit, solver=solver)
    for answer in Workers(jobs).map(work, todo):
        row = rows[answer.file]
        unsupported = answer.found is None or answer.confirmed is None
        complaint = answer.complaint or _note(folder / answer.file, row, answer, backends)
        if complaint and not (unsupported and row.get("found_by") == BY_HAND):
            complaints.append(f"{answer.file}: {complaint}")
        rows = refreshed_row(folder, rows, answer.file)
        write_index(folder, rows)
        on_file()
    return sorted(complaints)


def compare_with_grid(
    folder: Path,
    on_start: Callable[[int], None] = lambda files: None,
    on_file: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """What the grid misses, per group of folder, number of actionable features, weights and plausibility.

    Parameters
    ----------
    on_start, on_file
        Called with the number of files, and after each of them, also one without a reference.

    Returns
    -------
    dict
        ``groups``, each with counts, ``missed_share`` (of the people for whom recourse exists, the share for
        whom the grid found none), and the median and largest ratio of the grid's cost to the exact one;
        ``violations``, the files whose exact cost is above the grid's (there should be none).
    """
    groups: dict[tuple[str, ...], list[tuple[float | None, float | None]]] = defaultdict(list)
    violations = []
    files = instance_files_in(folder)
    on_start(len(files))
    for path in files:
        instance = read_instance(path)
        if instance.reference is None:
            on_file()
            continue
        grid = conclude(instance, GridBackend().solve(instance, Options()), "grid", 0.0).cost
        exact = instance.reference.cost
        if grid is not None and (exact is None or exact > grid * (1 + AGREEMENT) + 1e-12):
            violations.append(f"{path.relative_to(folder).as_posix()}: exact {exact!r}, grid {grid!r}")
        key = (
            path.parent.name,
            str(len(instance.preferences.actionable)),
            "constant" if set(instance.weights.values()) <= {1.0} else "individual",
            "yes" if instance.plausible else "no",
        )
        groups[key].append((exact, grid))
        on_file()
    names = ("folder", "actionable", "weights", "plausible")
    return {
        "groups": [dict(zip(names, key, strict=True)) | _summary(groups[key]) for key in sorted(groups)],
        "violations": violations,
    }


def agree(a: Result, b: Result) -> bool:
    """Whether both are infeasible, or both optimal with costs that differ by at most 1e-6 of the larger."""
    if a.status is Status.INFEASIBLE:
        return b.status is Status.INFEASIBLE
    if a.cost is None or b.cost is None or {a.status, b.status} != {Status.OPTIMAL}:
        return False
    return math.isclose(a.cost, b.cost, rel_tol=AGREEMENT, abs_tol=1e-9)


def refreshed_row(folder: Path, rows: dict[str, Row], file: str) -> dict[str, Row]:
    """``rows`` with the new description and checksum of one file."""
    row = rows[file] | {"sha256": sha256(folder / file)} | describe(read_instance(folder / file))
    return rows | {file: row}


def _answer(
    folder: Path, path: Path, backends: tuple[str, str], time_limit: float | None, solver: Solver
) -> Answer:
    instance = read_instance(path)
    results: list[Result | None] = []
    refusals = []
    for backend in backends:
        try:
            results.append(solver(instance, backend, time_limit))
        except Unsupported as error:
            results.append(None)
            refusals.append(str(error))
    found, confirmed = results
    complaint = "; ".join(refusals) or None
    if found is not None and confirmed is not None and not agree(found, confirmed):
        complaint = " but ".join(
            f"{b} says {r.status.value} {r.cost!r} >= {r.lower_bound!r}"
            for b, r in zip(backends, (found, confirmed), strict=True)
        )
    return Answer(path.relative_to(folder).as_posix(), found, confirmed, complaint)


def _note(path: Path, row: Row, answer: Answer, backends: tuple[str, str]) -> str | None:
    """Write the reference into the file, and the names of the back ends into ``row``.

    If the answer contradicts a reference derived by hand, nothing is written and a complaint is returned.
    """
    found = answer.found
    assert found is not None  # no complaint so far
    content = read_json(path)
    reference = result_part(found, "cost", "lower_bound")
    by_hand = row.get("found_by") == BY_HAND
    if by_hand:
        known = content["reference"]
        same = known["status"] == found.status.value and (
            found.cost is None or math.isclose(known["cost"], found.cost, rel_tol=AGREEMENT, abs_tol=1e-9)
        )
        if not same:
            return f"the reference by hand says {known}, {backends[0]} says {reference}"
        row |= {"confirmed_by": "; ".join(backends)}
    else:
        write_json(content | {"reference": reference}, path)
        row |= {"found_by": backends[0], "confirmed_by": backends[1]}
    row["seconds"] = f"{found.seconds:.3f}"
    return None


def _summary(outcomes: list[tuple[float | None, float | None]]) -> dict[str, Any]:
    exists = [(exact, grid) for exact, grid in outcomes if exact is not None]
    ratios = [grid / exact for exact, grid in exists if grid is not None and exact > 0]
    missed = sum(grid is None for _, grid in exists)
    return {
        "instances": len(outcomes),
        "recourse_exists": len(exists),
        "grid_found": len(exists) - missed,
        "missed_share": missed / len(exists) if exists else None,
        "median_cost_ratio": median(ratios) if ratios else None,
        "largest_cost_ratio": max(ratios, default=None),
    }


def write_expected(
    folder: Path, confirm: str, time_limit: float, advance: Callable[[], None], most: int
) -> list[str]:
    """Write expected.csv: the answers of ``bab`` for the first people, and which another back end confirms.

    Returns
    -------
    list
        A sentence for every person about whom the two contradict each other.
    """
    people = read_population(folder / "population.json")
    complaints, rows = [], []
    for k in range(min(most, len(people))):
        one, other = solve(people[k], "bab", time_limit), solve(people[k], confirm, time_limit)
        settled = other.status in (Status.OPTIMAL, Status.INFEASIBLE)
        same = one.status == other.status and (
            one.cost is None
            or other.cost is None
            or abs(one.cost - other.cost) <= gap_tolerance(one.cost) + gap_tolerance(other.cost)
        )
        if settled and not same:
            complaints.append(f"{k}: bab says {one.cost}, {confirm} says {other.cost}")
        by = {"found_by": "bab", "confirmed_by": confirm if settled and same else ""}
        rows.append({"index": k} | result_part(one, "cost", "lower_bound") | by)
        advance()
    pd.DataFrame(rows).to_csv(folder / "expected.csv", index=False, lineterminator="\n")
    return complaints
