"""The exact search against brute force over every combination of candidate values."""

from __future__ import annotations

from collections import Counter

import pytest
from tree_samples import brute_force, random_tree_instance, size_of

from milp_recourse.judge import already_good
from milp_recourse.result import Status, gap_tolerance
from milp_recourse.solve import solve

LARGEST = 20000


@pytest.mark.parametrize("trees", [1, None], ids=["single tree", "forest"])
def test_bab_agrees_with_brute_force(trees: int | None) -> None:
    """The same optimum, or nothing feasible in both, on every kind of feature and cost."""
    seen: Counter[str] = Counter()
    for seed in range(250):
        instance = random_tree_instance(seed, trees)
        if not instance.levers or already_good(instance) or size_of(instance) > LARGEST:
            continue
        best, result = brute_force(instance), solve(instance, "bab")
        seen[result.status.value] += 1
        assert result.proof == "rigorous"
        if best is None:
            assert result.status is Status.INFEASIBLE, seed
        else:
            assert result.status is Status.OPTIMAL, seed
            assert abs(result.cost - float(best)) <= gap_tolerance(float(best)), seed
    assert seen["optimal"] >= 40 and seen["infeasible"] >= 30, seen
