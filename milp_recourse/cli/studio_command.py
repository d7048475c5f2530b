"""``milp-recourse studio``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from milp_recourse.cli.shared import Index, read_problem


def studio(
    people: Annotated[Path, typer.Argument(metavar="PEOPLE.json", help="people, or an audit folder")],
    index: Index = None,
    port: Annotated[int, typer.Option(help="of this machine; 0: any that is free")] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="only print the address")] = False,
) -> None:
    """Open a local page on which a person and an adviser find a way, with proof.

    It is served to this machine alone, at the address that is printed first; Ctrl-C ends it. With --index
    nobody else of the population is shown. A words.json beside the file names features and units."""
    from milp_recourse.problem.instance import Instance
    from milp_recourse.problem.population import Population
    from milp_recourse.reports.audit.audited_run import PROBLEM_FILE
    from milp_recourse.reports.own_words import words_in
    from milp_recourse.studio import studio as serve

    people = people / PROBLEM_FILE if people.is_dir() else people
    problem = read_problem(people, index)
    if isinstance(problem, Instance):
        problem = Population.of(problem, [problem.factual], [problem.preferences], {})
    serve(problem, words_in(people.parent), port, not no_browser)
