"""Random models behind random transformers over random tables: ``python -m tests.readers.random_stacks``.

``--cases N --seed S`` runs N cases, from the seed S on, and prints failures and a summary. Of each case it is
checked that predict accepts what is called optimal, and that no row that sampling finds is accepted where
nobody can be helped, or costs less than what is proven to be the least.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import VotingClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
)

from milp_recourse import Recourse
from milp_recourse.errors import RecourseError
from tests.helpers.model_kinds import CASES, KINDS, LINEAR, TREES, Fitted, signal, targets, wishes_of
from tests.helpers.pipelines import encode, mixed_table, random_front
from tests.helpers.sampled import costs_of, sampled_rows

COSTS = ("l1", "l2-squared", "linf", "l0")
SAMPLES = 2000
RISING = (
    PowerTransformer(),
    QuantileTransformer(n_quantiles=20),
    FunctionTransformer(np.cbrt),
    FunctionTransformer(lambda z: np.log1p(z + 200.0)),
)
BENT = (
    KBinsDiscretizer(4, encode="onehot-dense", quantile_method="averaged_inverted_cdf"),
    KBinsDiscretizer(3, encode="ordinal", quantile_method="averaged_inverted_cdf"),
    SplineTransformer(4),
    SplineTransformer(5, degree=1),
)
"""Behind the imputer and the scaler of numbers, before linear models and networks."""

NAMES = [case for case in CASES if KINDS[case[0]].columns == "any"]


def drawn(seed: int) -> tuple[str, Fitted]:
    """What the model is, and the model fitted on a random table.

    Raises
    ------
    ValueError
        The library itself cannot fit it.
    """
    rng = np.random.default_rng(seed)
    name, task = NAMES[int(rng.integers(len(NAMES)))]
    kind = KINDS[name]
    bare = kind.labels or rng.random() < 0.25
    X = mixed_table(rng, int(rng.integers(80, 220)), kind.labels or not bare, kind.gaps or not bare)
    for column in X.columns:
        if column.startswith("whole") and rng.random() < 0.3:
            X[column] = X[column].astype("int16")
        if column.startswith("number") and rng.random() < 0.08:
            X[column] = X[column].astype("float32")
    model = kind.make(seed)
    labels = [c for c in X.columns if c.startswith(("label", "code"))]
    if name.startswith("catboost"):
        X[labels] = X[labels].apply(lambda c: c if not c.isna().any() else c.astype(object).fillna("gap"))
        model.set_params(cat_features=labels, max_ctr_complexity=int(rng.integers(1, 4)))
    total = signal(rng, X)
    y = targets(name, task, total)
    ready = model if bare else Pipeline([("table", _front(rng, X, name)), ("model", model)])
    if not bare and task == "two" and rng.random() < 0.2 and isinstance(y[0], str):
        other = Pipeline([("table", _front(rng, X, name)), ("model", kind.make(seed + 1))])
        soft = name in TREES and rng.random() < 0.5 and hasattr(model, "predict_proba")
        ready = VotingClassifier([("one", ready), ("other", other)], voting="soft" if soft else "hard")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ready.fit(X) if task == "outlier" else ready.fit(X, y)
        said = np.ravel(np.asarray(ready.predict(X)))
    return f"{type(ready).__name__} of {name}", Fitted(ready, X, wishes_of(task, said, rng.uniform(0, 1e-3)))


def _front(rng: np.random.Generator, X: pd.DataFrame, name: str) -> Any:
    style = (
        "histogram"
        if KINDS[name].gaps
        else str(rng.choice(["logistic", "boosting"] if name in TREES else ["logistic"]))
    )
    front = random_front(rng, X, style, dense=True)
    if name in LINEAR and rng.random() < 0.1:
        return Pipeline([("table", front), ("matrix", PCA(2))])
    steps = RISING if name in TREES else (*RISING, *BENT) if name in LINEAR else ()
    if steps and isinstance(front, ColumnTransformer) and rng.random() < 0.3:
        step = steps[int(rng.integers(len(steps)))]
        front.transformers = [
            (what, Pipeline([("before", one), ("rises", step)]) if what == "numbers" else one, columns)
            for what, one, columns in front.transformers
        ]
    return front


def check(seed: int, time_limit: float = 2.0) -> Counter[str]:
    """Every answer of one case, against the model's own word and sampled feasible rows."""
    try:
        name, one = drawn(seed)
    except ValueError:
        return Counter({"the library does not fit it": 1})
    rng = np.random.default_rng([seed, 1])
    wish = one.wishes[int(rng.integers(len(one.wishes)))]
    cost = COSTS[seed % 4]
    kept = [c for c in one.X.columns if rng.random() < 0.15]
    people = one.X.sample(4, random_state=seed)
    try:
        recourse = Recourse(one.model, one.X, desired=wish, immutable=kept, cost=cost)
        answers = recourse.certify(people, time_limit=time_limit)
    except RecourseError as error:
        assert "allowed: " in str(error) and "\n" not in str(error), f"seed {seed}: {error}"
        return Counter({f"refused: {str(error)[:90]}": 1})
    table, found = answers.table, Counter(answers.table["status"])
    after, before = one.wanted(wish, answers.counterfactuals), one.wanted(wish, people)
    for i in range(len(people)):
        status, person = table["status"].iloc[i], people.iloc[i]
        where = f"seed {seed}, {name}, {wish}: person {i}"
        assert status != "optimal" or after[i], f"{where} is optimal, and predict refuses"
        if status not in ("optimal", "infeasible", "limit") or before[i]:
            continue
        rows = sampled_rows(recourse, person, SAMPLES, rng)
        good, within = one.wanted(wish, rows), within_margin(recourse, rows, table["margin"].iloc[i])
        found["sampled rows that are accepted by less than the margin stated"] += int((good & within).sum())
        good &= ~within
        found["found by sampling"] += bool(good.any())
        assert not (status == "infeasible" and good.any()), f"{where} is infeasible, and sampling finds a row"
        if good.any() and not person[[c.key for c in recourse.columns]].isna().any():
            cheapest, bound = costs_of(recourse, person, rows[good], cost).min(), table["lower_bound"].iloc[i]
            assert bound <= cheapest * (1 + 1e-9) + 1e-12, f"{where}: {bound} above {cheapest}"
    return found


def within_margin(recourse: Recourse, rows: pd.DataFrame, margin: float) -> np.ndarray:
    """Of which rows the score that was read is no farther from the threshold than a person's margin."""
    reading = recourse.reading
    if not margin:
        return np.zeros(len(rows), dtype=bool)
    scores, room = reading.classifier.scores(encode(reading, rows)), margin * reading.unit
    return (scores <= reading.unsure.threshold + room) & (scores >= reading.unsure.threshold - room)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    total: Counter[str] = Counter()
    for number in range(options.seed, options.seed + options.cases):
        try:
            total += check(number)
        except Exception as error:  # the summary counts them all
            total["failures"] += 1
            print(f"seed {number}: {type(error).__name__}: {str(error)[:400]}", flush=True)
    for what, count in sorted(total.items()):
        print(f"{count:6} {what}")
    if options.json is not None:
        counts = {"cases": options.cases, "seed": options.seed, "counts": dict(sorted(total.items()))}
        options.json.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
    sys.exit(1 if total["failures"] else 0)
