"""Tables of experiments: written row by row, continued after an interruption, and printed."""

from __future__ import annotations

import csv
import gzip
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, TypeVar

from milp_recourse.errors import BadInput, MachineFailed
from milp_recourse.reports.folder_lock import append_whole, only_writer

if TYPE_CHECKING:
    from rich.table import Table

Row = dict[str, Any]
Key = tuple[str, ...]
Name = TypeVar("Name")
Group = TypeVar("Group")


def read_rows(table: Path) -> list[Row]:
    """The complete rows of a CSV file, as text; [] if there is no file.

    A last line without a line end is left out: writing it was interrupted.
    """
    return list(csv.DictReader(_whole_lines(table).decode("utf-8").splitlines()))


def _whole_lines(table: Path) -> bytes:
    content = table.read_bytes() if table.exists() else b""
    return content[: content.rfind(b"\n") + 1]


@contextmanager
def grown(
    table: Path, columns: Sequence[str] | None, identity: Mapping[str, Any]
) -> Iterator[tuple[list[Row], Callable[[Mapping[str, Any]], None]]]:
    """Open a table to add rows to it: yields its rows and a function that writes a row.

    Rows that are there stay as they are, whenever the process ends; of a row that cannot be written whole,
    nothing stays, and a table without rows is not made.

    Parameters
    ----------
    columns
        The table's header; None: the keys of the first row.
    identity
        Columns that have the same value in all rows of a run, with these values.

    Raises
    ------
    BadInput
        The table has another header or other values in these columns: it is of another run.
    MachineFailed
        Another process adds rows to it; or the disk is full or broken.
    """
    with only_writer(table.parent, f".{table.name}.lock"):
        try:
            yield from _grown(table, columns, identity)
        finally:
            if table.exists() and not table.stat().st_size:
                table.unlink()


def _grown(
    table: Path, columns: Sequence[str] | None, identity: Mapping[str, Any]
) -> Iterator[tuple[list[Row], Callable[[Mapping[str, Any]], None]]]:
    rows = read_rows(table)
    header = list(columns or (rows[0] if rows else ()))
    for row in rows:
        if list(row) != header or any(row.get(name) != str(v) for name, v in identity.items()):
            raise BadInput("--out", f"another run's {table.name}", "a new folder, or the same options")
    with table.open("ab", buffering=0) as file:
        file.truncate(len(_whole_lines(table)) if rows else 0)  # of what was being written, nothing stays
        lines = StringIO(newline="")
        writer = csv.DictWriter(lines, header, lineterminator="\n")

        def write(row: Mapping[str, Any]) -> None:
            if not os.fstat(file.fileno()).st_size:
                writer.fieldnames = header or list(row)
                writer.writeheader()
            writer.writerow(row)
            content = lines.getvalue().encode()
            lines.seek(0)
            lines.truncate()
            try:
                append_whole(content, file)
            except OSError as error:
                raise MachineFailed(f"{table}: a row is not written: {error.strerror}") from None

        yield rows, write


def filled(
    table: Path,
    columns: Sequence[str] | None,
    identity: Mapping[str, Any],
    keys: int,
    groups: Mapping[Name, Group],
    solved: Callable[[Group, set[Key]], Iterable[Row | None]],
    jobs: int = 1,
    advance: Callable[[Name], object] = lambda name: None,
) -> list[Row]:
    """Compute and write the rows that a table does not have yet; return all its rows, as text.

    Parameters
    ----------
    keys
        How many columns, from the first on, are a row's key, by which it is known what is done.
    groups
        By name, the parts of the work; ``jobs`` of them are worked on at a time. After an error in one, or
        Ctrl-C, no other is begun, and no row is written.
    solved
        Called with a group and the keys of the rows that the table has. Yields the group's rows one after the
        other, without the columns of ``identity``, and None for each row that the table has.
    advance
        Called with a group's name after each of its rows.

    Raises
    ------
    BadInput
        The table is of another run (:func:`grown`).
    """
    lock, ended = Lock(), Event()
    with grown(table, columns, identity) as (rows, write), ThreadPoolExecutor(jobs) as pool:
        done = {tuple(row.values())[:keys] for row in rows}

        def work(name: Name, group: Group) -> None:
            for row in solved(group, done):
                with lock:
                    if ended.is_set():
                        return
                    if row is not None:
                        write({**row, **identity})
                    advance(name)

        at_a_time = pool.map if jobs > 1 else map  # one at a time in this thread, which Ctrl-C ends at once
        try:
            list(at_a_time(work, groups, groups.values()))
        except BaseException:
            ended.set()
            raise
    return read_rows(table)


def write_table(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows, floats to six digits and None as an empty cell; gzipped if the name ends in ``.gz``.

    The columns are all keys of the rows, in the order of their first occurrence. The same rows always give
    the same bytes.
    """
    from milp_recourse.formats.strict_json import write_whole

    columns = dict.fromkeys(name for row in rows for name in row)
    text = StringIO(newline="")
    table = csv.DictWriter(text, columns, lineterminator="\n")
    table.writeheader()
    table.writerows({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows)
    content = text.getvalue().encode()
    write_whole(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content, path)


def print_rows(title: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> None:
    """Print a table with three digits per number; 180 characters wide where stdout is not a terminal.

    Parameters
    ----------
    columns
        The columns to show; None: those of the first row.
    """
    from milp_recourse.cli.shared import console_of_stdout

    console_of_stdout().print(folded(title, rows, columns or list(rows[0])))


def folded(title: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Table:
    """A table for rich whose cells wrap, so that nothing is cut off in a narrow terminal."""
    from rich.table import Table

    table = Table(title=title)
    for k, column in enumerate(columns):
        table.add_column(column.replace("_", " "), justify="left" if k == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*(shown(row.get(column)) for column in columns))
    return table


def shown(value: object) -> str:
    """The text of a cell: three digits of a number, "" for None and nan."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
    return str(value)
