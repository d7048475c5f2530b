"""Reading JSON strictly, and writing files completely or not at all.

Python's own reader accepts NaN, Infinity, 1e400 and repeated keys. Here each of these raises BadInput, and so
does a file that is missing, incomplete, not UTF-8, nested too deeply or too large. ``verify/`` reads problems
up to the same size: certificates for a larger one could not be checked.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import stat
import tempfile
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

from milp_recourse.errors import MACHINE, BadInput, MachineFailed

LARGEST = 256 * 2**20
"""The most bytes that a JSON file may have, unpacked."""
LARGEST_TABLE = 4 * LARGEST
"""The same of a CSV file."""
MOST_VALUES = 17_600_000
"""The most that JSON text may hold: its commas, twice its lists, four times its objects and, if it is not all
ASCII, an eighth of its bytes (:mod:`verify.files.reading` says why)."""
MOST_PARTS = 10_000
"""How many gzipped parts one after the other a file may consist of."""

UNFINISHED = ".unfinished"
"""How the names of temporary files end (:func:`write_whole`); they begin with a point."""

WIDTH = 110
"""How long a line of :func:`dump` may be."""

_LARGEST_PLAIN_INTEGER = 2**53


def read_bytes(
    path: str | Path,
    wanted: str = "a JSON file, .json or .json.gz",
    most: int = LARGEST,
    packed: bool = False,
) -> bytes:
    """The content of a regular file, decompressed if its name ends in ``.gz``.

    Parameters
    ----------
    wanted
        What kind of file it should be, for the message.
    most
        How many bytes it may have, unpacked. Of a longer one no more is read or unpacked.
    packed
        Whether to return the content as it is in the file.

    Raises
    ------
    BadInput
        The file is missing, no regular file, unreadable or too large, or its name ends in ``.gz`` and its
        content is not gzipped, or broken.
    """
    shown = str(path)

    def too_large() -> BadInput:
        return BadInput("file", f"more than {most // 2**20} MiB", f"{wanted}, no larger unpacked", shown)

    try:
        target = Path(path)
        if target.is_dir():
            raise BadInput("file", "a directory", wanted, shown)
        if not target.exists():
            raise BadInput("file", "nothing: no such file", wanted, shown)
        if not target.is_file():
            raise BadInput("file", "a device or pipe", wanted, shown)
        if target.stat().st_size > most:
            raise too_large()
        with target.open("rb") as stream:
            content = stream.read(most + 1)
    except (OSError, ValueError) as error:
        raise BadInput("file", f"an error: {error}", "a readable file", shown) from None
    if len(content) > most:
        raise too_large()
    if target.suffix != ".gz" or packed:
        return content
    try:
        unpacked = _inflated(content, most)
        if unpacked is None:
            raise too_large()
        return unpacked
    except (ValueError, zlib.error) as error:
        raise BadInput(
            "file", f"broken gzip data: {error}", f"{wanted}, gzipped where the name says so", shown
        ) from None


def _inflated(content: bytes, most: int) -> bytes | None:
    """What gzipped content holds; None if that is more than ``most`` bytes.

    Raises
    ------
    ValueError, zlib.error
        It is broken, or ends too early.
    """
    packed, at, pieces, room = memoryview(content), 0, list[bytes](), most
    for _ in range(MOST_PARTS):
        part = zlib.decompressobj(wbits=31)
        while not part.eof:
            given = part.unconsumed_tail or packed[at : at + 2**16]
            at += 0 if part.unconsumed_tail else len(given)
            if not given:
                raise ValueError("they end too early")
            pieces.append(part.decompress(given, 2**20))
            room -= len(pieces[-1])
            if room < 0:
                return None
        at -= len(part.unused_data)
        if at == len(content):
            return b"".join(pieces)
    raise ValueError(f"more than {MOST_PARTS} parts")


def read_json(path: str | Path) -> Any:
    """The value in a ``.json`` or ``.json.gz`` file.

    Raises
    ------
    BadInput
        See :func:`read_bytes` and :func:`parse_json`; the error names the file.
    """
    try:
        return parse_json(read_bytes(path))
    except BadInput as error:
        raise error.in_file(str(path)) from None


def parse_json(content: bytes) -> Any:
    """The value of UTF-8 JSON text; integers beyond 2^53 become their nearest double.

    Raises
    ------
    BadInput
        The content is no UTF-8 or no JSON, is nested too deeply or holds too much, or has NaN, Infinity, a
        number too large for a double, half of a surrogate pair, or a repeated key.
    """
    refused: list[_Refused] = []

    def refuse(got: str, allowed: str) -> _Refused:
        refused.append(_Refused(got, allowed))
        return refused[-1]

    def whole(text: str) -> Any:
        value = int(text) if len(text) < 400 else _LARGEST_PLAIN_INTEGER
        return value if abs(value) < _LARGEST_PLAIN_INTEGER else real(text)

    def real(text: str) -> Any:
        value = float(text)
        return value if math.isfinite(value) else refuse(text, "a number a double can hold")

    def constant(text: str) -> Any:
        return refuse(text, "a finite number")

    def unique(pairs: list[tuple[str, Any]]) -> Any:
        mapping = dict(pairs)
        if len(mapping) < len(pairs):
            twice = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
            return refuse(f"the key {twice!r} twice", "each key once")
        return mapping

    room = content.count(b",") + 2 * content.count(b"[") + 4 * content.count(b"{")
    if room + (0 if content.isascii() else len(content) // 8) > MOST_VALUES:
        allowed = f"at most {MOST_VALUES}, a list counting as 2 and an object as 4"
        raise BadInput("file", "too many values", allowed)
    try:
        text = content.decode("utf-8")
        value = json.loads(
            text, parse_int=whole, parse_float=real, parse_constant=constant, object_pairs_hook=unique
        )
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False, default=str).encode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput("file", f"a byte that is not UTF-8 at {error.start}", "UTF-8 text") from None
    except UnicodeEncodeError:
        raise BadInput("file", "half of a surrogate pair", "Unicode text") from None
    except RecursionError:
        raise BadInput("file", "nesting too deep to read", "JSON of a few dozen levels") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise BadInput("file", f"no JSON: {error.msg} at {where}", "a JSON object") from None
    if refused:
        path, first = _locate(value)
        raise BadInput(path, first.got, first.allowed)
    return value


def dump(value: Any) -> str:
    """JSON text that people can read, and tools can compare line by line.

    A container is on one line if it fits into :data:`WIDTH` or is a list of plain values; any other has one
    entry per line. Floats are written by repr; NaN and infinities are refused.

    Examples
    --------
    >>> print(dump({"a": [1, 2.5], "b": None}), end="")
    {"a": [1, 2.5], "b": null}
    """
    return _lines(value, "", 0) + "\n"


def _lines(value: Any, indent: str, used: int) -> str:
    """The text of a value, before which its first line has so many characters."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    if not any(isinstance(one, (list, tuple, dict)) for one in parts):
        flat = json.dumps(value, allow_nan=False, ensure_ascii=False)
        if not isinstance(value, dict) or len(flat) + used <= WIDTH:
            return flat
    inner, (first, last) = f"{indent} ", "{}" if isinstance(value, dict) else "[]"
    names = [f"{_name(key)}: " for key in value] if isinstance(value, dict) else [""] * len(value)
    each = zip(names, parts, strict=True)
    entries = [name + _lines(one, inner, len(inner) + len(name)) for name, one in each]
    if used + sum(len(one) + 2 for one in entries) <= WIDTH and not any("\n" in one for one in entries):
        return first + ", ".join(entries) + last
    body = ",\n".join(inner + one for one in entries)
    return f"{first}\n{body}\n{indent}{last}"


