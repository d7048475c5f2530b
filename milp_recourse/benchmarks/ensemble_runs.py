"""``bench ensembles``: deployed-size ensembles, every column a lever, by several solvers, one thread each."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from milp_recourse.backends.highs.cells import HighsCells
from milp_recourse.benchmarks.ensembles import MODELS, Ensemble, fit, read_table
from milp_recourse.benchmarks.resume import grown, read_rows
from milp_recourse.certificates import certificates_for
from milp_recourse.errors import BadInput
from milp_recourse.forests.axes import action_of, axes_of, factual_cells
from milp_recourse.forests.table import LeafTable
from milp_recourse.instance import Instance
from milp_recourse.judge import judge
from milp_recourse.solve import solve

SOLVERS = ("bab", "highs", "leaf-milp", "cpsat")
"""``leaf-milp``: the plain leaf formulation in HiGHS, presolve on, without a first action."""

IDENTITY = ("time_limit",)
COLUMNS = (
    *("model", "cost_kind", "row", "solver", "status", "proof", "cost", "lower_bound", "nodes"),
    *("first_seconds", "first_cost", "seconds", "processor_seconds", "flips", "certified_seconds"),
    *IDENTITY,
)


def run(
    data: Path | None,
    sets: Sequence[str],
    models: Sequence[str],
    costs: Sequence[str],
    applicants: int,
    solvers: Sequence[str],
    time_limit: float,
    folder: Path,
    advance: Callable[[str], object] = lambda name: None,
) -> list[dict[str, Any]]:
    """Solve what ``folder/ensembles.csv`` does not hold yet, writing each row as it comes; all rows.

    Parameters
    ----------
    data
        Folder with the published tables.
    models
        As ``forest-100x6``.
    applicants
        Refused rows per model: from the lowest score to the median, evenly spaced.

    Raises
    ------
    BadInput
        An unknown solver, or a model's name that does not read so.
    """
    for solver in solvers:
        if solver not in SOLVERS:
            raise BadInput("--solvers", solver, ", ".join(SOLVERS))
    sizes = [parsed(model) for model in models]
    with grown(folder / "ensembles.csv", COLUMNS, {"time_limit": time_limit}) as (rows, write):
        done = {(row["model"], row["cost_kind"], row["row"], row["solver"]) for row in rows}
        for name in sets:
            table = read_table(name, data)
            for kind, trees, depth in sizes:
                ensemble = fit(table, kind, trees, depth)
                for cost, row in ((c, r) for c in costs for r in hardest(ensemble, applicants)):
                    for solver in solvers:
                        if (ensemble.name, cost, str(row), solver) not in done:
                            found = answered(ensemble, ensemble.instance(row, cost), solver, time_limit)
                            key = {"model": ensemble.name, "cost_kind": cost, "row": row, "solver": solver}
                            write({**key, **found, "time_limit": time_limit})
                        advance(f"{ensemble.name} {cost} {row} {solver}")
    return read_rows(folder / "ensembles.csv")


def parsed(model: str) -> tuple[str, int, int]:
    """Kind, trees and depth of a model's name."""
    kind, _, size = model.partition("-")
    trees, _, depth = size.partition("x")
    if kind not in MODELS or not (trees.isdigit() and depth.isdigit() and int(trees) and int(depth)):
        raise BadInput("--models", model, "a kind and a size, as forest-100x6; kinds: " + ", ".join(MODELS))
    return kind, int(trees), int(depth)


