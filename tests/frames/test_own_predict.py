"""The model's own prediction, with which answers are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from milp_recourse import Recourse

RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(size=300).round(2), "b": RNG.integers(0, 9, 300)})
WORTH = X["a"] + X["b"] / 4
TWO = (WORTH > 1.2).astype(int).to_numpy()
THREE = np.digitize(WORTH, [0.8, 1.5])


def xgboost_booster(objective: str, y: Any, **settings: Any) -> Any:
    """A Booster of XGBoost."""
    xgboost = pytest.importorskip("xgboost", reason="its Booster")
    settings |= {"objective": objective, "max_depth": 3, "nthread": 1}
    return xgboost.train(settings, xgboost.DMatrix(X, label=y), 8)


def lightgbm_booster(objective: str, y: Any, **settings: Any) -> Any:
    """A Booster of LightGBM."""
    lightgbm = pytest.importorskip("lightgbm", reason="its Booster")
    settings |= {"objective": objective, "num_leaves": 7, "num_threads": 1, "verbose": -1}
    return lightgbm.train(settings, lightgbm.Dataset(X, y), 8)


BOOSTERS = {
    "logistic": lambda: (xgboost_booster("binary:logistic", TWO), 1),
    "margins": lambda: (xgboost_booster("binary:logitraw", TWO), 1),
    "probabilities of three": lambda: (xgboost_booster("multi:softprob", THREE, num_class=3), 2),
    "any of three but one": lambda: (xgboost_booster("multi:softprob", THREE, num_class=3), {"not": 0}),
    "numbers of three": lambda: (xgboost_booster("multi:softmax", THREE, num_class=3), 2),
    "numbers of two": lambda: (xgboost_booster("multi:softmax", TWO, num_class=2), 1),
    "lightgbm": lambda: (lightgbm_booster("binary", TWO, sigmoid=2.5), 1),
    "three of lightgbm": lambda: (lightgbm_booster("multiclass", THREE, num_class=3), 2),
}


@pytest.mark.parametrize("name", BOOSTERS)
def test_a_booster_is_compared_by_what_it_predicts(name: str) -> None:
    """Probabilities, margins or numbers of classes: none of them contradicts what was read."""
    model, desired = BOOSTERS[name]()
    people = X[THREE == 0].head(12)
    answers = Recourse(model, X, desired).certify(people)
    assert answers.table["status"].eq("optimal").all() and answers.table["confirmed"].all()
    assert answers.table["cost"].gt(0).sum() > 6
