"""What the readers share: refusing in one line, and importing a library only when it is needed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from milp_recourse.errors import Unsupported

_SHOWN = 5

OR_ASK = "or give its levers finitely many values (steps=, values=) and it will be asked"
"""The way forward for a model that cannot be read at all."""


def refuse(where: str, got: str, allowed: str) -> Unsupported:
    """The error ``WHERE: got GOT; allowed: ALLOWED``, on one line."""
    return Unsupported(" ".join(f"{where}: got {got}; allowed: {allowed}".split()))


def not_fitted(where: str) -> Unsupported:
    """The error for a model that was never fitted."""
    return refuse(where, "one that is not fitted", "a fitted one: call fit first")


def listed(labels: Sequence[object]) -> str:
    """The first five labels, and how many more there are."""
    shown = ", ".join(repr(label) for label in labels[:_SHOWN])
    return shown + (f" and {len(labels) - _SHOWN} more" if len(labels) > _SHOWN else "")


def require(module: str, reader: str, extra: str) -> ModuleType:
    """Import the library a reader needs.

    Raises
    ------
    Unsupported
        It is not installed; the message says how to get it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise Unsupported(
            f"{reader} needs {module}, which is not installed: pip install 'milp-recourse[{extra}]'"
        ) from error
