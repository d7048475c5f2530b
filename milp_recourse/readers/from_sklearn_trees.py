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

from milp_recourse.problem.forest import Tree, TreeEnsemble
from milp_recourse.problem.instance import Acceptance
from milp_recourse.readers.classes import Target
from milp_recourse.readers.cutoff import Cutoff, Probabilities
from milp_recourse.readers.overrides import refuse_overrides
from milp_recourse.readers.refusal import not_fitted, refuse, require
from milp_recourse.readers.tree_parts import (
    LARGEST,
    CategorySplit,
    ReadTree,
    Sums,
    TreeDecision,
    above,
    checked,
    decision_by_classes,
    decision_by_sum,
    numbers_only,
)

_SKLEARN = (
    "DecisionTreeClassifier, ExtraTreeClassifier, RandomForestClassifier, ExtraTreesClassifier, "
    "GradientBoostingClassifier or HistGradientBoostingClassifier"
)
_FINE = 2.0**20
"""Probabilities that are multiples of its inverse add up without rounding."""


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
    if boosts(estimator):
        return numbers_only(*_boosted(estimator).only())
    members = _members(estimator)
    return _mean(estimator, members, [m.tree_.value[:, 0, 1] for m in members])


def is_sklearn_trees(estimator: Any) -> bool:
    """Whether the estimator is a classifier made of trees that this file reads."""
    from sklearn import ensemble, tree

    forests = (ensemble.RandomForestClassifier, ensemble.ExtraTreesClassifier)
    return boosts(estimator) or isinstance(estimator, (tree.DecisionTreeClassifier, *forests))


def boosts(estimator: Any) -> bool:
    """Whether the estimator is boosting."""
    from sklearn import ensemble

    kinds = (ensemble.GradientBoostingClassifier, ensemble.HistGradientBoostingClassifier)
    return isinstance(estimator, kinds)


def _members(estimator: Any) -> Sequence[Any]:
    """The trees of a forest, or the one tree."""
    members: Sequence[Any] = getattr(estimator, "estimators_", [estimator])
    return members


def sklearn_trees_decision(
    estimator: Any,
    target: Target,
    sparse: bool = False,
    cutoff: Cutoff | None = None,
    margin: bool = False,
) -> TreeDecision:
    """:func:`_decision`, with the unit of its scores: that of a probability that is summed is one a tree."""
    decision = _decision(estimator, target, sparse, cutoff, margin)
    if boosts(estimator):
        return decision
    summed = decision.ensemble.aggregate == "sum"
    return replace(decision, measure="probability", unit=float(len(_members(estimator))) if summed else 1.0)


def _decision(
    estimator: Any, target: Target, sparse: bool, cutoff: Cutoff | None, margin: bool
) -> TreeDecision:
    r"""The trees, and the scores at which the estimator predicts the target.

    A forest compares two means of its trees' probabilities, each of which is rounded. If all probabilities
    are multiples of :math:`2^{-20}` (in trees grown to the end they are 0 and 1), rounding cannot change the
    comparison. Otherwise it may, if the means are nearly equal, in a way that no single sum can reproduce. A
    class then counts as predicted only above :math:`1/2 + 2 n 2^{-52}`, with n trees, so that near ties count
    as refused.

    Parameters
    ----------
    estimator
        A fitted estimator.
    target
        The wanted class, or the one that is not wanted.
    sparse
        Whether the estimator receives a sparse matrix, in which no value can be missing.
    cutoff
        The threshold that a wrapper puts on it; None for the estimator's own decision.
    margin
        Whether scores have to be probabilities, also of a single tree, of which otherwise only the class at
        each leaf counts.
    """
    _supported(estimator)
    two, index = len(estimator.classes_) == 2, target.index
    if boosts(estimator):
        sums = _boosted(estimator)
        if not two:
            return decision_by_classes(sums, index, target.wanted)
        ensemble, splits = sums.only()
        # at a raw prediction of 0 gradient boosting predicts the second class, histogram boosting the first
        own = Acceptance(0.0, strict=hasattr(estimator, "_predictors"))
        rule = own if cutoff is None else cutoff.accept(_boosted_probabilities(estimator))
        return decision_by_sum(ensemble, rule, index == 1, splits)
    members = _members(estimator)
    shares = [m.tree_.value[:, 0, :] for m in members]
    if cutoff is not None:
        return _forest_cutoff(estimator, members, shares, index, sparse, cutoff)
    if len(members) == 1 and not margin:
        won = [((s.argmax(axis=1) == index) == target.wanted).astype(np.float64) for s in shares]
        return TreeDecision(_mean(estimator, members, won, sparse), above(0.5))
    exact = _exact(members)
    if not two:
        return decision_by_classes(_forest_sums(estimator, members, exact, sparse), index, target.wanted)
    ensemble = _mean(estimator, members, [s[:, index] for s in shares], sparse)
    if exact:
        return TreeDecision(ensemble, Acceptance(0.5, strict=index == 1))
    return TreeDecision(ensemble, above(0.5 + 2 * len(members) * 2.0**-52))


