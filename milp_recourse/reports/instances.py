"""Runs over a list of instances: each is solved, compared with its reference, and written down."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from milp_recourse.certificates import instance_digest
from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.formats.schema import read_instance
from milp_recourse.formats.strict_json import read_json, write_json, write_whole
from milp_recourse.formats.write import result_to_dict
from milp_recourse.problem.instance import Instance, Reference
from milp_recourse.problem.result import Result, Status, gap_tolerance
from milp_recourse.questions.solve import check_options, solve
from milp_recourse.questions.workers import Workers
from milp_recourse.reports.certificate_files import store_certificate
from milp_recourse.reports.result_rows import Row, cells, csv_line, header
from milp_recourse.reports.summary import summarise
from milp_recourse.reports.view import person_of

Verdict = Literal["agrees", "contradicts", "claims nothing"]


def solve_files(
    files: Sequence[Path | Instance],
    backend: str | None,
    time_limit: float | None,
    jobs: int,
    certificates: bool = False,
    threads: int = 1,
) -> Iterator[Row]:
    """One row per file or instance, in order; for those that the back end cannot solve, the reason.

    Raises
    ------
    BadInput, BackendUnavailable
        As :func:`milp_recourse.questions.solve.solve`.
    MachineFailed
        A process died.
    """
    check_options(time_limit, jobs, threads=threads)
    own = partial(solve, backend=backend, time_limit=time_limit, certificates=certificates, threads=threads)
    row = partial(_row, own)
    return map(row, files) if jobs == 1 or len(files) <= 1 else Workers(jobs).map(row, files, in_order=True)


def answered_in(folder: Path) -> set[str]:
    """The digests of the instances of which a folder has answers.

    Raises
    ------
    BadInput
        It has a population's answers, or others that do not say of what.
    """
    if (folder / "run.json").exists():
        raise BadInput("--out", f"a population's run in {folder}", "another folder")
    if not (folder / "results.csv").exists():
        return set()
    try:
        listed = read_json(folder / "results.json")["results"]
        return {str(one["instance_sha256"]) for one in listed if one["result"] is not None}
    except (BadInput, KeyError, TypeError):
        raise BadInput("--out", f"other results in {folder}", "another folder") from None


def refuse_others(folder: Path, kept: Iterable[Instance]) -> None:
    """Raise BadInput where a folder has an answer about an instance that is not among those ``kept``."""
    earlier = answered_in(folder)
    if earlier and not earlier <= {instance_digest(instance) for instance in kept}:
        raise BadInput("--out", f"answers about other instances in {folder}", "another folder")


def write_rows(rows: Sequence[Row], folder: Path) -> dict[str, Any]:
    """Write results.csv (with a last column ``name``), results.json and certificates; return the summary.

    Instances that the back end cannot solve are in results.json only. Certificate files in the folder that
    this run did not write are removed.

    Raises
    ------
    BadInput
        The folder has answers about other instances, or a population's.
    """
    refuse_others(folder, [instance for _, instance, result, _ in rows if result is not None])
    rows = [
        (name, instance, result and store_certificate(result, k, folder), remark)
        for k, (name, instance, result, remark) in enumerate(rows)
    ]
    written = {Path(r.certificate).name for _, _, r, _ in rows if r is not None and r.certificate}
    for file in (folder / "certificates").glob("*.json.gz"):  # left by an earlier run
        if file.name not in written:
            file.unlink()
    features = list(dict.fromkeys(f.name for _, instance, _, _ in rows for f in instance.features))
    lines = [csv_line([*header(features), "name"])]
    solved = [
        (k, name, person_of(result, instance))
        for k, (name, instance, result, _) in enumerate(rows)
        if result is not None
    ]
    lines += [csv_line([*cells(k, person, features), name]) for k, name, person in solved]
    summary = summarise((p.status, p.cost, p.seconds or 0.0) for _, _, p in solved)
    summary["not_solved"] = len(rows) - len(solved)
    listed = [
        {
            "name": name,
            "instance_sha256": instance_digest(instance),
            "result": None if result is None else result_to_dict(result),
            "refused": remark if result is None else None,
            "reference": (remark or None) if result is not None else None,
        }
        for name, instance, result, remark in rows
    ]
    write_json(summary | {"results": listed}, folder / "results.json")  # it says of what the rows are
    write_whole("".join(lines).encode(), folder / "results.csv")
    return summary


def _row(own: Callable[[Instance], Result], file: Path | Instance) -> Row:
    instance = file if isinstance(file, Instance) else read_instance(file)
    name = instance.name or ("instance" if isinstance(file, Instance) else file.name.split(".")[0])
    try:
        result = own(instance)
    except Unsupported as error:
        return name, instance, None, str(error)
    remark = "" if instance.reference is None else compare(instance.reference, result)
    return name, instance, result, remark


def compare(reference: Reference, result: Result) -> Verdict:
    """Whether the known answer and the result can both be true.

    Each claims an interval that contains the optimal cost: from the lower bound to the cost, or infinity
    alone for "infeasible". ``found`` has no lower end. The two intervals must meet, up to the gap tolerance.
    A result without any bound, such as ``not-found``, claims nothing.
    """
    known = _interval(reference.status, reference.cost, reference.lower_bound)
    claimed = _interval(result.status.value, result.cost, result.lower_bound)
    if claimed == (0.0, math.inf):
        return "claims nothing"
    low, high = max(known[0], claimed[0]), min(known[1], claimed[1])
    slack = gap_tolerance(high, result.gap_allowance) * 2 if math.isfinite(high) else 0.0
    return "agrees" if low <= high + slack else "contradicts"


def _interval(status: str, cost: float | None, bound: float | None) -> tuple[float, float]:
    if status == Status.INFEASIBLE.value:
        return math.inf, math.inf
    low = bound if bound is not None else 0.0
    if status == Status.OPTIMAL.value and cost is not None and bound is None:
        low = cost
    return low, math.inf if cost is None else cost
