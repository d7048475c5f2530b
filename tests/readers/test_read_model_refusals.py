"""read_model matches columns by name, stops where the model stops, and refuses the rest in one line."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn")  # an optional extra: without it there is nothing to read
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_array

from milp_recourse.errors import RecourseError
from milp_recourse.readers import model_columns, read_model
from tests.helpers.pipelines import decide, encode, predict

RNG = np.random.default_rng(1)
X = pd.DataFrame(
    {"age": RNG.integers(20, 70, 120), "income": RNG.normal(3e4, 9e3, 120), "debt": RNG.random(120)}
)
Y = pd.Series(np.where(X["income"] - 2e4 * X["debt"] + RNG.normal(0, 5e3, 120) > 2e4, "good", "bad"))
LABELLED = X.assign(job=np.array(["a", "b", "c"], dtype=object)[np.arange(120) % 3])
GAPS = X.assign(debt=X["debt"].where(X.index % 5 > 0))


def _jump(z: Any) -> Any:
    """Rises, but not as a line does."""
    return z + 9.0 * (np.asarray(z) > 0.5)


def logistic() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression())


def piped(*steps: Any, table: pd.DataFrame = X) -> Any:
    return make_pipeline(*steps).fit(table, Y)


def checking(**keywords: Any) -> Any:
    return FunctionTransformer(partial(check_array, **keywords))


@pytest.mark.parametrize("dtype", [None, np.float64, [np.float64], "numeric"])
def test_a_check_of_the_array_leaves_values_as_they_are(dtype: Any) -> None:
    """Where it asks for doubles or for nothing."""
    agrees(piped(checking(dtype=dtype), logistic()), X, X)


def agrees(model: Any, table: pd.DataFrame, people: pd.DataFrame, desired: object = None) -> None:
    """The reading and predict say the same of people, some with the desired class and some without."""
    reading = read_model(model, table, desired)
    said = predict(model, table, people) == (reading.classes[1] if desired is None else desired)
    yes, sure = decide(reading, encode(reading, people))
    assert (yes == said)[sure].all() and sure.mean() > 0.9 and 0 < said.mean() < 1


@pytest.mark.parametrize("columns", [["debt", "age", "income"], ["income", "extra", "debt", "age"]])
def test_columns_are_matched_by_name(columns: list[str]) -> None:
    """X may have other columns in another order: the model's own are looked up, the others left out."""
    xgboost = pytest.importorskip("xgboost")  # an optional extra
    other = X.assign(extra=1.0)[columns]
    for model in (
        logistic().fit(X, Y),
        xgboost.XGBClassifier(n_estimators=5, n_jobs=1).fit(X, Y == "good"),
    ):
        assert model_columns(model, other) == ["age", "income", "debt"]
        reading = read_model(model, other)
        assert [c.name for c in reading.columns] == [c for c in columns if c != "extra"]
        agrees(model, other, other)


def test_names_that_look_alike_are_the_model_s_own() -> None:
    """A model that was fitted on both columns knows each by its own name."""
    assert model_columns(logistic().fit(NET, Y), NET[NET.columns[::-1]]) == list(NET.columns)


def test_a_booster_and_lightgbm_know_names_too() -> None:
    """XGBoost's Booster by its own, LightGBM's with spaces as it writes them: underscores."""
    xgboost = pytest.importorskip("xgboost")  # an optional extra
    lightgbm = pytest.importorskip("lightgbm")  # an optional extra
    booster = xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(X, Y == "good"), 3)
    assert model_columns(booster, X[["income", "debt", "age"]]) == ["age", "income", "debt"]
    spaced = X.rename(columns={"income": "net income"})
    model = lightgbm.LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1).fit(spaced, Y)
    for known in (model, model.booster_):
        assert model_columns(known, spaced[["net income", "debt", "age"]]) == ["age", "net income", "debt"]
    agrees(model, spaced, spaced[["net income", "debt", "age"]])


