"""Check a folder of certificates, on one or several processes; a check that was stopped can be resumed."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from contextlib import closing, nullcontext
from itertools import islice
from pathlib import Path
from random import SystemRandom
from statistics import median
from typing import NamedTuple

from verify.files.check import Instances, Outcome, examine, plain, source
from verify.files.folder import Place, counted, places
from verify.files.instance import Source
from verify.files.manifest import MANIFEST
from verify.files.shapes import conform, maybe
from verify.files.table import Row, Table
from verify.kernel.checks import Rejected

TOGETHER = 16
"""How many certificates a process takes at a time."""

Task = tuple[Place, Instances, float, Row | None, bool]
Mapped = Callable[[Callable[[list[Task]], list[Outcome]], Iterable[list[Task]]], Iterable[list[Outcome]]]
"""A function of work and parts that yields the work's result for each part, in any order.

:meth:`Processes.map` is one; a cluster's is another.
"""


def by_digest(folder: Path) -> dict[str, list[Path]]:
    """The instance files of a folder by digest; files with the same content share one."""
    found: dict[str, list[Path]] = {}
    for path in sorted(p for suffix in ("*.json", "*.json.gz") for p in folder.rglob(suffix)):
        try:
            found.setdefault(Source(path).applicant(None).digest, []).append(path)
        except Exception:  # another kind of file, or a broken one: no certificate is checked against it
            continue
    return found


def work(tasks: list[Task]) -> list[Outcome]:
    """Check some certificates."""
    return [examine(*task) for task in tasks]


def failed(tasks: list[Task], error: BaseException) -> list[Outcome]:
    """The outcomes of checks that an error ended: nothing is proven."""
    line = plain(f"REJECTED: the check failed: {error!r}")
    return [Outcome(plain(task[0].name), None, line, 0.0, None) for task in tasks]


class Processes:
    """Processes on this machine. At most twice as many parts as processes are handed out at any time."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs

    def map(
        self, check: Callable[[list[Task]], list[Outcome]], parts: Iterable[list[Task]]
    ) -> Iterator[list[Outcome]]:
        """Yield ``check`` of every part, in the order in which they end."""
        waiting = iter(parts)
        if self.jobs == 1:
            yield from map(check, waiting)
            return
        with ProcessPoolExecutor(self.jobs) as pool:
            running: dict[Future[list[Outcome]], list[Task]] = {}
            while True:
                for part in islice(waiting, 2 * self.jobs - len(running)):
                    try:
                        running[pool.submit(check, part)] = part
                    except BrokenExecutor as broken:
                        yield failed(part, broken)
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    part, error = running.pop(future), future.exception()  # a process may have died
                    yield failed(part, error) if error else future.result()


class Unusable(Exception):
    """Nothing to check, or a journal that cannot be used: nothing is said of any certificate.

    Attributes
    ----------
    code
        The exit code.
    """

    def __init__(self, reason: str, code: int = 2) -> None:
        self.code = code
        super().__init__(reason)


JOURNALLED = (str, str, {"optimal", "infeasible", "bounds"}, str, float, maybe(float))
"""The shape of a journal's line: a digest, then the entries of :class:`~verify.files.check.Outcome`."""


class Journal:
    """A file of the reader's own that records what was verified.

    Its first line is :func:`about`: the instances, options and checker. Every other line is an outcome, which
    counts only for a certificate with the same bytes and the same row of ``results.csv``. The file is locked:
    two runs do not write into one.
    """

    def __init__(self, path: Path, about: str) -> None:
        self.known: dict[str, tuple[str, Outcome]] = {}
        self.path, name = path, plain(str(path))
        try:
            if path.exists() and not path.is_file():
                raise Unusable(f"--resume: {name}: no journal can be written there: it is no file")
            self.stream = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b", 0)
        except OSError as error:
            raise Unusable(f"--resume: {name}: no journal can be written there: {error.strerror}") from None
        try:
            if not locked(self.stream.fileno()):
                raise Unusable(f"--resume: {name}: another run writes this journal: wait for its end", 1)
            self._read(about, name)
        except BaseException:
            self.stream.close()
            raise

    def _read(self, about: str, name: str) -> None:
        try:
            text = self.stream.read().decode("utf-8")
        except (OSError, ValueError) as error:
            raise Unusable(f"--resume: {name}: not a journal that can be read: {error}") from None
        lines = text.split("\n")[:-1]  # what is behind the last line end was being written
        if lines and lines[0] != about:
            raise Unusable(f"--resume: {name}: of a check of other files or options, or by another checker")
        for k, line in enumerate(lines[1:], start=2):
            try:
                digest, *outcome = conform(json.loads(line), JOURNALLED, "")
            except (ValueError, RecursionError, Rejected):
                raise Unusable(f"--resume: {name}: line {k} is no outcome: remove it, or the file") from None
            self.known[outcome[0]] = digest, Outcome(*outcome)
        self.stream.truncate(self.stream.seek(len("\n".join([*lines, ""]).encode()) if lines else 0))
        if not lines:
            self._write(about)

    def _write(self, line: str) -> None:
        """Append a line; raise :class:`Unusable` where the disk is full or broken."""
        content = line.encode() + b"\n"
        try:
            while content:
                content = content[self.stream.write(content) :]
        except OSError as error:
            raise Unusable(f"--resume: {plain(str(self.path))}: not written: {error.strerror}", 1) from None

    def outcome(self, place: Place, row: Row | None) -> Outcome | None:
        """The outcome that is recorded for a certificate, or None."""
        digest, outcome = self.known.get(plain(place.name), ("", None))
        return outcome if outcome and digest == self.digest(place, row) else None

    def add(self, digest: str, outcome: Outcome) -> None:
        """Record an outcome, if the certificate was verified."""
        if outcome.claim is not None:
            self._write(json.dumps([digest, *outcome]))

    @staticmethod
    def digest(place: Place, row: Row | None) -> str:
        """The SHA-256 of a certificate's bytes and its row; "" if the certificate cannot be read."""
        try:
            content = place.read()
        except Rejected:
            return ""
        return hashlib.sha256(content + json.dumps(row, sort_keys=True).encode()).hexdigest()


