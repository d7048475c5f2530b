"""LP and MPS files hold the same problem: another solver reading them finds the same optimum."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from milp_recourse import read_instance, solve
from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.solvers.export import export, unique_names
from milp_recourse.solvers.rows.mixed_integer import MixedInteger, QuadraticRow

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
CASES = [
    "smoke/plausible_ball",
    "smoke/plausible_relu",
    "smoke/hold",
    "smoke/mixture",
    "smoke/l0",
    "smoke/categorical",
    "smoke/infeasible_plausible",
    "loan/loan_130",
    "loan/loan_150",
]
UNIT = 0.01


def existing(case: str) -> Path:
    path = INSTANCES / f"{case}.json"
    if not path.exists():
        pytest.fail(f"{path} is gone: choose another instance")
    return path


def by_scip(path: Path) -> tuple[str, float | None, dict[str, float]]:
    from pyscipopt import Model

    model = Model()
    model.hideOutput()
    model.setParam("numerics/feastol", 1e-8)
    model.readProblem(str(path))
    model.optimize()
    if model.getStatus() != "optimal":
        return model.getStatus(), None, {}
    return "optimal", model.getObjVal(), {v.name: model.getVal(v) for v in model.getVars()}


def by_gurobi(path: Path) -> tuple[str, float | None, dict[str, float]]:
    gp = pytest.importorskip("gurobipy")
    tight = {"FeasibilityTol": 1e-9, "IntFeasTol": 1e-9, "MIPGap": 1e-9, "Threads": 1}
    with gp.Env(params={"OutputFlag": 0, **tight}) as env, gp.read(str(path), env) as model:
        model.optimize()
        if model.Status == gp.GRB.INFEASIBLE:
            return "infeasible", None, {}
        assert model.Status == gp.GRB.OPTIMAL
        return "optimal", model.ObjVal, {v.VarName: v.X for v in model.getVars()}


@pytest.mark.parametrize("read", [by_scip, by_gurobi])
@pytest.mark.parametrize("suffix", [".lp", ".mps"])
@pytest.mark.parametrize("case", CASES)
def test_another_solver_reads_the_same_optimum(case: str, suffix: str, read, tmp_path: Path) -> None:
    """SCIP and Gurobi, reading the file on their own, agree with highs to 1e-6 relative."""
    instance = read_instance(existing(case))
    target = tmp_path / f"problem{suffix}"
    export(instance, target, cost_unit=UNIT)
    known = solve(instance)
    status, cost, values = read(target)
    assert status == known.status.value
    if cost is None:
        return
    assert cost * UNIT == pytest.approx(known.cost, rel=1e-6)
    acted = {n for n in instance.levers if values[f"act_{n}"] > 0.5}
    assert {n for n, v in known.action.items() if v != instance.factual[n]} <= acted


GAMMA = {
    "format": "milp-recourse/instance-1",
    "features": [{"name": "age", "kind": "continuous", "actionable": True, "bounds": [1, 20]}],
    "scm": {
        "name": "explicit",
        "mechanisms": {"age": {"equation": 0, "noise": {"kind": "gamma", "shape": 3, "scale": 2}}},
    },
    "classifier": {
        "kind": "relu-network",
        "dtype": "float64",
        "layers": [{"weight": [[-1]], "bias": [2.9]}],
    },
    "factual": {"age": 5},
    "preferences": {"actionable": ["age"]},
    "cost": {"kind": "l2-squared", "scale": {"age": 1}},
    "plausibility": {"kind": "scm-density", "at_least": "factual"},
}
"""Accepted up to age 2.9; as plausible as 5 only from 3.1 on, where u / 2 - 2 ln u is back at its value."""


@pytest.mark.parametrize("suffix", [".lp", ".mps"])
def test_plausibility_without_squares_is_written_too(suffix: str, tmp_path: Path) -> None:
    """Gamma noise gives a linear row over curves; leaving it out would make the problem feasible."""
    source = tmp_path / "gamma.json"
    source.write_text(json.dumps(GAMMA))
    instance = read_instance(source)
    assert solve(instance).status.value == "infeasible"
    target = tmp_path / f"problem{suffix}"
    export(instance, target, pieces=64)
    assert by_scip(target)[0] == "infeasible"


def test_names_are_clean_unique_and_explained(tmp_path: Path) -> None:
    """Whatever a feature is called, readers take the file, and comments say what stands for what."""
    text = (INSTANCES / "smoke" / "plausible_ball.json").read_text()
    text = text.replace('"income"', '"net income, €"').replace('"savings"', '"net_income___"')
    source = tmp_path / "odd.json"
    source.write_text(text, encoding="utf-8")
    instance = read_instance(source)
    known = solve(instance).cost
    for suffix in (".lp", ".mps"):
        target = tmp_path / f"problem{suffix}"
        export(instance, target)
        assert by_scip(target)[1] == pytest.approx(known, rel=1e-6)
        written = target.read_text(encoding="ascii")
        assert "the value that an action sets 'net income, \\u20ac'" in written
        assert max(map(len, written.splitlines())) <= 510


@pytest.mark.parametrize("kind", ["l2", "l2-squared"])
def test_the_first_comment_says_what_is_minimised(kind: str, tmp_path: Path) -> None:
    """Of l2 it is the square of the cost, and the optimum is that of l2-squared."""
    source, target = tmp_path / "instance.json", tmp_path / "problem.lp"
    problem = json.loads((INSTANCES / "smoke" / "hold.json").read_text())
    problem["cost"]["kind"] = kind
    source.write_text(json.dumps(problem))
    export(read_instance(source), target, cost_unit=UNIT)
    wanted = "the square of the cost" if kind == "l2" else "the cost"
    assert target.read_text().splitlines()[0].endswith(f": minimise {wanted} / {UNIT!r}")
    assert by_scip(target)[1] * UNIT == pytest.approx(1.0, rel=1e-6)


def test_names_that_collide_stay_apart() -> None:
    """Cleaning and cutting never make two names one."""
    names = unique_names(["a b", "a_b", "a?b", "a_b_n2", "x" * 300, "x" * 301])
    assert len(set(names)) == 6
    assert max(map(len, names)) < 100


def test_trees_cost_as_certified(tmp_path: Path) -> None:
    """SCIP finds the least cost of two trees in the file."""
    instance = read_instance(existing("smoke/two_trees"))
    export(instance, target := tmp_path / "problem.lp")
    assert by_scip(target)[1] == pytest.approx(solve(instance).cost, rel=1e-5)


def test_nothing_to_do_is_refused(tmp_path: Path) -> None:
    """No file is written where there is no program."""
    with pytest.raises(Unsupported):
        export(read_instance(existing("smoke/nothing_actionable")), tmp_path / "problem.lp")
    with pytest.raises(BadInput, match="cost_unit"):
        export(read_instance(existing("smoke/hold")), tmp_path / "problem.lp", cost_unit=0.0)
    assert not list(tmp_path.iterdir())


def test_other_suffixes_are_bad_input(tmp_path: Path) -> None:
    """Only .lp and .mps are written."""
    with pytest.raises(BadInput, match="lp"):
        export(read_instance(existing(CASES[0])), tmp_path / "problem.txt")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    """One clear error, no traceback."""
    instance = read_instance(INSTANCES / "smoke" / "hold.json")
    with pytest.raises(BadInput, match="can be written"):
        export(instance, tmp_path / "missing" / "problem.lp")


def test_lines_stay_within_what_readers_allow(tmp_path, monkeypatch) -> None:
    """510 characters, with the longest names and numbers that there can be."""
    mip = MixedInteger()
    third = 1e-200 / 3.0
    row = {mip.column(f"{k}{'x' * 90}", -third, third): -third for k in range(9)}
    mip.row("r" * 90, (row, 0.0), lower=-third, upper=third)
    mip.linear, mip.squares = row, row
    mip.ball = QuadraticRow("ball", row, row, third)
    monkeypatch.setattr("milp_recourse.solvers.export.whole_problem", lambda *_: mip)
    for suffix in ("lp", "mps"):
        path = tmp_path / f"long.{suffix}"
        export(read_instance(existing("smoke/hold")), path)
        assert max(map(len, path.read_text(encoding="ascii").splitlines())) <= 510
