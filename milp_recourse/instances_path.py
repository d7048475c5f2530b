"""Where the shipped instances lie: inside an installed package, or beside it in a checkout."""

from __future__ import annotations

from pathlib import Path

from milp_recourse.errors import BadInput
from milp_recourse.formats.schema import INSTANCE_FORMAT
from milp_recourse.formats.strict_json import read_json


def instances_path() -> Path:
    """The folder that holds ``smoke/`` and ``loan/``.

    Raises
    ------
    BadInput
        The package was installed without them.
    """
    package = Path(__file__).parent
    for folder in (package / "_instances", package.parent / "instances"):
        if folder.is_dir():
            return folder
    raise BadInput("instances", "nothing beside the package", "an installation with its instances")


def instance_files(group: str, limit: int | None = None) -> list[Path]:
    """The first instances of ``instances/<group>/`` by name; other JSON files there are passed over."""
    found: list[Path] = []
    for file in sorted((instances_path() / group).glob("*.json")):
        if limit is not None and len(found) == limit:
            break
        data = read_json(file)
        if isinstance(data, dict) and data.get("format") == INSTANCE_FORMAT:
            found.append(file)
    return found
