"""Read XGBoost's trees, bit for bit: float32 comparisons with <, sums in float32.

``x < t`` in float32 is ``x <= t'`` with t' the largest float32 below t. An ``XGBClassifier`` predicts with
the trees up to its best iteration, a ``Booster`` with all trees.

Trees of ``dart``, which is ``gbtree`` with weights from XGBoost 3.4 on, have weights w. A leaf v adds v w to
the base b; but where, before 3.4, an ``XGBClassifier`` or ``XGBRegressor`` predicts, which makes no copy of
the rows (``inplace_predict``), it adds ((b + v) - b) w, each step rounded to float32. That holds on x86-64;
other processors may round a product and a sum at once.
"""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from milp_recourse.problem.forest import Tree, TreeEnsemble
from milp_recourse.readers.boundaries import Array, last_refused
from milp_recourse.readers.classes import classes_of
from milp_recourse.readers.formulas import by_largest, by_margin
from milp_recourse.readers.links import Inverse, inverse_of, link_of
from milp_recourse.readers.member import Member, regression
from milp_recourse.readers.overrides import refuse_overrides
from milp_recourse.readers.places import Place
from milp_recourse.readers.refusal import not_fitted, refuse, require
from milp_recourse.readers.scores import TreeScore
from milp_recourse.readers.tree_parts import LARGEST, CategorySplit, ReadTree, numbers_only

_OF_TWO = ("binary:logistic", "binary:logitraw")
_OF_SEVERAL = ("multi:softprob", "multi:softmax")
_AS_THEY_ARE = (
    *("reg:squarederror", "reg:absoluteerror", "reg:pseudohubererror", "reg:squaredlogerror"),
    "reg:quantileerror",
)
_CURVED = ("reg:logistic", "reg:gamma", "reg:tweedie", "count:poisson")
"""Regressions that predict the margin, and those that predict a rising function of it."""

_ROW = np.zeros((1, 1))
_KNOWN = {"cats", "gbtree_model_param", "iteration_indptr", "tree_info", "trees", "weight_drop"}
"""The entries that a model of trees may have. Another entry could change the meaning of the trees."""


def read_xgboost(model: Any) -> TreeEnsemble:
    """Read an XGBoost model: a ``Booster``, an ``XGBClassifier``, or the parsed JSON of ``save_model``.

    Parameters
    ----------
    model
        Booster ``gbtree`` or ``dart``, objective ``binary:logistic`` or ``binary:logitraw``, splits on
        numbers.

    Returns
    -------
    TreeEnsemble
        Its score is ``predict(..., output_margin=True)``, bit for bit; of an ``XGBClassifier`` only up to its
        best iteration, of JSON as a ``Booster`` predicts. The trees hold the rule for missing values.

    Raises
    ------
    Unsupported
        The model is of another kind or not fitted, or has another booster, objective or kind of split, an
        entry that is not known, a number that stands for missing values, a ``base_score`` that is no
        probability between 0 and 1, a number that is not finite, or JSON without a part that XGBoost writes.
    """
    content, last = _content(model)
    sums = _sums(content, last, _for_scikit_learn(model))
    if len(sums) > 1:
        raise refuse("model", f"{len(sums)} classes", "two, or read_model with the wanted one")
    if _objective(content) not in _OF_TWO:
        raise refuse("objective", _objective(content), ", ".join(_OF_TWO))
    return numbers_only(*sums[0].ensemble(int(content["learner"]["learner_model_param"]["num_feature"])))


def is_xgboost(model: Any) -> bool:
    """Whether the model's class is defined in XGBoost itself; a subclass of one's own is not."""
    return type(model).__module__.split(".")[0] == "xgboost"


def _for_scikit_learn(model: Any) -> bool:
    """Whether it is an ``XGBClassifier`` or its like, rather than a ``Booster`` or JSON."""
    return hasattr(model, "get_booster")


