"""Certificates of people whose whole numbers are missing: imputers put a mean there, which is not whole."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn")  # an optional extra: without it there is no model to read

from sklearn.impute import SimpleImputer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from milp_recourse import Recourse


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("cost", ["l1", "l2-squared"])
@pytest.mark.parametrize("seed", range(2))
def test_certificates_of_imputed_whole_numbers_verify(seed: int, cost: str) -> None:
    """What is cut off a box has to cost the target at any number, as the checker has it: half of these were
    closed because whole numbers alone cost it, and were rejected."""
    rng = np.random.default_rng(seed)
    highest = {"age": 80, "loans": 6, "income": 90}
    X = pd.DataFrame({name: rng.integers(0, high, 300).astype(float) for name, high in highest.items()})
    worth = X["income"] / 30 + X["age"] / 40 - X["loans"] / 3 + rng.normal(size=300) * 0.3
    X = X.mask(rng.random(X.shape) < 0.15)
    network = MLPClassifier((9,), max_iter=60, random_state=0)
    model = make_pipeline(SimpleImputer(strategy="mean"), StandardScaler(), network).fit(X, worth > 2.2)
    people = X[~model.predict(X) & X.isna().any(axis=1)].head(8)
    answers = Recourse(model, X, desired=True, cost=cost).certify(people, certificates=True)
    assert answers.table["status"].eq("optimal").all()
    assert answers.verify().splitlines()[-1].startswith("VERIFIED 8 of 8 certificates")


@pytest.mark.parametrize("immutable", [[], ["y"]])
def test_a_boundary_that_an_imputed_number_reaches(immutable: list[str]) -> None:
    """Where a value is 2.4, "not (a + y >= 7)" allows 6.4: it was read as "a + y <= 6", also by the checker.
    And the least widening of a domain is to 2.4, which was looked for among whole numbers."""
    X = pd.DataFrame({"a": [0.0, 1, 2, 3, 4, 5, 6, 7] * 8, "y": [0.0, 1, 2, 3] * 16})
    X.loc[::3, "y"] = np.nan
    fill = SimpleImputer(strategy="constant", fill_value=2.4)
    model = make_pipeline(fill, DecisionTreeClassifier()).fit(X, X["a"] >= 4)
    person, whole = pd.DataFrame({"a": [0.0], "y": [np.nan]}), {"a": "integer", "y": "integer"}
    said = ["not (a + y >= 7)", "not (a * y >= 10)"]
    answers = Recourse(model, X, kinds=whole, immutable=immutable, conditions=said).certify(
        person, certificates=True
    )
    assert dict(answers.results[0].action or {}) == {"a": 4}
    assert answers.verify().startswith("VERIFIED 1 of 1")
    far = Recourse(model, X, kinds=whole, immutable=["y"], domain={"y": (3.0, 5.0)}).certify(person)
    [widened] = far.why(0)["smallest"]
    assert (widened["id"], widened["to"]) == ("domain:y", 2.4)
