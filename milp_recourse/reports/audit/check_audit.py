"""Checks an auditor's file: what its manifest, its certificates and the package itself say of it."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import SystemRandom
from tempfile import TemporaryDirectory

from milp_recourse.errors import BadInput, RecourseError
from milp_recourse.formats.strict_json import LARGEST, LARGEST_TABLE, parse_json, read_json, write_whole
from milp_recourse.reports.audit.audited_run import AuditedRun, finished_run
from milp_recourse.reports.audit.made_with import code_digests, versions
from milp_recourse.reports.audit.make_audit import (
    ABOUT,
    NO_RECOURSE_FILE,
    REASONS_FILE,
    SHEETS,
    Asked,
    Texts,
    contents,
    rows_in,
    searched,
)

_NAME = re.compile(r"(certificates/)?[A-Za-z0-9_][A-Za-z0-9_.-]*")


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The folder of an audit, which may be a zip.

    Raises
    ------
    BadInput
        The zip is broken or too large, or holds other files than an audit does.
    """
    if path.is_dir():
        yield path
        return
    with TemporaryDirectory() as place:
        folder, room = Path(place), LARGEST_TABLE
        try:
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
                if len(set(names)) < len(names) or not all(map(_NAME.fullmatch, names)):
                    raise zipfile.BadZipFile("a name twice, or one that no audit has")
                for info in archive.infolist():
                    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                        raise zipfile.BadZipFile("packed in another way than deflated")
                    with archive.open(info) as stream:
                        content = stream.read(min(room, LARGEST) + 1)
                    room -= len(content)
                    if room < 0 or len(content) > LARGEST:
                        raise zipfile.BadZipFile("too large")
                    write_whole(content, folder / info.filename)
        except (OSError, RuntimeError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise BadInput("AUDIT", f"{path}: {error}", "a zip that milp-recourse audit wrote") from None
        yield folder


def differences(folder: Path, jobs: int = 1, sample: int | None = None) -> tuple[list[str], list[str]]:
    """What of an audit the package would write otherwise, and what it cannot say anything about.

    Every table is made anew from the problem, the answers and their certificates.

    Parameters
    ----------
    sample
        Look for the reasons of so many people only, drawn at random, and take those of others from the
        audit; None: of everybody.
    """
    run, about = finished_run(folder), read_json(folder / ABOUT)
    asked = Asked(about.get("reasons"), about.get("why"))
    some = None if sample is None else _drawn(run, sample)
    anew = searched(run, asked, jobs, some)
    if some is not None:
        own = (rows_in((folder / name).read_bytes()) for name in (REASONS_FILE, NO_RECOURSE_FILE))
        chosen = set(map(str, some))
        reasons, stuck = (_merged(old, new, chosen) for old, new in zip(own, anew, strict=True))
        anew = reasons, stuck
    wrong, unsaid, files = [], [], contents(run, asked, lambda: anew)
    for name, content in files.items():
        if not (folder / name).is_file() or (folder / name).read_bytes() != content:
            if name == ABOUT:
                wrong += _about(about, parse_json(content))
            elif name == SHEETS and about.get("versions") != versions():
                unsaid.append(f"{name}: written with other versions, its bytes are not compared")
            else:
                wrong.append(f"{name}: not what follows from the problem and the answers")
    if about.get("versions") != versions() or about.get("code") != code_digests():
        made = about.get("versions", {}).get("milp-recourse")
        unsaid.append(f"versions: as stated, {made}; this is {versions()['milp-recourse']}")
    if sample is not None:
        unsaid.append(f"reasons of {len(run.people) - len(some or ())} people: not drawn")
    return wrong, unsaid


def _drawn(run: AuditedRun, sample: int) -> list[int]:
    return sorted(SystemRandom().sample(range(len(run.people)), min(sample, len(run.people))))


def _merged(own: Texts, new: Texts, chosen: set[str]) -> Texts:
    rows = [row for row in own if row[0] not in chosen] + new
    return sorted(rows, key=lambda row: int(row[0]))  # stable: one person's rows stay in order


def _about(stated: Mapping[str, object], made: Mapping[str, object]) -> list[str]:
    """Where about.json says something else than it should; versions may differ where the code does."""
    free = set() if stated.get("code") == made["code"] else {"code", "versions"}
    keys = sorted(key for key in stated.keys() | made.keys() if stated.get(key) != made.get(key))
    return [f"{ABOUT}: {key}: not so" for key in keys if key not in free]


def check_audit(
    path: Path, arguments: list[str] | None = None, jobs: int = 1, sample: int | None = None
) -> int:
    """Check an audit, print what was found, and return the exit code: 0, or 4 if something is wrong.

    The checker ``verify/`` compares the files with the manifest and checks the answers and their
    certificates; then the package makes every table anew.

    Parameters
    ----------
    arguments
        Further ones for the checker.
    """
    from verify.__main__ import main as check

    with unpacked(path) as folder:
        given = [] if sample is None else [f"--sample={sample}"]
        code = check([str(folder), f"--jobs={jobs}", *given, *(arguments or [])])
        if code not in (0, 2):
            return code
        try:
            bare = not any(folder.glob("certificates/*"))
            wrong, unsaid = differences(folder, jobs, sample)
        except RecourseError as error:
            bare, wrong, unsaid = False, [" ".join(str(error).split())], []
        except (OSError, ValueError, AttributeError, IndexError, TypeError) as error:
            bare, wrong, unsaid = False, [f"not an audit: {type(error).__name__}: {error}"], []
        if code and not bare:
            wrong.append("the checker came to no verdict")
        for line in unsaid:
            print(f"NOT CHECKED {line}")
        for line in wrong:
            print(f"REJECTED: {line}")
        proofs = "; no answer has a certificate" if bare else ""
        if not wrong:
            print(f"VERIFIED audit: every table follows from the problem and the answers{proofs}")
        return 4 if wrong else 0