def locked(file: int) -> bool:
    """Lock an open file for this process alone, which the system undoes when the process ends; False if
    another process has it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def about(instances: Instances, seconds: float, slow: bool) -> str:
    """One line of JSON that changes when instances, options or the checker's code change."""
    own = sorted(Path(__file__).parents[1].rglob("*.py"))
    listed = (
        [file for files in instances.values() for file in files]
        if isinstance(instances, dict)
        else [instances]
    )
    given = sorted({file for path in listed for file in source(path).files})
    found = hashlib.sha256()
    for file in (*own, *given):
        with file.open("rb") as stream:
            found.update(hashlib.file_digest(stream, "sha256").digest())
    return json.dumps({"checks": found.hexdigest(), "seconds": seconds, "slow": slow})


class Listing(NamedTuple):
    """What is in a folder: how many certificates, their numbers, some drawn at random, and the files."""

    total: int
    numbers: set[int]
    drawn: list[Place]
    files: set[Path]


def listing(files: list[Path], sample: int | None) -> Listing:
    """List the certificates of a folder in one pass; ``sample``: how many to draw, None for no sample."""
    count, numbers, drawn, read = 0, set[int](), list[Place](), set[Path]()
    chance = SystemRandom()
    for place in places(files):
        count += 1
        read.add(place.path)
        if counted(place.number):
            numbers.add(int(place.number))
        if sample is not None and len(drawn) < sample:
            drawn.append(place)
        elif sample is not None and (k := chance.randrange(count)) < sample:
            drawn[k] = place
    return Listing(count, numbers, drawn, read)


