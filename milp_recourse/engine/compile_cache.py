"""Compiled code in the user's folder, with a key that covers every source file in the functions' folder.

numba's own cache of a function is keyed by that function's file, although the compiled code contains globals
and inlined functions of other files. Here the key is a digest of every source in the function's folder, of
the files that compile, of two files outside whose constants the code freezes, and of the versions of Python,
numpy, numba and llvmlite. An edit anywhere in the folder compiles all of it anew, so compiled functions may
only call compiled functions of their own folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import caching

from milp_recourse.engine.cache_folder import NotOwn, cache_folder, places

LOG = logging.getLogger("milp_recourse")
"""Its warnings are printed on stderr where the caller has set up no logging."""

UNKEPT = "milp_recourse: compiled code is not kept, so every process compiles its own: {}"

COMPILERS = "compile_cache.py", "numba_internals.py", "compiling.py", "shipped_code.py"
"""Files that say how is compiled."""

OUTSIDE = Path("problem", "result.py"), Path("problem", "forest.py")
"""Files of the package outside the folders of compiled code whose constants it freezes."""

VERSIONS = sys.version, np.__version__, numba.__version__, llvmlite.__version__


@cache
def digest(sources: Path, versions: tuple[str, ...] = VERSIONS) -> str:
    """The cache key of a folder's functions: 20 hexadecimal digits of a hash of sources and versions."""
    key = hashlib.sha256(" ".join(versions).encode())
    here = Path(__file__).parent
    others = (*(here / name for name in COMPILERS), *(here.parent / path for path in OUTSIDE))
    for path in (*others, *sorted(sources.glob("*.py"))):
        key.update(path.name.encode() + b"\0" + path.read_bytes())
    return key.hexdigest()[:20]


@cache
def say_unkept(why: str) -> None:
    """Log :data:`UNKEPT`, once per process and reason."""
    LOG.warning(UNKEPT.format(why))


class _Locator(caching._CacheLocator):
    """Tells numba the folder and the key of a function's cached code."""

    def __init__(self, py_func: Callable[..., Any], sources: Path, place: Path) -> None:
        self._name = f"{py_func.__module__}.{py_func.__qualname__}"
        self._sources, self._place = sources, place
        self._folder = cache_folder(place, digest(sources))

    def get_cache_path(self) -> str:
        return str(self._folder)

    def ensure_cache_path(self) -> None:
        """Check again that the folder is nobody else's: temporary folders are emptied at times."""
        if cache_folder(self._place, digest(self._sources)) != self._folder:
            raise NotOwn(f"{self._folder} is no longer what it was")

    def get_source_stamp(self) -> str:
        return digest(self._sources)

    def get_disambiguator(self) -> str:
        return self._name

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        sources = Path(py_func.__code__.co_filename).resolve().parent
        refused: dict[str, None] = {}
        for place in places():
            try:
                return cls(py_func, sources, place)
            except NotOwn as reason:
                refused.setdefault(str(reason))
        raise NotOwn("; ".join(refused))


class _Impl(caching.CompileResultCacheImpl):
    _locator_classes: Any = (_Locator,)


class FunctionCache(caching.FunctionCache):
    """numba's cache of a function, under the keys above; what is broken or cannot be kept is compiled
    anew."""

    _impl_class = _Impl

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load from the cache as numba does.

        A file that is broken, after the machine lost power, say, counts as not found. What is only needed to
        compile stays unloaded: numba's ``refresh`` imports half of numba, and SciPy.
        """
        found = None
        try:
            self._impl.locator.ensure_cache_path()
            with self._guard_against_spurious_io_errors():
                found = self._load_overload(sig, target_context)
        except NotOwn as reason:
            self._not_kept(reason)
        except Exception:  # whatever a pickle that was cut off raises
            with contextlib.suppress(OSError):
                self.flush()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save as numba does; where that fails, on a full disk, say, the compiled code is not kept."""
        if self._enabled:
            try:
                super().save_overload(sig, data)
            except (OSError, NotOwn) as reason:
                self._not_kept(reason)

    def _not_kept(self, reason: OSError | NotOwn) -> None:
        self.disable()
        said = f"{self.cache_path}: {reason.strerror}" if isinstance(reason, OSError) else str(reason)
        say_unkept(said)