@pytest.mark.filterwarnings("ignore")  # LightGBM deprecates eval_set for what older ones lack
@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_early_stopping_is_the_model_s_own(library: str) -> None:
    """predict stops at the best iteration, and so does the reading: later trees are left out."""
    noise = pd.Series(np.random.default_rng(0).random(120) < 0.35) ^ (Y == "good")
    if library == "xgboost":
        xgboost = pytest.importorskip("xgboost")  # an optional extra
        model = xgboost.XGBClassifier(n_estimators=60, learning_rate=1.0, early_stopping_rounds=30, n_jobs=1)
        model.fit(X[:60], noise[:60], eval_set=[(X[60:], noise[60:])], verbose=False)
        everything = model.get_booster().num_boosted_rounds()
    else:
        lightgbm = pytest.importorskip("lightgbm")  # an optional extra
        data, other = (lightgbm.Dataset(X[part], noise[part]) for part in (slice(60), slice(60, 120)))
        options = {"objective": "binary", "learning_rate": 0.2, "num_threads": 1, "verbose": -1}
        stop = [lightgbm.early_stopping(30, verbose=False)]
        model = lightgbm.train(
            options | {"min_data_in_leaf": 3}, data, 60, [other], callbacks=stop, keep_training_booster=True
        )
        everything = model.current_iteration()
    reading = read_model(model, X)
    assert len(reading.classifier.trees) < everything  # type: ignore[union-attr]
    said = predict(model, X, X)
    yes, _ = decide(reading, encode(reading, X))
    assert (yes == (said > 0.5)).all() and 0 < yes.mean() < 1


def test_names_that_are_no_text_are_kept() -> None:
    """A model of numbered columns takes them in order."""
    numbered = pd.DataFrame(X.to_numpy())
    reading = read_model(logistic().fit(X.to_numpy(), Y), numbered)
    assert [c.name for c in reading.columns] == [0, 1, 2]
    agrees(DecisionTreeClassifier(max_depth=3).fit(X.to_numpy(), Y), numbered, numbered)


def test_what_a_column_carries() -> None:
    """Labels as they are, the imputer's value, the tree's own rule."""
    table = LABELLED.assign(debt=GAPS["debt"])
    front = ColumnTransformer(
        [
            ("jobs", OneHotEncoder(drop="first"), ["job"]),
            ("debt", SimpleImputer(strategy="constant", fill_value=0.25), ["debt"]),
        ],
        remainder="passthrough",
        sparse_threshold=0.0,
    )
    age, income, debt, job = read_model(
        make_pipeline(front, DecisionTreeClassifier()).fit(table, Y), table
    ).columns
    assert (age.labels, age.encoding, age.imputed, age.missing) == (None, "code", None, True)
    assert (income.name, debt.imputed, debt.missing) == ("income", 0.25, False)
    assert (job.labels, job.encoding, job.table) == (("a", "b", "c"), "table", ((0, 0), (1, 0), (0, 1)))
    model = make_pipeline(front, StandardScaler(), LogisticRegression()).fit(table, Y)
    assert read_model(model, table).columns[3].encoding == "one-hot"
    assert read_model(model, table, "bad").desired == "'bad'"
    assert read_model(model, table, {"not": "bad"}).desired == "not 'bad'"


def xgboost_on(front: Any, table: pd.DataFrame) -> Any:
    xgboost = pytest.importorskip("xgboost")  # an optional extra
    return make_pipeline(front, xgboost.XGBClassifier(n_estimators=2, n_jobs=1)).fit(table, Y == "good")


def refitted(model: Any, value: Any) -> Any:
    return model.set_params(missing=value).fit(X, Y == "good")


def xgboost_of(labels: Any, **options: Any) -> Any:
    xgboost = pytest.importorskip("xgboost")  # an optional extra
    return xgboost.XGBClassifier(n_estimators=2, n_jobs=1, **options).fit(X, labels)


