"""``milp-recourse why``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from milp_recourse.cli.exit_codes import DONE, LIMIT
from milp_recourse.cli.shared import (
    Backend,
    Index,
    Json,
    Problem,
    WholeTime,
    at_work,
    console_of_stdout,
    read_problem,
)
from milp_recourse.problem.population import Population


def why(
    instance: Problem,
    json: Json = None,
    backend: Backend = None,
    time_limit: WholeTime = None,
    index: Index = None,
    jobs: Annotated[int, typer.Option(help="processes, for a population")] = 1,
) -> None:
    """Which restrictions prevent recourse, what each one costs, and how little widening suffices."""
    from milp_recourse.formats.strict_json import write_json
    from milp_recourse.questions.why import why as ask
    from milp_recourse.reports.why_words import headline, why_table

    problem = read_problem(instance, index)
    if isinstance(problem, Population):
        raise typer.Exit(_why_everybody(problem, json, backend, time_limit, jobs))
    with at_work(problem, instance):
        found = ask(problem, backend, time_limit)
    if json is not None:
        write_json(found.to_dict(), json)
    typer.echo(headline(found))
    if found.minimal or found.prices:
        console_of_stdout().print(why_table(found), markup=False)
    raise typer.Exit(DONE if found.complete else LIMIT)


def _why_everybody(
    population: Population, json: Path | None, backend: str | None, time_limit: float | None, jobs: int
) -> int:
    """Print, and write, how many people's recourse each restriction prevents; return the exit code."""
    from milp_recourse.formats.strict_json import write_json
    from milp_recourse.questions.why import why_population
    from milp_recourse.reports.why_words import population_headline, population_table

    found = why_population(population, backend, time_limit, jobs)
    if json is not None:
        write_json(found.to_dict(), json)
    typer.echo(population_headline(found))
    if found.table():
        console_of_stdout().print(population_table(found), markup=False)
    return DONE if found.complete and not population.unreadable else LIMIT
