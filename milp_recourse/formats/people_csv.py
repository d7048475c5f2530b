"""Applicants from a CSV table."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from milp_recourse.errors import BadInput
from milp_recourse.formats.strict_json import LARGEST_TABLE, read_bytes
from milp_recourse.problem.features import Feature
from milp_recourse.problem.population import ID, Person

_JSON_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def people_rows(file: Path, features: Sequence[Feature], ids: list[str]) -> Iterator[tuple[str, Person]]:
    """Applicants from a CSV file: for each its row, counted from 1, and its values by feature.

    Parameters
    ----------
    ids
        The applicants' identifiers are appended to it, if there is a column of them.
    """
    names = [f.name for f in features]
    raw = io.BytesIO(read_bytes(file, "a CSV file, .csv or .csv.gz", LARGEST_TABLE))
    content = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
    count = 0
    try:
        filled = (row for row in csv.reader(content) if row)
        header = next(filled, [])
        _check_header(header, names)
        for count, row in enumerate(filled, start=1):
            if len(row) != len(header):
                raise BadInput(f"row {count}", f"{len(row)} cells", f"{len(header)}, one per column")
            cells = dict(zip(header, row, strict=True))
            if ID in cells and ID not in names:
                ids.append(cells[ID])
            yield f"row {count}", {f.name: _cell(cells[f.name], f) for f in features}
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadInput("file", f"an error: {error}", "a table in CSV, UTF-8") from None
    if not count:
        raise BadInput("file", "no rows", "at least one applicant")


def _check_header(header: Sequence[str], names: Sequence[str]) -> None:
    """Check that a CSV file's columns are the features, each once, in any order, and perhaps ``id``."""
    if not header:
        raise BadInput("header", "nothing", "the features: " + ",".join(names))
    known, counts = {*names, ID}, Counter(header)
    twice = [name for name, count in counts.items() if count > 1]
    missing = [name for name in names if name not in counts]
    unknown = [name for name in counts if name not in known]
    faults = (("columns twice", twice), ("no column", missing), ("unknown columns", unknown))
    wrong = "; ".join(f"{what} {', '.join(map(repr, found))}" for what, found in faults if found)
    if wrong:
        raise BadInput("header", wrong, "the features, each once, and 'id'")


def _cell(text: str, feature: Feature) -> float | str | None:
    """A cell's value: None if it is empty, text for labels and for what is no number, else a number."""
    number = text.strip()
    if not number:
        return None
    if feature.labelled:
        return text
    value = float(number) if _JSON_NUMBER.fullmatch(number) else math.inf
    return text if math.isinf(value) else value
