"""Are people without recourse told so? ``python -m tests.properties.without_recourse --people 2000``.

Each case fits a model of one family on a small table of whole numbers, and asks under random domains,
conditions and masks. All rows that an action can make of a person are listed and given to the model's own
predict: if it accepts none of those that keep to the conditions, nothing but ``infeasible`` is right, and
else the cheapest of them is the optimum. Searches start from rows of the table that the model accepts.
Run from the repository root.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from milp_recourse import Recourse
from tests.properties.repeated import Checked, repeated

Check = Callable[[pd.Series, pd.DataFrame], "np.ndarray"]
"""Whether a condition holds in rows that actions make of a person."""

FAMILIES: dict[str, Callable[[int], Any]] = {
    "logistic": lambda seed: LogisticRegression(C=100.0),
    "network": lambda seed: make_pipeline(
        StandardScaler(), MLPClassifier((8, 5), max_iter=60, random_state=seed)
    ),
    "tree": lambda seed: DecisionTreeClassifier(max_depth=4, random_state=seed),
    "forest": lambda seed: RandomForestClassifier(7, max_depth=4, random_state=seed),
    "boosting": lambda seed: GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=seed),
    "histogram": lambda seed: HistGradientBoostingClassifier(max_iter=8, min_samples_leaf=5),
}
COLUMNS, TOP = ("a", "b", "c", "d"), 4
PEOPLE = 8
TIE = 1e-9


def conditions(rng: np.random.Generator) -> list[tuple[str, Check]]:
    """One to three conditions, and how to check each."""
    one, other = rng.choice(COLUMNS, 2, replace=False).tolist()
    k, s = int(rng.integers(0, TOP + 1)), int(rng.integers(1, 2 * TOP))
    drawn: list[tuple[str, Check]] = [
        (f"{one} >= {k}", lambda x, rows: (rows[one] >= k).to_numpy()),
        (f"{one} <= {k}", lambda x, rows: (rows[one] <= k).to_numpy()),
        (f"{one} + {other} <= {s}", lambda x, rows: (rows[one] + rows[other] <= s).to_numpy()),
        (f"{one} >= {other}", lambda x, rows: (rows[one] >= rows[other]).to_numpy()),
        (f"{one} change at least 1", lambda x, rows: (rows[one] - x[one] >= 1).to_numpy()),
        (f"at most {1 + k % 2} actions", lambda x, rows: (rows != x).sum(axis=1).to_numpy() <= 1 + k % 2),
        (
            f"if {one} rises then {other} does not fall",
            lambda x, rows: ((rows[one] <= x[one]) | (rows[other] >= x[other])).to_numpy(),
        ),
    ]
    count = int(rng.integers(0, 4))
    return [drawn[k] for k in rng.choice(len(drawn), count, replace=False)]


def check(seed: int) -> Checked:
    """One case: its counts, and a line for each wrong answer."""
    rng, name = np.random.default_rng([6, seed]), [*FAMILIES][seed % len(FAMILIES)]
    X = pd.DataFrame(rng.integers(0, TOP + 1, (150, len(COLUMNS))), columns=list(COLUMNS))
    score = (X * rng.normal(0, 1, len(COLUMNS))).sum(axis=1) + rng.normal(0, 0.7, len(X))
    model = FAMILIES[name](seed).fit(X, (score > score.quantile(rng.uniform(0.6, 0.95))).astype(int))
    asked = conditions(rng)
    domain = {c: tuple(sorted(rng.integers(0, TOP + 1, 2).tolist())) for c in COLUMNS if rng.random() < 0.15}
    bounds = {c: tuple(sorted(rng.integers(0, TOP + 1, 2).tolist())) for c in COLUMNS if rng.random() < 0.3}
    fixed = [c for c in COLUMNS if rng.random() < 0.3]
    recourse = Recourse(
        model, X, immutable=fixed, bounds=bounds, domain=domain, conditions=[text for text, _ in asked]
    )
    people = X.sample(PEOPLE, random_state=seed)
    table = recourse.certify(people, time_limit=60.0).table.reset_index(drop=True)
    counts, wrong = Counter[str](), []
    for k, (_, x) in enumerate(people.iterrows()):
        values = []
        for c in COLUMNS:
            low, high = bounds.get(c, (int(X[c].min()), int(X[c].max())))
            own = [] if c in fixed else range(low, high + 1)
            values.append(sorted({int(x[c]), *own}))
        rows = pd.DataFrame(list(product(*values)), columns=list(COLUMNS))
        good = model.predict(rows) == 1
        if name == "forest" and (np.abs(model.predict_proba(rows)[good, 1] - 0.5) < TIE).any():
            counts["not judged: a tie"] += 1  # which the model decides by rounding, and we count as refused
            continue
        for c, (low, high) in domain.items():
            good &= rows[c].between(low, high).to_numpy()
        for _, holds in asked:
            good &= holds(x, rows)
        ranges = (X.max() - X.min()).replace(0, 1)
        least = ((rows - x).abs() / ranges).sum(axis=1)[good].min()
        status, cost = str(table["status"][k]), table["cost"][k]
        counts["without recourse" if np.isnan(least) else "with recourse"] += 1
        counts[f"{name}: without recourse"] += bool(np.isnan(least))
        right = (
            status == "infeasible" if np.isnan(least) else status == "optimal" and abs(cost - least) < 1e-5
        )
        if not right:
            wrong.append(f"seed {seed}, {name}, person {k}: {status}, cost {cost}; listed: {least}")
    return counts, wrong


if __name__ == "__main__":
    sys.exit(repeated(__doc__, check, 2000, ("without recourse",)))
