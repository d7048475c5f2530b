r"""Read CalibratedClassifierCV.

A single calibrated model decides where its score passes a threshold, since a calibrator never falls (or never
rises). Several are averaged. That is exact where the calibrated probability is a function of a single tree,
whose leaves it maps, or an isotonic calibrator of a linear model or network, which is piecewise linear.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.readers.classes import classes_of
from milp_recourse.readers.ensembles import Read, all_exact, averaged
from milp_recourse.readers.formulas import by_largest, by_margin
from milp_recourse.readers.layers import UNIT
from milp_recourse.readers.links import Link, link_of
from milp_recourse.readers.member import Member
from milp_recourse.readers.places import Place
from milp_recourse.readers.refusal import OR_ASK, refuse
from milp_recourse.readers.scores import NetworkScore, Score, TreeScore, side_by_side, weighted

Array = NDArray[np.float64]


def is_calibrated(model: Any) -> bool:
    """Whether a model is scikit-learn's CalibratedClassifierCV."""
    from sklearn.calibration import CalibratedClassifierCV

    return isinstance(model, CalibratedClassifierCV)


def calibrated(model: Any, place: Place, read: Read) -> Member:
    """Read a CalibratedClassifierCV.

    Raises
    ------
    Unsupported
        The model inside cannot be read, or several are averaged whose calibrated probabilities are curves.
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    classes = classes_of(model)
    members = [
        _Calibrated(one, classes, replace(place, where=f"{place.where} member {k}"), read).member()
        for k, one in enumerate(model.calibrated_classifiers_)
    ]
    if len(members) == 1:
        return members[0]
    return averaged("CalibratedClassifierCV", classes, members, [1.0] * len(members), place.where)


class _Calibrated:
    """One calibrated model: the scores of the model inside, and the calibrators' own code."""

    def __init__(self, one: Any, classes: tuple[object, ...], place: Place, read: Read) -> None:
        self.one, self.classes, self.where = one, classes, place.where
        self.on_scores = hasattr(one.estimator, "decision_function")
        method = "decision_function" if self.on_scores else "predict_proba"
        inner = read(one.estimator, place, (method,))
        if len(inner.classes) != len(classes):
            got = f"a fold with {len(inner.classes)} of {len(classes)} classes"
            raise refuse(self.where, got, "all classes in every fold")
        self.name = f"CalibratedClassifierCV of {inner.name}"
        self.curve: Link | None = None  # from the score to what is calibrated
        found = inner.decision if self.on_scores else inner.shares
        if found is None and inner.link is not None and not inner.near and not self.on_scores:
            found, self.curve = inner.scores, inner.link
        elif found is None:
            raise refuse(self.where, f"{inner.name}, whose {method} is a curve", f"ensemble=False, {OR_ASK}")
        shares_of_two = self.curve is None and not self.on_scores and len(classes) == 2
        self.scores = found[-1:] if shares_of_two else found

    def member(self) -> Member:
        """The model as one that decides by itself."""
        shares, linear = self._of_one_tree(), self._piecewise_linear()
        if len(self.classes) == 2:
            return self._of_two(shares or linear)
        count = len(self.classes)
        if self.one.method == "temperature":
            soft = tuple(map(_softened, self.scores))
            return Member(self.name, self.classes, soft, by_largest(count, all_exact(soft)), shares=shares)
        compared = shares or linear
        if compared is None:
            allowed = f"method='temperature' with ensemble=False, or two classes, {OR_ASK}"
            raise refuse(self.where, f"calibrated curves of {count} classes", allowed)
        return Member(self.name, self.classes, compared, by_largest(count), shares=shares)

    def _of_two(self, shares: tuple[Score, ...] | None) -> Member:
        calibrator = self.one.calibrators[0]
        falls = self.one.method == "sigmoid" and calibrator.a_ > 0
        falls = falls or (self.one.method == "isotonic" and not calibrator.increasing_)
        score = weighted(self.scores, [-1.0], 0.0, self.where) if falls else self.scores[0]
        sign = -1.0 if falls else 1.0

        def rows(scores: Array) -> Array:
            answered = sign * scores if self.curve is None else self.curve.seconds(sign * scores)
            if self.one.method == "temperature" and not self.on_scores:
                answered = np.clip(answered, 0.0, 1.0)  # it takes logarithms of probabilities
            return self.probabilities(answered[:, None])

        def second(p: tuple[Any, Any]) -> bool:
            return bool(p[1] > p[0])

        steep = None
        if self.one.method == "sigmoid" and self.curve is None and calibrator.a_ != 0:
            steep = abs(float(calibrator.a_)), 0.0 - float(calibrator.b_)
        link = link_of(rows, logistic=steep)
        slack = (0.0, 0.0) if isinstance(score, TreeScore) else link.slack(second)
        rule = by_margin(link.threshold(second), slack=slack)
        return Member(self.name, self.classes, (score,), rule, shares=shares, link=link)

    def probabilities(self, answers: Array) -> Array:
        """The calibrated probabilities, by scikit-learn's own code, of the answers of the model inside.

        Parameters
        ----------
        answers
            Shape (rows, 1) for two classes, else (rows, classes).
        """
        own = copy(self.one)
        own.estimator = _answering(self.one.estimator.classes_, answers, self.on_scores)
        return np.asarray(own.predict_proba(np.zeros((len(answers), 1))), dtype=np.float64)

    def _of_one_tree(self) -> tuple[Score, ...] | None:
        """The probabilities of every class, where all answers are leaves of the same tree."""
        trees = [s for s in self.scores if isinstance(s, TreeScore) and len(s.trees) == 1 and not s.unsure]
        if len(trees) < len(self.scores) or any(
            not np.array_equal(s.trees[0].tree.left, trees[0].trees[0].tree.left) for s in trees
        ):
            return None
        (first,) = trees[0].trees
        leaf = first.tree.left == -1
        answers = np.stack([s.leaf_sums for s in trees], axis=1)[leaf]
        if self.curve is not None:
            answers = np.vectorize(self.curve.second, otypes=[float])(answers)
        values = np.zeros((len(leaf), len(self.classes)))
        values[leaf] = self.probabilities(answers)
        made = (replace(first, tree=replace(first.tree, value=column)) for column in values.T.copy())
        return tuple(TreeScore((tree,), 0.0, trees[0].dtype) for tree in made)

    def _piecewise_linear(self) -> tuple[Score, ...] | None:
        """The probabilities of an isotonic calibrator of a network; of several classes before the division by
        their sum, which does not change which is the largest."""
        nets = [s for s in self.scores if isinstance(s, NetworkScore)]
        if self.one.method != "isotonic" or self.curve is not None or len(nets) < len(self.scores):
            return None
        second = [_interpolated(s, c, self.where) for s, c in zip(nets, self.one.calibrators, strict=True)]
        if len(self.classes) > 2:
            return tuple(second)
        return weighted(second, [-1.0], 1.0, self.where), second[0]


