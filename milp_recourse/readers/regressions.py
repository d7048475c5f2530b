"""Read regressions that are linear, perceptrons, or another regression with a transformed target."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.readers.boundaries import last_on_the_way
from milp_recourse.readers.layers import UNIT
from milp_recourse.readers.linear import append_perceptron, dense
from milp_recourse.readers.links import FAR, Inverse, inverse_of
from milp_recourse.readers.member import Member, regression
from milp_recourse.readers.places import Inputs, Place
from milp_recourse.readers.refusal import OR_ASK, refuse
from milp_recourse.readers.scores import TreeScore, outputs_of
from milp_recourse.readers.steps_before import run

_TRIED = 4001
"""The number of scores at which a curve is tried."""

Array = NDArray[np.float64]

Read = Callable[[Any, Place], Member]
"""The reader of whatever a model contains."""


def is_plain_regression(model: Any) -> bool:
    """Whether a model is a linear regression or an MLPRegressor of scikit-learn."""
    from sklearn import cross_decomposition, linear_model, neural_network
    from sklearn.base import is_regressor
    from sklearn.linear_model._base import LinearModel
    from sklearn.linear_model._glm.glm import _GeneralizedLinearRegressor
    from sklearn.linear_model._stochastic_gradient import BaseSGDRegressor

    kinds = (LinearModel, BaseSGDRegressor, _GeneralizedLinearRegressor, cross_decomposition.PLSRegression)
    more = (linear_model.QuantileRegressor, neural_network.MLPRegressor)
    return isinstance(model, (*kinds, *more)) and is_regressor(model)


def plain_regression(model: Any, place: Place | Inputs) -> Member:
    """A linear regression, one with a link function, or an MLPRegressor."""
    from sklearn.neural_network import MLPRegressor
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    (layers, columns), where = place.layers(), place.where
    inverse = None
    if isinstance(model, MLPRegressor):
        append_perceptron(model, layers, where)
        if model.out_activation_ not in ("identity", "exp"):
            got = f"MLPRegressor with out_activation_ {model.out_activation_!r}"
            raise refuse(where, got, "identity or exp, as fit sets it")
        inverse = Inverse(lambda raw: float(np.exp(raw))) if model.out_activation_ == "exp" else None
    else:
        if hasattr(model, "_x_mean"):  # PLSRegression takes the means off first
            mean = model._x_mean
            layers.rescale(np.ones(len(mean)), 0.0 - mean, where, UNIT["float64"], np.abs(mean))
        weight = np.atleast_2d(dense(model.coef_))
        single = model.coef_.dtype == np.float32
        bias = np.broadcast_to(dense(np.asarray(model.intercept_)).ravel(), (len(weight),))
        layers.affine(weight, bias, where, UNIT["float32" if single else "float64"])
        link = getattr(getattr(model, "_base_loss", None), "link", None)
        if link is not None and type(link).__name__ != "IdentityLink":
            inverse = inverse_of(link.inverse)
    if layers.outputs != 1:
        raise refuse(where, f"{type(model).__name__} with several outputs", "one output")
    return regression(type(model).__name__, outputs_of(layers, columns)[0], inverse)


def transformed_target(model: Any, place: Place, read: Read) -> Member:
    """A TransformedTargetRegressor: thresholds on its numbers are moved through its own inverse function.

    The inverse has to rise wherever it is defined. That is tried at 4001 scores, not proven.

    Raises
    ------
    Unsupported
        The inverse falls, or is defined nowhere.
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    where = place.where
    member = read(model.regressor_, place)
    score = member.scores[0]
    inner = member.inverse
    quick = inner is None or inner.together is not None
    before = None if inner is None else inner.together or np.vectorize(inner.function, otypes=[float])

    def own(raw: Array) -> Array:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            numbers = raw if before is None else before(raw)
            back = model.transformer_.inverse_transform(numbers.reshape(-1, 1))
        return np.asarray(back, dtype=np.float64).ravel()

    def function(raw: float) -> float:
        return float(own(np.array([raw]))[0])

    low, high = score.ends if isinstance(score, TreeScore) else (-FAR, FAR)
    rows, _ = run([*place.steps, ("model", _Predicting(model.regressor_))], place.frame.head(200))
    at = float(np.median(rows))
    if inner is not None:
        at = inner.last(lambda number: number > at)
    if math.isnan(function(at)):
        raise refuse(where, "an inverse_func that is undefined", "one that is defined where it is used")

    def defined(end: float) -> float:
        if not math.isnan(function(end)):
            return end
        many = (lambda x: ~np.isnan(own(x))) if quick else None
        return last_on_the_way(lambda x: not math.isnan(function(x)), at, end, many)

    least, most = defined(low), defined(high)
    values = own(_spread(least, at, most))
    if not (values[:-1] <= values[1:]).all():
        raise refuse(where, "an inverse_func that falls somewhere", f"one that rises, {OR_ASK}")
    single = inner is not None and inner.single
    inverse = Inverse(
        function, least, most, (least > low, most < high), single, together=own if quick else None
    )
    return regression("TransformedTargetRegressor", score, inverse)


class _Predicting:
    """A regression as the last step of a chain."""

    def __init__(self, model: Any) -> None:
        self.model = model
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_

    def transform(self, rows: Any) -> Any:
        return self.model.predict(rows)


def _spread(low: float, at: float, high: float) -> Array:
    """Numbers between the ends, denser near one of them and near 0."""
    sizes = np.logspace(-30, 30, _TRIED)
    tried = np.concatenate([at + sizes, at - sizes, sizes, -sizes, [0.0, at, low, high]])
    return np.unique(tried[(tried >= low) & (tried <= high)])
