"""Categories that a model takes itself are those of its fit, whatever order or type X has them in."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from milp_recourse.errors import Unsupported
from milp_recourse.readers import read_model
from tests.helpers.pipelines import decide, encode

lightgbm = pytest.importorskip("lightgbm", reason="its native categories")
xgboost = pytest.importorskip("xgboost", reason="its native categories")

LIBRARIES = ("xgboost", "lightgbm", "histogram", "listed histogram")


def table(rng: np.random.Generator, letters: str = "abcdef") -> pd.DataFrame:
    """Labels as text and as whole numbers, in a random order of categories, some missing; and a number."""
    n = 240
    text = pd.Series(rng.choice(list(letters), n)).mask(rng.random(n) < 0.1)
    whole = pd.Series(rng.choice([10, 2, 7, 33], n))
    return pd.DataFrame(
        {
            "c": rng.normal(size=n),
            "s": pd.Categorical(text, categories=list(rng.permutation(list(letters)))),
            "k": pd.Categorical(whole, categories=rng.permutation([10, 2, 7, 33]).tolist()),
        }
    )


def fitted(library: str, X: pd.DataFrame, seed: int) -> Any:
    """A model on the table's own categories; what it learns depends on the labels."""
    rng = np.random.default_rng(seed)
    worth = dict(zip([*"abcdefgé", np.nan], rng.normal(size=9) * 2, strict=True))
    score = X["s"].astype(object).map(worth) + X["k"].astype(int) % 5 / 2 + X["c"]
    y = (score > 1).astype(int) + (score > 2.5) * (seed % 3 == 0)  # every third model has three classes
    y[:3] = 0, 1, 2 if seed % 3 == 0 else 1
    model: Any
    if library == "xgboost":
        model = xgboost.XGBClassifier(
            n_estimators=8, max_depth=4, enable_categorical=True, max_cat_to_onehot=seed % 3 + 1, n_jobs=1
        )
    elif library == "lightgbm":
        model = lightgbm.LGBMClassifier(
            n_estimators=8, min_child_samples=2, min_data_per_group=2, cat_smooth=1, verbose=-1, n_jobs=1
        )
    else:
        said: Any = ["k", "s"] if library == "listed histogram" else "from_dtype"
        model = HistGradientBoostingClassifier(
            max_iter=8, max_depth=4, min_samples_leaf=2, categorical_features=said
        )
    return model.fit(X, y)


def otherwise(X: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """The table with other orders of categories, labels lost, labels unknown, or another type."""
    Z = X.iloc[rng.permutation(len(X))].reset_index(drop=True)
    for name in ("s", "k"):
        labels = list(Z[name].cat.categories)
        strange = "z" if name == "s" else 99
        match rng.integers(6):
            case 0:
                shuffled = list(rng.permutation(np.array(labels, dtype=object)))
                Z[name] = Z[name].cat.reorder_categories(shuffled)
            case 1:
                kept = [label for label in labels if label != labels[0]]
                Z = Z[Z[name] != labels[0]].reset_index(drop=True)
                Z[name] = Z[name].cat.set_categories(kept[::-1])
            case 2:
                Z[name] = Z[name].cat.set_categories([strange, *labels])
                if rng.random() < 0.5:
                    Z.loc[rng.random(len(Z)) < 0.1, name] = strange
            case 3:
                Z[name] = Z[name].astype(object)
            case 4:
                Z[name] = Z[name].astype(str if name == "s" else float).astype("category")
            case _:
                Z.loc[rng.random(len(Z)) < 0.2, name] = np.nan
    return Z


def compare(library: str, seed: int) -> str:
    """Read a model with another table than its fit's: its decisions on it, or a refusal in one line."""
    rng = np.random.default_rng(seed)
    X = table(rng)
    with threadpool_limits(1):
        model = fitted(library, X, seed)
        Z = otherwise(X, rng)
        try:
            said = model.predict(Z)
        except Exception:
            said = None
        try:
            reading = read_model(model, Z, 1)
        except Unsupported as error:
            assert "\n" not in str(error) and "allowed:" in str(error)
            return "both refuse" if said is None else f"refused: {error}"
        if said is None:  # as a column of numbers, say; then there is nothing to compare with
            return "read though predict fails"
    yes, sure = decide(reading, encode(reading, Z))
    assert sure.all() and (yes == (said == 1)).all(), f"{library} {seed}: {(yes != (said == 1)).mean()}"
    return "agree"


@pytest.mark.parametrize("library", LIBRARIES)
def test_another_order_is_read_as_predict_takes_it(library: str) -> None:
    counts = Counter(compare(library, seed) for seed in range(8))
    assert set(counts) <= {"agree", "both refuse"}, counts
    assert counts["agree"] >= 2, counts


def test_xgboost_with_labels_beyond_ascii() -> None:
    """XGBoost 3.2 cuts their text by characters: in another order its predict is wrong, X refused."""
    X = table(np.random.default_rng(0), "abé")
    model = fitted("xgboost", X, 1)
    other = X.assign(s=X["s"].cat.reorder_categories(list(X["s"].cat.categories)[::-1]))
    for frame in (X, other):
        if (model.predict(frame) == model.predict(X)).all():
            yes, _ = decide(reading := read_model(model, frame), encode(reading, frame))
            assert (yes == (model.predict(X) == 1)).all()
        else:
            with pytest.raises(Unsupported, match="labels beyond ASCII in another order"):
                read_model(model, frame)
    assert (model.predict(X) == 1).any()
    assert (model.predict(X) == 0).any()


def test_categories_behind_a_transformer_are_refused() -> None:
    """Nothing says what reaches the model there: neither its own categories nor sets of scaled numbers."""
    X = table(np.random.default_rng(0))
    y = (X["c"] > 0).astype(int)
    scaler = StandardScaler().fit(X[["c"]])
    with pytest.raises(Unsupported, match="behind a transformer"):
        read_model(make_pipeline(scaler, fitted("lightgbm", X, 1)), X[["c"]])
    numbers = X[["c"]].assign(k=X["k"].astype(int))
    scaled = StandardScaler().fit(numbers)
    y = (numbers["k"] % 5 == 2).astype(int)
    final = lightgbm.LGBMClassifier(n_estimators=4, min_data_per_group=2, cat_smooth=1, verbose=-1, n_jobs=1)
    final.fit(scaled.transform(numbers).round(1) + 2, y, categorical_feature=[1])
    with pytest.raises(Unsupported, match="sets of its numbers"):
        read_model(make_pipeline(scaled, final), numbers)