class Check:
    """The check of a folder: its options, and counts of the outcomes so far."""

    def __init__(self, folder: Path, instances: Instances, seconds: float, slow: bool) -> None:
        self.folder, self.instances, self.seconds, self.slow = folder, instances, seconds, slow
        self.table = Table(folder)
        if self.table.there and isinstance(instances, Path):
            self.table.belongs(source(instances))
            everybody = len(source(instances).factuals)
            if os.path.lexists(folder / MANIFEST) and len(self.table.places) < everybody:
                raise Rejected(f"results.csv: {len(self.table.places)} rows for {everybody} people")
        self.start, self.done, self.taken = time.monotonic(), 0, 0
        self.claims: Counter[str | None] = Counter()
        self.slowest = Outcome("none", None, "", 0.0, None)
        self.seconds_each = array("d")
        self.indices: set[float] = set()

    def run(self, mapped: Mapped, sample: int | None, resume: Path | None) -> int:
        """Check all certificates, or a sample of so many; print the verdict and return the exit code."""
        folder, table = self.folder, self.table
        inner = folder / "certificates" if os.path.lexists(folder / "certificates") else folder
        own = (table.there and "results.csv", table.summarised and "results.json")
        files = sorted(inner.iterdir()) if inner.is_dir() else []
        # beside a table, certificates are in a folder of their own
        chosen = [] if inner == folder and table.there else [path for path in files if path.name not in own]
        found = listing(chosen, sample)
        if not found.total and not table.certified:
            rows = f"; no row of {len(table.places)} in results.csv names one" if table.there else ""
            raise Unusable(f"{plain(str(folder))}: nothing to check: no certificates{rows}")
        total = found.total if sample is None else len(found.drawn)
        journal = None if resume is None else Journal(resume, about(self.instances, self.seconds, self.slow))
        wanted = places(chosen) if sample is None else iter(found.drawn)
        with nullcontext() if journal is None else closing(journal.stream):
            for outcome in self._outcomes(wanted, mapped, journal, total):
                self._count(outcome, total)
        lost = sorted(table.certified - found.numbers)
        for index in lost:
            print(f"{index}.json.gz: REJECTED: results.csv has a row for it, but there is no such file")
        known = found.files | {inner} | {folder / name for name in own if name}
        known |= {self.instances} if isinstance(self.instances, Path) else set()
        others = {path.name for path in {*folder.iterdir(), *files} if path not in known}
        return self._sum_up(total, None if sample is None else found.total, bool(lost), others)

    def _outcomes(
        self, wanted: Iterable[Place], mapped: Mapped, journal: Journal | None, total: int
    ) -> Iterator[Outcome]:
        """Check what the journal does not know; yield each outcome as its check ends.

        Outcomes that the journal knows are counted here and not yielded.
        """
        digests: dict[str, str] = {}

        def tasks() -> Iterator[Task]:
            for place in wanted:
                row = self.table.row(place.number) if self.table.there else None
                before = None if journal is None else journal.outcome(place, row)
                if before is not None:
                    self.taken += 1
                    self._count(before, total)
                    continue
                if journal is not None:
                    digests[plain(place.name)] = journal.digest(place, row)
                yield place, self.instances, self.seconds, row, self.slow

        for part in mapped(work, batches(tasks())):
            for outcome in part:
                if journal is not None:
                    journal.add(digests.pop(outcome.name), outcome)
                yield outcome

    def _count(self, outcome: Outcome, total: int) -> None:
        """Count an outcome, print it if it is a rejection, and print the progress."""
        self.done += 1
        self.claims[outcome.claim] += 1
        self.seconds_each.append(outcome.seconds)
        self.slowest = max(self.slowest, outcome, key=lambda one: one.seconds)
        if outcome.claim is None:
            print(f"{outcome.name}: {outcome.line}", flush=True)
        elif outcome.applicant is not None:
            self.indices.add(outcome.applicant)
        end = "\r" if sys.stderr.isatty() and self.done < total else "\n"
        if sys.stderr.isatty() or self.done % 100 == 0 or self.done == total:
            sys.stderr.write(f"{self.done} of {total} checked, {self.claims[None]} rejected{end}")
            sys.stderr.flush()

    def _sum_up(self, total: int, drawn_from: int | None, lost: bool, others: set[str]) -> int:
        """Print the verdict, the last line, and return the exit code."""
        table, claims = self.table, self.claims
        passed = bool(total) and self.done == total and not claims[None] and not lost
        kinds = ", ".join(f"{count} {claim}" for claim, count in sorted(claims.items(), key=str) if claim)
        drawn = f", drawn at random from {drawn_from}" if drawn_from is not None else ""
        parts = [f"{total - claims[None]} of {total} certificates{drawn} ({kinds or 'none'})"]
        if self.indices and isinstance(self.instances, Path):
            parts.append(f"{len(self.indices)} of {len(source(self.instances).factuals)} applicants")
        if passed and table.there:
            certified = f"{len(table.certified)} of its {len(table.places)} answers are certified"
            there = "agrees" if drawn_from is None else "agrees with these"
            without = map(str, table.places.keys() - table.certified)
            parts.append(f"results.csv {there}, {certified}{some(without, ', not ')}")
            parts += ["results.json agrees"] * table.summarised
        if self.taken:
            parts.append(f"{self.taken} of them checked before")
        seconds = time.monotonic() - self.start
        middle = f"median {median(self.seconds_each or [0.0]):.2g} s"
        slowest = f"slowest {self.slowest.name} {self.slowest.seconds:.1f} s"
        parts.append(f"{seconds:.1f} s, {middle}, {slowest}")
        verdict = "VERIFIED" if passed else "REJECTED"
        print(f"{verdict} {'; '.join(parts)}{some(others, '; not looked at: ')}")
        return 0 if passed else 4


def batches(tasks: Iterator[Task]) -> Iterator[list[Task]]:
    """Lists of at most TOGETHER tasks each."""
    while part := list(islice(tasks, TOGETHER)):
        yield part


def some(names: Iterable[str], before: str) -> str:
    """The text ``before`` and the first five names; "" where there are no names."""
    listed = sorted(names, key=lambda name: (len(name), name))
    more = f" and {len(listed) - 5} more" if len(listed) > 5 else ""
    return before + ", ".join(map(plain, listed[:5])) + more if listed else ""
