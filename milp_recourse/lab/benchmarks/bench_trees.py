"""``bench trees``: ensembles of deployed size, every column a lever, given to several solvers.

Every solver runs in a process of its own, on one thread, and its processor seconds are measured there. Every
returned action is judged exactly, and the fitted model is asked whether it accepts the outcome.
"""

from __future__ import annotations

import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from milp_recourse.errors import BadInput
from milp_recourse.lab.benchmarks.child import Child, Peer, answered, of_solver
from milp_recourse.lab.benchmarks.fitted import MODELS, UNIT, Fitted, fit_trees, read_table
from milp_recourse.lab.benchmarks.plan import ANSWER, CHECK, EFFORT, KEYS
from milp_recourse.lab.benchmarks.plan import Plan as SharedPlan
from milp_recourse.lab.benchmarks.timed import judged
from milp_recourse.lab.run_table import Key
from milp_recourse.problem.instance import Instance

SOLVERS = ("bab", "highs", "cpsat", "leaf-milp", "treecf", "ocean-cp", "ocean-mip")
"""``leaf-milp`` is the plain leaf formulation in HiGHS; the last two are OceanPy's. OceanPy does not scale
costs by column, so it is given only data sets whose columns are scaled already (:data:`UNIT`). treecf must be
installed beside this package; it takes l1 and numbers."""

COSTS = ("l1", "l2-squared")
COLUMNS = (*KEYS, *ANSWER, *EFFORT, "certificate_kinds", "certificate_bytes", *CHECK)


@dataclass(frozen=True)
class Problem:
    """A problem by its data set, model, cost, and the applicant's place among the refused rows.

    Attributes
    ----------
    rank
        0 for the row with the lowest score, 1 for the refused row with the highest.
    """

    table: str
    model: str
    cost: str
    rank: float


