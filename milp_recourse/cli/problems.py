"""Reading and checking the instance or population that a command is about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import typer

from milp_recourse.errors import BadInput
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.population import Population

Chosen = TypeVar("Chosen", Instance, Population)


def read_problem(file: Path, index: int | None) -> Instance | Population:
    """The instance or population in a file, or with ``--index`` one applicant of the population."""
    from milp_recourse.formats import read_any

    problem = read_any(file)
    check_index(index, problem, file)
    return problem if index is None or isinstance(problem, Instance) else problem[index]


def solved_problem(folder: Path, file: Path | None) -> tuple[Instance | Population, str]:
    """What was solved into a folder, by default ``DIR/population.json``, and its name.

    Raises
    ------
    BadInput
        There is no such folder or file.
    """
    from milp_recourse.formats import read_any

    if not folder.is_dir():
        raise BadInput("DIR", f"{folder}, which is no folder", "a folder that certify --out wrote")
    if file is not None:
        return read_any(file), file.name.split(".")[0]
    own = folder / "population.json"
    if not own.is_file():
        missing = f"no file, and {folder} holds no population.json"
        raise BadInput("PROBLEM", missing, "the instance or population that certify was given")
    return read_any(own), folder.resolve().name.split(".")[0]


def read_one(file: Path, index: int | None) -> Instance:
    """The instance in a file, or with ``--index`` one applicant of the population in it.

    Raises
    ------
    BadInput
        The file has a population and there is no ``--index``.
    """
    problem = read_problem(file, index)
    if isinstance(problem, Instance):
        return problem
    allowed = f"--index with a number from 0 to {len(problem) - 1}: {file} is a population"
    raise BadInput("--index", "nothing", allowed)


def check_index(index: int | None, problem: Instance | Population, file: Path) -> None:
    """Raise BadInput if ``--index`` names no applicant of a population, or one who could not be read."""
    if index is None:
        return
    if isinstance(problem, Instance):
        raise BadInput("--index", index, f"nothing: {file} is an instance")
    if not 0 <= index < len(problem):
        raise BadInput("--index", index, f"a number from 0 to {len(problem) - 1}, the applicants of {file}")
    if index in problem.unreadable:
        raise problem.unreadable[index]


def with_own_preferences(problem: Chosen, file: Path | None) -> Chosen:
    """The problem with the preferences in a text file for everybody; unchanged without a file."""
    if file is None:
        return problem
    from milp_recourse.elicitation import preferences_from_text
    from milp_recourse.formats.applicant_json import check_scale
    from milp_recourse.formats.strict_json import read_bytes

    template = problem.template if isinstance(problem, Population) else problem
    try:
        text = read_bytes(file, "a text file").decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput("--preferences", str(file), f"a text file ({error})") from None
    try:
        own = preferences_from_text(text, template)
        check_scale(template.cost, own)
    except BadInput as error:
        raise error.in_file(file.name) from None
    if isinstance(problem, Population):
        return replace(
            problem, template=replace(template, preferences=own), preferences=(own,) * len(problem)
        )
    return replace(problem, preferences=own, reference=None)


def warn_of_empty_masks(preferences: Iterable[Preferences]) -> None:
    """Print a warning if preferences name no feature to act on, which is probably a mistake."""
    empty = total = 0
    for one in preferences:
        total += 1
        empty += not one.actionable
    if empty:
        whose = "the applicant's" if total == 1 else f"{empty} of {total} applicants'"
        typer.echo(f"warning: {whose} preferences.actionable is empty: nothing can be acted on", err=True)
