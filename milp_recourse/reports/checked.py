"""Robust answers whose certificates the checker has read before anybody says that they are proven."""

from __future__ import annotations

import json
from dataclasses import replace
from gzip import decompress
from pathlib import Path
from tempfile import TemporaryDirectory

from milp_recourse.formats.strict_json import write_gzipped, write_json
from milp_recourse.formats.write import write_instance
from milp_recourse.problem.instance import Instance
from milp_recourse.questions.regions import Region
from milp_recourse.questions.robust import Robust


def checked(found: Robust, seconds: float = 600.0) -> Robust:
    """The answer if the checker ``verify/`` accepts its certificate; else the answer without it.

    Parameters
    ----------
    seconds
        The most time that the check may take.
    """
    said = _rejected(found.instance, found.result.evidence, seconds)
    return found if said is None else found.without_certificate(f"the checker says {said}")


def checked_region(found: Region, seconds: float = 600.0) -> Region:
    """The region if the checker accepts its certificate; else the action alone."""
    said = _rejected(found.instance, found.evidence, seconds)
    return found if said is None else found.alone(said)


def _rejected(instance: Instance, evidence: bytes | None, seconds: float) -> str | None:
    """What the checker says of a certificate that it rejects; None if it accepts it, or there is none."""
    from verify.files.check import examine

    if evidence is None:
        return None
    certificate = json.loads(decompress(evidence))
    certificate.pop("index", None)  # here it is checked against a file of one person's
    with TemporaryDirectory() as folder:
        proof, problem = Path(folder) / "certificate.json", Path(folder) / "instance.json"
        write_json(certificate, proof)
        write_instance(instance, problem)
        outcome = examine(proof, problem, seconds)
    return None if outcome.claim else outcome.line


def with_certificate(found: Robust, file: str | Path | None) -> Robust:
    """The answer with the path of its certificate, which is written to a file; unchanged without either."""
    if file is None or found.result.evidence is None:
        return found
    write_gzipped(found.result.evidence, file)
    return replace(found, result=replace(found.result, certificate=str(Path(file))))
