"""Strict JSON within limits (sections 1 and 8)."""

from __future__ import annotations

import gzip
import json
import math
import time
import zlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

LARGEST_FILE = 32 * 2**20


class Rejected(Exception):
    """The first reason why a certificate proves nothing."""


class Clock:
    """Rejects when the time is up (section 8)."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds

    def __call__(self) -> None:
        """Look at the time."""
        if time.monotonic() > self.end:
            raise Rejected("the time allowed is up")


def read_bytes(path: Path) -> bytes:
    """What a regular file holds, unpacked where its name ends in ``.gz``; never more than the limit."""
    if not path.is_file():
        raise Rejected(f"{path}: no such file")
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as stream:
            content: bytes = stream.read(LARGEST_FILE + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise Rejected(f"{path.name}: unreadable: {error}") from None
    if len(content) > LARGEST_FILE:
        raise Rejected(f"{path.name}: larger than {LARGEST_FILE} bytes unpacked")
    return content


def read_json(path: Path) -> Any:
    """The value of a JSON file; every number a float, no key twice."""
    return parse_json(read_bytes(path), path.name)


def parse_json(content: bytes, name: str) -> Any:
    """The value of JSON text; numbers that overflow are left to :func:`a_number`, which speeds this up."""

    def refuse_constant(text: str) -> NoReturn:
        raise Rejected(f"{name}: {text} is not a finite number")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
            raise Rejected(f"{name}: the key {twice[:40]!r} twice")
        return made

    try:
        return json.loads(
            content.decode("utf-8"),
            parse_int=float,
            parse_constant=refuse_constant,
            object_pairs_hook=unique,
        )
    except RecursionError:
        raise Rejected(f"{name}: nested too deeply") from None
    except ValueError as error:  # no UTF-8, no JSON
        raise Rejected(f"{name}: no JSON: {error}") from None


def refuse(where: str, value: Any, allowed: str) -> NoReturn:
    """Reject a value of the wrong type or size."""
    shown = repr(value) if isinstance(value, str | float | bool | None) else f"a {type(value).__name__}"
    raise Rejected(f"{where}: got {shown[:60]}; allowed: {allowed}")


def an_object(
    value: Any, where: str, required: Iterable[str], optional: Iterable[str] = (), absent: Any = None
) -> dict[str, Any]:
    """A JSON object with exactly these keys; optional ones that are absent are filled in."""
    required, optional = tuple(required), tuple(optional)
    if not isinstance(value, dict):
        refuse(where, value, "an object")
    for key in value:
        if key not in required and key not in optional:
            raise Rejected(f"{where}: unknown key {key[:40]!r}")
    for key in required:
        if key not in value:
            raise Rejected(f"{where}: the key {key!r} is missing")
    return dict.fromkeys(optional, absent) | value


def a_list(value: Any, where: str, length: int | None = None) -> list[Any]:
    """A JSON list, of this length where one is given."""
    if not isinstance(value, list) or (length is not None and len(value) != length):
        refuse(where, value, "a list" if length is None else f"a list of {length}")
    return value


def a_number(value: Any, where: str, least: float = -math.inf) -> float:
    """A number at least ``least``."""
    if type(value) is not float or not math.isfinite(value) or value < least:
        refuse(where, value, "a number" if least == -math.inf else f"a number at least {least:g}")
    return value


def positive(value: Any, where: str) -> float:
    """A number above 0."""
    if a_number(value, where) <= 0:
        refuse(where, value, "a number above 0")
    return float(value)


def an_index(value: Any, where: str, count: int) -> int:
    """A whole number from 0 to ``count`` - 1."""
    if type(value) is not float or not value.is_integer() or not 0 <= value < count:
        refuse(where, value, f"a whole number from 0 to {count - 1}")
    return int(value)


def an_interval(value: Any, where: str) -> list[float]:
    """[lo, hi] with lo <= hi."""
    low, high = (a_number(end, where) for end in a_list(value, where, 2))
    if low > high:
        refuse(where, low, "[lo, hi] with lo <= hi")
    return [low, high]


def a_word(value: Any, where: str, among: Iterable[str] | None = None) -> str:
    """A string, one of ``among`` where given."""
    if not isinstance(value, str) or (among is not None and value not in among):
        refuse(where, value, "text" if among is None else "one of " + ", ".join(among))
    return value
