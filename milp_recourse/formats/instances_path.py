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
    package = Path(__file__).parent.parent
    for folder in (package / "_instances", package.parent / "instances"):
        if folder.is_dir():
            return folder
    raise BadInput("instances", "nothing beside the package", "an installation with its instances")


LOAN_POPULATIONS = {"loan-smooth": "loan_smooth", "loan-sharp": "loan", "loan-printed": "loan_printed"}
"""The shipped Loan populations and their folders. The classifier of ``loan-smooth`` is trained as the code
that the CARMA authors released trains it; that of ``loan-sharp``, whose logit is twenty times as steep, as
the iCARMA paper's text says. ``loan-printed`` has the equations that the paper's appendix prints."""


def population_file(name: str) -> Path:
    """The file of the shipped Loan population of this name; any other text is taken as a path."""
    if name in LOAN_POPULATIONS:
        return instances_path() / LOAN_POPULATIONS[name] / "population.json"
    return Path(name)


def instance_files(group: str, limit: int | None = None) -> list[Path]:
    """The first ``limit`` instance files at or below ``instances/<group>/``, by path."""
    return instance_files_in(instances_path() / group, limit)


def instance_files_in(folder: Path, limit: int | None = None) -> list[Path]:
    """The first ``limit`` instance files at or below a folder, by path; other files are left out."""
    files = (file for file in sorted(folder.rglob("*.json")) if is_instance(read_json(file)))
    return list(islice(files, limit))


def is_instance(content: Any) -> bool:
    """Whether a JSON value says it is an instance."""
    return isinstance(content, dict) and content.get("format") == INSTANCE_FORMAT
