"""Output of several commands: certificate files, and the console for tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import typer
from rich.console import Console

from milp_recourse.cli.common_options import instance_beside
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result


def write_certificate(problem: Instance, result: Result, path: Path, beside: str | None = None) -> Result:
    """Write the certificate and return the result with its path; if there is none, print why on stderr.

    Parameters
    ----------
    beside
        How the problem differs from the one in the user's file, in words. If it is given, the problem is
        written too, to CERT.instance.json.
    """
    from milp_recourse.certificates import reason_for_none
    from milp_recourse.formats import write_instance
    from milp_recourse.formats.strict_json import write_gzipped

    if result.evidence is None:
        typer.echo(f"no certificate: {reason_for_none(problem, result)}", err=True)
        return result
    write_gzipped(result.evidence, path)
    if beside is not None:
        file = instance_beside(path)
        write_instance(problem, file)
        typer.echo(f"verify the certificate against {file}, which holds {beside}")
    return replace(result, certificate=str(path))


def console_of_stdout() -> Console:
    """A console on stdout, 180 columns wide if it is not a terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=180)