def xgboost_member(model: Any, place: Place) -> Member:
    """A model of XGBoost.

    Of two classes the second is predicted if its probability, in float32, is above 1/2. Of more classes the
    first with the largest probability is predicted. A ``Booster``, which has no ``predict`` of classes, is
    read in the same way. With ``binary:logitraw`` the margin is compared instead: by
    ``XGBClassifier.predict`` with 1/2, and of a ``Booster`` with 0.
    """
    content, last = _content(model)
    if place.sparse:  # XGBoost takes the zeros of a sparse matrix as missing
        place.chains.zeros_are_gaps(place)
        if (
            content["learner"]["gradient_booster"]["name"] == "dart"
        ):  # it adds in one of two ways, by the format
            raise refuse(
                "booster", "dart after steps that make a sparse matrix", "dart, if they make a dense one"
            )
    objective, name = _objective(content), type(model).__name__
    numbers = objective not in (*_OF_TWO, *_OF_SEVERAL)
    sums = _sums(content, last, _for_scikit_learn(model))
    scores = tuple(one.at(place.columns) for one in sums)
    if numbers:
        return regression(name, scores[0], _inverse(objective))
    classes = classes_of(model, class_count)
    if len(scores) > 1:
        _as_many_classes(model, content, len(scores))
        return Member(name, classes, scores, by_largest(len(scores)))
    if objective == "binary:logitraw":
        half = 0.5 if _for_scikit_learn(model) else 0.0  # XGBClassifier compares the margin with 1/2
        return Member(name, classes, scores, by_margin(half))
    link = link_of(_probabilities, single=True, logistic=(1.0, 0.0), unit=2.0**-24)
    return Member(name, classes, scores, by_margin(_last_half()), link=link)


def _inverse(objective: str) -> Inverse | None:
    """The function from the margin to the number that a regression predicts, as XGBoost computes it."""
    if objective in _AS_THEY_ARE:
        return None

    return inverse_of(lambda margins: _predicted(objective, margins), single=True)


def _predicted(objective: str, margins: Array) -> Any:
    """What XGBoost makes of float32 margins."""
    xgboost = require("xgboost", "read_model", "xgboost")
    rows, base = np.zeros((len(margins), 1)), margins.astype(np.float32)
    return _empty(objective, 0.5).predict(xgboost.DMatrix(rows, base_margin=base, nthread=1))


def _margin(objective: str, prior: float) -> float:
    """The float32 margin of the number that XGBoost starts from."""
    xgboost = require("xgboost", "read_model", "xgboost")
    data = xgboost.DMatrix(_ROW, nthread=1)
    return float(_empty(objective, prior).predict(data, output_margin=True)[0])


@cache
def _empty(objective: str, prior: float) -> Any:
    """A model without trees, which applies the objective's own function."""
    xgboost = require("xgboost", "read_model", "xgboost")
    settings = {"objective": objective, "nthread": 1, "base_score": prior}
    return xgboost.train(settings, xgboost.DMatrix(_ROW, label=[0], nthread=1), num_boost_round=0)


def _as_many_classes(model: Any, content: dict[str, Any], count: int) -> None:
    """Check that an XGBClassifier predicts one of its classes from a sum for each.

    Of two classes it predicts the second where a probability, or the class's number, is above 1/2. With
    ``multi:softprob`` that is a truth value for each class.
    """
    classes = len(getattr(model, "classes_", ())) or count
    objective = _objective(content)
    if classes != count:
        raise refuse("num_class", str(count), f"{classes}, as many as there are classes")
    if _for_scikit_learn(model) and classes == 2 and objective == "multi:softprob":
        raise refuse("objective", f"{objective} for two classes", "binary:logistic for two classes")


def class_count(model: Any) -> int:
    """The number of classes of a model that does not name them."""
    content, _ = _content(model)
    count = int(content["learner"]["learner_model_param"].get("num_class", 0))
    return max(count, 2)


def booster_objective(booster: Any) -> str:
    """The objective of a Booster, which says what its ``predict`` returns."""
    return _objective(_content(booster)[0])


def _probabilities(margins: Array) -> Any:
    """The probabilities that XGBoost itself computes from float32 margins."""
    second = _predicted("binary:logistic", margins)
    return np.stack([np.float32(1.0) - second, second], axis=1)


@cache
def _last_half() -> float:
    """The largest float32 margin whose probability, as XGBoost computes it, is not above 1/2."""

    def together(margins: Array) -> Any:
        return _probabilities(margins)[:, 1] > 0.5

    return last_refused(lambda margin: bool(together(np.array([margin]))[0]), 0.0, 1e-6, True, together)


