"""Models that no reader reads, over the tables of :mod:`tests.helpers.whole_lenders`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import StackingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from tests.helpers.pipelines import drawn_classes

UNREAD = ("rbf svc", "neighbours", "stack", "function", "callable")

AT_LEAST_HALF = (0.5, None)
"""What is wanted of a callable that gives probabilities."""


class Callable01:
    """As a network of Keras is called: rows in, one float32 probability each out, shape (n, 1)."""

    def __init__(
        self, code: Callable[[pd.DataFrame], np.ndarray], rng: np.random.Generator, width: int
    ) -> None:
        self.code, self.weights, self.ends = code, rng.normal(size=(5, width)), rng.normal(size=5)

    def __call__(self, frame: pd.DataFrame) -> np.ndarray:
        """The probabilities. Sums are taken row by row, so none depends on the other rows."""
        z = np.stack([(self.code(frame) * w).sum(axis=1) for w in self.weights], axis=1)
        out = (np.tanh(z) * self.ends).sum(axis=1)
        return (1 / (1 + np.exp(-out))).astype(np.float32)[:, None]


def unread_on(rng: np.random.Generator, X: pd.DataFrame, kind: str) -> tuple[Any, pd.Series]:
    """A model of a kind, fitted on a table, and the classes, of which each is a label it gives."""
    y = drawn_classes(rng, X, several=bool(rng.random() < 0.25 and kind != "callable"))
    code = _coded(rng, X)
    if kind == "callable":
        return Callable01(code, rng, code(X).shape[1]), y
    if kind == "function":
        weights, classes = rng.integers(-3, 4, code(X).shape[1]), list(pd.unique(y))
        few = int(rng.integers(2, 7))

        def told(frame: pd.DataFrame) -> list[object]:
            places = np.rint(code(frame) * weights).sum(axis=1) % (few * len(classes)) // few
            return [classes[int(k)] for k in places]

        return told, pd.Series(told(X))
    alone = {
        "rbf svc": lambda: SVC(gamma=float(rng.choice([0.1, 1.0]))),
        "neighbours": lambda: KNeighborsClassifier(int(rng.choice([1, 3, 5]))),
        "stack": lambda: StackingClassifier(
            [("svc", SVC()), ("near", KNeighborsClassifier(3))], LogisticRegression(), cv=2
        ),
    }
    labels = [c for c in X.columns if c.startswith(("label", "code"))]
    numbers = [c for c in X.columns if c not in labels]
    front = make_column_transformer(
        (
            make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")),
            labels,
        ),
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(front, alone[kind]()).fit(X, y), y


def _coded(rng: np.random.Generator, X: pd.DataFrame) -> Callable[[pd.DataFrame], np.ndarray]:
    """A function of rows to numbers, labels by a number of their own; a missing value has one, too."""
    known = {
        c: {v: float(rng.integers(-2, 3)) for v in sorted(X[c].dropna().unique().tolist(), key=str)}
        for c in X.columns
        if c.startswith(("label", "code"))
    }
    middle = {c: float(X[c].astype(float).mean()) for c in X.columns if c not in known}

    def code(frame: pd.DataFrame) -> np.ndarray:
        parts = []
        for c in X.columns:
            if c in known:
                parts.append([known[c].get(v, 5.0) for v in frame[c].tolist()])
            else:
                numbers = frame[c].to_numpy(dtype=float, na_value=np.nan)
                parts.append(np.where(np.isnan(numbers), -1.0, numbers - middle[c]))
        return np.array(parts, dtype=float).T

    return code
