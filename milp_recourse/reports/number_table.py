"""Tables of results as CSV files."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def write_table(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows, floats to six digits and None as an empty cell; gzipped if the name ends in ``.gz``.

    The columns are all keys of the rows, in the order of their first occurrence. The same rows always give
    the same bytes.
    """
    columns = dict.fromkeys(name for row in rows for name in row)
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, columns, lineterminator="\n")
    table.writeheader()
    table.writerows({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = text.getvalue().encode()
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
