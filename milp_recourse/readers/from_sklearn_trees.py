"""Read scikit-learn's trees, bit for bit.

==============================  ===========  =========  ========  ================================
classifier                      compares     sum        base      second class is predicted when
==============================  ===========  =========  ========  ================================
decision tree, forests          float32 <=   mean, f64  0         p_1 > p_0
GradientBoostingClassifier      float32 <=   sum, f64   prior     sum >= 0
HistGradientBoostingClassifier  float64 <=   sum, f64   baseline  sum > 0
==============================  ===========  =========  ========  ================================

With more than two classes there is one such sum per class, and the first class with the largest is predicted.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.forest import Aggregate, Tree, TreeEnsemble
from milp_recourse.readers.classes import classes_of
from milp_recourse.readers.formulas import by_half, by_largest, by_margin
from milp_recourse.readers.links import Inverse, inverse_of, link_of
from milp_recourse.readers.member import Member, regression
from milp_recourse.readers.overrides import refuse_overrides
from milp_recourse.readers.places import Place
from milp_recourse.readers.refusal import not_fitted, refuse, require
from milp_recourse.readers.scores import TreeScore, adds_exactly
from milp_recourse.readers.tree_parts import LARGEST, CategorySplit, ReadTree, checked, numbers_only

_SKLEARN = (
    "DecisionTreeClassifier, ExtraTreeClassifier, RandomForestClassifier, ExtraTreesClassifier, "
    "GradientBoostingClassifier or HistGradientBoostingClassifier"
)


def read_sklearn_trees(estimator: Any) -> TreeEnsemble:
    """Read a fitted scikit-learn classifier made of trees.

    Parameters
    ----------
    estimator
        A decision tree, random forest, extra trees, gradient boosting or histogram gradient boosting, two
        classes, one output. Gradient boosting with an ``init`` of its own is refused.

    Returns
    -------
    TreeEnsemble
        Its score is ``predict_proba(x)[:, 1]``, or for boosting ``decision_function(x)``, bit for bit. Where
        the estimator takes missing values, the trees hold its rule for them.

    Raises
    ------
    Unsupported
        The estimator is of another kind, not fitted, or has other than two classes, several outputs, an
        ``init`` of its own or splits on categories; or scikit-learn is not installed.
    """
    require("sklearn", "read_sklearn_trees", "sklearn")
    _supported(estimator)
    if len(estimator.classes_) != 2:
        raise refuse(
            "estimator", f"classes {estimator.classes_}", "two classes, or read_model with the wanted one"
        )
    if _boosts(estimator):
        return numbers_only(*_boosted(estimator)[0].ensemble(int(estimator.n_features_in_)))
    members = _members(estimator)
    return _mean(estimator, members, [m.tree_.value[:, 0, 1] for m in members])


def is_sklearn_trees(estimator: Any) -> bool:
    """Whether the estimator is a classifier or a regression made of trees that this file reads."""
    from sklearn import ensemble, tree

    forests = (ensemble._forest.ForestClassifier, ensemble._forest.ForestRegressor)
    return _boosts(estimator) or isinstance(
        estimator, (tree.DecisionTreeClassifier, tree.DecisionTreeRegressor, *forests)
    )


def _boosts(estimator: Any) -> bool:
    from sklearn import ensemble

    plain = (ensemble.GradientBoostingClassifier, ensemble.GradientBoostingRegressor)
    histograms = (ensemble.HistGradientBoostingClassifier, ensemble.HistGradientBoostingRegressor)
    return isinstance(estimator, (*plain, *histograms))


def _members(estimator: Any) -> Sequence[Any]:
    """The trees of a forest, or the one tree."""
    members: Sequence[Any] = getattr(estimator, "estimators_", [estimator])
    return members


def sklearn_trees_member(estimator: Any, place: Place) -> Member:
    r"""A classifier made of trees.

    A forest compares two means of its trees' probabilities, each of which is rounded. If all probabilities
    are multiples of :math:`2^{-20}` (in trees grown to the end they are 0 and 1), rounding cannot change the
    comparison. Otherwise it may, if the means are nearly equal, in a way that no single sum can reproduce. A
    class then counts as predicted only above :math:`1/2 + 2 n 2^{-52}`, with n trees, so that near ties count
    as refused. With ``n_jobs`` the order of the sum is that in which threads end.
    """
    _supported(estimator)
    name, classes = type(estimator).__name__, classes_of(estimator)
    if _boosts(estimator):
        own = getattr(estimator, "_preprocessor", None)  # of histogram boosting on categories
        place = place if own is None else place.after([("model", own)], place.where)
        scores = tuple(one.at(place.columns) for one in _boosted(estimator))
        if len(classes) > 2:
            return Member(name, classes, scores, by_largest(len(classes)), scores)
        # at a raw prediction of 0 gradient boosting predicts the second class, histogram boosting the first
        rule = by_margin(strict=hasattr(estimator, "_predictors"))
        steep = (1.0, 0.0) if getattr(estimator, "loss", "log_loss") == "log_loss" else None
        link = link_of(estimator._loss.predict_proba, logistic=steep)
        return Member(name, classes, scores, rule, scores, link=link)
    members = _members(estimator)
    missing = not place.sparse and takes_missing(estimator)
    each = [m.tree_.value[:, 0, :] for m in members]
    exact = _exact(members)

    def scores_of(values: Sequence[NDArray[np.float64]], aggregate: Aggregate, unsure: float) -> TreeScore:
        trees = [ReadTree(tree_of(m.tree_, v, missing)) for m, v in zip(members, values, strict=True)]
        score = TreeScore(tuple(trees), 0.0, "float32", aggregate=aggregate, unsure=unsure, exact=exact)
        return score.at(place.columns)

    order = getattr(estimator, "n_jobs", None) in (None, 1) or exact
    unsure = 0.0 if order else len(members) * 2.0**-52
    mean: Aggregate = "mean" if len(members) > 1 else "sum"
    shares = tuple(scores_of([s[:, k] for s in each], mean, unsure) for k in range(len(classes)))
    if len(members) == 1:
        won = [(each[0].argmax(axis=1) == k).astype(np.float64) for k in range(len(classes))]
        votes = tuple(replace(scores_of([w], "sum", 0.0), exact=True) for w in won)
        return Member(name, classes, votes, by_half(False), shares=shares, votes=votes, measure="probability")
    return by_means(name, classes, shares)


def by_means(name: str, classes: tuple[object, ...], shares: tuple[TreeScore, ...]) -> Member:
    """The class with the largest mean of trees' probabilities is predicted, as a forest does."""
    exact, terms = all(one.exact for one in shares), len(shares[0].trees)
    if len(classes) == 2:
        near = 0.0 if exact else 2 * terms * 2.0**-52
        halves = tuple(replace(one, unsure=near) for one in shares)
        return Member(name, classes, halves, by_half(exact), shares=shares, measure="probability")
    sums = tuple(replace(one, aggregate="sum", unsure=0.0, unit=float(terms)) for one in shares)
    rule = by_largest(len(classes), exact)
    return Member(name, classes, sums, rule, shares=shares, measure="probability")


