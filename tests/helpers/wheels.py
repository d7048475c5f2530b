"""Building a wheel, and what setup.py has compiled for one."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]

LISTS = re.compile(r"^NETWORKS = (.*)\nTREES = (.*)$", re.MULTILINE)
"""The lines of setup.py that say which modules' ``ready`` has the engine compiled."""


def compiled_modules() -> list[str]:
    """The modules that these lines name."""
    said = LISTS.search((ROOT / "setup.py").read_text(encoding="utf-8"))
    assert said is not None
    return [f"milp_recourse.{name}" for modules in said.groups() for name in ast.literal_eval(modules)]


def build(
    folder: Path,
    change: Callable[[Path], None] = lambda sources: None,
    sources: Path = ROOT,
    **environment: str,
) -> tuple[Path, str]:
    """A wheel built without network from a copy of the sources, which is changed before, and what the build
    says."""
    ignore = shutil.ignore_patterns("__pycache__", ".*")
    for name in ("milp_recourse", "verify", "instances"):
        shutil.copytree(sources / name, folder / "source" / name, ignore=ignore)
    for pattern in ("pyproject.toml", "*.py", "*.in", "README*"):
        for file in sources.glob(pattern):
            shutil.copy(file, folder / "source")
    change(folder / "source")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--verbose", "--wheel-dir", str(folder)]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, str(folder / "source")],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    return next(folder.glob("*.whl")), done.stdout + done.stderr
