"""``python -m verify CERT INSTANCE`` and ``python -m verify DIR POPULATION_OR_INSTANCES``.

Exit codes: 0 verified; 4 rejected (for a folder: at least one, or nothing to check); 2 wrong usage, also
a path that does not exist.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from functools import lru_cache
from itertools import islice
from pathlib import Path
from random import SystemRandom
from typing import NamedTuple

from verify.certificate import Certificate, check
from verify.folder import Place, places
from verify.instance import Source
from verify.reading import Rejected, parse_json
from verify.table import Row, Table, agree


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


def plain(text: str) -> str:
    """Text in one line that moves no cursor."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(text.split()))


def by_digest(folder: Path) -> dict[str, list[Path]]:
    """The instances of a folder; files of the same content share a digest."""
    found: dict[str, list[Path]] = {}
    for path in sorted(p for suffix in ("*.json", "*.json.gz") for p in folder.rglob(suffix)):
        try:
            found.setdefault(Source(path).instance(None).digest, []).append(path)
        except Exception:  # another kind of file, or a broken one: no certificate is checked against it
            continue
    return found


def examine(
    path: Path | Place, instances: Path | dict[str, list[Path]], seconds: float, row: Row | None = None
) -> Outcome:
    """Check one certificate against its instance's file, and its row; whatever goes wrong rejects it.

    Parameters
    ----------
    row
        The row of its number in ``results.csv``, empty where it has none; None where there is no such file.
    """
    start, index = time.monotonic(), None
    place = path if isinstance(path, Place) else Place(path)
    try:
        certificate = Certificate(parse_json(place.read(), place.name))
        index = certificate.index
        files = instances.get(certificate.digest) if isinstance(instances, dict) else [instances]
        if not files:
            raise Rejected("instance_sha256: none of the instances has it")
        check(certificate, source(files[0]), seconds)
        if row is not None and index is not None and place.number != f"{index:.0f}":
            raise Rejected(f"index: {index:.0f}, which is not what its name says")
        if row:
            names = {str(source(file).name or file.name.split(".")[0]) for file in files}
            agree(row, certificate, source(files[0]), None if source(files[0]).population else names)
        claim, line = certificate.claim, f"VERIFIED {certificate.says()}"
    except Rejected as reason:
        claim, line = None, f"REJECTED: {reason}"
    except Exception as error:  # a check that fails to run proves nothing
        claim, line = None, f"REJECTED: the check failed: {type(error).__name__}: {error}"
    return Outcome(plain(place.name), claim, plain(line), time.monotonic() - start, index)


def outcomes(
    places_: Iterable[Place],
    instances: Path | dict[str, list[Path]],
    seconds: float,
    jobs: int,
    rows: Mapping[str, Row] | None,
) -> Iterator[Outcome]:
    """Check many certificates, a few per process at a time, as they get done; rows by number, if any."""
    tasks = (
        (place, instances, seconds, None if rows is None else rows.get(place.number, {})) for place in places_
    )
    if jobs == 1:
        yield from (examine(*task) for task in tasks)
        return
    with ProcessPoolExecutor(jobs) as pool:
        running: dict[Future[Outcome], str] = {}
        while True:
            for task in islice(tasks, 4 * jobs - len(running)):
                try:
                    running[pool.submit(examine, *task)] = task[0].name
                except BrokenExecutor as error:
                    yield failed(task[0].name, error)
            if not running:
                return
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                name, error_ = running.pop(done), done.exception()  # of a process that died, perhaps
                yield failed(name, error_) if error_ else done.result()


def failed(name: str, error: BaseException) -> Outcome:
    """Of a check that did not come to an end: it proves nothing."""
    return Outcome(plain(name), None, plain(f"REJECTED: the check failed: {error!r}"), 0.0, None)


