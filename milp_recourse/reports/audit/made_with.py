"""With what a file was made: versions, and a digest of the code."""

from __future__ import annotations

import hashlib
import platform
import zlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

LIBRARIES = ("numpy", "numba", "pandas", "highspy", "ortools", "pyomo", "pydantic", "openpyxl")
"""Of these a result, or a byte of the file, can depend."""

OWN = ("milp_recourse", "verify")


@cache
def versions() -> dict[str, str]:
    """The versions of Python, of this package and of :data:`LIBRARIES`; ``none`` where one is missing."""
    known = {"python": platform.python_version(), "zlib": zlib.ZLIB_RUNTIME_VERSION}
    for name in ("milp-recourse", *LIBRARIES):
        try:
            known[name] = version(name)
        except PackageNotFoundError:
            known[name] = "none"
    return known


@cache
def code_digests() -> dict[str, str]:
    """The SHA-256 of the package's and of the checker's sources: of their paths and contents, in order."""
    found = {}
    for name in OWN:
        spec = find_spec(name)
        assert spec is not None and spec.origin is not None
        folder, digest = Path(spec.origin).parent, hashlib.sha256()
        for file in sorted(folder.rglob("*.py"), key=lambda path: path.relative_to(folder).as_posix()):
            digest.update(file.relative_to(folder).as_posix().encode() + b"\0")
            digest.update(hashlib.sha256(file.read_bytes()).digest())
        found[name] = digest.hexdigest()
    return found
