"""Read scikit-learn's linear models and perceptrons of any number of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.readers.cutoff import Cutoff, logistic
from milp_recourse.readers.layers import UNIT, Layers
from milp_recourse.readers.overrides import refuse_overrides
from milp_recourse.readers.refusal import refuse

_SIGMOID = 2.0**-46  # for logits above it, the logistic function in doubles is above 1/2 despite rounding
_STEEP = 1e-6 * (1 - 1e-6)


def is_linear(estimator: Any) -> bool:
    """Whether the estimator is a linear classifier or perceptron of scikit-learn that is read here."""
    from sklearn.linear_model._base import LinearClassifierMixin
    from sklearn.neural_network import MLPClassifier

    return isinstance(estimator, LinearClassifierMixin | MLPClassifier)


def read_linear(estimator: Any, layers: Layers, where: str) -> float:
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
    float
        Unit roundoff of a closing softmax, 0 without one.

    Raises
    ------
    NotFittedError
        The estimator is not fitted (scikit-learn's error).
    Unsupported
        The estimator does not decide by its linear function, has several outputs, or has an activation that
        is not piecewise linear.
    """
    from sklearn.neural_network import MLPClassifier
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)
    refuse_overrides(estimator, where, "sklearn")
    if isinstance(estimator, MLPClassifier):
        return _read_perceptron(estimator, layers, where)
    _linear(estimator, layers, where)
    return 0.0


def logit_from(estimator: Any, cutoff: Cutoff, where: str) -> tuple[float, float]:
    r"""The logit above which a threshold predicts class 1, and a bound on its error.

    If the computed logistic function is off by at most d at probability t, the logit is off by about
    :math:`d / (t (1 - t))`.

    Raises
    ------
    Unsupported
        The classifier's probability is no logistic function of the logit, or the threshold is too near 0
        or 1.
    """
    from sklearn.linear_model import LogisticRegression, SGDClassifier
    from sklearn.neural_network import MLPClassifier

    if cutoff.on_scores:
        return cutoff.accept_scores().threshold, 0.0
    if not isinstance(estimator, LogisticRegression | MLPClassifier) and not (
        isinstance(estimator, SGDClassifier) and estimator.loss == "log_loss"
    ):
        raise refuse(
            where,
            f"{cutoff.what} on the probability of {type(estimator).__name__}",
            "one on a logistic function, or on the decision function",
        )
    if cutoff.steepness < _STEEP:
        raise refuse(where, f"{cutoff.what} {cutoff.threshold}", "probabilities between 1e-6 and 1 - 1e-6")
    unit = UNIT["float64"]
    if isinstance(estimator, MLPClassifier) and any(w.dtype == np.float32 for w in estimator.coefs_):
        unit = UNIT["float32"]
    slack = 0.25 * _SIGMOID * unit / UNIT["float64"] / cutoff.steepness
    return cutoff.accept(logistic).threshold, slack


def _linear(estimator: Any, layers: Layers, where: str) -> None:
    from sklearn.linear_model._base import LinearClassifierMixin

    if type(estimator).decision_function is not LinearClassifierMixin.decision_function:
        raise refuse(
            where, f"{type(estimator).__name__} with a decision of its own", "a linear decision_function"
        )
    weight = np.atleast_2d(_dense(estimator.coef_))
    outputs = 1 if len(estimator.classes_) <= 2 else len(estimator.classes_)
    if len(weight) != outputs or np.ndim(estimator.classes_[0]):  # several labels per row have a row each
        raise refuse(where, f"{type(estimator).__name__} with several outputs", "one output")
    bias = np.broadcast_to(_dense(estimator.intercept_).ravel(), (len(weight),))
    single = estimator.coef_.dtype == np.float32  # fitted on float32 columns, whose products are float32 then
    layers.affine(weight, bias, where, UNIT["float32" if single else "float64"])


def _read_perceptron(estimator: Any, layers: Layers, where: str) -> float:
    usual = "logistic" if len(estimator.classes_) == 2 else "softmax"
    if estimator.out_activation_ not in (usual, "logistic"):
        got = f"MLPClassifier with out_activation_ {estimator.out_activation_!r}"
        raise refuse(where, got, f"{usual}, as fit sets it")
    if estimator.out_activation_ == "logistic" and estimator.n_outputs_ > 1:
        raise refuse(
            where, f"MLPClassifier with {estimator.n_outputs_} outputs of two classes each", "one output"
        )
    if estimator.activation not in ("relu", "identity"):
        raise refuse(where, f"MLPClassifier with activation {estimator.activation}", "relu or identity")
    unit = UNIT["float32" if any(w.dtype == np.float32 for w in estimator.coefs_) else "float64"]
    last = len(estimator.coefs_) - 1
    for k, (weight, bias) in enumerate(zip(estimator.coefs_, estimator.intercepts_, strict=True)):
        layers.affine(_dense(weight).T, _dense(bias), where, unit)
        if k < last and estimator.activation == "relu":
            layers.relu(where)
    layers.close(f"a {estimator.out_activation_} function", _SIGMOID * unit / UNIT["float64"])
    return unit if estimator.out_activation_ == "softmax" else 0.0


def _dense(values: Any) -> NDArray[np.float64]:
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype=np.float64)
