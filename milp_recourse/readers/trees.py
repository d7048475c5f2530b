"""Read tree ensembles of scikit-learn, XGBoost and LightGBM, bit for bit.

================================  ===========  =========  ========  ==============================
library                           compares     sum        base      class 1 is predicted when
================================  ===========  =========  ========  ==============================
scikit-learn tree, forests        float32 <=   mean, f64  0         p_1 > p_0
GradientBoostingClassifier        float32 <=   sum, f64   prior     sum >= 0
HistGradientBoostingClassifier    float64 <=   sum, f64   baseline  sum > 0
XGBoost (gbtree, logistic)        float32 <    sum, f32   base      sigmoid, in float32, > 1/2
LightGBM (gbdt, binary)           float64 <=   sum, f64   0         sigmoid > 1/2
================================  ===========  =========  ========  ==============================

``x < t`` in float32 is ``x <= t'`` with t' the float32 before t. :func:`safe_threshold` gives the
``accept.above`` from which on the library predicts class 1. Applicants' values are finite, so rules for
missing values never apply; where a finite value counts as missing, or a split is on categories, the model
is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.domain.forest import Tree, TreeEnsemble
from milp_recourse.errors import Unsupported
from milp_recourse.readers.chain import refuse, require

_LARGEST = float(np.finfo(np.float64).max)

_SKLEARN = (
    "DecisionTreeClassifier, RandomForestClassifier, ExtraTreesClassifier, GradientBoostingClassifier or "
    "HistGradientBoostingClassifier"
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
        Its score is ``predict_proba(x)[:, 1]``, or for boosting ``decision_function(x)``, bit for bit.

    Raises
    ------
    Unsupported
        Anything else, not two classes, not fitted, or scikit-learn is not installed.
    """
    require("sklearn", "read_sklearn_trees", "sklearn")
    from sklearn import ensemble, tree
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    known: list[tuple[Any, Callable[[Any], TreeEnsemble]]] = [
        (tree.DecisionTreeClassifier, lambda e: _mean([e], e.n_features_in_)),
        (ensemble.RandomForestClassifier, lambda e: _mean(e.estimators_, e.n_features_in_)),
        (ensemble.ExtraTreesClassifier, lambda e: _mean(e.estimators_, e.n_features_in_)),
        (ensemble.GradientBoostingClassifier, _boosting),
        (ensemble.HistGradientBoostingClassifier, _histogram_boosting),
    ]
    for kind, read in known:
        if isinstance(estimator, kind):
            try:
                check_is_fitted(estimator)
            except NotFittedError as error:
                raise refuse("estimator", "one that is not fitted", "a fitted one: call fit first") from error
            if getattr(estimator, "n_outputs_", 1) != 1 or len(estimator.classes_) != 2:
                raise refuse("estimator", f"classes {estimator.classes_}", "two classes, one output")
            return read(estimator)
    raise refuse("estimator", type(estimator).__name__, _SKLEARN)


def read_xgboost(model: Any) -> TreeEnsemble:
    """Read an XGBoost model: a ``Booster``, an ``XGBClassifier``, or the parsed JSON of ``save_model``.

    Parameters
    ----------
    model
        Booster ``gbtree``, objective ``binary:logistic`` or ``binary:logitraw``, splits on numbers.

    Returns
    -------
    TreeEnsemble
        Its score is ``predict(..., output_margin=True)``, bit for bit.

    Raises
    ------
    Unsupported
        Another booster, objective or kind of split.
    """
    if not isinstance(model, dict):
        booster = model.get_booster() if hasattr(model, "get_booster") else model
        if not hasattr(booster, "save_raw"):
            raise refuse("model", type(model).__name__, "a Booster, an XGBClassifier or its JSON")
        model = json.loads(bytes(booster.save_raw("json")))
    try:
        learner = model["learner"]
        objective = learner["objective"]["name"]
        kind = learner["gradient_booster"]["name"]
        columns = int(learner["learner_model_param"]["num_feature"])
        prior = str(learner["learner_model_param"]["base_score"]).strip("[]")
        trees = learner["gradient_booster"]["model"]["trees"] if kind == "gbtree" else []
    except (KeyError, TypeError, ValueError) as error:
        raise refuse("model", f"JSON without {error}", "what XGBoost's save_model writes") from error
    if objective not in ("binary:logistic", "binary:logitraw"):
        raise refuse("objective", objective, "binary:logistic or binary:logitraw")
    if kind != "gbtree":
        raise refuse("booster", kind, "gbtree")
    base = np.float32(prior)
    if objective == "binary:logistic":
        if not 0 < base < 1:
            raise refuse("base_score", prior, "a probability, above 0 and below 1")
        odds = float(np.float32(1) / base - np.float32(1))
        base = np.float32(-math.log(odds))  # as C's logf rounds; numpy's float32 logarithm may be one off
    made = tuple(_xgboost_tree(tree, f"tree {k}") for k, tree in enumerate(trees))
    return _checked(TreeEnsemble(made, columns, "sum", float(base), "float32", "float32"))


