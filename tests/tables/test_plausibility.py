"""Scales and plausibility given to ``Recourse``."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Perceptron

from milp_recourse import Recourse
from milp_recourse.errors import BadInput

RNG = np.random.default_rng(5)
X = pd.DataFrame(RNG.normal(size=(300, 3)).round(2) + [4.0, 0.0, 2.0], columns=["a", "b", "c"])
MODEL = LogisticRegression().fit(X, (X["a"] + X["b"] + 0.3 * RNG.normal(size=300) > 5).astype(int))
PEOPLE = X[MODEL.predict(X) == 0].head(4)
SCM = {
    "name": "explicit",
    "mechanisms": {
        "a": {"equation": 4.0, "noise": {"kind": "normal", "sd": 1.0}},
        "b": {"equation": 0.0, "noise": {"kind": "normal", "sd": 1.0}},
        "c": {"equation": {"sum": [2.0, "a", -4.0]}, "noise": {"kind": "normal", "sd": 1.0}},
    },
}


def answers(**said: object) -> pd.DataFrame:
    """Table and counterfactuals of some people."""
    found = Recourse(MODEL, X, **said).certify(PEOPLE, backend="highs")
    return found.table.join(found.counterfactuals)


def log_density(rows: pd.DataFrame) -> pd.Series:
    """Up to its constant."""
    return -0.5 * ((rows["a"] - 4) ** 2 + rows["b"] ** 2 + (rows["c"] - rows["a"] + 2) ** 2)


def test_the_outcome_is_near_an_accepted_row() -> None:
    """Within a tenth of every range of some row that the model accepts."""
    found = answers(plausibility={"kind": "near-data", "within": 0.1, "prototypes": 8})
    free = answers()
    known, size = X[MODEL.predict(X) == 1], (X.max() - X.min())
    for index, row in found.iterrows():
        assert row["status"] == "optimal"
        apart = ((known - row[["a", "b", "c"]].astype(float)).abs() / size).max(axis=1).min()
        assert apart <= 0.1 + 1e-9
        assert row["cost"] >= free.loc[index, "cost"] - 1e-9
    assert (found["cost"] > free["cost"] + 1e-6).any()


def test_the_density_reaches_its_level() -> None:
    """A quantile of X, a number, an offset: exact on what is returned."""
    level = float(np.quantile(log_density(X), 0.5, method="inverted_cdf"))
    shift = -1.5 * np.log(2 * np.pi)
    for said in ({"at_least": {"quantile": 0.5}}, {"at_least": level + shift}):
        found = answers(scm=SCM, plausibility={"kind": "scm-density", **said})
        done = found[found["status"] == "optimal"]
        assert len(done) and (log_density(done) >= level - 1e-6).all()
    found = answers(scm=SCM, plausibility={"kind": "scm-density", "offset": 0.5})
    done = found[found["status"] == "optimal"]
    assert len(done) and (log_density(done) >= log_density(PEOPLE.loc[done.index]) + 0.5 - 1e-9).all()


def test_domains_come_from_the_table() -> None:
    """With ``domain`` what follows stays inside X too; a wider bound does not widen it."""
    bounds = {name: (-50.0, 50.0) for name in X}
    found = answers(bounds=bounds, plausibility="domain", immutable=["b"])
    assert (found[["a", "b", "c"]] <= X.max() + 1e-12).all().all()


def test_a_domain_of_ones_own_does_not_replace_that_of_the_data() -> None:
    """Both hold; that of the data was dropped for columns that ``domain`` names."""
    wide = answers(
        domain={"a": (-9.0, 90.0)}, bounds={"a": (-9.0, 90.0)}, plausibility="domain", immutable=["b"]
    )
    assert wide["a"].astype(float).between(X["a"].min(), X["a"].max()).all()
    narrow = answers(domain={"a": (4.5, 90.0)}, plausibility="domain")
    assert narrow["a"].astype(float).between(4.5, X["a"].max()).all()
    with pytest.raises(BadInput, match=r"^domain\.a: got"):
        answers(domain={"a": (50.0, 60.0)}, plausibility="domain")


def test_only_rows_that_the_model_accepts_are_neighbours() -> None:
    """A row whose logit is 0 is refused by ``predict``, but it was counted as accepted."""
    rng = np.random.default_rng(5)
    table = pd.DataFrame(rng.integers(0, 6, (40, 2)), columns=["a", "b"])
    model = Perceptron(random_state=5).fit(table, (table["a"] + table["b"] > 5).astype(int))
    said = model.predict(table)
    assert (model.decision_function(table) == 0).any()
    found = Recourse(model, table, plausibility={"kind": "near-data", "within": 0.01})
    [near] = found.certify(table[said == 0].head(1)).population()["conditions"]
    rows = {tuple(round(part["at_least"]) for part in one["all"]) for one in near["any"]}
    assert rows == set(map(tuple, table[said == 1].to_numpy().tolist()))


def test_distances_are_those_of_the_decimals() -> None:
    """29 is within 0.29 ranges of 100, and 0.7 within 0.1 of 0.8, though their doubles are farther."""
    table = pd.DataFrame({"a": [0, 50, 100, 0], "b": [0.0, 0.8, 1.0, 0.2]})
    model = LogisticRegression().fit(table, [0, 1, 1, 0])
    for within, a, b in ((0.29, (21.0, 79.0), (0.51, 1.09)), (0.1, (40.0, 60.0), (0.7, 0.9))):
        recourse = Recourse(model, table, plausibility={"kind": "near-data", "within": within})
        [near] = recourse.certify(table.head(1)).population()["conditions"]
        [row] = (one["all"] for one in near["any"] if one["all"][0]["at_most"] == a[1])
        assert [(part["at_least"], part["at_most"]) for part in row] == [a, b]


def test_a_value_of_0_that_nobody_acts_on_has_no_relative_change() -> None:
    """Relative costs refused people with a 0 in a column that is immutable."""
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": [0.0, 0.0, 1.0, 1.0]})
    model = LogisticRegression().fit(table, [0, 0, 1, 1])
    for scale in ("factual", {"a": "factual", "b": "factual"}):
        recourse = Recourse(model, table, scale=scale, immutable=["b"])
        assert recourse.certify(table.head(1)).table["status"].tolist() == ["optimal"]


def test_scales_of_one_person_and_of_directions() -> None:
    """Two scales, a person's own value, median deviations, quartiles, l2, log-percentiles."""
    plain = answers(scale="unit")
    dear = answers(scale={c: {"increase": 0.25, "decrease": 1.0} for c in X})
    assert (dear["cost"] > plain["cost"]).all()
    change = (plain[["a", "b", "c"]].astype(float) - PEOPLE).abs().sum(axis=1)
    assert np.allclose(plain["cost"].astype(float), change, atol=1e-6)
    own = answers(scale="factual")
    shares = ((own[["a", "b", "c"]].astype(float) - PEOPLE) / PEOPLE).abs().sum(axis=1)
    assert np.allclose(own["cost"].astype(float), shares, atol=1e-6)
    square, root = (answers(cost=kind)["cost"].astype(float) for kind in ("l2-squared", "l2"))
    assert np.allclose(np.sqrt(square), root, rtol=1e-5)
    quartiles = X["b"].quantile(0.75) - X["b"].quantile(0.25)
    assert Recourse(MODEL, X, scale="iqr").features.loc["b", "scale"] == pytest.approx(quartiles)
    logs = Recourse(MODEL, X, cost="log-percentile").certify(PEOPLE.head(1), backend="highs")
    assert set(logs.table["status"]) == {"optimal"}


@pytest.mark.parametrize(
    "said",
    [
        {"plausibility": "density"},
        {"plausibility": {"kind": "near-data"}},
        {"plausibility": {"kind": "near-data", "within": 0.1, "norm": 2}},
        {"plausibility": {"kind": "scm-density", "at_least": {"quantile": 2}}},
        {"plausibility": {"kind": "near-data", "within": 0.1, "features": ["d"]}},
        {"plausibility": "scm-density"},
        {"scale": {"a": {"increase": 1.0}}},
        {"scale": "own"},
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(said: dict[str, object]) -> None:
    """By the argument's name."""
    with pytest.raises(BadInput) as refused:
        answers(**said)
    assert "\n" not in str(refused.value) and next(iter(said)) in str(refused.value)
