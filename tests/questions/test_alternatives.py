"""Several recourses of one applicant: each the best of its kind, and as far apart as asked."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.formats import read_instance
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.judge import judge
from milp_recourse.problem.result import gap_tolerance
from milp_recourse.questions.alternatives import alternatives
from milp_recourse.questions.solve import solve

LOAN = read_instance(instances_path() / "loan" / "loan_007.json")
CREDIT = sorted((instances_path() / "credit_trees").glob("credit_*.json"))


def test_one_per_set_of_features_is_the_optimum_of_that_mask() -> None:
    """A network in the causal model: no listed recourse is dearer than its mask's own optimum."""
    found = alternatives(LOAN, 15, by="features")
    assert len(found) >= 2 and len({frozenset(a.action) for a in found}) == len(found)
    assert [a.cost for a in found] == sorted(a.cost for a in found)
    for way in found:
        mask = tuple(f for f in LOAN.preferences.actionable if f in way.action)
        alone = solve(replace(LOAN, preferences=replace(LOAN.preferences, actionable=mask), reference=None))
        assert alone.cost is not None and abs(alone.cost - way.cost) <= gap_tolerance(way.cost)
        assert judge(LOAN, dict(way.action)).feasible
    assert abs(found[0].cost - LOAN.reference.cost) <= gap_tolerance(found[0].cost)


@pytest.mark.parametrize("apart", [1, 2, 3])
def test_a_diverse_list_differs_by_so_many_features(apart: int) -> None:
    """Each is the cheapest that is far enough from all before it: what was passed over is too close."""
    seen = 0
    for file in CREDIT[:12]:
        instance = read_instance(file)
        every, chosen = alternatives(instance, 1000), alternatives(instance, 1000, apart=apart)
        for one, other in combinations(chosen, 2):
            assert len(set(one.action) ^ set(other.action)) >= apart
        for way in every:
            before = [c for c in chosen if c.cost <= way.cost]
            close = any(len(set(way.action) ^ set(c.action)) < apart for c in before)
            assert way in chosen or close
        seen += len(chosen) > 1
        assert (every[:1] or [None])[0] == (chosen[:1] or [None])[0]
    assert seen >= 3


def test_bad_requests() -> None:
    """One line each."""
    with pytest.raises(BadInput, match="count"):
        alternatives(LOAN, 0)
    with pytest.raises(BadInput, match="apart"):
        alternatives(LOAN, 3, by="features", apart=-1)
    with pytest.raises(Unsupported, match="one recourse per leaf"):
        alternatives(LOAN)
