"""``results.csv`` and ``results.json`` beside a folder's certificates: they must say what is proven.

The columns of ``results.csv`` are those of COLUMNS, the second perhaps ``id``; then ``action_<feature>``
columns; then, both or neither, ``counterfactual_<feature>`` columns and ``message``; then perhaps
``confirmed`` or ``name`` (where rows are of instances' own files). ``gap``, ``proof``, ``backend``,
``seconds``, ``message`` and ``confirmed`` are not looked at.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterator
from math import inf, nextafter
from pathlib import Path
from statistics import fmean, median
from typing import Any

from verify.certificate import Certificate
from verify.equations import Counterfactual, constant
from verify.instance import Instance, Source
from verify.reading import Rejected, parse_json, read_bytes
from verify.trees import float64

COLUMNS = ["index", "status", "cost", "lower_bound", "gap", "proof", "backend", "seconds", "certificate"]
PROVEN = {"optimal", "infeasible"}
STATUSES = {  # whether a cost and a lower bound go with it; None: either way
    "optimal": (True, True),
    "infeasible": (False, False),
    "limit": (None, True),
    "found": (True, False),
    "not-found": (False, False),
    "bad-input": (False, False),
}

Row = dict[str, str]


class Table:
    """The rows of a folder's ``results.csv``, if it has one; anything unusual about it rejects it.

    Attributes
    ----------
    rows
        By the number in ``index``, as it is written.
    certified
        The numbers of those that name a certificate.
    there
        Whether there is such a file; ``summarised``: whether there is a ``results.json``.
    """

    def __init__(self, folder: Path) -> None:
        self.rows: dict[str, Row] = {}
        path, summary = folder / "results.csv", folder / "results.json"
        self.there, self.summarised = os.path.lexists(path), os.path.lexists(summary)  # dangling links too
        if self.there:
            try:
                with path.open(encoding="utf-8-sig", newline="") as stream:
                    self._read(csv.reader(stream))
            except (OSError, ValueError, csv.Error) as error:
                raise Rejected(f"results.csv: unreadable: {error}") from None
        self.certified = {index for index, row in self.rows.items() if row["certificate"]}
        if self.summarised:
            self._compare(parse_json(read_bytes(summary), "results.json"))

    def _read(self, lines: Iterator[list[str]]) -> None:
        header = next(lines, [])
        fixed = header[:1] + header[2:] if header[1:2] == ["id"] else header
        others = fixed[len(COLUMNS) :]
        if others[-1:] in (["name"], ["confirmed"]):
            others = others[:-1]
        if others[-1:] == ["message"]:
            half = len(others) // 2
            actions, after = others[:half], others[half:-1]
        else:
            actions, after = others, None
        features = [name.removeprefix("action_") for name in actions]
        wanted = [f"action_{name}" for name in features], [f"counterfactual_{name}" for name in features]
        wrong = actions != wanted[0] or after not in (None, wanted[1]) or len(set(header)) < len(header)
        if fixed[: len(COLUMNS)] != COLUMNS or wrong:
            raise Rejected("results.csv: the first line is not its columns (verify/table.py)")
        for k, line in enumerate(lines, start=1):
            row = dict(zip(header, line, strict=False))
            if len(line) != len(header) or row["status"] not in STATUSES or line[0] in self.rows:
                raise Rejected(f"results.csv: row {k}: a length, status or index it cannot have")
            if not line[0].isdecimal() or line[0] != str(int(line[0])):
                raise Rejected(f"results.csv: row {k}: an index that is not written as a whole number is")
            given = row["cost"] != "", row["lower_bound"] != ""
            acts = any(row[name] for name in (*actions, *(after or ())))
            if any(must not in (None, has) for must, has in zip(STATUSES[row["status"]], given, strict=True)):
                raise Rejected(f"results.csv: row {k}: a cost or bound that does not go with its status")
            if acts and not given[0]:
                raise Rejected(f"results.csv: row {k}: an action that does not go with its status")
            if row["certificate"] not in ("", f"certificates/{row['index']}.json.gz") or (
                row["certificate"] and row["status"] == "bad-input"
            ):
                raise Rejected(f"results.csv: row {k}: not the index's certificate")
            self.rows[line[0]] = row

    def _compare(self, data: Any) -> None:
        """Raise :class:`Rejected` unless ``results.json`` says what the rows say."""
        costs = [cost for row in self.rows.values() if (cost := number(row, "cost")) is not None]
        wanted = {
            "applicants": len(self.rows),
            "counts": dict(Counter(row["status"] for row in self.rows.values())),
            "cost_mean": fmean(costs) if costs else None,
            "cost_median": median(costs) if costs else None,
        }
        for key, value in wanted.items():
            if not isinstance(data, dict) or key not in data or data[key] != value:
                raise Rejected(f"results.json: {key} is not what results.csv comes to")
        try:
            listed = [(one["name"], one["result"]) for one in data.get("results", ()) if one["result"]]
            for (name, result), (k, row) in zip(listed, self.rows.items(), strict="results" in data):
                said = {key: result[key] for key in ("status", "cost", "lower_bound", "certificate")}
                for key in row:
                    part, _, feature = key.partition("_")
                    if part in ("action", "counterfactual"):
                        said[key] = (result[part] or {}).get(feature)
                wrong = [key for key, value in (said | {"name": name}).items() if not _is(row, key, value)]
                if wrong:
                    raise Rejected(f"results.json: results.{k}: {wrong[0]} is not what results.csv says")
        except (AttributeError, KeyError, TypeError, ValueError):
            raise Rejected("results.json: its results are not the rows of results.csv") from None

    def belongs(self, source: Source) -> None:
        """Raise :class:`Rejected` where a row is of no applicant of the population, or of another's name."""
        for index, row in self.rows.items():
            if len(index) > 9 or int(index) >= len(source.factuals):
                raise Rejected(f"results.csv: row {index}: there is no such applicant")
            if "id" in row and row["id"] != source.id(float(index)):
                raise Rejected(f"results.csv: row {index}: id is not the applicant's")


