"""Compiled code in the user's folder, with a key that covers every source file in the functions' folder.

numba's own cache of a function is keyed by that function's file, although the compiled code contains globals
and inlined functions of other files. Here the key is a digest of every source in the function's folder, of
the files that compile, of two files outside whose constants the code freezes, of the versions of Python,
numpy, numba and llvmlite, and of the processor. An edit anywhere in the folder compiles all of it anew, so
compiled functions may only call compiled functions of their own folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba
import numpy as np

from milp_recourse.engine.cache_folder import NotOwn, cache_folder, places
from milp_recourse.engine.numba_internals import CONFIG, packed, unpacked

LOG = logging.getLogger("milp_recourse")
"""Its warnings are printed on stderr where the caller has set up no logging."""

UNKEPT = "milp_recourse: compiled code is not kept, so every process compiles its own: {}"

COMPILERS = (
    "compile_cache.py",
    "numba_internals.py",
    "compiling.py",
    "passed_by_address.py",
    "shipped_code.py",
)
"""Files that say how is compiled."""

OUTSIDE = Path("problem", "result.py"), Path("problem", "forest.py")
"""Files of the package outside the folders of compiled code whose constants it freezes."""

PROCESSOR = (
    llvm.get_process_triple(),
    CONFIG.CPU_NAME or llvm.get_host_cpu_name(),
    llvm.get_host_cpu_features().flatten() if CONFIG.CPU_FEATURES is None else CONFIG.CPU_FEATURES,
)
"""What numba compiles for: users' folders are on several machines at times."""

VERSIONS = sys.version, np.__version__, numba.__version__, llvmlite.__version__, *PROCESSOR


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


class FunctionCache:
    """The compiled code of a function, in a file for each choice of its arguments' types; what is broken or
    cannot be kept is compiled anew.

    Raises
    ------
    NotOwn
        There is no folder that it may be in.
    """

    folder: Path | None
    """None once it turns out that nothing can be kept."""

    def __init__(self, function: Callable[..., Any]) -> None:
        source = Path(function.__code__.co_filename).resolve()
        self._name, self._key = f"{source.stem}.{function.__qualname__}", digest(source.parent)
        refused: dict[str, None] = {}
        for place in places():
            try:
                self._place, self.folder = place, cache_folder(place, self._key)
                return
            except NotOwn as reason:
                refused.setdefault(str(reason))
        raise NotOwn("; ".join(refused))

    def load(self, arguments: Any, context: Any) -> Any:
        """What was compiled for arguments of these types; None if there is none, or it is broken, as it is
        left where the machine loses power."""
        try:
            file = self._file(arguments)
            return None if file is None else unpacked(file.read_bytes(), self._name, arguments, context)
        except NotOwn as reason:
            self._not_kept(str(reason))
        except Exception:  # whatever a pickle that was cut off raises
            pass
        return None

    def save(self, arguments: Any, result: Any) -> None:
        """Write it, completely or not at all; where that fails, on a full disk, say, it is not kept."""
        try:
            file, content = self._file(arguments), packed(self._name, arguments, result)
            if file is None or content is None:
                return
            made, name = tempfile.mkstemp(dir=file.parent)
            try:
                with os.fdopen(made, "wb") as stream:
                    stream.write(content)
                os.replace(name, file)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(name)
                raise
        except NotOwn as reason:
            self._not_kept(str(reason))
        except OSError as reason:
            self._not_kept(f"{self.folder}: {reason.strerror}")

    def _file(self, arguments: Any) -> Path | None:
        """Its file, once it is checked again that the folder is nobody else's: temporary folders are emptied
        at times."""
        if self.folder is None:
            return None
        if cache_folder(self._place, self._key) != self.folder:
            raise NotOwn(f"{self.folder} is no longer what it was")
        kinds = hashlib.sha256(str(arguments).encode()).hexdigest()[:12]
        return self.folder / f"{self._name}.{kinds}.code"

    def _not_kept(self, why: str) -> None:
        self.folder = None
        say_unkept(why)
