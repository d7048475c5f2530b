"""What ``bench real`` and ``bench trees`` share: options, columns, and a table that is filled row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from milp_recourse.lab.known import known
from milp_recourse.lab.run_table import Group, Key, filled

KEYS = ("model", "cost_kind", "applicant", "solver")
"""The first columns: they tell rows apart."""

ANSWER = ("status", "claimed_cost", "cost", "lower_bound", "nodes", "feasible")
EFFORT = (
    "flips",
    "first_seconds",
    "processor_seconds",
    "seconds",
    "certificate_seconds",
    "certificate_nodes",
)
CHECK = ("check_seconds", "verified", "message", "events", "time_limit", "seed")


@dataclass(frozen=True)
class Plan:
    """Options of a benchmark that gives the same problems to several solvers.

    Attributes
    ----------
    sets
        Names of data sets.
    models
        What is fitted to every data set, by name and size.
    costs
        Kinds of cost.
    per_model
        How many applicants (``bench real``, per network) or problems (``bench trees``, per model) there are.
    time_limit
        Wall seconds per problem and solver.
    seed
        Of the rows' order, the training and the choice of applicants.
    data
        The folder with the published tables; None: only data sets that need no file.
    """

    sets: Sequence[str]
    models: Sequence[str]
    costs: Sequence[str]
    per_model: int
    solvers: Sequence[str]
    time_limit: float
    seed: int = 0
    data: Path | None = None

    def check(self, solvers: Sequence[str], parse: Callable[[str], object], costs: Sequence[str]) -> None:
        """Raise BadInput for an unknown solver or cost, or for a model that ``parse`` refuses."""
        for solver in self.solvers:
            known("--solvers", solver, solvers)
        for model in self.models:
            parse(model)
        for cost in self.costs:
            known("--costs", cost, costs)

    def fill(
        self,
        table: Path,
        columns: Sequence[str],
        groups: Mapping[str, Group],
        solved: Callable[[Group, set[Key]], Iterator[dict[str, Any] | None]],
        jobs: int,
        advance: Callable[[str], object],
    ) -> list[dict[str, Any]]:
        """Solve the problems that the table does not have yet, and write each row as it comes; all rows.

        The parameters are those of :func:`~milp_recourse.lab.run_table.filled`.
        """
        identity = {"time_limit": self.time_limit, "seed": self.seed}
        return filled(table, columns, identity, len(KEYS), groups, solved, jobs, advance)
