"""The letter of one person of a folder that ``certify --out`` wrote."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from milp_recourse.errors import BadInput
from milp_recourse.formats.strict_json import write_whole
from milp_recourse.judge import judge
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.population import Population
from milp_recourse.reports.letters.letter import letter
from milp_recourse.reports.own_words import words_in
from milp_recourse.reports.pages.folder import people_in, person_in
from milp_recourse.reports.view import Person


def write_letter(
    folder: Path,
    problem: Instance | Population,
    index: int,
    name: str,
    template: Path | None = None,
    language: str = "en",
    out: Path | None = None,
    day: date | None = None,
) -> tuple[Path, str]:
    """Write a person's letter; return the file's path and its text.

    Parameters
    ----------
    index
        The position of an applicant of a population, from 0; 0 for an instance.
    name
        The name of the problem's file, by which an instance without a name is found.
    template, language, day
        As for :func:`~milp_recourse.reports.letters.letter.letter`.
    out
        The file; by default ``letter-INDEX.html`` in the folder.

    Raises
    ------
    BadInput
        The folder does not hold the problem's results, there is no such applicant, or the results name an
        action that the problem's own judgement refuses.
    """
    if isinstance(problem, Instance):
        if index:
            raise BadInput("INDEX", index, "0: an instance is one person")
        person = person_in(folder, problem, name)
    else:
        [person] = people_in(folder, problem, index)
    if person.caused("action", "held"):
        _check_action(problem if isinstance(problem, Instance) else problem[index], person, folder)
    target = out or folder / f"letter-{index}.html"
    if target.is_dir():
        raise BadInput("--out", f"{target}, a directory", "the name of a file")
    text = letter(words_in(folder).of(person), template, language, day)
    write_whole(text.encode(), target)
    return target, text


def _check_action(problem: Instance, person: Person, folder: Path) -> None:
    """A letter names no action that is not accepted, whatever the results' file says."""
    if not judge(problem, problem.numbers(person.action)).feasible:
        got = f"an action of {person.id} that is not accepted or not allowed"
        raise BadInput("results", got, "what certify wrote", str(folder))
