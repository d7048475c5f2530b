"""Check one certificate, and say in one line what came out."""

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

from verify.certain import check as certain
from verify.fast.box import arithmetics
from verify.files.certificate import Certificate
from verify.files.folder import Place
from verify.files.forked import on_processes
from verify.files.instance import Source
from verify.files.reading import parse_json
from verify.files.region import FORMAT as REGION
from verify.files.region import check_region
from verify.files.regret import FORMAT as REGRET
from verify.files.regret import check_regret
from verify.files.table import Row, agree
from verify.kernel.certificate import check
from verify.kernel.checks import Clock, Rejected

Instances = Path | dict[str, list[Path]]
"""The file of an instance or population; or, by digest, the files of a folder's instances."""

OTHERS = {REGRET: check_regret, REGION: check_region}
"""By format, what checks a file that is no certificate of section 4, and says what it proves."""


class Outcome(NamedTuple):
    """What came out of the check of one certificate.

    Attributes
    ----------
    claim
        The claim that was verified; None if the certificate was rejected.
    line
        What is printed.
    applicant
        The certificate's index in a population; None without one.
    """

    name: str
    claim: str | None
    line: str
    seconds: float
    applicant: float | None


def source(path: Path) -> Source:
    """Read an instance's or population's file, once per process unless the file changes."""
    state = path.stat() if path.is_file() else None
    return _source(path, state and (state.st_mtime_ns, state.st_size))


@lru_cache(4)
def _source(path: Path, state: tuple[int, int] | None) -> Source:
    collects = gc.isenabled()
    gc.disable()  # there may be millions of numbers to read, and none of them becomes garbage
    try:
        return Source(path)
    finally:
        if collects:
            gc.enable()


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Limit the time that the kernel may take inside the ``with`` block.

    Meanwhile garbage collection passes over what exists now, which can be millions of numbers, and comes only
    after many more objects than usual.
    """
    Clock.end, usual = time.monotonic() + seconds, gc.get_threshold()
    gc.freeze()
    gc.set_threshold(100_000, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()
        Clock.end = math.inf


def plain(text: str) -> str:
    """The text as one line, without control characters."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(text.split()))


def statement(certificate: Certificate) -> str:
    """The claim in one line: status, numbers, the applicant's index and the action."""
    whose = "" if certificate.index is None else f" index={certificate.index:.0f}"
    if certificate.says is not None:
        asked = {key: certificate.says[key] for key in ("missed", "threshold", "noise")}
        whose += f" withstands={json.dumps(asked)}"
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
    jobs: int = 1,
) -> Outcome:
    """Check one certificate against its instance's file and its row. Any error rejects it.

    Parameters
    ----------
    row
        The applicant's row of ``results.csv``, empty if the file has none; None if there is no such file.
    slow
        Whether to use the kernel alone, without the fast path.
    jobs
        How many processes may check it, where the system can fork. One does with ``slow``, and where the
        claim is about certain actions.
    """
    start, index = time.monotonic(), None
    place = path if isinstance(path, Place) else Place(path)
    try:
        data = parse_json(place.read(), place.name)
        form = data.get("format") if isinstance(data, dict) else None
        if form in OTHERS and isinstance(instances, Path) and row is None:
            with within(seconds):
                proven = OTHERS[form](data, source(instances), slow)
            claim, seconds = proven.split()[0], time.monotonic() - start
            return Outcome(plain(place.name), claim, plain(f"VERIFIED {proven}"), seconds, None)
        certificate = Certificate(data)
        index = certificate.index
        files = instances.get(certificate.digest) if isinstance(instances, dict) else [instances]
        if not files:
            raise Rejected("instance_sha256: no instance in the folder has this digest")
        applicant = source(files[0]).applicant(certificate.index)
        if certificate.digest != applicant.digest:
            raise Rejected("instance_sha256: the certificate belongs to another instance")
        if certificate.withstood:
            applicant.check_withstood(certificate.withstood)
        with within(seconds):
            action = applicant.numbers(certificate.action)
            with certificate.reading.placed():
                fast = [] if slow else [arithmetics]
                if certificate.withstood:
                    certain.check(certificate, certificate.withstood, action, applicant.problem, *fast)
                else:
                    with on_processes(1 if slow else jobs) as tree:
                        check(certificate, action, applicant.problem, *fast, **tree)
        if row is not None and index is not None and place.number != f"{index:.0f}":
            raise Rejected(f"index: got {index:.0f}; allowed: {place.number}, as the file is called")
        if row and certificate.withstood:
            raise Rejected("withstands: a row of results.csv is about actions as planned (section 12)")
        if row:
            names = {str(source(file).name or file.name.split(".")[0]) for file in files}
            agree(row, certificate, source(files[0]), None if source(files[0]).population else names)
        claim, line = certificate.claim, f"VERIFIED {statement(certificate)}"
    except Rejected as reason:
        claim, line = None, f"REJECTED: {reason}"
    except Exception as error:  # a check that fails to run proves nothing
        claim, line = None, f"REJECTED: the check failed: {type(error).__name__}: {error}"
    return Outcome(plain(place.name), claim, plain(line), time.monotonic() - start, index)
