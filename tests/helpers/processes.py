"""Commands and code in a Python of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def uncompiled(code: str) -> str:
    """What code prints where numba compiles nothing; it must end well."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def check_unwritable(*arguments: object) -> None:
    """A Python with these arguments whose stdout is full ends with exit code 1 and one line; so it does, and
    without a word, where the reader of its stdout has ended."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    command = [sys.executable, *map(str, arguments)]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and "No space left" in done.stderr
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(command, cwd=ROOT, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")
