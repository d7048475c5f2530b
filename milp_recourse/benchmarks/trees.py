"""Random forests on min-max scaled Loan features: ``bab`` and ``cpsat`` against OceanPy's CP model.

Refused applicants, all seven features free in [0, 1] (gender 0 or 1), cost the sum of changes. One thread
each, the same applicants in the same run. A query that is not answered counts at its time limit.
"""

from __future__ import annotations

import csv
import json
import math
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.backends import register, unregister
from milp_recourse.backends.cpsat import CpsatBackend
from milp_recourse.domain.cost import Cost
from milp_recourse.domain.features import Feature
from milp_recourse.domain.loan import FEATURES
from milp_recourse.domain.scm import independent
from milp_recourse.errors import Unsupported
from milp_recourse.instance import Acceptance, Instance, Preferences
from milp_recourse.readers import read_sklearn_trees
from milp_recourse.recipe.data import loan_label
from milp_recourse.result import Status
from milp_recourse.solve import solve

OURS = ("bab", "cpsat")


@dataclass(frozen=True)
class Row:
    """One query by one solver; ``processor_seconds`` of this process (or the worker's)."""

    forest: str
    query: int
    solver: str
    status: str
    cost: float | None
    seconds: float
    processor_seconds: float
    flips: bool | None


@dataclass(frozen=True)
class Problem:
    """A forest and its refused applicants."""

    name: str
    estimator: Any
    rows: NDArray[np.float64]
    queries: NDArray[np.float64]


def problem(trees: int, depth: int, queries: int, seed: int = 0) -> Problem:
    """10000 rows to train on, the first refused of 2000 others as queries."""
    from sklearn.ensemble import RandomForestClassifier

    from milp_recourse.domain.loan import loan

    rows = loan().sample(12000, np.random.default_rng(seed))
    labels = loan_label(rows)
    low, high = rows.min(axis=0), rows.max(axis=0)
    rows = (rows - low) / (high - low)
    forest = RandomForestClassifier(trees, max_depth=depth, random_state=seed)
    forest.fit(rows[:10000], labels[:10000])
    refused = rows[10000:][forest.predict(rows[10000:]) == 0]
    return Problem(f"{trees} x {depth}", forest, rows, refused[:queries])


def instances(made: Problem) -> list[Instance]:
    """The queries as instances."""
    forest = read_sklearn_trees(made.estimator)
    features = tuple(
        Feature(n, "binary" if n == "gender" else "continuous", True, (0.0, 1.0)) for n in FEATURES
    )
    scale = dict.fromkeys(FEATURES, 1.0)
    return [
        Instance(
            features,
            independent(FEATURES),
            forest,
            dict(zip(FEATURES, query.tolist(), strict=True)),
            Preferences(FEATURES),
            Cost.pure("l1", scale),
            Acceptance(0.5, 0.0, strict=True),
        )
        for query in made.queries
    ]


def run(
    made: Problem,
    time_limit: float,
    ocean_python: str | None,
    on_query: Callable[[], object] = lambda: None,
    in_process: bool = True,
) -> list[Row]:
    """Every query by every solver; ``in_process`` False leaves CP-SAT's time out, and highspy usable."""
    register("cpsat here", lambda: CpsatBackend(in_process=True))  # or its child's time would not count
    try:
        rows = _ours(made, time_limit, on_query, in_process)
    finally:
        unregister("cpsat here")
    if ocean_python is not None:
        rows += _ocean(made, time_limit, ocean_python)
    return rows


def _ours(made: Problem, time_limit: float, on_query: Callable[[], object], in_process: bool) -> list[Row]:
    """Every query by this package's back ends."""
    rows: list[Row] = []
    for k, instance in enumerate(instances(made)):
        for name in OURS:
            wall, processor = time.perf_counter(), time.process_time()
            result = solve(instance, "cpsat here" if name == "cpsat" and in_process else name, time_limit)
            spent = time.perf_counter() - wall, time.process_time() - processor
            flips = None
            if result.counterfactual is not None:
                values = result.counterfactual.values()
                row = np.array([[math.nan if v is None else float(v) for v in values]])
                flips = bool(made.estimator.predict(row)[0] == 1)
            rows.append(Row(made.name, k, name, result.status.value, result.cost, *spent, flips))
        on_query()
    return rows


def _ocean(made: Problem, time_limit: float, python: str) -> list[Row]:
    import joblib

    worker = Path(__file__).with_name("ocean_worker.py")
    with tempfile.TemporaryDirectory() as folder:
        data, model = Path(folder) / "data.json", Path(folder) / "model.joblib"
        content = {"names": FEATURES, "rows": made.rows.tolist(), "queries": made.queries.tolist()}
        data.write_text(json.dumps(content), encoding="utf-8")
        joblib.dump(made.estimator, model)
        command = [python, str(worker), str(data), str(model), str(time_limit)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unsupported(f"OceanPy's worker failed: {' '.join(done.stderr.split())[-300:]}")
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [
        Row(
            made.name,
            k,
            "oceanpy",
            a["status"],
            a["cost"],
            a["seconds"],
            a["processor_seconds"],
            a["flips"],
        )
        for k, a in enumerate(answers)
    ]


def summarise(rows: Sequence[Row], time_limit: float) -> list[dict[str, Any]]:
    """One line per forest and solver; what is not proven counts at the limit."""
    said = []
    for forest, solver in dict.fromkeys((r.forest, r.solver) for r in rows):
        mine = [r for r in rows if (r.forest, r.solver) == (forest, solver)]
        known = {r.query: r.cost for r in rows if r.forest == forest and r.solver == "bab"}
        proven = [r for r in mine if r.status in (Status.OPTIMAL.value, Status.INFEASIBLE.value)]
        times = [r.processor_seconds if r in proven else max(time_limit, r.processor_seconds) for r in mine]
        said.append(
            {
                "forest": forest,
                "solver": solver,
                "queries": len(mine),
                "proven": len(proven),
                "median_s": median(times),
                "mean_s": mean(times),
                "max_s": max(times),
                "largest_difference_of_cost": max(
                    (
                        abs(r.cost - (known[r.query] or 0.0))
                        for r in proven
                        if r.cost is not None and known.get(r.query) is not None
                    ),
                    default=None,
                ),
                "answers_refused_by_the_forest": sum(r.flips is False for r in mine),
            }
        )
    return said


def write(rows: Sequence[Row], summary: list[dict[str, Any]], folder: Path, time_limit: float) -> None:
    """queries.csv, summary.json and, with matplotlib, times.svg."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "queries.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(Row.__dataclass_fields__), lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(r) for r in rows)
    content = {"time_limit": time_limit, "summary": summary}
    (folder / "summary.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "trees"
    import matplotlib.pyplot as plt

    forests = list(dict.fromkeys(r.forest for r in rows))
    figure, axes = plt.subplots(1, len(forests), figsize=(5 * len(forests), 3.4), squeeze=False)
    for axis, forest in zip(axes[0], forests, strict=True):
        for solver in dict.fromkeys(r.solver for r in rows):
            mine = [r for r in rows if (r.forest, r.solver) == (forest, solver)]
            times = sorted(
                r.processor_seconds if r.status != "limit" else max(time_limit, r.processor_seconds)
                for r in mine
            )
            axis.step([*times], [(k + 1) / len(times) for k in range(len(times))], where="post", label=solver)
        axis.set(xscale="log", xlabel="processor seconds", ylabel="share of queries proven", title=forest)
        axis.legend()
    figure.tight_layout()
    figure.savefig(folder / "times.svg", metadata={"Date": None})
    plt.close(figure)
