"""No command writes over a file that it reads, and no two options name one file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from milp_recourse.cli import main
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.formats.strict_json import write_whole


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    file = tmp_path / "one.instance.json"
    file.write_bytes((instances_path() / "smoke" / "threshold.json").read_bytes())
    return file


@pytest.mark.parametrize(
    "arguments",
    [
        "solve {problem} --json {problem}",
        "solve --certificate {problem} {problem}",
        "solve {problem} --certificate {folder}/one.json",  # beside which one.instance.json is written
        "solve {problem} --json {folder}/a.json --certificate {folder}/../{name}/a.json",
        "why {link} --json {problem}",
        "choices {problem} --json {problem}",
        "robust {problem} --threshold 0.1 --json {problem}",
        "prove {problem} --action {problem} --json {problem}",
        "prepare {problem} --out {problem}",
        "icarma predict {problem} --out {problem}",
        "solve {split} --json {folder}/classifier.json",
        "certificate {results} 0 --out {results}/results.csv",
        "certificate {results} 0 --out {results}/certificates/0.zip",
        "report {results} {problem} --out {results}/run.json",
        "letter {results} 0 {problem} --out {results}/run.json",
        "letter {results} 0 --template {problem} --out {problem}",
    ],
)
def test_refused_in_one_line(problem: Path, arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, both names in the line, and the file is as it was."""
    folder = problem.parent
    link, split, results = folder / "link.json", folder / "split.json", folder / "results"
    link.symlink_to(problem)
    data = json.loads(problem.read_text())
    (folder / "classifier.json").write_text(json.dumps(data["classifier"]))
    split.write_text(json.dumps(data | {"classifier": {"path": "classifier.json"}}))
    (results / "certificates").mkdir(parents=True)
    for name in ("results.csv", "run.json", "certificates/0.zip"):
        (results / name).write_text("kept")
    given = {"problem": problem, "folder": folder, "name": folder.name, "link": link}
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    assert main(arguments.format(**given, split=split, results=results).split()) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1 and "allowed: another file" in line
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before


def test_a_link_is_followed_and_a_pipe_stays_one(tmp_path: Path) -> None:
    """A link used to become a file, and so did a pipe."""
    target, link, pipe = tmp_path / "target.json", tmp_path / "link.json", tmp_path / "pipe"
    link.symlink_to(target)
    write_whole(b"one", link)
    assert link.is_symlink() and target.read_bytes() == b"one"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_bytes)
        write_whole(b"two", pipe)
        assert read.result() == b"two"
    assert pipe.is_fifo()


def test_stdout_by_its_name_is_written_to_as_it_is(tmp_path: Path) -> None:
    """Also where it is a pipe without a name, or a file with lines in it, which used to be replaced."""
    code = "from milp_recourse.formats.strict_json import write_whole; write_whole(b'new', '/dev/stdout')"
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"new"
    log = tmp_path / "log"
    log.write_bytes(b"old ")
    with log.open("ab") as stream:
        subprocess.run(command, stdout=stream, check=True)
    assert log.read_bytes() == b"old new"


def test_a_folder_that_is_written_is_not_read(problem: Path, tmp_path: Path) -> None:
    """The same command can be repeated."""
    out = tmp_path / "front"
    for _ in range(2):
        assert main(["front", str(problem), "--out", str(out), "--json", str(out / "said.json")]) == 0
