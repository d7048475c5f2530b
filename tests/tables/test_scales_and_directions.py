"""Scales where outliers drive a range, and the table of who is told to raise or lower what."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from milp_recourse import Recourse


@pytest.fixture(scope="module")
def fitted():
    """A table in which one debt ratio of 300 000 makes the range what it is."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"debt": rng.uniform(0.0, 2.0, 400), "income": rng.uniform(10.0, 90.0, 400)})
    y = X["income"] - 30.0 * X["debt"] > 20.0
    X.loc[7, "debt"] = 300_000.0
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(X.clip(upper=100.0), y), X


def test_outliers_do_not_make_the_scale(fitted):
    """The scale is the distance of the 1st and 99th percentile, and printing says so; ``range`` is exact."""
    model, X = fitted
    recourse = Recourse(model, X)
    width = np.subtract(*np.quantile(X["debt"], [0.99, 0.01]))
    assert recourse.features["scale"]["debt"] == pytest.approx(width) and 1.5 < width < 2.1
    assert recourse.features["scale"]["income"] == np.ptp(X["income"])
    assert "scale of debt" in str(recourse) and "outliers make the range 300000" in str(recourse)
    assert "scale of income" not in str(recourse)
    assert Recourse(model, X, scale={"income": 2.0}).features["scale"]["debt"] == pytest.approx(width)
    for scale in ("spread", None):  # percentiles are divided by none
        assert "outliers" not in str(Recourse(model, X, cost="percentile", scale=scale))
    plain = Recourse(model, X, scale="range")
    assert plain.features["scale"]["debt"] == np.ptp(X["debt"]) and "outliers" not in str(plain)


def test_who_is_told_to_raise_what(fitted):
    """Counts are those of the changes, and the argument that is named forbids that direction."""
    model, X = fitted
    people = X[~model.predict(X)].head(40)
    found = Recourse(model, X).certify(people)
    table, acted = found.directions, found.changes[found.changes["cause"] == "action"]
    rises = acted[acted["after"].astype(float) > acted["before"].astype(float)]["feature"].value_counts()
    assert table["raised"].sum() == rises.sum() and table["lowered"].sum() == len(acted) - rises.sum()
    assert "increase=['debt']" in table["to forbid it"]["debt"]
    again = Recourse(model, X, increase=["debt"]).certify(people)
    assert again.directions["lowered"]["debt"] == 0
