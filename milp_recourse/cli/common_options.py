"""Options and arguments that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

Backend = Annotated[str | None, typer.Option(help="see the command backends; networks default to bab")]
TimeLimit = Annotated[float | None, typer.Option(metavar="S", help="seconds per applicant")]
Index = Annotated[int | None, typer.Option(metavar="N", help="of a population: applicant N, from 0")]
Own = Annotated[Path | None, typer.Option(metavar="FILE", help="preferences, typed in a few lines")]
Problem = Annotated[Path, typer.Argument(help="an instance, .json or .json.gz; a population with --index")]


class Parallel(StrEnum):
    """Who shares the work of a population."""

    processes = "processes"
    dask = "dask"
