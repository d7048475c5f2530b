"""No command writes over a file that it reads, and no two options name one file."""

from __future__ import annotations

from pathlib import Path

import pytest

from milp_recourse.cli import main
from milp_recourse.instances_path import instances_path


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
    ],
)
def test_refused_in_one_line(problem: Path, arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, both names in the line, and the file is as it was."""
    before, folder = problem.read_bytes(), problem.parent
    link = folder / "link.json"
    link.symlink_to(problem)
    given = {"problem": problem, "folder": folder, "name": folder.name, "link": link}
    assert main(arguments.format(**given).split()) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1 and "allowed: another file" in line
    assert problem.read_bytes() == before
    assert {one.name for one in folder.iterdir()} == {problem.name, link.name}
