"""A one-hot feature with a single label is one column, and that column is 1."""

from __future__ import annotations

import pytest

from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.scm import independent
from milp_recourse.questions.solve import solve


@pytest.mark.parametrize("kind", ["categorical", "ordinal"])
@pytest.mark.parametrize(("weight", "cost"), [(1.0, 3.0), (-1.0, 5.0)])
@pytest.mark.parametrize("backend", ["bab", "highs"])
def test_its_column_is_one(kind, weight, cost, backend) -> None:
    """logit = x + weight * [c = A] - 4."""
    features = (
        Feature("x", actionable=True, bounds=(0.0, 10.0)),
        Feature("c", kind, categories=("A",), encoding="one-hot"),
    )
    instance = Instance(
        features,
        independent(("x", "c")),
        ReluNetwork.from_layers([([[1.0, weight]], [-4.0])]),
        {"x": 0.0, "c": 0.0},
        Preferences(("x",)),
        Cost.pure("l1", {"x": 1.0}),
    )
    assert solve(instance, backend).cost == pytest.approx(cost, rel=1e-9)
