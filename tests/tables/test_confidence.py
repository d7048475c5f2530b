"""Acceptance by probability (``confidence``), and margins of trees."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.naive_bayes import BernoulliNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from milp_recourse import Recourse
from milp_recourse.errors import RecourseError

RNG = np.random.default_rng(11)
X = pd.DataFrame(RNG.normal([40, 3, 10], [10, 1, 4], (500, 3)).round(2), columns=["income", "debt", "years"])
SCORE = X["income"] / 10 - X["debt"] + X["years"] / 5 + RNG.normal(0, 0.7, 500)
TWO, THREE = (SCORE > 3).astype(int), np.digitize(SCORE, [2.5, 4])
FOREST = RandomForestClassifier(12, max_depth=5, random_state=0)


def recourse(model: Any, y: Any, **more: Any) -> tuple[Recourse, pd.DataFrame, Any]:
    """Recourse of a model that is fitted here, and people who are refused."""
    model.fit(X, y)
    made = Recourse(model, X, **({"desired": 2} if y is THREE else {}), immutable=["years"], **more)
    return made, X[model.predict(X) == 0].head(4), model


def test_a_softmax_of_three_classes_is_certified() -> None:
    """The log odds are those of a network, whose proofs the checker takes; the summary says how nearly."""
    model = make_pipeline(StandardScaler(), LogisticRegression())
    made, people, model = recourse(model, THREE, confidence=0.9)
    answers = made.certify(people, certificates=True)
    reached = model.predict_proba(answers.counterfactuals[X.columns])[:, 2]
    assert answers.table["status"].eq("optimal").all() and answers.table["confirmed"].all()
    assert (reached >= 0.9).all() and (reached < 0.9 + 1e-6).all()
    assert answers.verify().startswith("VERIFIED 4 of 4 certificates (4 optimal)")
    words = "confidence: accepted means a probability of at least 0.9, with log odds up to 2e-06 above that"
    assert words in answers.summary()
    assert json.loads(made.to_json())["confidence"] == 0.9


def test_a_confidence_below_the_models_own_threshold_changes_nothing() -> None:
    """The wanted class is predicted, too: by 1/2, or by a wrapper's threshold."""
    for model in (LogisticRegression(max_iter=1000), FOREST, DecisionTreeClassifier(max_depth=4)):
        made, people, _ = recourse(model, TWO)
        plain = made.certify(people).table["cost"]
        low = recourse(model, TWO, confidence=0.3)[0].certify(people).table["cost"]
        pd.testing.assert_series_equal(low, plain, rtol=1e-9)
    wrapped = FixedThresholdClassifier(FrozenEstimator(FOREST.fit(X, TWO)), threshold=0.8)
    reached = []
    for confidence in (None, 0.6, 0.9):
        answers = recourse(wrapped, TWO, confidence=confidence)[0].certify(people)
        done = answers.table["status"] == "optimal"
        assert done.sum() >= 2
        reached.append(FOREST.predict_proba(answers.counterfactuals[X.columns])[done, 1].min())
    assert reached[0] == reached[1] >= 0.8 and reached[2] >= 0.9


def test_probabilities_in_float32_are_compared_in_doubles() -> None:
    """float32(0.9) is below 0.9, and would pass a comparison in float32."""
    xgboost = pytest.importorskip("xgboost", reason="its probabilities")
    model = xgboost.XGBClassifier(n_estimators=20, max_depth=3, n_jobs=1)
    made, people, model = recourse(model, TWO, confidence=0.9)
    answers = made.certify(people)
    reached = model.predict_proba(answers.counterfactuals[X.columns])[:, 1]
    assert (reached.astype(float)[answers.table["status"] == "optimal"] >= 0.9).all()


def test_a_forest_can_be_asked_for_certainty() -> None:
    """A probability of 1 is one that all trees give; where there is none, that is proven."""
    made, people, model = recourse(FOREST, THREE, confidence=1.0)
    answers = made.certify(people)
    reached = model.predict_proba(answers.counterfactuals[X.columns])[:, 2]
    done = answers.table["status"] == "optimal"
    assert answers.table["status"].isin(["optimal", "infeasible"]).all() and (reached[done] == 1.0).all()


