"""What the readers share: refusing in one line, and importing a library only when it is needed."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from milp_recourse.errors import Unsupported


def refuse(where: str, got: str, allowed: str) -> Unsupported:
    """The error ``WHERE: got GOT; allowed: ALLOWED``, on one line."""
    return Unsupported(" ".join(f"{where}: got {got}; allowed: {allowed}".split()))


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
