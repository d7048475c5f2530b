"""``steps`` and ``values`` of the table door."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.neural_network import MLPClassifier

from milp_recourse import Recourse
from milp_recourse.errors import BadInput
from tests.helpers.frame_tables import fitted

FOREST = RandomForestClassifier(10, max_depth=4, random_state=0)
NETWORK = MLPClassifier((6,), max_iter=3000, random_state=0)
STEPS: dict[Any, Any] = {"income": {"step": 250, "from": 100}}
VALUES: dict[Any, Any] = {"age": [25, 40, 55, 65], "purpose": ["house", "school"]}


@pytest.mark.parametrize("model", [None, FOREST, NETWORK], ids=["linear", "forest", "network"])
def test_the_cheapest_of_all_actions(model: Any) -> None:
    """The answer is on the steps, confirmed, and as cheap as the cheapest of all rows that can be set."""
    pipeline, X = fitted(model)
    people = X[pipeline.predict(X) == 0].head(3)
    recourse = Recourse(pipeline, X, steps=STEPS, values=VALUES, immutable=["owns"])
    answers = recourse.certify(people, time_limit=60.0)
    low, high = X["income"].min(), X["income"].max()
    incomes = np.arange(100 + 250 * np.ceil((low - 100) / 250), high + 1e-9, 250)
    for label, person in people.iterrows():
        axes = [
            [person["age"], *VALUES["age"]],
            [person["income"], *incomes],
            [person["purpose"], *VALUES["purpose"]],
        ]
        grid = pd.MultiIndex.from_product(axes, names=["age", "income", "purpose"]).to_frame(index=False)
        grid["owns"] = person["owns"]
        cost = abs(grid["age"] - person["age"]) / np.ptp(X["age"])
        cost += abs(grid["income"] - person["income"]) / np.ptp(X["income"]) + (
            grid["purpose"] != person["purpose"]
        )
        best = cost[pipeline.predict(grid[X.columns]) == 1].min()
        row = answers.table.loc[label]
        assert row["status"] == "optimal"
        assert row["confirmed"]
        assert row["cost"] == pytest.approx(best, rel=2e-6)


def test_what_the_recourse_shows() -> None:
    """The table of features names steps and listed values; bounds are those of the list."""
    pipeline, X = fitted()
    recourse = Recourse(pipeline, X, steps=STEPS, values=VALUES)
    text = str(recourse)
    assert "in steps of 250" in text
    assert "25, 40, 55, 65" in text
    [age] = [f for f in json.loads(recourse.to_json())["features"] if f["name"] == "age"]
    assert (age["values"], age["bounds"]) == ([25, 40, 55, 65], [25.0, 65.0])


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "unknown column": ({"steps": {"wage": 5}}, "a column of X"),
    "no number": ({"steps": {"income": "ten"}}, "steps.income: got 'ten'; allowed: a number above 0"),
    "negative": ({"steps": {"income": -1}}, "steps.income"),
    "wrong key": ({"steps": {"income": {"step": 1, "start": 0}}}, "steps.income"),
    "labels": ({"steps": {"purpose": 1}}, "steps.purpose"),
    "fraction of whole": ({"steps": {"age": 0.5}}, "steps.age"),
    "both": ({"steps": {"age": 5}, "values": {"age": [30]}}, "values.age: got [30]; allowed: nothing beside"),
    "no list": ({"values": {"purpose": "house"}}, "values.purpose: got 'house'; allowed: a list"),
    "unknown label": ({"values": {"purpose": ["yacht"]}}, "values.purpose: got 'yacht'; allowed: labels"),
    "text": ({"values": {"age": ["old"]}}, "values.age: got 'old'; allowed: numbers"),
    "empty": ({"values": {"age": []}}, "values.age"),
}


@pytest.mark.parametrize(("arguments", "words"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes(arguments: dict[str, Any], words: str) -> None:
    """One line that names the argument."""
    pipeline, X = fitted()
    with pytest.raises(BadInput) as raised:
        Recourse(pipeline, X, **arguments)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("step", [1.0, 0.5], ids=["whole", "halves"])
def test_a_split_of_missing_from_all_numbers_is_certified(step: float) -> None:
    """Its threshold is the largest double, which no step is above."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 5, (400, 2)) * step, columns=["a", "b"])
    missing = rng.random(X.shape) < 0.3
    y = (X["b"] > 2 * step) & ~missing[:, 0]
    model = HistGradientBoostingClassifier(max_iter=5).fit(X.mask(missing), y)
    thresholds = np.concatenate([tree.nodes["num_threshold"] for [tree] in model._predictors])
    assert np.inf in thresholds
    people = X[~model.predict(X)].head(3)
    answers = Recourse(model, X, desired=True, steps={"a": step}).certify(people, certificates=True)
    assert set(answers.table["status"]) == {"optimal"}
    assert str(answers.verify()).startswith("VERIFIED 3 of 3")