def hardest(ensemble: Ensemble, count: int) -> list[int]:
    """Refused rows from the lowest score to the median, evenly spaced."""
    scores = ensemble.classifier.scores(ensemble.table.inputs()[ensemble.refused])
    order = ensemble.refused[np.argsort(scores, kind="stable")]
    return [int(order[k]) for k in np.linspace(0, len(order) // 2, min(count, len(order)), dtype=int)]


def answered(ensemble: Ensemble, instance: Instance, solver: str, time_limit: float) -> dict[str, Any]:
    """One solver's answer as a row; for ``bab`` also its first action, and its certificate's seconds."""
    row: dict[str, Any] = dict.fromkeys(COLUMNS[4:-1])
    if solver == "bab":
        start = time.perf_counter()
        first = solve(instance, "bab", 1e-3)
        row |= {"first_seconds": time.perf_counter() - start, "first_cost": first.cost}
    wall, processor = time.perf_counter(), time.process_time()
    if solver == "leaf-milp":
        row |= plain(instance, time_limit)
        action = row.pop("action")
    else:
        result = solve(instance, solver, time_limit)
        action = result.action
        row |= {"status": result.status.value, "proof": result.proof, "nodes": result.nodes}
        row |= {"cost": result.cost, "lower_bound": result.lower_bound}
    row |= {"seconds": time.perf_counter() - wall, "processor_seconds": time.process_time() - processor}
    if action is not None:
        values = [action.get(f.name, instance.factual[f.name]) for f in instance.features]
        numbers = [
            f.categories.index(v) if f.categories and isinstance(v, str) else v
            for f, v in zip(instance.features, values, strict=True)
        ]
        columns = instance.model_rows(np.array([numbers], dtype=np.float64))
        row["flips"] = bool(ensemble.estimator.predict(columns)[0] == 1)
    if solver == "bab" and row["status"] in ("optimal", "infeasible"):
        start = time.perf_counter()
        [certificate] = certificates_for([instance], [result], time_limit)
        row["certified_seconds"] = None if certificate is None else time.perf_counter() - start
    return row


def plain(instance: Instance, time_limit: float) -> dict[str, Any]:
    """The leaf formulation as it is, its answer as HiGHS gives it; the action judged exactly."""
    axes = axes_of(instance)
    assert axes is not None
    table = LeafTable(instance.classifier, factual_cells(instance, instance.classifier), axes)  # type: ignore[arg-type]
    model = HighsCells(axes, table, instance.cost.linf, instance.accept.above, math.inf)
    model.highs.setOptionValue("presolve", "on")
    status, bound, point = model.solve(time_limit)
    action = None if point is None else action_of(axes, point)
    verdict = None if action is None else judge(instance, action)
    cost = float(verdict.cost) if verdict is not None and verdict.feasible else None
    said = "limit" if status == "stopped" else status
    return {"status": said, "proof": "solver", "nodes": model.branches, "cost": cost} | {
        "lower_bound": None if math.isinf(bound) else bound,
        "action": action if cost is not None else None,
    }


def summarise(rows: Sequence[dict[str, Any]], time_limit: float) -> list[dict[str, Any]]:
    """One line per model size and solver, all data sets together; what is not proven counts at the limit."""
    said = []
    size = {row["model"]: row["model"].partition("/")[2] for row in rows}
    for model, solver in dict.fromkeys((size[r["model"]], r["solver"]) for r in rows):
        mine = [r for r in rows if (size[r["model"]], r["solver"]) == (model, solver)]
        proven = [r for r in mine if r["status"] in ("optimal", "infeasible")]
        times = sorted(float(r["seconds"]) if r in proven else time_limit for r in mine)
        first = [float(r["first_seconds"]) for r in mine if r["first_cost"]]
        certified = [float(r["certified_seconds"]) for r in mine if r["certified_seconds"]]
        said.append(
            {
                "model": model,
                "solver": solver,
                "problems": len(mine),
                "proven": len(proven),
                "median_s": median(times),
                "max_s": times[-1],
                "slowest_first_action_s": max(first, default=None),
                "certificates": len(certified) or None,
                "without_action": sum(not r["cost"] and r["status"] != "infeasible" for r in mine),
                "refused_by_the_model": sum(r["flips"] == "False" for r in mine),
            }
        )
    return said


def disagreements(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Problems on which two proven answers differ by more than a millionth and 1e-6."""
    found: dict[tuple[str, ...], list[tuple[str, float]]] = {}
    for r in rows:
        if r["status"] in ("optimal", "infeasible"):
            cost = float(r["cost"]) if r["cost"] else math.inf
            found.setdefault((r["model"], r["cost_kind"], r["row"]), []).append((r["solver"], cost))
    return [
        f"{' '.join(key)}: {answers}"
        for key, answers in found.items()
        if any(not math.isclose(a, answers[0][1], rel_tol=1e-5, abs_tol=1e-6) for _, a in answers[1:])
    ]


def write(rows: Sequence[dict[str, Any]], folder: Path, time_limit: float) -> list[dict[str, Any]]:
    """ensembles.json and, with matplotlib, ensembles.svg; the summary."""
    summary = summarise(rows, time_limit)
    content = {"time_limit": time_limit, "summary": summary, "disagreements": disagreements(rows)}
    (folder / "ensembles.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    try:
        import matplotlib
    except ImportError:
        return summary
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "ensembles"
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6, 4))
    for solver in dict.fromkeys(r["solver"] for r in rows):
        mine = [r for r in rows if r["solver"] == solver]
        proven = sorted(float(r["seconds"]) for r in mine if r["status"] in ("optimal", "infeasible"))
        shares = [(k + 1) / len(mine) for k in range(len(proven))]
        axis.step([*proven, time_limit], [*shares, shares[-1] if shares else 0.0], where="post", label=solver)
    axis.set(xscale="log", xlabel="seconds", ylabel="share of problems proven")
    axis.legend()
    figure.tight_layout()
    figure.savefig(folder / "ensembles.svg", metadata={"Date": None})
    plt.close(figure)
    return summary
