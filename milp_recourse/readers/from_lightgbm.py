"""Read LightGBM's trees, bit for bit: float64 comparisons and sums.

Missing values follow each split's ``missing_type``: with ``NaN`` they take the default side, with ``None``
LightGBM compares 0 in their place. It also compares 0 in place of numbers of at most 1e-35 in size (rounded
to float32).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from milp_recourse.problem.forest import Aggregate, Tree, TreeEnsemble
from milp_recourse.readers.boundaries import last_refused
from milp_recourse.readers.classes import classes_of
from milp_recourse.readers.formulas import by_largest, by_margin
from milp_recourse.readers.links import Inverse, Link, exponential, logistic
from milp_recourse.readers.member import Member, regression
from milp_recourse.readers.overrides import refuse_overrides
from milp_recourse.readers.places import Place
from milp_recourse.readers.refusal import not_fitted, refuse
from milp_recourse.readers.scores import TreeScore
from milp_recourse.readers.tree_parts import CategorySplit, ReadTree, numbers_only

_ZERO = float(np.float32(1e-35))


def read_lightgbm(model: Any) -> TreeEnsemble:
    """Read a LightGBM model: a ``Booster``, an ``LGBMClassifier``, or what ``dump_model`` returns.

    Parameters
    ----------
    model
        Boosting ``gbdt``, objective ``binary``, splits on numbers.

    Returns
    -------
    TreeEnsemble
        Its score is ``predict(..., raw_score=True)``, bit for bit, early stopping included; the trees hold
        the rule for missing values.

    Raises
    ------
    Unsupported
        The model is of another kind or not fitted, or has another objective or kind of split, averaged trees,
        linear leaves, or zeros that count as missing.
    """
    content = _content(model)
    sums = _sums(content)
    if len(sums) > 1:
        raise refuse("model", f"{len(sums)} classes", "two, or read_model with the wanted one")
    if sums[0].aggregate == "mean":
        raise refuse("model", "averaged trees (boosting rf)", "boosting gbdt, or read_model")
    if not str(content["objective"]).startswith("binary"):
        raise refuse("objective", content["objective"], "binary")
    return numbers_only(*sums[0].ensemble(int(content["max_feature_idx"]) + 1))


def is_lightgbm(model: Any) -> bool:
    """Whether the model comes from LightGBM."""
    return type(model).__module__.split(".")[0] == "lightgbm"


def lightgbm_member(model: Any, place: Place) -> Member:
    """A model of LightGBM.

    Of two classes the second is predicted if its probability, in doubles, is above 1/2. Of more classes the
    first with the largest probability is predicted. A ``Booster``, which has no ``predict`` of classes, is
    read in the same way.
    """
    content = _content(model)
    scores = tuple(one.at(place.columns) for one in _sums(content))
    name = type(model).__name__
    objective, *settings = str(content.get("objective", "")).split(" ")
    if objective in (*_AS_THEY_ARE, *_CURVED):
        curve = _signed_square if "sqrt" in settings else _CURVED.get(objective)
        return regression(name, scores[0], None if curve is None else Inverse(curve, rounds=True))
    classes = classes_of(model, class_count)
    if len(scores) > 1:
        return Member(name, classes, scores, by_largest(len(scores)), scores)
    steepness = next((float(s.split(":")[1]) for s in settings if s.startswith("sigmoid:")), 1.0)
    link = Link(lambda s: logistic(steepness * s), logistic=(steepness, 0.0))
    last = last_refused(lambda s: logistic(steepness * s)[1] > 0.5, 0.0, 1.0)
    return Member(name, classes, scores, by_margin(last), scores, link=link)


def _signed_square(score: float) -> float:
    return math.copysign(score * score, score)


_AS_THEY_ARE = ("regression", "regression_l1", "huber", "fair", "quantile", "mape")
_CURVED = {
    "poisson": exponential,
    "gamma": exponential,
    "tweedie": exponential,
    "cross_entropy": lambda score: logistic(score)[1],
}
"""Regressions that predict the score, and those that predict a rising function of it."""


def class_count(model: Any) -> int:
    """The number of classes of a model that does not name them."""
    return max(2, int(_content(model).get("num_tree_per_iteration", 1)))


def _content(model: Any) -> dict[str, Any]:
    """The result of dump_model, which like predict uses the trees up to the best iteration."""
    if isinstance(model, dict):
        return model
    try:
        booster = getattr(model, "booster_", model)
    except Exception as error:
        raise not_fitted("model") from error
    if not hasattr(booster, "dump_model") and hasattr(booster, "fit"):
        raise not_fitted("model")
    if not hasattr(booster, "dump_model"):
        raise refuse("model", type(model).__name__, "a Booster, an LGBMClassifier or dump_model()'s result")
    for one in (model, booster):
        refuse_overrides(one, "model", "lightgbm")
    settings = model.get_params() if hasattr(model, "get_params") else {}
    early = settings.get("pred_early_stop", False)
    if str(early).lower() not in ("false", "0", "none"):
        raise refuse("pred_early_stop", early, "False: with it, predict leaves out trees")
    content: dict[str, Any] = booster.dump_model()
    return content


def _sums(model: dict[str, Any]) -> tuple[TreeScore, ...]:
    """The raw scores, of boosting ``rf`` their means: one for two classes and for regressions, else one per
    class."""
    count = class_count(model) if class_count(model) > 2 else 1
    objective = str(model.get("objective", "none")).split(" ")[0]
    allowed = ("multiclass",) if count > 1 else ("binary", *_AS_THEY_ARE, *_CURVED)
    if objective not in allowed:
        raise refuse("objective", objective, " or ".join(("binary", "multiclass", *_AS_THEY_ARE, *_CURVED)))
    if count > 1 and model.get("average_output"):
        raise refuse("model", f"averaged trees (boosting rf) of {count} classes", "of two, or boosting gbdt")
    if model.get("num_tree_per_iteration") != count:
        raise refuse("objective", "binary with several trees an iteration", "binary")
    read = [_tree(info["tree_structure"], k) for k, info in enumerate(model["tree_info"])]
    aggregate: Aggregate = "mean" if model.get("average_output") else "sum"
    return tuple(TreeScore(tuple(read[c::count]), aggregate=aggregate) for c in range(count))


def _tree(root: dict[str, Any], number: int) -> ReadTree:
    where = f"tree {number}"
    rows: list[list[float]] = []
    splits: dict[int, CategorySplit] = {}

    def add(node: dict[str, Any]) -> int:
        at = len(rows)
        if "split_feature" not in node:
            if "leaf_coeff" in node:
                raise refuse(where, "linear leaves", "constant leaves")
            rows.append([-2, -2.0, -1, -1, float(node["leaf_value"]), 0])
            return at
        if node["decision_type"] == "==":
            codes = frozenset(int(code) for code in str(node["threshold"]).split("||"))
            splits[at] = CategorySplit(codes, True, False)
            node = node | {"threshold": 0.0, "missing_type": "None"}
        kind, cut = node.get("missing_type", "None"), float(node["threshold"])
        if kind == "Zero":
            raise refuse(where, "zeros that count as missing", "zero_as_missing off")
        missing = bool(node.get("default_left", True)) if kind == "NaN" else cut >= 0.0
        if abs(cut) <= _ZERO:
            cut = _ZERO if cut >= 0 else float(np.nextafter(-_ZERO, -1.0))
        rows.append([int(node["split_feature"]), cut, 0, 0, 0.0, missing])
        rows[at][2] = add(node["left_child"])
        rows[at][3] = add(node["right_child"])
        return at

    add(root)
    feature, threshold, left, right, value, missing = zip(*rows, strict=True)
    whole = [np.array(column, dtype=np.int64) for column in (feature, left, right)]
    tree = Tree(
        whole[0],
        np.array(threshold, dtype=np.float64),
        whole[1],
        whole[2],
        np.array(value),
        np.array(missing, dtype=bool),
    )
    return ReadTree(tree, splits)
