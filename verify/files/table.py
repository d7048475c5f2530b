"""Check that ``results.csv`` and ``results.json`` beside a folder's certificates say what is proven.

The columns of ``results.csv`` are those of COLUMNS, perhaps with ``id`` as the second; then
``action_<feature>`` columns; then, both or neither, ``counterfactual_<feature>`` columns and ``message``;
then perhaps ``confirmed``, or ``name`` where each row is of an instance with a file of its own. ``backend``,
``seconds``, ``message`` and ``confirmed`` are not checked.
"""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Iterator
from math import inf, isfinite, nextafter
from pathlib import Path
from statistics import fmean, median
from typing import Any

from verify.files.certificate import Certificate
from verify.files.folder import counted
from verify.files.instance import NUMBER, Applicant, Source
from verify.files.lines import Lines
from verify.files.reading import parse_json, read_bytes
from verify.kernel.checks import Rejected
from verify.kernel.feasible import Point
from verify.kernel.trees import float64

COLUMNS = ["index", "status", "cost", "lower_bound", "gap", "proof", "backend", "seconds", "certificate"]
PROVEN = {"optimal", "infeasible"}
NOT_COMPARED = {"not_solved", "seconds", "backend", "time_limit", "index", "certificates", "results"}
"""Keys of results.json that need not agree with the rows; but ``results`` is compared row by row."""
STATUSES = {  # whether a row with this status has a cost, a lower bound, and a proof; None: it may
    "optimal": (True, True, True),
    "infeasible": (False, False, True),
    "limit": (None, True, None),
    "found": (True, False, False),
    "not-found": (False, False, False),
    "bad-input": (False, False, False),
}
PROOFS = {"", "rigorous", "solver", "asked"}

Row = dict[str, str]


