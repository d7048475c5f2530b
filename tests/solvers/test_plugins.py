"""A back end that an installed package brings is found by its name."""

import math
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from milp_recourse import read_instance, solvers
from milp_recourse.cli import main
from milp_recourse.errors import BackendUnavailable, Unsupported
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.judge.conclude import Proposal
from milp_recourse.problem.result import Status
from milp_recourse.questions.solve import solve_together
from milp_recourse.solvers import backend, listed

TOY = Path(__file__).parents[2] / "docs" / "examples" / "toy_backend.py"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install a package whose entry point is as told, the way pip lays it out."""

    def install(target: str) -> None:
        (tmp_path / "brought_along.py").write_text(TOY.read_text())
        meta = tmp_path / "brought_along-1.dist-info"
        meta.mkdir()
        (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: brought-along\nVersion: 1\n")
        (meta / "entry_points.txt").write_text(f"[milp_recourse.backends]\ndivision = {target}\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "brought_along", raising=False)

    return install


def test_an_entry_point_is_a_back_end(installed, monkeypatch, capsys):
    """In Python and on the command line."""
    installed("brought_along:DivisionBackend")
    assert backend("division").name == "division"
    assert listed()["division"] is None
    file = instances_path() / "smoke" / "threshold.json"
    monkeypatch.setattr(sys, "argv", ["milp-recourse", "solve", str(file), "--backend", "division"])
    main()
    assert "optimal (proof: rigorous)" in capsys.readouterr().out


@pytest.mark.parametrize("target", ["no_such_module:Backend", "brought_along:NoSuchClass"])
def test_one_that_cannot_be_loaded_says_so_and_harms_no_other(target, installed):
    """One line where it is asked for; the list says why; other names work, unknown ones are refused."""
    installed(target)
    with pytest.raises(BackendUnavailable, match="'division' cannot be loaded"):
        backend("division")
    assert "cannot be loaded" in listed()["division"]
    assert backend("grid").name == "grid"
    with pytest.raises(BackendUnavailable, match=r"allowed: .*division"):
        backend("no such back end")


PROPOSALS = {
    "no proposal": lambda: None,
    "a tuple": lambda: (1, 2),
    "an action that is a list": lambda: Proposal([1.0], 0.0, "rigorous"),
    "an action of texts": lambda: Proposal({"x": "far"}, 0.0, "rigorous"),
    "a bound in words": lambda: Proposal(None, "none", "rigorous"),
    "a proof of its own": lambda: Proposal(None, 0.0, "certain"),
    "nodes in words": lambda: Proposal(None, 0.0, "solver", nodes="many"),
    "a message that is none": lambda: Proposal(None, 0.0, "solver", message=3),
    "an error": lambda: 1 // 0,
}
HARMLESS = {
    "a bound that is no number": lambda: Proposal(None, math.nan, "rigorous"),
    "a bound below 0": lambda: Proposal(None, -1.0, "rigorous"),
    "an unknown feature": lambda: Proposal({"no such feature": 1.0}, 0.0, "rigorous"),
    "a number without end": lambda: Proposal({"x": math.inf}, 0.0, "rigorous"),
    "nowhere near": lambda: Proposal({"x": -1e300}, 1e300, "rigorous"),
    "infeasible without proof": lambda: Proposal(None, math.inf),
    "a bound and no proof": lambda: Proposal(None, 1.0),
}


def answering(answer: Callable[[], object], batch: bool = False) -> type:
    """A back end that answers always the same; ``batch``: to many together."""

    class Answering:
        name, proves = "nonsense", True

        def unavailable(self):
            return None

        def why_not(self, instance):
            return None

        def solve(self, instance, options):
            return answer()

    class Together(Answering):
        batch = 4

        def solve_many(self, instances, options):
            yield from ((k, answer()) for k in range(len(instances)))

    return Together if batch else Answering


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("case", [*PROPOSALS, *HARMLESS])
def test_nonsense_is_one_line_or_claims_nothing(case, batch, monkeypatch, capsys):
    """A proposal of the wrong type, or an error, is one line that names the back end; a wrong number proves
    nothing."""
    answer = {**PROPOSALS, **HARMLESS}[case]
    monkeypatch.setitem(solvers._registered, "nonsense", answering(answer, batch))
    file = instances_path() / "smoke" / "threshold.json"
    code = main(["solve", str(file), "--backend", "nonsense"])
    said = capsys.readouterr()
    if case in PROPOSALS:
        assert code == 2 and ": backend nonsense: it r" in said.err
        assert said.err.count("\n") == 1
    else:
        assert code == 3 and said.out.startswith("limit")


@pytest.mark.parametrize("positions", [[0], [0, 0], [0, 5], [0, "x"]])
def test_a_batch_is_answered_once_each(positions, monkeypatch):
    """None is left out, none is answered twice. What a batch gets wrong is asked of each alone."""

    class Together(answering(lambda: Proposal(None, 0.0, "solver"), True)):
        def solve_many(self, instances, options):
            yield from ((k, Proposal(None, 0.0, "solver")) for k in positions)

    monkeypatch.setitem(solvers._registered, "nonsense", Together)
    problem = read_instance(instances_path() / "smoke" / "threshold.json")
    found = list(solve_together([problem, problem], "nonsense"))
    assert [one.status for one in found] == [Status.LIMIT] * 2
    assert all(one.lower_bound in (None, 0.0) for one in found)


def test_one_that_raises_when_asked_whether_it_can(monkeypatch):
    """The list says so, and others are listed."""

    class Asking(answering(lambda: None)):
        def unavailable(self):
            raise OSError("no licence server")

    monkeypatch.setitem(solvers._registered, "nonsense", Asking)
    assert "no licence server" in listed()["nonsense"]
    with pytest.raises(Unsupported, match="nonsense: it raised OSError: no licence server"):
        backend("nonsense")
