"""Small files that a reader could be made to unpack to gigabytes, or to read for hours."""

from __future__ import annotations

import gzip
import zipfile
import zlib
from pathlib import Path


def gzipped(path: Path, head: bytes, filler: bytes, times: int) -> Path:
    """A gzipped file of ``head`` and so many megabytes of ``filler``, written without packing them twice."""
    part = zlib.compressobj(9, wbits=31)
    with path.open("wb") as stream:
        stream.write(part.compress(head))
        megabyte = filler * (2**20 // len(filler))
        for _ in range(times):
            stream.write(part.compress(megabyte))
        stream.write(part.flush())
    return path


def long_header(path: Path) -> Path:
    """A gzip header whose file name does not end: thirty megabytes."""
    path.write_bytes(b"\x1f\x8b\x08\x08" + bytes(6) + b"x" * (30 * 2**20))
    return path


def many_parts(path: Path) -> Path:
    """A million and a half empty gzipped parts, one after the other."""
    empty = gzip.compress(b"", mtime=0)
    path.write_bytes(empty * (30 * 2**20 // len(empty)))
    return path


def archive(path: Path, name: str, megabytes: int, packed: int) -> Path:
    """An archive of one member of so many megabytes of spaces."""
    with zipfile.ZipFile(path, "w", packed) as stream, stream.open(name, "w") as member:
        for _ in range(megabytes):
            member.write(b" " * 2**20)
    return path


def long_list(path: Path) -> Path:
    """An archive with a list of members of twelve megabytes."""
    with zipfile.ZipFile(path, "w") as stream:
        for k in range(200):
            stream.writestr(f"{k}-{'x' * 60_000}.json", "")
    return path
