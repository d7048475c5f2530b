"""Strict JSON within limits (sections 1 and 8)."""

from __future__ import annotations

import gzip
import io
import json
import math
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import count, repeat
from pathlib import Path
from typing import Any, NoReturn

LARGEST_FILE = 32 * 2**20
LONGEST = 2**17


class Rejected(Exception):
    """The first reason why a certificate proves nothing."""


class Clock:
    """The time that one check may take (section 8)."""

    end = math.inf

    @classmethod
    @contextmanager
    def within(cls, seconds: float) -> Iterator[None]:
        """So much for what runs inside."""
        cls.end = time.monotonic() + seconds
        try:
            yield
        finally:
            cls.end = math.inf

    @classmethod
    def look(cls) -> None:
        """Raise :class:`Rejected` when the time is up."""
        if time.monotonic() > cls.end:
            raise Rejected("the time allowed is up")


def read_raw(path: Path) -> bytes:
    """What a regular file holds as it lies there; never more than the limit."""
    if not path.is_file():
        raise Rejected(f"{path}: no such file")
    try:
        with path.open("rb") as stream:
            return _limited(stream, path)
    except OSError as error:
        raise Rejected(f"{path.name}: unreadable: {error}") from None


def unpacked(raw: bytes, path: Path) -> bytes:
    """The content of a file, unpacked where its name ends in ``.gz``; never more than the limit."""
    if path.suffix != ".gz":
        return raw
    try:
        return _limited(gzip.GzipFile(fileobj=io.BytesIO(raw)), path)
    except (OSError, EOFError, zlib.error) as error:
        raise Rejected(f"{path.name}: unreadable: {error}") from None


def _limited(stream: Any, path: Path) -> bytes:
    content: bytes = stream.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise Rejected(f"{path.name}: larger than {LARGEST_FILE} bytes")
    return content


def read_bytes(path: Path) -> bytes:
    """What a file holds, unpacked."""
    return unpacked(read_raw(path), path)


def parse_json(content: bytes, name: str) -> Any:
    """The value of JSON text, every number a float (one that overflows is left to :func:`conform`)."""

    def refuse_constant(text: str) -> NoReturn:
        raise Rejected(f"{name}: {text} is not a finite number")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            twice = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
            raise Rejected(f"{name}: the key {twice[:40]!r} twice")
        return made

    try:
        text = content.decode("utf-8")
        value = json.loads(text, parse_int=float, parse_constant=refuse_constant, object_pairs_hook=unique)
        if "\\u" in text:  # half of a surrogate pair is no text
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        return value
    except RecursionError:
        raise Rejected(f"{name}: nested too deeply") from None
    except ValueError as error:  # no UTF-8, no JSON
        raise Rejected(f"{name}: no JSON: {error}") from None


def conform(value: Any, shape: Any, where: str) -> Any:  # noqa: PLR0912
    """The value if it has a shape, the absent optional keys of objects filled in with None.

    A shape is ``float`` (a finite number), ``str``, ``bool`` or ``list``; a set of words; ``[shape]``, a
    list; ``(shape, ...)``, a list of that length; ``{"key": shape, "key?": shape, ...}``, an object with
    these keys, some optional, or ``{str: shape}``, one with any; or a function of value and place.
    """
    if isinstance(shape, type):
        if type(value) is not shape or (isinstance(value, float) and not math.isfinite(value)):
            refuse(where, value, {float: "a number", str: "text", list: "a list"}.get(shape, "true or false"))
    elif isinstance(shape, set | frozenset):
        if not isinstance(value, str) or value not in shape:
            refuse(where, value, "one of " + ", ".join(sorted(shape)))
    elif isinstance(shape, list | tuple):
        if not isinstance(value, list) or (isinstance(shape, tuple) and len(value) != len(shape)):
            refuse(where, value, "a list" if isinstance(shape, list) else f"a list of {len(shape)}")
        inner = repeat(shape[0]) if isinstance(shape, list) else shape
        return [conform(item, one, f"{where}.{k}") for k, item, one in zip(count(), value, inner)]
    elif isinstance(shape, dict):
        if not isinstance(value, dict):
            refuse(where, value, "an object")
        if str in shape:
            return {key: conform(item, shape[str], f"{where}.{key}") for key, item in value.items()}
        known = {key.removesuffix("?") for key in shape}
        for key in value:
            if key not in known:
                raise Rejected(f"{where}: unknown key {key[:40]!r}")
        found = {}
        for key, one in shape.items():
            name = key.removesuffix("?")
            if name in value:
                found[name] = conform(value[name], one, f"{where}.{name}")
            elif name == key:
                raise Rejected(f"{where}: the key {name!r} is missing")
            else:
                found[name] = None
        return found
    else:
        return shape(value, where)
    return value


def refuse(where: str, value: Any, allowed: str) -> NoReturn:
    """Reject a value of the wrong type or size."""
    shown = repr(value) if isinstance(value, str | float | bool | None) else f"a {type(value).__name__}"
    raise Rejected(f"{where}: got {shown[:60]}; allowed: {allowed}")


def bounded(value: Fraction) -> Fraction:
    """The value, if it can be written with a tolerable number of digits (section 8)."""
    if value.numerator.bit_length() + value.denominator.bit_length() > LONGEST:
        raise Rejected(f"a number of more than {LONGEST} binary digits (section 8)")
    return value


def near(value: Fraction) -> str:
    """A number for people."""
    return repr(float(value)) if abs(value) < 2**1023 else "a number beyond every double"


def anything(value: Any, _: str) -> Any:
    """The shape that every value has."""
    return value


def maybe(shape: Any) -> Callable[[Any, str], Any]:
    """A shape or null."""
    return lambda value, where: None if value is None else conform(value, shape, where)


def by(key: str, shapes: dict[str, Any]) -> Callable[[Any, str], Any]:
    """An object whose other keys depend on what it says it is."""

    def chosen(value: Any, where: str) -> Any:
        kind: Any = value.get(key) if isinstance(value, dict) else None
        conform(kind, set(shapes), f"{where}.{key}")
        return conform(value, {key: str, **shapes[kind]}, where)

    return chosen


def not_negative(value: Any, where: str) -> float:
    """A number at least 0."""
    if conform(value, float, where) < 0:
        refuse(where, value, "a number at least 0")
    return float(value)


def positive(value: Any, where: str) -> float:
    """A number above 0."""
    if conform(value, float, where) <= 0:
        refuse(where, value, "a number above 0")
    return float(value)


def word(value: Any, where: str) -> str:
    """A name or a label: 1 to 200 characters, none of them for control."""
    if not 1 <= len(conform(value, str, where)) <= 200 or any(c < " " or c == "\x7f" for c in value):
        refuse(where, value, "a name of 1 to 200 characters")
    return str(value)


def share(value: Any, where: str) -> float:
    """A number from 0 to 1."""
    if not 0 <= conform(value, float, where) <= 1:
        refuse(where, value, "a number from 0 to 1")
    return float(value)


def index(size: int) -> Callable[[Any, str], int]:
    """A whole number from 0 to ``size`` - 1."""

    def checked(value: Any, where: str) -> int:
        if type(value) is not float or not value.is_integer() or not 0 <= value < size:
            refuse(where, value, f"a whole number from 0 to {size - 1}")
        return int(value)

    return checked


def interval(value: Any, where: str) -> list[float]:
    """[lo, hi] with lo <= hi."""
    low, high = conform(value, (float, float), where)
    if low > high:
        refuse(where, low, "[lo, hi] with lo <= hi")
    return [low, high]
