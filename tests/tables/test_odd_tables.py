"""Tables and models an adversary tried: what the model predicts is believed, odd values survive."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, TargetEncoder
from sklearn.tree import DecisionTreeClassifier

from milp_recourse import Recourse
from milp_recourse.errors import BadInput


def labelled(labels: list[object], count: int = 80) -> tuple[object, pd.DataFrame]:
    """A pipeline over a column of these labels and a number."""
    rng = np.random.default_rng(0)
    s = np.array([labels[i % len(labels)] for i in range(count)], dtype=object)
    X = pd.DataFrame({"s": s, "c": rng.normal(size=count)})
    y = (X["c"] + 2 * np.array([i % len(labels) == 1 for i in range(count)]) > 1).astype(int)
    columns = make_column_transformer((OneHotEncoder(), ["s"]), remainder="passthrough")
    return make_pipeline(columns, LogisticRegression()).fit(X, y), X


def test_a_predict_of_its_own_leaves_nothing_proven() -> None:
    """One that accepts from a probability of 0.3 on, which nothing in the model's coefficients says."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"i": rng.integers(0, 6, 300), "j": rng.integers(0, 6, 300)})
    model = LogisticRegression().fit(X, ((X["i"] - X["j"] + rng.normal(size=300) * 2) > 0).astype(int))

    def early(rows: pd.DataFrame) -> np.ndarray:
        return (model.predict_proba(rows)[:, 1] > 0.3).astype(int)

    table = Recourse(model, X, predict=early).certify(X[early(X) == 0].head(4)).table
    assert table["status"].eq("limit").all() and table["lower_bound"].eq(0).all()
    assert table["message"].str.contains("predict is not the model that was read").all()


def test_categories_in_another_order_leave_nothing_proven_that_is_wrong() -> None:
    xgboost = pytest.importorskip("xgboost", reason="its native categories")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"s": pd.Categorical(rng.choice(list("abcd"), 200)), "c": rng.integers(0, 5, 200)})
    worth = X["s"].astype(str).map({"a": -1, "b": 0, "c": 1, "d": 0.5})
    model = xgboost.XGBClassifier(n_estimators=10, max_depth=3, enable_categorical=True)
    model.fit(X, (X["c"] + worth * 2 > 3).astype(int))
    fewer = X[X["s"] != "a"].copy()
    fewer["s"] = fewer["s"].astype(str).astype("category")
    recourse = Recourse(model, fewer)
    table = recourse.certify(fewer[model.predict(fewer) == 0].head(8)).table
    every = pd.DataFrame([(s, c) for s in "bcd" for c in range(5)], columns=["s", "c"])
    every["s"] = every["s"].astype(fewer["s"].dtype)
    accepted = every[model.predict(every) == 1]
    for name, row in table[table["status"] == "optimal"].iterrows():
        person = fewer.loc[name]
        costs = (accepted["s"] != person["s"]) + (accepted["c"] - person["c"]).abs() / 4
        assert row["cost"] == pytest.approx(costs.min(), rel=1e-5)


def test_an_order_has_no_place_for_a_missing_label() -> None:
    model, X = labelled(["lo", "mid", "hi", None])
    with pytest.raises(BadInput, match=r"categories\.s: got an order"):
        Recourse(model, X, categories={"s": ["lo", "mid", "hi"]})


def test_what_an_imputer_puts_in_is_nobodys_to_set() -> None:
    rng = np.random.default_rng(0)
    s = np.array(["lo", "hi", None] * 30, dtype=object)
    X = pd.DataFrame({"s": s, "c": rng.normal(size=90)})
    y = (X["c"] + np.where(X["s"].isna(), 3, 0) > 1).astype(int)
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="constant", fill_value="absent"), OneHotEncoder()), ["s"]),
        remainder="passthrough",
    )
    model = make_pipeline(columns, LogisticRegression()).fit(X, y)
    answers = Recourse(model, X).certify(X[model.predict(X) == 0].head(6))
    assert not set(answers.changes["after"]) & {"absent", None}


