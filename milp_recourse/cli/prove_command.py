"""``milp-recourse prove``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from milp_recourse.cli.exit_codes import DONE, FAILED, LIMIT
from milp_recourse.cli.shared import (
    Certificate,
    Index,
    Json,
    Problem,
    TimeLimit,
    at_work,
    read_one,
    write_certificate,
)


def prove(
    instance: Problem,
    action: Annotated[
        Path, typer.Option(metavar="FILE", help="the action: {feature: value}, or a result with one")
    ],
    certificate: Certificate = None,
    json: Json = None,
    time_limit: TimeLimit = None,
    index: Index = None,
) -> None:
    """Check anybody's action and prove how far it is from the optimum."""
    from milp_recourse.formats import read_action, write_result
    from milp_recourse.questions.prove import prove as run
    from milp_recourse.reports.view import describe, distance, person_of

    problem = read_one(instance, index)
    given = read_action(action, problem)
    with at_work(problem, instance):
        proof = run(problem, given, time_limit, index)
    if proof.result is None:
        for fault in proof.faults:
            typer.echo(f"not feasible: {fault}")
        raise typer.Exit(FAILED)
    result = proof.result
    if certificate is not None:
        result = write_certificate(problem, result, certificate)
    if json is not None:
        write_result(result, json)
    person = person_of(result, problem)
    typer.echo(describe(person, given=True))
    typer.echo(distance(person))
    raise typer.Exit(LIMIT if proof.stopped else DONE)
