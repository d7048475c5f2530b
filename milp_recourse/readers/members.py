"""Any fitted model as a :class:`~milp_recourse.readers.member.Member`: which reader reads it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from milp_recourse.readers.calibration import calibrated, is_calibrated
from milp_recourse.readers.categories import has_own_categories, native_labels
from milp_recourse.readers.cutoff import inner, is_cutoff, read_cutoff
from milp_recourse.readers.ensembles import is_ensemble, read_ensemble
from milp_recourse.readers.from_catboost import catboost_member, is_catboost
from milp_recourse.readers.from_interpret import interpret_member, is_interpret
from milp_recourse.readers.from_lightgbm import is_lightgbm, lightgbm_member
from milp_recourse.readers.from_sklearn_trees import (
    is_sklearn_trees,
    sklearn_regression,
    sklearn_trees_member,
)
from milp_recourse.readers.from_xgboost import is_xgboost, xgboost_member
from milp_recourse.readers.linear import is_linear, linear_member
from milp_recourse.readers.member import Member
from milp_recourse.readers.naive_bayes import is_naive_bayes, naive_bayes
from milp_recourse.readers.outliers import is_outlier_detector, outlier_detector
from milp_recourse.readers.overrides import refuse_overrides
from milp_recourse.readers.places import Place
from milp_recourse.readers.refusal import OR_ASK, not_fitted, refuse, require
from milp_recourse.readers.regressions import is_plain_regression, plain_regression, transformed_target
from milp_recourse.readers.scores import TreeScore
from milp_recourse.readers.support_vectors import is_support_vectors, support_vectors
from milp_recourse.readers.wrappers import contained

ALLOWED = (
    "linear models, MLPs, trees and boosting of scikit-learn, XGBoost, LightGBM, CatBoost or "
    "interpret, what scikit-learn and imbalanced-learn make of these, a torch module, or an ONNX model"
)


def read_member(model: Any, place: Place, uses: Sequence[str] = ("predict",)) -> Member:
    """Read a fitted model, or a part of one.

    Parameters
    ----------
    model
        The model. Pipelines, searches and wrappers are replaced by what they contain.
    place
        Where its columns come from.
    uses
        The methods by which it is asked.

    Raises
    ------
    Unsupported
        It cannot be read; the message says what to do.
    """
    if is_xgboost(model) or is_lightgbm(model):
        return _boosted(model, place)
    if is_catboost(model):
        return catboost_member(model, place)
    if is_interpret(model):
        return interpret_member(model, place)
    require("sklearn", "read_model", "sklearn")
    from sklearn.exceptions import NotFittedError

    try:
        return _of_sklearn(model, place, uses)
    except NotFittedError as error:
        raise not_fitted(place.where) from error


def _boosted(model: Any, place: Place) -> Member:
    """A model of XGBoost or LightGBM."""
    read = xgboost_member if is_xgboost(model) else lightgbm_member
    if place.steps and has_own_categories(model):
        raise refuse(
            place.where,
            f"{type(model).__name__} on pandas categories behind a transformer",
            "categories without a transformer, or labels behind OneHotEncoder or OrdinalEncoder",
        )
    member = read(model, place)
    if not place.steps:
        split = {
            place.columns.index(int(one.tree.feature[node]))
            for score in member.scores
            if isinstance(score, TreeScore)
            for one in score.trees
            for node in one.splits
        }
        place.chains.code(native_labels(model, split, place.chains.names, place.chains.X), place)
    return member


def _of_sklearn(model: Any, place: Place, uses: Sequence[str]) -> Member:
    allowed = f"{ALLOWED}; {OR_ASK}"
    within = contained(model, place, uses, allowed)
    if within is not None:
        return read_member(*within, uses)
    if is_cutoff(model):
        refuse_overrides(model, place.where, "sklearn", uses=uses)
        return _with_threshold(model, place)
    if type(model).__name__ == "TransformedTargetRegressor" and hasattr(model, "regressor_"):
        refuse_overrides(model, place.where, "sklearn", uses=uses)
        return transformed_target(model, place, read_member)
    if is_ensemble(model) or is_calibrated(model):
        refuse_overrides(model, place.where, "sklearn", uses=uses)
        return (read_ensemble if is_ensemble(model) else calibrated)(model, place, read_member)
    for known, read in _READERS:
        if known(model):
            refuse_overrides(model, place.where, "sklearn", uses=uses)
            return read(model, place)
    name = type(model).__name__
    why, nearest = _NEAREST.get(name, ("", ""))
    raise refuse(
        place.where, f"{name}, {why}" if why else name, f"{nearest}, {OR_ASK}" if nearest else allowed
    )


_QUADRATIC = "whose decision is quadratic", "LinearDiscriminantAnalysis or LogisticRegression"
_NEIGHBOURS = "which compares a row with the rows of the fit", "a forest or boosting"
_GAUSSIAN = "whose decision is a sum of curves", "boosting, or a support vector machine with kernel='linear'"
_OUTPUTS = "which has several outputs", "a model with one output"
_NEAREST: dict[str, tuple[str, str]] = {
    "EllipticEnvelope": (_QUADRATIC[0], "IsolationForest or OneClassSVM(kernel='linear')"),
    "LocalOutlierFactor": (_NEIGHBOURS[0], "IsolationForest"),
    "NearestCentroid": (_NEIGHBOURS[0], "LinearDiscriminantAnalysis"),
    "KNeighborsClassifier": _NEIGHBOURS,
    "RadiusNeighborsClassifier": _NEIGHBOURS,
    "KNeighborsRegressor": _NEIGHBOURS,
    "RadiusNeighborsRegressor": _NEIGHBOURS,
    "LabelPropagation": _NEIGHBOURS,
    "LabelSpreading": _NEIGHBOURS,
    "GaussianProcessClassifier": _GAUSSIAN,
    "GaussianProcessRegressor": _GAUSSIAN,
    "KernelRidge": (_GAUSSIAN[0], "Ridge, or SVR(kernel='linear')"),
    "AdaBoostRegressor": ("which predicts a weighted median", "GradientBoostingRegressor"),
    "IsotonicRegression": ("which takes one column alone", "a tree"),
    "DummyClassifier": ("which predicts the same for everybody", "a fitted classifier"),
    "DummyRegressor": ("which predicts the same for everybody", "a fitted regression"),
    "OneVsOneClassifier": ("a vote of pairs", "the model itself, which takes several classes"),
    "OutputCodeClassifier": ("a vote of codes", "the model itself, which takes several classes"),
    "MultiOutputClassifier": _OUTPUTS,
    "MultiOutputRegressor": _OUTPUTS,
    "ClassifierChain": _OUTPUTS,
    "RegressorChain": _OUTPUTS,
}
"""Why a model is not read, and the nearest that is."""


def _trees(model: Any, place: Place) -> Member:
    return (sklearn_trees_member if hasattr(model, "predict_proba") else sklearn_regression)(model, place)


_READERS: tuple[tuple[Callable[[Any], bool], Callable[[Any, Place], Member]], ...] = (
    (is_sklearn_trees, _trees),
    (is_linear, linear_member),
    (is_support_vectors, support_vectors),
    (is_outlier_detector, outlier_detector),
    (is_naive_bayes, naive_bayes),
    (is_plain_regression, plain_regression),
)


def _with_threshold(model: Any, place: Place) -> Member:
    within = inner(model, place.where)
    cutoff = read_cutoff(model, place.where)
    asked = "decision_function" if cutoff.on_scores else "predict_proba"
    return read_member(within, place, (asked,)).with_cutoff(cutoff, place.where)
