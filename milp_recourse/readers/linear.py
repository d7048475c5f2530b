"""Read scikit-learn's linear classifiers, perceptrons and support vector machines with a linear kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.readers.classes import classes_of
from milp_recourse.readers.formulas import by_largest, by_margin
from milp_recourse.readers.layers import UNIT, Layers
from milp_recourse.readers.links import Link, logistic
from milp_recourse.readers.member import Member
from milp_recourse.readers.places import Inputs, Place
from milp_recourse.readers.refusal import refuse
from milp_recourse.readers.scores import outputs_of

_SIGMOID = 2.0**-46  # for logits above it, the logistic function in doubles is above 1/2 despite rounding


def is_linear(estimator: Any) -> bool:
    """Whether the estimator is a linear classifier or perceptron of scikit-learn that is read here."""
    from sklearn.linear_model._base import LinearClassifierMixin
    from sklearn.neural_network import MLPClassifier

    return isinstance(estimator, LinearClassifierMixin | MLPClassifier)


def linear_member(estimator: Any, place: Place | Inputs) -> Member:
    """A linear classifier or perceptron."""
    layers, columns = place.layers()
    softmax, slack = read_linear(estimator, layers, place.where)
    classes, scores = classes_of(estimator), outputs_of(layers, columns, softmax)
    two = len(scores) == 1
    unit = _softmax_of(estimator)
    rule = by_margin(slack=(slack, slack)) if two else by_largest(len(scores), slack=slack)
    decision = scores if hasattr(estimator, "decision_function") else None
    link = _link(estimator) if two else None
    name = type(estimator).__name__
    return Member(
        name, classes, scores, rule, decision, link=link, measure="logit", softmax=0.0 if two else unit
    )


def read_linear(estimator: Any, layers: Layers, where: str) -> tuple[float, float]:
    r"""Append a fitted classifier's maps to ``layers``; the outputs are its logits.

    ======================================  ===============================================
    classifier                              predicts
    ======================================  ===============================================
    linear models, two classes              the second class if :math:`w x + b > 0`
    linear models, more                     the first class with the largest :math:`w x + b`
    MLPClassifier, two classes              the second if the logistic function of the logit is above 1/2
    MLPClassifier, more                     the first class with the largest softmax
    ======================================  ===============================================

    Returns
    -------
    (softmax, slack)
        Unit roundoff of a closing softmax, 0 without one; and how far above 0 a logit may be while the
        closing function ties the classes.

    Raises
    ------
    NotFittedError
        The estimator is not fitted (scikit-learn's error).
    Unsupported
        The estimator does not decide by its linear function, or has several outputs.
    """
    from sklearn.neural_network import MLPClassifier
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)
    if isinstance(estimator, MLPClassifier):
        return _read_perceptron(estimator, layers, where)
    _linear(estimator, layers, where)
    return 0.0, 0.0


def _link(estimator: Any) -> Link | None:
    """``predict_proba`` of two classes as a function of the logit; None if there is none."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import LogisticRegression, SGDClassifier
    from sklearn.neural_network import MLPClassifier

    loss = estimator.loss if isinstance(estimator, SGDClassifier) else ""
    if loss == "modified_huber":
        return Link(_ramp)
    known = LogisticRegression | MLPClassifier | LinearDiscriminantAnalysis
    if not isinstance(estimator, known) and loss != "log_loss":
        return None
    return Link(logistic, logistic=(1.0, 0.0), unit=_unit(estimator))


def _unit(estimator: Any) -> float:
    coefficients = estimator.coefs_ if hasattr(estimator, "coefs_") else [estimator.coef_]
    return UNIT["float32" if any(w.dtype == np.float32 for w in coefficients) else "float64"]


def _softmax_of(estimator: Any) -> float:
    """Unit roundoff of ``predict_proba``, if it is the softmax of several classes' scores; else 0."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    softmax = isinstance(estimator, LogisticRegression | MLPClassifier | LinearDiscriminantAnalysis)
    one_by_one = (
        getattr(estimator, "multi_class", "") == "ovr" or getattr(estimator, "solver", "") == "liblinear"
    )
    return _unit(estimator) if softmax and not one_by_one else 0.0


def _ramp(score: float) -> tuple[float, float]:
    second = (min(max(score, -1.0), 1.0) + 1.0) / 2.0
    return 1.0 - second, second


def _linear(estimator: Any, layers: Layers, where: str) -> None:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model._base import LinearClassifierMixin

    own = type(estimator).decision_function is not LinearClassifierMixin.decision_function
    if own and not isinstance(estimator, LinearDiscriminantAnalysis):  # its own only calls the other
        raise refuse(
            where, f"{type(estimator).__name__} with a decision of its own", "a linear decision_function"
        )
    weight = np.atleast_2d(dense(estimator.coef_))
    outputs = 1 if len(estimator.classes_) <= 2 else len(estimator.classes_)
    if len(weight) != outputs or np.ndim(estimator.classes_[0]):  # several labels per row have a row each
        raise refuse(where, f"{type(estimator).__name__} with several outputs", "one output")
    bias = np.broadcast_to(dense(estimator.intercept_).ravel(), (len(weight),))
    single = estimator.coef_.dtype == np.float32  # fitted on float32 columns, whose products are float32 then
    layers.affine(weight, bias, where, UNIT["float32" if single else "float64"])


def _read_perceptron(estimator: Any, layers: Layers, where: str) -> tuple[float, float]:
    usual = "logistic" if len(estimator.classes_) == 2 else "softmax"
    if estimator.out_activation_ not in (usual, "logistic"):
        got = f"MLPClassifier with out_activation_ {estimator.out_activation_!r}"
        raise refuse(where, got, f"{usual}, as fit sets it")
    if estimator.out_activation_ == "logistic" and estimator.n_outputs_ > 1:
        raise refuse(
            where, f"MLPClassifier with {estimator.n_outputs_} outputs of two classes each", "one output"
        )
    unit = append_perceptron(estimator, layers, where)
    return unit if estimator.out_activation_ == "softmax" else 0.0, _SIGMOID * unit / UNIT["float64"]


def append_perceptron(estimator: Any, layers: Layers, where: str) -> float:
    """Append the maps and functions of an MLPClassifier or MLPRegressor, and return their unit roundoff."""
    unit = _unit(estimator)
    last = len(estimator.coefs_) - 1
    for k, (weight, bias) in enumerate(zip(estimator.coefs_, estimator.intercepts_, strict=True)):
        layers.affine(dense(weight).T, dense(bias), where, unit)
        if k < last and estimator.activation == "relu":
            layers.relu(where)
        elif k < last and estimator.activation != "identity":
            layers.curve("tanh" if estimator.activation == "tanh" else "sigmoid", where, unit)
    return unit


def dense(values: Any) -> NDArray[np.float64]:
    """Coefficients as a dense array of doubles."""
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype=np.float64)
