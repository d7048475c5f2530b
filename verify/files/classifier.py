"""Reads a classifier, checks its shape and rejects what the formats exclude (section 1)."""

from __future__ import annotations

import hashlib
import itertools
import math
from array import array
from operator import lt
from pathlib import Path
from typing import Any

from verify.files.reading import ARRAYS, INSTANCE, by, parse_json, read_raw, unpacked
from verify.files.shapes import conform, index, maybe, positive
from verify.kernel.checks import Rejected
from verify.kernel.trees import Ensemble, Node, float32

MOST_LAYERS = 100
MOST_WEIGHTS = 500_000
LAYER = {"weight": [[float]], "bias": [float]}
LAYERS = [LAYER]
"""The shape of a network's layers."""
NETWORK = {
    "dtype": {"float32", "float64"},
    "layers": [LAYER | {"functions?": maybe([{"relu", "identity", "sigmoid", "square"}])}],
}


def packed(value: Any, where: str) -> array[float]:
    """Finite numbers as an array; :func:`parse_json` has packed them, but for an empty list."""
    if isinstance(value, array) and all(map(math.isfinite, value)):
        return value
    return array("d", conform(list(value) if isinstance(value, array) else value, [float], where))


TREES = [{key: packed for key in ARRAYS} | {"missing_left?": maybe([bool])}]
"""The shape of an ensemble's trees: scikit-learn's node arrays, and where missing values go."""
PRECISION = {"float32", "float64"}
FOREST = {
    "dtype": PRECISION,
    "aggregate?": {"mean", "sum"},
    "base?": float,
    "sum_dtype?": PRECISION,
    "parts?": maybe([positive]),
    "combine?": maybe({"smallest", "largest"}),
    "trees": TREES,
}
CLASSIFIER = by(
    "kind",
    {"relu-network": NETWORK, "tree-ensemble": FOREST},
)
LARGEST_SCORE = 1e30


def read_classifier(data: Any, folder: Path) -> dict[str, Any]:
    """The classifier's canonical content, read from its own file where the instance names one."""
    if isinstance(data, dict) and "path" in data:
        given = conform(data, {"path": str, "sha256": str}, "classifier")
        file = folder / given["path"]
        raw = read_raw(file, INSTANCE)
        if hashlib.sha256(raw).hexdigest() != given["sha256"].lower():
            raise Rejected(f"classifier: {file.name} is not the file with the sha256 that the instance gives")
        data = parse_json(unpacked(raw, file, INSTANCE), file.name, INSTANCE)
    found: dict[str, Any] = conform(data, CLASSIFIER, "classifier")
    if "trees" in found:
        return _forest(found)
    for k, layer in enumerate(found["layers"]):
        functions = layer.pop("functions")
        if functions is not None and len(functions) != (k + 1 < len(found["layers"])) * len(layer["bias"]):
            raise Rejected(f"classifier.layers.{k}.functions: allowed: one per output of a hidden layer")
        if {*(functions or ())} - {"relu"}:
            layer["functions"] = functions
    return found


def accepted(classifier: dict[str, Any], given: dict[str, Any] | None, columns: int) -> dict[str, Any]:
    """Check that classifier and rule of acceptance fit each other; return the rule's canonical form.

    ``columns`` is the number of the classifier's inputs.
    """
    accept = given or dict.fromkeys(("at_least", "margin", "above"))
    if accept["above" if "layers" in classifier else "margin"] is not None:
        raise Rejected("accept: above is for trees only, margin for networks only")
    if "layers" in classifier:
        check_layers(classifier["layers"], columns)
        listed = [accept["at_least"] or 0.0]
        for layer in classifier["layers"]:
            listed += itertools.chain(layer["bias"], *layer["weight"])
        if classifier["dtype"] == "float32" and (wrong := [n for n in listed if float32(n) != n]):
            raise Rejected(f"classifier, accept: got {wrong[0]!r}; allowed: float32 numbers, as dtype says")
        return {key: accept[key] or 0.0 for key in ("at_least", "margin")}
    rule = {key: accept[key] for key in ("above", "at_least") if accept[key] is not None}
    if len(rule) > 1:
        raise Rejected("accept: got both above and at_least; allowed: one of them")
    check_trees(classifier, columns)
    return rule or {"above": 0.0 if "aggregate" in classifier else 0.5}


def parted(layers: Any) -> tuple[Any, Any]:
    """A network's layers up to the last one with functions, and those after it, which are a ReLU network."""
    cut = max((k + 1 for k, layer in enumerate(layers or ()) if "functions" in layer), default=0)
    return (layers[:cut], layers[cut:]) if cut else ([], layers)


def check_layers(layers: Any, inputs: int) -> None:
    """Raise :class:`Rejected` unless each layer fits the one before and the last has one output."""
    weights = 0
    for k, layer in enumerate(layers):
        width = len(layer["bias"])
        if len(layer["weight"]) != width or not width or any(len(row) != inputs for row in layer["weight"]):
            raise Rejected(f"layers.{k}.weight: allowed: rows of {inputs}, one or more, as many as bias has")
        weights += width * inputs
        inputs = width
    if weights > MOST_WEIGHTS:
        raise Rejected(f"layers: more than {MOST_WEIGHTS} weights (section 9)")
    if len(layers) > MOST_LAYERS:
        raise Rejected(f"layers: more than {MOST_LAYERS} (section 9)")
    if not layers or inputs != 1:
        raise Rejected("layers: allowed: one or more, the last with one output")


