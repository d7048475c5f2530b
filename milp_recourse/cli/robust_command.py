"""``milp-recourse robust``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from milp_recourse.cli.amounts import amounts, intervals
from milp_recourse.cli.common_options import Backend, Index, Problem
from milp_recourse.cli.exit_codes import DONE, LIMIT
from milp_recourse.cli.output import console_of_stdout, refuse_folders, write_certificate
from milp_recourse.cli.problems import read_one
from milp_recourse.errors import BadInput


def robust(
    instance: Problem,
    missed: Annotated[
        list[str] | None, typer.Option(metavar="NAME=D", help="a target missed by up to D; may be repeated")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(metavar="T", help="the highest the threshold may have moved to")
    ] = None,
    noise: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=A", help="noise off by up to A, or LEAST:MOST; may be repeated"),
    ] = None,
    backend: Backend = None,
    json: Annotated[Path | None, typer.Option(metavar="OUT.json", help="write the answer")] = None,
    certificate: Annotated[
        Path | None, typer.Option(metavar="CERT.json", help="write the proof, of --threshold alone")
    ] = None,
    time_limit: Annotated[float | None, typer.Option(metavar="S", help="seconds for everything")] = None,
    index: Index = None,
) -> None:
    """The cheapest action that still holds when not everything turns out as planned.

    With --certificate CERT.json the problem with the highest threshold is written to CERT.instance.json:
    verify CERT.json CERT.instance.json.
    """
    from milp_recourse.formats.strict_json import write_json
    from milp_recourse.reports.progress import progress_bar
    from milp_recourse.reports.words import describe_action
    from milp_recourse.result import Status
    from milp_recourse.robust import robust as ask

    refuse_folders(json=json, certificate=certificate)
    problem = read_one(instance, index)
    away, wide = amounts("--missed", missed or []), intervals("--noise", noise or [])
    if certificate is not None and (away or wide):
        allowed = "with --threshold alone: no certificate says what holds however targets are missed"
        raise BadInput("--certificate", str(certificate), allowed)
    with progress_bar(problem.name or instance.name, 1):
        found = ask(problem, away, threshold, wide, backend, time_limit, certificate is not None)
    if certificate is not None:
        beside = "the highest threshold"
        found = replace(found, result=write_certificate(found.problem, found.result, certificate, beside))
    if json is not None:
        write_json(found.to_dict(), json)
    console, result = console_of_stdout(), found.result
    if result.action is not None:
        changes = describe_action(problem, result.action)
        proven = f"{result.status.value} cost={result.cost!r} lower_bound={result.lower_bound!r}"
        console.print(f"{proven}; {changes}", markup=False, soft_wrap=True)
    elif result.status is Status.INFEASIBLE:
        console.print("infeasible, proven: no action holds whatever happens", markup=False)
    else:
        said = f"{result.status.value}: {result.message}; lower_bound={result.lower_bound!r}"
        console.print(said, markup=False, soft_wrap=True)
    if found.worst is not None:
        output, happened = found.worst
        parts = [f"{name} missed by {by:+.6g}" for name, by in happened.missed.items()]
        parts += [f"noise of {name} {by:+.6g}" for name, by in happened.noise.items()]
        said = ", ".join(parts) or "as planned"
        console.print(f"lowest output found: {output:.6g} ({said})", markup=False, soft_wrap=True)
    raise typer.Exit(LIMIT if result.status is Status.LIMIT else DONE)
