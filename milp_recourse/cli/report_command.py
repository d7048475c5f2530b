"""``milp-recourse report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from milp_recourse.cli.shared import Folder, Solved, a_file


def report(
    folder: Folder,
    problem: Solved = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html", help="default: DIR/report.html, DIR/person-N.html", callback=a_file
        ),
    ] = None,
    index: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="one person of a population, from 0")
    ] = None,
    why: Annotated[
        bool, typer.Option("--why", help="add the answer of the command why to one person's page")
    ] = False,
    time_limit: Annotated[float | None, typer.Option(metavar="S", help="seconds for --why")] = None,
) -> None:
    """Write results as one HTML file to look at: a population, or one person."""
    from milp_recourse.cli.shared import solved_problem
    from milp_recourse.reports.pages.folder import write_report

    made, name = solved_problem(folder, problem)
    typer.echo(f"written: {write_report(folder, made, name, out, index, why, time_limit)}")
