"""``results.csv`` beside a folder's certificates: a row must say what its certificate proves."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from verify.certificate import Certificate
from verify.reading import Rejected

PROVEN = {"optimal", "infeasible"}


class Table:
    """The rows of a folder's ``results.csv``, if it has one.

    Attributes
    ----------
    rows
        By the name of the certificate's file.
    total, without
        How many rows there are, and how many say ``optimal`` or ``infeasible`` without a certificate.
    """

    def __init__(self, folder: Path) -> None:
        self.rows: dict[str, dict[str, str]] = {}
        self.total = self.without = 0
        path = folder / "results.csv"
        if not path.is_file():
            return
        with path.open(encoding="utf-8", errors="replace", newline="") as stream:
            for row in csv.DictReader(stream):
                self.total += 1
                name = Path(row.get("certificate") or "").name
                if name in self.rows:
                    raise Rejected(f"results.csv: two rows have the certificate {name[:40]}")
                if name:
                    self.rows[name] = row
                self.without += not name and row.get("status") in PROVEN


def agree(row: dict[str, str], certificate: Certificate, name: Any) -> None:
    """Raise :class:`Rejected` unless the row makes the certificate's claim about the same applicant."""
    status, bound = row.get("status"), number(row.get("lower_bound"))
    # an optimum's bound may differ within the gap, which the checker set; another's may not be better
    most = certificate.cost if status == "optimal" else certificate.lower_bound
    same = {
        "index": certificate.index is None or number(row.get("index")) == certificate.index,
        "name": name is None or row.get("name") in (None, name),
        "status": status == certificate.claim or not {status, certificate.claim} & PROVEN,
        "cost": number(row.get("cost")) == certificate.cost,
        "lower_bound": bound is most is None or (None not in (bound, most) and bound <= most),
    }
    action = certificate.action or {}
    acted = {key[7:]: cell for key, cell in row.items() if (key or "").startswith("action_") and cell}
    same["action"] = acted.keys() == action.keys() and all(
        cell == action[key] if isinstance(action[key], str) else number(cell) == action[key]
        for key, cell in acted.items()
    )
    for column, agrees in same.items():
        if not agrees:
            raise Rejected(f"results.csv: {column} is not what the certificate proves")


def number(cell: str | None) -> float | None:
    """A cell's number; None where it is empty or no number."""
    try:
        return float(cell or "")
    except ValueError:
        return None
