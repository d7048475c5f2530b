"""Fitted pipelines of whole numbers and labels, asked through the door and against their own ``predict``."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from milp_recourse import Recourse

LABELS = ("high", "low", "mid", "none")
COSTS = ("l1", "l2-squared", "linf")
MODELS = ("forest, one-hot", "forest, codes", "three classes", "boosting", "network", "linear")
Row = tuple[Any, ...]


def model_of(seed: int, X: pd.DataFrame) -> tuple[Any, Any]:
    """A fitted pipeline and the label that is desired; MODELS takes turns."""
    rng, kind = np.random.default_rng([seed, 8]), MODELS[seed % len(MODELS)]
    price = dict(zip(LABELS, rng.normal(0, 3, 4), strict=True))
    score = X["savings"] * rng.normal() + X["income"] * rng.normal() + X["education"].map(price)
    score = score + X["owner"] * rng.normal() + rng.normal() * (X["savings"] - 2) * (X["income"] - 3)
    y, desired = (score > np.quantile(score, 0.8)).astype(int), 1
    if kind == "three classes":
        y, desired = y + (score > np.quantile(score, 0.5)), int(rng.choice([0, 2]))
    estimator = {
        "boosting": GradientBoostingClassifier(n_estimators=8, random_state=seed),
        "network": MLPClassifier((6,), max_iter=200, random_state=seed),
        "linear": LogisticRegression(),
    }.get(kind, RandomForestClassifier(5, max_depth=5, random_state=seed))
    codes = OrdinalEncoder() if kind == "forest, codes" else OneHotEncoder(sparse_output=False)
    rest = StandardScaler() if kind in ("network", "linear") else "passthrough"
    encoder = make_column_transformer((codes, ["education"]), remainder=rest)
    return make_pipeline(encoder, estimator).fit(X, y), desired


def check(seed: int) -> tuple[dict[str, Any], str | None]:
    """The answer for somebody who is refused, a robust-1 document; and what ``predict`` contradicts of it."""
    rng = np.random.default_rng([seed, 7])
    X = pd.DataFrame(
        {
            "savings": rng.integers(0, 6, 300),
            "income": rng.integers(0, 6, 300),
            "education": rng.choice(LABELS, 300),
            "owner": rng.integers(0, 2, 300),
        }
    )
    model, desired = model_of(seed, X)
    missed = {"savings": 1.0} if seed % 2 else {"savings": 1.0, "income": 1.0}
    cost = COSTS[seed // len(MODELS) % len(COSTS)]
    people = X[model.predict(X) != desired].sample(1, random_state=seed)
    answers = Recourse(model, X, desired=desired, cost=cost).certify(people)
    person = people.index[0]
    found = answers.robust(person, missed=missed, time_limit=30)
    grid = pd.DataFrame(list(product(range(-1, 7), range(-1, 7), LABELS, (0, 1))), columns=X.columns)
    accepted = dict(zip(map(tuple, grid.to_numpy()), model.predict(grid) == desired, strict=True))
    best = cheapest(
        tuple(people.iloc[0]), [np.ptp(X[c]) if c != "education" else 1 for c in X], cost, missed, accepted
    )
    lower = found["lower_bound"] or 0.0
    wrong = None
    if found["status"] == "infeasible" and best is not None:
        wrong = f"infeasible, but {best} is certain"
    elif found["status"] == "optimal" and (best is None or abs(found["cost"] - best) > 1e-5 * best + 1e-9):
        wrong = f"optimal at {found['cost']}, but the cheapest costs {best}"
    elif best is not None and lower > best + 1e-9:
        wrong = f"a bound of {lower}, but {best} is certain"
    return found, wrong


def cheapest(
    person: Row, scales: list[float], cost: str, missed: dict[str, float], accepted: dict[Row, bool]
) -> float | None:
    """The least cost of a certain action, by trying all actions and all of their outcomes."""
    best, away = None, [name in missed for name in ("savings", "income", "education", "owner")]
    choices = [[None, *range(6)], [None, *range(6)], [None, *LABELS], [None, 0, 1]]
    for action in product(*choices):
        steps = [
            0.0 if new is None else float(new != old) if isinstance(old, str) else abs(new - old) / scale
            for new, old, scale in zip(action, person, scales, strict=True)
        ]
        paid = {"l1": sum(steps), "l2-squared": sum(s * s for s in steps), "linf": max(steps)}[cost]
        if best is not None and paid >= best:
            continue
        values = [old if new is None else new for new, old in zip(action, person, strict=True)]
        ranges = [
            range(-1, 2) if wide and new is not None else (0,) for wide, new in zip(away, action, strict=True)
        ]
        outcomes = ((values[0] + p, values[1] + q, *values[2:]) for p, q, _, _ in product(*ranges))
        if all(accepted[one] for one in outcomes):
            best = paid
    return best