def test_labels_that_read_the_same_stay_apart() -> None:
    """A gap, the text nan and the text missing are three labels; nobody's immutable label changes."""
    model, X = labelled(["missing", "nan", np.nan, "x"])
    people = X[X["s"].isna() & (model.predict(X) == 0)].head(2)
    answers = Recourse(model, X, immutable=["s"]).certify(people)
    assert answers.table["status"].eq("optimal").all() and set(answers.changes["feature"]) == {"c"}
    assert answers.counterfactuals["s"].isna().all()


GAPS = {
    "one-hot": OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    "ordinal": OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-5),
    "target": TargetEncoder(),
    "imputed": make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    ),
}


@pytest.mark.parametrize("held", [[None], [np.nan], [None, np.nan]], ids=str)
@pytest.mark.parametrize("step", GAPS)
def test_none_is_not_nan_where_the_model_tells_them_apart(step: str, held: list[object]) -> None:
    """In a column of objects an encoder knows those that it was fitted on, and an imputer of nan leaves None.

    Each is read as the model takes it, and one that X never holds is refused unless the model imputes it.
    """
    rng = np.random.default_rng(0)
    labels = ["a", "b", *held]
    drawn = np.maximum(0, rng.integers(-1, len(labels), 300))  # most are a, which is imputed
    s = pd.Series([labels[k] for k in drawn], dtype=object)
    X = pd.DataFrame({"s": s, "c": rng.normal(size=300)})
    worth = np.array([0, 2, -2, 1])[drawn]
    columns = make_column_transformer((clone(GAPS[step]), ["s"]), remainder="passthrough")
    model = make_pipeline(columns, DecisionTreeClassifier(max_depth=5))
    model.fit(X, (X["c"] + worth > 0).astype(int))
    recourse = Recourse(model, X)
    gaps = [None] * 40 + [np.nan] * 40
    people = pd.DataFrame({"s": pd.Series(gaps, dtype=object), "c": [*np.linspace(-3, 3, 40)] * 2})
    table = recourse.certify(people).table
    unread = table["status"] == "bad-input"
    known = [None in held, len(held) == 2 or None not in held or step == "imputed"]
    assert [not unread[:40].any(), not unread[40:].any()] == known
    assert [not unread[:40].all(), not unread[40:].all()] == known
    assert table.loc[unread, "message"].str.contains("s: got (?:None|nan); allowed: a label or").all()
    assert (table["cost"].eq(0) == (model.predict(people) == 1))[~unread].all()
    assert not table["status"].eq("limit").any()


@pytest.mark.parametrize("imputes", [False, True])
def test_truth_values_in_a_category_column_are_labels(imputes: bool) -> None:
    """An encoder receives them as 0.0 and 1.0; people have the table's own values."""
    rng = np.random.default_rng(0)
    flag = pd.Series(rng.random(200) < 0.5).astype("category")
    X = pd.DataFrame(
        {"flag": flag.where(rng.random(200) < 0.8) if imputes else flag, "c": rng.normal(size=200)}
    )
    step: object = OneHotEncoder(sparse_output=False)
    step = make_pipeline(SimpleImputer(strategy="most_frequent"), step) if imputes else step
    columns = make_column_transformer((step, ["flag"]), remainder="passthrough")
    model = make_pipeline(columns, DecisionTreeClassifier(max_depth=3))
    model.fit(X, X["c"] + (X["flag"] == True) > 0.5)  # noqa: E712
    people = X[model.predict(X) == 0].head(8)
    recourse = Recourse(model, X)
    answers = recourse.certify(people)
    assert recourse.columns[0].labels == (False, True)
    assert answers.table["status"].eq("optimal").all() and answers.table["confirmed"].all()
    numbers = people.assign(flag=1)
    assert recourse.certify(numbers).table["message"].eq("flag: got 1; allowed: one of False, True").all()


