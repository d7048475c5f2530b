"""A class or an object that computes otherwise than the class it is made from is refused."""

from __future__ import annotations

from types import MethodType
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn")  # an optional extra: without it there is nothing to read
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.feature_selection import SelectorMixin
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from milp_recourse.errors import RecourseError, Unsupported
from milp_recourse.readers import (
    read_lightgbm,
    read_model,
    read_sklearn,
    read_sklearn_trees,
    read_torch,
    read_xgboost,
)

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(80, 3)), columns=["a", "b", "c"])
Y = (X["a"] + X["b"] > 0).astype(int)


def with_own(base: type, *names: str) -> type:
    """A subclass with other methods of these names; a method that is named twice does the same as before."""

    def own(self: Any, *args: Any, **keywords: Any) -> Any:
        raise AssertionError("nothing is asked of it")

    return type(f"Own{base.__name__}", (base,), dict.fromkeys(names, own))


def fitted(make: Any, name: str, *arguments: Any) -> Any:
    """A model that was fitted with the class itself, and is then made one of the subclass."""
    model = make(*arguments).fit(X, Y)
    model.__class__ = with_own(make, name)
    return model


def assigned(model: Any, name: str) -> Any:
    model.fit(X, Y)
    setattr(model, name, MethodType(lambda self, rows: np.ones(len(rows), dtype=int), model))
    return model


def before(step: Any) -> Any:
    """A pipeline whose transformer is made one of a subclass after the fit."""
    model = make_pipeline(step, LogisticRegression()).fit(X, Y)
    step.__class__ = with_own(type(step), "transform")
    return model


SCALED = Pipeline([("scale", StandardScaler()), ("model", LogisticRegression())])
OWN: dict[str, tuple[Any, str]] = {
    "predict": (lambda: fitted(LogisticRegression, "predict"), "predict"),
    "decision_function": (lambda: fitted(RidgeClassifier, "decision_function"), "decision_function"),
    "private": (lambda: fitted(MLPClassifier, "_forward_pass_fast", (2,)), "_forward_pass_fast"),
    "tree": (lambda: fitted(DecisionTreeClassifier, "_validate_X_predict"), "_validate_X_predict"),
    "forest": (lambda: fitted(RandomForestClassifier, "predict_proba", 3), "predict_proba"),
    "boosting": (lambda: fitted(GradientBoostingClassifier, "_raw_predict"), "_raw_predict"),
    "histogram": (lambda: fitted(HistGradientBoostingClassifier, "predict"), "predict"),
    "pipeline": (
        lambda: fitted(Pipeline, "predict", [("model", LogisticRegression())]),
        "predict",
    ),
    "search": (
        lambda: fitted(GridSearchCV, "predict", LogisticRegression(), {"C": [1.0]}),
        "predict",
    ),
    "transformer": (lambda: before(StandardScaler()), "transform"),
    "columns": (lambda: before(ColumnTransformer([("all", "passthrough", ["a"])])), "transform"),
    "union": (lambda: before(FeatureUnion([("all", StandardScaler())])), "transform"),
    "in a pipeline": (
        lambda: Pipeline([("model", fitted(LogisticRegression, "predict"))]),
        "predict",
    ),
    "in a wrapper": (
        lambda: FixedThresholdClassifier(fitted(LogisticRegression, "predict_proba"), threshold=0.3),
        "predict_proba",
    ),
    "assigned": (lambda: assigned(LogisticRegression(), "predict"), "predict"),
    "assigned to a pipeline": (lambda: assigned(SCALED, "predict"), "predict"),
    "assigned to a forest": (lambda: assigned(RandomForestClassifier(3), "predict"), "predict"),
}


