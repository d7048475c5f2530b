"""``milp-recourse verify``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from milp_recourse.cli.shared import Parallel, Scheduler, check_scheduler
from milp_recourse.questions.workers import Workers


def verify(
    certificate: Annotated[Path, typer.Argument(help="a certificate, or a folder of them")],
    instance: Annotated[
        Path | None,
        typer.Argument(
            help="the instance, population, or folder of instances",
            show_default="population.json in the folder",
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(help="time limit for one certificate")] = 3600.0,
    jobs: Annotated[int | None, typer.Option(help="processes, for a folder; default: one per core")] = None,
    sample: Annotated[
        int | None, typer.Option(metavar="N", help="check N certificates of a folder, drawn at random")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="FILE", help="a journal; skip what it lists as checked")
    ] = None,
    slow: Annotated[bool, typer.Option("--slow", help="use only the kernel, in plain fractions")] = False,
    parallel: Parallel = "processes",
    scheduler: Scheduler = None,
) -> None:
    """Check certificates, as python -m verify does, which uses no code of this package.

    Of what the command audit wrote, a folder or a zip, every table is made anew, too.
    """
    from verify.__main__ import main as check
    from verify.files.manifest import MANIFEST

    check_scheduler(parallel, scheduler)
    many = [] if jobs is None else [f"--jobs={jobs}"]
    many += [] if sample is None else [f"--sample={sample}"]
    many += [] if resume is None else [f"--resume={resume}"]
    many += ["--slow"] if slow else []
    # worker processes of a cluster open the same paths
    given = (certificate,) if instance is None else (certificate, instance)
    paths = [str(path if scheduler is None else path.resolve()) for path in given]
    mapped = None if scheduler is None else Workers(1, scheduler).map
    is_audit = certificate.suffix == ".zip" or (certificate / MANIFEST).exists()
    if instance is None and scheduler is None and is_audit:
        from milp_recourse.reports.audit import check_audit

        extra = [f"--seconds={seconds}", *(["--slow"] if slow else [])]
        extra += [] if resume is None else [f"--resume={resume}"]
        raise typer.Exit(check_audit(certificate, extra, jobs or os.cpu_count() or 1, sample))
    raise typer.Exit(check([*paths, f"--seconds={seconds}", *many], mapped))
