"""Functions of columns before linear models and networks, bins before linear models, matrices, imputers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn")  # an optional extra

from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier

from milp_recourse import Recourse
from milp_recourse.errors import BadInput
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.readers import read_model
from tests.helpers.pipelines import decide, encode

RNG = np.random.default_rng(5)
N = 300
X = pd.DataFrame(
    {
        "whole": RNG.integers(0, 40, N),
        "large": RNG.integers(0, 90_000, N),
        "number": RNG.normal(3.0, 1.0, N).round(3),
        "skewed": RNG.gamma(1.5, 800.0, N),
        "label": RNG.choice(["a", "b", "c"], N),
    }
)
NUMBERS = ["whole", "large", "number", "skewed"]
Y = (X["whole"] / 20 + X["number"] + np.log1p(X["skewed"]) / 5 + (X["label"] == "b") > 5.2).astype(int)
GAPS = X[NUMBERS].astype(float).mask(RNG.random((N, 4)) < 0.1)


class Card(TransformerMixin, BaseEstimator):
    """A transformer of one's own, which says what it computes."""

    def __init__(self, tables: Any = ()) -> None:
        self.tables = tables

    def fit(self, X: Any, y: Any = None) -> Card:
        return self

    def transform(self, X: Any) -> np.ndarray:
        cut, line = self.tables
        z = np.asarray(X, dtype=float)
        points = np.asarray(cut["values"], dtype=float)[np.searchsorted(cut["cuts"], z[:, 0], side="right")]
        return np.column_stack([points, np.interp(z[:, 1], line["knots"], line["values"])])

    def piecewise(self) -> Any:
        return list(self.tables)


STEPS = {"cuts": [10, 20, 30], "values": [0.0, 12.0, 9.0, 30.0]}
LINES = {"knots": [-50.0, 1.0, 3.0, 4.0, 50.0], "values": [0.0, 0.0, 10.0, 4.0, 4.0]}
BEFORE = {
    "bins beside numbers": (KBinsDiscretizer(4, encode="ordinal"), ["whole", "large"]),
    "bins one-hot": (KBinsDiscretizer(4, encode="onehot-dense"), ["whole", "large"]),
    "cubic splines": (SplineTransformer(4), ["whole", "number"]),
    "linear splines": (SplineTransformer(4, degree=1, extrapolation="linear"), ["large", "number"]),
    "powers": (make_pipeline(StandardScaler(), PolynomialFeatures((3, 3), include_bias=False)), ["number"]),
    "quantiles": (QuantileTransformer(n_quantiles=20), ["whole", "number", "skewed"]),
    "Yeo-Johnson": (PowerTransformer(), ["whole", "number", "skewed"]),
    "logs": (make_pipeline(FunctionTransformer(np.log1p), StandardScaler()), ["large", "skewed"]),
    "a scaler that cuts off": (MinMaxScaler(clip=True), ["whole", "number"]),
    "its own tables": (Card((STEPS, LINES)), ["whole", "number"]),
    "principal components": (make_pipeline(StandardScaler(), PCA(2)), ["whole", "number", "skewed"]),
}


def wanted(model: Any, rows: pd.DataFrame) -> np.ndarray:
    return np.asarray(model.predict(rows)) == 1


def fitted(model: Any, table: pd.DataFrame) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(table, Y)


def agrees(model: Any, table: pd.DataFrame, rows: pd.DataFrame, least: float = 0.97) -> Any:
    """Read a model, and compare it with predict on rows."""
    reading = read_model(model, table, 1)
    said, sure = decide(reading, encode(reading, rows))
    assert sure.mean() >= least
    assert (said == wanted(model, rows))[sure].all()
    return reading


def between(count: int = 100) -> pd.DataFrame:
    """Rows whose numbers lie between those of X."""
    low, high = X[NUMBERS].min(), X[NUMBERS].max()
    rows = pd.DataFrame(RNG.uniform(low, high, (count, 4)), columns=NUMBERS)
    rows[["whole", "large"]] = rows[["whole", "large"]].round().astype(int)
    return rows.assign(label=RNG.choice(["a", "b", "c"], count))


