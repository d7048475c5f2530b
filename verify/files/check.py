"""The check of one certificate: what is printed."""

from __future__ import annotations

import gc
import json
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from verify.fast.box import arithmetics
from verify.files.certificate import Certificate
from verify.files.folder import Place
from verify.files.instance import Source
from verify.files.reading import parse_json
from verify.files.table import Row, agree
from verify.kernel.certificate import check
from verify.kernel.checks import Clock, Rejected

Instances = Path | dict[str, list[Path]]
"""An instance's or population's file, or those of a folder by digest."""


class Outcome(NamedTuple):
    """What became of one certificate."""

    name: str
    claim: str | None
    line: str
    seconds: float
    applicant: float | None


def source(path: Path) -> Source:
    """An instance's or population's file, read once per process and state of the file."""
    state = path.stat() if path.is_file() else None
    return _source(path, state and (state.st_mtime_ns, state.st_size))


@lru_cache(4)
def _source(path: Path, state: tuple[int, int] | None) -> Source:
    return Source(path)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """The time that the kernel may take for what runs inside.

    What has been read, millions of numbers at times, is not searched for garbage meanwhile.
    """
    Clock.end = time.monotonic() + seconds
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        Clock.end = math.inf


def plain(text: str) -> str:
    """The text as one line, without control characters."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(text.split()))


def says(certificate: Certificate) -> str:
    """The claim in one line: about whom, and what to do."""
    whose = "" if certificate.index is None else f" index={certificate.index:.0f}"
    if certificate.claim == "infeasible":
        return certificate.claim + whose
    cost, bound = certificate.cost or 0.0, certificate.lower_bound or 0.0
    gap = float((Fraction(cost) - Fraction(bound)) / (Fraction(cost) or 1))
    stated = f"cost={cost!r} lower_bound={bound!r} relative_gap={gap:.2g}"
    return f"{certificate.claim} {stated}{whose} action={json.dumps(certificate.action)}"


def examine(
    path: Path | Place,
    instances: Instances,
    seconds: float = 3600.0,
    row: Row | None = None,
    slow: bool = False,
) -> Outcome:
    """Check one certificate against its instance's file, and its row; whatever goes wrong rejects it.

    Parameters
    ----------
    row
        The row of its number in ``results.csv``, empty where it has none; None where there is no such file.
    slow
        By the kernel alone.
    """
    start, index = time.monotonic(), None
    place = path if isinstance(path, Place) else Place(path)
    try:
        certificate = Certificate(parse_json(place.read(), place.name))
        index = certificate.index
        files = instances.get(certificate.digest) if isinstance(instances, dict) else [instances]
        if not files:
            raise Rejected("instance_sha256: none of the instances has it")
        applicant = source(files[0]).applicant(certificate.index)
        if certificate.digest != applicant.digest:
            raise Rejected("instance_sha256: the certificate belongs to another instance")
        with within(seconds):
            action = applicant.numbers(certificate.action)
            with certificate.reading.placed():
                check(certificate, action, applicant.problem, *([] if slow else [arithmetics]))
        if row is not None and index is not None and place.number != f"{index:.0f}":
            raise Rejected(f"index: {index:.0f}, which is not what its name says")
        if row:
            names = {str(source(file).name or file.name.split(".")[0]) for file in files}
            agree(row, certificate, source(files[0]), None if source(files[0]).population else names)
        claim, line = certificate.claim, f"VERIFIED {says(certificate)}"
    except Rejected as reason:
        claim, line = None, f"REJECTED: {reason}"
    except Exception as error:  # a check that fails to run proves nothing
        claim, line = None, f"REJECTED: the check failed: {type(error).__name__}: {error}"
    return Outcome(plain(place.name), claim, plain(line), time.monotonic() - start, index)
