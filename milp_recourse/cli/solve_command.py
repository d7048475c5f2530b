"""``milp-recourse solve``."""

from __future__ import annotations

import typer

from milp_recourse.cli.exit_codes import DONE, LIMIT
from milp_recourse.cli.shared import (
    Backend,
    Certificate,
    Index,
    Json,
    Own,
    Problem,
    Threads,
    TimeLimit,
    at_work,
    read_one,
    warn_of_empty_masks,
    with_own_preferences,
    write_certificate,
)
from milp_recourse.problem.result import Status


def solve(
    instance: Problem,
    backend: Backend = None,
    json: Json = None,
    certificate: Certificate = None,
    preferences: Own = None,
    time_limit: TimeLimit = None,
    index: Index = None,
    threads: Threads = 1,
) -> None:
    """Solve one instance and print the answer.

    With --preferences and --certificate CERT.json the instance with these preferences is written to
    CERT.instance.json: verify CERT.json CERT.instance.json.
    """
    from milp_recourse.formats import write_result
    from milp_recourse.questions.solve import solve as run
    from milp_recourse.reports.view import describe, person_of

    problem = read_one(instance, index)
    if preferences is not None:
        problem, index = with_own_preferences(problem, preferences), None
    warn_of_empty_masks([problem.preferences])
    with at_work(problem, instance):
        result = run(problem, backend, time_limit, certificate is not None, index, threads=threads)
    if certificate is not None:
        result = write_certificate(
            problem, result, certificate, None if preferences is None else "these preferences"
        )
    if json is not None:
        write_result(result, json)
    typer.echo(describe(person_of(result, problem)))
    raise typer.Exit(LIMIT if result.status is Status.LIMIT else DONE)
