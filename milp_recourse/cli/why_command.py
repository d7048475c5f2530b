"""``milp-recourse why``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from milp_recourse.cli.common_options import Backend, Index, Problem
from milp_recourse.cli.exit_codes import DONE, LIMIT
from milp_recourse.cli.output import console_of_stdout, refuse_folders
from milp_recourse.cli.problems import read_one
from milp_recourse.instance import Population


def why(
    instance: Problem,
    json: Annotated[Path | None, typer.Option(metavar="OUT.json", help="write the answer")] = None,
    backend: Backend = None,
    time_limit: Annotated[float | None, typer.Option(metavar="S", help="seconds for everything")] = None,
    index: Index = None,
    jobs: Annotated[int, typer.Option(help="processes, for a population")] = 1,
) -> None:
    """Why not: what stands in the way, what each restriction costs, what little widening would do."""
    from milp_recourse.formats import read_any
    from milp_recourse.formats.strict_json import write_json
    from milp_recourse.reports.progress import progress_bar
    from milp_recourse.reports.why_words import headline, why_table
    from milp_recourse.why import why as ask

    refuse_folders(json=json)
    everybody = read_any(instance) if index is None else None
    if isinstance(everybody, Population):
        raise typer.Exit(_why_everybody(everybody, json, backend, time_limit, jobs))
    problem = read_one(instance, index)
    with progress_bar(problem.name or instance.name, 1):
        found = ask(problem, backend, time_limit)
    if json is not None:
        write_json(found.to_dict(), json)
    console = console_of_stdout()
    console.print(headline(found), markup=False, soft_wrap=True)
    if found.minimal or found.prices:
        console.print(why_table(found), markup=False)
    raise typer.Exit(DONE if found.complete else LIMIT)


def _why_everybody(
    population: Population, json: Path | None, backend: str | None, time_limit: float | None, jobs: int
) -> int:
    """Print, and write, what stands in how many people's way; the exit code."""
    from milp_recourse.formats.strict_json import write_json
    from milp_recourse.reports.why_words import population_headline, population_table
    from milp_recourse.why import why_population

    found = why_population(population, backend, time_limit, jobs)
    if json is not None:
        write_json(found.to_dict(), json)
    console = console_of_stdout()
    console.print(population_headline(found), markup=False, soft_wrap=True)
    if found.table():
        console.print(population_table(found), markup=False)
    return DONE if found.complete and not population.unreadable else LIMIT
