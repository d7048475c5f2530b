"""Finds the certificates of a folder: files of their own, and members of zip archives."""

from __future__ import annotations

import io
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
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""How members of archives may be packed. The module zipfile unpacks others without bound."""
MOST_LISTED = 8 * 2**20
"""The most bytes that an archive's list of members may have."""
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
            if archive.getinfo(self.member).compress_type not in PACKED:
                raise Rejected(f"{self.path.name}: {self.member:.60}: packed in another way than deflated")
            with archive.open(self.member) as stream:
                return unpacked(limited(stream, self.member), Path(self.member))
        except UNREADABLE as error:
            raise Rejected(f"{self.path.name}: unreadable: {error}") from None


@lru_cache(2)
def _archive(path: Path, state: int, process: int) -> zipfile.ZipFile:
    """Open an archive, once per process and state: processes that share an open file share its position."""
    return Archive(path)


class _Bounded(io.FileIO):
    """A file of which not more than MOST_LISTED bytes are read at a time, as zipfile reads its list."""

    def read(self, size: int | None = -1, /) -> bytes:
        left = os.fstat(self.fileno()).st_size - self.tell()
        if (left if size is None or size < 0 else min(size, left)) > MOST_LISTED:
            raise Rejected(f"{Path(self.name).name}: a list of members of more than {MOST_LISTED} bytes")
        return super().read(size) or b""


class Archive(zipfile.ZipFile):
    """An archive; raise :class:`Rejected` where its list of members is too long."""

    _stream: _Bounded | None = None

    def __init__(self, path: Path) -> None:
        if not path.is_file():  # opening a pipe would wait
            raise Rejected(f"{path.name}: no file")
        self._stream = _Bounded(path)
        try:
            super().__init__(self._stream)
        except BaseException:
            self._stream.close()
            raise

    def close(self) -> None:
        """Close the file, too."""
        super().close()
        if self._stream is not None:
            self._stream.close()


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
                with Archive(path) as archive:
                    members = archive.namelist()
            except UNREADABLE as error:
                raise Rejected(f"{path.name}: unreadable: {error}") from None
            if wrong := [name for name in members if "/" in name or not name.endswith(ENDINGS)]:
                raise Rejected(f"{path.name}: holds {wrong[0]:.60}; allowed: NAME.json or NAME.json.gz")
            yield from (Place(path, name) for name in members)
