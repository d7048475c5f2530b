"""Whoever uses a version first is told why it takes a minute, on a terminal or not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from milp_recourse.engine.compiling import NOTICE

CODE = """
import sys, time
from milp_recourse import compiling
compiling.SECONDS, compiling.EVERY = map(float, sys.argv[1:])
from doubling import twice
with compiling.announced("the doubling"):
    twice(2.0)
    time.sleep(0.3)
"""
TWICE = """
from milp_recourse.engine.compiling import entry

@entry
def twice(x):
    return 2 * x
"""


def said(folder: Path, cache: str, seconds: float, every: float) -> str:
    """What a process says on stderr that compiles a function, or loads it from a cache in the folder."""
    (folder / "doubling.py").write_text(TWICE)
    places = {"PYTHONPATH": f"{Path(__file__).parents[2]}{os.pathsep}{folder}"}
    environment = os.environ | places | {"NUMBA_CACHE_DIR": str(folder / cache)}
    command = [sys.executable, "-c", CODE, str(seconds), str(every)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == ""
    return done.stderr


def test_one_line_on_stderr_where_something_is_compiled(tmp_path: Path) -> None:
    """Not where it is quick, and not where it is only loaded, however long that takes."""
    line = f"{NOTICE.format('the doubling')}\n"
    for cache, seconds, expected in (("a", 600, ""), ("b", 0.01, line), ("b", 0.01, "")):
        assert said(tmp_path, cache, seconds, 5) == expected


def test_then_how_far_it_is(tmp_path: Path) -> None:
    """A line with the number of functions, again and again."""
    first, *others = said(tmp_path, "c", 0.01, 0.05).splitlines()
    assert first == NOTICE.format("the doubling")
    assert len(others) > 1
    line = r"milp_recourse: compiling the doubling: [1-9]\d* functions so far, \d+ s"
    assert re.fullmatch(line, others[-1])


def test_each_search_announces_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from contextlib import contextmanager

    from milp_recourse.certificates import engine_proofs
    from milp_recourse.engine.forests import priced
    from milp_recourse.engine.networks import propose

    said = []

    @contextmanager
    def spy(what):
        said.append(what)
        yield

    for module in (propose, engine_proofs, priced):
        monkeypatch.setattr(module, "announced", spy)
        module.ready.__wrapped__()
    assert said == ["the search", "the search for proofs", "the search of trees"]