REFUSED: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "no probability": (
        RidgeClassifier(),
        TWO,
        {},
        "RidgeClassifier, which has no predict_proba; allowed: a cl",
    ),
    "another function": (
        BernoulliNB(),
        TWO,
        {},
        "confidence on the probability of BernoulliNB; allowed: one on a logistic function",
    ),
    "no softmax": (SGDClassifier(loss="log_loss", random_state=0), THREE, {}, "are no softmax; allowed: a"),
    "boosting of three": (
        GradientBoostingClassifier(n_estimators=3),
        THREE,
        {},
        "GradientBoostingClassifier with 3 classes; allowed: two classes, a forest, a linear model, or m",
    ),
    "histogram of three": (HistGradientBoostingClassifier(max_iter=3), THREE, {}, "with 3 classes; allowed"),
    "any but one": (FOREST, THREE, {"desired": {"not": 0}}, "with desired not 0; allowed: one desired class"),
    "half of three": (FOREST, THREE, {"confidence": 0.5}, "got 0.5; allowed: above 0.5 with more than two"),
    "no number": (
        FOREST,
        TWO,
        {"confidence": "high"},
        "got high; allowed: None, or a probability above 0 and",
    ),
    "zero": (
        FOREST,
        TWO,
        {"confidence": 0.0},
        "got 0.0; allowed: None, or a probability above 0 and at most",
    ),
    "too sure": (LogisticRegression(), TWO, {"confidence": 1.0}, "allowed: probabilities between 1e-6 and"),
    "too sure, three": (LogisticRegression(), THREE, {"confidence": 1.0}, "probabilities between 1e-6 and"),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_asked_for_is_refused_in_one_line(name: str) -> None:
    """The line says what works."""
    model, y, more, words = REFUSED[name]
    arguments = {"confidence": 0.9, **({"desired": 2} if y is THREE else {}), **more}
    with pytest.raises(RecourseError) as caught:
        Recourse(model.fit(X, y), X, **arguments).certify(X.head(2))  # it might be asked
    assert words in str(caught.value) and "\n" not in str(caught.value)
    assert "confidence" in str(caught.value)


def test_boosters_and_modules_have_no_predict_proba() -> None:
    """XGBoost's Booster and torch modules: their margins are logits."""
    xgboost = pytest.importorskip("xgboost", reason="its Booster")
    torch = pytest.importorskip("torch", reason="its modules")
    booster = xgboost.train({"objective": "binary:logistic", "nthread": 1}, xgboost.DMatrix(X, label=TWO), 3)
    for model in (booster, torch.nn.Sequential(torch.nn.Linear(3, 1))):
        with pytest.raises(
            RecourseError, match=r"confidence: got .*, which has no predict_proba; allowed: a cl"
        ):
            Recourse(model, X, confidence=0.9)


MARGINS: dict[str, tuple[Any, Any, float]] = {
    "forest": (FOREST, TWO, 0.3),
    "tree": (DecisionTreeClassifier(max_depth=4, random_state=0), TWO, 0.4),
    "forest of three": (FOREST, THREE, 0.3),
    "boosting": (GradientBoostingClassifier(n_estimators=10, random_state=0), TWO, 0.7),
    "boosting of three": (GradientBoostingClassifier(n_estimators=10, random_state=0), THREE, 0.7),
    "histogram": (HistGradientBoostingClassifier(max_iter=10), TWO, 0.7),
}


@pytest.mark.parametrize("name", MARGINS)
def test_a_margin_of_trees_is_demanded(name: str) -> None:
    """In units of the score: probabilities of forests, raw scores of boosting; against each other class."""
    model, y, margin = MARGINS[name]
    made, people, model = recourse(model, y, margin=margin)
    answers = made.certify(people, certificates=True)
    done = (answers.table["status"] == "optimal").to_numpy()
    assert done.any() and answers.table["status"].isin(["optimal", "infeasible"]).all()
    assert answers.table["margin"].tolist() == pytest.approx([margin] * 4)
    after = answers.counterfactuals[X.columns][done]
    boosts = hasattr(model, "learning_rate")
    if y is THREE:
        scores = np.sort(model.decision_function(after) if boosts else model.predict_proba(after), axis=1)
        reached = scores[:, 2] - scores[:, 1]
        assert (model.predict(after) == 2).all()
    else:
        reached = model.decision_function(after) if boosts else model.predict_proba(after)[:, 1] - 0.5
    assert (reached >= margin - 1e-12).all() and reached.min() < margin + 0.3
    assert answers.verify().startswith("VERIFIED")
    measure = "raw score" if boosts else "probability"
    assert f"margin: accepted means a {measure} of at least" in answers.summary()


def test_a_margin_that_no_probability_reaches() -> None:
    """Proven, and the message names the margin."""
    made, people, _ = recourse(FOREST, TWO, margin=5.0)
    table = made.certify(people).table
    assert table["status"].eq("infeasible").all()
    assert table["message"].str.contains("It is the margin of 5 that forbids it").all()
