"""People whose labels come in other types than X has them, for models that take categories themselves."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from milp_recourse import Recourse

LABELS = ["rent", "own", "free", "squat"]


@cache
def fitted(library: str) -> tuple[Any, pd.DataFrame]:
    """A model on a category column, a number and a truth value."""
    rng = np.random.default_rng(0)
    n = 300
    X = pd.DataFrame(
        {
            "home": pd.Categorical(rng.choice(LABELS, n), categories=LABELS),
            "years": rng.integers(0, 9, n),
            "owns": rng.random(n) < 0.5,
        }
    )
    worth = X["home"].astype(str).map({"rent": -1, "own": 2, "free": 0, "squat": -3})
    y = (worth + X["years"] / 3 + X["owns"] > 2).astype(int)
    if library == "histogram":
        return HistGradientBoostingClassifier(max_iter=10, max_depth=3).fit(X, y), X
    if library == "lightgbm":
        lightgbm = pytest.importorskip("lightgbm", reason="its native categories")
        model = lightgbm.LGBMClassifier(n_estimators=10, min_data_per_group=2, cat_smooth=1, verbose=-1)
        return model.fit(X, y), X
    xgboost = pytest.importorskip("xgboost", reason="its native categories")
    return xgboost.XGBClassifier(n_estimators=10, max_depth=3, enable_categorical=True).fit(X, y), X


@pytest.mark.parametrize("library", ["histogram", "xgboost", "lightgbm"])
@pytest.mark.parametrize("how", ["text", "objects", "their own categories", "one row", "X in another order"])
def test_people_in_other_types_get_the_same_answers(library: str, how: str) -> None:
    """Also beside a person with a label that nobody knows, who alone cannot be read."""
    model, X = fitted(library)
    people = X[model.predict(X) == 0].head(4)
    expected = Recourse(model, X, cost="l0").certify(people).table["cost"].tolist()
    if how == "text":
        people = people.astype({"home": str})
    elif how == "objects":
        people = people.astype(object)
    elif how == "one row":
        people, expected = people.iloc[0], expected[:1]
    elif how == "their own categories":
        people = people.assign(home=people["home"].cat.set_categories(["yurt", *LABELS[::-1]]))
        people.loc["stranger"] = "yurt", 3, True
        people["home"] = people["home"].astype("category")
        expected = [*expected, np.nan]
    else:
        X = X.assign(home=X["home"].cat.set_categories(LABELS[::-1]))
    table = Recourse(model, X, cost="l0").certify(people).table
    np.testing.assert_array_equal(table["cost"].to_numpy(), np.array(expected))
    known = table["status"] != "bad-input"
    assert table["status"][known].eq("optimal").all() and table["confirmed"][known].all()
    assert (~known).sum() == (how == "their own categories")


def test_a_long_complaint_of_the_model_is_cut_to_its_first_line() -> None:
    from milp_recourse.errors import BadInput

    model, X = fitted("histogram")

    def complaint(rows: pd.DataFrame) -> list[int]:
        raise RuntimeError("no such category\nStack trace:\n  [bt] (0) libxgboost.so")

    with pytest.raises(BadInput) as caught:
        Recourse(model, X, predict=complaint).certify(X.head(2))
    assert "no such category" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("library", ["histogram", "xgboost", "lightgbm"])
def test_categories_of_the_model_may_be_given_an_order(library: str) -> None:
    """It knows missing as a label too; whoever has a gap then has no place in the order."""
    model, X = fitted(library)
    people = X[model.predict(X) == 0].head(3).copy()
    people.iloc[1, 0] = np.nan
    answers = Recourse(model, X, categories={"home": LABELS[::-1]}).certify(people)
    assert answers.table["status"].tolist() == ["optimal", "bad-input", "optimal"]
    assert answers.table["confirmed"].dropna().all()


@pytest.mark.parametrize("library", ["histogram", "xgboost"])
def test_a_gap_among_truth_values_and_a_strange_label_stay_as_they_came(library: str) -> None:
    """The model's rule for a missing value is asked with the gap, not with False in its place."""
    model, X = fitted(library)
    people = X[(model.predict(X) == 0) & X["owns"]].head(3).astype(object)
    people.iloc[1, 2] = None
    people.iloc[2, 0] = "yurt"
    answers = Recourse(model, X, cost="l0").certify(people)
    assert answers.table["status"].tolist() == ["optimal", "optimal", "bad-input"]
    assert answers.table["confirmed"].head(2).all()
    assert answers.counterfactuals["home"].iloc[2] == "yurt"


@pytest.mark.parametrize("held", ["str", object])
def test_pandas_na_reaches_the_model_as_nan(held: Any) -> None:
    """Texts and numbers in pandas' own nullable types are what X's types make of them."""
    rng = np.random.default_rng(0)
    home = pd.Series(np.array(["rent", "own", np.nan], dtype=object)[rng.integers(0, 3, 200)], dtype=held)
    X = pd.DataFrame({"home": home, "years": rng.normal(size=200), "rooms": rng.integers(0, 9, 200)})
    X["years"] = X["years"].where(rng.random(200) < 0.8)
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["home"]),
        (SimpleImputer(), ["years"]),
        remainder="passthrough",
    )
    model = make_pipeline(columns, LogisticRegression())
    model.fit(X, X["years"].fillna(0) + 2 * X["home"].isna() + X["rooms"] / 5 > 1.5)
    recourse = Recourse(model, X)
    people = X[model.predict(X) == 0].head(30)
    expected = recourse.certify(people).table
    people = people.astype({"home": "string", "years": "Float64", "rooms": "Int64"})
    assert people["home"].isna().any() and people["years"].isna().any()
    table = recourse.certify(people).table
    assert table["status"].eq("optimal").all() and table["confirmed"].all()
    assert table["cost"].tolist() == expected["cost"].tolist()
