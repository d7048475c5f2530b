"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from milp_recourse.errors import BadInput


def a_file(option: typer.CallbackParam, target: Path | None) -> Path | None:
    """Check that the file which an option names for writing is no directory."""
    if target is not None and target.is_dir():
        raise BadInput(option.opts[0], f"{target}, a directory", "the name of a file")
    return target


Backend = Annotated[
    str | None, typer.Option(help="see the command backends; default: bab where it can, else highs")
]
TimeLimit = Annotated[float | None, typer.Option(metavar="S", help="seconds per applicant")]
WholeTime = Annotated[float | None, typer.Option(metavar="S", help="seconds for everything")]
Index = Annotated[int | None, typer.Option(metavar="N", help="of a population: applicant N, from 0")]
Own = Annotated[Path | None, typer.Option(metavar="FILE", help="preferences, typed in a few lines")]
Problem = Annotated[Path, typer.Argument(help="an instance, .json or .json.gz; a population with --index")]
Json = Annotated[Path | None, typer.Option(metavar="OUT.json", help="write the answer", callback=a_file)]
Certificate = Annotated[
    Path | None,
    typer.Option(
        metavar="CERT.json", help="write the proof, which the command verify checks", callback=a_file
    ),
]
Parallel = Annotated[Literal["processes", "dask"], typer.Option(help="processes here, or a Dask cluster")]
Scheduler = Annotated[str | None, typer.Option(metavar="ADDRESS", help="of the Dask scheduler")]


def check_scheduler(parallel: str, scheduler: str | None) -> None:
    """Raise BadInput if there is no address for a Dask cluster, or one for processes."""
    if (parallel == "dask") != (scheduler is not None):
        raise BadInput("--scheduler", scheduler or "nothing", "an address with --parallel dask, else nothing")
