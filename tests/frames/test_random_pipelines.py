"""Random pipelines over random tables: what is called optimal the model accepts, and sampling beats nothing proven.

``python -m tests.frames.test_random_pipelines 500`` runs as many seeds and prints a summary.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "readers")]

from pipelines import random_pipeline
from sampled import costs_of, sampled_rows

from milp_recourse import Recourse

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
    wanted_after = np.asarray(model.predict(answers.counterfactuals)) == desired
    wanted_before = np.asarray(model.predict(people)) == desired
    for i in range(len(people)):
        status, person = table["status"].iloc[i], people.iloc[i]
        if status == "optimal":
            assert wanted_after[i], f"seed {seed}: person {i} is optimal, and predict refuses"
            assert wanted_before[i] == (table["cost"].iloc[i] == 0) or table["confirmed"].iloc[i] is pd.NA
        if status not in ("optimal", "infeasible", "limit") or wanted_before[i]:
            continue
        rows = sampled_rows(recourse, person, SAMPLES, rng)
        good = np.asarray(model.predict(rows)) == desired
        found["found by sampling"] += bool(good.any())
        found["without action though sampling finds one"] += bool(good.any() and pd.isna(table["cost"].iloc[i]))
        assert not (status == "infeasible" and good.any()), f"seed {seed}: person {i} is not infeasible"
        if good.any() and not person[[c.key for c in recourse.columns]].isna().any():
            cheapest = costs_of(recourse, person, rows[good], cost).min()
            bound = table["lower_bound"].iloc[i]
            assert bound <= cheapest * (1 + 1e-9) + 1e-12, f"seed {seed}: person {i}: bound {bound} above {cheapest}"
    return found


@pytest.mark.parametrize("seed", range(40))
def test_proven_answers_survive_the_model_and_sampling(seed: int) -> None:
    check(seed)


if __name__ == "__main__":
    total: Counter[str] = Counter()
    for number in range(int(sys.argv[1])):
        total += check(number)
        print(f"\r{number + 1} pipelines: {dict(total)}", end="", file=sys.stderr, flush=True)
    print(dict(total))
