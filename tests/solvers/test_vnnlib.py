"""VNN-LIB files and their networks say what the problem says; what they cannot say is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from milp_recourse.cli.app import main
from milp_recourse.errors import Unsupported
from milp_recourse.formats import read_instance, write_instance
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.judge import judge
from milp_recourse.solvers.vnnlib import export_vnnlib, questions
from tests.properties.in_marabou import person, refused_person

LIMIT = re.compile(r"\(assert \(([<>])= ([XY])_(\d+) (-?[\d.]+)\)\)")


def broken(text: str, x: np.ndarray, y: np.ndarray, room: float = 1e-5) -> list[str]:
    """The limits of a property that inputs and outputs break by more than ``room``."""
    values = {"X": x.ravel(), "Y": y.ravel()}
    found = []
    for sign, name, k, end in LIMIT.findall(text):
        over = values[name][int(k)] - float(end)
        if (over if sign == "<" else -over) > room:
            found.append(f"{name}_{k}")
    assert text.count("(assert") == len(LIMIT.findall(text))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_the_network_computes_logit_cost_and_rows(seed: int, tmp_path: Path) -> None:
    """Of random actions, and of the optimum, each limit that is broken is one that the judge finds broken."""
    instance, cost = refused_person(seed)
    rng = np.random.default_rng(seed)
    asked = questions(instance, cost)
    for question, path in zip(asked, export_vnnlib(instance, tmp_path / "q.vnnlib", cost), strict=True):
        network = ReferenceEvaluator(onnx.load(f"{path}.onnx"))
        lowest = np.array([a.lower for a in question.actions])
        width = np.array([a.upper for a in question.actions]) - lowest
        for _ in range(20):
            x = rng.random(len(lowest)) * width
            action = dict(zip((a.feature for a in question.actions), (x + lowest).tolist(), strict=True))
            [y] = network.run(None, {"X": x[None, :].astype(np.float32)})
            judged = judge(instance, action)
            assert judged.logit is not None
            size = 1e-4 * (1 + abs(float(judged.logit.midpoint)))
            assert y[0, 0] == pytest.approx(float(judged.logit.midpoint), abs=size)
            assert y[0, -1] == pytest.approx(float(judged.cost), rel=1e-4, abs=1e-5)
            rows = [name for name in broken(path.read_text(), x, y) if name not in ("Y_0", f"Y_{y.size - 1}")]
            assert not rows or judged.broken


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files for each set of features that is told apart; the optimum's action keeps one file's limits."""
    instance = person(1)
    write_instance(instance, tmp_path / "person.json")
    out = tmp_path / "question.vnnlib"
    asked = ["export", str(tmp_path / "person.json"), "--out", str(out)]
    assert main([*asked, "--cost", "5"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == len(questions(instance, 5.0)) > 1
    assert all((tmp_path / f"question{k}.vnnlib.onnx").exists() for k in ("", "-2"))
    for options in ([], ["--cost", "-1"], ["--cost", "1", "--linear"]):
        assert main([*asked, *options]) == 2
        assert capsys.readouterr().err.startswith("milp-recourse: --cost: got ")
    assert main(["export", asked[1], "--out", str(tmp_path / "a.lp"), "--cost", "1"]) == 2


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("loan/loan_007", "plausibility"),
        ("smoke/mixture", "squares and maxima|whole numbers"),
        ("smoke/categorical", "whole numbers|ReLU network cannot"),
        ("credit_trees/credit_000", "ReLU networks only"),
    ],
)
def test_what_is_refused(case: str, words: str, tmp_path: Path) -> None:
    """In one line with the reason, and nothing is written."""
    instance = read_instance(instances_path() / f"{case}.json")
    with pytest.raises(Unsupported, match=words):
        export_vnnlib(instance, tmp_path / "a.vnnlib", 1.0)
    assert not list(tmp_path.iterdir())


def test_squared_costs_are_refused(tmp_path: Path) -> None:
    """The cost decides, where all else could be written."""
    loan = replace(read_instance(instances_path() / "loan" / "loan_007.json"), plausible=False)
    with pytest.raises(Unsupported, match="squares and maxima"):
        export_vnnlib(loan, tmp_path / "a.vnnlib", 1.0)
