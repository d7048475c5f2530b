"""The model's own prediction, with which answers are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from milp_recourse import Recourse
from milp_recourse.errors import BadInput

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


MODEL = LogisticRegression().fit(X, TWO)


def fails(rows: pd.DataFrame) -> Any:
    """A prediction that fails, in two lines."""
    raise RuntimeError("no such device\nat line 3")


def fails_silently(rows: pd.DataFrame) -> Any:
    """A prediction that fails without a word."""
    raise AssertionError


PREDICTS = {
    "fails": (fails, "RuntimeError: no such device; allowed: a function that takes rows like X's"),
    "fails silently": (fails_silently, "AssertionError; allowed: a function that takes rows"),
    "texts": (
        lambda rows: MODEL.predict(rows).astype(str),
        "the label '1'; allowed: the model's classes 0, 1",
    ),
    "truth values": (lambda rows: MODEL.predict(rows) == 1, "the label True; allowed: the model's classes"),
    "probabilities": (lambda rows: MODEL.predict_proba(rows)[:, 1], "the label 0."),
    "missing": (lambda rows: [pd.NA] * len(rows), "the label <NA>; allowed: the model's classes 0, 1"),
    "lists": (lambda rows: [[1]] * (len(rows) - 1) + [[1, 0]], "the label [1]; allowed: the model's classes"),
    "two columns": (
        MODEL.predict_proba,
        "an answer of shape (300, 2); allowed: 300 labels",
    ),
    "nothing": (lambda rows: None, "an answer of shape (1, 1); allowed: 300 labels, one per row"),
}


@pytest.mark.parametrize("name", PREDICTS)
def test_a_prediction_that_is_no_class_is_told_in_one_line(name: str) -> None:
    """Nothing is compared with labels that the model does not have."""
    predict, message = PREDICTS[name]
    with pytest.raises(BadInput) as caught:
        Recourse(MODEL, X, predict=predict).certify(X.head(3))
    assert str(caught.value).startswith(f"predict: got {message}") and "\n" not in str(caught.value)


def test_a_prediction_that_fails_for_one_person_holds_up_nobody() -> None:
    """The label of a column that the model drops is one that its encoder refuses."""
    labels = pd.Series(["u", "v"] * 150)
    table = X.assign(s=labels)
    columns = make_column_transformer((OneHotEncoder(), ["s"]), remainder="passthrough")
    model = make_pipeline(columns, SelectKBest(k=2), LogisticRegression()).fit(table, TWO)
    people = table[TWO == 0].head(4).copy()
    people.iloc[1, 2] = "w"
    recourse = Recourse(model, table)
    answers = recourse.certify(people).table
    assert [c.name for c in recourse.columns] == ["a", "b"]
    assert answers["status"].tolist() == ["optimal", "limit", "optimal", "optimal"]
    assert answers["confirmed"].tolist() == [True, False, True, True]
    assert answers["lower_bound"].iloc[1] == 0
    assert answers["message"].iloc[1].startswith("predict: got ValueError: Found unknown categories ['w']")
    assert recourse.certify(people.iloc[[1]]).table["status"].tolist() == ["limit"]


def test_a_module_with_a_prediction_of_its_own() -> None:
    """It is asked with rows of the table; one that takes tensors needs the argument predict."""
    torch = pytest.importorskip("torch", reason="its modules")

    class Named(torch.nn.Sequential):
        def predict(self, rows: Any) -> Any:
            values = rows.to_numpy() if asked_with_tables else rows
            return (self(torch.as_tensor(values, dtype=torch.float32))[:, 0] > 0).int().numpy()

    torch.manual_seed(0)
    module = Named(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1)).eval()
    asked_with_tables = True
    table = Recourse(module, X).certify(X.head(8)).table
    assert table["status"].eq("optimal").all() and table["confirmed"].all()
    asked_with_tables = False
    with pytest.raises(BadInput, match=r"predict: got .*; allowed: a function that takes rows like X's"):
        Recourse(module, X).certify(X.head(8))


def test_a_whole_number_that_a_column_of_float32_would_round() -> None:
    """LightGBM compares doubles: it refuses the rounded number, and accepts the one that was found."""
    lightgbm = pytest.importorskip("lightgbm", reason="its classifier")
    rng = np.random.default_rng(0)
    large = rng.integers(2**24, 2**26, 300).astype("float32")
    table = pd.DataFrame({"a": large, "b": rng.normal(size=300)})
    wanted = ((table["a"] - large.mean()) / large.std() + table["b"] > 0.3).astype(int)
    model = lightgbm.LGBMClassifier(n_estimators=5, num_leaves=4, verbose=-1, n_jobs=1).fit(table, wanted)
    answers = Recourse(model, table).certify(table[wanted == 0].head(3))
    after = answers.counterfactuals["a"]
    assert (after.astype("float32") != after).any()
    assert answers.table["status"].eq("optimal").all() and answers.table["confirmed"].all()


@pytest.mark.parametrize("refuses", [False, True])
def test_choices_and_fronts_are_compared_too(refuses: bool) -> None:
    """A prediction that refuses every row but those of X: actions lead to others."""
    known = set(map(tuple, X.to_numpy()))

    def predict(rows: pd.DataFrame) -> Any:
        return MODEL.predict(rows) * [not refuses or tuple(row) in known for row in rows.to_numpy()]

    person = X[MODEL.predict(X) == 0].sort_values("b").head(1)
    answers = Recourse(MODEL, X, predict=predict).certify(person)
    each, points = answers.choices(person.index[0], 2), answers.front(person.index[0])
    for table in (each, points):
        assert len(table) and table["status"].eq("limit" if refuses else "optimal").all()
        assert table["confirmed"].ne(refuses).all()
    assert (each.attrs["lower_bound"] == 0) == refuses
    assert refuses == ("predict refuses" in str(each.attrs["message"]))
