"""Read a binary linear model or perceptron of scikit-learn, alone or behind scalers."""

from __future__ import annotations

from typing import Any

import numpy as np

from milp_recourse.problem.network import ReluNetwork
from milp_recourse.readers.layers import Layers
from milp_recourse.readers.linear import read_linear
from milp_recourse.readers.overrides import refuse_overrides
from milp_recourse.readers.refusal import not_fitted, refuse, require
from milp_recourse.readers.standardisation import standardised

_ALLOWED = "binary MLPClassifier or LogisticRegression, alone or last in a Pipeline of StandardScalers"


def read_sklearn(estimator: Any) -> ReluNetwork:
    r"""Read a binary classifier; scalers before it are folded into the first layer.

    Folding rounds, so the logits of the network and of the pipeline differ by float64 rounding, and near
    logit 0 the two may decide differently. The network is the model from then on. Only an estimator without
    scaler and without ``activation="identity"`` is read without any rounding.

    scikit-learn's ``predict`` answers class 1 when the logit is *above* 0 (decision function
    > 0, or float probability > 0.5); here a logit of 0 is accepted. A small acceptance margin, 1e-9 say,
    covers both this and the rounding.

    Parameters
    ----------
    estimator
        Fitted ``MLPClassifier`` (activation ``relu``, or ``identity``, whose layers are
        multiplied into one), or ``LogisticRegression``, or a ``Pipeline`` of ``StandardScaler``
        and "passthrough" steps that ends in one of them. Two classes; inputs are the columns
        it was fitted on, in that order, as float64.

    Returns
    -------
    ReluNetwork
        float64. The logit is that of ``estimator.classes_[1]``: logit >= 0 means this class.

    Raises
    ------
    Unsupported
        The estimator is of another kind, not fitted or has other than two classes; or scikit-learn is not
        installed.
    """
    require("sklearn", "read_sklearn", "sklearn")
    from sklearn.exceptions import NotFittedError

    try:
        return _read(estimator, "estimator")
    except NotFittedError as error:
        raise not_fitted("estimator") from error


def _read(estimator: Any, where: str) -> ReluNetwork:
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import check_is_fitted

    if isinstance(estimator, Pipeline):
        return _read_pipeline(estimator, where)
    if not isinstance(estimator, MLPClassifier | LogisticRegression):
        raise refuse(where, type(estimator).__name__, _ALLOWED)
    check_is_fitted(estimator)
    if len(estimator.classes_) != 2 or getattr(estimator, "n_outputs_", 1) != 1:
        got = f"{type(estimator).__name__} with {len(estimator.classes_)} classes"
        raise refuse(where, got, "two classes, one output")
    refuse_overrides(estimator, where, "sklearn")
    layers = Layers()
    read_linear(estimator, layers, where)
    return layers.network("float64")


def _read_pipeline(pipeline: Any, where: str) -> ReluNetwork:
    from sklearn.preprocessing import StandardScaler
    from sklearn.utils.validation import check_is_fitted

    refuse_overrides(pipeline, where, "sklearn")
    *before, (name, last) = pipeline.steps
    read = _read(last, f"step {name!r}")
    for name, step in reversed(before):
        if step is None or step == "passthrough":
            continue
        if type(step) is not StandardScaler:
            raise refuse(f"step {name!r}", type(step).__name__, "StandardScaler before the classifier")
        check_is_fitted(step)
        refuse_overrides(step, f"step {name!r}", "sklearn", uses=("transform",))
        mean = step.mean_ if step.with_mean else np.zeros(read.inputs)
        sd = step.scale_ if step.with_std else np.ones(read.inputs)
        read = standardised(read, mean, sd, "float64")
    return read
