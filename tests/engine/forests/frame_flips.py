"""Returned actions handed to deployed models of tables with gaps and categories.

Asked through ``Recourse``, answered by the default, judged by the fitted model's own ``predict`` on the
counterfactual rows: labels, gaps and doubles exactly as returned.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn import ensemble, tree

from milp_recourse import Recourse

COSTS = ("l1", "l2-squared", "linf", "l0")


def table(rows: int, seed: int, gaps: bool, categories: bool) -> tuple[pd.DataFrame, pd.Series]:
    """Numbers of different sizes, whole numbers, and labels; a tenth of the numbers is missing, if wanted."""
    rng = np.random.default_rng(seed)
    income, age = rng.normal(40000, 15000, rows), rng.normal(45, 12, rows)
    debt, rooms = rng.normal(0.5, 0.3, rows), np.round(rng.normal(4, 2, rows))
    job = rng.choice(["none", "clerk", "own", "public", "retired"], rows)
    home = rng.choice(["rent", "own", "family"], rows)
    worth = pd.Series(job).map({"none": -1.0, "clerk": 0.2, "own": 0.0, "public": 0.8, "retired": 0.3})
    logit = (income - 45000) / 15000 - 3 * (debt - 0.4) + 0.3 * (rooms - 4) + worth + 0.5 * (home == "own")
    X = pd.DataFrame({"income": income, "age": age, "debt": debt, "rooms": rooms})
    y = pd.Series((logit + 0.4 * rng.logistic(size=rows) > 0).astype(int))
    if gaps:
        for column in ("income", "age", "debt"):
            X.loc[rng.random(rows) < 0.1, column] = np.nan
    if categories:
        X["job"] = pd.Categorical(job, categories=["none", "clerk", "own", "public", "retired"])
        X["home"] = pd.Categorical(home, categories=["family", "own", "rent"])
        if gaps:
            X.loc[rng.random(rows) < 0.1, "home"] = np.nan
    return X, y


def families(seed: int = 0) -> Iterator[tuple[str, Any, bool, bool]]:
    """Name, unfitted model, and whether it takes gaps and categories."""
    size = {"max_depth": 5, "random_state": seed}
    yield "decision tree", tree.DecisionTreeClassifier(max_depth=7, random_state=seed), True, False
    yield "random forest", ensemble.RandomForestClassifier(20, **size), True, False
    yield "extra trees", ensemble.ExtraTreesClassifier(20, **size), True, False
    yield (
        "gradient boosting",
        ensemble.GradientBoostingClassifier(n_estimators=20, random_state=seed),
        False,
        False,
    )
    histogram = ensemble.HistGradientBoostingClassifier(
        max_iter=20, max_depth=4, categorical_features="from_dtype", random_state=seed
    )
    yield "histogram boosting", histogram, True, True
    try:
        from xgboost import XGBClassifier
    except ImportError:
        pass
    else:
        for name, most in (("xgboost", 1), ("xgboost, one-hot splits", 9)):
            extra = {"enable_categorical": True, "max_cat_to_onehot": most, "random_state": seed}
            yield name, XGBClassifier(n_estimators=20, max_depth=4, n_jobs=1, **extra), True, True
    try:
        from lightgbm import LGBMClassifier
    except ImportError:
        return
    extra = {"n_estimators": 20, "max_depth": 4, "n_jobs": 1, "verbose": -1, "random_state": seed}
    yield "lightgbm", LGBMClassifier(min_data_per_group=10, cat_smooth=1.0, **extra), True, True


def run(count: int, seed: int = 1) -> dict[str, dict[str, int]]:
    """Solve ``count`` refused people per family and count what the fitted models say of the answers."""
    tally: dict[str, dict[str, int]] = {}
    for name, model, gaps, categories in families():
        X, y = table(3000, 0, gaps, categories)
        model.fit(X, y)
        others, _ = table(40 * count, seed, gaps, categories)
        refused = others[model.predict(others) == 0].head(count).reset_index(drop=True)
        keys = ("people", "with gaps", "actions", "set a gap", "set a label", "infeasible", "open", "failed")
        seen = dict.fromkeys(keys, 0)
        for k, cost in enumerate(COSTS):
            people = refused.iloc[k :: len(COSTS)]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answers = Recourse(model, X, cost=cost).certify(people, time_limit=20.0)
            after, status = answers.counterfactuals, answers.table["status"].to_numpy()
            acted = status == "optimal"
            good = np.asarray(model.predict(after[list(X.columns)])) == 1
            seen["people"] += len(people)
            seen["with gaps"] += int(people.isna().any(axis=1).sum())
            seen["actions"] += int(acted.sum())
            seen["infeasible"] += int((status == "infeasible").sum())
            seen["open"] += int((~np.isin(status, ["optimal", "infeasible"])).sum())
            seen["failed"] += int((acted & ~good).sum())
            filled = people.isna().to_numpy() & after[list(X.columns)].notna().to_numpy()
            seen["set a gap"] += int((acted & filled.any(axis=1)).sum())
            for column in ("job", "home") if categories else ():
                changed = people[column].astype(str).to_numpy() != after[column].astype(str).to_numpy()
                seen["set a label"] += int((acted & changed).sum())
        tally[name] = seen
    return tally
