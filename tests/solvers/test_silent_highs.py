"""HiGHS prints nothing where answers are printed."""

from __future__ import annotations

import subprocess
import sys

from tests.helpers.processes import ROOT


def test_a_highs_object_prints_nothing() -> None:
    """highspy 1.16 prints two lines when its first object is made, before an option can forbid it."""
    code = (
        "from milp_recourse.solvers.highs.silent import silent_highs\n"
        "highs = silent_highs(); x = highs.addBinary(); highs.maximize(x); print('answer')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "answer\n"
