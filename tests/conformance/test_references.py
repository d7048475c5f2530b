"""Every back end against every instance with a reference."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest

from milp_recourse.backends import backend, listed
from milp_recourse.formats import read_instance
from milp_recourse.instance import Instance
from milp_recourse.judge import already_good
from milp_recourse.result import Status, gap_tolerance
from milp_recourse.solve import solve

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
SMOKE = sorted((INSTANCES / "smoke").glob("*.json"))
LOAN = sorted((INSTANCES / "loan").glob("loan_*.json"))
EVERYTHING = os.environ.get("MILP_RECOURSE_ALL_INSTANCES") == "1"

# Back ends that prove an optimum; a new one that stays out of this list fails the test below.
EXACT = ("highs", "pyomo:highs", "pyomo:scip_direct")
OTHERS = {
    "grid": "claims nothing",
    "pyomo:gurobi_direct_minlp": "needs a commercial licence for larger models",
}

# In every test run: all of smoke, and a slice of Loan that each back end finishes in seconds.
LOAN_SLICE = {"highs": LOAN[::8], "pyomo:highs": LOAN[120::40], "pyomo:scip_direct": LOAN[120::30]}


@functools.cache
def load(path: Path) -> Instance:
    return read_instance(path)


def cases() -> list[tuple[str, Path]]:
    chosen = [(name, path) for name in EXACT for path in SMOKE]
    for name in EXACT:
        chosen += [(name, path) for path in (LOAN if EVERYTHING else LOAN_SLICE[name])]
    return chosen


@pytest.mark.parametrize(("name", "path"), cases(), ids=lambda v: v.stem if isinstance(v, Path) else v)
def test_back_end_agrees_with_the_reference(name: str, path: Path) -> None:
    """Same status and cost (to 1e-6 relative), or a limit with honest bounds on both sides."""
    instance = load(path)
    assert instance.reference is not None, "every shipped instance has its answer"
    if backend(name).why_not(instance) is not None and not already_good(instance):
        assert "tree" in path.stem, "only trees may be beyond a MILP back end"
        return
    result = solve(instance, backend=name, time_limit=60)
    known = instance.reference
    slack = gap_tolerance(known.cost) if known.cost is not None else 0.0
    if result.status is Status.LIMIT:
        assert name != "highs", "highs finishes every shipped instance"
        if known.status == "optimal":
            assert result.lower_bound <= known.cost + slack
            assert result.cost is None or result.cost >= known.cost - slack
        return
    assert result.status.value == known.status
    if known.status == "optimal":
        assert abs(result.cost - known.cost) <= slack
        assert result.accepted_exact and result.accepted_deployed


def test_every_back_end_is_in_the_suite() -> None:
    """A back end that is registered is either tested here or named with the reason why not."""
    assert set(listed()) == set(EXACT) | set(OTHERS)
