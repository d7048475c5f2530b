"""Machine code that came with the package: where it was built as a wheel, a first use compiles nothing.

setup.py has the engine compiled (:mod:`milp_recourse.engine.ship`) for a processor that nearly every machine
has at least. The code is used if the sources, numba and llvmlite are those it was made with, by every build
of the same Python 3.x on the same kind of machine. numpy may have another version: compiled code reaches
arrays through numba's own library.
"""

from __future__ import annotations

import contextlib
import platform
import sysconfig
from collections.abc import Callable
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba

from milp_recourse.engine.compile_cache import digest
from milp_recourse.engine.numba_internals import CONFIG, packed, unpacked

PLACE = Path("milp_recourse", "engine", "_compiled")
"""In an installed package; in a checkout there is none."""

V3 = "avx avx2 bmi bmi2 crc32 cx16 f16c fma lzcnt movbe popcnt sahf sse3 sse4.1 sse4.2 ssse3 xsave"
BASELINES = {
    "x86_64": ("x86-64-v3", V3),  # Intel since 2013, AMD since 2015
    "amd64": ("x86-64-v3", V3),  # the same on Windows
    "arm64": ("generic", ""),  # macOS
    "aarch64": ("generic", ""),  # Linux
}
"""By machine, the processor that is compiled for, in LLVM's words, and what others of the kind may lack."""


@cache
def folders() -> list[Path]:
    """Where compiled code is: beside this file, or where packages are installed. In the folder of a checkout
    Python imports the sources there, although the package is installed from them. Nowhere else on the path of
    modules: that may hold a folder in which others write."""
    places = dict.fromkeys([Path(__file__).parents[2], Path(sysconfig.get_path("platlib"))])
    return [place / PLACE for place in places if (place / PLACE).is_dir()]


@cache
def usable() -> bool:
    """Whether this processor has every feature, and numba is not told by its settings what to compile for."""
    needed = BASELINES.get(platform.machine().lower())
    if needed is None or CONFIG.CPU_NAME is not None or CONFIG.CPU_FEATURES is not None:
        return False
    has = llvm.get_host_cpu_features() if needed[1] else {}
    return all(has.get(feature) for feature in needed[1].split())


def load(function: Callable[..., Any], arguments: Any, context: Any) -> Any:
    """What was made for a function and the types of its arguments; None if there is none, or it is broken."""
    for folder in folders() if usable() else ():
        with contextlib.suppress(Exception):  # whatever a pickle that was cut off raises
            file = _file(folder, function)
            found = unpacked(file.read_bytes(), file.name, arguments, context)
            if found is not None:
                return found
    return None


def save(folder: Path, function: Callable[..., Any], arguments: Any, result: Any) -> None:
    """Write what :func:`load` reads, of a function that is called with one choice of types.

    Raises
    ------
    ValueError
        There is a file of it, or its code has addresses of this process in it.
    """
    file = _file(folder, function)
    content = packed(file.name, arguments, result)
    if file.exists() or content is None:
        raise ValueError(f"{file.name} is called with several types, or its code is of this process alone")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def _file(folder: Path, function: Callable[..., Any]) -> Path:
    source = Path(function.__code__.co_filename).resolve()
    versions = EXTENSION_SUFFIXES[0], platform.machine(), numba.__version__, llvmlite.__version__
    return folder / digest(source.parent, versions) / f"{source.stem}.{function.__qualname__}"