def check_trees(content: dict[str, Any], columns: int) -> None:
    """Raise :class:`Rejected` unless there is a tree, the nodes of each form one, ``sum_dtype`` holds all
    values exactly, and no score can be larger than :data:`LARGEST_SCORE`."""
    values = [content.get("base", 0.0)]
    largest = abs(values[0])
    for k, tree in enumerate(content["trees"]):
        _check_tree(tree, columns, "aggregate" not in content, f"classifier.trees.{k}")
        leaves = [value for value, left in zip(tree["value"], tree["left"], strict=True) if left == -1]
        values += leaves
        largest += max(map(abs, leaves))
    if not content["trees"]:
        raise Rejected("classifier.trees: got none; allowed: one or more")
    if content.get("sum_dtype") == "float32" and (wrong := [v for v in values if float32(v) != v]):
        raise Rejected(f"classifier: a leaf or base is {wrong[0]!r}; allowed: float32, as sum_dtype says")
    if largest > LARGEST_SCORE:
        raise Rejected(f"classifier: base and the leaves' values could add up to more than {LARGEST_SCORE:g}")


def ensembles(
    content: dict[str, Any], accept: dict[str, float], places: list[tuple[int, int]]
) -> list[Ensemble]:
    """The parts of an ensemble for the kernel; none for a network.

    The trees' arrays are removed from ``content`` to save memory.
    """
    if "layers" in content:
        return []
    waiting, [(rule, threshold)] = iter(content["trees"]), accept.items()
    return [
        Ensemble(
            trees=[_nodes(tree) for tree in itertools.islice(waiting, int(size))],
            places=places,
            mean="aggregate" not in content,
            base=content.get("base", 0.0),
            single=content["dtype"] == "float32",
            single_sum=content.get("sum_dtype") == "float32",
            strict=rule == "above",
            threshold=threshold,
        )
        for size in content.get("parts", [len(content["trees"])])
    ]


def _nodes(tree: dict[str, Any]) -> list[Node]:
    """A tree's nodes for the kernel; its arrays are removed from ``tree``."""
    rules = tree.get("missing_left") or [None] * len(tree["value"])
    columns, left, right = (map(int, tree[key]) for key in ("feature", "left", "right"))
    inner = zip(columns, tree["threshold"], left, right, rules, strict=True)
    nodes: list[Node] = [
        value if node[2] == -1 else node for value, node in zip(tree["value"], inner, strict=True)
    ]
    tree.clear()
    return nodes


def _forest(data: dict[str, Any]) -> dict[str, Any]:
    """An ensemble's canonical content (section 1), in which only sums have base, sum_dtype and parts."""
    summed = {"base": data["base"] or 0.0, "sum_dtype": data["sum_dtype"] or "float64"}
    parts, combine = data["parts"], data["combine"]
    if (parts is None) != (combine is None) or (parts is not None and data["aggregate"] != "sum"):
        raise Rejected("classifier.parts, combine: allowed: both or neither, and only if aggregate is sum")
    if parts is not None and (any(n != int(n) for n in parts) or sum(parts) != len(data["trees"])):
        raise Rejected("classifier.parts: allowed: whole numbers that add up to the number of trees")
    if data["aggregate"] == "sum":
        several = {} if parts is None else {"parts": parts, "combine": combine}
        summed = {"aggregate": "sum", **summed, **several}
    elif summed == {"base": 0.0, "sum_dtype": "float64"}:
        summed = {}
    else:
        raise Rejected("classifier: base and sum_dtype: allowed only if aggregate is sum")
    for tree in data["trees"]:
        if min(tree["feature"], default=0.0) < -2:  # a leaf's means nothing
            tree["feature"] = array("d", [max(number, -2.0) for number in tree["feature"]])
        if tree["missing_left"] is None:
            del tree["missing_left"]
    return {"kind": data["kind"], "dtype": data["dtype"], **summed, "trees": data["trees"]}


def _check_tree(data: dict[str, Any], columns: int, mean: bool, where: str) -> None:
    """Raise :class:`Rejected` unless the arrays are a tree: the root leads to every node exactly once."""
    (column, _, left, right, value), count = (data[key] for key in ARRAYS), len(data["value"])
    rules = data.get("missing_left") or [None] * count
    if not count or any(len(data[key]) != count for key in ARRAYS) or len(rules) != count:
        raise Rejected(f"{where}: allowed: lists of one length, 1 or more: {', '.join(ARRAYS)}, missing_left")
    inner = [k for k, child in enumerate(left) if child != -1]
    if right.count(-1.0) != count - len(inner) or (mean and not 0 <= min(value) <= max(value) <= 1):
        for k in sorted({*range(count)}.difference(inner)):
            if right[k] != -1 or (mean and not 0 <= value[k] <= 1):
                raise Rejected(f"{where}: leaf {k}: allowed: right -1, and as value in a mean 0 to 1")
    first, second, met = [left[k] for k in inner], [right[k] for k in inner], {column[k] for k in inner}
    once = sorted([0.0, *first, *second]) == list(map(float, range(count)))
    if not once or not all(c.is_integer() and 0 <= c < columns for c in met):
        shape = {"feature": index(columns), "left": index(count), "right": index(count)}
        for k, (key, one) in itertools.product(inner, shape.items()):
            conform(data[key][k], one, f"{where}.{key}.{k}")  # says which of them
    # where all children come after their parents, the root leads to each node that is somebody's child
    ordered = all(map(lt, inner, first)) and all(map(lt, inner, second))
    waiting, reached = ([], count) if ordered else ([0], 0)
    while waiting and once:
        reached += len(waiting)
        waiting = [int(side[k]) for k in waiting if left[k] != -1 for side in (left, right)]
    if not once or reached != count:
        raise Rejected(f"{where}: not a tree in which every node is reached once")
