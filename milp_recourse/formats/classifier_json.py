"""Classifiers from JSON and back: networks and trees, in the instance's file or in a file of their own."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from milp_recourse.errors import BadInput
from milp_recourse.formats import schema
from milp_recourse.formats.schema_scm import Layer
from milp_recourse.formats.strict_json import parse_json, read_bytes
from milp_recourse.formats.validate import validate
from milp_recourse.problem.derived_networks import Bends, with_bends
from milp_recourse.problem.forest import Tree, TreeEnsemble
from milp_recourse.problem.instance import Acceptance, Classifier, Instance
from milp_recourse.problem.network import DType, ReluNetwork

LARGEST_SCORE = 1e30
"""The largest size of boosted sums, far below the largest float32."""


def build_classifier(
    model: schema.NetworkModel | schema.EnsembleModel | schema.FileModel,
    columns: int,
    folder: Path,
    path: str = "classifier",
) -> Classifier:
    """The classifier.

    Parameters
    ----------
    columns
        Number of input columns that the features make.
    folder
        The folder to which the path of a classifier's own file is relative.

    Raises
    ------
    BadInput
        A rule of the format is broken. The error names the path, e.g. ``classifier.layers.0.weight``, and the
        classifier's own file if it has one.
    """
    if isinstance(model, schema.FileModel):
        return _from_file(model, columns, folder, path)
    if isinstance(model, schema.NetworkModel):
        network = build_network(model.layers, model.dtype, path)
        _check_columns(network.inputs, columns, f"{path}.layers.0.weight")
        return with_bends(network, _bends(model.layers, path))
    return _build_forest(model, columns, path)


def _bends(layers: Sequence[schema.HiddenLayer], path: str) -> list[Bends]:
    """The functions of the hidden layers."""
    for k, layer in enumerate(layers):
        most = len(layer.bias) if k + 1 < len(layers) else 0
        if layer.functions is not None and len(layer.functions) != most:
            allowed = f"{most}, one per output" if most else "none in the last layer"
            raise BadInput(f"{path}.layers.{k}.functions", f"{len(layer.functions)} names", allowed)
    return [None if layer.functions is None else tuple(layer.functions) for layer in layers[:-1]]


def build_network(layers: Sequence[Layer], dtype: DType, path: str) -> ReluNetwork:
    """A network with one output whose layers fit each other."""
    width: int | None = None
    for k, layer in enumerate(layers):
        where = f"{path}.layers.{k}"
        first = len(layer.weight[0])
        for row, weights in enumerate(layer.weight):
            if len(weights) != first:
                raise BadInput(f"{where}.weight.{row}", f"{len(weights)} numbers", f"{first}, as in row 0")
        if width is not None and first != width:
            raise BadInput(f"{where}.weight", f"{first} inputs", f"{width}, the outputs of the layer before")
        if len(layer.bias) != len(layer.weight):
            raise BadInput(f"{where}.bias", f"{len(layer.bias)} numbers", f"{len(layer.weight)}, one per row")
        if dtype == "float32":
            _check_float32(np.array(layer.weight), f"{where}.weight")
            _check_float32(np.array(layer.bias), f"{where}.bias")
        width = len(layer.weight)
    if width != 1:
        raise BadInput(f"{path}.layers.{len(layers) - 1}.weight", f"{width} outputs", "1: the logit")
    return ReluNetwork.from_layers([(layer.weight, layer.bias) for layer in layers], dtype)


def build_accept(model: schema.AcceptModel, classifier: Classifier) -> Acceptance:
    """The acceptance rule.

    Raises
    ------
    BadInput
        A key is one of the other kind of classifier, trees have both ``above`` and ``at_least``, or the
        threshold is no float32 value though the network is float32.
    """
    network = isinstance(classifier, ReluNetwork)
    foreign = "above" if network else "margin"
    if getattr(model, foreign) is not None:
        allowed = "at_least and margin, for a network" if network else "above or at_least, for trees"
        raise BadInput(f"accept.{foreign}", getattr(model, foreign), allowed)
    if isinstance(classifier, TreeEnsemble):
        if model.at_least is not None:
            if model.above is not None:
                raise BadInput("accept.at_least", model.at_least, "nothing beside above: one of the two")
            return Acceptance(model.at_least)
        default = 0.5 if classifier.aggregate == "mean" else 0.0
        return Acceptance(default if model.above is None else model.above, 0.0, strict=True)
    threshold = model.at_least or 0.0
    if isinstance(classifier, ReluNetwork) and classifier.dtype == "float32":
        _check_float32(np.array([threshold]), "accept.at_least")
    return Acceptance(threshold, model.margin or 0.0)


def accept_to_dict(instance: Instance) -> dict[str, float]:
    """The inverse of :func:`build_accept`, as JSON with defaults filled in."""
    accept = instance.accept
    if isinstance(instance.classifier, ReluNetwork):
        return {"at_least": accept.threshold, "margin": accept.margin}
    if accept.margin:  # trees' scores are doubles: the least that is enough
        return {"at_least": math.nextafter(accept.above, math.inf)}
    return {"above" if accept.strict else "at_least": accept.threshold}


def _from_file(model: schema.FileModel, columns: int, folder: Path, path: str) -> Classifier:
    file = folder / model.path
    try:
        raw = read_bytes(file, packed=True)
    except BadInput as error:
        allowed = f"a readable file, relative to the instance ({error.got})"
        raise BadInput(f"{path}.path", model.path, allowed) from None
    digest = hashlib.sha256(raw).hexdigest()
    if digest != model.sha256.lower():
        raise BadInput(f"{path}.sha256", model.sha256, f"{digest}, which the file has")
    try:
        inner = validate(schema.InlineClassifier, parse_json(read_bytes(file)), path)
        return build_classifier(inner, columns, folder, path)
    except BadInput as error:
        raise error.in_file(str(file)) from None


def _check_columns(got: int, columns: int, path: str) -> None:
    if got != columns:
        raise BadInput(path, f"{got} inputs", f"{columns}, the model columns that the features make")


def _check_float32(values: np.ndarray, path: str) -> None:
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32).astype(np.float64)
    if (rounded != values).any():
        raise BadInput(path, values[rounded != values].flat[0].item(), "float32 values, as dtype says")


def _build_forest(model: schema.EnsembleModel, columns: int, path: str) -> TreeEnsemble:
    """The ensemble, after checks of its trees and of how their values are added up."""
    sums = model.aggregate == "sum"
    for key, default in (("base", 0.0), ("sum_dtype", "float64")):
        if not sums and getattr(model, key) != default:
            raise BadInput(f"{path}.{key}", getattr(model, key), f"{default}, unless aggregate is sum")
    parts = _parts(model, path)
    trees = tuple(_tree(tree, columns, f"{path}.trees.{k}", sums) for k, tree in enumerate(model.trees))
    if model.sum_dtype == "float32":
        _check_float32(np.array([model.base]), f"{path}.base")
        for k, tree in enumerate(trees):
            _check_float32(tree.value, f"{path}.trees.{k}.value")
    _check_size(trees, model.base, path)
    return TreeEnsemble(
        *(trees, columns, model.aggregate, model.base, model.dtype, model.sum_dtype, parts),
        combine=model.combine or "smallest",
    )


def _parts(model: schema.EnsembleModel, path: str) -> tuple[int, ...]:
    """The number of trees of each sum; empty if there is one sum."""
    if (model.parts is None) != (model.combine is None):
        given, lacks = ("combine", "parts") if model.parts is None else ("parts", "combine")
        raise BadInput(f"{path}.{given}", getattr(model, given), f"nothing without {lacks}")
    if model.parts is None:
        return ()
    if model.aggregate != "sum":
        raise BadInput(f"{path}.parts", model.parts, "nothing, unless aggregate is sum")
    if sum(model.parts) != len(model.trees):
        raise BadInput(f"{path}.parts", model.parts, f"numbers that add up to {len(model.trees)}, the trees")
    return tuple(model.parts)


def _check_size(trees: Sequence[Tree], base: float, path: str) -> None:
    """Check that no sum of values can overflow, because comparisons of infinite scores are meaningless."""
    with np.errstate(over="ignore"):
        reach = abs(base) + sum(float(np.abs(tree.value).max()) for tree in trees)
    if reach > LARGEST_SCORE:
        raise BadInput(
            f"{path}.trees", f"values that could add up to {reach:g}", f"at most {LARGEST_SCORE:g}"
        )


def _tree(model: schema.TreeModel, columns: int, path: str, sums: bool = False) -> Tree:
    count = len(model.feature)
    for key in ("threshold", "left", "right", "value", "missing_left"):
        nodes = getattr(model, key)
        if nodes is not None and len(nodes) != count:
            raise BadInput(f"{path}.{key}", f"{len(nodes)} nodes", f"{count}, as in feature")
    _check_nodes(model, columns, path, sums)
    _check_shape(model, path)
    return Tree(
        np.clip(np.array(model.feature, dtype=np.int64), -2, None),
        np.array(model.threshold, dtype=np.float64),
        np.array(model.left, dtype=np.int64),
        np.array(model.right, dtype=np.int64),
        np.array(model.value, dtype=np.float64),
        None if model.missing_left is None else np.array(model.missing_left, dtype=bool),
    )


def _check_nodes(model: schema.TreeModel, columns: int, path: str, sums: bool) -> None:
    count = len(model.feature)
    for node, (left, right) in enumerate(zip(model.left, model.right, strict=True)):
        if left == -1:
            if right != -1:
                raise BadInput(f"{path}.right.{node}", right, "-1, since left is -1: a leaf")
            if not sums and not 0 <= model.value[node] <= 1:
                raise BadInput(f"{path}.value.{node}", model.value[node], "a probability, 0 to 1")
            continue
        for key, child in (("left", left), ("right", right)):
            if not 0 < child < count:
                raise BadInput(f"{path}.{key}.{node}", child, f"a node, 1 to {count - 1}, or -1 in both")
        if not 0 <= model.feature[node] < columns:
            raise BadInput(f"{path}.feature.{node}", model.feature[node], f"a column, 0 to {columns - 1}")


def _check_shape(model: schema.TreeModel, path: str) -> None:
    """Check that the nodes form a tree: each is reached from node 0, and in one way only."""
    reached, stack = {0}, [0]
    while stack:
        node = stack.pop()
        for key in ("left", "right"):
            child = getattr(model, key)[node]
            if child == -1:
                continue
            if child in reached:
                raise BadInput(f"{path}.{key}.{node}", child, "a node that no other points to")
            reached.add(child)
            stack.append(child)
    if len(reached) < len(model.feature):
        lost = next(node for node in range(len(model.feature)) if node not in reached)
        raise BadInput(f"{path}.left", f"node {lost} unreachable", "a tree: every node reached from node 0")
