"""Cost against the number of actions, beside every mask of so many levers solved by itself."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from milp_recourse.judge import already_good
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.result import Status
from milp_recourse.problem.scm import independent
from milp_recourse.questions.front import front
from milp_recourse.questions.solve import solve


def drawn(seed: int) -> Instance:
    """Four levers, one of them whole, and a small network."""
    rng = np.random.default_rng(seed)
    names = list("abcd")
    features = tuple(Feature(n, "integer" if n == "d" else "continuous", True, (-2.0, 2.0)) for n in names)
    layers = [
        (rng.normal(size=(5, 4)).round(2), rng.normal(size=5).round(2)),
        (rng.normal(size=(1, 5)).round(2), [-3.0]),
    ]
    cost = Cost.pure(["l2-squared", "l1", "linf"][seed % 3], dict.fromkeys(names, 1.0))
    factual = {n: float(v) for n, v in zip(names, [*rng.uniform(-1, 1, 3).round(2), 0.0], strict=True)}
    return Instance(
        features,
        independent(names),
        ReluNetwork.from_layers(layers),
        factual,
        Preferences(tuple(names)),
        cost,
    )


@pytest.mark.parametrize("seed", range(12))
def test_every_point_is_the_cheapest_of_all_masks_of_its_size(seed: int) -> None:
    """And points that are left out are no cheaper than one with fewer actions."""
    instance = drawn(seed)
    found = front(instance)
    assert found.complete
    best = {
        k: min(
            (
                r.cost
                for mask in combinations(instance.preferences.actionable, k)
                for r in [
                    solve(replace(instance, preferences=replace(instance.preferences, actionable=mask)))
                ]
                if r.status is Status.OPTIMAL and r.cost is not None
            ),
            default=np.inf,
        )
        for k in range(1, 5)
    }
    if already_good(instance):
        best[0] = 0.0
    costs = {p.actions: p.result.cost for p in found.points}
    if not costs:
        assert min(best.values()) == np.inf
        return
    for k, known in best.items():
        here = min((c for n, c in costs.items() if n <= k), default=np.inf)
        assert here == known or abs(here - known) <= 2e-6 * known + 1e-9, (k, costs, best)
    assert found.fewest == min(k for k, known in best.items() if known < np.inf)
    assert [p.actions for p in found.points] == sorted(costs) and len(set(costs.values())) == len(costs)


def test_the_drawn_problems_have_fronts_of_several_points() -> None:
    """So that the test above compares something."""
    sizes = Counter(len(front(drawn(seed)).points) for seed in range(12))
    assert sum(n for size, n in sizes.items() if size >= 2) >= 3, sizes
