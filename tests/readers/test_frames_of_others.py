"""Tables of polars and arrow, columns of two levels, rows as dicts, labels that an encoder ignores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn")  # an optional extra
polars = pytest.importorskip("polars")  # an optional extra
pytest.importorskip("pyarrow")  # an optional extra

from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from milp_recourse import Recourse

RNG = np.random.default_rng(21)
N = 200
X = pd.DataFrame(
    {
        "age": RNG.integers(18, 70, N),
        "income": RNG.gamma(3, 900, N).round(1),
        "town": RNG.choice(["a", "b", "c"], N),
    }
)
Y = (X["income"] / 1500 + (X["town"] == "b") * 0.5 + RNG.normal(0, 0.3, N) > 2).to_numpy().astype(int)


def model_of(table: Any, last: Any, encoder: Any = None) -> Any:
    front = make_column_transformer(
        (StandardScaler(), ["age", "income"]), (encoder or OneHotEncoder(handle_unknown="ignore"), ["town"])
    )
    return make_pipeline(front, last).fit(table, Y)


def costs(model: Any, table: Any, people: Any) -> list[float]:
    answers = Recourse(model, table, immutable=["age"]).certify(people)
    assert set(answers.table["status"]) == {"optimal"}
    return answers.table["cost"].round(9).tolist()


def test_tables_of_polars_are_read_as_those_of_pandas() -> None:
    """Also as people, beside a table of pandas, and before a function that wants them."""
    table, model = polars.from_pandas(X), model_of(X, LogisticRegression())
    refused = np.flatnonzero(model.predict(X) == 0)[:4]
    known = costs(model, X, X.iloc[refused])
    fitted = model_of(table, LogisticRegression())
    assert costs(fitted, table, table[refused.tolist()]) == known
    assert costs(model, X, table[refused.tolist()]) == known

    def rule(rows: Any) -> Any:
        return (rows["income"] >= 2000).cast(polars.Int8).to_numpy()

    asked = Recourse(rule, table, steps={"income": 100}).certify(table[refused.tolist()])
    assert (asked.counterfactuals["income"] >= 2000).all()


def test_a_row_can_be_a_dict() -> None:
    model = model_of(X, LogisticRegression())
    person = X[model.predict(X) == 0].head(1)
    assert costs(model, X, dict(person.iloc[0])) == costs(model, X, person)


def test_doubles_of_arrow_stay_doubles_of_arrow() -> None:
    table = X.convert_dtypes(dtype_backend="pyarrow")
    model = model_of(table, RandomForestClassifier(10, max_depth=4, random_state=0))
    answers = Recourse(model, table).certify(table[model.predict(table) == 0].head(5))
    assert (answers.counterfactuals.dtypes == table.dtypes).all()
    assert (model.predict(answers.counterfactuals) == 1).all()


def test_xgboost_on_columns_of_two_levels() -> None:
    """It calls a column by both levels."""
    xgboost = pytest.importorskip("xgboost")  # an optional extra
    table = X[["age", "income"]].set_axis(pd.MultiIndex.from_tuples([("p", "age"), ("m", "income")]), axis=1)
    model = xgboost.XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1).fit(table, Y)
    answers = Recourse(model, table).certify(table[model.predict(table) == 0].head(3))
    assert (model.predict(answers.counterfactuals) == 1).all()


ENCODERS = {
    "one-hot": OneHotEncoder(handle_unknown="ignore"),
    "ordinal": OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
}


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("last", [LogisticRegression(), RandomForestClassifier(8, random_state=0)])
def test_a_label_that_the_encoder_ignores(encoder: str, last: Any) -> None:
    """Where nobody acts on the column; elsewhere the person is told which labels there are."""
    model = model_of(X, last, ENCODERS[encoder])
    people = X.assign(town="elsewhere")
    people = people[model.predict(people) == 0].head(4)
    answers = Recourse(model, X, immutable=["town"]).certify(people)
    assert set(answers.table["status"]) == {"optimal"}
    assert (answers.counterfactuals["town"] == "elsewhere").all()
    assert (model.predict(answers.counterfactuals) == 1).all()
    assert (Recourse(model, X).certify(people).table["status"] == "bad-input").all()
