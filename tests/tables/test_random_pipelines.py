"""Random pipelines over random tables: the model accepts what is optimal, sampling beats nothing proven.

``python -m tests.tables.test_random_pipelines 0 500`` runs these seeds and prints failures and a summary;
with ``classes`` as a third argument, trees of three classes.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest

from milp_recourse import Recourse
from milp_recourse.readers import model_columns
from tests.helpers.pipelines import OTHERS, SKLEARN_TREES, random_pipeline
from tests.helpers.sampled import costs_of, sampled_rows

COSTS = ("l1", "l2-squared", "linf", "l0")
SAMPLES = 2000


def check(seed: int, time_limit: float = 2.0) -> Counter[str]:
    """Every answer of one random pipeline against its own predict, and against sampled feasible rows."""
    model, X, y, people = random_pipeline(seed)
    desired = sorted(set(np.asarray(y).tolist()))[int(np.random.default_rng(seed).integers(2))]
    return _check(seed, model, X, people, desired, time_limit)


def check_classes(seed: int, time_limit: float = 2.0) -> Counter[str]:
    """The same for trees of three classes: one of them, or any but one."""
    final = (*SKLEARN_TREES, *OTHERS)[seed % 8]
    model, X, y, people = random_pipeline(seed, final, several=True)
    rng = np.random.default_rng(seed)
    one = sorted(set(np.asarray(y).tolist()))[int(rng.integers(3))]
    return _check(seed, model, X, people, one if rng.random() < 0.6 else {"not": one}, time_limit)


def _check(
    seed: int, model: Any, X: pd.DataFrame, people: pd.DataFrame, desired: Any, time_limit: float
) -> Counter[str]:
    rng = np.random.default_rng(seed)
    cost = COSTS[seed % 4]
    kept = [c for c in X.columns if rng.random() < 0.15]
    recourse = Recourse(model, X, desired=desired, immutable=kept, cost=cost)
    people = people.head(4)
    answers = recourse.certify(people, time_limit=time_limit)
    table, found = answers.table, Counter(answers.table["status"])
    order = model_columns(model, X)  # bare models insist on the order they were fitted on

    def wanted(rows: pd.DataFrame) -> np.ndarray:
        said = np.asarray(model.predict(rows[order]))
        return said != desired["not"] if isinstance(desired, dict) else said == desired

    wanted_after, wanted_before = wanted(answers.counterfactuals), wanted(people)
    for i in range(len(people)):
        status, person = table["status"].iloc[i], people.iloc[i]
        if status == "optimal":
            assert wanted_after[i], f"seed {seed}: person {i} is optimal, and predict refuses"
            assert wanted_before[i] == (table["cost"].iloc[i] == 0) or table["confirmed"].iloc[i] is pd.NA
        if status not in ("optimal", "infeasible", "limit") or wanted_before[i]:
            continue
        rows = sampled_rows(recourse, person, SAMPLES, rng)
        good = wanted(rows)
        found["found by sampling"] += bool(good.any())
        found["only sampling has an action"] += bool(good.any() and pd.isna(table["cost"].iloc[i]))
        assert not (status == "infeasible" and good.any()), f"seed {seed}: person {i} is not infeasible"
        if good.any() and not person[[c.key for c in recourse.columns]].isna().any():
            cheapest = costs_of(recourse, person, rows[good], cost).min()
            bound = table["lower_bound"].iloc[i]
            assert bound <= cheapest * (1 + 1e-9) + 1e-12, (
                f"seed {seed}: person {i}: {bound} above {cheapest}"
            )
    return found


@pytest.mark.parametrize("seed", range(5))
def test_proven_answers_survive_the_model_and_sampling(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", range(3))
def test_trees_of_three_classes_survive_the_model_and_sampling(seed: int) -> None:
    check_classes(seed)


if __name__ == "__main__":
    total: Counter[str] = Counter()
    run = check_classes if sys.argv[3:] == ["classes"] else check
    for number in range(*map(int, sys.argv[1:3])):
        try:
            total += run(number)
        except Exception as error:  # the summary names them all
            total["failures"] += 1
            print(f"seed {number}: {type(error).__name__}: {error}")
    print(dict(total))
