"""Growth: the problems are what the docs say, rows resume, panels end where nothing is solved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from milp_recourse.cli import main
from milp_recourse.formats import read_population
from milp_recourse.judge import already_good
from milp_recourse.lab.benchmarks import growth
from milp_recourse.lab.run_table import read_rows
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result, Status
from milp_recourse.solvers import Options, Proposal, backend, register

LOAN = Path(__file__).resolve().parents[3] / "instances" / "loan" / "population.json"


SHAPES = [
    growth.Shape(),
    growth.Shape(actions=8, chain=True),
    growth.Shape(width=32, depth=3),
    growth.Shape(trees=7),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_factuals_are_refused(shape: growth.Shape) -> None:
    """Everybody is refused, has as many levers as the shape says, and the seed decides."""
    problems = growth.problems(shape, 8, 0)
    assert len(problems) == 8
    for problem in problems:
        assert not already_good(problem)
        assert len(problem.levers) == shape.actions
        if isinstance(problem.classifier, TreeEnsemble):
            assert len(problem.classifier.trees) == shape.trees
        else:
            assert problem.plausible
            assert problem.classifier.hidden == shape.width * shape.depth  # type: ignore[union-attr]
    again = growth.problems(shape, 8, 0)
    assert [p.factual for p in again] == [p.factual for p in problems]
    assert growth.problems(shape, 8, 1)[0].factual != problems[0].factual


def test_the_exponent_is_that_of_a_power() -> None:
    """Seconds of 3 size^1.5."""
    assert growth.exponent([1, 4, 9], [3.0, 24.0, 81.0]) == pytest.approx(1.5)


def test_about_half_can_be_accepted() -> None:
    """The threshold lies where sampled actions take half of all applicants."""
    problems = growth.problems(growth.Shape(actions=2, width=8), 24, 0)
    from milp_recourse.questions.solve import solve_together

    optimal = [r.status is Status.OPTIMAL for r in solve_together(problems, "bab")]
    assert 0.25 < np.mean(optimal) < 0.75


def test_the_command_resumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All panels in small; a rerun adds nothing; other options are refused."""
    command = ["lab", "bench", "growth", "--out", str(tmp_path), "--jobs", "1", "--applicants", "1"]
    command += ["--largest", "1", "--time-limit", "60"]
    assert main(command) == 0
    first = (tmp_path / "growth.csv").read_text()
    rows = read_rows(tmp_path / "growth.csv")
    points = [(r["panel"], r["value"]) for r in rows]
    assert points == [(panel, "1") for panel in ("actions", "actions-chain", "depth", "population")]
    assert all(float(r["cpu_max"]) >= float(r["cpu_median"]) > 0 for r in rows)
    assert (tmp_path / "growth.png").stat().st_size > 1000
    assert main(command) == 0
    assert (tmp_path / "growth.csv").read_text() == first
    capsys.readouterr()
    assert main([*command, "--seed", "1"]) == 2
    assert "another run" in capsys.readouterr().err


class Hopeless:
    """A back end that never finishes."""

    name = "hopeless"
    proves = True

    def unavailable(self) -> None:
        """Usable."""

    def why_not(self, _: Instance) -> None:
        """Takes everything."""

    def solve(self, _: Instance, __: Options) -> Proposal:
        """Nothing found, nothing proven."""
        return Proposal(None, 0.0, "rigorous", message="hopeless")


def test_a_panel_ends_where_nothing_is_solved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One hopeless point is enough; the next run does not try again either."""
    from milp_recourse import solvers as backends

    monkeypatch.setattr(backends, "_registered", {})
    register("hopeless", Hopeless)
    assert backend("hopeless").name == "hopeless"
    options = {"applicants": 1, "seed": 0, "time_limit": 1.0, "backend": "hopeless"}
    loan, points = read_population(LOAN), []
    for _ in range(2):
        rows = growth.run(loan, tmp_path, options, {"width": (2, 4, 8)}, 1, points.append)
        assert [(r["value"], r["solved_share"]) for r in rows] == [("2", "0")]
    assert points == ["width 2"]


def test_slower_than_the_limit_is_unsolved() -> None:
    """A proof after more processor seconds than the limit does not count as solved."""
    result = Result(Status.INFEASIBLE, proof="rigorous", seconds=1.0)
    assert growth.summary([result, result], [0.5, 3.0], 2.0)["solved_share"] == "0.5"