def read_lightgbm(model: Any) -> TreeEnsemble:
    """Read a LightGBM model: a ``Booster``, an ``LGBMClassifier``, or what ``dump_model`` returns.

    Parameters
    ----------
    model
        Boosting ``gbdt``, objective ``binary``, splits on numbers.

    Returns
    -------
    TreeEnsemble
        Its score is ``predict(..., raw_score=True)``, bit for bit.

    Raises
    ------
    Unsupported
        Another objective or kind of split, averaged trees, linear leaves, or zeros that count as missing.
    """
    if not isinstance(model, dict):
        booster = getattr(model, "booster_", model)
        if not hasattr(booster, "dump_model"):
            raise refuse(
                "model", type(model).__name__, "a Booster, an LGBMClassifier or dump_model()'s result"
            )
        model = booster.dump_model()
    objective = str(model.get("objective", "none")).split(" ")[0]
    if objective != "binary" or model.get("num_tree_per_iteration") != 1:
        raise refuse("objective", objective, "binary")
    if model.get("average_output"):
        raise refuse("model", "averaged trees (boosting rf)", "boosting gbdt")
    trees = [_lightgbm_tree(info["tree_structure"], f"tree {k}") for k, info in enumerate(model["tree_info"])]
    columns = int(model["max_feature_idx"]) + 1
    return _checked(TreeEnsemble(tuple(trees), columns, "sum", 0.0, "float64", "float64"))


def safe_threshold(ensemble: TreeEnsemble, at_zero: bool = False) -> float:
    r"""The ``accept.above`` from which on the library itself predicts class 1.

    Means: the library compares :math:`p_1` with :math:`p_0`, both rounded sums of n shares that add up to 1,
    so :math:`p_1 > 1/2 + 2 n 2^{-52}` settles it. Sums: 0, the margin at probability 1/2, plus what rounding
    of the sigmoid may hide (1e-6 where sums are float32, 1e-12 else).

    Parameters
    ----------
    at_zero
        For sums whose library compares with 0 itself (scikit-learn's boosting): exactly 0.
    """
    if ensemble.aggregate == "mean":
        return 0.5 + 2 * len(ensemble.trees) * 2.0**-52
    if at_zero:
        return 0.0
    return 1e-6 if ensemble.sum_dtype == "float32" else 1e-12


def _mean(estimators: Sequence[Any], columns: int) -> TreeEnsemble:
    trees = []
    for estimator in estimators:
        tree = estimator.tree_
        trees.append(_sklearn_tree(tree, tree.value[:, 0, 1]))
    return _checked(TreeEnsemble(tuple(trees), int(columns)))


def _boosting(estimator: Any) -> TreeEnsemble:
    if estimator.init_ != "zero" and estimator.init is not None:
        raise refuse("init", type(estimator.init_).__name__, 'None or "zero"')
    row = np.zeros((1, estimator.n_features_in_))
    base = float(np.ravel(estimator._raw_predict_init(row))[0])
    trees = []
    for [stage] in estimator.estimators_:
        values = estimator.learning_rate * stage.tree_.value[:, 0, 0]
        trees.append(_sklearn_tree(stage.tree_, values))
    return _checked(TreeEnsemble(tuple(trees), int(estimator.n_features_in_), "sum", base))


def _sklearn_tree(tree: Any, values: NDArray[np.float64]) -> Tree:
    return Tree(
        np.maximum(np.asarray(tree.feature, dtype=np.int64), -2),
        np.clip(np.asarray(tree.threshold, dtype=np.float64), -_LARGEST, _LARGEST),
        np.asarray(tree.children_left, dtype=np.int64),
        np.asarray(tree.children_right, dtype=np.int64),
        np.asarray(values, dtype=np.float64),
    )