def _softened(score: Score) -> Score:
    """The score as one that a softmax compares."""
    return replace(score, softmax_unit=UNIT["float64"]) if isinstance(score, NetworkScore) else score


def _interpolated(score: NetworkScore, calibrator: Any, where: str) -> NetworkScore:
    """An isotonic calibrator of a score: a sum of ReLUs, one for each knot."""
    knots = calibrator.X_thresholds_, calibrator.y_thresholds_
    x, y = (np.asarray(ends, dtype=np.float64) for ends in knots)
    (only,) = side_by_side([score])
    layers, count = only.layers, len(x)
    row = np.zeros((count, layers.outputs or 0))
    row[:, only.output] = 1.0
    layers.affine(row, -x, where, UNIT["float64"])
    layers.relu(where)
    slopes = np.concatenate([[0.0], np.diff(y) / np.diff(x), [0.0]])
    layers.affine(np.diff(slopes)[None], y[:1], where, UNIT["float64"])
    return NetworkScore(layers, 0, only.columns)


def _answering(classes: Any, answers: Array, on_scores: bool) -> Any:
    """A classifier that gives these answers, whatever it is asked."""
    from sklearn.base import BaseEstimator, ClassifierMixin

    two = answers.shape[1] == 1

    def decision_function(self: Any, rows: Any) -> Array:
        return answers[:, 0] if two else answers

    def predict_proba(self: Any, rows: Any) -> Array:
        return np.hstack([1.0 - answers, answers]) if two else answers

    method = decision_function if on_scores else predict_proba
    names = {"__sklearn_is_fitted__": lambda self: True, "classes_": classes, method.__name__: method}
    return type("Answering", (ClassifierMixin, BaseEstimator), names)()
