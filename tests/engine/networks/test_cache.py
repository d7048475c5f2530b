"""Compiled code on disk: found again, made anew where a source changed, also by two processes at once."""

from __future__ import annotations

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from milp_recourse.engine import compile_cache

ROOT = Path(__file__).resolve().parents[3]

SMALL = """
import sys
from pathlib import Path
from milp_recourse.engine.networks.numerics import PIVOT
from milp_recourse.engine.compile_cache import digest
from milp_recourse.engine.compiling import entry

@entry
def pivot():
    return PIVOT

print(repr(float(pivot())), len(pivot.stats.cache_hits), digest(Path(__file__).parent))
"""


def run(folder: Path, cache: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(cache)}
    environment.pop("NUMBA_DISABLE_JIT", None)
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "milp_recourse.engine.networks.small"],
        env=environment,
        cwd=cache,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def said(process: subprocess.Popen[str]) -> list[str]:
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return out.split()


def copied(tmp_path: Path) -> tuple[Path, Path]:
    """The package with one more compiled function, at a place of its own, and an empty cache."""
    folder, cache = tmp_path / "installed", tmp_path / "cache"
    shutil.copytree(
        ROOT / "milp_recourse",
        folder / "milp_recourse",
        ignore=shutil.ignore_patterns("__pycache__", "*.npz"),
    )
    cache.mkdir()
    small = folder / "milp_recourse" / "engine" / "networks" / "small.py"
    small.write_text(SMALL, encoding="utf-8")
    return folder, cache


def test_an_edited_constant_is_compiled_anew(tmp_path: Path) -> None:
    """numba freezes globals and looks at one file only: the digest must see the other file's edit."""
    folder, cache = copied(tmp_path)
    first, second = said(run(folder, cache)), said(run(folder, cache))
    assert first[:2] == [repr(2.0**-46), "0"]
    assert second[:2] == [repr(2.0**-46), "1"]
    numerics = folder / "milp_recourse" / "engine" / "networks" / "numerics.py"
    text = numerics.read_text(encoding="utf-8")
    assert "= 2.0**-46," in text
    numerics.write_text(text.replace("= 2.0**-46,", "= 2.0**-40,"), encoding="utf-8")
    third = said(run(folder, cache))
    assert third[:2] == [repr(2.0**-40), "0"]
    assert third[2] != first[2]
    outside = folder / "milp_recourse" / compile_cache.OUTSIDE[0]
    outside.write_text(outside.read_text(encoding="utf-8") + "# edited\n", encoding="utf-8")
    fourth = said(run(folder, cache))
    assert fourth[:2] == [repr(2.0**-40), "0"] and fourth[2] not in (first[2], third[2])


def test_constants_from_outside_are_part_of_the_key() -> None:
    """Compiled code freezes what its modules import: numbers come from files that the key covers."""
    package = Path(compile_cache.__file__).parents[1]
    covered = {package / path for path in compile_cache.OUTSIDE}
    imported = set()
    for folder in ("networks", "forests"):
        for source in sorted((package / "engine" / folder).glob("*.py")):
            text = source.read_text(encoding="utf-8")
            if not re.search(r"^@(counting_)?(compiled|entry)", text, re.MULTILINE):
                continue
            module = importlib.import_module(f"milp_recourse.engine.{folder}.{source.stem}")
            for node in ast.walk(ast.parse(text)):
                if not isinstance(node, ast.ImportFrom) or node.module == "__future__":
                    continue
                origin = importlib.import_module(node.module)
                place = Path(origin.__file__ or "")
                if package not in place.parents or place.parent == package / "engine" / folder:
                    continue
                for name in node.names:
                    value = getattr(module, name.asname or name.name)
                    if (
                        isinstance(value, (int, float, np.ndarray))
                        and place != package / "engine" / "compiling.py"
                    ):
                        imported.add(place)
    assert imported == covered


def test_two_processes_at_once_and_a_read_only_installation(tmp_path: Path) -> None:
    """Both get the right number; nothing is written beside the sources."""
    folder, cache = copied(tmp_path)
    before = sorted(
        str(f) for f in folder.rglob("*") if f.suffix not in (".pyc",) and f.name != "__pycache__"
    )
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        both = [run(folder, cache), run(folder, cache)]
        assert [said(process)[0] for process in both] == [repr(2.0**-46)] * 2
        after = sorted(
            str(f) for f in folder.rglob("*") if f.suffix not in (".pyc",) and f.name != "__pycache__"
        )
        assert before == after
        assert said(run(folder, cache))[1] == "1"
    finally:
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)


def test_without_the_compiler_the_same_code_runs(tmp_path: Path) -> None:
    """NUMBA_DISABLE_JIT=1: a small problem is solved by the functions themselves, to the same cost."""
    code = """
import numpy as np
import pytest
np.seterr(all="ignore")
from tests.helpers.engine_alone import solve_alone
from milp_recourse.engine.smallest_instance import smallest
from milp_recourse.solvers.protocol import Options
proposal = solve_alone(smallest(), Options())
print(repr(proposal.action["x"]), repr(proposal.lower_bound))
"""
    answers = []
    for disabled in ("0", "1"):
        environment = {**os.environ, "NUMBA_DISABLE_JIT": disabled}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        answers.append([float(v) for v in done.stdout.split()])
    assert np_close(answers[0], answers[1])
    assert abs(answers[0][0] - 0.75) <= 1e-6
    assert answers[0][1] <= 0.75


def np_close(one: list[float], two: list[float]) -> bool:
    """The last digits may differ: compiled code fuses nothing here, but sums in other orders."""
    return all(abs(a - b) <= 1e-6 for a, b in zip(one, two, strict=True))


ENTRIES = """
import sys
from milp_recourse.engine.compiling import {kind}

@{kind}
def increased(x):
    return x + 1.0

@{kind}
def twice(x):
    return 2.0 * increased(x)

print({{"increased": increased, "twice": twice}}[sys.argv[1]](3.0))
"""


@pytest.mark.parametrize("kind", ["entry", "counting_entry"])
def test_an_entry_that_calls_one_from_the_disk_runs(kind: str, tmp_path: Path) -> None:
    """It was linked with the names of what had been loaded: a process that was stopped while it compiled, or
    two at once, left machine code on the disk that crashed every later one."""
    (tmp_path / "two_entries.py").write_text(ENTRIES.format(kind=kind), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    environment.pop("NUMBA_DISABLE_JIT", None)
    for name, expected in (("increased", "4.0"), ("twice", "8.0"), ("twice", "8.0")):
        command = [sys.executable, "two_entries.py", name]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (0, f"{expected}\n"), done.stderr