@pytest.mark.filterwarnings("ignore")  # the small network does not converge
@pytest.mark.parametrize("name", OWN)
def test_another_computation_is_refused(name: str) -> None:
    make, method = OWN[name]
    with pytest.raises(Unsupported) as caught:
        read_model(make(), X)
    said = str(caught.value)
    assert f" with a {method} of its own; allowed: the {method} of sklearn's own class" in said
    assert "\n" not in said


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_another_computation_of_other_trees_is_refused(library: str) -> None:
    """A subclass, a method assigned to the classifier, and one assigned to the booster inside."""
    module = pytest.importorskip(library)  # an optional extra
    base = module.XGBClassifier if library == "xgboost" else module.LGBMClassifier
    options = {"n_estimators": 3, "n_jobs": 1} | ({} if library == "xgboost" else {"verbose": -1})
    with pytest.raises(RecourseError, match="Own"):
        model = base(**options).fit(X, Y)
        model.__class__ = with_own(base, "predict")
        read_model(model, X)
    with pytest.raises(Unsupported, match=f"model: got {base.__name__} with a predict of its own"):
        read_model(assigned(base(**options), "predict"), X)
    model = base(**options).fit(X, Y)
    booster = model.get_booster() if library == "xgboost" else model.booster_
    booster.predict = lambda rows: rows
    for read in (lambda one: read_model(one, X), read_xgboost if library == "xgboost" else read_lightgbm):
        with pytest.raises(Unsupported, match="model: got Booster with a predict of its own"):
            read(booster)


def test_a_forward_of_its_own_is_refused() -> None:
    """In the module, in a layer, in the object, and around a Sequential."""
    torch = pytest.importorskip("torch")  # an optional extra
    nn = torch.nn

    class Around(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(3, 1))

        def forward(self, rows: Any) -> Any:
            return 1 - self.net(rows)

    class Backwards(nn.Sequential):
        def __iter__(self) -> Any:
            return iter(list(self._modules.values())[::-1])

    with pytest.raises(Unsupported, match="module: got Around; allowed: Linear"):
        read_torch(Around())
    with pytest.raises(Unsupported, match="module: got Backwards with a __iter__ of its own"):
        read_torch(Backwards(nn.Linear(3, 3), nn.Linear(3, 1)))
    module = nn.Sequential(nn.Linear(3, 1))
    module[0].forward = lambda rows: rows
    with pytest.raises(Unsupported, match="layer 0: got Linear with a forward of its own"):
        read_torch(module)
    module = nn.Sequential(nn.Linear(3, 1))
    module.forward = lambda rows: rows  # type: ignore[method-assign]
    with pytest.raises(Unsupported, match="module: got Sequential with a forward of its own"):
        read_torch(module)


def test_the_readers_of_one_kind_refuse_too() -> None:
    inner = fitted(LogisticRegression, "decision_function")
    for model in (fitted(LogisticRegression, "predict"), Pipeline([("model", inner)])):
        with pytest.raises(Unsupported, match="of its own"):
            read_sklearn(model)
    with pytest.raises(
        Unsupported, match="estimator: got OwnDecisionTreeClassifier with a predict of its own"
    ):
        read_sklearn_trees(fitted(DecisionTreeClassifier, "predict"))


class Remembers(LogisticRegression):
    """Fits, shows and scores in its own way, which no prediction depends on."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, note: str = "") -> Any:
        self.note_ = note
        return super().fit(X, y, sample_weight)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        return 0.5

    def __repr__(self) -> str:
        return "Remembers()"

    def odds(self, X: Any) -> Any:
        return np.exp(self.decision_function(X))

    def predict_proba(self, X: Any) -> Any:
        return np.full((len(X), 2), 0.5)


class First(SelectorMixin, BaseEstimator):
    """Selects the first column: the selection itself is asked for."""

    def fit(self, X: Any, y: Any = None) -> Any:
        self.n_features_in_ = X.shape[1]
        return self

    def _get_support_mask(self) -> Any:
        return np.arange(self.n_features_in_) == 0


@pytest.mark.filterwarnings("ignore:X has feature names")  # First keeps none
def test_what_no_prediction_depends_on_may_be_its_own() -> None:
    assert len(read_model(Remembers().fit(X, Y), X).columns) == 3
    selected = make_pipeline(First(), FunctionTransformer(), LogisticRegression()).fit(X, Y)
    assert [column.name for column in read_model(selected, X).columns] == ["a"]


def test_what_only_looks_like_a_wrapper_is_refused() -> None:
    class Search(ClassifierMixin, BaseEstimator):
        best_estimator_ = LogisticRegression().fit(X, Y)

        def predict(self, rows: Any) -> Any:
            return 1 - self.best_estimator_.predict(rows)

    class Steps:
        steps = (("model", LogisticRegression().fit(X, Y)),)

        def predict(self, rows: Any) -> Any:
            return 1 - self.steps[0][1].predict(rows)

    for model in (Search(), Steps()):
        with pytest.raises(Unsupported, match=f"model: got {type(model).__name__}"):
            read_model(model, X)
