"""JSON files that people can read and git can compare line by line, and checksums of files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from milp_recourse.formats.strict_json import read_json, write_whole

WIDTH = 110


def dump(value: Any) -> str:
    """JSON text that people can read.

    A container is on one line if it fits into :data:`WIDTH` or is a list of plain values; any other has one
    entry per line. Floats are written by repr.

    Examples
    --------
    >>> print(dump({"a": [1, 2.5], "b": None}), end="")
    {"a": [1, 2.5], "b": null}
    """
    return _lines(value, "", 0) + "\n"


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` as UTF-8 JSON, completely or not at all; NaN and infinities are refused."""
    write_whole(dump(value).encode("utf-8"), path)


def kept(path: Path, make: Callable[[], Any]) -> Any:
    """The content of a JSON file, which is made and written if there is none."""
    if not path.exists():
        write_json(path, make())
    return read_json(path)


def write_instance(path: Path, content: dict[str, Any]) -> None:
    """Write an instance that has no ``reference``. The reference of an existing file with the same content is
    kept."""
    if path.exists():
        old = read_json(path)
        reference = old.pop("reference", None)
        if reference is not None and old == content:
            content = content | {"reference": reference}
    write_json(path, content)


def sha256(path: Path) -> str:
    """Hex digest of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _lines(value: Any, indent: str, used: int) -> str:
    flat = json.dumps(value, allow_nan=False, ensure_ascii=False)
    vector = isinstance(value, list) and not any(isinstance(v, (list, dict)) for v in value)
    if not isinstance(value, (list, dict)) or vector or len(flat) + used <= WIDTH:
        return flat
    inner = indent + " "
    if isinstance(value, list):
        entries = [_lines(v, inner, len(inner)) for v in value]
        brackets = "[", "]"
    else:
        keys = {json.dumps(k, ensure_ascii=False) + ": ": v for k, v in value.items()}
        entries = [k + _lines(v, inner, len(inner) + len(k)) for k, v in keys.items()]
        brackets = "{", "}"
    body = ",\n".join(inner + entry for entry in entries)
    return f"{brackets[0]}\n{body}\n{indent}{brackets[1]}"
