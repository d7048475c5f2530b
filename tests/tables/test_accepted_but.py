"""People whom the model accepts as they are, but whose values break a domain or a condition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from milp_recourse import Recourse

RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.integers(0, 9, 300), "b": RNG.integers(0, 9, 300)})
Y = (X["a"] + X["b"] > 8).astype(int)
MODELS = {"linear": LogisticRegression(C=100).fit(X, Y), "tree": DecisionTreeClassifier().fit(X, Y)}
PERSON = pd.DataFrame({"a": [8], "b": [8]})

BROKEN: dict[str, tuple[dict[str, Any], float, str]] = {
    "change": ({"conditions": ["b change at most -1"]}, 0.125, "condition 0 does not hold"),
    "value": ({"conditions": ["a <= 5"]}, 0.375, "condition 0 does not hold: a <= 5"),
    "domain": ({"domain": {"a": (0, 6)}}, 0.25, "'a' leaves its domain"),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("broken", BROKEN)
def test_the_cheapest_action_after_which_all_holds(broken: str, model: str) -> None:
    """They are an ordinary problem: the model accepts the row before and after, and the message says so."""
    arguments, cost, words = BROKEN[broken]
    answers = Recourse(MODELS[model], X, **arguments).certify(PERSON, certificates=True)
    [row] = answers.table.itertuples()
    assert (row.status, row.confirmed) == ("optimal", True) and row.cost == pytest.approx(cost)
    assert row.message.startswith("The model accepts this person as they are, but ") and words in row.message
    assert answers.verify().startswith("VERIFIED 1 of 1")


@pytest.mark.parametrize("model", MODELS)
def test_nothing_that_meets_the_condition_is_accepted(model: str) -> None:
    """Proven, and no sign of a model that was not read rightly."""
    answers = Recourse(MODELS[model], X, conditions=["a + b <= 4"]).certify(PERSON)
    [row] = answers.table.itertuples()
    assert row.status == "infeasible" and row.confirmed is pd.NA
    assert "accepts this person as they are, but condition 0 does not hold" in row.message


@pytest.mark.parametrize("model", MODELS)
def test_a_wrong_predict_is_still_found_out(model: str) -> None:
    """What was read refuses the person, predict accepts them: nothing is proven, also beside a condition."""
    person = pd.DataFrame({"a": [1], "b": [1]})

    def predict(rows: pd.DataFrame) -> Any:
        own = MODELS[model].predict(rows)
        own[(rows["a"] == 1) & (rows["b"] == 1)] = 1
        return own

    table = X[(X["a"] != 1) | (X["b"] != 1)]
    for conditions in ([], ["a change at least 1"]):
        recourse = Recourse(MODELS[model], table, conditions=conditions, predict=predict)
        [row] = recourse.certify(person).table.itertuples()
        assert (row.status, row.lower_bound) == ("limit", 0.0)
        assert "the model was not read rightly" in row.message
