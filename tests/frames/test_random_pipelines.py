"""Random pipelines over random tables: the model accepts what is optimal, sampling beats nothing proven.

``python -m tests.frames.test_random_pipelines 0 500`` runs these seeds and prints failures and a summary.
"""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from milp_recourse import Recourse
from milp_recourse.readers import model_columns
from tests.frames.sampled import costs_of, sampled_rows
from tests.readers.pipelines import random_pipeline

COSTS = ("l1", "l2-squared", "linf", "l0")
SAMPLES = 2000


def check(seed: int, time_limit: float = 2.0) -> Counter[str]:
    """Every answer of one random pipeline against its own predict, and against sampled feasible rows."""
    rng = np.random.default_rng(seed)
    model, X, y, people = random_pipeline(seed)
    cost = COSTS[seed % 4]
    desired = sorted(set(np.asarray(y).tolist()))[int(rng.integers(2))]
    kept = [c for c in X.columns if rng.random() < 0.15]
    recourse = Recourse(model, X, desired=desired, immutable=kept, cost=cost)
    people = people.head(4)
    answers = recourse.certify(people, time_limit=time_limit)
    table, found = answers.table, Counter(answers.table["status"])
    order = model_columns(model, X)  # bare models insist on the order they were fitted on

    def wanted(rows: pd.DataFrame) -> np.ndarray:
        return np.asarray(model.predict(rows[order])) == desired

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


@pytest.mark.parametrize("seed", range(40))
def test_proven_answers_survive_the_model_and_sampling(seed: int) -> None:
    check(seed)


if __name__ == "__main__":
    total: Counter[str] = Counter()
    for number in range(*map(int, sys.argv[1:3])):
        try:
            total += check(number)
        except Exception as error:  # the summary names them all
            total["failures"] += 1
            print(f"seed {number}: {type(error).__name__}: {error}")
    print(dict(total))
