"""A small table of applicants and models fitted on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

NUMBERS, LABELS = ["age", "income", "owns"], ["purpose"]


def applicants(count: int = 300, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """Whole numbers, numbers, zeros and ones, labels; and whether each was accepted."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.integers(20, 70, count),
            "income": rng.lognormal(8, 0.5, count).round(2),
            "owns": rng.integers(0, 2, count),
            "purpose": rng.choice(["car", "house", "school"], count),
        }
    )
    bonus = table["purpose"].map({"car": 0.0, "house": 0.4, "school": -0.4})
    score = (table["age"] - 45) / 15 + (table["income"] - 3400) / 1500 + table["owns"] - 0.5 + bonus
    return table, pd.Series((score + rng.normal(0, 0.5, count) > 0).astype(int), name="accepted")


def pipeline(final: Any = None) -> Pipeline:
    """Scaled numbers, one-hot labels, then the classifier; not fitted."""
    columns = ColumnTransformer([("numbers", StandardScaler(), NUMBERS), ("labels", OneHotEncoder(), LABELS)])
    return Pipeline([("columns", columns), ("model", LogisticRegression() if final is None else final)])


def fitted(final: Any = None) -> tuple[Pipeline, pd.DataFrame]:
    """A fitted pipeline and the table it was fitted on."""
    table, accepted = applicants()
    return pipeline(final).fit(table, accepted), table
