"""``milp-recourse export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, get_args

import typer

from milp_recourse.cli.shared import Index, Problem, TimeLimit, a_file, read_one
from milp_recourse.errors import BadInput

ExportFormat = Literal["mps", "lp", "vnnlib"]
"""File formats that :mod:`milp_recourse.solvers.export` writes, and :mod:`milp_recourse.solvers.vnnlib`."""


def export(
    instance: Problem,
    out: Annotated[Path, typer.Option(metavar="FILE", help="the file to write", callback=a_file)],
    format: Annotated[ExportFormat | None, typer.Option(help="by the name of FILE if not given")] = None,
    index: Index = None,
    linear: Annotated[
        bool,
        typer.Option("--linear", help="without squares: any MILP solver reads it, and its error is proven"),
    ] = False,
    error: Annotated[
        float | None,
        typer.Option(help="with --linear: the largest error wanted; a hundredth of the cost if not given"),
    ] = None,
    each: Annotated[
        bool, typer.Option("--each", help="with --linear: a file for each configuration of what is acted on")
    ] = False,
    cost: Annotated[
        float | None,
        typer.Option(
            help="with .vnnlib: is anything accepted at this cost or less? The network is beside it"
        ),
    ] = None,
    time_limit: TimeLimit = None,
) -> None:
    """Write the problem as a mathematical program that other solvers read."""
    from milp_recourse.questions.linear_program import export_linear, files, words
    from milp_recourse.solvers.export import export as write

    suffix = out.suffix.removeprefix(".")
    known = get_args(ExportFormat)
    if suffix not in known or (format is not None and format != suffix):
        wanted = f".{format}" if format is not None else " or ".join(f".{name}" for name in known)
        raise BadInput("--out", str(out), f"a file name ending in {wanted}")
    if error is not None and not linear:
        raise BadInput("--error", error, "only with --linear: a program with squares has no error of its own")
    if each and not linear:
        raise BadInput("--each", "given", "only with --linear")
    vnnlib = suffix == "vnnlib"
    if vnnlib != (cost is not None) or (vnnlib and linear):
        raise BadInput("--cost", "nothing" if cost is None else cost, "a number with .vnnlib, else nothing")
    problem = read_one(instance, index)
    if cost is not None:
        from milp_recourse.solvers.vnnlib import export_vnnlib

        for path in export_vnnlib(problem, out, cost):
            typer.echo(f"written: {path} and {path.name}.onnx")
        return
    if linear:
        made = export_linear(problem, out, error, time_limit, each)
        typer.echo(f"written: {', '.join(map(str, files(made, out)))}\n" + "\n".join(words(made)))
        return
    write(problem, out)
    typer.echo(f"written: {out}")
