"""Whoever uses a version first is told why it takes a minute, on a terminal or not."""

from __future__ import annotations

import subprocess
import sys

import pytest

from milp_recourse.compiling import SAID


@pytest.mark.parametrize(("seconds", "expected"), [(0.01, f"{SAID}\n"), (60.0, "")])
def test_one_line_on_stderr_without_a_terminal(seconds: float, expected: str) -> None:
    code = (
        "import time\n"
        "from milp_recourse import compiling\n"
        f"compiling.SECONDS = {seconds}\n"
        "with compiling.announced():\n"
        "    time.sleep(0.3)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", expected)


def test_both_searches_announce_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from contextlib import contextmanager

    from milp_recourse.compiled import door
    from milp_recourse.forests import priced

    said = []

    @contextmanager
    def spy():
        said.append(True)
        yield

    for module in (door, priced):
        monkeypatch.setattr(module, "announced", spy)
        module.ready.__wrapped__()
    assert len(said) == 2