def _is(row: Row, column: str, value: Any) -> bool:
    """Whether a cell holds a value of a JSON file."""
    if value is None or isinstance(value, str):
        return row[column] == (value or "")
    return number(row, column) == value


def agree(row: Row, certificate: Certificate, source: Source, names: set[str] | None) -> None:
    """Raise :class:`Rejected` unless the row makes the certificate's claim about the same applicant.

    Parameters
    ----------
    source
        The file the certificate was checked against.
    names
        What the row may be called: the names of the instance's files; None in a population.
    """
    if not row["certificate"]:
        raise Rejected("results.csv: the row names no certificate, and here is one")
    cost, bound = number(row, "cost"), number(row, "lower_bound")
    # an optimum's bound may differ within the gap, which the checker set; another's may not be better
    most = certificate.cost if row["status"] == "optimal" else certificate.lower_bound
    action = certificate.action or {}
    acted = {key[7:]: key for key, cell in row.items() if key.startswith("action_") and cell}
    same = {
        "index": names is not None or number(row, "index") == certificate.index,
        "id": "id" not in row or row["id"] == source.id(certificate.index),
        "name": names is None or row.get("name") in names,
        "status": row["status"] == certificate.claim or not {row["status"], certificate.claim} & PROVEN,
        "cost": cost == certificate.cost,
        "lower_bound": bound is most is None or (bound is not None and most is not None and bound <= most),
        "action": acted.keys() == action.keys()
        and all(
            row[key] == action[name] if isinstance(action[name], str) else number(row, key) == action[name]
            for name, key in acted.items()
        ),
    }
    same |= after(row, certificate, source.instance(certificate.index))
    for column, agrees in same.items():
        if not agrees:
            raise Rejected(f"results.csv: {column} is not what the certificate proves")


def after(row: Row, certificate: Certificate, instance: Instance) -> dict[str, bool]:
    """Whether the row's counterfactual is what the action leads to, to the nearest double; by column."""
    cells = {key[15:]: cell for key, cell in row.items() if key.startswith("counterfactual_")}
    if certificate.action is None:
        return {f"counterfactual_{name}": not cell for name, cell in cells.items()}
    action = {f.name: f.value(certificate.action[f.name], "action") for f in instance.features
              if f.name in certificate.action}  # fmt: skip
    moved = Counterfactual(instance, {name: constant(value) for name, value in action.items()})
    same = {}
    for f in instance.features if cells else ():
        column, (low, high) = f"counterfactual_{f.name}", moved.range(moved.values[f.name])
        cell = cells.get(f.name, "")
        if f.name in instance.missing - action.keys():
            same[column] = not cell
        elif f.labels is not None:
            same[column] = cell in f.labels and low <= f.labels.index(cell) <= high
        else:
            value = number(row, column)
            least, most = float64(low), float64(high)
            if low < high:  # enclosed: another enclosure may round to the next double
                least, most = nextafter(least, -inf), nextafter(most, inf)
            same[column] = value is not None and least <= value <= most
    return same


def number(row: Row, column: str) -> float | None:
    """A cell's number; None where it is empty."""
    try:
        return float(row[column]) if row[column] else None
    except ValueError:
        raise Rejected(f"results.csv: {column} is no number") from None
