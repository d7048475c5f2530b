"""Results as rows: of a table for terminals, and of ``results.csv``, which is read back as well."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from milp_recourse.errors import BadInput
from milp_recourse.formats.strict_json import read_bytes
from milp_recourse.judge import conclude
from milp_recourse.judge.conclude import Proposal
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Proof, Result, Status
from milp_recourse.reports.view import Person, in_words, person_of, short

COLUMNS = ("index", "status", "cost", "lower_bound", "gap", "proof", "backend", "seconds", "certificate")
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


def cells(index: int, person: Person, features: Sequence[str]) -> list[str]:
    """One row of results.csv without the columns ``id`` and ``confirmed``; None becomes an empty cell."""
    fixed = [getattr(person, name) for name in COLUMNS[1:]]
    if person.seconds is not None:
        fixed[COLUMNS.index("seconds") - 1] = round(person.seconds, 6)
    after = {} if person.cost is None else {change.feature: change.after for change in person.features}
    values = (part.get(name) for part in (person.action, after) for name in features)
    return [*map(_cell, (index, *fixed, *values)), one_line(person.message or "")]


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
        one = person_of(result, instance)
        found = short(one.cost), short(one.lower_bound), short(one.gap, 1), one.proof or "-"
        done = "-" if one.cost is None else in_words(one.features), f"{result.seconds:.2f}"
        table.add_row(name, one.status, *found, *done, remark)
    console.print(table, markup=False)


def _cell(value: object) -> str:
    if value is None:
        return ""
    return repr(value) if isinstance(value, float) else str(value)


NEEDED = ("index", "status", "cost", "lower_bound", "gap", "proof")
TRUTH = {"": None, "true": True, "false": False, "yes": True, "no": False}
"""What a cell of the column ``confirmed`` says, in small letters."""


def rows_of(file: Path) -> Iterator[dict[str, str]]:
    """The complete rows, by column; the unfinished last line of a killed run is left out."""
    text = read_bytes(file).decode("utf-8", "replace")
    table = csv.reader(io.StringIO(text[: text.rfind("\n") + 1], newline=""))
    header = next(table, [])
    missing = [name for name in NEEDED if name not in header]
    if missing:
        raise BadInput("header", f"no column {missing[0]}", "the columns that certify writes")
    for k, row in enumerate(table):
        if len(row) != len(header):
            raise BadInput(f"row {k + 1}", f"{len(row)} cells", f"{len(header)}, one per column")
        yield dict(zip(header, row, strict=True))


def values_in(
    instance: Instance, row: Mapping[str, str], prefix: str, where: str
) -> dict[str, float | int | str]:
    """The features' values in the columns that start with the prefix, without empty cells."""
    values = {}
    for f in instance.features:
        name = f"{prefix}{f.name}"
        if row.get(name):
            if f.labelled and row[name] not in (f.categories or ()):
                raise BadInput(f"{where}.{name}", row[name], ", ".join(f.categories or ()))
            values[f.name] = row[name] if f.labelled else f.show(number_in(row, name, where) or 0.0)
    return values


def number_in(row: Mapping[str, str], name: str, where: str) -> float | None:
    """The number in a cell; None where it is empty."""
    text = row.get(name, "")
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise BadInput(f"{where}.{name}", text, "a number, or nothing")
    return value


def result_in(row: Mapping[str, str], instance: Instance, where: str) -> Result:
    """The result that a row says, made anew: its action is judged, and its bound is believed as in the row.

    Raises
    ------
    BadInput
        What the action costs, or what then follows, is not what the row says.
    """
    status, cost = row["status"], number_in(row, "cost", where)
    proofs: dict[str, Proof] = {"rigorous": "rigorous", "solver": "solver", "asked": "asked"}
    action = None if cost is None else instance.numbers(values_in(instance, row, "action_", where))
    bound = math.inf if status == "infeasible" else number_in(row, "lower_bound", where)
    proposal = Proposal(action, bound, proofs.get(row["proof"]))
    seconds = number_in(row, "seconds", where) or 0.0
    found = conclude(instance, proposal, row["backend"], 0.0, as_given=True)
    if found.status is Status.OPTIMAL and status == "limit":  # of no cost, and the model refuses it
        found = replace(found, status=Status.LIMIT)
    said = status, cost, number_in(row, "lower_bound", where)
    if (found.status.value, found.cost, found.lower_bound) != said:
        raise BadInput(where, f"{status} at cost {row['cost'] or 'none'}", "what certify wrote")
    return replace(found, seconds=seconds, message=row.get("message") or None)
