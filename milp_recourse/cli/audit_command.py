"""``milp-recourse audit``."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from milp_recourse.cli.shared import Folder


def audit(
    folder: Folder,
    problem: Annotated[
        Path | None, typer.Argument(help="the population that was solved", show_default="DIR/population.json")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER|FILE.zip", help="a new folder, or a zip", show_default="DIR-audit.zip"),
    ] = None,
    reasons: Annotated[
        int, typer.Option(metavar="N", min=0, help="reasons: sets of at most N levers; 0: none")
    ] = 1,
    why: Annotated[bool, typer.Option(help="say what stands in the way of those without recourse")] = True,
    day: Annotated[
        datetime | None,
        typer.Option("--date", formats=["%Y-%m-%d"], help="the date to state", show_default="today"),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="processes")] = 1,
) -> None:
    """Write the file for an auditor: answers, proofs, reasons, assumptions, groups, and how to check them."""
    from milp_recourse.reports.audit import Asked, write_audit

    whole = folder.resolve()
    target = whole.with_name(f"{whole.name}-audit.zip") if out is None else out
    asked = Asked(reasons, why)
    digest = write_audit(folder, target, problem, asked, None if day is None else day.date(), jobs)
    typer.echo(f"written: {target}")
    typer.echo(f"keep this elsewhere, the SHA-256 of its manifest.json: {digest}")
