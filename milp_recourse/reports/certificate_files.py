"""Certificates on disk: a file per applicant, or an archive per thousand of a large population.

The checker reads those of robust answers before anybody says that they are proven.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from gzip import decompress
from pathlib import Path
from tempfile import TemporaryDirectory

from milp_recourse.errors import BadInput, MachineFailed
from milp_recourse.formats.strict_json import read_bytes, write_gzipped, write_json, write_whole
from milp_recourse.formats.write import write_instance
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result
from milp_recourse.questions.regions import Region
from milp_recourse.questions.robust import Robust

LARGEST_CERTIFICATE = 64 * 2**20
"""The most bytes of a certificate, as ``verify/`` reads it."""

_UNREADABLE = (OSError, RuntimeError, KeyError, ValueError, zlib.error, zipfile.BadZipFile)
"""What reading an archive raises that is none, or is broken."""

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
    files removed. So nothing is lost whenever this is stopped. What is no archive is replaced.

    Raises
    ------
    MachineFailed
        A certificate in the archive is broken.
    """
    names = [f"{k}.json.gz" for k in range(chunk * CHUNK, (chunk + 1) * CHUNK)]
    inside, archive = folder / "certificates", _archive(folder, chunk)
    loose = [name for name in names if (inside / name).is_file()]
    if not loose:
        return
    contents = {}
    if zipfile.is_zipfile(archive):
        try:
            with zipfile.ZipFile(archive) as old:
                contents = {name: _member(old, name) for name in set(names).intersection(old.namelist())}
        except (zipfile.BadZipFile, zlib.error, RuntimeError) as error:
            advice = "remove it, and its certificates are made again"
            raise MachineFailed(f"{archive}: broken: {error}: {advice}") from None
    contents |= {name: (inside / name).read_bytes() for name in loose}
    write_whole(zipped({name: contents[name] for name in names if name in contents}), archive)
    for name in loose:
        (inside / name).unlink()


def zipped(contents: Mapping[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """An archive that depends on nothing but what is in it; certificates are stored, being compressed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as new:
        for name, content in contents.items():
            info = zipfile.ZipInfo(name)
            info.compress_type, info.create_system = compression, 3
            new.writestr(info, content)
    return buffer.getvalue()


def certificate_files(certificates: Mapping[int, bytes], people: int) -> dict[str, bytes]:
    """The files of a folder with these certificates, for a population of so many people."""
    if people <= CHUNK:
        return {f"certificates/{k}.json.gz": certificates[k] for k in sorted(certificates)}
    chunks: dict[int, dict[str, bytes]] = {}
    for k in sorted(certificates):
        chunks.setdefault(k // CHUNK, {})[f"{k}.json.gz"] = certificates[k]
    return {_archive(Path(), chunk).as_posix(): zipped(members) for chunk, members in chunks.items()}


def stored(folder: Path) -> set[int]:
    """The applicants whose certificates a folder has, in files or in archives that can be read."""
    names = [file.name for file in (folder / "certificates").glob("*.json.gz")]
    for archive in (folder / "certificates").glob("*.zip"):
        with suppress(*_UNREADABLE), zipfile.ZipFile(archive) as file:
            names += file.namelist()
    numbers = (name.partition(".")[0] for name in names)
    return {int(number) for number in numbers if number.isdecimal() and len(number) < 19}


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
            return read_bytes(file, most=LARGEST_CERTIFICATE, packed=True)
        with zipfile.ZipFile(archive) as stored:
            return _member(stored, file.name)
    except (BadInput, *_UNREADABLE):
        raise BadInput("INDEX", index, f"an applicant with a certificate in {folder}") from None


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    """What an archive holds under a name; raise BadZipFile where it could be made to fill the memory."""
    info = archive.getinfo(name)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise zipfile.BadZipFile("packed in another way than deflated, which zipfile unpacks without bound")
    with archive.open(info) as stream:
        content = stream.read(LARGEST_CERTIFICATE + 1)
    if len(content) > LARGEST_CERTIFICATE:
        raise zipfile.BadZipFile("too large")
    return content


def _archive(folder: Path, chunk: int) -> Path:
    return folder / "certificates" / f"{chunk * CHUNK}-{(chunk + 1) * CHUNK - 1}.zip"


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
