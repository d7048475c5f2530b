"""Two results compared, and what the checker says of a result's certificate, from the files alone."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from milp_recourse.certificates.produce import certificates_for
from milp_recourse.formats.strict_json import write_json
from milp_recourse.formats.write import write_instance
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result
from verify.__main__ import Outcome, examine


def same(result: Result, other: Result) -> bool:
    """Whether two results say the same, to the gap."""
    if result.status is not other.status or result.cost is None or other.cost is None:
        return result.status is other.status and result.cost is other.cost
    return abs(result.cost - other.cost) <= 2 * other.tolerance


def checked(instance: Instance, result: Result) -> str:
    """The checker's line; MISSING where there is no certificate."""
    [certificate] = certificates_for([instance], [result])
    outcome = examined(instance, certificate)
    return "MISSING" if outcome is None else outcome.line


def examined(instance: Instance, certificate: dict[str, Any] | None) -> Outcome | None:
    """The checker's outcome on both as files."""
    if certificate is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "instance.json"
        write_instance(instance, file)
        write_json(certificate, Path(folder) / "certificate.json")
        return examine(Path(folder) / "certificate.json", file, 120)
