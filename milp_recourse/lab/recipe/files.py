"""Files that are made once and kept, and checksums of files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from milp_recourse.formats.strict_json import read_json, write_json
from milp_recourse.readers import to_json


def kept(path: Path, make: Callable[[], Any]) -> Any:
    """The content of a JSON file, which is made and written if there is none."""
    if not path.exists():
        write_json(make(), path)
    return read_json(path)


def write_instance(path: Path, content: dict[str, Any]) -> None:
    """Write an instance that has no ``reference``. The reference of an existing file with the same content is
    kept."""
    if path.exists():
        old = read_json(path)
        reference = old.pop("reference", None)
        if reference is not None and old == content:
            content = content | {"reference": reference}
    write_json(content, path)


def write_model(model: Any, path: Path) -> dict[str, str]:
    """Write a classifier; return how files of the same folder name it."""
    write_json(to_json(model), path)
    return {"path": path.name, "sha256": sha256(path)}


def sha256(path: Path) -> str:
    """Hex digest of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
