"""Cells whose costs are equal in doubles and not exactly: producer and checker merge them alike."""

from __future__ import annotations

import numpy as np
import pytest

from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature
from milp_recourse.problem.forest import Tree, TreeEnsemble
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.scm import independent
from milp_recourse.questions.solve import solve
from tests.helpers.tree_checks import checked


def tree(
    feature: list[int], threshold: list[float], left: list[int], right: list[int], value: list[float]
) -> Tree:
    """A tree of these node arrays."""
    whole = [np.array(one, dtype=np.int64) for one in (feature, left, right)]
    return Tree(whole[0], np.array(threshold), whole[1], whole[2], np.array(value))


@pytest.mark.parametrize(("low", "high"), [(0.3, 0.1 + 0.2), (0.0, 1e-46)])
def test_the_checker_merges_the_cells_that_the_producer_does(low: float, high: float) -> None:
    """From 1.7, cells that end at 0.3 and at 0.1 + 0.2 cost 1.4 in doubles. The second is cheaper exactly."""
    first = tree([0, -2, -2], [high, -2, -2], [1, -1, -1], [2, -1, -1], [0.0, 3.3, 2.5])
    second = tree(
        [0, 0, -2, -2, 1, -2, -2],
        [-2.4, low, -2, -2, 0.0, -2, -2],
        [1, 2, -1, -1, 5, -1, -1],
        [4, 3, -1, -1, 6, -1, -1],
        [0.0, 0.0, 2.6, 2.8, 0.0, 2.8, 2.3],
    )
    instance = Instance(
        (Feature("a", "continuous", True, (-3.0, 3.0)), Feature("b", "continuous", True, (-3.0, 3.0))),
        independent(["a", "b"]),
        TreeEnsemble((first, second), 2, "sum", 0.0, "float64", "float64", (1, 1), "smallest"),
        {"a": 1.7, "b": 1.8},
        Preferences(("a", "b")),
        Cost.pure("l1", {"a": 1.0, "b": 1.0}),
        Acceptance(2.7),
        name="equal in doubles",
    )
    result = solve(instance)
    assert result.proof == "rigorous"
    assert checked(instance, result).startswith("VERIFIED optimal")
