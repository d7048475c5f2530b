"""Compiling with numba: what is compiled once stays on disk under a key that covers the whole room.

numba keeps a cache per function and looks at that function's own file only, while it freezes globals and
inlines callees from other files. Here the key is a digest of every source of this room and of the versions of
Python, numpy and numba, so an edit anywhere in the room compiles anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import caching


@cache
def digest() -> str:
    """The key: sources of this room and versions, as hexadecimal digits."""
    said = hashlib.sha256(f"{sys.version} {np.__version__} {numba.__version__}".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        said.update(path.name.encode() + b"\0" + path.read_bytes())
    return said.hexdigest()[:20]


def folders() -> list[Path]:
    """Where compiled code may be kept, best first: numba's own setting, the user's cache, the
    temporary folder.
    """
    own = os.environ.get("NUMBA_CACHE_DIR")
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    user = f"milp_recourse-{os.getuid()}" if hasattr(os, "getuid") else "milp_recourse"
    places = [own] if own else [home, os.path.join(tempfile.gettempdir(), user)]
    return [Path(place) / "milp_recourse" / digest() for place in places]


class _Locator(caching._CacheLocator):
    """Tells numba where a function of this room is kept."""

    def __init__(self, py_func: Callable[..., Any], folder: Path) -> None:
        self._name = f"{py_func.__module__}.{py_func.__qualname__}"
        self._folder = folder

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return digest()

    def get_disambiguator(self) -> str:
        return self._name

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator | None:
        for folder in folders():
            locator = cls(py_func, folder)
            try:
                locator.ensure_cache_path()
            except OSError:
                continue
            return locator
        return None


class _Impl(caching.CompileResultCacheImpl):
    _locator_classes = [_Locator]  # noqa: RUF012


class _Cache(caching.FunctionCache):
    _impl_class = _Impl


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function that only compiled code calls."""
    bare: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.njit(error_model="numpy", nogil=True, **bare)(function)


def entry(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, and keep the result on disk (with all that it calls)."""
    bare: Any = {"no_cfunc_wrapper": True}
    made: Any = numba.njit(error_model="numpy", nogil=True, **bare)(function)
    if not inspect.isfunction(made):  # NUMBA_DISABLE_JIT=1 leaves the function as it is
        with contextlib.suppress(RuntimeError, OSError):  # nowhere to write: compiled in every process
            made._cache = _Cache(function)
    return made
