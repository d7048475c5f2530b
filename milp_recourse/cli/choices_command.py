"""``milp-recourse choices``."""

from __future__ import annotations

from typing import Annotated

import typer

from milp_recourse.cli.exit_codes import DONE, LIMIT
from milp_recourse.cli.shared import Backend, Index, Json, Problem, WholeTime, amounts, at_work, read_one
from milp_recourse.questions.choices import Differ


def choices(
    instance: Problem,
    count: Annotated[int, typer.Option(help="the largest number of recourses")] = 3,
    differ: Annotated[
        Differ, typer.Option(help="in the features acted on, in a lever's value, or in any feature's value")
    ] = "features",
    apart: Annotated[
        float | None, typer.Option(help="by how many features, or feature scales", show_default="1")
    ] = None,
    scale: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=S", help="a feature's scale, the change that counts as 1; repeatable"),
    ] = None,
    together: Annotated[
        bool,
        typer.Option("--together", help="minimise the total cost instead of one after the other (features)"),
    ] = False,
    backend: Backend = None,
    json: Json = None,
    time_limit: WholeTime = None,
    index: Index = None,
) -> None:
    """The cheapest recourses that differ, each proven to be the cheapest given those before it, or with
    --together those of the least total cost."""
    from milp_recourse.formats.strict_json import write_json
    from milp_recourse.questions.choices import choices as ask
    from milp_recourse.reports.view import in_one_line, person_of

    problem, scales = read_one(instance, index), amounts("--scale", scale or [])
    with at_work(problem, instance):
        found = ask(problem, count, differ, apart, scales, backend, time_limit, together)
    if json is not None:
        write_json(found.to_dict(), json)
    for rank, one in enumerate(found.choices, 1):
        typer.echo(f"{rank}: {in_one_line(person_of(one.result, problem))}")
    if found.total is not None:
        cost, bound = found.total
        typer.echo(f"in total: cost={cost!r} lower_bound={bound!r}")
    if found.exhausted:
        nothing = "no other way differs as asked" if found.choices else "no recourse"
        typer.echo(f"{nothing}, proven")
    elif found.message is not None:
        typer.echo(f"limit: {found.message}; others cost at least {found.lower_bound!r}")
    raise typer.Exit(DONE if found.proven else LIMIT)
