"""Read LightGBM's trees, bit for bit: float64 comparisons and sums.

Missing values follow each split's ``missing_type``: with NaN they take the default side, with None they are
read as 0. Numbers up to ``1e-35`` (as a float) in size are read as 0 too.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from milp_recourse.domain.forest import Tree, TreeEnsemble
from milp_recourse.readers.refusal import refuse
from milp_recourse.readers.tree_parts import (
    CategorySplit,
    Judged,
    Splits,
    checked,
    judged_sum,
    last_refused,
    numbers_only,
)

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
        Another objective or kind of split, averaged trees, linear leaves, or zeros that count as missing.
    """
    return numbers_only(*_ensemble(_content(model)))


def is_lightgbm(model: Any) -> bool:
    """Whether the model comes from LightGBM."""
    return type(model).__module__.split(".")[0] == "lightgbm"


def judge_lightgbm(model: Any, index: int) -> Judged:
    """The model's decision for class ``index``: its probability, in doubles, above or not above 1/2.

    A ``Booster`` has no decision of its own: its probability is compared with 1/2.
    """
    content = _content(model)
    said = str(content.get("objective", "")).split("sigmoid:")
    steepness = float(said[1].split(" ")[0]) if len(said) == 2 else 1.0
    last = last_refused(lambda s: 1.0 / (1.0 + math.exp(-steepness * s)) > 0.5, 0.0, 1.0, single=False)
    ensemble, splits = _ensemble(content)
    return judged_sum(ensemble, last, index == 1, splits)


def _content(model: Any) -> dict[str, Any]:
    """What dump_model returns, which stops at the best iteration as predict does."""
    if isinstance(model, dict):
        return model
    try:
        booster = getattr(model, "booster_", model)
    except Exception as error:
        raise refuse("model", "one that is not fitted", "a fitted one: call fit first") from error
    if not hasattr(booster, "dump_model"):
        raise refuse("model", type(model).__name__, "a Booster, an LGBMClassifier or dump_model()'s result")
    content: dict[str, Any] = booster.dump_model()
    return content


def _ensemble(model: dict[str, Any]) -> tuple[TreeEnsemble, Splits]:
    objective = str(model.get("objective", "none")).split(" ")[0]
    if objective != "binary" or model.get("num_tree_per_iteration") != 1:
        raise refuse("objective", objective, "binary")
    if model.get("average_output"):
        raise refuse("model", "averaged trees (boosting rf)", "boosting gbdt")
    splits: Splits = {}
    trees = [_tree(info["tree_structure"], k, splits) for k, info in enumerate(model["tree_info"])]
    columns = int(model["max_feature_idx"]) + 1
    return checked(TreeEnsemble(tuple(trees), columns, "sum", 0.0, "float64", "float64")), splits


def _tree(root: dict[str, Any], number: int, splits: Splits) -> Tree:
    where = f"tree {number}"
    rows: list[list[float]] = []

    def add(node: dict[str, Any]) -> int:
        here = len(rows)
        if "split_feature" not in node:
            if "leaf_coeff" in node:
                raise refuse(where, "linear leaves", "constant leaves")
            rows.append([-2, -2.0, -1, -1, float(node["leaf_value"]), 0])
            return here
        if node["decision_type"] == "==":
            codes = frozenset(int(code) for code in str(node["threshold"]).split("||"))
            splits[number, here] = CategorySplit(codes, True, False)
            node = node | {"threshold": 0.0, "missing_type": "None"}
        kind, cut = node.get("missing_type", "None"), float(node["threshold"])
        if kind == "Zero":
            raise refuse(where, "zeros that count as missing", "zero_as_missing off")
        missing = bool(node.get("default_left", True)) if kind == "NaN" else cut >= 0.0
        if abs(cut) <= _ZERO:
            cut = _ZERO if cut >= 0 else float(np.nextafter(-_ZERO, -1.0))
        rows.append([int(node["split_feature"]), cut, 0, 0, 0.0, missing])
        rows[here][2] = add(node["left_child"])
        rows[here][3] = add(node["right_child"])
        return here

    add(root)
    feature, threshold, left, right, value, missing = zip(*rows, strict=True)
    whole = [np.array(column, dtype=np.int64) for column in (feature, left, right)]
    return Tree(
        whole[0],
        np.array(threshold, dtype=np.float64),
        whole[1],
        whole[2],
        np.array(value),
        np.array(missing, dtype=bool),
    )