def sklearn_regression(estimator: Any, place: Place) -> Member:
    """A regression by trees."""
    _supported(estimator)
    name = type(estimator).__name__
    if _boosts(estimator):
        own = getattr(estimator, "_preprocessor", None)
        place = place if own is None else place.after([("model", own)], place.where)
        (score,) = (one.at(place.columns) for one in _boosted(estimator))
        return regression(name, score, _back(estimator))
    members = _members(estimator)
    if getattr(estimator, "criterion", "") and members[0].tree_.n_outputs != 1:
        raise refuse(place.where, f"{members[0].tree_.n_outputs} outputs", "one output")
    missing = not place.sparse and takes_missing(estimator)
    trees = tuple(ReadTree(tree_of(m.tree_, m.tree_.value[:, 0, 0], missing)) for m in members)
    order = getattr(estimator, "n_jobs", None) in (None, 1)
    score = TreeScore(trees, 0.0, "float32", aggregate="mean").at(place.columns)
    unsure = 0.0 if order else len(members) * score.reach * 2.0**-52
    return regression(name, replace(score, unsure=unsure))


def _back(estimator: Any) -> Inverse | None:
    """The function from a raw prediction to the number predicted; None for the same."""
    link = getattr(getattr(estimator, "_loss", None), "link", None)
    if not hasattr(estimator, "_predictors") or link is None or type(link).__name__ == "IdentityLink":
        return None

    return inverse_of(link.inverse)


