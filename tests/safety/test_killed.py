"""Killed or on a full disk a run loses nothing: the same command again ends with the same files."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from milp_recourse.cli import main
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.reports import certificate_files, population_folder
from tests.helpers.cut_short import killed
from verify.__main__ import main as verify

ROOT = Path(__file__).resolve().parents[2]
SMOKE = instances_path() / "smoke"
PEOPLE = ROOT / "tests" / "certificates" / "instances" / "toy_population.json"

BENCH = "--instances", str(SMOKE), "--limit", "2"
COMMANDS = {  # and how many changes are between two kills
    "a population": (5, ["certify", str(PEOPLE), "--out", "{out}"]),
    "an instance": (2, ["certify", str(SMOKE / "hold.json"), "--out", "{out}"]),
    "an evaluation": (13, ["evaluate", "{actions}", "--population", str(PEOPLE), "--out", "{out}"]),
    "a benchmark": (17, ["lab", "bench", "speed", *BENCH, "--solvers", "bab,highs", "--out", "{out}"]),
}


@pytest.fixture(autouse=True)
def small_archives(monkeypatch):
    """Three people fill one archive of two, and begin another."""
    for module in (certificate_files, population_folder):
        monkeypatch.setattr(module, "CHUNK", 2)


def untimed(value):
    """A value of JSON without the keys that are about time."""
    if isinstance(value, dict):
        return {
            k: untimed(v) for k, v in value.items() if "seconds" not in k and not k.endswith(("_s", "ratio"))
        }
    return [untimed(one) for one in value] if isinstance(value, list) else value


def contents(folder: Path) -> dict[str, object]:
    """What is in every file of a folder, without times; of pictures and pages, that they are there."""
    found: dict[str, object] = {}
    for file in sorted(folder.rglob("*")):
        name = str(file.relative_to(folder))
        if file.suffix == ".csv":
            rows = csv.DictReader(file.read_text().splitlines())
            found[name] = [{k: v for k, v in row.items() if "seconds" not in k} for row in rows]
        elif file.suffix == ".json":
            found[name] = untimed(json.loads(file.read_text()))
        elif file.is_file():
            found[name] = file.read_bytes() if file.suffix in (".gz", ".zip", ".txt") else None
    return found


@pytest.fixture
def command(tmp_path):
    """A command's arguments, by its name and the folder that it writes."""
    actions = tmp_path / "actions.csv"
    actions.write_text("index,income\n0,1.0\n")
    return lambda name, out: [part.format(out=out, actions=actions) for part in COMMANDS[name][1]]


@pytest.mark.parametrize("name", COMMANDS)
def test_killed_before_a_change_of_the_folder(name, command, tmp_path):
    """kill -9 at each of them in turn, or at some of them."""
    whole = tmp_path / "whole"
    changes = killed(lambda: main(command(name, whole)), whole, None)
    assert changes is not None and changes > 9
    for at in range(1, changes + 1, COMMANDS[name][0]):
        out = tmp_path / str(at) / "whole"
        assert killed(lambda out=out: main(command(name, out)), out, at) is None
        assert main(command(name, out)) == 0
        assert contents(out) == contents(whole), f"killed before change {at}"


def test_rows_that_are_cut_off_anywhere(command, tmp_path):
    """As a machine that loses its power leaves them, and the journal of a check."""
    out, journal = tmp_path / "out", tmp_path / "journal"
    check = [str(out), str(PEOPLE), "--jobs=1", f"--resume={journal}"]

    def known() -> list[list[object]]:
        return sorted(json.loads(line)[:4] for line in journal.read_text().splitlines()[1:])

    assert main(command("a population", out)) == 0
    assert verify(check) == 0
    whole, outcomes, lines = contents(out), known(), journal.read_bytes()
    assert len(outcomes) == 3
    for at in range(0, len(lines), 17):
        journal.write_bytes(lines[:at])
        assert verify(check) == 0
        assert known() == outcomes
    for at in range(0, (out / "results.csv").stat().st_size, 17):
        os.truncate(out / "results.csv", at)
        assert main(command("a population", out)) == 0
        assert contents(out) == whole


@contextmanager
def disk(place: Path, size: int):
    """A file system of so many bytes in memory; yields a function that changes its size."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs root: a disk of its own")
    try:
        yield lambda larger: subprocess.run(
            ["mount", "-o", f"remount,size={larger}", str(place)], capture_output=True, check=True
        )
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_disk_that_is_full(name, command, tmp_path, capsys):
    """One line and exit code 1; once there is room, the same command ends as if there always had been."""
    whole = tmp_path / "whole"
    assert main(command(name, whole)) == 0
    full = 0
    for pages in range(2, 42, 8):
        with disk(tmp_path / str(pages), pages * 4096) as resize:
            out = tmp_path / str(pages) / "whole"
            capsys.readouterr()
            code, said = main(command(name, out)), capsys.readouterr().err
            assert code == 0 or (code == 1 and said.count("\n") == 1 and "No space left" in said), said
            full += code
            resize(2**24)
            assert main(command(name, out)) == 0
            assert contents(out) == contents(whole)
        if code == 0:
            break
    assert full > 0


def test_a_journal_on_a_full_disk(command, tmp_path):
    """The check ends with exit code 1 and one line, and goes on later."""
    out = tmp_path / "out"
    assert main(command("a population", out)) == 0
    with disk(tmp_path / "small", 4096) as resize:
        journal = tmp_path / "small" / "journal"
        arguments = ["-m", "verify", str(out), str(PEOPLE), "--jobs=1", f"--resume={journal}"]
        (tmp_path / "small" / "other").write_bytes(b"x" * 4096)
        done = subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1 and "No space left" in done.stderr and "Traceback" not in done.stderr
        resize(2**20)
        done = subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0 and done.stdout.startswith("VERIFIED 3 of 3")
