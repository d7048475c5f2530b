"""``bench real``: networks on published tables, every column a lever, given to several solvers.

Every solver runs in a process of its own, on one thread but for ``bab:2``, and its processor seconds are
measured there. Every returned action is judged exactly.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from milp_recourse.lab.benchmarks.child import answered, of_solver
from milp_recourse.lab.benchmarks.fitted import Fitted, fit_network, parsed_widths
from milp_recourse.lab.benchmarks.peers import PEERS
from milp_recourse.lab.benchmarks.plan import ANSWER, CHECK, EFFORT, KEYS
from milp_recourse.lab.benchmarks.plan import Plan as SharedPlan
from milp_recourse.lab.known import known
from milp_recourse.lab.run_table import Key

SOLVERS = ("bab", "bab:2", "highs", *PEERS)
"""The first three are of this package, ``bab:2`` with two threads; the others get the whole program as one
model."""

COSTS = ("l1", "l2-squared", "linf", "l0")
PEOPLE = ("near", "far")
FAR = "+far"
"""Ending of a model's name in rows of people who are far from acceptance."""

COLUMNS = (*KEYS, *ANSWER, "nearly", *EFFORT, *CHECK)


@dataclass(frozen=True)
class Plan(SharedPlan):
    """Every network on every data set, with every cost, for ``per_model`` applicants each.

    ``models`` are units of the hidden layers, as ``32x32``. Applicants are drawn from the half of the refused
    rows with the higher logits (``near``), from the tenth with the lowest (``far``), or from each.
    Without ``certificates`` ``bab`` writes none.
    """

    people: Sequence[str] = ("near",)
    certificates: bool = True

    def __post_init__(self) -> None:
        self.check(SOLVERS, parsed_widths, COSTS)
        for people in self.people:
            known("--people", people, PEOPLE)

    def __len__(self) -> int:
        """The number of rows of the table."""
        networks = len(self.sets) * len(self.models) * len(self.people)
        return networks * len(self.costs) * self.per_model * len(self.solvers)


def run(
    plan: Plan, folder: Path, jobs: int = 1, advance: Callable[[str], object] = lambda name: None
) -> list[dict[str, Any]]:
    """Solve what ``folder/real.csv`` does not hold yet, and write each row as it comes; all rows.

    Raises
    ------
    BadInput
        The table is of a run with other options, or a data set is unknown or its file missing.
    """
    groups = {f"{name} {widths}": (name, widths) for name in plan.sets for widths in plan.models}
    return plan.fill(folder / "real.csv", COLUMNS, groups, partial(solved, plan), jobs, advance)


def solved(plan: Plan, group: tuple[str, str], done: set[Key]) -> Iterator[dict[str, Any] | None]:
    """A row for each problem of one network and each solver; None for a row that the table has."""
    network = fit_network(*group, plan.data, plan.seed)
    solvers = {name: partial(of_solver, name, "networks", plan.certificates) for name in plan.solvers}
    for people in plan.people:
        rows = chosen(network, plan, people)
        problems = ((cost, row, network.instance(row, cost)) for row in rows for cost in plan.costs)
        name = network.name + (FAR if people == "far" else "")
        yield from answered(name, problems, solvers, plan.time_limit, COLUMNS, done)


def chosen(network: Fitted, plan: Plan, people: str = "near") -> list[int]:
    """The applicants' rows; the same options choose the same rows."""
    among = network.refused[len(network.refused) // 2 :]
    if people == "far":
        among = network.refused[: max(plan.per_model, len(network.refused) // 10)]
    rng = np.random.default_rng([plan.seed, zlib.crc32(network.name.encode())])
    picked = rng.choice(among, min(plan.per_model, len(among)), replace=False)
    return [int(row) for row in picked]
