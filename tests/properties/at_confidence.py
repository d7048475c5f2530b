"""Does ``confidence`` hold, and at the least cost? ``python -m tests.properties.at_confidence --people 500``.

Each case fits a model of one family, with two classes or three, draws a confidence and a few people who have
less, and asks for their recourse. The model's own predict_proba of every counterfactual must be at least the
confidence; a grid over the levers, and a finer one around the answer, must hold no cheaper row with so much;
and where the answer is ``infeasible``, none at all. Run from the repository root.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from milp_recourse import Recourse
from tests.properties.repeated import Checked, repeated


def _xgboost(seed: int) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=15, max_depth=3, n_jobs=1, random_state=seed)


def _lightgbm(seed: int) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=15, num_leaves=7, n_jobs=1, verbose=-1, random_state=seed)


FAMILIES: dict[str, Callable[[int], Any]] = {
    "logistic": lambda seed: make_pipeline(StandardScaler(), LogisticRegression(C=10.0)),
    "logistic, three classes": lambda seed: make_pipeline(StandardScaler(), LogisticRegression(C=10.0)),
    "sgd": lambda seed: make_pipeline(StandardScaler(), SGDClassifier(loss="log_loss", random_state=seed)),
    "network": lambda seed: make_pipeline(
        StandardScaler(), MLPClassifier((8,), max_iter=150, random_state=seed)
    ),
    "network, three classes": lambda seed: make_pipeline(
        StandardScaler(), MLPClassifier((8,), max_iter=150, random_state=seed)
    ),
    "tree": lambda seed: DecisionTreeClassifier(max_depth=5, random_state=seed),
    "tree, three classes": lambda seed: DecisionTreeClassifier(max_depth=5, random_state=seed),
    "forest": lambda seed: RandomForestClassifier(15, max_depth=5, random_state=seed),
    "forest, three classes": lambda seed: RandomForestClassifier(15, max_depth=5, random_state=seed),
    "extra trees, three classes": lambda seed: ExtraTreesClassifier(10, random_state=seed),
    "boosting": lambda seed: GradientBoostingClassifier(n_estimators=15, random_state=seed),
    "histogram": lambda seed: HistGradientBoostingClassifier(max_iter=15, random_state=seed),
    "xgboost": _xgboost,
    "lightgbm": _lightgbm,
}
PEOPLE, GRID = 4, 81
LEVERS = ("u", "v")
NEARLY = 1e-5
"""Of a softmax of three classes: its log odds are asked for to 2e-6, which costs less than this."""


def check(seed: int) -> Checked:
    """One case: its counts, and a line for each wrong answer."""
    rng, name = np.random.default_rng([7, seed]), [*FAMILIES][seed % len(FAMILIES)]
    three = "three" in name
    X = pd.DataFrame(rng.normal([0, 10, 5], [1, 4, 2], (400, 3)).round(2), columns=["u", "v", "w"])
    score = ((X - X.mean()) / X.std() * rng.normal(0, 1, 3)).sum(axis=1) + rng.normal(0, 0.4, len(X))
    y = np.digitize(score, score.quantile([0.4, 0.7] if three else [0.6]))
    model = FAMILIES[name](seed).fit(X, y)
    desired = int(rng.integers(3 if three else 2))
    confidence = round(float(rng.uniform(0.55, 0.95)), 2)
    recourse = Recourse(model, X, desired=desired, immutable=["w"], confidence=confidence)
    own = model.predict_proba(X)[:, desired].astype(float)
    people = X[own < confidence].head(PEOPLE)
    answers = recourse.certify(people, time_limit=60.0)
    reached = model.predict_proba(answers.counterfactuals[X.columns])[:, desired].astype(float)
    slack = NEARLY if three and ("logistic" in name or "network" in name) else 0.0
    counts, wrong = Counter[str](), []
    for k, label in enumerate(people.index):
        status, cost = str(answers.table["status"].iloc[k]), float(answers.table["cost"].iloc[k])
        counts[name] += 1
        counts[status] += 1
        where = f"seed {seed}, {name}, p >= {confidence}, person {label}: {status}, cost {cost}"
        if status not in ("optimal", "infeasible"):
            wrong.append(where)
            continue
        if status == "optimal" and not reached[k] >= confidence:
            wrong.append(f"{where}: probability {reached[k]!r}")
        least = _cheapest(
            model, X, people.loc[label], answers.counterfactuals.loc[label], desired, confidence
        )
        counts["the grid finds an action"] += least < np.inf
        dearest = np.inf if status == "infeasible" else cost * (1 - 2e-6) - slack - 1e-9
        if least < dearest:
            wrong.append(f"{where}: the grid has {least}")
    return counts, wrong


def _cheapest(
    model: Any, X: pd.DataFrame, before: pd.Series, after: pd.Series, desired: int, confidence: float
) -> float:
    """The least cost of a row of two grids with that confidence; inf for none."""
    low, high = X[list(LEVERS)].min(), X[list(LEVERS)].max()
    best = np.inf
    for reach in (np.inf, 0.02):
        axes = []
        for c in LEVERS:
            room = reach * (high[c] - low[c])
            ends = max(low[c], after[c] - room), min(high[c], after[c] + room)
            axes.append(np.unique([*np.linspace(*ends, GRID), before[c]]))
        u, v = (part.ravel() for part in np.meshgrid(*axes))
        rows = pd.DataFrame({"u": u, "v": v, "w": before["w"]})
        cost = sum(np.abs(rows[c] - before[c]) / (high[c] - low[c]) for c in LEVERS)
        labels, sure = model.predict(rows), model.predict_proba(rows)[:, desired].astype(float)
        good = (labels == desired) & (sure >= confidence)
        best = min(best, float(cost[good].min()) if good.any() else np.inf)
    return best


if __name__ == "__main__":
    sys.exit(repeated(__doc__, check, 500, ("optimal", "infeasible", "limit")))
