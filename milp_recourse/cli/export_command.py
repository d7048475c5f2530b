"""``milp-recourse export``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from milp_recourse.cli.common_options import Index, Problem
from milp_recourse.cli.problems import read_one
from milp_recourse.errors import BadInput


class ExportFormat(StrEnum):
    """Formats a problem can be exported to."""

    mps = "mps"
    lp = "lp"


def export(
    instance: Problem,
    out: Annotated[Path, typer.Option(metavar="FILE", help="the file to write")],
    format: Annotated[ExportFormat | None, typer.Option(help="by the name of FILE if not given")] = None,
    index: Index = None,
) -> None:
    """Write the problem as a mathematical program that other solvers read."""
    from milp_recourse.export import export as write

    suffix = out.suffix.removeprefix(".")
    known = [member.value for member in ExportFormat]
    if suffix not in known or (format is not None and format.value != suffix):
        wanted = f".{format.value}" if format is not None else " or ".join(f".{name}" for name in known)
        raise BadInput("--out", str(out), f"a file name ending in {wanted}")
    write(read_one(instance, index), out)
    typer.echo(f"written: {out}")
