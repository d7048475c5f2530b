"""``bench trees``: ensembles of deployed size, every column a lever, by several solvers, one thread each.

Every solver runs in a process of its own, and is timed there by processor seconds. Every returned action is
judged exactly here, whatever its solver says of it, and handed to the fitted model.
"""

from __future__ import annotations

import json
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any, Self

import numpy as np

from milp_recourse.errors import BadInput
from milp_recourse.instance import Instance
from milp_recourse.lab.benchmarks.child import Child, answered, of_solver
from milp_recourse.lab.benchmarks.fitted import MODELS, UNIT, Fitted, fit_trees, read_table
from milp_recourse.lab.benchmarks.timed import judged
from milp_recourse.lab.known import known
from milp_recourse.lab.run_table import Key, filled

SOLVERS = ("bab", "highs", "cpsat", "leaf-milp", "ocean-cp", "ocean-mip")
"""``leaf-milp``: the plain leaf formulation in HiGHS. The last two are OceanPy's. It does not scale costs by
column, so it is given only data sets whose columns are scaled already (:data:`UNIT`).
"""

COSTS = ("l1", "l2-squared")
COLUMNS = (
    *("model", "cost_kind", "applicant", "solver", "status", "claimed_cost", "cost", "lower_bound", "nodes"),
    *("feasible", "flips", "first_seconds", "processor_seconds", "seconds", "certificate_seconds"),
    *("certificate_nodes", "certificate_kinds", "certificate_bytes", "check_seconds", "verified", "message"),
    *("events", "time_limit", "seed"),
)


@dataclass(frozen=True)
class Problem:
    """What is asked: a data set, a model, a cost and a place among the refused applicants.

    Attributes
    ----------
    rank
        0 for the applicant with the lowest score, 1 for the one just refused.
    """

    table: str
    model: str
    cost: str
    rank: float


