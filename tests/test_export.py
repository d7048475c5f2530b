"""LP and MPS files hold the same problem: another solver reading them finds the same optimum."""

from __future__ import annotations

from pathlib import Path

import pytest

from milp_recourse import read_instance, solve
from milp_recourse.errors import BadInput
from milp_recourse.export import export

INSTANCES = Path(__file__).resolve().parents[1] / "instances"
CASES = ["smoke/plausible_ball", "smoke/hold", "smoke/mixture", "smoke/categorical", "loan/loan_130"]


def existing(case: str) -> Path:
    path = INSTANCES / f"{case}.json"
    if not path.exists():
        pytest.fail(f"{path} is gone: choose another instance")
    return path


@pytest.mark.parametrize("suffix", [".lp", ".mps"])
@pytest.mark.parametrize("case", CASES)
def test_scip_reads_the_same_optimum(case: str, suffix: str, tmp_path: Path) -> None:
    """SCIP, reading the file on its own, agrees with highs to 1e-5 relative (its default tolerances)."""
    from pyscipopt import Model

    instance = read_instance(existing(case))
    target = tmp_path / f"problem{suffix}"
    export(instance, target)
    known = solve(instance)
    model = Model()
    model.hideOutput()
    model.readProblem(str(target))
    model.optimize()
    assert model.getStatus() == "optimal"
    assert model.getObjVal() == pytest.approx(known.cost, rel=1e-5, abs=1e-7)
    if known.action:
        values = {v.name: model.getVal(v) for v in model.getVars()}
        acted = {n for n in known.action if values[f"act_{n}"] > 0.5}
        assert acted, "the columns act_F say what is acted on"


def test_other_suffixes_are_bad_input(tmp_path: Path) -> None:
    """Only .lp and .mps are written."""
    with pytest.raises(BadInput, match="lp"):
        export(read_instance(existing(CASES[0])), tmp_path / "problem.txt")
    assert not list(tmp_path.iterdir())