def _histogram_boosting(estimator: Any) -> TreeEnsemble:
    if getattr(estimator, "is_categorical_", None) is not None and np.any(estimator.is_categorical_):
        raise refuse("estimator", "splits on categories", "numeric columns; one-hot encode the labels")
    trees = []
    for [predictor] in estimator._predictors:
        nodes = predictor.nodes
        leaf = nodes["is_leaf"].astype(bool)
        trees.append(
            Tree(
                np.where(leaf, -2, nodes["feature_idx"].astype(np.int64)),
                np.where(leaf, -2.0, np.clip(nodes["num_threshold"], -_LARGEST, _LARGEST)),
                np.where(leaf, -1, nodes["left"].astype(np.int64)),
                np.where(leaf, -1, nodes["right"].astype(np.int64)),
                nodes["value"].astype(np.float64),
            )
        )
    base = float(np.ravel(estimator._baseline_prediction)[0])
    columns = int(estimator.n_features_in_)
    return _checked(TreeEnsemble(tuple(trees), columns, "sum", base, "float64", "float64"))


def _xgboost_tree(tree: dict[str, Any], where: str) -> Tree:
    if any(tree.get("split_type", ())) or tree.get("categories"):
        raise refuse(where, "a split on categories", "splits on numbers")
    left = np.array(tree["left_children"], dtype=np.int64)
    condition = np.array(tree["split_conditions"], dtype=np.float32)
    with np.errstate(over="ignore"):
        before = np.nextafter(condition, np.float32(-np.inf)).astype(np.float64)
    leaf = left == -1
    return Tree(
        np.where(leaf, -2, np.array(tree["split_indices"], dtype=np.int64)),
        np.where(leaf, -2.0, np.clip(before, -_LARGEST, _LARGEST)),
        left,
        np.array(tree["right_children"], dtype=np.int64),
        np.where(leaf, condition.astype(np.float64), 0.0),
    )


def _lightgbm_tree(root: dict[str, Any], where: str) -> Tree:
    rows: list[list[float]] = []

    def add(node: dict[str, Any]) -> int:
        here = len(rows)
        if "split_feature" not in node:
            if "leaf_coeff" in node:
                raise refuse(where, "linear leaves", "constant leaves")
            rows.append([-2, -2.0, -1, -1, float(node["leaf_value"])])
            return here
        if node["decision_type"] != "<=":
            raise refuse(where, "a split on categories", "splits on numbers")
        if node.get("missing_type") == "Zero":
            raise refuse(where, "zeros that count as missing", "zero_as_missing off")
        rows.append([int(node["split_feature"]), float(node["threshold"]), 0, 0, 0.0])
        rows[here][2] = add(node["left_child"])
        rows[here][3] = add(node["right_child"])
        return here

    add(root)
    feature, threshold, left, right, value = zip(*rows, strict=True)
    whole = [np.array(column, dtype=np.int64) for column in (feature, left, right)]
    return Tree(whole[0], np.array(threshold, dtype=np.float64), whole[1], whole[2], np.array(value))


def _checked(ensemble: TreeEnsemble) -> TreeEnsemble:
    """The ensemble, if every number in it can be worked with.

    Raises
    ------
    Unsupported
        It has no trees, or a number that is not finite.
    """
    if not ensemble.trees:
        raise refuse("model", "no trees", "at least one")
    for k, tree in enumerate(ensemble.trees):
        for name in ("threshold", "value"):
            numbers = getattr(tree, name)
            if not np.isfinite(numbers).all():
                raise refuse(f"tree {k}", f"{name} {numbers[~np.isfinite(numbers)][0]}", "finite numbers")
        inner = tree.left != -1
        if (
            inner.any()
            and not (tree.feature[inner] >= 0).all() & (tree.feature[inner] < ensemble.inputs).all()
        ):
            raise refuse(f"tree {k}", "a feature out of range", f"0 to {ensemble.inputs - 1}")
    if not math.isfinite(ensemble.base):
        raise Unsupported(f"base score: got {ensemble.base}; allowed: a finite number")
    return ensemble