def _content(model: Any) -> tuple[dict[str, Any], int | None]:
    """The model's JSON as save_model writes it, and how many iterations predict uses (None for all)."""
    if isinstance(model, dict):
        return model, None
    booster, last = model, None
    if _for_scikit_learn(model):
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


def _sums(model: dict[str, Any], last: int | None, in_place: bool) -> tuple[TreeScore, ...]:
    """The sums of margins, of the first ``last`` iterations: one for two classes, else one per class."""
    objective = _objective(model)
    try:
        learner = model["learner"]
        booster = learner["gradient_booster"]
        kind = booster["name"]
        parameters = learner["learner_model_param"]
        prior = str(parameters["base_score"]).strip("[]")
        count = int(parameters["num_class"]) if objective in _OF_SEVERAL else 1
        held = booster.get("gbtree", {}) if kind == "dart" else booster
        content = held["model"] if kind in ("gbtree", "dart") else {"trees": []}
        end = None if last is None else content["iteration_indptr"][last]
        trees = content["trees"][:end]
        classes = content["tree_info"][:end] if count > 1 else [0] * len(trees)
        weights = booster["weight_drop"] if kind == "dart" else content.get("weight_drop")
        each = [None] * len(trees) if weights is None else weights[:end]
        parts = list(zip(trees, classes, each, strict=True))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise refuse("model", f"JSON without {error}", "what XGBoost's save_model writes") from error
    if kind not in ("gbtree", "dart"):
        raise refuse("booster", kind, "gbtree or dart")
    if weights is not None and platform.machine().lower() not in ("x86_64", "amd64"):
        raise refuse("booster", f"dart on {platform.machine()}", "gbtree, or dart on x86-64")
    if strange := sorted(set(content) - _KNOWN):
        raise refuse(
            "booster", f"{kind} with {', '.join(strange)}", f"nothing but {', '.join(sorted(_KNOWN))}"
        )
    known = (*_OF_TWO, *_OF_SEVERAL, *_AS_THEY_ARE, *_CURVED)
    if objective not in known:
        raise refuse("objective", objective, ", ".join(known))
    if str(parameters.get("num_target", "1")) not in ("0", "1"):
        raise refuse("model", f"{parameters['num_target']} labels for each row", "one")
    if any(str(tree.get("tree_param", {}).get("size_leaf_vector", "1")) not in ("0", "1") for tree in trees):
        raise refuse("multi_strategy", "multi_output_tree", "one_output_per_tree")
    base = [float(np.float32(b)) for b in prior.split(",")]
    if objective == "binary:logistic":
        base = [_log_odds(prior)]
    elif objective in _CURVED:
        base = [_margin(objective, base[0])]
    bases = base if len(base) == count else base * count
    of_class: list[list[ReadTree]] = [[] for _ in bases]
    for tree, k, weight in parts:
        of_class[k].append(_tree(tree, weight, bases[k] if in_place and kind == "dart" else 0.0))
    return tuple(
        TreeScore(tuple(own), b, "float32", "float32") for own, b in zip(of_class, bases, strict=True)
    )


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


def _tree(tree: dict[str, Any], weight: float | None, base: float) -> ReadTree:
    """A tree of ``gbtree`` (``weight`` is None) or ``dart``; ``base`` is what its leaves are added to and
    subtracted from."""
    left = np.array(tree["left_children"], dtype=np.int64)
    condition = np.array(tree["split_conditions"], dtype=np.float32)
    with np.errstate(over="ignore"):
        before = np.nextafter(condition, np.float32(-np.inf)).astype(np.float64)
    leaf, value = left == -1, condition
    if weight is not None:
        value = ((np.float32(base) + value) - np.float32(base)) * np.float32(weight)
    missing = tree.get("default_left")
    arrays = Tree(
        np.where(leaf, -2, np.array(tree["split_indices"], dtype=np.int64)),
        np.where(leaf, -2.0, np.clip(before, -LARGEST, LARGEST)),
        left,
        np.array(tree["right_children"], dtype=np.int64),
        np.where(leaf, value.astype(np.float64), 0.0),
        None if missing is None else np.array(missing, dtype=bool),
    )
    return ReadTree(arrays, dict(_splits(tree)))
