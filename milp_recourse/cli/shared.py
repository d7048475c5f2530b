"""What commands share: options, reading the problem they are about, amounts per feature, and writing output.

Amounts are texts ``NAME=NUMBER`` or ``NAME=LEAST:MOST``; output is certificate files and tables. Files that a
command writes are kept apart from those that it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import wraps
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, cast, get_type_hints

import typer

from milp_recourse.errors import BadInput
from milp_recourse.reports.progress import Steps, progress_bar

if TYPE_CHECKING:  # listing the commands imports none of these
    from rich.console import Console
    from typing_extensions import TypeIs

    from milp_recourse.problem.instance import Instance, Preferences
    from milp_recourse.problem.population import Population
    from milp_recourse.problem.result import Result

Chosen = TypeVar("Chosen", "Instance", "Population")


def a_file(option: typer.CallbackParam, target: Path | None) -> Path | None:
    """Check that the file which an option names for writing is no directory."""
    if target is not None and target.is_dir():
        raise BadInput(option.opts[0], f"{target}, a directory", "the name of a file")
    return target


def instance_beside(certificate: Path) -> Path:
    """Where a problem is written that is not the one in the user's file: CERT.instance.json."""
    name = certificate.name.removesuffix(".gz").removesuffix(".json")
    return certificate.with_name(f"{name}.instance.json")


def kept_apart(command: Callable[..., None]) -> Callable[..., None]:
    """The command; before it runs, the files that it writes are compared with those that it reads, and the
    folders that it writes are locked until it ends.

    The options that name files for writing are those with :func:`a_file`; folders, the other options
    ``--out``.

    Raises
    ------
    BadInput
        One of them names a file that is read, that such a file names, or that another option names; or a
        file, other than a page, of a folder that is read.
    MachineFailed
        Another process writes one of the folders.
    """

    @wraps(command)
    def checked(**given: Any) -> None:
        files, folders = _outputs(command)
        asked = [name for name in files if given.get(name) is not None]
        read = [v for name, v in given.items() if isinstance(v, Path) and name not in {*files, *folders}]
        places = [(name, given[name]) for name in asked]
        places += [(name, instance_beside(given[name])) for name in asked if name == "certificate"]
        existing = any(place.exists() for _, place in places)
        taken = dict(_taken(read, existing))
        for name, place in places:
            if place.exists() and not place.is_file():  # a device or pipe
                continue
            path, kept = realpath(place), realpath(place.parent)
            if kept in taken and place.exists() and place.suffix != ".html":
                taken.setdefault(path, "in a folder that the command reads")
            if path in taken:
                raise BadInput(f"--{name}", f"{place}, {taken[path]}", "another file")
            taken[path] = f"which --{name} writes"
        from milp_recourse.reports.folder_lock import only_writer  # not needed to list commands

        with ExitStack() as held:
            for folder in {given[name] for name in folders if given.get(name) is not None}:
                if folder.suffix == ".zip":  # a file
                    continue
                held.enter_context(only_writer(folder))
            command(**given)

    return checked


def _taken(read: Iterable[Path], thoroughly: bool) -> Iterator[tuple[str, str]]:
    """What may not be written over, and why: what is read, folders of certificates in that, and, where that
    is asked for ``thoroughly``, the classifiers and tables that problems name."""
    for path in read:
        yield realpath(path), "which the command reads"
        if path.is_dir():
            yield realpath(path / "certificates"), "which the command reads"
        elif thoroughly:
            yield from ((realpath(one), f"which {path} names") for one in _named_in(path))


def _named_in(problem: Path) -> Iterator[Path]:
    """The files of its own that a problem names: of its classifier and of its factuals."""
    from milp_recourse.formats.strict_json import read_json

    try:
        content = read_json(problem)
    except BadInput:  # the command says so
        return
    for part, key in (("classifier", "path"), ("factuals", "csv")):
        own = content.get(part) if isinstance(content, dict) else None
        if isinstance(own, dict) and isinstance(own.get(key), str):
            yield problem.parent / own[key]


def _outputs(command: Callable[..., None]) -> tuple[list[str], list[str]]:
    """The parameters of a command that name files for writing, those of :func:`a_file`, and those that name
    folders, the other options ``--out``."""
    files, folders = [], []
    for name, hint in get_type_hints(command, include_extras=True).items():
        options = getattr(hint, "__metadata__", ())
        if any(getattr(option, "callback", None) is a_file for option in options):
            files.append(name)
        elif name == "out" or any("--out" in _named(option) for option in options):
            folders.append(name)
    return files, folders


def _named(option: Any) -> tuple[object, ...]:
    """The names that an option declares; typer takes the first one for its default at first."""
    return getattr(option, "default", None), *(getattr(option, "param_decls", None) or ())


Backend = Annotated[
    str | None, typer.Option(help="see the command backends; default: bab where it can, else highs")
]
TimeLimit = Annotated[float | None, typer.Option(metavar="S", help="seconds per applicant")]
Threads = Annotated[int, typer.Option(help="threads that search for one applicant, where that takes long")]
WholeTime = Annotated[float | None, typer.Option(metavar="S", help="seconds for everything")]
Index = Annotated[int | None, typer.Option(metavar="N", help="of a population: applicant N, from 0")]
Own = Annotated[Path | None, typer.Option(metavar="FILE", help="preferences, typed in a few lines")]
Problem = Annotated[Path, typer.Argument(help="an instance, .json or .json.gz; a population with --index")]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="a folder that certify --out wrote")]
Solved = Annotated[
    Path | None,
    typer.Argument(help="the instance or population that was solved", show_default="DIR/population.json"),
]
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


def read_problem(file: Path, index: int | None) -> Instance | Population:
    """The instance or population in a file, or with ``--index`` one applicant of the population."""
    from milp_recourse.formats import read_any

    problem = read_any(file)
    check_index(index, problem, file)
    return problem if index is None else cast("Population", problem)[index]


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
    if not _is_population(problem):
        return problem
    allowed = f"--index with a number from 0 to {len(problem) - 1}: {file} is a population"
    raise BadInput("--index", "nothing", allowed)


def check_index(index: int | None, problem: Instance | Population, file: Path) -> None:
    """Raise BadInput if ``--index`` names no applicant of a population, or one who could not be read."""
    if index is None:
        return
    if not _is_population(problem):
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

    template = problem.template if _is_population(problem) else problem
    try:
        text = read_bytes(file, "a text file").decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput("--preferences", str(file), f"a text file ({error})") from None
    try:
        own = preferences_from_text(text, template)
        check_scale(template.cost, own)
    except BadInput as error:
        raise error.in_file(file.name) from None
    if _is_population(problem):
        return replace(
            problem, template=replace(template, preferences=own), preferences=(own,) * len(problem)
        )
    return replace(problem, preferences=own, reference=None)


def at_work(problem: Instance, file: Path) -> AbstractContextManager[Steps]:
    """Show on a terminal, after a second, that one problem's answer is being looked for."""
    return progress_bar(problem.name or file.name, 1)


def warn_of_empty_masks(preferences: Iterable[Preferences]) -> None:
    """Print a warning if preferences name no feature to act on, which is probably a mistake."""
    empty = total = 0
    for one in preferences:
        total += 1
        empty += not one.actionable
    if empty:
        whose = "the applicant's" if total == 1 else f"{empty} of {total} applicants'"
        typer.echo(f"warning: {whose} preferences.actionable is empty: nothing can be acted on", err=True)


def _is_population(problem: Instance | Population) -> TypeIs[Population]:
    from milp_recourse.problem.population import Population

    return isinstance(problem, Population)


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
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=180)
