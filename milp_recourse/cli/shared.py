"""What commands share: reading the problem they are about, amounts per feature, and writing output.

Amounts are texts ``NAME=NUMBER`` or ``NAME=LEAST:MOST``; output is certificate files and tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import typer
from rich.console import Console

from milp_recourse.cli.common_options import instance_beside
from milp_recourse.errors import BadInput
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Result

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
    from milp_recourse.formats.schema import check_scale
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


ONE, ONE_OR_TWO = "NAME=NUMBER", "NAME=NUMBER or NAME=LEAST:MOST"
"""The forms of a text, as errors name them."""


def amounts(option: str, given: Sequence[str]) -> dict[str, float]:
    """Feature -> number, from texts ``NAME=NUMBER``.

    Raises
    ------
    BadInput
        A text has another form, or a feature is named twice.
    """
    return {name: _number(option, text, value, ONE) for name, text, value in _parted(option, given, ONE)}


def intervals(option: str, given: Sequence[str]) -> dict[str, float | list[float]]:
    """Feature -> number or two ends, from texts ``NAME=NUMBER`` or ``NAME=LEAST:MOST``.

    Raises
    ------
    BadInput
        As for :func:`amounts`.
    """
    found: dict[str, float | list[float]] = {}
    for name, text, value in _parted(option, given, ONE_OR_TWO):
        ends = [_number(option, text, end, ONE_OR_TWO) for end in value.split(":")]
        if len(ends) > 2:
            raise BadInput(option, text, ONE_OR_TWO)
        found[name] = ends if len(ends) == 2 else ends[0]
    return found


def _parted(option: str, given: Sequence[str], form: str) -> list[tuple[str, str, str]]:
    """For each text: the feature, the text itself, and what is behind the last ``=``."""
    parts = [(text.rpartition("=")[0], text, text.rpartition("=")[2]) for text in given]
    for name, text, _ in parts:
        if not name or sum(name == other for other, *_ in parts) > 1:
            raise BadInput(option, text, f"{form}, each feature once")
    return parts


def _number(option: str, text: str, value: str, form: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise BadInput(option, text, form) from None


def write_certificate(problem: Instance, result: Result, path: Path, beside: str | None = None) -> Result:
    """Write the certificate and return the result with its path; if there is none, print why on stderr.

    Parameters
    ----------
    beside
        How the problem differs from the one in the user's file, in words. If it is given, the problem is
        written too, to CERT.instance.json.
    """
    from milp_recourse.certificates import reason_for_none
    from milp_recourse.formats import write_instance
    from milp_recourse.formats.strict_json import write_gzipped

    if result.evidence is None:
        typer.echo(f"no certificate: {reason_for_none(problem, result)}", err=True)
        return result
    write_gzipped(result.evidence, path)
    if beside is not None:
        file = instance_beside(path)
        write_instance(problem, file)
        typer.echo(f"verify the certificate against {file}, which holds {beside}")
    return replace(result, certificate=str(path))


def console_of_stdout() -> Console:
    """A console on stdout, 180 columns wide if it is not a terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=180)
