"""Check that a file's values have the shape that the format demands (section 4)."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, repeat
from typing import Any, NoReturn

from verify.kernel import checks
from verify.kernel.checks import Rejected


class Reading:
    """The place in a file that the kernel has reached, to be named if it rejects the certificate there.

    Empty where the message names the place itself.
    """

    place = ""

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Put the place in front of what is rejected in the ``with`` block."""
        try:
            yield
        except Rejected as reason:
            raise Rejected(f"{self.place}: {reason}" if self.place else str(reason)) from None


@contextmanager
def placed(where: str) -> Iterator[None]:
    """Put ``where`` in front of what is rejected in the ``with`` block."""
    try:
        yield
    except Rejected as reason:
        raise Rejected(f"{where}: {reason}") from None


def conform(value: Any, shape: Any, where: str) -> Any:  # noqa: PLR0912
    """Return a value that has a shape; raise :class:`Rejected` for any other.

    A shape is ``float`` (a finite number), ``str``, ``bool`` or ``list``; a set of words; ``[shape]``, a
    list; ``(shape, ...)``, a list of that length; ``{"key": shape, "key?": shape, ...}``, an object with
    these keys, some optional, or ``{str: shape}``, one with any keys; or a function of value and place that
    returns the value. An optional key that is absent gets the value None.
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
        plain = shape in ([float], [bool]) and {*map(type, value)} <= {*shape}
        if plain and all(map(math.isfinite, value)):
            return value
        inner = repeat(shape[0]) if isinstance(shape, list) else shape
        return [conform(item, one, f"{where}.{k}") for k, item, one in zip(count(), value, inner)]
    elif isinstance(shape, dict):
        if not isinstance(value, dict):
            refuse(where, value, "an object")
        if str in shape:
            return {key: conform(item, shape[str], f"{where}.{key}") for key, item in value.items()}
        found = {}
        for key, one in shape.items():
            name = key.removesuffix("?")
            if name in value:
                found[name] = conform(value[name], one, f"{where}.{name}")
            elif name == key:
                raise Rejected(f"{where}: the key {name!r} is missing")
            else:
                found[name] = None
        for key in value.keys() - found.keys():
            raise Rejected(f"{where}: unknown key {key[:40]!r}")
        return found
    else:
        return shape(value, where)
    return value


def refuse(where: str, value: Any, allowed: str) -> NoReturn:
    """Reject a value of the wrong type or size."""
    named = {dict: "an object", bool: "true" if value else "false", type(None): "null"}
    shown = (
        f"a list of {len(value)}"
        if isinstance(value, list | array)
        else named.get(type(value)) or repr(value)
    )
    raise Rejected(f"{where}: got {shown[:60]}; allowed: {allowed}")


def anything(value: Any, _: str) -> Any:
    """The shape that every value has."""
    return value


def maybe(shape: Any) -> Callable[[Any, str], Any]:
    """A shape or null."""
    return lambda value, where: None if value is None else conform(value, shape, where)


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


def index(size: int) -> Callable[[Any, str], int]:
    """A whole number from 0 to ``size`` - 1."""

    def read(value: Any, where: str) -> int:
        with placed(where):
            return checks.index(conform(value, float, where), size)

    return read
