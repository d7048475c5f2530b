"""Functions of single columns before trees: read through their own transform, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn")  # an optional extra

from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)

from milp_recourse import Recourse
from milp_recourse.errors import RecourseError
from milp_recourse.readers import read_model
from tests.helpers.pipelines import at_thresholds, decide, encode

RNG = np.random.default_rng(13)
X = pd.DataFrame({"spend": RNG.gamma(2, 40, 400).round() + 1, "people": RNG.gamma(2, 900, 400).round() + 1})
X["month"] = RNG.integers(1, 13, 400)
SCORE = np.log(X["spend"]) + np.log(X["people"]) / 2 + (X["month"] > 10) / 2 + RNG.normal(0, 0.3, 400)
Y = (SCORE.median() < SCORE).astype(int)

STEPS: dict[str, Any] = {
    "log1p": FunctionTransformer(np.log1p),
    "a function of one's own": FunctionTransformer(lambda z: 2 * np.log(z + 1) - 1),
    "square root": FunctionTransformer(np.sqrt),
    "Yeo and Johnson": PowerTransformer(),
    "Box and Cox": PowerTransformer("box-cox", standardize=False),
    "quantiles": QuantileTransformer(n_quantiles=50),
    "bins": KBinsDiscretizer(5, encode="ordinal", quantile_method="averaged_inverted_cdf"),
    "two bins": Binarizer(threshold=100.0),
    # not np.cbrt, which falls between some doubles on some processors
    "after a scaler": make_pipeline(StandardScaler(), FunctionTransformer(lambda z: z * z * z)),
    "before an imputer": make_pipeline(FunctionTransformer(np.log1p), SimpleImputer()),
}
TREES: tuple[Any, ...] = (
    GradientBoostingClassifier(n_estimators=10),
    HistGradientBoostingClassifier(max_iter=10),
    RandomForestClassifier(8, max_depth=5, random_state=0),
)


def fitted(step: Any, model: Any) -> Any:
    """The model behind the step on two of three columns."""
    table = make_column_transformer((step, ["spend", "people"]), remainder="passthrough")
    return make_pipeline(table, model).fit(X, Y)


@pytest.mark.parametrize(
    ("name", "trees"), [(n, k) for j, n in enumerate(STEPS) for k in (j % 3, (j + 1) % 3)]
)
def test_rows_are_decided_as_predict_decides_them(name: str, trees: int) -> None:
    """On thresholds and one double beside, too, wherever the function has a value."""
    model = fitted(STEPS[name], TREES[trees])
    reading, rng = read_model(model, X), np.random.default_rng(trees)
    rows = at_thresholds(reading, X.astype(float).sample(400, replace=True, random_state=trees), rng)
    for column in reading.columns:
        if column.within is not None:
            rows = rows[rows[column.name].between(*column.within)]
    yes, sure = decide(reading, encode(reading, rows))
    assert (yes == (model.predict(rows) == 1))[sure].all() and sure.sum() > 300


def test_the_least_change_is_the_one_that_trying_all_finds() -> None:
    """The amounts of one lever."""
    model = fitted(STEPS["log1p"], TREES[0])
    people = X[model.predict(X) == 0].head(12)
    answers = Recourse(model, X, increase=["spend"], immutable=["people", "month"]).certify(
        people, certificates=True
    )
    width = X["spend"].max() - X["spend"].min()
    for i, person in people.iterrows():
        tried = np.arange(person["spend"], X["spend"].max() + 1)
        rows = pd.DataFrame([person] * len(tried)).assign(spend=tried)
        good = tried[model.predict(rows) == 1]
        found = answers.table.loc[i]
        assert found["status"] == ("optimal" if len(good) else "infeasible")
        if len(good):
            assert found["cost"] == pytest.approx((good[0] - person["spend"]) / width, abs=1e-9)
    assert answers.verify().startswith(f"VERIFIED {len(people)} of {len(people)}")


def test_a_number_that_the_function_has_no_value_of_is_bad_input() -> None:
    """The others are answered, and no action goes there."""
    model = fitted(STEPS["square root"], TREES[2])
    people = X[model.predict(X) == 0].head(3).astype(float)
    people.iloc[1, 0] = -4.0
    table = Recourse(model, X).certify(people).table
    assert table["status"].tolist() == ["optimal", "bad-input", "optimal"]
    assert "spend: got -4" in table["message"].iloc[1] and "has a value" in table["message"].iloc[1]


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "falls": (FunctionTransformer(lambda z: -z), TREES[0], "a function that falls"),
    "waves": (FunctionTransformer(np.sin), TREES[0], "a function that falls"),
    "no value": (
        FunctionTransformer(lambda z: np.log(z - 50)),
        TREES[1],
        "no finite number for a number of X",
    ),
    "several columns": (
        FunctionTransformer(lambda z: z + 0 * z + np.asarray(z).sum(axis=1, keepdims=True)),
        TREES[0],
        "computed otherwise",
    ),
    "gaps filled": (FunctionTransformer(np.nan_to_num), TREES[1], "a number made of a missing one"),
    "more columns": (
        FunctionTransformer(lambda z: np.hstack([z, z])),
        TREES[0],
        "made of 2; allowed: one of",
    ),
}


@pytest.mark.filterwarnings("ignore")  # of the fits
@pytest.mark.parametrize("name", REFUSED)
def test_other_functions_are_refused_in_one_line(name: str) -> None:
    step, model, words = REFUSED[name]
    with pytest.raises(RecourseError) as caught:
        read_model(fitted(step, model), X)
    assert words in str(caught.value) and "; allowed: " in str(caught.value) and "\n" not in str(caught.value)
