"""Ties between classes are as predict has them; what a causal model cannot do with is one person's fault."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from milp_recourse import Recourse
from milp_recourse.errors import BadInput


@pytest.mark.parametrize("desired", [0, 1])
def test_two_trees_that_disagree_are_a_tie_that_goes_to_the_first_class(desired: int) -> None:
    """Grown to the end, shares are whole and add up without rounding: no tie is given away."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.integers(0, 12, 60), "b": rng.integers(0, 12, 60)})
    y = (X["a"] + X["b"] > 11).astype(int)
    model = RandomForestClassifier(2, random_state=0).fit(X, y)
    every = pd.DataFrame([(a, b) for a in range(12) for b in range(12)], columns=["a", "b"])
    ties = every[model.predict_proba(every)[:, 0] == 0.5]
    assert len(ties) and (model.predict(ties) == 0).all()
    answers = Recourse(model, X, desired=desired).certify(ties.head(5))
    assert answers.table["status"].eq("optimal").all() and answers.table["confirmed"].all()
    assert answers.table["cost"].eq(0).all() == (desired == 0)
    assert "count as refused" not in answers.summary()


def test_shares_that_round_give_ties_away_and_say_so() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=90), "b": rng.normal(size=90)})
    y = (X["a"] + rng.normal(size=90) > 0).astype(int)
    model = RandomForestClassifier(3, max_depth=2, random_state=0).fit(X, y)
    answers = Recourse(model, X).certify(X[model.predict(X) == 0].head(2))
    assert "beyond the threshold can count as refused" in answers.summary()
    assert answers.table["margin"].between(1e-16, 1e-13).all()
    boosted = GradientBoostingClassifier(n_estimators=3).fit(X, y)
    recourse = Recourse(boosted, X)
    assert not recourse.reading.accept.strict and recourse.reading.accept.threshold == 0.0
    assert "count as refused" not in recourse.certify(X[boosted.predict(X) == 0].head(2)).summary()


def chain(noise: bool = True) -> dict:
    """a causes b."""
    mechanism = {"equation": "a", "noise": {"kind": "normal", "sd": 1.0}} if noise else {"equation": "a"}
    return {"name": "explicit", "mechanisms": {"b": mechanism}}


def test_a_gap_beside_a_causal_model_is_one_persons_fault() -> None:
    xgboost = pytest.importorskip("xgboost", reason="its rule for missing values")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "c"])
    X.loc[::7, "c"] = np.nan
    y = (X["a"] + X["b"] + X["c"].fillna(0) > 0.5).astype(int)
    model = xgboost.XGBClassifier(n_estimators=5, max_depth=3).fit(X, y)
    refused = X[model.predict(X) == 0]
    people = pd.concat([refused[refused["c"].isna()].head(2), refused[refused["c"].notna()].head(2)])
    answers = Recourse(model, X, scm=chain()).certify(people)
    assert answers.table["status"].tolist() == ["bad-input"] * 2 + ["optimal"] * 2
    assert "c: got null; allowed: a value: values are only left out" in answers.table["message"].iloc[0]
    assert Recourse(model, X).certify(people).table["status"].eq("optimal").all()


def test_a_value_that_no_noise_explains_is_one_persons_fault() -> None:
    """Behind a sigmoid link a value lies strictly between its ends."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=200), "b": rng.uniform(0.1, 0.9, 200)})
    model = LogisticRegression().fit(X, (X["a"] + X["b"] > 0.5).astype(int))
    mechanism = {"equation": "a", "link": {"kind": "sigmoid"}, "noise": {"kind": "normal", "sd": 1.0}}
    scm = {"name": "explicit", "mechanisms": {"b": mechanism}}
    people = X[model.predict(X) == 0].head(3).copy()
    people.iloc[1, 1] = 1.0
    table = Recourse(model, X, scm=scm).certify(people).table
    assert table["status"].tolist() == ["optimal", "bad-input", "optimal"]
    assert "b: got 1.0; allowed: a number strictly between 0.0 and 1.0" in table["message"].iloc[1]


def test_density_is_asked_of_a_causal_model_that_has_one() -> None:
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 2)), columns=["a", "b"])
    model = LogisticRegression().fit(X, (X["a"] > 0).astype(int))
    allowed = "a causal model with noise for every feature: scm explicit states none for"
    with pytest.raises(BadInput, match=f"plausibility: got scm-density; allowed: {allowed}"):
        Recourse(model, X, scm=chain(noise=False), plausibility="scm-density")


def test_a_held_feature_is_listed_as_an_action_that_changes_nothing() -> None:
    """Raising a alone would lower b: the table must say that b is held."""
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 2)), columns=["a", "b"])
    model = LogisticRegression(C=100).fit(X, (X["a"] + X["b"] > 0).astype(int))
    scm = {"name": "explicit", "mechanisms": {"b": {"equation": {"product": [-2.0, "a"]}}}}
    person = X[model.predict(X) == 0].head(1)
    conditions = ["b does not fall", "a change at least 0.3"]
    answers = Recourse(model, X, scm=scm, conditions=conditions).certify(person, time_limit=60)
    action, listed = answers.results[0].action, answers.changes.set_index("feature")
    assert action is not None and action["b"] == person["b"].iloc[0]
    assert set(listed.index) == {"a", "b"} and listed["cause"].eq("action").all()
    assert listed.loc["b", "before"] == listed.loc["b", "after"] == person["b"].iloc[0]
