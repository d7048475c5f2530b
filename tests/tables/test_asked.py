"""Models that no reader reads, asked through the door."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from milp_recourse import Recourse
from milp_recourse.errors import BadInput, Unsupported

RNG = np.random.default_rng(3)
X = pd.DataFrame(
    {
        "jobs": RNG.integers(0, 8, 240).astype("int16"),
        "home": pd.Categorical(RNG.choice(["own", "rent", "free"], 240)),
        "member": RNG.integers(0, 2, 240).astype(bool),
        "rate": RNG.normal(10, 3, 240).astype("float32"),
        "years": pd.array([None if k % 9 == 0 else k % 5 for k in range(240)], dtype="Int64"),
    }
)
WORTH = X["jobs"] + 2 * (X["home"] == "own") + X["member"] - 0.3 * X["rate"]
Y = np.where(WORTH.median() < WORTH, "yes", "no")
SEEN = ["jobs", "home", "member", "rate"]


def svc() -> Any:
    """A pipeline that is not read."""
    front = make_column_transformer(
        (OneHotEncoder(), ["home"]), (StandardScaler(), ["jobs", "member", "rate"])
    )
    return make_pipeline(front, SVC(gamma=0.5)).fit(X[SEEN], Y)


MODEL = svc()
PEOPLE = X[MODEL.predict(X[SEEN]) == "no"].head(6)


def told(frame: pd.DataFrame) -> np.ndarray:
    """A plain function, which looks at the types of what it is asked."""
    assert frame.dtypes.equals(X.dtypes)
    assert list(frame.columns) == list(X.columns)
    worth = frame["jobs"] + 3 * (frame["home"].astype(str) == "own") - frame["years"].fillna(2).astype(float)
    return np.where(worth + frame["member"] > 6, "good", "bad")


def test_an_svc_is_asked_by_itself_and_confirmed() -> None:
    """With every lever finite; the row asked is the one that is returned."""
    answers = Recourse(MODEL, X[SEEN], immutable=["rate"]).certify(PEOPLE[SEEN])
    table = answers.table
    assert table["status"].eq("optimal").all() and table["proof"].eq("asked").all()
    assert table["confirmed"].all() and (MODEL.predict(answers.counterfactuals) == "yes").all()
    assert answers.counterfactuals.dtypes.equals(X[SEEN].dtypes)
    assert answers.verify().startswith("NOTHING TO CHECK") and "asked, not read" in answers.summary()
    assert set(answers.changes["shown"]) <= set(answers.changes["after"])


def test_steps_make_a_continuous_lever_askable() -> None:
    """Without them the reader's refusal stands, and says so."""
    recourse = Recourse(MODEL, X[SEEN])
    with pytest.raises(
        Unsupported, match=r"SVC with kernel 'rbf'.*, or pass steps= for rate and it will be asked$"
    ):
        recourse.certify(PEOPLE[SEEN])
    with pytest.raises(Unsupported, match=r"rate is a lever that takes any number; with steps, such as"):
        recourse.certify(PEOPLE[SEEN], backend="ask")
    answers = Recourse(MODEL, X[SEEN], steps={"rate": 0.25}).certify(PEOPLE[SEEN])
    fixed = Recourse(MODEL, X[SEEN], immutable=["rate"]).certify(PEOPLE[SEEN])
    assert answers.table["confirmed"].all()
    assert (answers.table["cost"] <= fixed.table["cost"]).all() and (
        answers.table["cost"] < fixed.table["cost"]
    ).any()
    moved = answers.changes[answers.changes["feature"] == "rate"]["after"].astype(float)
    assert len(moved) and (moved % 0.25 == 0).all()


def test_a_function_is_asked_in_the_types_of_the_table() -> None:
    """A function alone, or beside a model, with missing values that may stay."""
    people = X[told(X) == "bad"].head(8)
    for model, predict in ((told, None), (None, told)):
        answers = Recourse(model, X, "good", immutable=["rate"], predict=predict).certify(people)
        assert answers.table["status"].eq("optimal").all() and answers.table["confirmed"].all()
        assert answers.counterfactuals["years"].isna().any()


def test_a_callable_of_probabilities_is_asked_for_an_interval() -> None:
    """As a network of Keras answers: (n, 1), float32."""

    def network(frame: pd.DataFrame) -> np.ndarray:
        z = frame["jobs"].to_numpy(float) - 3.5 * (frame["home"] == "rent").to_numpy(float)
        return (1 / (1 + np.exp(4.2 - z))).astype(np.float32)[:, None]

    people = X[network(X)[:, 0] < 0.5].head(5)
    answers = Recourse(network, X[SEEN], (0.5, None), immutable=["rate"]).certify(people)
    assert answers.table["confirmed"].all()
    assert (network(answers.counterfactuals)[:, 0] >= 0.5).all()
    with pytest.raises(BadInput, match="desired"):
        Recourse(network, X[SEEN], 1, immutable=["rate"])


def test_what_is_read_and_what_is_asked_cost_the_same() -> None:
    """The same boosting, read by ``bab`` and hidden behind a function."""
    code = X[SEEN].assign(home=X["home"].cat.codes.astype(int), member=X["member"].astype(int))
    model = GradientBoostingClassifier(n_estimators=25, random_state=0).fit(code, Y)
    people = code[model.predict(code) == "no"].head(12)
    given: dict[str, Any] = {
        "steps": {"rate": 0.5},
        "conditions": ["at most 2 actions"],
        "cost": "l2-squared",
    }
    read = Recourse(model, code, **given)
    asked = Recourse(model.predict, code, "yes", **given).certify(people).table
    for backend in ("bab", "ask"):
        table = read.certify(people, backend=backend).table
        assert table["status"].eq(asked["status"]).all() and table["status"].eq("optimal").all()
        assert np.allclose(table["cost"], asked["cost"], rtol=2e-6)


def test_the_other_questions() -> None:
    """Choices, reasons and fronts are asked, too; robust and files need a model that is read."""
    answers = Recourse(MODEL, X[SEEN], immutable=["rate"]).certify(PEOPLE[SEEN], certificates=True)
    person = PEOPLE.index[0]
    assert answers.choices(person, 2)["cost"].is_monotonic_increasing
    assert answers.why(person)["cost"] == answers.table["cost"].iloc[0]
    assert answers.front(person)["cost"].iloc[-1] == answers.table["cost"].iloc[0]
    assert "asked about every cheaper action" in answers.page(person)
    with pytest.raises(Unsupported, match="robust: the model is asked, not read"):
        answers.robust(person, missed={"jobs": 1})
    with pytest.raises(Unsupported, match="model: got one that is asked"):
        answers.population()


@pytest.mark.parametrize(
    ("model", "arguments", "words"),
    [
        (object(), {}, "model: got object"),
        (SVC, {}, "model: got"),
        (SVC(), {}, "cannot be asked: predict: got NotFittedError"),
        (told, {"margin": 0.1}, "margin: got 0.1; allowed: None: this model is asked"),
        (told, {"desired": "gut"}, "desired: got 'gut'; allowed: a class of 'bad', 'good'"),
        (lambda frame: frame["jobs"].to_numpy()[:3], {}, r"predict: got an answer of shape \(3, 1\)"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(
    model: Any, arguments: dict[str, Any], words: str
) -> None:
    """At the door."""
    with pytest.raises((BadInput, Unsupported), match=words) as caught:
        Recourse(model, X, **arguments)
    assert "\n" not in str(caught.value)
