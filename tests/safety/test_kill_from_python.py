"""``certify(people, out=DIR)`` killed in the middle goes on where it was."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from milp_recourse import Recourse
from tests.helpers.frame_tables import fitted
from tests.tables.test_kept_answers import same

SCRIPT = """
import sys
from milp_recourse import Recourse
from tests.helpers.frame_tables import fitted
model, table = fitted()
people = table[model.predict(table) == 0].head(80)
Recourse(model, table).certify(people, certificates=True, out=sys.argv[1])
"""


def test_what_was_finished_survives_a_kill(tmp_path: Path) -> None:
    """``kill -9`` in the middle: the rows that were there stay as they are."""
    model, table = fitted()
    folder = tmp_path / "run"
    run = subprocess.Popen([sys.executable, "-c", SCRIPT, str(folder)], cwd=Path(__file__).parents[2])
    rows, deadline = folder / "results.csv", time.monotonic() + 120
    while run.poll() is None and time.monotonic() < deadline:
        if rows.exists() and rows.read_bytes().count(b"\n") > 5:
            break
        time.sleep(0.005)
    run.send_signal(signal.SIGKILL)
    run.wait()
    finished = [line for line in rows.read_bytes().splitlines(keepends=True)[1:] if line.endswith(b"\n")]
    people = table[model.predict(table) == 0].head(80)
    assert len(finished) >= 5
    answers = Recourse(model, table).certify(people, certificates=True, out=folder)
    assert set(finished) <= set(rows.read_bytes().splitlines(keepends=True))
    same(Recourse(model, table).certify(people, certificates=True), answers)
