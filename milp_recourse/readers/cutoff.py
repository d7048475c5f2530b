"""Thresholds that scikit-learn's wrappers put on a classifier's probability or score."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from milp_recourse.instance import Acceptance
from milp_recourse.readers.classes import plain
from milp_recourse.readers.refusal import not_fitted, refuse
from milp_recourse.readers.tree_parts import above, last_refused

Probabilities = Callable[[float], tuple[Any, Any]]
"""Both classes' probabilities at a score, in the model's own types and as it computes them."""

_FAR = 1e30
"""Scores are looked for up to here."""


@dataclass(frozen=True)
class Cutoff:
    """One of two classes is predicted where its probability or score is at least a threshold.

    Attributes
    ----------
    threshold
        In the type that is compared: numpy compares a float32 with a float64 otherwise than with a float.
    positive
        Which class, 0 or 1.
    on_scores
        Whether scores are compared: the decision function, its sign turned for class 0. Else probabilities.
    """

    threshold: Any
    positive: int
    on_scores: bool

    def second(self, probabilities: tuple[Any, Any]) -> bool:
        """Whether class 1 is predicted."""
        held = np.asarray([probabilities[self.positive]]) >= self.threshold
        return bool(held[0]) == (self.positive == 1)

    def accept(self, probabilities: Probabilities, single: bool = False) -> Acceptance:
        """The scores at which class 1 is predicted.

        Parameters
        ----------
        probabilities
            Of a score; class 1's rises with it.
        single
            Whether scores are float32.
        """
        if self.on_scores:
            return self.accept_scores()
        return above(_last_of_all(lambda score: self.second(probabilities(score)), single))

    def accept_scores(self) -> Acceptance:
        """The scores at which class 1 is predicted where scores are compared."""
        t = float(self.threshold)
        return Acceptance(t) if self.positive == 1 else above(-t)

    def last_share(self, count: int) -> float:
        """The largest sum of so many shares whose mean is below the threshold."""
        threshold = float(self.threshold)
        return _last_of_all(lambda total: total / count >= threshold, single=False)

    @property
    def steepness(self) -> float:
        """Probability per score of a logistic function where it meets the threshold."""
        t = float(self.threshold)
        return t * (1.0 - t)


def _last_of_all(rule: Callable[[float], bool], single: bool) -> float:
    """The largest score that a rising rule does not accept; an end of the range where all are alike."""
    if rule(-_FAR):
        return -_FAR
    return last_refused(rule, -_FAR, _FAR, single) if rule(_FAR) else _FAR


def logistic(score: float) -> tuple[float, float]:
    """Both classes' probabilities at a logit, in doubles."""
    try:
        second = 1.0 / (1.0 + math.exp(-score))
    except OverflowError:
        second = 0.0
    return 1.0 - second, second


def is_cutoff(model: Any) -> bool:
    """Whether a model is scikit-learn's FixedThresholdClassifier or TunedThresholdClassifierCV."""
    return _named(model, "FixedThresholdClassifier", "TunedThresholdClassifierCV")


def is_frozen(model: Any) -> bool:
    """Whether a model is scikit-learn's FrozenEstimator."""
    return _named(model, "FrozenEstimator")


def inner(model: Any, where: str) -> Any:
    """What a wrapper wraps, fitted."""
    if is_frozen(model):
        return model.estimator
    if hasattr(model, "estimator_"):
        return model.estimator_
    if _named(model, "FixedThresholdClassifier"):  # scikit-learn takes a fitted one as it is
        return model.estimator
    raise not_fitted(where)


def read_cutoff(model: Any, where: str) -> Cutoff:
    """The threshold of a wrapper.

    Raises
    ------
    Unsupported
        More than two classes, or the model is not fitted.
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