def _exact(members: Sequence[Any]) -> bool:
    """Whether the trees' probabilities add up without rounding."""
    classes = members[0].tree_.value.shape[2]
    trees = (
        [ReadTree(tree_of(m.tree_, m.tree_.value[:, 0, k], False)) for m in members] for k in range(classes)
    )
    return all(map(adds_exactly, trees))


def _boosted(estimator: Any) -> tuple[TreeScore, ...]:
    """The raw predictions: one for two classes or a regression, else one per class."""
    if hasattr(estimator, "_predictors"):  # histogram boosting
        base = tuple(np.ravel(estimator._baseline_prediction).tolist())
        trees = (
            tuple(_histogram_tree(stage[k]) for stage in estimator._predictors) for k in range(len(base))
        )
        return tuple(TreeScore(own, b) for own, b in zip(trees, base, strict=True))
    base, rate = _boosting_base(estimator), estimator.learning_rate
    trees = (
        tuple(ReadTree(tree_of(s.tree_, rate * s.tree_.value[:, 0, 0], False)) for s in stages)
        for stages in estimator.estimators_.T
    )
    return tuple(TreeScore(own, b, "float32") for own, b in zip(trees, base, strict=True))


def _supported(estimator: Any) -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    if not is_sklearn_trees(estimator):
        raise refuse("estimator", type(estimator).__name__, _SKLEARN)
    try:
        check_is_fitted(estimator)
    except NotFittedError as error:
        raise not_fitted("estimator") from error
    refuse_overrides(estimator, "estimator", "sklearn")
    if getattr(estimator, "n_outputs_", 1) != 1:
        raise refuse("estimator", f"{estimator.n_outputs_} outputs", "one output")


def _mean(
    estimator: Any, members: Sequence[Any], values: Sequence[NDArray[np.float64]], sparse: bool = False
) -> TreeEnsemble:
    missing = not sparse and takes_missing(estimator)
    trees = [tree_of(m.tree_, value, missing) for m, value in zip(members, values, strict=True)]
    return checked(TreeEnsemble(tuple(trees), int(estimator.n_features_in_)))


def takes_missing(estimator: Any) -> bool:
    """Whether the estimator itself predicts for a row of missing values."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator.predict(np.full((1, estimator.n_features_in_), np.nan))
    except ValueError:
        return False
    return True


def _boosting_base(estimator: Any) -> tuple[float, ...]:
    """The numbers that the sums start from: one for two classes, else one per class."""
    if estimator.init_ != "zero" and estimator.init is not None:
        raise refuse("init", type(estimator.init_).__name__, 'None or "zero"')
    row = np.zeros((1, estimator.n_features_in_))
    return tuple(np.ravel(estimator._raw_predict_init(row)).tolist())


def tree_of(tree: Any, values: NDArray[np.float64], missing: bool) -> Tree:
    """scikit-learn's tree with these values of its nodes; ``missing``: with its rule for missing values."""
    return Tree(
        np.maximum(np.asarray(tree.feature, dtype=np.int64), -2),
        np.clip(np.asarray(tree.threshold, dtype=np.float64), -LARGEST, LARGEST),
        np.asarray(tree.children_left, dtype=np.int64),
        np.asarray(tree.children_right, dtype=np.int64),
        np.asarray(values, dtype=np.float64),
        np.asarray(tree.missing_go_to_left).astype(bool) if missing else None,
    )


def _histogram_tree(predictor: Any) -> ReadTree:
    nodes = predictor.nodes
    leaf = nodes["is_leaf"].astype(bool)
    categorical = nodes["is_categorical"].astype(bool) & ~leaf
    splits = {}
    for node in np.flatnonzero(categorical).tolist():
        words = predictor.raw_left_cat_bitsets[nodes["bitset_idx"][node]]
        codes = frozenset(
            32 * k + bit for k, word in enumerate(words) for bit in range(32) if word >> bit & 1
        )
        splits[node] = CategorySplit(codes, True, bool(nodes["missing_go_to_left"][node]))
    cuts = np.clip(np.where(categorical, 0.0, nodes["num_threshold"]), -LARGEST, LARGEST)
    tree = Tree(
        np.where(leaf, -2, nodes["feature_idx"].astype(np.int64)),
        np.where(leaf, -2.0, cuts),
        np.where(leaf, -1, nodes["left"].astype(np.int64)),
        np.where(leaf, -1, nodes["right"].astype(np.int64)),
        nodes["value"].astype(np.float64),
        nodes["missing_go_to_left"].astype(bool),
    )
    return ReadTree(tree, splits)
