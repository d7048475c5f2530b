"""Reads the rows of a ``results.csv`` back, as text, as values and as results."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from milp_recourse.errors import BadInput
from milp_recourse.formats.strict_json import read_bytes
from milp_recourse.judge import conclude
from milp_recourse.judge.conclude import Proposal
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Proof, Result, Status

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