@dataclass(frozen=True)
class Plan(SharedPlan):
    """For every model ``per_model`` problems, which take the data sets and the costs in turn.

    ``models`` are as ``forest-100x6``, or ``forest-100`` for the library's own depth. Applicants are drawn
    from the half of the refused rows with the lower scores.

    Attributes
    ----------
    ocean_python
        The path of a Python that has OceanPy.
    """

    ocean_python: str | None = None

    def __post_init__(self) -> None:
        self.check(SOLVERS, parsed, COSTS)
        if self.ocean_python is None and any(solver.startswith("ocean") for solver in self.solvers):
            raise BadInput("--ocean-python", "nothing", "a Python that has OceanPy")

    def __len__(self) -> int:
        """The number of rows of the table, and of problems that OceanPy is not given."""
        return len(self.problems()) * len(self.solvers)

    def problems(self) -> list[Problem]:
        """The problems, by data set and model. A model's do not depend on which other models there are."""
        found = []
        for model in self.models:
            rng = np.random.default_rng([self.seed, zlib.crc32(model.encode())])
            order = rng.permutation(len(self.sets))
            for k in range(self.per_model):
                table = self.sets[order[k % len(order)]]
                cost = self.costs[(k + k // len(order)) % len(self.costs)]
                found.append(Problem(table, model, cost, float(rng.uniform(0, 0.5))))
        return sorted(found, key=lambda p: (self.sets.index(p.table), self.models.index(p.model)))


def parsed(model: str) -> tuple[str, int, int | None]:
    """(kind, number of trees, depth) of a model's name; the depth is None where the name has none, as
    ``forest-100``. Raise BadInput for any other text."""
    kind, _, size = model.partition("-")
    numbers = size.split("x")
    if kind not in MODELS or len(numbers) > 2 or not all(n.isdigit() and int(n) for n in numbers):
        allowed = "a kind and a size, as forest-100x6, or forest-100 for the library's own depth; kinds: "
        raise BadInput("--models", model, allowed + ", ".join(MODELS))
    return kind, int(numbers[0]), int(numbers[1]) if len(numbers) > 1 else None


def run(
    plan: Plan, folder: Path, jobs: int = 1, advance: Callable[[str], object] = lambda name: None
) -> list[dict[str, Any]]:
    """Solve what ``folder/trees.csv`` does not hold yet, and write each row as it comes; all rows.

    Raises
    ------
    BadInput
        The table is of a run with other options, or a data set is unknown or its file missing.
    """
    groups: dict[str, list[Problem]] = {}
    for problem in plan.problems():
        groups.setdefault(f"{problem.table} {problem.model}", []).append(problem)
    return plan.fill(folder / "trees.csv", COLUMNS, groups, partial(solved, plan), jobs, advance)


def solved(plan: Plan, group: list[Problem], done: set[Key]) -> Iterator[dict[str, Any] | None]:
    """A row for each problem of one model and each solver; None for a row that the table has.

    Also None for a problem that a solver is not given, or that was drawn twice, so that progress is complete.
    """
    table = read_table(group[0].table, plan.data, plan.seed)
    ensemble = fit_trees(table, *parsed(group[0].model), plan.seed)
    rows = dict.fromkeys((problem.cost, ranked(ensemble, problem.rank)) for problem in group)
    problems = ((cost, row, ensemble.instance(row, cost)) for cost, row in rows)
    fits = [one for one in plan.solvers if table.name.endswith(UNIT) or not one.startswith("ocean")]
    solvers = {name: partial(worker, name, ensemble, plan.ocean_python) for name in fits}

    def finish(instance: Instance, answer: dict[str, Any]) -> dict[str, Any]:
        return answer | {"flips": flips(ensemble, instance, answer.pop("action", None))}

    yield from answered(ensemble.name, problems, solvers, plan.time_limit, COLUMNS, done, finish)
    yield from repeat(None, len(group) * len(plan.solvers) - len(rows) * len(fits))


def ranked(ensemble: Fitted, rank: float) -> int:
    """The refused row with a given rank by score (see :class:`Problem`)."""
    return int(ensemble.refused[int(rank * (len(ensemble.refused) - 1))])


def flips(ensemble: Fitted, instance: Instance, action: dict[str, float] | None) -> bool | None:
    """Whether the fitted model's ``predict`` accepts the outcome of an action; None without an action."""
    if action is None:
        return None
    numbers = [action.get(f.name, instance.factual[f.name]) for f in instance.features]
    columns = instance.model_rows(np.array([numbers], dtype=np.float64))
    return bool(ensemble.estimator.predict(columns)[0] == 1)


def worker(solver: str, ensemble: Fitted, ocean_python: str | None) -> Child:
    """Start a solver in a process of its own: a peer for one fitted model, the others for any instance."""
    if solver == "treecf":
        return PeerWorker(sys.executable, "treecf", ensemble, _asked_of_treecf)
    if solver.startswith("ocean"):
        return PeerWorker(str(ocean_python), solver.removeprefix("ocean-"), ensemble, _asked_of_ocean)
    return of_solver(solver, "trees")


class PeerWorker(Peer):
    """A peer with one fitted model.

    Parameters
    ----------
    kind
        The peer, as ``peer_worker.py`` knows it.
    question
        What it is asked of an instance, or the reason why it is asked nothing.
    """

    def __init__(
        self,
        python: str,
        kind: str,
        ensemble: Fitted,
        question: Callable[[Instance], dict[str, Any] | str],
    ) -> None:
        self.folder, self.question = tempfile.TemporaryDirectory(), question
        model = Path(self.folder.name) / "model.joblib"
        _hand_over(ensemble, model)
        super().__init__(python, "peer_worker.py", str(model), kind)

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self.folder.cleanup()

    def ask(self, instance: Instance, time_limit: float) -> dict[str, Any]:
        """The peer's answer to an instance, with the exact judgement of its action."""
        question = self.refused or self.question(instance)
        if isinstance(question, str):
            return {"status": "refused", "message": question}
        row = [instance.factual[f.name] for f in instance.features]
        answer = self.put({"row": row, "limit": time_limit} | question)
        after, action = answer.pop("row", None), None
        if after is not None:
            named = zip(instance.features, row, after, strict=True)
            action = {f.name: new for f, old, new in named if new != old}
        return answer | judged(instance, action)


def _asked_of_ocean(instance: Instance) -> dict[str, Any]:
    return {"norm": 1 if instance.cost.kind == "l1" else 2}


def _asked_of_treecf(instance: Instance) -> dict[str, Any] | str:
    """The price of a change by 1, the bounds, and which columns are whole numbers."""
    costs = [instance.lever_costs[f.name] for f in instance.features if f.name in instance.levers]
    plain = len(costs) == len(instance.features) and all(cost.straight and cost.even for cost in costs)
    if instance.cost.kind != "l1" or not plain:
        return "treecf's cost is a sum of distances of numbers"
    low, high = zip(*(instance.levers[f.name] for f in instance.features), strict=True)
    return {
        "price": [float(cost.prices.linear) / cost.rise for cost in costs],
        "low": low,
        "high": high,
        "whole": [f.integral for f in instance.features],
    }


def _hand_over(ensemble: Fitted, path: Path) -> None:
    """Write the fitted model, its features' kinds, and all rows of the data for a peer's script."""
    import joblib

    features, values = ensemble.table.features, ensemble.table.values
    kinds = [len(f.columns) if f.kind == "categorical" else f.kind for f in features]
    content = {"model": ensemble.estimator, "kinds": kinds, "rows": values.tolist()}
    joblib.dump(content, path)