def _name(key: Any) -> str:
    """A key as JSON has it, which knows texts only."""
    return json.dumps(key if isinstance(key, str) else json.dumps(key, allow_nan=False), ensure_ascii=False)


def write_json(value: Any, path: str | Path) -> None:
    """Write JSON (:func:`dump`), gzipped if the name ends in ``.gz``, completely or not at all.

    Raises
    ------
    BadInput, MachineFailed
        As :func:`write_whole`.
    ValueError
        A number is not finite.
    """
    content = dump(value).encode("utf-8")
    if Path(path).suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    write_whole(content, path)


def write_gzipped(content: bytes, path: str | Path) -> None:
    """Write a file whose content is given gzipped: plain, unless the file's name ends in .gz."""
    write_whole(content if Path(path).suffix == ".gz" else gzip.decompress(content), path)


def write_whole(content: bytes, path: str | Path) -> None:
    """Write a file completely or not at all: into a temporary file beside it, which is then renamed.

    A link is followed. Into a device or a pipe, /dev/stdout too, the content is written as it is.

    Raises
    ------
    BadInput
        The file cannot be written.
    MachineFailed
        The disk is full or broken.
    """
    try:
        target = Path(os.path.realpath(path))
        if _is_stream(path):
            with open(path, "ab") as stream:
                stream.write(content)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, beside = tempfile.mkstemp(UNFINISHED, f".{target.name[:80]}.", target.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            Path(beside).chmod(0o644)
            Path(beside).replace(target)
        except BaseException:
            Path(beside).unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in MACHINE:
            raise MachineFailed(f"{path}: not written: {error.strerror}") from None
        raise BadInput("file", f"an error: {error}", "a path that can be written", str(path)) from None


def _is_stream(path: str | Path) -> bool:
    """Whether a path names a device, a pipe or an open file of a process, which is written to as it is."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    special = not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
    return special or os.path.abspath(path).startswith(("/dev/", "/proc/"))


class _Refused:
    """Takes the place of a value that is not allowed, until its path in the file is known."""

    def __init__(self, got: str, allowed: str) -> None:
        self.got, self.allowed = got, allowed

    def __str__(self) -> str:
        return self.got


def _locate(value: Any) -> tuple[str, _Refused]:
    """Path of the first refused value in document order."""
    stack: list[tuple[str, Any]] = [("", value)]
    while stack:
        path, item = stack.pop()
        if isinstance(item, _Refused):
            return path or "top level", item
        children: list[tuple[Any, Any]] = []
        if isinstance(item, dict):
            children = list(item.items())
        elif isinstance(item, list):
            children = list(enumerate(item))
        stack.extend((f"{path}.{key}" if path else str(key), child) for key, child in reversed(children))
    raise AssertionError("refused values sit in the tree")  # pragma: no cover
