"""read_sklearn agrees with the pipeline within float64 rounding, or refuses it in one line."""

import numpy as np
import pytest

from milp_recourse.errors import Unsupported
from milp_recourse.readers import read_sklearn

pytest.importorskip("sklearn")
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

pytestmark = pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning")

TOLERANCE = 1e-9  # logit units; the networks below have weights and inputs of moderate size

GENERATOR = np.random.default_rng(3)
ROWS = GENERATOR.normal(size=(200, 4)) * [1.0, 10.0, 0.1, 1000.0] + [0.0, 50.0, 3.0, -2000.0]
LABELS = (ROWS[:, 0] + (ROWS[:, 1] - 50) / 10 + GENERATOR.normal(size=200) > 0).astype(int)
PROBES = np.concatenate([ROWS, ROWS + GENERATOR.normal(size=ROWS.shape) * ROWS.std(axis=0) * 3])


def perceptron(**options):
    return MLPClassifier(**{"hidden_layer_sizes": (8, 5), "max_iter": 15, "random_state": 0} | options)


def logit(probability):
    return np.log(probability[:, 1]) - np.log(probability[:, 0])


ESTIMATORS = {
    "scaler, relu": lambda: make_pipeline(StandardScaler(), perceptron()),
    "scaler without mean": lambda: make_pipeline(StandardScaler(with_mean=False), perceptron()),
    "scaler without sd": lambda: make_pipeline(StandardScaler(with_std=False), LogisticRegression()),
    "scaler without either": lambda: make_pipeline(
        StandardScaler(with_mean=False, with_std=False), StandardScaler(), LogisticRegression()
    ),
    "two scalers and a passthrough": lambda: make_pipeline(
        StandardScaler(with_std=False), "passthrough", StandardScaler(), perceptron()
    ),
    "identity": lambda: make_pipeline(StandardScaler(), perceptron(activation="identity")),
    "nested": lambda: make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), LogisticRegression())),
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(fit_intercept=False)),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_logit_and_decision_agree_with_the_pipeline_within_rounding(name):
    estimator = ESTIMATORS[name]().fit(ROWS, LABELS)
    network = read_sklearn(estimator)
    assert network.dtype == "float64"
    logits = network.evaluate(PROBES)[:, 0]
    probability = estimator.predict_proba(PROBES)
    inside = np.abs(logits) < 15  # beyond, the probability no longer tells the logit
    assert inside.sum() > 100
    np.testing.assert_allclose(logits[inside], logit(probability)[inside], rtol=0, atol=TOLERANCE * 10)
    clear = np.abs(logits) > TOLERANCE
    assert (estimator.predict(PROBES)[clear] == (logits >= 0)[clear]).all()


def test_without_scaler_every_weight_is_taken_as_it_is():
    estimator = perceptron().fit(ROWS, LABELS)
    network = read_sklearn(estimator)
    for ours, theirs in zip(network.weights, estimator.coefs_, strict=True):
        assert (ours == theirs.T).all()
    for ours, theirs in zip(network.biases, estimator.intercepts_, strict=True):
        assert (ours == theirs).all()


def test_identity_activation_becomes_one_layer():
    assert len(read_sklearn(perceptron(activation="identity").fit(ROWS, LABELS)).weights) == 1


def test_a_logit_at_or_above_zero_means_the_second_class():
    estimator = make_pipeline(StandardScaler(), LogisticRegression()).fit(
        ROWS, np.where(LABELS, "yes", "a no")
    )
    assert estimator.classes_.tolist() == ["a no", "yes"]
    logits = read_sklearn(estimator).evaluate(ROWS)[:, 0]
    assert (np.where(logits >= 0, "yes", "a no") == estimator.predict(ROWS)).all()


def test_a_logit_of_exactly_zero_is_accepted_here_and_not_by_predict():
    estimator = LogisticRegression().fit([[-1.0], [1.0]], [0, 1])
    estimator.coef_, estimator.intercept_ = np.array([[1.0]]), np.array([0.0])
    assert read_sklearn(estimator).deployed_logit(np.array([0.0])) >= 0
    assert estimator.predict([[0.0]]) == [0]


def test_a_sparse_coefficient_matrix_is_read():
    estimator = LogisticRegression().fit(ROWS / 1000, LABELS)
    dense = read_sklearn(estimator).weights[0]
    assert (read_sklearn(estimator.sparsify()).weights[0] == dense).all()


REFUSALS = {
    "three classes": (
        lambda: LogisticRegression().fit(ROWS / 1000, np.arange(200) % 3),
        "estimator: got LogisticRegression with 3 classes; allowed: two classes",
    ),
    "many labels": (
        lambda: perceptron().fit(ROWS, np.stack([LABELS, 1 - LABELS], axis=1)),
        "estimator: got MLPClassifier with 2 classes; allowed: two classes, one output",
    ),
    "regressor": (
        MLPRegressor,
        "estimator: got MLPRegressor; allowed: binary MLPClassifier or Logistic",
    ),
    "other scaler": (
        lambda: make_pipeline(MinMaxScaler(), LogisticRegression()).fit(ROWS, LABELS),
        "step 'minmaxscaler': got MinMaxScaler; allowed: StandardScaler before the classifier",
    ),
    "other last step": (
        lambda: make_pipeline(StandardScaler(), MLPRegressor()),
        "step 'mlpregressor': got MLPRegressor; allowed: binary MLPClassifier",
    ),
    "not fitted": (
        lambda: make_pipeline(StandardScaler(), perceptron()),
        "estimator: got one that is not fitted; allowed: a fitted one: call fit first",
    ),
    "no estimator": (lambda: None, "estimator: got NoneType; allowed: binary"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_cannot_be_represented_is_refused_in_one_line(name):
    make, message = REFUSALS[name]
    with pytest.raises(Unsupported) as caught:
        read_sklearn(make())
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