@pytest.mark.parametrize("name", BEFORE)
@pytest.mark.parametrize("kind", ["logistic", "network"])
def test_functions_before_linear_models_and_networks(name: str, kind: str) -> None:
    """Where the score passes the threshold by more than the margin, the reading decides as predict does."""
    step, columns = BEFORE[name]
    rest = [c for c in NUMBERS if c not in columns]
    front = make_column_transformer((step, columns), (StandardScaler(), rest), (OneHotEncoder(), ["label"]))
    last = LogisticRegression() if kind == "logistic" else MLPClassifier((4,), max_iter=50, random_state=0)
    agrees(fitted(make_pipeline(front, last), X), X, between())


@pytest.mark.parametrize("encode_as", ["onehot", "ordinal"])
def test_bins_and_labels_alone_are_trees(encode_as: str) -> None:
    """A scorecard over continuous columns, which no network could be."""
    bins = KBinsDiscretizer(5, encode=encode_as)
    front = make_column_transformer((bins, NUMBERS), (OneHotEncoder(drop="first"), ["label"]))
    model = fitted(make_pipeline(front, LogisticRegression()), X)
    reading = agrees(model, X, between())
    assert isinstance(reading.classifier, TreeEnsemble)
    assert reading.near < 1e-12
    edges = bins_edges(model)
    rows = pd.concat([X.head(1)] * (3 * len(edges)), ignore_index=True)
    rows["number"] = np.concatenate([np.nextafter(edges, -np.inf), edges, np.nextafter(edges, np.inf)])
    agrees(model, X, rows)


def bins_edges(model: Any) -> np.ndarray:
    return np.asarray(model[0].transformers_[0][1].bin_edges_[2][1:-1])


def test_a_matrix_behind_one_hot_columns() -> None:
    """The matrix is the last transformer, and a scaler follows."""
    front = make_column_transformer((StandardScaler(), NUMBERS), (OneHotEncoder(), ["label"]))
    model = make_pipeline(front, TruncatedSVD(4, random_state=0), StandardScaler(), LogisticRegression())
    agrees(fitted(model, X), X, between())


@pytest.mark.parametrize("imputer", [KNNImputer(add_indicator=True), IterativeImputer(max_iter=2)])
@pytest.mark.parametrize("last", [LogisticRegression(), DecisionTreeClassifier(max_depth=5, random_state=0)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_who_misses_nothing_is_read_behind_imputers_from_others(imputer: Any, last: Any) -> None:
    """A missing number is made of a person's others, so who misses one cannot be read."""
    model = fitted(make_pipeline(imputer, StandardScaler(), last), GAPS)
    agrees(model, GAPS, GAPS.dropna())
    some = GAPS[GAPS.isna().any(axis=1) & (model.predict(GAPS) == 0)].head(3)
    answers = Recourse(model, GAPS, desired=1).certify(some)
    assert (answers.table["status"] == "bad-input").all()


def test_trees_know_from_an_indicator_what_is_missing() -> None:
    """Missing values take every branch as deployed."""
    model = fitted(
        make_pipeline(SimpleImputer(add_indicator=True), DecisionTreeClassifier(max_depth=8, random_state=0)),
        GAPS,
    )
    agrees(model, GAPS, GAPS)
    people = GAPS[GAPS.isna().any(axis=1) & (model.predict(GAPS) == 0)].head(5)
    answers = Recourse(model, GAPS, desired=1).certify(people)
    assert set(answers.table["status"]) == {"optimal"}
    assert wanted(model, answers.counterfactuals).all()


def test_a_reading_of_whole_numbers_is_of_these() -> None:
    """Who calls such a column continuous, or sets bounds where nothing was read, is told."""
    step, columns = BEFORE["cubic splines"]
    model = fitted(make_pipeline(make_column_transformer((step, columns)), LogisticRegression()), X)
    with pytest.raises(BadInput, match="read on whole numbers"):
        Recourse(model, X, kinds={"whole": "continuous"})
    with pytest.raises(BadInput, match="for which the model is read"):
        Recourse(model, X, bounds={"number": (0, 1e6)})