@dataclass(frozen=True)
class Plan:
    """What is run.

    Attributes
    ----------
    models
        As ``forest-100x6``.
    per_model
        Problems per model: data sets and costs in turn, applicants at random among the lower half.
    ocean_python
        A Python that has OceanPy.
    """

    sets: Sequence[str]
    models: Sequence[str]
    costs: Sequence[str]
    per_model: int
    solvers: Sequence[str]
    time_limit: float
    seed: int = 0
    data: Path | None = None
    ocean_python: str | None = None

    def __post_init__(self) -> None:
        for solver in self.solvers:
            known("--solvers", solver, SOLVERS)
            if solver.startswith("ocean") and self.ocean_python is None:
                raise BadInput("--ocean-python", "nothing", "a Python that has OceanPy")
        for model in self.models:
            parsed(model)
        for cost in self.costs:
            known("--costs", cost, COSTS)

    def problems(self) -> list[Problem]:
        """The same for the same options, whatever other models there are; by data set and model."""
        found = []
        for model in self.models:
            rng = np.random.default_rng([self.seed, zlib.crc32(model.encode())])
            order = rng.permutation(len(self.sets))
            for k in range(self.per_model):
                table = self.sets[order[k % len(order)]]
                cost = self.costs[(k + k // len(order)) % len(self.costs)]
                found.append(Problem(table, model, cost, float(rng.uniform(0, 0.5))))
        return sorted(found, key=lambda p: (self.sets.index(p.table), self.models.index(p.model)))


def parsed(model: str) -> tuple[str, int, int]:
    """Kind, trees and depth of a model's name."""
    kind, _, size = model.partition("-")
    trees, _, depth = size.partition("x")
    if kind not in MODELS or not (trees.isdigit() and depth.isdigit() and int(trees) and int(depth)):
        raise BadInput("--models", model, "a kind and a size, as forest-100x6; kinds: " + ", ".join(MODELS))
    return kind, int(trees), int(depth)


def run(
    plan: Plan, folder: Path, jobs: int = 1, advance: Callable[[str], object] = lambda name: None
) -> list[dict[str, Any]]:
    """Solve what ``folder/trees.csv`` does not hold yet, writing each row as it comes; all rows.

    Raises
    ------
    BadInput
        The table is another run's, or a data set cannot be had.
    """
    groups: dict[str, list[Problem]] = {}
    for problem in plan.problems():
        groups.setdefault(f"{problem.table} {problem.model}", []).append(problem)
    identity = {"time_limit": plan.time_limit, "seed": plan.seed}
    return filled(
        folder / "trees.csv", COLUMNS, identity, 4, groups, lambda *asked: solved(plan, *asked), jobs, advance
    )


def solved(plan: Plan, group: list[Problem], done: set[Key]) -> Iterator[dict[str, Any] | None]:
    """A row for every problem of one model and solver; None for one that is done."""
    table = read_table(group[0].table, plan.data, plan.seed)
    ensemble = fit_trees(table, *parsed(group[0].model), plan.seed)
    rows = [(problem.cost, ranked(ensemble, problem.rank)) for problem in group]
    problems = ((cost, row, ensemble.instance(row, cost)) for cost, row in rows)
    fits = [one for one in plan.solvers if table.name.endswith(UNIT) or not one.startswith("ocean")]
    solvers = {name: partial(worker, name, ensemble, plan.ocean_python) for name in fits}

    def finish(instance: Instance, answer: dict[str, Any]) -> dict[str, Any]:
        return answer | {"flips": flips(ensemble, instance, answer.pop("action", None))}

    yield from answered(ensemble.name, problems, solvers, plan.time_limit, COLUMNS, done, finish)
    yield from repeat(None, len(group) * (len(plan.solvers) - len(fits)))


def ranked(ensemble: Fitted, rank: float) -> int:
    """The refused row at a place between the lowest score (0) and the highest (1)."""
    return int(ensemble.refused[int(rank * (len(ensemble.refused) - 1))])


def flips(ensemble: Fitted, instance: Instance, action: dict[str, float] | None) -> bool | None:
    """Whether the fitted model itself accepts the row that an action makes."""
    if action is None:
        return None
    numbers = [action.get(f.name, instance.factual[f.name]) for f in instance.features]
    columns = instance.model_rows(np.array([numbers], dtype=np.float64))
    return bool(ensemble.estimator.predict(columns)[0] == 1)


def worker(solver: str, ensemble: Fitted, ocean_python: str | None) -> Child | OceanWorker:
    """A solver in a process of its own: OceanPy's holds one fitted model, the others take any instance."""
    if solver.startswith("ocean"):
        return OceanWorker(solver.removeprefix("ocean-"), ensemble, str(ocean_python))
    return of_solver(solver, "trees")


class OceanWorker:
    """OceanPy in the Python that has it, asked about one fitted model.

    Parameters
    ----------
    kind
        ``cp`` or ``mip``.
    """

    def __init__(self, kind: str, ensemble: Fitted, python: str) -> None:
        self.folder = tempfile.TemporaryDirectory()
        model = Path(self.folder.name) / "model.joblib"
        _hand_over(ensemble, model)
        script = str(Path(__file__).with_name("ocean_worker.py"))
        self.child = Child([python, script, str(model), kind])
        greeting = self.child.receive()
        self.refused = greeting.get("refused", greeting.get("message"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.child.__exit__()
        self.folder.cleanup()

    def ask(self, instance: Instance, time_limit: float) -> dict[str, Any]:
        """The answer to one instance, its action judged."""
        if self.refused is not None:
            return {"status": "refused", "message": self.refused}
        row = [instance.factual[f.name] for f in instance.features]
        question = {"row": row, "norm": 1 if instance.cost.l1 else 2, "limit": time_limit}
        answer = self.child.send(json.dumps(question).encode() + b"\n")
        after, action = answer.pop("row", None), None
        if after is not None:
            named = zip(instance.features, row, after, strict=True)
            action = {f.name: new for f, old, new in named if new != old}
        return answer | judged(instance, action)


def _hand_over(ensemble: Fitted, path: Path) -> None:
    """The fitted model, its features' kinds, and rows that hold every label and both ends of every column."""
    import joblib

    features, values = ensemble.table.features, ensemble.table.values
    kinds = [len(f.columns) if f.kind == "categorical" else f.kind for f in features]
    content = {"model": ensemble.estimator, "kinds": kinds, "rows": values.tolist()}
    joblib.dump(content, path)