JOBS = ColumnTransformer([("jobs", OneHotEncoder(), ["job"])], remainder="passthrough", sparse_threshold=1.0)
THREE = pd.Series(np.array(["low", "middle", "top"])[np.arange(120) % 3])
THREE_CODES = np.arange(120) % 3
NET = X.rename(columns={"income": "net income"}).assign(net_income=RNG.random(120))
REFUSED: dict[str, tuple[Any, str]] = {
    "not fitted": (lambda: read_model(LogisticRegression(), X), "not fitted"),
    "pipeline not fitted": (lambda: read_model(logistic(), X), "not fitted"),
    "search not fitted": (
        lambda: read_model(GridSearchCV(LogisticRegression(), {"C": [1]}), X),
        "GridSearchCV without best_estimator_",
    ),
    "a missing column": (
        lambda: read_model(logistic().fit(X, Y), X[["age", "debt"]]),
        "X: got no column 'income'",
    ),
    "another number of columns": (
        lambda: read_model(logistic().fit(X.to_numpy(), Y), X[["age", "debt"]]),
        "X: got 2 columns; allowed: 3",
    ),
    "a column twice": (
        lambda: read_model(logistic().fit(X, Y), pd.concat([X, X[["age"]]], axis=1)),
        "two columns called 'age'",
    ),
    "no DataFrame": (
        lambda: read_model(logistic().fit(X, Y), X.to_numpy()),
        "X: got ndarray; allowed: the pandas",
    ),
    "no rows": (lambda: read_model(logistic().fit(X, Y), X[:0]), "X: got 0 rows"),
    "three classes": (
        lambda: read_model(logistic().fit(X, THREE), X),
        "desired: got nothing; allowed: one of the 3 classes 'low', 'middle', 'top'",
    ),
    "trees of three classes": (
        lambda: read_model(RandomForestClassifier(2).fit(X, THREE), X),
        "desired: got nothing; allowed: one of the 3 classes 'low', 'middle', 'top'",
    ),
    "one class": (
        lambda: read_model(DecisionTreeClassifier().fit(X, np.zeros(120)), X),
        "the single class 0.0",
    ),
    "no such class": (
        lambda: read_model(logistic().fit(X, Y), X, "Good"),
        "desired: got 'Good'; allowed: a class of 'bad', 'good'",
    ),
    "another wish": (
        lambda: read_model(logistic().fit(X, Y), X, {"is": "bad"}),
        "desired: got {'is': 'bad'}",
    ),
    "several outputs": (
        lambda: read_model(DecisionTreeClassifier().fit(X, np.stack([THREE, THREE], 1)), X, "low"),
        "2 outputs",
    ),
    "several labels": (
        lambda: read_model(
            MLPClassifier((2,), max_iter=300).fit(X / 1e4, np.eye(2)[[0, 1] * 60].astype(int)), X
        ),
        "2 outputs of two classes each",
    ),
    "another classifier": (
        lambda: read_model(DummyClassifier().fit(X, Y), X),
        "got DummyClassifier, which",
    ),
    "no classifier": (
        lambda: read_model(make_pipeline(StandardScaler(), "passthrough").fit(X), X),
        "Pipeline without",
    ),
    "a clusterer": (lambda: read_model(KMeans(2).fit(X), X), "got KMeans"),
    "another step": (
        lambda: read_model(make_pipeline(Nystroem(n_components=2), LogisticRegression()).fit(X, Y), X),
        "step 'nystroem': got Nystroem; allowed: Pipeline",
    ),
    "trees behind a matrix": (
        lambda: read_model(make_pipeline(PCA(2), DecisionTreeClassifier()).fit(X, Y), X),
        "one by one behind PCA; allowed: a linear model",
    ),
    "a product of columns": (
        lambda: read_model(make_pipeline(PolynomialFeatures(), LogisticRegression()).fit(X, Y), X),
        "with the product of",
    ),
    "splines before trees": (
        lambda: read_model(make_pipeline(SplineTransformer(), DecisionTreeClassifier()).fit(X, Y), X),
        "SplineTransformer before trees",
    ),
    "a jump between numbers": (
        lambda: read_model(make_pipeline(FunctionTransformer(_jump), LogisticRegression()).fit(X, Y), X),
        "jumps or bends too much",
    ),
    "a function that rounds": (
        lambda: read_model(piped(checking(dtype=np.float16), LogisticRegression()), X),
        "got FunctionTransformer",
    ),
    "its keywords round": (
        lambda: read_model(
            piped(FunctionTransformer(partial(check_array), kw_args={"dtype": [np.float32]}), logistic()), X
        ),
        "computed otherwise",
    ),
    "float32 before a scaler": (
        lambda: read_model(
            make_pipeline(StandardScaler(), DecisionTreeClassifier()).fit(X.astype("float32"), Y),
            X.astype("float32"),
        ),
        "float32",
    ),
    "text where a number goes": (
        lambda: read_model(logistic().fit(X, Y), X.assign(age="old")),
        "column 'age': got 'old' where the model takes a number",
    ),
    "sparse zeros that are missing": (
        lambda: read_model(xgboost_on(JOBS, LABELLED), LABELLED),
        "sparse_output=False",
    ),
    "weights on columns": (
        lambda: read_model(
            make_pipeline(
                ColumnTransformer([("all", StandardScaler(), ["age"])], transformer_weights={"all": 2.0}),
                LogisticRegression(),
            ).fit(X, Y),
            X,
        ),
        "transformer_weights",
    ),
    "an init of its own": (
        lambda: read_model(GradientBoostingClassifier(init=DecisionTreeClassifier()).fit(X, Y), X),
        "init",
    ),
    "a number for missing": (
        lambda: read_model(refitted(pytest.importorskip("xgboost").XGBClassifier(n_estimators=2), -1), X),
        "missing: got -1",
    ),
    "lines instead of trees": (
        lambda: read_model(xgboost_of(Y == "good", booster="gblinear"), X),
        "gblinear; allowed: gbtree or dart",
    ),
    "weights behind a sparse matrix": (
        lambda: read_model(
            make_pipeline(
                ColumnTransformer([("jobs", OneHotEncoder(), ["job"])], sparse_threshold=1.0),
                pytest.importorskip("xgboost").XGBClassifier(n_estimators=2, booster="dart", n_jobs=1),
            ).fit(LABELLED, Y == "good"),
            LABELLED,
        ),
        "dart after steps that make a sparse matrix; allowed: dart, if they make a dense one",
    ),
    "averaged trees of three classes": (
        lambda: read_model(
            pytest.importorskip("lightgbm")
            .LGBMClassifier(
                boosting_type="rf", bagging_freq=1, bagging_fraction=0.5, n_estimators=2, verbose=-1
            )
            .fit(X, THREE_CODES),
            X,
            1,
        ),
        "averaged trees (boosting rf) of 3 classes; allowed: of two, or boosting gbdt",
    ),
    "leaves of several numbers": (
        lambda: read_model(xgboost_of(THREE_CODES, multi_strategy="multi_output_tree"), X, 1),
        "multi_strategy: got multi_output_tree; allowed: one_output_per_tree",
    ),
    "truth values of two classes": (
        lambda: read_model(xgboost_of(Y == "good", objective="multi:softprob", num_class=2), X),
        "objective: got multi:softprob for two classes; allowed: binary:logistic",
    ),
    "more sums than classes": (
        lambda: read_model(xgboost_of(Y == "good", objective="multi:softmax", num_class=3), X),
        "num_class: got 3; allowed: 2",
    ),
    "several labels of xgboost": (
        lambda: read_model(xgboost_of(np.eye(2)[[0, 1] * 60]), X),
        "model: got 2 labels for each row; allowed: one",
    ),
    "trees left out": (
        lambda: read_model(
            pytest.importorskip("lightgbm")
            .LGBMClassifier(n_estimators=3, n_jobs=1, verbose=-1, pred_early_stop=True)
            .fit(X, Y),
            X,
        ),
        "pred_early_stop: got True; allowed: False",
    ),
    "two columns with one name": (
        lambda: read_model(
            pytest.importorskip("lightgbm")
            .LGBMClassifier(n_estimators=3, n_jobs=1, verbose=-1)
            .fit(X.rename(columns={"income": "net income"}), Y),
            X.rename(columns={"income": "net income"}).assign(net_income=1.0),
        ),
        "X: got the columns 'net income', 'net_income'; allowed: only the one of them that the model was",
    ),
    "one column for two": (
        lambda: read_model(logistic().fit(NET, Y), NET.drop(columns="net_income")),
        "X: got no column 'net_income'",
    ),
    "a regression": (
        lambda: read_model(pytest.importorskip("xgboost").XGBRegressor(n_estimators=2).fit(X, X["age"]), X),
        "desired: got nothing; allowed: (low, high) for what XGBRegressor predicts",
    ),
    "xgboost not fitted": (
        lambda: read_model(pytest.importorskip("xgboost").XGBClassifier(), X),
        "not fitted",
    ),
    "lightgbm not fitted": (
        lambda: read_model(pytest.importorskip("lightgbm").LGBMClassifier(), X),
        "not fitted",
    ),
}


