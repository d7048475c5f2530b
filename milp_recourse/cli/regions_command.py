"""``milp-recourse regions``."""

from __future__ import annotations

import typer

from milp_recourse.cli.exit_codes import DONE, LIMIT
from milp_recourse.cli.shared import Backend, Certificate, Index, Json, Problem, WholeTime, at_work, read_one


def regions(
    instance: Problem,
    backend: Backend = None,
    json: Json = None,
    certificate: Certificate = None,
    time_limit: WholeTime = None,
    index: Index = None,
) -> None:
    """Around the cheapest action, the box in which everything is accepted, proven.

    No end of the box can be moved out alone: next to it something is refused, or the value may not be set.
    """
    from milp_recourse.formats.strict_json import write_gzipped, write_json
    from milp_recourse.questions.regions import region
    from milp_recourse.reports.certificate_files import checked_region

    problem = read_one(instance, index)
    with at_work(problem, instance):
        found = checked_region(region(problem, None, backend, time_limit, index))
    if certificate is not None and found.evidence is not None:
        write_gzipped(found.evidence, certificate)
    if json is not None:
        written = found.evidence is not None and certificate is not None
        write_json(found.to_dict() | ({"certificate": str(certificate)} if written else {}), json)
    for line in found.lines():
        typer.echo(line)
    raise typer.Exit(DONE if found.message is None else LIMIT)