def check_folder(
    folder: Path,
    instances: Path | dict[str, list[Path]],
    seconds: float,
    jobs: int,
    sample: int | None = None,
) -> int:
    """Check a folder's certificates, or so many of them, and the tables it has, and sum up; the exit code."""
    start = time.monotonic()
    table = Table(folder)
    if table.there and isinstance(instances, Path):
        table.belongs(source(instances))
    inner = folder / "certificates" if os.path.lexists(folder / "certificates") else folder
    if inner == folder and table.there:
        print("REJECTED: results.csv stands there without certificates, so there is nothing to check")
        return 4
    files = sorted(inner.iterdir()) if inner.is_dir() else []
    own = (table.there and "results.csv", table.summarised and "results.json")
    every = places([path for path in files if path.name not in own])
    paths = every if sample is None else SystemRandom().sample(every, min(sample, len(every)))
    rows = table.rows if table.there else None
    claims: Counter[str | None] = Counter()
    slowest, indices = Outcome("none", None, "", 0.0, None), set()
    for k, outcome in enumerate(outcomes(paths, instances, seconds, jobs, rows), start=1):
        claims[outcome.claim] += 1
        slowest = max(slowest, outcome, key=lambda one: one.seconds)
        if outcome.claim is None:
            print(f"{outcome.name}: {outcome.line}", flush=True)
        elif outcome.applicant is not None:
            indices.add(outcome.applicant)
        end = "\r" if sys.stderr.isatty() and k < len(paths) else "\n"
        if sys.stderr.isatty() or k % 100 == 0 or k == len(paths):
            sys.stderr.write(f"{k} of {len(paths)} checked, {claims[None]} rejected{end}")
            sys.stderr.flush()
    lost = sorted(table.certified - {place.number for place in every}, key=int)
    for index in lost:
        print(f"{index}.json.gz: REJECTED: results.csv has a row for it, but there is no such file")
    passed = bool(paths) and not claims[None] and not lost
    kinds = ", ".join(f"{count} {claim}" for claim, count in sorted(claims.items(), key=str) if claim)
    drawn = f", drawn at random from {len(every)}" if sample is not None else ""
    parts = [f"{len(paths) - claims[None]} of {len(paths)} certificates{drawn} ({kinds or 'none'})"]
    if indices and isinstance(instances, Path):
        parts.append(f"{len(indices)} of {len(source(instances).factuals)} applicants")
    if passed and table.there:
        certified = f"{len(table.certified)} of its {len(table.rows)} answers are certified"
        there = "agrees" if sample is None else "agrees with these"
        parts.append(f"results.csv {there}, {certified}{some(table.rows.keys() - table.certified, ', not ')}")
        parts += ["results.json agrees"] * table.summarised
    parts.append(f"{time.monotonic() - start:.1f} s, slowest {slowest.name} {slowest.seconds:.1f} s")
    known = {*(place.path for place in every), inner, *(folder / name for name in own if name)}
    known |= {instances} if isinstance(instances, Path) else set()
    others = {p.name for p in {*folder.iterdir(), *files} if p not in known}
    print(f"{'VERIFIED' if passed else 'REJECTED'} {'; '.join(parts)}{some(others, '; not looked at: ')}")
    return 0 if passed else 4


def some(names: Iterable[str], before: str) -> str:
    """The first few of some names, with text before them; nothing where there are none."""
    listed = sorted(names, key=lambda name: (len(name), name))
    more = f" and {len(listed) - 5} more" if len(listed) > 5 else ""
    return before + ", ".join(map(plain, listed[:5])) + more if listed else ""


def duration(text: str) -> float:
    """A number of seconds above 0."""
    value = float(text)
    if not 0 < value < math.inf:
        raise ValueError
    return value


def count(text: str) -> int:
    """A whole number above 0."""
    if int(text) < 1:
        raise ValueError
    return int(text)


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m verify", description=__doc__.splitlines()[0])
    parser.add_argument("certificate", type=Path, help="a certificate, or a folder of them")
    parser.add_argument("instance", type=Path, help="the instance, population, or folder of instances")
    parser.add_argument("--seconds", type=duration, default=3600.0, help="most time for one certificate")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes, for a folder")
    parser.add_argument("--sample", type=count, help="of a folder check only so many, drawn at random")
    given = parser.parse_args(arguments)
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    for path in (given.certificate, given.instance):
        if not path.exists():
            sys.stderr.write(f"verify: {plain(str(path))}: no such file or folder\n")
            return 2
    instances = by_digest(given.instance) if given.instance.is_dir() else given.instance
    if given.certificate.is_dir():
        try:
            return check_folder(given.certificate, instances, given.seconds, max(1, given.jobs), given.sample)
        except Rejected as reason:
            print(f"REJECTED: {reason}")
            return 4
    outcome = examine(given.certificate, instances, given.seconds)
    print(outcome.line)
    return 0 if outcome.claim else 4


if __name__ == "__main__":
    sys.exit(main())