def test_a_none_is_still_none_beside_a_label_that_changes() -> None:
    """Somebody's label changes in a column in which another person's None stays, so that nan is unknown."""
    rng = np.random.default_rng(0)
    s = pd.Series(np.array(["lo", "hi", None], dtype=object)[rng.integers(0, 3, 90)], dtype=object)
    X = pd.DataFrame({"s": s, "c": rng.normal(size=90)})
    encoder = OneHotEncoder(handle_unknown="ignore")
    columns = make_column_transformer((encoder, ["s"]), remainder="passthrough")
    model = make_pipeline(columns, LogisticRegression()).fit(X, X["c"] + 2 * s.isna() + (s == "hi") > 1)
    refused = X[model.predict(X) == 0].sort_values("c")
    people = pd.concat([refused[refused["s"] == "lo"].tail(2), refused[refused["s"].isna()].tail(3)])
    own = [{"actionable": ["s"]}] * 2 + [{"actionable": ["c"]}] * 3
    answers = Recourse(model, X).certify(people, own)
    assert answers.changes["feature"].tolist() == ["s", "s", "c", "c", "c"]
    assert [v is None for v in answers.counterfactuals["s"]] == [False] * 2 + [True] * 3
    assert answers.table["confirmed"].all()


def test_a_value_imputed_that_the_encoder_refuses_is_nobodys() -> None:
    """An imputer of nan leaves None, which the encoder knows; the imputer's value it does not."""
    rng = np.random.default_rng(0)
    s = pd.Series(np.array(["lo", "hi", None], dtype=object)[rng.integers(0, 3, 90)], dtype=object)
    X = pd.DataFrame({"s": s, "c": rng.normal(size=90)})
    imputed = make_pipeline(SimpleImputer(strategy="constant", fill_value="gap"), OneHotEncoder())
    columns = make_column_transformer((imputed, ["s"]), remainder="passthrough")
    model = make_pipeline(columns, LogisticRegression()).fit(X, X["c"] + s.isna() > 0.5)
    people = X[model.predict(X) == 0].head(6).copy()
    people["s"] = pd.Series([np.nan, *people["s"].iloc[1:]], people.index, dtype=object)
    table = Recourse(model, X).certify(people).table
    assert table["status"].tolist() == ["bad-input", *["optimal"] * 5] and table["confirmed"].iloc[1:].all()
    assert table["message"].iloc[0] == "s: got nan; allowed: a label or None, as at the fit"


def test_labels_with_line_breaks_are_saved_whole(tmp_path: Path) -> None:
    model, X = labelled(["x", "y\n0,optimal", "u"])
    people = X[model.predict(X) == 0].head(5).copy()
    people.iloc[1, 1] = np.inf
    Recourse(model, X, immutable=["c"]).certify(people, certificates=True).save(tmp_path / "out")
    said = subprocess.run(
        [
            sys.executable,
            "-m",
            "milp_recourse",
            "verify",
            tmp_path / "out",
            tmp_path / "out" / "population.json",
        ],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stdout + said.stderr
    with pytest.raises(BadInput, match="folder: got"):
        Recourse(model, X).certify(people).save(tmp_path / "out")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "Int64", "boolean", "float32"])
def test_values_that_a_columns_dtype_cannot_hold_widen_it(dtype: str) -> None:
    flag = dtype == "boolean"
    a = pd.array([True, False] * 20, dtype=dtype) if flag else np.arange(40).astype(dtype.lower())
    X = pd.DataFrame({"a": pd.Series(a).astype(dtype), "b": 0.5})
    y = (X["a"] if flag else X["a"] > 30).astype(int)
    bounds = {} if flag else {"a": (0, 400)}
    model = DecisionTreeClassifier().fit(X, y)
    people = X[model.predict(X) == 0].head(3)
    answers = Recourse(model, X, bounds=bounds, immutable=["b"]).certify(people)
    assert answers.table["status"].eq("optimal").all() and answers.table["confirmed"].all()
    assert (model.predict(answers.counterfactuals) == 1).all()
