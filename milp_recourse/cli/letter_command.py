"""``milp-recourse letter``."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Annotated

import typer

from milp_recourse.cli.shared import Folder, Solved, a_file


def letter(
    folder: Folder,
    index: Annotated[
        int, typer.Argument(metavar="INDEX", min=0, help="the person, from 0; 0 for an instance")
    ],
    problem: Solved = None,
    language: Annotated[str, typer.Option(help="en or de")] = "en",
    template: Annotated[
        Path | None, typer.Option(metavar="FILE", help="a Jinja2 template in place of the language's")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="default: DIR/letter-INDEX.html", callback=a_file)
    ] = None,
    day: Annotated[
        datetime | None,
        typer.Option(
            "--date", formats=["%Y-%m-%d"], help="the day the model was asked", show_default="today"
        ),
    ] = None,
    readability: Annotated[
        bool, typer.Option("--readability", help="print how easy it reads: Flesch, or Amstad for German")
    ] = False,
) -> None:
    """Write one person's letter: what to change, what follows, and what it does not promise."""
    from milp_recourse.cli.shared import solved_problem
    from milp_recourse.reports.letters import reading_ease
    from milp_recourse.reports.letters.letter_file import write_letter

    asked: date | None = None if day is None else day.date()
    made, name = solved_problem(folder, problem)
    file, text = write_letter(folder, made, index, name, template, language, out, asked)
    typer.echo(f"written: {file}")
    if readability:
        ease = reading_ease(text)
        words = (
            "no formula for its language" if ease is None else f"{ease:.0f} (60 and more is plain language)"
        )
        typer.echo(f"reading ease: {words}")
