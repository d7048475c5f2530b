r"""Acceptance by probability: predict_proba of the wanted class is at least a number c.

============================================  ==========================================================
model                                         read as
============================================  ==========================================================
two classes: logistic and linear models,      the logit is at least log(c / (1 - c))
MLPClassifier
two classes: boosting                         the raw score from which the library's own function reaches c
trees and forests, any number of classes      the sum of the trees' probabilities, as the library divides it
three to five classes: LogisticRegression,    the log odds :math:`-\log \sum_j e^{z_j - z_k}` are at least
MLPClassifier                                 log(c / (1 - c)): a network that is nowhere above them is taken
                                              (:mod:`milp_recourse.problem.log_sum_exp`)
============================================  ==========================================================

With more than two classes c must be above 1/2, so that the wanted class is predicted, too. Boosting of more
than two classes is refused: its probability is no function of sums of leaves that searches of trees take.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from milp_recourse.errors import BadInput
from milp_recourse.readers.classes import Target
from milp_recourse.readers.cutoff import Cutoff
from milp_recourse.readers.layers import Layers
from milp_recourse.readers.refusal import refuse
from milp_recourse.readers.tree_parts import TreeDecision

MOST_CLASSES = 5
"""Of a softmax: more of them take very large networks."""

_OR_MARGIN = "or margin, the log of the odds against each other class"


def check_confidence(confidence: float | None, final: Any, target: Target, classes: Sequence[object]) -> None:
    """Check that a probability of the wanted class can be asked for.

    Raises
    ------
    Unsupported
        The model has no predict_proba.
    BadInput
        Any class but one is wanted, of more than two; or of these c is not above 1/2.
    """
    if confidence is None:
        return
    if not hasattr(final, "predict_proba"):
        got = f"{type(final).__name__}, which has no predict_proba"
        raise refuse("confidence", got, "a classifier with predict_proba, or margin")
    if len(classes) > 2 and not target.wanted:
        raise BadInput("confidence", f"{confidence} with desired {target.words}", "one desired class")
    if len(classes) > 2 and not confidence > 0.5:
        raise BadInput("confidence", confidence, "above 0.5 with more than two classes")


def cutoff_at(confidence: float, target: Target) -> Cutoff:
    """The rule that the wanted class's probability is at least c, compared in doubles."""
    return Cutoff(np.float64(confidence), target.index, on_scores=False, what="confidence")


def at_confidence(
    decide: Callable[[Cutoff | None], TreeDecision],
    cutoff: Cutoff | None,
    confidence: float | None,
    target: Target,
) -> TreeDecision:
    """The decision of trees by their own rule and by the probability of the wanted class, if one is asked
    for.

    Parameters
    ----------
    decide
        The decision with a threshold, or with the model's own rule.
    """
    own = decide(cutoff)
    if confidence is None:
        return own
    sure = decide(cutoff_at(confidence, target))
    if sure.ensemble.aggregate == own.ensemble.aggregate and len(own.ensemble.parts) == 0:
        return max(own, sure, key=lambda one: one.accept.above)
    return sure if confidence > 0.5 else own  # of a forest: what is predicted has the probability 1/2


def choose_odds(layers: Layers, target: Target, final: Any, classes: int, confidence: float) -> float:
    """Turn a softmax's logits into log odds of the wanted class; returns the least that are accepted.

    Raises
    ------
    Unsupported
        The model's probabilities are no softmax, or of more classes than :data:`MOST_CLASSES`.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    softmax = isinstance(final, LogisticRegression | MLPClassifier)
    one_by_one = getattr(final, "multi_class", None) == "ovr" or getattr(final, "solver", "") == "liblinear"
    if not softmax or one_by_one:
        got = f"{type(final).__name__} with {classes} classes, whose probabilities are no softmax"
        raise refuse("confidence", got, f"a softmax, a forest, {_OR_MARGIN}")
    if classes > MOST_CLASSES:
        got = f"{type(final).__name__} with {classes} classes"
        raise refuse("confidence", got, f"at most {MOST_CLASSES}, a forest, {_OR_MARGIN}")
    if not 1e-6 <= confidence <= 1.0 - 1e-6:
        raise refuse("confidence", str(confidence), "probabilities between 1e-6 and 1 - 1e-6")
    rows = np.delete(np.eye(classes), target.index, axis=0)
    rows[:, target.index] = -1.0
    layers.choose_odds(rows)
    odds = math.log(confidence / (1.0 - confidence))
    return odds + 2.0**-48 * (1.0 + abs(odds))


def refuse_boosting(name: str, classes: int) -> Exception:
    """The error for boosting of several classes."""
    return refuse(
        "confidence", f"{name} with {classes} classes", f"two classes, a forest, a linear model, {_OR_MARGIN}"
    )
