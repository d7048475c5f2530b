"""A table on disk that grows row by row and is gone on with after an interruption."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from milp_recourse.errors import BadInput

Row = dict[str, Any]


def read_rows(table: Path) -> list[Row]:
    """The complete rows, as text; [] where there is no table. A last line without its end is none."""
    if not table.exists():
        return []
    text = table.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    return list(csv.DictReader(whole.splitlines()))


@contextmanager
def grown(
    table: Path, columns: Sequence[str], identity: Mapping[str, Any]
) -> Iterator[tuple[list[Row], Callable[[Mapping[str, Any]], None]]]:
    """The rows that are there, and what writes the next one.

    Parameters
    ----------
    columns
        The table's header.
    identity
        Columns in which all rows of a run agree, and their values.

    Raises
    ------
    BadInput
        The table belongs to another run.
    """
    table.parent.mkdir(parents=True, exist_ok=True)
    rows = read_rows(table)
    for row in rows:
        if list(row) != list(columns) or any(row[name] != str(v) for name, v in identity.items()):
            raise BadInput("--out", f"another run's {table.name}", "a new folder, or the same options")
    with table.open("w", newline="", encoding="utf-8") as file:  # without what an interruption cut off
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        file.flush()

        def write(row: Mapping[str, Any]) -> None:
            writer.writerow(row)
            file.flush()

        yield rows, write
