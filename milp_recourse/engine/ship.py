"""Compiles the engine for a wheel: ``python -m milp_recourse.engine.ship FOLDER MODULE...`` (see setup.py).

Each module's function ``ready`` calls the compiled functions of a search. What they were compiled to is
written into the folder, the package's :data:`milp_recourse.engine.shipped_code.PLACE`.
"""

from __future__ import annotations

import importlib
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

from milp_recourse.engine import shipped_code
from milp_recourse.engine.compiling import EntryCache
from milp_recourse.engine.numba_internals import CONFIG


def main() -> None:
    """Compile and write; ends with an error where something is in the way."""
    folder, *searches = sys.argv[1:]
    with tempfile.TemporaryDirectory() as aside:
        os.environ["NUMBA_CACHE_DIR"] = aside  # the user's cache stays as it is
        os.environ["NUMBA_CPU_NAME"] = shipped_code.BASELINES[platform.machine().lower()][0]
        os.environ["NUMBA_CPU_FEATURES"] = ""
        CONFIG.reload_config()
        for search in searches:
            importlib.import_module(search).ready()
    entries: dict[int, Any] = {}  # by their number: other modules import them too
    for name, module in sorted(sys.modules.items()):
        found = vars(module).values() if name.startswith("milp_recourse.engine.") else ()
        entries |= {id(one): one for one in found if isinstance(getattr(one, "_cache", None), EntryCache)}
    for entry in entries.values():
        for arguments, result in entry.overloads.items():
            shipped_code.save(Path(folder), entry.py_func, arguments, result)
    if not any(entry.overloads for entry in entries.values()):
        raise ValueError("nothing was compiled")


if __name__ == "__main__":
    main()
