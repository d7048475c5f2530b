"""``milp-recourse alternatives``."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from milp_recourse.cli.shared import Backend, Index, Json, Problem, TimeLimit, read_one


def alternatives(
    instance: Problem,
    count: Annotated[int, typer.Option(help="the largest number of recourses")] = 15,
    by: Annotated[
        Literal["leaf", "features"], typer.Option(help="one per accepting leaf, or per set of features")
    ] = "leaf",
    apart: Annotated[int, typer.Option(help="the least number of features in which any two differ")] = 0,
    backend: Backend = None,
    json: Json = None,
    time_limit: TimeLimit = None,
    index: Index = None,
) -> None:
    """The cheapest distinct recourses of one applicant, cheapest first."""
    from milp_recourse.formats.strict_json import write_json
    from milp_recourse.questions.alternatives import alternatives as find
    from milp_recourse.reports.view import changes_of, in_words

    problem = read_one(instance, index)
    found = find(problem, count, by, backend, time_limit, apart)
    if json is not None:
        write_json([a.to_dict() for a in found], json)
    for rank, one in enumerate(found, 1):
        typer.echo(f"{rank:3}  {one.cost:<12.6g} {in_words(changes_of(problem, one.action))}")
    if not found:
        typer.echo("no recourse: nothing within the applicant's limits is accepted")
