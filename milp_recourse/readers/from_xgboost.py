"""Read XGBoost's trees, bit for bit: float32 comparisons with <, sums in float32.

``x < t`` in float32 is ``x <= t'`` with t' the largest float32 below t. An ``XGBClassifier`` predicts with
the trees up to its best iteration, a ``Booster`` with all trees.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from milp_recourse.problem.forest import Tree, TreeEnsemble
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
    decision_by_classes,
    decision_by_sum,
    last_refused,
    numbers_only,
)

_OF_TWO = ("binary:logistic", "binary:logitraw")
_OF_SEVERAL = ("multi:softprob", "multi:softmax")
_KNOWN = {"cats", "gbtree_model_param", "iteration_indptr", "tree_info", "trees"}
"""The entries that a model of trees may have. Another entry could change the meaning of the trees."""


def read_xgboost(model: Any) -> TreeEnsemble:
    """Read an XGBoost model: a ``Booster``, an ``XGBClassifier``, or the parsed JSON of ``save_model``.

    Parameters
    ----------
    model
        Booster ``gbtree``, objective ``binary:logistic`` or ``binary:logitraw``, splits on numbers.

    Returns
    -------
    TreeEnsemble
        Its score is ``predict(..., output_margin=True)``, bit for bit; of an ``XGBClassifier`` only up to its
        best iteration. The trees hold the rule for missing values.

    Raises
    ------
    Unsupported
        The model is of another kind or not fitted, or has another booster, objective or kind of split, an
        entry that is not known, a number that stands for missing values, a ``base_score`` that is no
        probability between 0 and 1, a number that is not finite, or JSON without a part that XGBoost writes.
    """
    return numbers_only(*_sums(*_content(model)).only())


def is_xgboost(model: Any) -> bool:
    """Whether the model's class is defined in XGBoost itself; a subclass of one's own is not."""
    return type(model).__module__.split(".")[0] == "xgboost"


def xgboost_decision(model: Any, target: Target, cutoff: Cutoff | None = None) -> TreeDecision:
    """The trees, and the scores at which the model predicts the target.

    Of two classes the second is predicted if its probability, in float32, is above 1/2, or by ``cutoff``. Of
    more classes the first with the largest probability is predicted. A ``Booster``, which has no ``predict``
    of classes, is read in the same way. With ``binary:logitraw`` the margin is compared instead: by
    ``XGBClassifier.predict`` with 1/2, and of a ``Booster`` with 0.
    """
    content, last = _content(model)
    sums = _sums(content, last)
    if len(sums.trees) > 1:
        _as_many_classes(model, content, len(sums.trees))
        return decision_by_classes(sums, target.index, target.wanted)
    second = target.index == 1
    ensemble, splits = sums.only()
    if cutoff is not None:
        if _objective(content) == "binary:logitraw":
            raise refuse("model", f"{cutoff.what} on binary:logitraw", "binary:logistic")
        return decision_by_sum(ensemble, cutoff.accept(_probabilities(), single=True), second, splits)
    if _objective(content) == "binary:logitraw":
        half = 0.5 if hasattr(model, "get_booster") else 0.0  # XGBClassifier compares the margin with 1/2
        return decision_by_sum(ensemble, above(half), second, splits)
    return decision_by_sum(ensemble, above(_last_half()), second, splits)


def _as_many_classes(model: Any, content: dict[str, Any], count: int) -> None:
    """Check that an XGBClassifier predicts one of its classes from a sum for each.

    Of two classes it predicts the second where a probability, or the class's number, is above 1/2. With
    ``multi:softprob`` that is a truth value for each class.
    """
    classes = len(getattr(model, "classes_", ())) or count
    objective = _objective(content)
    if classes != count:
        raise refuse("num_class", str(count), f"{classes}, as many as there are classes")
    if hasattr(model, "get_booster") and classes == 2 and objective == "multi:softprob":
        raise refuse("objective", f"{objective} for two classes", "binary:logistic for two classes")


def class_count(model: Any) -> int:
    """The number of classes of a model that does not name them."""
    content, _ = _content(model)
    count = int(content["learner"]["learner_model_param"].get("num_class", 0))
    return max(count, 2)


def booster_objective(booster: Any) -> str:
    """The objective of a Booster, which says what its ``predict`` returns."""
    return _objective(_content(booster)[0])


@cache
def _probabilities() -> Probabilities:
    """The function from a float32 margin to the probabilities that XGBoost itself computes."""
    xgboost = require("xgboost", "read_model", "xgboost")
    row = np.zeros((1, 1))
    settings = {"objective": "binary:logistic", "nthread": 1}
    empty = xgboost.train(settings, xgboost.DMatrix(row, label=[0], nthread=1), num_boost_round=0)

    def probabilities(margin: float) -> tuple[Any, Any]:
        data = xgboost.DMatrix(row, base_margin=np.array([margin], dtype=np.float32), nthread=1)
        second = empty.predict(data)[0]
        return np.float32(1.0) - second, second

    return probabilities


@cache
def _last_half() -> float:
    """The largest float32 margin whose probability, as XGBoost computes it, is not above 1/2."""
    probabilities = _probabilities()
    return last_refused(lambda margin: bool(probabilities(margin)[1] > 0.5), 0.0, 1e-6, single=True)


def _content(model: Any) -> tuple[dict[str, Any], int | None]:
    """The model's JSON as save_model writes it, and how many iterations predict uses (None for all)."""
    if isinstance(model, dict):
        return model, None
    booster, last = model, None
    if hasattr(model, "get_booster"):
        try:
            booster = model.get_booster()
        except Exception as error:
            raise not_fitted("model") from error
        try:
            last = int(model.best_iteration) + 1
        except AttributeError:
            last = None
        missing = getattr(model, "missing", np.nan)
        if missing is not None and not np.isnan(missing):
            raise refuse(
                "missing", repr(missing), "nan: a number that stands for missing values cannot be read"
            )
    if not hasattr(booster, "save_raw"):
        raise refuse("model", type(model).__name__, "a Booster, an XGBClassifier or its JSON")
    for one in (model, booster):
        refuse_overrides(one, "model", "xgboost")
    return json.loads(bytes(booster.save_raw("json"))), last


