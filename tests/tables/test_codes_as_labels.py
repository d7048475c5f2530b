"""Columns of numbers that are codes: declared as labels, a change costs 1 whatever the code."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from milp_recourse import Recourse
from milp_recourse.errors import BadInput

MODELS = {
    "forest": RandomForestClassifier(12, max_depth=5, random_state=0),
    "scaled": make_pipeline(StandardScaler(), LogisticRegression()),
}


def fitted(name):
    """A table with codes of a region as int8, and of a grade; the model sees numbers."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(
        {
            "income": rng.integers(1, 10, 300),
            "region": rng.choice([0, 2, 3, 7], 300).astype(np.int8),
            "grade": rng.choice([1.0, 2.0, 4.0], 300),
        }
    )
    y = X["income"] + 3 * (X["region"] == 2) - X["grade"] + rng.normal(0, 1, 300) > 5
    return MODELS[name].fit(X, y), X


@pytest.mark.parametrize("name", MODELS)
def test_codes_are_labels(name):
    """Against every row that an action can make, with certificates."""
    model, X = fitted(name)
    recourse = Recourse(model, X, kinds={"region": "categorical"}, categories={"grade": [4.0, 2.0, 1.0]})
    assert list(recourse.features["kind"]) == ["integer", "categorical", "ordinal"]
    people = X[~model.predict(X)].head(12)
    answers = recourse.certify(people, certificates=True)
    assert answers.verify().startswith("VERIFIED") and answers.table["confirmed"].all()
    assert answers.counterfactuals.dtypes.equals(X.dtypes)
    codes, grades, width = sorted(X["region"].unique()), [4.0, 2.0, 1.0], np.ptp(X["income"])
    rows = pd.DataFrame(list(product(range(1, 10), codes, grades)), columns=list(X)).astype(X.dtypes)
    accepted = rows[model.predict(rows)]
    for person, found in zip(people.itertuples(), answers.table.itertuples(), strict=True):
        far = abs(accepted["grade"].map(grades.index) - grades.index(person.grade)) / 2
        cost = abs(accepted["income"] - person.income) / width + (accepted["region"] != person.region) + far
        assert found.cost == pytest.approx(cost.min(), rel=1e-6)


def test_what_has_no_code_is_refused():
    """In X, and of a person."""
    model, X = fitted("scaled")
    recourse = Recourse(model, X, kinds={"region": "categorical"})
    stranger = X.head(1).assign(region=5)
    assert recourse.certify(stranger).table["status"].tolist() == ["bad-input"]
    gaps = X.astype({"region": float})
    gaps.loc[3, "region"] = np.nan
    with pytest.raises(BadInput, match=r"kinds\.region: got labels; allowed: a number"):
        Recourse(model, gaps, kinds={"region": "categorical"})
