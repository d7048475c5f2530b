"""Tables of experiments: grown row by row, gone on with after an interruption, and shown to people."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from milp_recourse.errors import BadInput

if TYPE_CHECKING:
    from rich.table import Table

Row = dict[str, Any]
Key = tuple[str, ...]
Group = TypeVar("Group")


def read_rows(table: Path) -> list[Row]:
    """The complete rows, as text; [] where there is no table. A last line without its end is none."""
    if not table.exists():
        return []
    text = table.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    return list(csv.DictReader(whole.splitlines()))


@contextmanager
def grown(
    table: Path, columns: Sequence[str] | None, identity: Mapping[str, Any]
) -> Iterator[tuple[list[Row], Callable[[Mapping[str, Any]], None]]]:
    """The rows that are there, and what writes the next one.

    Parameters
    ----------
    columns
        The table's header; None: what the first row has.
    identity
        Columns in which all rows of a run agree, and their values.

    Raises
    ------
    BadInput
        The table belongs to another run.
    """
    table.parent.mkdir(parents=True, exist_ok=True)
    rows = read_rows(table)
    header = list(columns or (rows[0] if rows else ()))
    for row in rows:
        if list(row) != header or any(row.get(name) != str(v) for name, v in identity.items()):
            raise BadInput("--out", f"another run's {table.name}", "a new folder, or the same options")
    with table.open("w", newline="", encoding="utf-8") as file:  # without what an interruption cut off
        writer = csv.DictWriter(file, header, lineterminator="\n")
        if header:
            writer.writeheader()
        writer.writerows(rows)
        file.flush()

        def write(row: Mapping[str, Any]) -> None:
            if not writer.fieldnames:
                writer.fieldnames = list(row)
                writer.writeheader()
            writer.writerow(row)
            file.flush()

        yield rows, write


def filled(
    table: Path,
    columns: Sequence[str] | None,
    identity: Mapping[str, Any],
    keys: int,
    groups: Mapping[str, Group],
    solved: Callable[[Group, set[Key]], Iterator[Row | None]],
    jobs: int = 1,
    advance: Callable[[str], object] = lambda name: None,
) -> list[Row]:
    """Write the rows that a table does not have yet, ``jobs`` groups of them at a time; all its rows.

    Parameters
    ----------
    keys
        So many columns, the first ones, tell rows apart.
    groups
        What is worked on in one go, by name.
    solved
        The rows of a group in turn, as they come, without ``identity``; None in place of each one whose key
        is in the given set.
    advance
        Called with a group's name after each of its rows.

    Raises
    ------
    BadInput
        The table belongs to another run.
    """
    lock = Lock()
    with grown(table, columns, identity) as (rows, write), ThreadPoolExecutor(jobs) as pool:
        done = {tuple(row.values())[:keys] for row in rows}

        def work(name: str, group: Group) -> None:
            for row in solved(group, done):
                with lock:
                    if row is not None:
                        write({**row, **identity})
                    advance(name)

        for finished in [pool.submit(work, name, group) for name, group in groups.items()]:
            finished.result()
    return read_rows(table)


def print_rows(title: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> None:
    """A table on stdout, three digits a number; wide enough where that is no terminal.

    Parameters
    ----------
    columns
        What is shown; None: what the first row has.
    """
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console = Console(width=180)
    console.print(folded(title, rows, columns or list(rows[0])))


def folded(title: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Table:
    """A table of which nothing is cut off where a terminal is narrow."""
    from rich.table import Table

    table = Table(title=title)
    for k, column in enumerate(columns):
        table.add_column(column.replace("_", " "), justify="left" if k == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*(shown(row.get(column)) for column in columns))
    return table


def shown(value: object) -> str:
    """A cell: three digits of a number, nothing where there is none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
    return str(value)