class Table:
    """A folder's ``results.csv``, if there is one; raise :class:`Rejected` unless it has the format above.

    Rows are not kept in memory, only where each is in the file.

    Attributes
    ----------
    places
        By ``index``, the row's number, from 0.
    certified
        The ``index`` of every row that names a certificate.
    there, summarised
        Whether there is a ``results.csv``, and whether there is a ``results.json``.
    """

    def __init__(self, folder: Path) -> None:
        self.places: dict[int, int] = {}
        self.certified: set[int] = set()
        self.statuses: Counter[str] = Counter()
        self.costs = array("d")
        path, summary = folder / "results.csv", folder / "results.json"
        self.there, self.summarised = os.path.lexists(path), os.path.lexists(summary)  # dangling links too
        self.lines = Lines(path) if self.there else None
        if self.lines is not None:
            self._read(self.lines)
        if self.summarised:
            self._compare(parse_json(read_bytes(summary), "results.json"))

    def _read(self, lines: Lines) -> None:
        header = lines.header
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
            raise Rejected(f"results.csv: header: allowed: {','.join(COLUMNS)},action_... (docs/formats.md)")
        for k, line in enumerate(lines, start=1):
            self._add(k, header, line, actions, after or [])

    def _add(self, k: int, header: list[str], line: list[str], actions: list[str], after: list[str]) -> None:
        """Check the k-th row, from 1, and note its place, status and cost."""
        row = dict(zip(header, line, strict=False))
        if len(line) != len(header) or row["status"] not in STATUSES:
            raise Rejected(f"results.csv: row {k}: not {len(header)} cells, or status none of {[*STATUSES]}")
        if not counted(line[0]):
            raise Rejected(f"results.csv: row {k}: index: got {line[0]:.40}; allowed: digits, no leading 0")
        if int(line[0]) in self.places:
            raise Rejected(f"results.csv: row {k}: index: {line[0]} is in a row before, too")
        given = row["cost"] != "", row["lower_bound"] != "", row["proof"] != ""
        acts = any(row[name] for name in (*actions, *after))
        names = "cost", "lower_bound", "proof"
        for column, must, has in zip(names, STATUSES[row["status"]], given, strict=True):
            if must not in (None, has):
                raise Rejected(f"results.csv: row {k}: {column}: there, or not, against its status")
        if row["proof"] not in PROOFS:
            raise Rejected(f"results.csv: row {k}: proof: got {row['proof']:.40}; allowed: one of {PROOFS}")
        cost, bound = number(row, "cost"), number(row, "lower_bound")
        gap = None if cost is None or bound is None else max(0.0, cost - bound)
        if number(row, "gap") != gap:
            raise Rejected(f"results.csv: row {k}: gap: not the cost less the lower_bound")
        if acts and not given[0]:
            raise Rejected(f"results.csv: row {k}: an action or a counterfactual, but no cost")
        if row["certificate"] not in ("", f"certificates/{row['index']}.json.gz") or (
            row["certificate"] and row["status"] == "bad-input"
        ):
            raise Rejected(f"results.csv: row {k}: certificate: not index {line[0]}'s, or one for bad-input")
        self.places[int(line[0])] = k - 1
        self.statuses[row["status"]] += 1
        if row["certificate"]:
            self.certified.add(int(line[0]))
        if given[0]:
            self.costs.append(cost or 0.0)

    def row(self, index: str) -> Row:
        """The row with this ``index``, as text by column; empty where there is none."""
        if self.lines is None or not counted(index) or int(index) not in self.places:
            return {}
        return dict(zip(self.lines.header, self.lines[self.places[int(index)]], strict=True))

    def rows(self) -> Iterator[Row]:
        """Every row, in order."""
        for line in self.lines or ():
            yield dict(zip(self.lines.header if self.lines else (), line, strict=True))

    def _compare(self, data: Any) -> None:
        """Raise :class:`Rejected` unless ``results.json`` says what the rows say."""
        wanted = {
            "format": "milp-recourse/results-1",
            "applicants": len(self.places),
            "counts": dict(self.statuses),
            "cost_mean": fmean(self.costs) if self.costs else None,
            "cost_median": median(self.costs) if self.costs else None,
        }
        for key, value in wanted.items():
            if not isinstance(data, dict) or key not in data or data[key] != value:
                raise Rejected(f"results.json: {key}: allowed: {value!r:.60}, as results.csv says")
        if unknown := data.keys() - wanted.keys() - NOT_COMPARED:
            raise Rejected(f"results.json: unknown key {min(unknown)[:40]!r}")
        try:
            listed = [(one["name"], one["result"]) for one in data.get("results", ()) if one["result"]]
            several = self.rows() if "results" in data else iter(())
            for (name, result), row in zip(listed, several, strict=True):
                k = row["index"]
                expected = {key: result[key] for key in ("status", "cost", "lower_bound", "certificate")}
                for key in row:
                    part, _, feature = key.partition("_")
                    if part in ("action", "counterfactual"):
                        expected[key] = (result[part] or {}).get(feature)
                expected["name"] = name
                wrong = [key for key, value in expected.items() if not _is(row, key, value)]
                if wrong:
                    raise Rejected(f"results.json: results.{k}: {wrong[0]} is not what results.csv says")
        except (AttributeError, KeyError, TypeError, ValueError):
            raise Rejected("results.json: its results are not the rows of results.csv") from None

    def belongs(self, source: Source) -> None:
        """Raise :class:`Rejected` for a row whose ``index`` or ``id`` is no applicant's of the population."""
        for row in self.rows():
            index = row["index"]
            if len(index) > 9 or int(index) >= len(source.factuals):
                raise Rejected(f"results.csv: index: got {index:.40}; allowed: below {len(source.factuals)}")
            if "id" in row and row["id"] != source.id(float(index)):
                raise Rejected(f"results.csv: index {index}: id is not the applicant's")


def _is(row: Row, column: str, value: object) -> bool:
    """Whether a cell is the same as a value of a JSON file; None is the empty cell."""
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
        What the row's ``name`` may be: the names of the instance's files; None in a population.
    """
    if not row["certificate"]:
        raise Rejected("results.csv: the row names no certificate, but here is one")
    cost, bound, most = number(row, "cost"), number(row, "lower_bound"), certificate.lower_bound
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
    same |= after(row, certificate, source.applicant(certificate.index))
    for column, agrees in same.items():
        if not agrees:
            raise Rejected(f"results.csv: {column} is not what the certificate proves")


def after(row: Row, certificate: Certificate, applicant: Applicant) -> dict[str, bool]:
    """Whether each column of the counterfactual is what the action leads to, as the nearest double."""
    cells = {key[15:]: cell for key, cell in row.items() if key.startswith("counterfactual_")}
    if certificate.action is None:
        return {f"counterfactual_{name}": not cell for name, cell in cells.items()}
    problem, action = applicant.problem, applicant.numbers(certificate.action)
    same, point = {}, Point(problem, action)
    for f in applicant.variables.values() if cells else ():
        column, (low, high) = (
            f"counterfactual_{f.name}",
            point.box.interval(point.configuration.values[f.name]),
        )
        cell = cells.get(f.name, "")
        if f.name in problem.missing - action.keys():
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
    if not row[column]:
        return None
    if not NUMBER.fullmatch(row[column]) or not isfinite(float(row[column])):
        raise Rejected(f"results.csv: {column}: got {row[column]:.40}; allowed: a number, or nothing")
    return float(row[column])
