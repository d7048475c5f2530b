r"""The tree ensembles of ONNX graphs, as onnxruntime computes them.

A value goes to the true branch if it is at most a threshold (BRANCH_LEQ), below it (LT), at least it (GTE) or
above it (GT), all in the precision of the input; a missing one does only where the node says so. Leaves'
weights are added up in that precision, in an order that depends on the number of rows and threads: scores
within rounding of a threshold count as refused, unless no addition rounds. Of two classes with weights for
one alone, the second is predicted where the sum is above 0, or above 1/2 if no weight is negative. Of more,
the largest sum decides. Both come before the transformation of the sums to probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.forest import Precision, Tree
from milp_recourse.readers.formulas import by_largest, by_margin
from milp_recourse.readers.graph_values import Columns, Source, Sums, Winner
from milp_recourse.readers.refusal import OR_ASK, refuse
from milp_recourse.readers.scores import TreeScore, adds_exactly
from milp_recourse.readers.tree_parts import LARGEST, ReadTree

_MODES = {"BRANCH_LEQ": (False, False), "BRANCH_LT": (True, False)}
_MODES |= {"BRANCH_GT": (False, True), "BRANCH_GTE": (True, True)}  # t excluded on the left; branches swapped

Attributes = Mapping[str, Any]


def tree_classifier(attributes: Attributes, columns: Columns, source: Source, where: str) -> Winner:
    """The class that a TreeEnsembleClassifier predicts."""
    labels = attributes.get("classlabels_strings") or attributes.get("classlabels_int64s") or ()
    classes = tuple(one.decode() if isinstance(one, bytes) else int(one) for one in labels)
    ids, weights = attributes["class_ids"], np.asarray(_numbers(attributes, "class_weights"))
    sums = _sums(attributes, "class", len(classes), columns, source, where)
    if len(classes) > 2:
        _all_scored(attributes, len(classes), weights, where)
        if len(sums) < len(classes):
            raise refuse(where, "a class without weights", f"trees of every class, {OR_ASK}")
        scores = tuple(sums[k] for k in range(len(classes)))
        exact = all(one.exact for one in scores)
        return Winner(scores, by_largest(len(classes), exact), classes, "raw score")
    base = _numbers(attributes, "base_values")
    if len(classes) < 2 or len(set(ids)) != 1 or len(base) > 1:
        got = "two classes with weights or base values of their own"
        raise refuse(where, got, f"weights of one of two classes, as skl2onnx writes them, {OR_ASK}")
    return Winner((sums[ids[0]],), by_margin(0.5 if (weights >= 0).all() else 0.0), classes, "raw score")


def tree_regressor(attributes: Attributes, columns: Columns, source: Source, where: str) -> Sums:
    """The number that a TreeEnsembleRegressor predicts."""
    if int(attributes.get("n_targets", 1)) != 1:
        raise refuse(where, f"{attributes['n_targets']} targets", "one")
    kind = _text(attributes, "aggregate_function", "SUM")
    if _text(attributes, "post_transform", "NONE") != "NONE" or kind not in ("SUM", "AVERAGE"):
        got = f"aggregate_function {kind}, post_transform {_text(attributes, 'post_transform', 'NONE')}"
        raise refuse(where, got, f"SUM or AVERAGE, NONE, {OR_ASK}")
    score = _sums(attributes, "target", 1, columns, source, where)[0]
    if kind == "AVERAGE":
        if score.base:
            raise refuse(where, "an average with a base value", f"a sum, {OR_ASK}")
        score = replace(score, aggregate="mean", exact=False)
        score = replace(score, unsure=score.rounding)
    narrow = score.reach * 2.0**-24 if score.sum_dtype == "float64" else 0.0  # the output is float32
    return Sums((replace(score, unsure=score.unsure + narrow),))


def _text(attributes: Attributes, name: str, default: str) -> str:
    held = attributes.get(name, default)
    return held.decode() if isinstance(held, bytes) else str(held)


def _numbers(attributes: Attributes, name: str) -> Any:
    held = attributes.get(name)
    return attributes.get(f"{name}_as_tensor", ()) if held is None else held


def _all_scored(attributes: Attributes, count: int, weights: NDArray[np.floating[Any]], where: str) -> None:
    """Refuse an ensemble in which a row may reach no weight of a class, which then cannot win, though its sum
    of 0 is the largest."""
    if (weights >= 0).all() or len(_numbers(attributes, "base_values")) == count:
        return
    owners = list(zip(attributes["class_treeids"], attributes["class_ids"], strict=True))
    modes = attributes["nodes_modes"]
    leaves = [t for t, mode in zip(attributes["nodes_treeids"], modes, strict=True) if mode == b"LEAF"]
    if not all(any(owners.count((t, k)) == leaves.count(t) for t in set(leaves)) for k in range(count)):
        raise refuse(where, "classes without a weight in some leaves", f"a weight in each leaf, {OR_ASK}")


def _sums(
    attributes: Attributes, what: str, count: int, columns: Columns, source: Source, where: str
) -> dict[int, TreeScore]:
    """The sum of each class or target that has weights."""
    double = columns.kind == "float64"
    kind: Precision = "float64" if double else "float32"
    ids = np.asarray(attributes[f"{what}_ids"])
    owner = list(zip(attributes[f"{what}_treeids"], attributes[f"{what}_nodeids"], strict=True))
    weights = np.asarray(_numbers(attributes, f"{what}_weights"), dtype=kind).astype(np.float64)
    places: dict[int, dict[int, int]] = {}
    for k, (tree, node) in enumerate(
        zip(attributes["nodes_treeids"], attributes["nodes_nodeids"], strict=True)
    ):
        places.setdefault(tree, {})[node] = k
    nodes = {tree: _tree(attributes, at, kind, where) for tree, at in places.items()}
    base = np.asarray(_numbers(attributes, "base_values"), dtype=kind).astype(np.float64)
    positions = source.positions(columns)
    scores = {}
    for target in sorted(set(ids.tolist())):
        values = {tree: np.zeros(len(at)) for tree, at in places.items()}
        local = {tree: {node: j for j, node in enumerate(at)} for tree, at in places.items()}
        mine = np.flatnonzero(ids == target).tolist()
        for k in mine:
            tree, node = owner[k]
            values[tree][local[tree][node]] += weights[k]
        used = [tree for tree in places if tree in {owner[k][0] for k in mine}]
        trees = tuple(ReadTree(replace(nodes[tree], value=values[tree])) for tree in used)
        start = float(base[target]) if len(base) == count else float(base.sum())
        score = TreeScore(trees, start, kind, kind, exact=adds_exactly(trees, start))
        unsure = 0.0 if len(trees) == 1 else score.rounding  # one sum of two is the same in any order
        scores[target] = replace(score, unsure=unsure).at(positions)
    return scores


def _tree(attributes: Attributes, at: Mapping[int, int], kind: Precision, where: str) -> Tree:
    """One tree without its leaves' values."""
    place = {node: j for j, node in enumerate(at)}
    rows: list[Sequence[float]] = []
    rules = attributes.get("nodes_missing_value_tracks_true") or ()
    thresholds = np.asarray(_numbers(attributes, "nodes_values"), dtype=kind)
    for k in at.values():
        mode = attributes["nodes_modes"][k]
        name = mode.decode() if isinstance(mode, bytes) else str(mode)
        if name == "LEAF":
            rows.append((-2, -2.0, -1, -1, False))
            continue
        if name not in _MODES:
            raise refuse(where, f"a node of mode {name}", f"{', '.join(_MODES)}, {OR_ASK}")
        below, swapped = _MODES[name]
        threshold = thresholds[k]
        if below:
            threshold = np.nextafter(threshold, thresholds.dtype.type(-np.inf))
        true, false = (place[attributes[f"nodes_{way}nodeids"][k]] for way in ("true", "false"))
        left, right = (false, true) if swapped else (true, false)
        tracks = bool(rules[k]) if len(rules) else False
        rows.append((attributes["nodes_featureids"][k], float(threshold), left, right, tracks is not swapped))
    table = np.array(rows, dtype=np.float64).T
    below_one = table[2:4, table[0] >= 0]
    if sorted(below_one.ravel().tolist()) != list(range(1, len(rows))):
        raise refuse(where, "nodes that are no tree below the first", "a graph as exporters write it")
    feature, lefts, rights = (column.astype(np.int64) for column in table[[0, 2, 3]])
    cuts = np.clip(table[1], -LARGEST, LARGEST)
    return Tree(feature, cuts, lefts, rights, np.zeros(len(rows)), table[4].astype(bool))
