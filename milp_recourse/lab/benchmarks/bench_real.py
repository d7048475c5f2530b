"""``bench real``: networks on published tables, every column a lever, by several solvers, one thread each.

Every solver runs in a process of its own and is timed there by processor seconds. Every returned action is
judged exactly, whatever its solver says of it.
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
from milp_recourse.lab.known import known
from milp_recourse.lab.run_table import Key, filled

SOLVERS = ("bab", "highs", *PEERS)
"""The first two are back ends of this package; the others get the whole program as one model."""

COSTS = ("l1", "l2-squared", "linf", "l0")
COLUMNS = (
    *("model", "cost_kind", "applicant", "solver", "status", "claimed_cost", "cost", "lower_bound", "nodes"),
    *("feasible", "nearly", "flips", "first_seconds", "processor_seconds", "seconds", "certificate_seconds"),
    *("certificate_nodes", "check_seconds", "verified", "message", "events", "time_limit", "seed"),
)


@dataclass(frozen=True)
class Plan:
    """What is run: on every data set every network, every cost, and so many applicants.

    Attributes
    ----------
    networks
        Units of the hidden layers, as ``32x32``.
    applicants
        Per network: at random among the refused rows whose logit is above the median of them.
    """

    sets: Sequence[str]
    networks: Sequence[str]
    costs: Sequence[str]
    applicants: int
    solvers: Sequence[str]
    time_limit: float
    seed: int = 0
    data: Path | None = None

    def __post_init__(self) -> None:
        for solver in self.solvers:
            known("--solvers", solver, SOLVERS)
        for widths in self.networks:
            parsed_widths(widths)
        for cost in self.costs:
            known("--costs", cost, COSTS)

    def __len__(self) -> int:
        return len(self.sets) * len(self.networks) * len(self.costs) * self.applicants * len(self.solvers)


def run(
    plan: Plan, folder: Path, jobs: int = 1, advance: Callable[[str], object] = lambda name: None
) -> list[dict[str, Any]]:
    """Solve what ``folder/real.csv`` does not hold yet, writing each row as it comes; all rows.

    Raises
    ------
    BadInput
        The table is another run's, or a data set cannot be had.
    """
    groups = {f"{name} {widths}": (name, widths) for name in plan.sets for widths in plan.networks}
    identity = {"time_limit": plan.time_limit, "seed": plan.seed}
    return filled(
        folder / "real.csv", COLUMNS, identity, 4, groups, lambda *asked: solved(plan, *asked), jobs, advance
    )


def solved(plan: Plan, group: tuple[str, str], done: set[Key]) -> Iterator[dict[str, Any] | None]:
    """A row for every problem of one network and solver; None for one that is done."""
    network = fit_network(*group, plan.data, plan.seed)
    rows = chosen(network, plan)
    problems = ((cost, row, network.instance(row, cost)) for row in rows for cost in plan.costs)
    solvers = {name: partial(of_solver, name, "networks") for name in plan.solvers}
    return answered(network.name, problems, solvers, plan.time_limit, COLUMNS, done)


def chosen(network: Fitted, plan: Plan) -> list[int]:
    """Refused rows, the same ones for the same options."""
    near = network.refused[len(network.refused) // 2 :]
    rng = np.random.default_rng([plan.seed, zlib.crc32(network.name.encode())])
    picked = rng.choice(near, min(plan.applicants, len(near)), replace=False)
    return [int(row) for row in picked]
