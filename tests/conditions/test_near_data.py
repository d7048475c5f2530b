"""The condition of "near data" says what a few lines over the rows say."""

from __future__ import annotations

import numpy as np
import pytest

from milp_recourse.formats.schema_conditions import condition_to_dict
from milp_recourse.problem.instance import Instance
from milp_recourse.tables.from_data import near_rows
from tests.conditions.compare_conditions import problem
from tests.helpers.plain_conditions import Numbers, holds
from tests.helpers.random_conditions import random_neighbours


def near(instance: Instance, after: np.ndarray, row: np.ndarray, within: float, scale: dict) -> bool:
    """Whether every value that actions can move is so close, labels equal."""
    moved = instance.scm.descendants({f.name for f in instance.features if f.actionable})
    for k, f in enumerate(instance.features):
        if f.name not in moved:
            continue
        if f.kind == "categorical":
            if after[k] != row[k]:
                return False
        elif abs(after[k] - row[k]) > within * scale[f.name]:
            return False
    return True


@pytest.mark.parametrize("trees", [False, True])
def test_near_data_is_near_some_row(trees):
    """For random people and random points around the rows, away from the rim by more than rounding."""
    said = {True: 0, False: 0}
    for seed in range(60):
        instance = problem(seed, trees)
        if instance is None:
            continue
        rng = np.random.default_rng(seed)
        rows, within, scale = random_neighbours(rng, instance)
        condition = condition_to_dict(near_rows(instance, rows, within, scale), instance.features)
        features = {f.name: f for f in instance.features}
        for row in rows[rng.integers(len(rows), size=20)]:
            after = row.copy()
            for k, f in enumerate(instance.features):
                step = rng.uniform(-1.1, 1.1) * within * scale.get(f.name, 1.0)
                if not f.labelled:
                    after[k] += round(step) if f.integral else step
            numbers = Numbers(features, instance.factual, dict(zip(features, after, strict=True)), ())
            own = any(near(instance, after, other, within, scale) for other in rows)
            assert holds(condition, numbers) is own
            said[own] += 1
    assert min(said.values()) > 50, said
