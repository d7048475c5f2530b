"""milp-recourse interview: answers from a file or typed, continued, certified, verified."""

from __future__ import annotations

import io

import pytest

from milp_recourse.cli import main
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.formats.strict_json import read_json
from verify.files.check import examine

LOAN = str(instances_path() / "loan" / "loan_009.json")


def test_answers_of_a_file_are_replayed_and_continued(tmp_path, capsys):
    """Two answers, kept with --out; then a third: the same as three at once, to the last byte."""
    words = tmp_path / "answers.txt"
    words.write_text("left  # the first\nright\n")
    first, second, whole = (tmp_path / f"{name}.json" for name in ("first", "second", "whole"))
    assert main(["interview", LOAN, "--answers", str(words), "--out", str(first)]) == 0
    printed = capsys.readouterr()
    assert "2 answers; questions are left" in printed.out
    assert "Whatever you meant within your answers, nothing is more than" in printed.out
    kept = read_json(first)
    assert [one["answer"] for one in kept["answers"]] == ["left", "right"]
    words.write_text("left\nright\nsame\n")
    assert main(["interview", LOAN, "--answers", str(words), "--out", str(whole)]) == 0
    assert main(["interview", LOAN, "--answers", str(whole), "--out", str(second)]) == 0
    assert second.read_bytes() == whole.read_bytes()


def test_certificate_and_regret_verify(tmp_path, capsys):
    """Each with the instance that is written beside it."""
    words = tmp_path / "answers.txt"
    words.write_text("left\nright\n")
    proof, certificate = tmp_path / "regret.json", tmp_path / "certificate.json.gz"
    made = ["--regret", str(proof), "--certificate", str(certificate)]
    assert main(["interview", LOAN, "--answers", str(words), *made]) == 0
    assert examine(proof, tmp_path / "regret.instance.json").claim == "regret"
    assert examine(certificate, tmp_path / "certificate.instance.json").claim == "optimal"


def test_it_asks_in_the_terminal(tmp_path, capsys, monkeypatch):
    """First letters suffice; what is no answer is asked again; an empty line ends it."""
    monkeypatch.setattr("sys.stdin", io.StringIO("l\nmaybe\nneither\n\n"))
    assert main(["interview", LOAN, "--out", str(tmp_path / "kept.json")]) == 0
    printed = capsys.readouterr()
    assert "1: which is easier for you?" in printed.out and "got 'maybe'; allowed: left" in printed.err
    assert [one["answer"] for one in read_json(tmp_path / "kept.json")["answers"]] == ["left", "neither"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--method", "guess"], "method: got guess; allowed: choices"),
        (["--budget", "-1"], "budget: got -1"),
        (["--noise", "-0.1"], "noise: got -0.1"),
    ],
)
def test_bad_arguments_are_one_line(more, said, capsys):
    """Exit code 2."""
    assert main(["interview", LOAN, *more]) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1


def test_a_wrong_answer_names_the_file(tmp_path, capsys):
    """And nothing is written."""
    words, out = tmp_path / "answers.txt", tmp_path / "kept.json"
    words.write_text("left\nwest\n")
    assert main(["interview", LOAN, "--answers", str(words), "--out", str(out)]) == 2
    err = capsys.readouterr().err
    assert "answers.txt" in err and "got west; allowed: left" in err and not out.exists()
