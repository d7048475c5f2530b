"""A folder's check streams, goes on where it stopped, and may run on any workers."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from milp_recourse.cli import main as product
from milp_recourse.questions.workers import Workers
from verify.__main__ import main
from verify.files.lines import Lines
from verify.files.many import Check
from verify.files.table import Table
from verify.kernel.checks import Rejected

ROOT = Path(__file__).parent.parent.parent
POPULATION = ROOT / "tests/certificates/instances/toy_population.json"
SAID = ("claim", "cost", "lower_bound")
ONE = json.loads((ROOT / "tests/certificates/accepted/population_0.json").read_text())


@pytest.fixture
def many(tmp_path):
    """Forty people who are the same, their certificates in two archives and some files, their table."""
    return folder_of(tmp_path, 40)


def folder_of(tmp_path, people):
    """A folder of certificates of so many people who are the same, and its population's file."""
    data = json.loads(POPULATION.read_text())
    names = [f["name"] for f in data["features"]]
    first = data["factuals"][0]
    cells = ",".join(str(first[name]) for name in names)
    (tmp_path / "people.csv").write_text(",".join(names) + "\n" + (cells + "\n") * people)
    preferences = data["preferences"]
    data |= {"factuals": {"csv": "people.csv"}}
    data["preferences"] = preferences[0] if isinstance(preferences, list) else preferences
    (tmp_path / "people.json").write_text(json.dumps(data))
    folder = tmp_path / "out"
    (folder / "certificates").mkdir(parents=True)
    packed = {f"{k}.json.gz": gzip.compress(json.dumps(ONE | {"index": k}).encode()) for k in range(people)}
    for k in (0, 1):
        with zipfile.ZipFile(folder / "certificates" / f"{k}.zip", "w") as archive:
            for name in list(packed)[15 * k : 15 * (k + 1)]:
                archive.writestr(name, packed[name])
    for name in list(packed)[30:]:
        (folder / "certificates" / name).write_bytes(packed[name])
    actions = [f"action_{name}" for name in names]
    head = ["index", "status", "cost", "lower_bound", "gap", "proof", "backend", "seconds", "certificate"]
    rows = [
        [
            k,
            ONE["claim"],
            ONE["cost"],
            ONE["lower_bound"],
            ONE["cost"] - ONE["lower_bound"],
            "rigorous",
            "bab",
            0,
            f"certificates/{k}.json.gz",
        ]
        + [ONE["action"].get(name, "") for name in names]
        for k in range(people)
    ]
    lines = [",".join(map(str, row)) for row in [[*head, *actions], *rows]]
    (folder / "results.csv").write_text("\n".join(lines) + "\n")
    return folder, tmp_path / "people.json"


def test_archives_files_and_rows(many, capsys):
    """All are checked against their rows, alone, in processes, and by joblib's workers."""
    said = set()
    for arguments, mapped in ((["--jobs=1"], None), (["--jobs=2"], None), ([], Workers(2).map)):
        assert main([*map(str, many), *arguments], mapped) == 0
        out = capsys.readouterr()
        said.add(out.out.split("; ")[0])
        assert "results.csv agrees, 40 of its 40 answers are certified" in out.out
        assert "40 of 40 checked, 0 rejected" in out.err
    assert said == {"VERIFIED 40 of 40 certificates (40 optimal)"}


def test_a_check_goes_on_where_it_stopped(many, capsys, monkeypatch):
    """What the journal has is not checked again, and what came of it is counted."""
    folder, people = many
    journal = folder.parent / "journal"
    arguments = [str(folder), str(people), "--jobs=1", f"--resume={journal}"]
    stopped = 0

    def stop(self, outcome, total, count=Check._count):
        nonlocal stopped
        count(self, outcome, total)
        stopped += 1
        if stopped == 23:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Check, "_count", stop)
        with pytest.raises(KeyboardInterrupt):
            main(arguments)
    with journal.open("ab") as stream:
        stream.write(b'["torn')  # as a machine that lost its power leaves it
    capsys.readouterr()
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert out.startswith("VERIFIED 40 of 40 certificates (40 optimal)")
    assert "23 of them checked before" in out
    assert main(arguments) == 0
    assert "40 of them checked before" in capsys.readouterr().out


def test_a_killed_check_goes_on(tmp_path):
    """kill -9 while archives are checked on two processes, then the same command again."""
    folder, people = folder_of(tmp_path, 600)
    journal = tmp_path / "journal"
    command = [sys.executable, "-m", "verify", str(folder), str(people), "--jobs=2", f"--resume={journal}"]
    nowhere = subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=ROOT, stdout=nowhere, stderr=nowhere, start_new_session=True)
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and process.poll() is None:
        if journal.exists() and journal.read_bytes().count(b"\n") > 50:
            break
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)  # its own processes too, as when a machine goes down
    process.wait()
    known = journal.read_bytes().count(b"\n") - 1
    assert 50 <= known < 600
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stdout
    assert again.stdout.startswith("VERIFIED 600 of 600 certificates")
    assert f"{known} of them checked before" in again.stdout


