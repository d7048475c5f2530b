"""Networks over integers whose factual is a fraction (an imputed mean): back ends and brute force agree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.judge import already_good
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Status
from milp_recourse.questions.solve import solve
from tests.helpers.brute_force import brute_force
from tests.helpers.generators import random_instance


def sample(seed: int) -> Instance | None:
    """A random network's problem with fractions for the integers; None without an integer lever."""
    instance = random_instance(seed)
    whole = [f.name for f in instance.features if f.kind == "integer" and f.name in instance.levers]
    if not whole or len(instance.levers) > 3 or instance.scm.edges:
        return None
    rng = np.random.default_rng(seed)
    moved = {name: instance.factual[name] + float(rng.uniform(-0.9, 0.9)) for name in whole}
    try:
        return replace(instance, factual={**instance.factual, **moved}, reference=None)
    except BadInput:
        return None


@pytest.mark.parametrize("name", ["bab", "highs"])
def test_back_ends_agree_with_brute_force(name: str) -> None:
    optimal = infeasible = 0
    for seed in range(200):
        instance = sample(seed)
        if instance is None or not instance.levers or already_good(instance):
            continue
        try:
            result = solve(instance, name, time_limit=10)
        except Unsupported:
            continue
        known = brute_force(instance)
        if result.status is Status.INFEASIBLE:
            infeasible += 1
            assert known is None, seed
        elif result.status is Status.OPTIMAL:
            optimal += 1
            assert known is None or result.cost <= float(known.cost) + 2 * instance.gap_tolerance(
                result.cost
            ), seed
    assert optimal >= 2 and infeasible >= 2, (optimal, infeasible)
