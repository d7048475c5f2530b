"""Read naive Bayes classifiers whose log probabilities are linear, or sums of one table per column."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.readers.classes import classes_of
from milp_recourse.readers.formulas import by_largest
from milp_recourse.readers.layers import UNIT
from milp_recourse.readers.member import Member
from milp_recourse.readers.places import Place
from milp_recourse.readers.scores import Score, TreeScore, outputs_of
from milp_recourse.readers.tree_parts import ReadTree, lookup_tree

Array = NDArray[np.float64]


def is_naive_bayes(model: Any) -> bool:
    """Whether a model is one of scikit-learn's for counts, truth values or categories."""
    from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, MultinomialNB

    return isinstance(model, BernoulliNB | CategoricalNB | ComplementNB | MultinomialNB)


def naive_bayes(model: Any, place: Place) -> Member:
    """MultinomialNB and ComplementNB are linear; BernoulliNB and CategoricalNB have a table per column."""
    from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    classes = classes_of(model)
    prior = np.zeros(len(classes)) if isinstance(model, ComplementNB) else np.asarray(model.class_log_prior_)
    scores: tuple[Score, ...]
    if isinstance(model, CategoricalNB):
        tables = [np.asarray(one) for one in model.feature_log_prob_]
        cuts = [np.nextafter(np.arange(1.0, t.shape[1]), 0.0) for t in tables]  # decimals are cut off
        scores = _sums(place, prior, cuts, tables)
    elif isinstance(model, BernoulliNB) and model.binarize is not None:
        absent = np.log(1 - np.exp(model.feature_log_prob_))
        tables = [np.stack([0.0 * gain, gain], axis=1) for gain in (model.feature_log_prob_ - absent).T]
        scores = _sums(place, prior + absent.sum(axis=1), [[float(model.binarize)]] * len(tables), tables)
    else:
        weight = np.asarray(model.feature_log_prob_)
        if isinstance(model, BernoulliNB):
            absent = np.log(1 - np.exp(weight))
            weight, prior = weight - absent, prior + absent.sum(axis=1)
        layers, columns = place.layers()
        layers.affine(weight, prior, place.where, UNIT["float64"])
        scores = outputs_of(layers, columns)
    return Member(type(model).__name__, classes, scores, by_largest(len(classes)))


def _sums(place: Place, prior: Array, cuts: Any, tables: list[Array]) -> tuple[TreeScore, ...]:
    """Per class the sum of its prior and of a number for every column."""
    found = []
    for k, base in enumerate(prior.tolist()):
        trees = (
            ReadTree(lookup_tree([(place.columns[c], cuts[c])], table[k])) for c, table in enumerate(tables)
        )
        found.append(TreeScore(tuple(trees), base))
    return tuple(found)
