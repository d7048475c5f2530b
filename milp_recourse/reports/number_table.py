"""Rows of names and numbers as a CSV file, for people and for pandas."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def write_table(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows, numbers to six digits and None as nothing; packed where the name ends in ``.gz``.

    Columns are all that any row has, in the order in which they come. The same rows give the same bytes.
    """
    columns = dict.fromkeys(name for row in rows for name in row)
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, columns, lineterminator="\n")
    table.writeheader()
    table.writerows({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = text.getvalue().encode()
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
