"""An integer whose factual is a fraction, as an imputed mean: actions set whole numbers all the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from milp_recourse.certificates.produce import why_not
from milp_recourse.formats import instance_from_dict, instance_to_dict
from milp_recourse.judge import already_good
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Status, gap_tolerance
from milp_recourse.questions.solve import solve
from tests.helpers.tree_checks import checked
from tests.helpers.tree_samples import brute_force, random_tree_instance, size_of


def sample(seed: int) -> Instance | None:
    """A random ensemble's problem, its integers' factuals moved off the whole numbers; None without any."""
    instance = random_tree_instance(seed, 1 if seed % 3 == 0 else None)
    rng = np.random.default_rng(seed)
    whole = [f.name for f in instance.features if f.kind == "integer"]
    if not whole or size_of(instance) > 20000:
        return None
    moved = {name: instance.factual[name] + float(rng.uniform(-0.9, 0.9)) for name in whole}
    return replace(instance, factual={**instance.factual, **moved}, reference=None)


@pytest.mark.parametrize("name", ["bab", "cpsat", "highs"])
def test_exact_back_ends_agree_with_brute_force(name: str) -> None:
    seen: Counter[str] = Counter()
    for seed in range(90):
        instance = sample(seed)
        if instance is None or not instance.levers or already_good(instance):
            continue
        known, result = brute_force(instance), solve(instance, name)
        seen[result.status.value] += 1
        if known is None:
            assert result.status is Status.INFEASIBLE, seed
        else:
            assert result.status is Status.OPTIMAL, seed
            assert abs(result.cost - float(known)) <= 2 * gap_tolerance(float(known)), seed
    assert seen["optimal"] >= 5 and seen["infeasible"] >= 2, seen


def test_every_certificate_verifies() -> None:
    seen: Counter[str] = Counter()
    for seed in range(120):
        instance = sample(seed)
        if instance is not None and instance.levers and why_not(instance) is None:
            line = checked(instance, solve(instance))
            assert line == "MISSING" or line.startswith("VERIFIED"), (seed, line)
            seen[" ".join(line.split()[:2])] += 1
    assert seen["VERIFIED optimal"] >= 5 and seen["VERIFIED infeasible"] >= 15 > 5 * seen["MISSING"], seen


def test_files_keep_the_fraction() -> None:
    """Only a factual may be one; nothing else of an integer feature."""
    instance = next(i for i in map(sample, range(50)) if i is not None)
    again = instance_from_dict(instance_to_dict(instance))
    assert again.factual == instance.factual
