"""A folder has one writer at a time; what is in it is neither mixed nor replaced by another's."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from milp_recourse.cli import main
from milp_recourse.errors import BadInput, MachineFailed
from milp_recourse.evaluation import certified_optima
from milp_recourse.formats import read_population
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.lab.run_table import grown, read_rows
from milp_recourse.reports.folder_lock import only_writer
from milp_recourse.tables.recourse import Recourse

ROOT = Path(__file__).resolve().parents[2]
SMOKE = instances_path() / "smoke"
PEOPLE = ROOT / "tests" / "certificates" / "instances" / "toy_population.json"
BUSY = "another run is writing there; wait for its end, or give another folder"


@contextmanager
def held(folder: Path, name: str = ".lock"):
    """Another process that holds a folder's lock; it is killed at the end."""
    code = (
        "import sys; from pathlib import Path; from milp_recourse.reports.folder_lock import only_writer\n"
        "with only_writer(Path(sys.argv[1]), sys.argv[2]): print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(folder), name]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as process:
        assert process.stdout.readline() == b"held\n"
        try:
            yield
        finally:
            process.send_signal(signal.SIGKILL)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


COMMANDS = {
    "certify a population": ["certify", str(PEOPLE)],
    "certify an instance": ["certify", str(SMOKE / "hold.json")],
    "front": ["front", str(SMOKE / "hold.json")],
    "evaluate": ["evaluate", "{actions}", "--limit", "1"],
    "bench": ["lab", "bench", "speed", "--instances", str(SMOKE), "--limit", "1", "--solvers", "highs"],
    "reproduce": ["lab", "reproduce", "table1"],
    "recipe": ["lab", "recipe", "loan"],
}


def test_a_second_writer_says_so_and_writes_nothing(tmp_path, capsys):
    """One line, exit code 1; the folder is as it was."""
    out, actions = tmp_path / "out", tmp_path / "actions.csv"
    actions.write_text("index,income\n0,1.0\n")
    out.mkdir()
    (out / "kept.txt").write_text("kept")
    with held(out):
        before = contents(out)
        for name, command in COMMANDS.items():
            arguments = [part.format(actions=actions) for part in command]
            assert main([*arguments, "--out", str(out)]) == 1, name
            assert capsys.readouterr().err == f"milp-recourse: {out}: {BUSY}\n", name
            assert contents(out) == before, name


def test_a_killed_writer_blocks_nobody(tmp_path, capsys):
    """The locked file stays, and the lock does not; it is gone after the next run."""
    out = tmp_path / "out"
    with held(out):
        pass
    assert [file.name for file in out.iterdir()] == [".lock"]
    assert main(["certify", str(PEOPLE), "--out", str(out)]) == 0
    assert not (out / ".lock").exists()


def test_a_run_that_writes_nothing_leaves_nothing(tmp_path):
    """A folder that was made for the lock is removed, with those above it."""
    assert main(["certify", str(tmp_path / "none.json"), "--out", str(tmp_path / "a" / "b")]) == 2
    assert list(tmp_path.iterdir()) == []


def test_three_at_once(tmp_path):
    """Three commands into one folder: one or more do the work, and every person has one row."""
    out = tmp_path / "out"
    command = [sys.executable, "-m", "milp_recourse", "certify", str(PEOPLE), "--out", str(out)]
    runs = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    errors = [run.communicate()[1] for run in runs]
    for run, said in zip(runs, errors, strict=True):
        assert run.returncode == 0 or (run.returncode, said) == (1, f"milp-recourse: {out}: {BUSY}\n")
    assert any(run.returncode == 0 for run in runs)
    rows = list(csv.DictReader((out / "results.csv").read_text().splitlines()))
    assert [row["index"] for row in rows] == ["0", "1", "2"]


def test_many_at_once_that_write_nothing(tmp_path):
    """They make and remove the same folders meanwhile; each has one alone, or hears that another run has."""
    code = (
        "import sys; from pathlib import Path; from milp_recourse.errors import MachineFailed\n"
        "from milp_recourse.reports.folder_lock import only_writer\n"
        "for k in range(1000):\n"
        "    alone = Path(sys.argv[1]) / 'made' / str(k % 3) / 'alone'\n"
        "    try:\n"
        "        with only_writer(alone.parent): alone.touch(exist_ok=False); alone.unlink()\n"
        "    except MachineFailed as error: assert sys.argv[2] in str(error)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path), BUSY]
    runs = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    errors = [run.communicate()[1] for run in runs]
    assert errors == [""] * 4
    assert not contents(tmp_path)


@pytest.mark.parametrize("error", [FileExistsError, FileNotFoundError])
def test_a_folder_that_another_run_removes(error, tmp_path, monkeypatch):
    """Twice while it is made; a file that stays in its place is bad input."""
    make, folder, tries = Path.mkdir, tmp_path / "made", []

    def removed(place, *given, **named):
        tries.append(place)
        if len(tries) < 3:
            raise error(2, "removed", str(place))
        make(place, *given, **named)

    monkeypatch.setattr(Path, "mkdir", removed)
    with only_writer(folder):
        assert folder.exists() and len(tries) >= 3
    assert not folder.exists()
    folder.touch()
    monkeypatch.undo()
    with pytest.raises(BadInput, match="made"), only_writer(folder):
        pass


def test_optima_and_tables_have_a_lock_of_their_own(tmp_path):
    """From Python, too: the folder of optima, and a table that grows."""
    people = read_population(PEOPLE)
    with held(tmp_path), pytest.raises(MachineFailed, match="another run"):
        certified_optima(people, tmp_path)
    table = tmp_path / "t.csv"
    with held(tmp_path, ".t.csv.lock"), pytest.raises(MachineFailed), grown(table, ["a"], {}):
        pass
    assert not table.exists()
    with grown(table, ["a"], {}) as (_, write):
        write({"a": 1})
    assert read_rows(table) == [{"a": "1"}]


def test_the_same_thread_may_hold_a_lock_twice(tmp_path):
    """As where --out and --optima are one folder; it is held until the outer end."""
    with only_writer(tmp_path):
        with only_writer(tmp_path):
            pass
        assert (tmp_path / ".lock").exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: files of another user")
def test_a_folder_that_cannot_be_locked_is_bad_input(tmp_path, capsys):
    """A link in place of the locked file is not followed: what it leads to is not opened."""
    (tmp_path / "out").mkdir()
    (tmp_path / "target").write_text("kept")
    (tmp_path / "out" / ".lock").symlink_to(tmp_path / "target")
    assert main(["certify", str(PEOPLE), "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert (tmp_path / "target").read_text() == "kept"


def test_answers_about_another_instance_are_not_replaced(tmp_path, capsys):
    """One line, exit code 2; the same instance, and more instances with it, are allowed."""
    out = tmp_path / "out"
    assert main(["certify", str(SMOKE / "hold.json"), "--out", str(out)]) == 0
    before = contents(out)
    capsys.readouterr()
    assert main(["certify", str(SMOKE / "mask.json"), "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "--out: got answers about other instances" in said
    assert contents(out) == before
    assert main(["certify", str(SMOKE / "hold.json"), "--out", str(out), "--time-limit", "60"]) == 0
    assert main(["certify", "--limit", "1", "--out", str(out)]) == 0  # hold is one of the shipped ones
    named = json.loads((out / "results.json").read_text())["results"]
    assert len(named) > 40 and "hold" in [one["name"] for one in named]
    assert main(["certify", str(SMOKE / "hold.json"), "--out", str(out)]) == 2


def test_a_folder_without_a_summary_is_not_taken_over(tmp_path, capsys):
    """As an interrupted earlier version may have left it."""
    (tmp_path / "results.csv").write_text("index,status\n")
    assert main(["certify", str(SMOKE / "hold.json"), "--out", str(tmp_path)]) == 2
    assert "--out: got other results in" in capsys.readouterr().err


def test_deleted_certificates_are_made_again(tmp_path, capsys):
    """A resumed run sees that they are gone, says whose, and ends with the same folder."""
    out = tmp_path / "out"
    assert main(["certify", str(PEOPLE), "--out", str(out)]) == 0
    made = contents(out / "certificates")
    (out / "certificates" / "1.json.gz").unlink()
    capsys.readouterr()
    assert main(["certify", str(PEOPLE), "--out", str(out)]) == 0
    assert capsys.readouterr().err == "certificates are missing, and made again: of applicants 1\n"
    assert contents(out / "certificates") == made
    rows = list(csv.DictReader((out / "results.csv").read_text().splitlines()))
    assert [row["index"] for row in rows] == ["0", "1", "2"]


def answers():
    """One person's, of a linear model."""
    X = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "b": [1.0, 0.0, 1.0, 0.0]})
    model = LogisticRegression().fit(X, [0, 0, 1, 1])
    return Recourse(model, X).certify(X.head(1))


def test_answers_are_saved_by_one(tmp_path):
    """From Python the folder is the argument ``folder``."""
    with held(tmp_path / "out"), pytest.raises(MachineFailed, match="another run"):
        answers().save(tmp_path / "out")
    with pytest.raises(BadInput, match="folder: got"):
        answers().save(tmp_path / "out" / ".lock" / "below")
    answers().save(tmp_path / "out")
