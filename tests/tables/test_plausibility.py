"""Scales and plausibility given to ``Recourse``."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

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
    logs = answers(cost="log-percentile")
    assert set(logs["status"]) == {"optimal"}


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