def _objective(model: dict[str, Any]) -> str:
    return str(model.get("learner", {}).get("objective", {}).get("name"))


def _sums(model: dict[str, Any], last: int | None) -> Sums:
    """The sums of margins, of the first ``last`` iterations: one for two classes, else one per class."""
    objective = _objective(model)
    try:
        learner = model["learner"]
        kind = learner["gradient_booster"]["name"]
        parameters = learner["learner_model_param"]
        columns, prior = int(parameters["num_feature"]), str(parameters["base_score"]).strip("[]")
        count = int(parameters["num_class"]) if objective in _OF_SEVERAL else 1
        content = learner["gradient_booster"]["model"] if kind == "gbtree" else {"trees": []}
        end = None if last is None else content["iteration_indptr"][last]
        trees = content["trees"][:end]
        classes = content["tree_info"][:end] if count > 1 else [0] * len(trees)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise refuse("model", f"JSON without {error}", "what XGBoost's save_model writes") from error
    if kind != "gbtree" or "weight_drop" in content:  # 3.4 and later keep the trees' weights of dart there
        raise refuse("booster", "dart" if "weight_drop" in content else kind, "gbtree")
    if strange := sorted(set(content) - _KNOWN):
        raise refuse(
            "booster", f"gbtree with {', '.join(strange)}", f"nothing but {', '.join(sorted(_KNOWN))}"
        )
    if objective not in (*_OF_TWO, *_OF_SEVERAL):
        raise refuse("objective", objective, ", ".join((*_OF_TWO, *_OF_SEVERAL)))
    if str(parameters.get("num_target", "1")) not in ("0", "1"):
        raise refuse("model", f"{parameters['num_target']} labels for each row", "one")
    if any(str(tree.get("tree_param", {}).get("size_leaf_vector", "1")) not in ("0", "1") for tree in trees):
        raise refuse("multi_strategy", "multi_output_tree", "one_output_per_tree")
    base = [float(np.float32(b)) for b in prior.split(",")]
    if objective == "binary:logistic":
        base = [_log_odds(prior)]
    of_class = tuple(
        tuple(_tree(tree) for tree, k in zip(trees, classes, strict=True) if k == c) for c in range(count)
    )
    return Sums(of_class, tuple(base if len(base) == count else base * count), columns, "float32", "float32")


def _log_odds(prior: str) -> float:
    """The float32 margin of the probability that XGBoost starts from."""
    base = np.float32(prior)
    if not 0 < base < 1:
        raise refuse("base_score", prior, "a probability, above 0 and below 1")
    odds = float(np.float32(1) / base - np.float32(1))
    return float(np.float32(-math.log(odds)))  # as C's logf rounds; numpy's float32 logarithm may be one off


def _splits(tree: dict[str, Any]) -> Iterator[tuple[int, CategorySplit]]:
    """The nodes that split on categories; categories that are listed go right."""
    listed = tree.get("categories", [])
    ends = zip(*(tree.get(f"categories_{name}", []) for name in ("nodes", "segments", "sizes")), strict=True)
    for node, start, size in ends:
        codes = frozenset(int(c) for c in listed[start : start + size])
        yield int(node), CategorySplit(codes, False, bool(tree["default_left"][node]))


def _tree(tree: dict[str, Any]) -> ReadTree:
    left = np.array(tree["left_children"], dtype=np.int64)
    condition = np.array(tree["split_conditions"], dtype=np.float32)
    with np.errstate(over="ignore"):
        before = np.nextafter(condition, np.float32(-np.inf)).astype(np.float64)
    leaf = left == -1
    missing = tree.get("default_left")
    arrays = Tree(
        np.where(leaf, -2, np.array(tree["split_indices"], dtype=np.int64)),
        np.where(leaf, -2.0, np.clip(before, -LARGEST, LARGEST)),
        left,
        np.array(tree["right_children"], dtype=np.int64),
        np.where(leaf, condition.astype(np.float64), 0.0),
        None if missing is None else np.array(missing, dtype=bool),
    )
    return ReadTree(arrays, dict(_splits(tree)))
