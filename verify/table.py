"""``results.csv`` beside a folder's certificates: a row must say what its certificate proves.

Its columns are those of COLUMNS, the second perhaps ``id``; then ``action_<feature>`` columns; then, both
or neither, ``counterfactual_<feature>`` columns and ``message``; then perhaps ``confirmed`` or ``name``
(where rows are of instances' own files). ``gap``, ``proof``, ``backend``, ``seconds``, ``message`` and
``confirmed`` are not looked at.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from math import inf, nextafter
from pathlib import Path

from verify.certificate import Certificate
from verify.equations import Counterfactual, constant
from verify.instance import Instance, Source
from verify.reading import Rejected
from verify.trees import float64

COLUMNS = ["index", "status", "cost", "lower_bound", "gap", "proof", "backend", "seconds", "certificate"]
PROVEN = {"optimal", "infeasible"}
STATUSES = PROVEN | {"limit", "found", "not-found", "bad-input"}
UNREAD = "bad-input"

Row = dict[str, str]


class Table:
    """The rows of a folder's ``results.csv``, if it has one; anything unusual about it rejects it.

    Attributes
    ----------
    rows
        By the name of the certificate's file.
    total
        How many rows there are, with and without a certificate.
    """

    def __init__(self, folder: Path) -> None:
        self.rows: dict[str, Row] = {}
        self.total = 0
        path = folder / "results.csv"
        if not path.exists():
            return
        try:
            with path.open(encoding="utf-8-sig", newline="") as stream:
                self._read(csv.reader(stream))
        except (OSError, ValueError, csv.Error) as error:
            raise Rejected(f"results.csv: unreadable: {error}") from None

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
        status = header.index("status")
        seen: set[str] = set()
        for self.total, line in enumerate(lines, start=1):
            if len(line) != len(header) or line[status] not in STATUSES or line[0] in seen:
                raise Rejected(f"results.csv: row {self.total}: a length, status or index it cannot have")
            seen.add(line[0])
            row = dict(zip(header, line, strict=True))
            if row["certificate"]:
                if row["certificate"] != f"certificates/{row['index']}.json.gz" or row["status"] == UNREAD:
                    raise Rejected(f"results.csv: row {self.total}: not the index's certificate")
                self.rows[f"{row['index']}.json.gz"] = row


def agree(row: Row, certificate: Certificate, source: Source, names: set[str] | None) -> None:
    """Raise :class:`Rejected` unless the row makes the certificate's claim about the same applicant.

    Parameters
    ----------
    source
        The file the certificate was checked against.
    names
        What the row may be called: the names of the instance's files; None in a population.
    """
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
