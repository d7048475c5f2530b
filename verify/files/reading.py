"""Files and strict JSON within limits (sections 4 and 9)."""

from __future__ import annotations

import json
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from verify.files.shapes import conform, refuse
from verify.kernel.checks import Rejected

LARGEST_FILE = 64 * 2**20
MOST_ROOM = 2_200_000
"""The most that JSON text may ask for, in units of up to 60 bytes of memory: 1 for a comma, 2 for a list, 4
for an object, and 1 for 8 bytes of text that is not all ASCII (a character may then take 4 bytes)."""

PIECE = 2**20
"""How many bytes are read at a time: a stream makes room for as many as it is asked for."""

MOST_PARTS = 10_000
"""How many gzipped parts one after the other a file may consist of."""

ARRAYS = ("feature", "threshold", "left", "right", "value")
"""The keys of a tree's numbers."""

INSTANCE = 8
"""How many times as large a file of the problem may be, in bytes and in memory: it is the reader's own."""


def read_raw(path: Path, times: int = 1) -> bytes:
    """The bytes of a regular file, not unpacked; raise :class:`Rejected` beyond ``times`` LARGEST_FILE."""
    if not path.is_file():
        raise Rejected(f"{path}: no such file")
    try:
        if path.stat().st_size > times * LARGEST_FILE:
            raise Rejected(f"{path.name}: larger than {times * LARGEST_FILE} bytes")
        with path.open("rb") as stream:
            return limited(stream, path.name, times)
    except OSError as error:
        raise Rejected(f"{path.name}: unreadable: {error}") from None


def unpacked(raw: bytes, path: Path, times: int = 1) -> bytes:
    """A file's content, unpacked where its name ends in ``.gz``; raise :class:`Rejected` beyond the limit."""
    if path.suffix != ".gz":
        return raw
    try:
        return b"".join(_inflated(memoryview(raw), path.name, times))
    except zlib.error as error:
        raise Rejected(f"{path.name}: unreadable: {error}") from None


def _inflated(raw: memoryview, name: str, times: int) -> Iterator[bytes]:
    """The pieces of a gzipped file. (The module gzip reads a header byte by byte, however long it is.)"""
    room, at = times * LARGEST_FILE, 0
    for _ in range(MOST_PARTS):
        part = zlib.decompressobj(wbits=31)
        while not part.eof:
            given = part.unconsumed_tail or raw[at : at + 2**16]
            at += 0 if part.unconsumed_tail else len(given)
            if not given:
                raise Rejected(f"{name}: unreadable: the gzipped data end too early")
            piece = part.decompress(given, PIECE)
            room -= len(piece)
            if room < 0:
                raise Rejected(f"{name}: larger than {times * LARGEST_FILE} bytes")
            yield piece
        at -= len(part.unused_data)
        if at == len(raw):
            return
    raise Rejected(f"{name}: more than {MOST_PARTS} gzipped parts")


def limited(stream: Any, name: str, times: int = 1) -> bytes:
    """The content of a stream; raise :class:`Rejected` beyond ``times`` LARGEST_FILE."""
    pieces, room = list[bytes](), times * LARGEST_FILE
    while piece := stream.read(PIECE):
        pieces.append(piece)
        room -= len(piece)
        if room < 0:
            raise Rejected(f"{name}: larger than {times * LARGEST_FILE} bytes")
    return b"".join(pieces)


def read_bytes(path: Path, times: int = 1) -> bytes:
    """A file's content, unpacked where its name ends in ``.gz``."""
    return unpacked(read_raw(path, times), path, times)


def parse_json(content: bytes, name: str, times: int = 1) -> Any:
    """The value of JSON text, with every number a float; :func:`conform` rejects infinite ones.

    A tree's numbers, of which there may be millions, become arrays, which take a quarter of the memory.
    """

    def refuse_constant(text: str) -> NoReturn:
        raise Rejected(f"{name}: {text} is not a finite number")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
            raise Rejected(f"{name}: the key {twice[:40]!r} twice")
        if found.keys() >= {*ARRAYS}:
            for key in ARRAYS:
                if isinstance(found[key], list) and {*map(type, found[key])} == {float}:
                    found[key] = array("d", found[key])
        return found

    room = content.count(b",") + 2 * content.count(b"[") + 4 * content.count(b"{")
    if room + (0 if content.isascii() else len(content) // 8) > times * MOST_ROOM:
        raise Rejected(f"{name}: more values than fit in the memory that is allowed (section 9)")
    try:
        text = content.decode("utf-8")
        value = json.loads(text, parse_int=float, parse_constant=refuse_constant, object_pairs_hook=unique)
        if "\\u" in text:
            _look_at_text(value)
        return value
    except RecursionError:
        raise Rejected(f"{name}: nested too deeply") from None
    except ValueError as error:  # no UTF-8, no JSON
        raise Rejected(f"{name}: no JSON: {error}") from None


def _look_at_text(value: Any) -> None:
    """Raise :class:`ValueError` where a string is no text: it has half of a surrogate pair."""
    if isinstance(value, str):
        value.encode("utf-8")
    elif isinstance(value, dict | list):
        for part in value:
            _look_at_text(part)
        for part in value.values() if isinstance(value, dict) else ():
            _look_at_text(part)


def by(key: str, shapes: dict[str, Any]) -> Callable[[Any, str], Any]:
    """The shape of an object whose value for ``key`` chooses, from ``shapes``, its other keys."""

    def chosen(value: Any, where: str) -> Any:
        kind: Any = value.get(key) if isinstance(value, dict) else None
        conform(kind, set(shapes), f"{where}.{key}")
        return conform(value, {key: str, **shapes[kind]}, where)

    return chosen


def word(value: Any, where: str) -> str:
    """A name or a label: 1 to 200 characters without control characters."""
    if not 1 <= len(conform(value, str, where)) <= 200 or any(c < " " or c == "\x7f" for c in value):
        refuse(where, value, "a name of 1 to 200 characters, no control characters")
    return str(value)


def share(value: Any, where: str) -> float:
    """A number from 0 to 1."""
    if not 0 <= conform(value, float, where) <= 1:
        refuse(where, value, "a number from 0 to 1")
    return float(value)


def interval(value: Any, where: str) -> list[float]:
    """[lo, hi] with lo <= hi."""
    low, high = conform(value, (float, float), where)
    if low > high:
        raise Rejected(f"{where}: got [{low}, {high}]; allowed: [lo, hi] with lo <= hi")
    return [low, high]
