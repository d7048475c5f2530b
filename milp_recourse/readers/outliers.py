"""Read detectors of outliers; their classes are -1 for outliers and 1 for the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from milp_recourse.readers.formulas import by_margin
from milp_recourse.readers.from_sklearn_trees import tree_of
from milp_recourse.readers.layers import UNIT
from milp_recourse.readers.linear import dense
from milp_recourse.readers.links import last_of_all
from milp_recourse.readers.member import Member
from milp_recourse.readers.places import Place
from milp_recourse.readers.scores import TreeScore, outputs_of
from milp_recourse.readers.tree_parts import ReadTree

_CLASSES = (-1, 1)


def is_outlier_detector(model: Any) -> bool:
    """Whether a model is an IsolationForest or a SGDOneClassSVM."""
    from sklearn.ensemble import IsolationForest
    from sklearn.linear_model import SGDOneClassSVM

    return isinstance(model, IsolationForest | SGDOneClassSVM)


def outlier_detector(model: Any, place: Place) -> Member:
    """An IsolationForest or a SGDOneClassSVM."""
    from sklearn.ensemble import IsolationForest
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    if isinstance(model, IsolationForest):
        return _isolation_forest(model, place)
    layers, columns = place.layers()
    layers.affine(np.atleast_2d(dense(model.coef_)), -np.ravel(model.offset_), place.where, UNIT["float64"])
    scores = outputs_of(layers, columns)
    return Member("SGDOneClassSVM", _CLASSES, scores, by_margin(strict=False), scores)


def _isolation_forest(model: Any, place: Place) -> Member:
    """The depths of the trees add up in order; the score that is compared with the offset rises with them."""
    trees: list[ReadTree] = []
    for k, (one, features) in enumerate(zip(model.estimators_, model.estimators_features_, strict=True)):
        depth = model._decision_path_lengths[k] + model._average_path_length_per_tree[k] - 1.0
        tree = ReadTree(tree_of(one.tree_, depth, not place.sparse))
        trees += TreeScore((tree,)).at(place.pick(features, place.where).columns).trees
    score = TreeScore(tuple(trees), 0.0, "float32")
    scale = len(trees) * _average_path_length(model)

    def normal(depths: float) -> bool:
        value = -(2 ** (-np.divide(np.array([depths]), scale)))
        return bool((value - model.offset_ >= 0)[0])

    return Member("IsolationForest", _CLASSES, (score,), by_margin(last_of_all(normal, single=False)))


def _average_path_length(model: Any) -> Any:
    from sklearn.ensemble._iforest import _average_path_length

    return _average_path_length([model._max_samples])
