"""Certificates on disk: a file per applicant, or an archive per thousand of a large population."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from pathlib import Path

from milp_recourse.errors import BadInput
from milp_recourse.formats.strict_json import write_whole
from milp_recourse.problem.result import Result

CHUNK = 1000
"""The number of applicants whose certificates share an archive. Populations up to this size have none."""


def store_certificate(result: Result, index: int, folder: Path) -> Result:
    """Write the certificate, if any, as certificates/<index>.json.gz; return the result with the path."""
    if result.evidence is None:
        return result
    path = Path("certificates") / f"{index}.json.gz"
    (folder / "certificates").mkdir(exist_ok=True)
    write_whole(result.evidence, folder / path)
    return replace(result, certificate=path.as_posix(), evidence=None)


def pack(folder: Path, chunk: int) -> None:
    """Move the certificates of applicants CHUNK * chunk, ..., CHUNK * (chunk + 1) - 1 into their archive.

    The archive is written completely, with the certificates that were in it before, and only then are the
    files removed. So nothing is lost whenever this is stopped.
    """
    names = [f"{k}.json.gz" for k in range(chunk * CHUNK, (chunk + 1) * CHUNK)]
    inside, archive = folder / "certificates", _archive(folder, chunk)
    loose = [name for name in names if (inside / name).is_file()]
    if not loose:
        return
    contents = {}
    if archive.is_file():
        with zipfile.ZipFile(archive) as old:
            contents = {name: old.read(name) for name in old.namelist()}
    contents |= {name: (inside / name).read_bytes() for name in loose}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as new:  # stored: the members are compressed
        for name in names:
            if name in contents:
                new.writestr(zipfile.ZipInfo(name), contents[name])
    write_whole(buffer.getvalue(), archive)
    for name in loose:
        (inside / name).unlink()


def extract(folder: Path, index: int) -> bytes:
    """An applicant's certificate, gzipped, from its file or its archive.

    Raises
    ------
    BadInput
        The folder has no certificate of this applicant.
    """
    file, archive = folder / "certificates" / f"{index}.json.gz", _archive(folder, index // CHUNK)
    try:
        if file.is_file():
            return file.read_bytes()
        with zipfile.ZipFile(archive) as stored:
            return stored.read(file.name)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):
        raise BadInput("INDEX", index, f"an applicant with a certificate in {folder}") from None


def _archive(folder: Path, chunk: int) -> Path:
    return folder / "certificates" / f"{chunk * CHUNK}-{(chunk + 1) * CHUNK - 1}.zip"