@pytest.mark.filterwarnings("ignore")  # the small fits do not converge
@pytest.mark.parametrize(("read", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_refusals_are_one_line_that_says_what_to_do(read: Any, words: str) -> None:
    if "dart after steps" in words and pytest.importorskip("xgboost").__version__ >= "3.4":
        read()  # since then both formats are added up in one way
        return
    with pytest.raises(RecourseError) as caught:
        read()
    said = str(caught.value)
    assert words in said and "\n" not in said and "allowed: " in said


def test_nested_pipelines_and_searches() -> None:
    """A search in a pipeline, a pipeline in a search."""
    inner = GridSearchCV(
        Pipeline([("scale", StandardScaler()), ("model", LogisticRegression())]), {"model__C": [0.1, 1]}
    )
    agrees(make_pipeline(MinMaxScaler(), make_pipeline("passthrough", inner)).fit(X, Y), X, X)


def test_ridge_with_several_labels_is_refused() -> None:
    """Two labels per row have two rows of coefficients, as two classes would whose larger score wins."""
    labels = np.column_stack([X["age"] > 40, X["debt"] > 0.5]).astype(int)
    with pytest.raises(RecourseError, match="RidgeClassifier with several outputs"):
        read_model(RidgeClassifier().fit(X, labels), X)


@pytest.mark.parametrize("classes", [2, 3])
def test_an_output_function_that_fit_does_not_set_is_refused(classes: int) -> None:
    model = MLPClassifier((4,), max_iter=20, random_state=0).fit(X, np.arange(120) % classes)
    read_model(model, X, 1)
    model.out_activation_ = "relu"
    with pytest.raises(RecourseError, match="out_activation_ 'relu'"):
        read_model(model, X, 1)
