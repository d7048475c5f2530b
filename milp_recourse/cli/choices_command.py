"""``milp-recourse choices``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, cast

import typer

from milp_recourse.cli.amounts import amounts
from milp_recourse.cli.common_options import Backend, Index, Problem
from milp_recourse.cli.exit_codes import DONE, LIMIT
from milp_recourse.cli.output import console_of_stdout, refuse_folders
from milp_recourse.cli.problems import read_one


class Differing(StrEnum):
    """What tells choices apart."""

    features = "features"
    distance = "distance"
    effect = "effect"


def choices(
    instance: Problem,
    count: Annotated[int, typer.Option(help="at most so many")] = 3,
    differ: Annotated[
        Differing, typer.Option(help="in the features acted on, in a lever's value, or in any value after")
    ] = Differing.features,
    apart: Annotated[
        float | None, typer.Option(help="by how many features, or scales of one", show_default="1")
    ] = None,
    scale: Annotated[
        list[str] | None, typer.Option(metavar="NAME=S", help="what counts as 1; may be repeated")
    ] = None,
    together: Annotated[
        bool, typer.Option("--together", help="least in total, instead of one after the other (features)")
    ] = False,
    backend: Backend = None,
    json: Annotated[Path | None, typer.Option(metavar="OUT.json", help="write the choices")] = None,
    time_limit: Annotated[float | None, typer.Option(metavar="S", help="seconds for all choices")] = None,
    index: Index = None,
) -> None:
    """The cheapest recourses that differ, each proven to be the cheapest given those before it."""
    from milp_recourse.choices import Differ
    from milp_recourse.choices import choices as ask
    from milp_recourse.formats.strict_json import write_json
    from milp_recourse.reports.progress import progress_bar
    from milp_recourse.reports.words import describe_action

    refuse_folders(json=json)
    problem, scales = read_one(instance, index), amounts("--scale", scale or [])
    with progress_bar(problem.name or instance.name, 1):
        found = ask(problem, count, cast(Differ, differ.value), apart, scales, backend, time_limit, together)
    if json is not None:
        write_json(found.to_dict(), json)
    console = console_of_stdout()
    for rank, one in enumerate(found.choices, 1):
        result = one.result
        proven = f"{result.status.value} cost={result.cost!r} lower_bound={result.lower_bound!r}"
        changes = describe_action(problem, result.action or {})
        console.print(f"{rank}: {proven}; {changes}", markup=False, soft_wrap=True)
    if found.total is not None:
        cost, bound = found.total
        console.print(f"in total: cost={cost!r} lower_bound={bound!r}", markup=False, soft_wrap=True)
    if found.exhausted:
        nothing = "no other recourse differs so" if found.choices else "no recourse"
        console.print(f"{nothing}, proven", markup=False)
    elif found.message is not None:
        console.print(f"limit: {found.message}; others cost at least {found.lower_bound!r}", markup=False)
    raise typer.Exit(DONE if found.proven else LIMIT)
