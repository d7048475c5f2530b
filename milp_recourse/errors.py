"""The errors a caller can meet, all children of :class:`RecourseError`."""

from __future__ import annotations

import errno
import json
import math
from collections.abc import Iterable
from numbers import Real
from typing import Any, TypeGuard


class RecourseError(Exception):
    """Base class of every error this package raises on purpose."""


class BadInput(RecourseError):
    """A file or an argument breaks the format.

    The message is one line: ``FILE: FIELD: got VALUE; allowed: WHAT``.

    Parameters
    ----------
    field
        Dotted path of the offending field, e.g. ``preferences.weights.savings``.
    got
        The offending value; shown shortened.
    allowed
        What would have been accepted, in words.
    file
        The file that holds the field, or None for a Python call.
    """

    def __init__(self, field: str, got: object, allowed: str, file: str | None = None) -> None:
        self.field, self.got, self.allowed, self.file = field, got, allowed, file
        super().__init__(str(self))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by its parts: an exception is otherwise made anew of its message alone."""
        return BadInput, (self.field, self.got, self.allowed, self.file)

    def in_file(self, file: str) -> BadInput:
        """The same error, naming the file it was found in (kept if already named)."""
        return BadInput(self.field, self.got, self.allowed, self.file or file)

    def __str__(self) -> str:
        shown = self.got if isinstance(self.got, str) else repr(self.got)
        shown = " ".join(shown.split())
        if len(shown) > 80:
            shown = shown[:77] + "..."
        where = f"{self.file}: " if self.file else ""
        line = f"{where}{self.field}: got {shown}; allowed: {self.allowed}"
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


class MachineFailed(RecourseError):
    """The machine failed: a full disk, no memory, a worker that died, or another run writes the folder.
    Repeating the command resumes it."""


MACHINE = frozenset(
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EIO", "EFBIG", "ENOMEM", "EMFILE", "ENFILE")
    if hasattr(errno, name)
)
"""Codes of system errors that are the machine's fault, not that of the caller's arguments."""


class Unsupported(RecourseError):
    """The problem is well formed, but this back end or command cannot solve it; the message says why."""


class BackendUnavailable(RecourseError):
    """The back end is unknown or its solver is not installed; the message says how to get it."""


def got_text(value: Any) -> str:
    """A wrong JSON value in the words of an error message: a few characters, texts without quotes."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return value if isinstance(value, str) and value else repr(value)


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a value is a finite number and not a truth value."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number that no double holds
        return False


def dotted(*parts: str | int) -> str:
    """The path of a field: ``preferences.weights.savings``."""
    return ".".join(str(part) for part in parts if part != "")


def nearest(name: object, others: Iterable[object]) -> str | None:
    """The one of ``others`` that is spelt most like ``name``, as text; None if none is similar."""
    from difflib import get_close_matches

    found = get_close_matches(str(name), [str(other) for other in others], 1)
    return found[0] if found else None
