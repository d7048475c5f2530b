"""Thresholds put on a classifier's probability or score decide as scikit-learn's wrappers do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn")  # an optional extra: without it there is nothing to read
pytest.importorskip("xgboost")  # an optional extra
pytest.importorskip("lightgbm")  # an optional extra

from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from milp_recourse import Recourse
from milp_recourse.cli import main
from milp_recourse.errors import Unsupported
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.readers import read_model
from tests.helpers.pipelines import (
    FINALS,
    at_thresholds,
    decide,
    encode,
    model_columns,
    predict,
    random_pipeline,
)

frozen = pytest.importorskip("sklearn.frozen")  # since scikit-learn 1.6

NO_PROBABILITY = ("svc", "ridge", "perceptron")
SCORED = ("logistic", "svc", "sgd", "ridge", "perceptron", "boosting", "histogram")


@pytest.mark.parametrize("final", FINALS)
@pytest.mark.parametrize("seed", range(1))
def test_a_threshold_is_read_as_deployed(final: str, seed: int) -> None:
    """Also where probabilities equal the threshold: it is one that a person has, or 0.35."""
    rng = np.random.default_rng([seed, FINALS.index(final)])
    model, X, _, people = random_pipeline(seed, final, several=False)
    people, known = people.head(30), []
    classes = list(model.classes_)
    probability = hasattr(model, "predict_proba")
    assert probability or final in NO_PROBABILITY or final == "sgd"
    responses = ["predict_proba"] if probability else []
    responses += ["decision_function"] if final in SCORED else []
    for response in responses:
        for positive in (0, 1):
            held = getattr(model, response)(people[model_columns(model, X)])
            held = held[:, positive] if held.ndim == 2 else held if positive == 1 else -held
            for threshold in [rng.choice(held), 0.35][: 1 + positive]:
                near = response == "predict_proba" and not 1e-5 < threshold < 1 - 1e-5
                if near and not _trees(final):
                    continue  # refused for networks
                wrapped = FixedThresholdClassifier(
                    frozen.FrozenEstimator(model),
                    threshold=threshold,
                    pos_label=classes[positive],
                    response_method=response,
                )
                for desired in classes if threshold != 0.35 else classes[FINALS.index(final) % 2 :][:1]:
                    reading = read_model(wrapped, X, desired)
                    assert isinstance(reading.classifier, TreeEnsemble) == _trees(final)
                    rows = at_thresholds(reading, people, rng)
                    yes, sure = decide(reading, encode(reading, rows))
                    assert (yes == (predict(wrapped, X, rows) == desired))[sure].all()
                    known.append(sure.mean())
    assert np.mean(known) > 0.8  # all of a network's logits may be one number, and the threshold this one


def _trees(final: str) -> bool:
    return final in ("tree", "forest", "stumps", "extra", "boosting", "histogram", "xgboost", "lightgbm")


def _numbers() -> tuple[pd.DataFrame, pd.Series]:
    """A table of numbers without gaps, and two classes."""
    _, X, y, _ = random_pipeline(1, "logistic", several=False)
    return X.select_dtypes("number").dropna(axis=1), y


def _fitted(threshold: float = 0.8, **options: object) -> tuple[FixedThresholdClassifier, object]:
    X, y = _numbers()
    inner = make_pipeline(StandardScaler(), LogisticRegression())
    return FixedThresholdClassifier(inner, threshold=threshold, **options).fit(X, y), X


def test_recourse_reaches_the_threshold() -> None:
    """A returned row flips the wrapper, a search around it, and costs more than at the usual threshold."""
    wrapped, X = _fitted(0.8)
    y = wrapped.predict(X)
    good = wrapped.classes_[1]
    searched = GridSearchCV(
        FixedThresholdClassifier(make_pipeline(StandardScaler(), LogisticRegression())),
        {"threshold": [0.8]},
        cv=2,
    ).fit(X, y)
    for model in (wrapped, searched):
        people = X[model.predict(X) != good].head(4)
        answers = Recourse(model, X, desired=good).certify(people)
        assert (answers.table["status"] == "optimal").all()
        assert (model.predict(answers.counterfactuals[X.columns]) == good).all()
    easy = Recourse(wrapped.estimator_, X, desired=good).certify(people)
    strict = Recourse(wrapped, X, desired=good).certify(people)
    assert (strict.table["cost"] > easy.table["cost"]).all()


def test_a_tuned_threshold_is_read() -> None:
    wrapped, X = _fitted()
    y = wrapped.predict(X)
    model = TunedThresholdClassifierCV(LogisticRegression(max_iter=1000), cv=2, scoring="balanced_accuracy")
    model.fit(X, y)
    reading = read_model(model, X)
    yes, sure = decide(reading, encode(reading, X))
    assert (yes == (model.predict(X) == reading.classes[1]))[sure].all()
    assert reading.accept.threshold != 0.0


@pytest.mark.parametrize(
    ("inner", "options", "message"),
    [
        (LogisticRegression(), {"threshold": 1.0}, "threshold 1.0"),
        (LogisticRegression(), {"threshold": 0.5, "pos_label": "neither"}, "pos_label 'neither'"),
        (KNeighborsClassifier(), {"threshold": 0.7}, "KNeighborsClassifier"),
    ],
)
def test_what_is_not_read_is_refused(inner: object, options: dict[str, float], message: str) -> None:
    _, X = _fitted()
    y = _fitted()[0].predict(X)
    model = FixedThresholdClassifier(inner, **options).fit(X, y)
    with pytest.raises(Unsupported, match=message):
        read_model(model, X)


def test_a_wrapper_without_a_fitted_model_is_refused() -> None:
    _, X = _fitted()
    for model in (
        FixedThresholdClassifier(LogisticRegression()),
        TunedThresholdClassifierCV(LinearSVC()),
        FixedThresholdClassifier(FixedThresholdClassifier(LogisticRegression())),
    ):
        with pytest.raises(Unsupported):
            read_model(model, X)


@pytest.mark.parametrize("positive", [0, 1])
def test_answers_behind_a_threshold_are_saved_and_verified(positive: int, tmp_path) -> None:
    """Also where the class that is wanted is not the one whose probability is compared."""
    X, y = _numbers()
    forest = RandomForestClassifier(20, max_depth=4, random_state=0).fit(X, y)
    model = FixedThresholdClassifier(
        frozen.FrozenEstimator(forest), threshold=0.45, pos_label=forest.classes_[positive]
    ).fit(X, y)
    good = forest.classes_[1]
    answers = Recourse(model, X, desired=good).certify(X[model.predict(X) != good].head(3), certificates=True)
    assert answers.table["confirmed"].all() and (answers.table["status"] == "optimal").all()
    answers.save(tmp_path / "saved")
    assert main(["verify", str(tmp_path / "saved")]) == 0


def test_sums_in_the_order_in_which_threads_end_have_room() -> None:
    """With n_jobs, a person on the threshold is refused, whichever way it is."""
    X, y = _numbers()
    for jobs, sure in ((None, True), (4, False)):
        forest = RandomForestClassifier(30, max_depth=4, random_state=0, n_jobs=jobs).fit(X, y)
        threshold = forest.predict_proba(X)[0, 1]
        model = FixedThresholdClassifier(frozen.FrozenEstimator(forest), threshold=threshold).fit(X, y)
        readings = [read_model(model, X, label) for label in forest.classes_]
        accepted = [decide(reading, encode(reading, X.head(1)))[0][0] for reading in readings]
        assert any(accepted) == sure
        assert not all(accepted)


@pytest.mark.parametrize("seed", range(2))
def test_means_of_trees_meet_a_threshold_bit_for_bit(seed: int) -> None:
    """Thresholds are means that rows have, so that the last bit of the library's sum decides."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.integers(0, 7, (120, 3)).astype(float), columns=list("abc"))
    tree, several = DecisionTreeClassifier(max_depth=3, random_state=seed), int(rng.integers(3, 12))
    votes = [(str(k), DecisionTreeClassifier(max_depth=2 + k % 3)) for k in range(several)]
    model = (BaggingClassifier(tree, several, random_state=seed), VotingClassifier(votes, voting="soft"))[
        seed % 2
    ]
    model.fit(X, rng.integers(0, 2, 120))
    every = pd.DataFrame(np.stack(np.meshgrid(*[np.arange(7.0)] * 3), -1).reshape(-1, 3), columns=X.columns)
    means = model.predict_proba(every)[:, 1]
    for threshold in rng.choice(means, 5):
        reading = read_model(
            FixedThresholdClassifier(frozen.FrozenEstimator(model), threshold=threshold), X, 1
        )
        assert reading.near == 0.0
        said = reading.classifier.scores(encode(reading, every)) > reading.accept.above
        assert (said == (means >= threshold)).all()


def test_where_only_a_tie_is_left_the_margin_is_named() -> None:
    """Two trees whose shares round: predict gives class 0 in two of nine rows, and both are ties."""
    rng = np.random.default_rng(42)
    X = pd.DataFrame({name: rng.integers(0, 3, 20).astype(float) for name in "ab"})
    model = RandomForestClassifier(2, max_depth=1, random_state=42).fit(X, rng.integers(0, 2, 20))
    tied = X[model.predict(X) == 0]
    assert len(tied) and (model.predict_proba(tied)[:, 0] == 0.5).all()
    row = Recourse(model, X, desired=0).certify(X[model.predict(X) == 1].head(1)).table.iloc[0]
    assert row["status"] == "infeasible" and 0.0 < row["margin"] < 1e-13
    assert f"It is the margin of {row['margin']:.3g} that forbids it" in row["message"]