@pytest.mark.long
def test_a_cluster_checks_archives_and_goes_on(many, capsys):
    """joblib's Dask back end: the same verdict; what the journal has is not sent out again."""
    distributed = pytest.importorskip("distributed", reason="the dask extra is not installed")
    folder, people = many
    journal = folder.parent / "journal"
    wrong = gzip.compress(json.dumps(ONE | {"index": 35, "cost": 1.0}).encode())
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        at = ["--parallel", "dask", "--scheduler", cluster.scheduler_address]
        command = ["verify", str(folder), str(people), *at, "--resume", str(journal)]
        assert product(command) == 0
        assert capsys.readouterr().out.startswith("VERIFIED 40 of 40 certificates (40 optimal); 40 of 40")
        (folder / "certificates" / "35.json.gz").write_bytes(wrong)
        assert product(command) == 4
        out = capsys.readouterr().out
        assert "35.json.gz: REJECTED: cost: not the action's" in out and "39 of them checked before" in out


def test_a_journal_covers_no_changed_file(many, capsys):
    """Other bytes or another row are checked again; other instances or options are another check."""
    folder, people = many
    journal = folder.parent / "journal"
    arguments = [str(folder), str(people), "--jobs=1", f"--resume={journal}"]
    assert main(arguments) == 0
    wrong = gzip.compress(json.dumps(ONE | {"index": 35, "cost": 1.0}).encode())
    (folder / "certificates" / "35.json.gz").write_bytes(wrong)
    table = (folder / "results.csv").read_text()
    row = next(line for line in table.splitlines() if line.startswith("3,"))
    (folder / "results.csv").write_text(table.replace(row, row.replace("3,optimal", "3,limit", 1)))
    capsys.readouterr()
    assert main(arguments) == 4
    out = capsys.readouterr().out
    assert "35.json.gz: REJECTED" in out and "3.json.gz: REJECTED: results.csv: status" in out
    assert "38 of them checked before" in out
    (folder / "certificates" / "35.json.gz").unlink()
    assert main([*arguments, "--slow"]) == 2
    assert "of a check of other files or options" in capsys.readouterr().err
    people.write_text(people.read_text() + "\n")
    assert main(arguments) == 2
    assert "of a check of other files or options" in capsys.readouterr().err


def test_a_sample_says_of_how_many(many, capsys):
    """So many, drawn from all."""
    assert main([*map(str, many), "--sample=7", "--jobs=1"]) == 0
    assert "7 of 7 certificates, drawn at random from 40" in capsys.readouterr().out


@pytest.mark.long
def test_rows_are_not_kept(tmp_path):
    """Eight bytes are kept of a row; any is found again, quotes and line ends too."""
    row = '17,"a ""quoted"" cell,\nover two lines",' + "x" * 100
    (tmp_path / "t.csv").write_text("a,b,c\n" + f"{row}\n" * 100_000)
    tracemalloc.start()
    try:
        lines = Lines(tmp_path / "t.csv")
        assert tracemalloc.get_traced_memory()[1] < 4 * 2**20
    finally:
        tracemalloc.stop()
    assert len(lines) == 100_000
    assert lines[99_999] == lines[0] == ["17", 'a "quoted" cell,\nover two lines', "x" * 100]


@pytest.mark.parametrize("name", ["03", "\u0663", "\uff13", "3_", " 3", "-3"])
def test_only_its_own_name_is_a_rows_certificate(many, name, capsys):
    """Another way to write the number of a row is another file: it has no row, and the row has no file."""
    folder, people = many
    (folder / "certificates" / "33.json.gz").rename(folder / "certificates" / f"{name}.json.gz")
    table = Table(folder)
    assert table.row("3")["index"] == "3" and table.row(name) == {}
    assert main([str(folder), str(people), "--jobs=1"]) == 4
    out = capsys.readouterr().out
    assert "33.json.gz: REJECTED: results.csv has a row for it" in out or "there twice" in out


@pytest.mark.parametrize("cell", ["1_0", "nan", "inf", "\uff11", "0x1p1", "1e999"])
def test_numbers_are_written_as_numbers_are(many, cell, capsys):
    """What Python's float reads besides is none, also in a row that is not certified."""
    folder, people = many
    table = (folder / "results.csv").read_text()
    rows = table.splitlines()
    cells = rows[-1].split(",")
    cells[2], cells[8] = cell, ""
    (folder / "certificates" / "39.json.gz").unlink()
    (folder / "results.csv").write_text("\n".join([*rows[:-1], ",".join(cells)]) + "\n")
    assert main([str(folder), str(people), "--jobs=1"]) == 4
    assert "allowed: a number, or nothing" in capsys.readouterr().out


@pytest.mark.parametrize("holds", ["the journal of another run", "nothing"])
def test_two_runs_do_not_share_a_journal(many, tmp_path, holds):
    """The second says so in one line, exit code 1, and writes nothing; after a kill -9 nothing is locked."""
    folder, people = many
    journal = tmp_path / "journal"
    if holds == "the journal of another run":
        journal.write_text("of another check\n")
    before = journal.read_bytes() if journal.exists() else b""
    code = (
        "import sys; from verify.files.many import locked\nfile = open(sys.argv[1], 'a+b')\n"
        "print(locked(file.fileno()), flush=True); sys.stdin.read()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code, str(journal)], cwd=ROOT, **pipes) as other:
        assert other.stdout.readline() == b"True\n"
        command = [sys.executable, "-m", "verify", str(folder), str(people), "--jobs=2"]
        command.append(f"--resume={journal}")
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert "another run writes this journal" in done.stderr
        assert journal.read_bytes() == before
        other.kill()
    journal.write_bytes(b"")
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr


def test_a_table_that_is_none(tmp_path):
    """What is no text is refused with one line."""
    (tmp_path / "t.csv").write_bytes(b"a,b\n\xff\xfe,1\n")
    with pytest.raises(Rejected, match="unreadable"):
        Lines(tmp_path / "t.csv")
