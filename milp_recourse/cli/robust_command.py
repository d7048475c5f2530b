"""``milp-recourse robust``."""

from __future__ import annotations

from typing import Annotated

import typer

from milp_recourse.cli.exit_codes import DONE, LIMIT
from milp_recourse.cli.shared import (
    Backend,
    Certificate,
    Index,
    Json,
    Problem,
    WholeTime,
    amounts,
    at_work,
    intervals,
    read_one,
)


def robust(
    instance: Problem,
    missed: Annotated[
        list[str] | None, typer.Option(metavar="NAME=D", help="a target may be missed by up to D; repeatable")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(metavar="T", help="the highest value of the threshold")
    ] = None,
    noise: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=A", help="noise may change by up to A, or by LEAST:MOST; repeatable"),
    ] = None,
    backend: Backend = None,
    json: Json = None,
    certificate: Certificate = None,
    time_limit: WholeTime = None,
    index: Index = None,
) -> None:
    """The cheapest action that is accepted even if not everything turns out as planned.

    A proof is called rigorous if the checker has accepted its certificate; --certificate CERT.json writes it
    for verify CERT.json INSTANCE.
    """
    from milp_recourse.formats.strict_json import write_json
    from milp_recourse.problem.result import Status
    from milp_recourse.questions.robust import robust as ask
    from milp_recourse.reports.certificate_files import checked, with_certificate
    from milp_recourse.reports.robust_words import robust_lines

    problem = read_one(instance, index)
    away, wide = amounts("--missed", missed or []), intervals("--noise", noise or [])
    with at_work(problem, instance):
        found = checked(ask(problem, away, threshold, wide, backend, time_limit, index=index))
    if certificate is not None and found.result.evidence is None:
        typer.echo(f"no certificate: {found.result.message}", err=True)
    found = with_certificate(found, certificate)
    if json is not None:
        write_json(found.to_dict(), json)
    typer.echo("\n".join(robust_lines(found)))
    raise typer.Exit(LIMIT if found.result.status is Status.LIMIT else DONE)
