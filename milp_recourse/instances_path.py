"""Where the shipped instances lie: inside an installed package, or beside it in a checkout."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

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


LOAN_POPULATIONS = {"loan-smooth": "loan_smooth", "loan-sharp": "loan"}
"""The shipped Loan populations and their folders: refused by a classifier trained as the released code does
it, and by one trained as the paper's text says, whose logit is twenty times as steep."""


def population_file(name: str) -> Path:
    """The file of a shipped Loan population by its name; any other text is a path."""
    if name in LOAN_POPULATIONS:
        return instances_path() / LOAN_POPULATIONS[name] / "population.json"
    return Path(name)


def instance_files(group: str, limit: int | None = None) -> list[Path]:
    """The first instances of ``instances/<group>/`` by name."""
    return instance_files_in(instances_path() / group, limit)


def instance_files_in(folder: Path, limit: int | None = None) -> list[Path]:
    """The first instances at or below a folder, sorted by path; populations and classifiers are not."""
    files = (file for file in sorted(folder.rglob("*.json")) if is_instance(read_json(file)))
    return list(islice(files, limit))


def is_instance(content: Any) -> bool:
    """Whether a JSON value says it is an instance."""
    return isinstance(content, dict) and content.get("format") == INSTANCE_FORMAT
