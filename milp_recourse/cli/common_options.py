"""Options and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import wraps
from os.path import realpath
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

from milp_recourse.errors import BadInput


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