def _forest_cutoff(
    estimator: Any,
    members: Sequence[Any],
    shares: Sequence[NDArray[np.float64]],
    index: int,
    sparse: bool,
    cutoff: Cutoff,
) -> TreeDecision:
    """The sum s of one class's probabilities in n trees, where predict_proba compares s / n with a threshold.

    With ``n_jobs`` the order of the sum is that in which threads end, so sums within rounding of the
    threshold count as refused.
    """
    if cutoff.on_scores:
        raise refuse("model", f"a threshold on a score of {type(estimator).__name__}", "one on probabilities")
    count, positive = len(members), cutoff.positive
    mean = _mean(estimator, members, [s[:, positive] for s in shares], sparse)
    last = cutoff.last_share(count)
    if getattr(estimator, "n_jobs", None) not in (None, 1) and not _exact(members):
        last += (1.0 if index == positive else -1.0) * count * count * 2.0**-52
    return decision_by_sum(replace(mean, aggregate="sum"), above(last), index == positive)


def _exact(members: Sequence[Any]) -> bool:
    """Whether probabilities add up without rounding: all are multiples of 2^-20."""
    at_leaves = (m.tree_.value[m.tree_.children_left == -1, 0, :] for m in members)
    return all((s * _FINE == np.round(s * _FINE)).all() for s in at_leaves)


def _boosted_probabilities(estimator: Any) -> Probabilities:
    """The function from a raw prediction to probabilities, as predict_proba computes them."""

    def probabilities(score: float) -> tuple[float, float]:
        row = estimator._loss.predict_proba(np.array([score]))[0]
        return row[0], row[1]

    return probabilities


def _forest_sums(estimator: Any, members: Sequence[Any], exact: bool, sparse: bool) -> Sums:
    """Per class the sum of its probabilities, which orders classes as their means do, up to rounding."""
    missing, classes = not sparse and _takes_missing(estimator), len(estimator.classes_)
    trees = tuple(
        tuple(ReadTree(_tree(m.tree_, m.tree_.value[:, 0, k], missing)) for m in members)
        for k in range(classes)
    )
    return Sums(trees, (0.0,) * classes, int(estimator.n_features_in_), "float32", "float64", exact)


def _boosted(estimator: Any) -> Sums:
    """The raw predictions, as sums of trees' values: one for two classes, else one per class."""
    columns = int(estimator.n_features_in_)
    if hasattr(estimator, "_predictors"):  # histogram boosting
        base = tuple(np.ravel(estimator._baseline_prediction).tolist())
        trees = (
            tuple(_histogram_tree(stage[k]) for stage in estimator._predictors) for k in range(len(base))
        )
        return Sums(tuple(trees), base, columns, "float64", "float64")
    base, rate = _boosting_base(estimator), estimator.learning_rate
    trees = (
        tuple(ReadTree(_tree(s.tree_, rate * s.tree_.value[:, 0, 0], False)) for s in stages)
        for stages in estimator.estimators_.T
    )
    return Sums(tuple(trees), base, columns, "float32", "float64")


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
    missing = not sparse and _takes_missing(estimator)
    trees = [_tree(m.tree_, value, missing) for m, value in zip(members, values, strict=True)]
    return checked(TreeEnsemble(tuple(trees), int(estimator.n_features_in_)))


def _takes_missing(estimator: Any) -> bool:
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


def _tree(tree: Any, values: NDArray[np.float64], missing: bool) -> Tree:
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
