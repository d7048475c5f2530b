"""Read Bayes classifiers: their log probabilities are linear, sums of one table per column, or squares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.derived_networks import along_the_diagonal
from milp_recourse.readers.classes import classes_of
from milp_recourse.readers.formulas import by_largest, by_margin
from milp_recourse.readers.layers import UNIT, Layers
from milp_recourse.readers.links import Link, logistic
from milp_recourse.readers.member import Member
from milp_recourse.readers.places import Place
from milp_recourse.readers.scores import Score, TreeScore, outputs_of
from milp_recourse.readers.tree_parts import ReadTree, lookup_tree

Array = NDArray[np.float64]


def is_naive_bayes(model: Any) -> bool:
    """Whether a model is one of scikit-learn's for counts, truth values or categories, or a Gaussian one."""
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
    from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB

    kinds = BernoulliNB | CategoricalNB | ComplementNB | MultinomialNB | GaussianNB
    return isinstance(model, kinds | QuadraticDiscriminantAnalysis)


def naive_bayes(model: Any, place: Place) -> Member:
    """MultinomialNB and ComplementNB are linear; BernoulliNB and CategoricalNB have a table per column;
    GaussianNB has squares of columns, and QuadraticDiscriminantAnalysis of their sums."""
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
    from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    classes = classes_of(model)
    if isinstance(model, GaussianNB | QuadraticDiscriminantAnalysis):
        return _quadratic(model, place, classes)
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


def _quadratic(model: Any, place: Place, classes: tuple[object, ...]) -> Member:
    """A Gaussian model; of two classes by the difference of their log probabilities."""
    layers, columns = place.layers()
    name = type(model).__name__
    append = _squares_of_columns if name == "GaussianNB" else _squares_of_sums
    append(model, layers, place.where)
    if len(classes) > 2:
        unit = UNIT["float64"]
        return Member(name, classes, outputs_of(layers, columns), by_largest(len(classes)), softmax=unit)
    layers.affine([[-1.0, 1.0]], [0.0], place.where)
    scores, link = outputs_of(layers, columns), Link(logistic, logistic=(1.0, 0.0), unit=UNIT["float64"])
    return Member(name, classes, scores, by_margin(), link=link, measure="log odds")


def _squares_of_columns(model: Any, layers: Layers, where: str) -> None:
    r"""GaussianNB: :math:`\log p_c - \sum_j (\log(2 \pi v_{cj}) + (x_j - t_{cj})^2 / v_{cj}) / 2`.

    With u = x - m about the means' middle m, all classes share the square :math:`u^2` of a column:
    :math:`(x - t)^2 = u^2 - 2 (t - m) u + (t - m)^2`. The model rounds terms that are not larger.
    """
    middle, share = model.theta_.mean(axis=0), -0.5 / model.var_
    count, off, prior = len(middle), model.theta_ - middle, np.log(model.class_prior_)
    eye = np.eye(count)
    layers.affine(np.vstack([eye, eye]), -np.tile(middle, 2), where, _ROUGH)
    layers.bend(("square",) * count + ("identity",) * count, where)
    logs = np.log(2.0 * np.pi * model.var_)
    constant = prior - 0.5 * logs.sum(axis=1) + (share * off**2).sum(axis=1)
    size = np.abs(prior) + np.abs(logs).sum(axis=1) + np.abs(share * off**2).sum(axis=1)
    layers.affine(np.hstack([share, -2.0 * share * off]), constant, where, _ROUGH, size)


def _squares_of_sums(model: Any, layers: Layers, where: str) -> None:
    r"""QuadraticDiscriminantAnalysis: :math:`\log p_c - (|W_c (x - t_c)|^2 + \log \det_c) / 2`."""
    turned = [(r * s ** (-0.5)).T for r, s in zip(model.rotations_, model.scalings_, strict=True)]
    weight, means = np.vstack(turned), np.repeat(model.means_, [len(w) for w in turned], axis=0)
    layers.affine(weight, -(weight * means).sum(axis=1), where, _ROUGH, np.abs(weight * means).sum(axis=1))
    layers.bend(("square",) * len(weight), where)
    logs = np.array([np.log(s).sum() for s in model.scalings_])
    size = np.array([np.abs(np.log(s)).sum() for s in model.scalings_]) + np.abs(np.log(model.priors_))
    halves = along_the_diagonal([np.full((1, len(w)), -0.5) for w in turned])
    layers.affine(halves, np.log(model.priors_) - 0.5 * logs, where, _ROUGH, size)


_ROUGH = 8.0 * UNIT["float64"]
"""More than the unit roundoff, because the coefficients here are computed, too."""


def _sums(place: Place, prior: Array, cuts: Any, tables: list[Array]) -> tuple[TreeScore, ...]:
    """Per class the sum of its prior and of a number for every column."""
    found = []
    for k, base in enumerate(prior.tolist()):
        trees = (
            ReadTree(lookup_tree([(place.columns[c], cuts[c])], table[k])) for c, table in enumerate(tables)
        )
        found.append(TreeScore(tuple(trees), base))
    return tuple(found)
