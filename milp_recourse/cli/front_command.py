"""``milp-recourse front``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from milp_recourse.cli.exit_codes import DONE, LIMIT
from milp_recourse.cli.options import Backend, Index, Problem
from milp_recourse.cli.output import console_of_stdout, refuse_folders
from milp_recourse.cli.problems import read_one


def front(
    instance: Problem,
    json: Annotated[Path | None, typer.Option(metavar="OUT.json", help="write the front")] = None,
    backend: Backend = None,
    time_limit: Annotated[float | None, typer.Option(metavar="S", help="seconds for all points")] = None,
    index: Index = None,
) -> None:
    """Fewer actions or less cost: the cheapest action for every number of features acted on."""
    from milp_recourse.formats.strict_json import write_json
    from milp_recourse.front import front as ask
    from milp_recourse.reports.progress import progress_bar
    from milp_recourse.reports.words import describe_action

    refuse_folders(json=json)
    problem = read_one(instance, index)
    with progress_bar(problem.name or instance.name, 1):
        found = ask(problem, backend, time_limit)
    if json is not None:
        write_json(found.to_dict(), json)
    console = console_of_stdout()
    for point in found.points:
        result = point.result
        proven = f"{result.status.value} cost={result.cost!r} lower_bound={result.lower_bound!r}"
        changes = describe_action(problem, result.action or {})
        console.print(f"{point.actions} actions: {proven}; {changes}", markup=False, soft_wrap=True)
    if not found.points:
        console.print("no recourse" + ("" if found.complete else " found"), markup=False)
    elif found.fewest:
        console.print(f"with fewer than {found.fewest} actions there is no recourse, proven", markup=False)
    raise typer.Exit(DONE if found.complete else LIMIT)
