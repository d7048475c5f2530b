"""Results as rows: of results.csv, and of a table for terminals."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from milp_recourse.formats.write import result_part
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result
from milp_recourse.reports.result_words import action_in_words, short

COLUMNS = ("index", "status", "cost", "lower_bound", "gap", "proof", "backend", "seconds", "certificate")
BAD_INPUT = "bad-input"
"""Status of an applicant who could not be read."""

Row = tuple[str, Instance, Result | None, str]
"""Name, problem, result (None if not solved), and a remark: the comparison with the reference, or why the
problem was not solved."""


def header(features: Sequence[str], ids: bool = False, confirmed: bool = False) -> list[str]:
    """The columns of results.csv.

    Parameters
    ----------
    ids
        Whether the second column has the applicants' own identifiers.
    confirmed
        Whether the last column is the answer of the model's own ``predict``.
    """
    values = [f"{part}_{name}" for part in ("action", "counterfactual") for name in features]
    more = ["confirmed"] if confirmed else []
    return [COLUMNS[0], *(["id"] if ids else []), *COLUMNS[1:], *values, "message", *more]


def cells(index: int, result: Result, features: Sequence[str]) -> list[str]:
    """One row of results.csv without the columns ``id`` and ``confirmed``; None becomes an empty cell."""
    action, counterfactual = result.action or {}, result.counterfactual or {}
    fixed = result_part(result, *COLUMNS[2:]) | {"seconds": round(result.seconds, 6)}
    values = (part.get(name) for part in (action, counterfactual) for name in features)
    return [*map(_cell, (index, *fixed.values(), *values)), one_line(result.message or "")]


def cells_of_unread(index: int, reason: str, features: Sequence[str]) -> list[str]:
    """The row of an applicant who could not be read, as :func:`cells`."""
    empty = [""] * (len(header(features)) - 3)
    return [str(index), BAD_INPUT, *empty, one_line(reason)]


def one_line(text: str) -> str:
    """Text with line ends replaced by spaces, so that a row of CSV is one line."""
    return " ".join(text.split())


def csv_line(values: Iterable[str]) -> str:
    """One line of CSV, ending in a newline."""
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\n").writerow(values)
    return buffer.getvalue()


def print_table(rows: Iterable[Row], console: Console) -> None:
    """Print a table of name, status, cost, bound, gap, proof, action in words, seconds and known answer."""
    table = Table(box=None, pad_edge=False, header_style="bold")  # narrow columns are wrapped, not cut off
    numbers = ("cost", "lower bound", "gap", "seconds")
    for name in ("name", "status", *numbers[:3], "proof", "action", "seconds", "known answer"):
        table.add_column(name, justify="right" if name in numbers else "left", overflow="fold")
    table.columns[6].ratio, table.columns[6].min_width = 1, 16
    for name, instance, result, remark in rows:
        if result is None:
            table.add_row(name, "not solved", "-", "-", "-", "-", remark, "-", "")
            continue
        found = (short(result.cost), short(result.lower_bound), short(result.gap, 1), result.proof or "-")
        done = action_in_words(instance, result), f"{result.seconds:.2f}"
        table.add_row(name, result.status.value, *found, *done, remark)
    console.print(table, markup=False)


def _cell(value: object) -> str:
    if value is None:
        return ""
    return repr(value) if isinstance(value, float) else str(value)
