"""Finds the certificates of a folder: files of their own, and members of zip archives."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from verify.files.reading import limited, read_bytes, unpacked
from verify.kernel.checks import Rejected

ENDINGS = (".json", ".json.gz")
UNREADABLE = (OSError, RuntimeError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)


def counted(name: str) -> bool:
    """Whether a name is a whole number in ASCII digits without leading zeros (007 is none)."""
    return name.isascii() and name.isdecimal() and len(name) < 19 and name == str(int(name))


class Place(NamedTuple):
    """A file, or a member of an archive."""

    path: Path
    member: str | None = None

    @property
    def name(self) -> str:
        """The name of the archive's member, or of the file."""
        return self.member or self.path.name

    @property
    def number(self) -> str:
        """The name up to its first dot: in a population's folder, the applicant's index."""
        return self.name.split(".")[0]

    def read(self) -> bytes:
        """The content, unpacked, within the limit."""
        if self.member is None:
            return read_bytes(self.path)
        try:
            archive = _archive(self.path, self.path.stat().st_mtime_ns, os.getpid())
            with archive.open(self.member) as stream:
                return unpacked(limited(stream, self.member), Path(self.member))
        except UNREADABLE as error:
            raise Rejected(f"{self.path.name}: unreadable: {error}") from None


@lru_cache(2)
def _archive(path: Path, state: int, process: int) -> zipfile.ZipFile:
    """Open an archive, once per process and state: processes that share an open file share its position."""
    return zipfile.ZipFile(path)


def places(files: list[Path]) -> Iterator[Place]:
    """Every certificate among these files and in the archives among them.

    Raises :class:`Rejected` where an applicant or a name is there twice.
    """
    known: set[int | str] = set()
    for place in _every(files):
        short = place.number.isdecimal() and len(place.number) < 19
        key = int(place.number) if short and place.name.endswith(".gz") else place.name
        if key in known:
            raise Rejected(f"{place.name}: there twice; allowed: once, as a file or in an archive")
        known.add(key)
        yield place


def _every(files: list[Path]) -> Iterator[Place]:
    for path in files:
        if path.name.endswith(ENDINGS):
            yield Place(path)
        elif path.suffix == ".zip":
            try:
                with zipfile.ZipFile(path) as archive:
                    members = archive.namelist()
            except UNREADABLE as error:
                raise Rejected(f"{path.name}: unreadable: {error}") from None
            if wrong := [name for name in members if "/" in name or not name.endswith(ENDINGS)]:
                raise Rejected(f"{path.name}: holds {wrong[0]:.60}; allowed: NAME.json or NAME.json.gz")
            yield from (Place(path, name) for name in members)
