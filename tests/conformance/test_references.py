"""Every back end against every instance with a reference."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from milp_recourse.formats import read_instance
from milp_recourse.judge import already_good
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result, Status, gap_tolerance
from milp_recourse.questions.solve import solve
from milp_recourse.reports.instances import compare
from milp_recourse.solvers import backend, listed

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
SMOKE = sorted((INSTANCES / "smoke").glob("*.json"))
LOAN = sorted((INSTANCES / "loan").glob("loan_*.json"))
EVERYTHING = os.environ.get("MILP_RECOURSE_ALL_INSTANCES") == "1"
ONLY = os.environ.get("MILP_RECOURSE_BACKENDS", "").split()  # none named: all of EXACT
RECORD = os.environ.get("MILP_RECOURSE_RECORD")  # a file the tally is written to
TIME_LIMIT = 60

# Back ends that prove an optimum; a new one that stays out of this list fails the test below.
EXACT = ("bab", "highs", "pyomo:highs", "pyomo:scip_direct")
OTHERS = {
    "grid": "claims nothing",
    "ask": "levers of finitely many values only: tests/solvers/test_ask.py, tests/properties/on_lattices.py",
    "cpsat": "trees only: tests/engine/forests compares it with brute force and bab",
    "pyomo:gurobi_direct_minlp": "needs a commercial licence for larger models",
}

# In every test run: all of smoke, and a slice of Loan that each back end finishes in seconds.
LOAN_SLICE = {
    "bab": LOAN[4::8],
    "highs": LOAN[::8],
    "pyomo:highs": LOAN[120::40],
    "pyomo:scip_direct": LOAN[120::30],
}


# Share of the supported instances that a back end decides (optimal or infeasible) within the limit.
LEAST_DECIDED = {"bab": 1.0, "highs": 1.0, "pyomo:highs": 0.95, "pyomo:scip_direct": 0.95}

Tally = dict[str, dict[str, list[str]]]
"""Back end -> outcome -> names of instances."""


@functools.cache
def load(path: Path) -> Instance:
    return read_instance(path)


def cases() -> list[tuple[str, Path]]:
    names = ONLY or EXACT
    chosen = [(name, path) for name in names for path in SMOKE]
    for name in names:
        chosen += [(name, path) for path in (LOAN if EVERYTHING else LOAN_SLICE[name])]
    return chosen


@pytest.fixture(scope="module")
def tally() -> Iterator[Tally]:
    counted: Tally = {}
    yield counted
    if RECORD:
        summary = {
            name: {
                "counts": {outcome: len(found) for outcome, found in sorted(outcomes.items())},
                "limit": outcomes.get("limit", []),
                "unsupported": outcomes.get("unsupported", []),
            }
            for name, outcomes in counted.items()
        }
        Path(RECORD).write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")


@pytest.mark.parametrize(("name", "path"), cases(), ids=lambda v: v.stem if isinstance(v, Path) else v)
def test_back_end_agrees_with_the_reference(name: str, path: Path, tally: Tally) -> None:
    """Same status and cost (to 1e-6 relative), or a limit with honest bounds on both sides."""
    instance = load(path)
    assert instance.reference is not None, "every shipped instance has its answer"
    counted = tally.setdefault(name, {})
    refusal = backend(name).why_not(instance)
    if refusal is not None and not already_good(instance):
        assert isinstance(instance.classifier, TreeEnsemble), "only trees may be beyond a MILP back end"
        counted.setdefault("unsupported", []).append(path.stem)
        pytest.skip(refusal)
    result = solve(instance, backend=name, time_limit=TIME_LIMIT)
    counted.setdefault(_outcome(instance, result), []).append(path.stem)
    known = instance.reference
    slack = gap_tolerance(known.cost) if known.cost is not None else 0.0
    if result.status is Status.LIMIT:
        if known.status == "optimal":
            assert result.lower_bound <= known.cost + slack
            assert result.cost is None or result.cost >= known.cost - slack
        else:
            assert result.cost is None, "an action where none exists"
        return
    assert result.status.value == known.status
    if known.status == "optimal":
        assert abs(result.cost - known.cost) <= slack
        assert result.accepted_exact and result.accepted_deployed


def _outcome(instance: Instance, result: Result) -> str:
    """``agrees``, ``limit`` or ``contradicts``."""
    if result.status is Status.LIMIT:
        return "limit"
    return compare(instance.reference, result)


@pytest.mark.parametrize("name", ONLY or EXACT)
def test_back_end_decides_enough(name: str, tally: Tally) -> None:
    """Answering `limit` everywhere would agree with everything; refusing everything would skip it all."""
    counted = {outcome: len(found) for outcome, found in tally.get(name, {}).items()}
    if sum(counted.values()) < len(SMOKE):
        pytest.skip("the cases above were not run")
    supported = sum(counted.values()) - counted.get("unsupported", 0)
    assert supported >= 0.9 * sum(counted.values())
    assert counted.get("agrees", 0) >= LEAST_DECIDED[name] * supported, counted


def test_every_back_end_is_in_the_suite() -> None:
    """A back end that is registered is either tested here or named with the reason why not."""
    assert set(listed()) == set(EXACT) | set(OTHERS)
