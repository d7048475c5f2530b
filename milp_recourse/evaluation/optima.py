"""The certified optima with which a method is compared, kept in a folder."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Result
from milp_recourse.questions.solve import backend_for, check_options, solve_as_finished, solve_population
from milp_recourse.questions.workers import Workers
from milp_recourse.reports.folder_lock import only_writer
from milp_recourse.reports.population_folder import PopulationFolder


@dataclass(frozen=True)
class Optimum:
    """What is proven about one applicant's cheapest recourse.

    Attributes
    ----------
    status
        The result's status.
    cost
        Cost of the best action known; None without one.
    lower_bound
        No feasible action costs less; None if there is no feasible action, or the applicant could not be
        read.
    """

    status: str
    cost: float | None
    lower_bound: float | None

    @staticmethod
    def of(result: Result) -> Optimum:
        """The optimum of a result."""
        return Optimum(result.status.value, result.cost, result.lower_bound)


def certified_optima(
    population: Population,
    folder: Path | None = None,
    time_limit: float | None = None,
    *,
    certificates: bool = False,
    jobs: int = 1,
    advance: Callable[[], None] = lambda: None,
) -> list[Optimum]:
    """Everybody's optimum. Optima that are in ``folder`` are read from it, the others are added to it.

    Parameters
    ----------
    folder
        A folder as ``certify POPULATION --out`` writes it; None to keep nothing.
    certificates
        Whether to write also a proof per applicant that ``verify`` checks; only with ``folder``.
    advance
        Called after every applicant.

    Raises
    ------
    BadInput
        Without a folder: an applicant could not be read. With one, that applicant's status is ``bad-input``.
    MachineFailed
        Another process writes the folder.
    """
    if folder is None:
        found = []
        for result in solve_population(population, time_limit=time_limit, jobs=jobs):
            found.append(Optimum.of(result))
            advance()
        return found
    name = backend_for(population).name
    options = {"backend": name, "time_limit": time_limit, "certificates": certificates}
    with only_writer(folder):
        results = PopulationFolder(folder, population, options)
        for _ in results.done:
            advance()
        left = results.left(range(len(population)))
        if left:
            checked = replace(check_options(time_limit, jobs, certificates), others=True)
            for index, result in solve_as_finished(population, name, checked, left, Workers(jobs)):
                results.add(index, result)
                advance()
        results.summarise()  # also where nobody is left: a run that was killed may not have come to this
    with (folder / "results.csv").open(newline="", encoding="utf-8") as file:
        return [
            Optimum(row["status"], _number(row["cost"]), _number(row["lower_bound"]))
            for row in csv.DictReader(file)
        ]


def _number(text: str) -> float | None:
    return float(text) if text else None
