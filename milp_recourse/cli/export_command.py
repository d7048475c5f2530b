"""``milp-recourse export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, get_args

import typer

from milp_recourse.cli.common_options import Index, Problem, a_file
from milp_recourse.cli.problems import read_one
from milp_recourse.errors import BadInput

ExportFormat = Literal["mps", "lp"]
"""File formats that :mod:`milp_recourse.solvers.export` writes."""


def export(
    instance: Problem,
    out: Annotated[Path, typer.Option(metavar="FILE", help="the file to write", callback=a_file)],
    format: Annotated[ExportFormat | None, typer.Option(help="by the name of FILE if not given")] = None,
    index: Index = None,
) -> None:
    """Write the problem as a mathematical program that other solvers read."""
    from milp_recourse.solvers.export import export as write

    suffix = out.suffix.removeprefix(".")
    known = get_args(ExportFormat)
    if suffix not in known or (format is not None and format != suffix):
        wanted = f".{format}" if format is not None else " or ".join(f".{name}" for name in known)
        raise BadInput("--out", str(out), f"a file name ending in {wanted}")
    write(read_one(instance, index), out)
    typer.echo(f"written: {out}")
