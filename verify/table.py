"""``results.csv`` beside a folder's certificates: a row must say what its certificate proves.

Its columns are those of COLUMNS, then ``action_<feature>`` columns, then ``name`` where rows are of
instances' own files. ``gap``, ``proof``, ``backend`` and ``seconds`` are not looked at.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from verify.certificate import Certificate
from verify.reading import Rejected

COLUMNS = ["index", "status", "cost", "lower_bound", "gap", "proof", "backend", "seconds", "certificate"]
PROVEN = {"optimal", "infeasible"}
STATUSES = PROVEN | {"limit", "found", "not-found"}

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
        others = header[len(COLUMNS) :]
        actions = others[:-1] if others[-1:] == ["name"] else others
        wrong = any(not name.startswith("action_") for name in actions) or len(set(header)) < len(header)
        if header[: len(COLUMNS)] != COLUMNS or wrong:
            raise Rejected("results.csv: the first line is not its columns (verify/table.py)")
        seen: set[str] = set()
        for self.total, line in enumerate(lines, start=1):
            if len(line) != len(header) or line[1] not in STATUSES or line[0] in seen:
                raise Rejected(f"results.csv: row {self.total}: a length, status or index it cannot have")
            seen.add(line[0])
            row = dict(zip(header, line, strict=True))
            if row["certificate"]:
                if row["certificate"] != f"certificates/{row['index']}.json.gz":
                    raise Rejected(f"results.csv: row {self.total}: not the index's certificate")
                self.rows[f"{row['index']}.json.gz"] = row


def agree(row: Row, certificate: Certificate, names: set[str] | None) -> None:
    """Raise :class:`Rejected` unless the row makes the certificate's claim about the same applicant.

    Parameters
    ----------
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
    for column, agrees in same.items():
        if not agrees:
            raise Rejected(f"results.csv: {column} is not what the certificate proves")


def number(row: Row, column: str) -> float | None:
    """A cell's number; None where it is empty."""
    try:
        return float(row[column]) if row[column] else None
    except ValueError:
        raise Rejected(f"results.csv: {column} is no number") from None
