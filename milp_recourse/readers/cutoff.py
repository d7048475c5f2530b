"""Thresholds that scikit-learn's wrappers put on a classifier's probability or score."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from milp_recourse.problem.instance import Acceptance
from milp_recourse.readers.classes import plain
from milp_recourse.readers.refusal import not_fitted, refuse
from milp_recourse.readers.tree_parts import above


@dataclass(frozen=True)
class Cutoff:
    """The rule that class ``positive`` is predicted if its probability or score is at least a threshold.

    Attributes
    ----------
    threshold
        The threshold in its own type, because numpy compares float32 numbers with a float64 in another way
        than with a Python float.
    positive
        The class to which the rule applies, 0 or 1.
    on_scores
        Whether scores are compared instead of probabilities: the decision function, negated for class 0.
    what
        What it is called in messages.
    """

    threshold: Any
    positive: int
    on_scores: bool
    what: str = "a threshold"

    def second(self, probabilities: tuple[Any, Any]) -> bool:
        """Whether class 1 is predicted."""
        held = np.asarray([probabilities[self.positive]]) >= self.threshold
        return bool(held[0]) == (self.positive == 1)

    def accept_scores(self) -> Acceptance:
        """The scores at which class 1 is predicted, if the threshold is one of scores."""
        t = float(self.threshold)
        return Acceptance(t) if self.positive == 1 else above(-t)

    @property
    def steepness(self) -> float:
        """The derivative of the logistic function at the score where it equals the threshold."""
        t = float(self.threshold)
        return t * (1.0 - t)


def is_cutoff(model: Any) -> bool:
    """Whether a model is scikit-learn's FixedThresholdClassifier or TunedThresholdClassifierCV."""
    return _named(model, "FixedThresholdClassifier", "TunedThresholdClassifierCV")


def is_frozen(model: Any) -> bool:
    """Whether a model is scikit-learn's FrozenEstimator."""
    return _named(model, "FrozenEstimator")


def inner(model: Any, where: str) -> Any:
    """The fitted estimator inside a wrapper."""
    if is_frozen(model):
        return model.estimator
    if hasattr(model, "estimator_"):
        return model.estimator_
    if _named(model, "FixedThresholdClassifier"):  # it also predicts unfitted, with a fitted estimator
        return model.estimator
    raise not_fitted(where)


def read_cutoff(model: Any, where: str) -> Cutoff:
    """The threshold of a wrapper.

    Raises
    ------
    Unsupported
        The model is not fitted, has other than two classes, or its label or threshold is unknown.
    """
    within = inner(model, where)
    classes = [plain(c) for c in getattr(within, "classes_", ())]
    if len(classes) != 2:
        raise refuse(where, f"a threshold over {len(classes)} classes", "two classes")
    on_scores = model.response_method == "decision_function" or (
        model.response_method == "auto" and not hasattr(within, "predict_proba")
    )
    if _named(model, "FixedThresholdClassifier"):
        label, threshold = model.pos_label, model.threshold
        if isinstance(threshold, str):  # "auto"
            threshold = 0.0 if on_scores else 0.5
    else:
        label, threshold = model._curve_scorer._get_pos_label(), model.best_threshold_
    if label is not None and plain(label) not in classes:
        raise refuse(where, f"pos_label {label!r}", f"one of {classes}")
    positive = 1 if label is None else classes.index(plain(label))
    if not math.isfinite(threshold):
        raise refuse(where, f"threshold {threshold}", "a finite number")
    return Cutoff(threshold, positive, on_scores)


def _named(model: Any, *names: str) -> bool:
    own = type(model)
    return own.__module__.startswith("sklearn.") and own.__name__ in names
