"""Classifiers and their acceptance rule: how files state them, from JSON and back."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Discriminator, Field, StringConstraints, Tag

from milp_recourse.errors import BadInput
from milp_recourse.formats.stated import Known, NonNegative, Number, Stated, Strict, then, validate
from milp_recourse.formats.strict_json import parse_json, read_bytes
from milp_recourse.problem.derived_networks import Bend, Bends, with_bends
from milp_recourse.problem.forest import Tree, TreeEnsemble
from milp_recourse.problem.instance import Acceptance, Classifier, Instance
from milp_recourse.problem.network import DType, ReluNetwork

LARGEST_SCORE = 1e30
"""The largest size of boosted sums, far below the largest float32."""

Row = Annotated[list[Number], Field(min_length=1)]


class Layer(Strict):
    """One layer z = weight x + bias."""

    weight: Annotated[list[Row], Field(min_length=1)] = Field(description="outputs x inputs")
    bias: Row


def network_of(layers: Sequence[Layer], dtype: DType) -> ReluNetwork:
    """A network with one output whose layers fit each other."""
    width: int | None = None
    for k, layer in enumerate(layers):
        where, first = f"layers.{k}", len(layer.weight[0])
        for row, weights in enumerate(layer.weight):
            if len(weights) != first:
                raise BadInput(f"{where}.weight.{row}", f"{len(weights)} numbers", f"{first}, as in row 0")
        if width is not None and first != width:
            raise BadInput(f"{where}.weight", f"{first} inputs", f"{width}, the outputs of the layer before")
        width = len(layer.weight)
        if len(layer.bias) != width:
            raise BadInput(f"{where}.bias", f"{len(layer.bias)} numbers", f"{width}, one per row")
        if dtype == "float32":
            _check_float32(layer.weight, f"{where}.weight")
            _check_float32(layer.bias, f"{where}.bias")
    if width != 1:
        raise BadInput(f"layers.{len(layers) - 1}.weight", f"{width} outputs", "1: the logit")
    return ReluNetwork.from_layers([(layer.weight, layer.bias) for layer in layers], dtype)


def _check_float32(numbers: Any, path: str) -> None:
    values = np.array(numbers)
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32).astype(np.float64)
    if (rounded != values).any():
        raise BadInput(path, values[rounded != values].flat[0].item(), "float32 values, as dtype says")


class HiddenLayer(Layer):
    """A layer of the classifier."""

    functions: list[Bend] | None = Field(
        None, description="of each output, between this layer and the next; default ReLUs"
    )


class NetworkModel(Strict):
    """A fully connected network on the features' columns; the last layer is one number, the logit."""

    kind: Literal["relu-network"]
    dtype: DType
    layers: Annotated[list[HiddenLayer], Field(min_length=1)]

    def build(self, known: Known) -> ReluNetwork:
        """The network.

        Raises
        ------
        BadInput
            Its layers do not fit each other, or the features' columns.
        """
        network, columns = network_of(self.layers, self.dtype), known.columns
        if network.inputs != columns:
            allowed = f"{columns}, the model columns that the features make"
            raise BadInput("layers.0.weight", f"{network.inputs} inputs", allowed)
        bends = list[Bends]()
        for k, layer in enumerate(self.layers):
            most = len(layer.bias) if k + 1 < len(self.layers) else 0
            if layer.functions is not None and len(layer.functions) != most:
                allowed = f"{most}, one per output" if most else "none in the last layer"
                raise BadInput(f"layers.{k}.functions", f"{len(layer.functions)} names", allowed)
            bends.append(None if layer.functions is None else tuple(layer.functions))
        return with_bends(network, bends[:-1]) if any(bends) else network


class TreeModel(Strict):
    """scikit-learn's node arrays, all of one length; a node is a leaf where left is -1."""

    feature: Annotated[list[int], Field(min_length=1)]
    threshold: list[Number]
    left: list[int]
    right: list[int]
    value: list[Number] = Field(description="probability of class 1 at the node; for sums any number")
    missing_left: list[bool] | None = Field(
        default=None,
        description="whether a missing value goes left at the node; without it, none may be missing",
    )

    def build(self, known: Known) -> Tree:
        """The tree.

        Raises
        ------
        BadInput
            Its arrays do not fit each other, or do not describe a tree on the features' columns.
        """
        count = len(self.feature)
        for key in ("threshold", "left", "right", "value", "missing_left"):
            nodes = getattr(self, key)
            if nodes is not None and len(nodes) != count:
                raise BadInput(key, f"{len(nodes)} nodes", f"{count}, as in feature")
        self._check_nodes(known.columns)
        self._check_shape()
        try:
            feature, left, right = (
                np.array(numbers, dtype=np.int64) for numbers in (self.feature, self.left, self.right)
            )
        except OverflowError:  # at a leaf, where they say nothing
            raise BadInput("", "a whole number beyond 64 bits", "whole numbers below 2^63") from None
        return Tree(
            np.clip(feature, -2, None),
            np.array(self.threshold, dtype=np.float64),
            left,
            right,
            np.array(self.value, dtype=np.float64),
            None if self.missing_left is None else np.array(self.missing_left, dtype=bool),
        )

    def _check_nodes(self, columns: int) -> None:
        count = len(self.feature)
        for node, (left, right) in enumerate(zip(self.left, self.right, strict=True)):
            if left == -1:
                if right != -1:
                    raise BadInput(f"right.{node}", right, "-1, since left is -1: a leaf")
                continue
            for key, child in (("left", left), ("right", right)):
                if not 0 < child < count:
                    raise BadInput(f"{key}.{node}", child, f"a node, 1 to {count - 1}, or -1 in both")
            if not 0 <= self.feature[node] < columns:
                raise BadInput(f"feature.{node}", self.feature[node], f"a column, 0 to {columns - 1}")

    def _check_shape(self) -> None:
        """Check that the nodes form a tree: each is reached from node 0, and in one way only."""
        reached, stack = {0}, [0]
        while stack:
            node = stack.pop()
            for key in ("left", "right"):
                child = getattr(self, key)[node]
                if child == -1:
                    continue
                if child in reached:
                    raise BadInput(f"{key}.{node}", child, "a node that no other points to")
                reached.add(child)
                stack.append(child)
        if len(reached) < len(self.feature):
            lost = next(node for node in range(len(self.feature)) if node not in reached)
            raise BadInput("left", f"node {lost} unreachable", "a tree: every node reached from node 0")


class EnsembleModel(Strict):
    """Trees whose mean value (or sum) is the score; go left when x, rounded to dtype, is <= threshold."""

    kind: Literal["tree-ensemble"]
    dtype: DType
    aggregate: Literal["mean", "sum"] = Field(default="mean", description="sum: boosted trees")
    base: Number = Field(default=0.0, description="the number that a sum starts from")
    sum_dtype: DType = Field(default="float64", description="precision of a sum")
    parts: list[Annotated[int, Field(ge=1)]] | None = Field(
        default=None, min_length=1, description="number of trees of each sum, in order, if there are several"
    )
    combine: Literal["smallest", "largest"] | None = Field(
        default=None,
        description="which of several sums is the score: the smallest (accepted where every sum passes) or "
        "the largest (where one does)",
    )
    trees: Annotated[list[Annotated[Tree, Stated(TreeModel)]], Field(min_length=1)]

    def build(self, known: Known) -> TreeEnsemble:
        """The ensemble.

        Raises
        ------
        BadInput
            What is said about sums does not fit, or values are not those that ``aggregate`` asks for.
        """
        for key, default in (("base", 0.0), ("sum_dtype", "float64")):
            if self.aggregate != "sum" and getattr(self, key) != default:
                raise BadInput(key, getattr(self, key), f"{default}, unless aggregate is sum")
        self._check_parts()
        for k, tree in enumerate(self.trees):
            self._check_values(tree, f"trees.{k}.value")
        if self.sum_dtype == "float32":
            _check_float32([self.base], "base")
        with np.errstate(over="ignore"):
            reach = abs(self.base) + sum(float(np.abs(tree.value).max()) for tree in self.trees)
        if reach > LARGEST_SCORE:  # comparisons of infinite scores would be meaningless
            raise BadInput("trees", f"values that could add up to {reach:g}", f"at most {LARGEST_SCORE:g}")
        return TreeEnsemble(
            tuple(self.trees),
            known.columns,
            *(self.aggregate, self.base, self.dtype, self.sum_dtype, tuple(self.parts or ())),
            combine=self.combine or "smallest",
        )

    def _check_values(self, tree: Tree, path: str) -> None:
        if self.sum_dtype == "float32":
            _check_float32(tree.value, path)
        if self.aggregate == "mean":
            for node in np.flatnonzero((tree.left == -1) & ~((tree.value >= 0) & (tree.value <= 1))):
                raise BadInput(f"{path}.{node}", tree.value[node].item(), "a probability, 0 to 1")

    def _check_parts(self) -> None:
        if (self.parts is None) != (self.combine is None):
            given, lacks = ("combine", "parts") if self.parts is None else ("parts", "combine")
            raise BadInput(given, getattr(self, given), f"nothing without {lacks}")
        if self.parts is None:
            return
        if self.aggregate != "sum":
            raise BadInput("parts", self.parts, "nothing, unless aggregate is sum")
        if sum(self.parts) != len(self.trees):
            raise BadInput("parts", self.parts, f"numbers that add up to {len(self.trees)}, the trees")


class FileModel(Strict):
    """A classifier in a file of its own, identified by its hash."""

    path: Annotated[str, StringConstraints(min_length=1)] = Field(description="relative to this file")
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-fA-F]{64}$")] = Field(
        description="SHA-256 of the file's bytes"
    )

    def build(self, known: Known) -> Classifier:
        """The classifier in the file.

        Raises
        ------
        BadInput
            The file cannot be read, is another one, or breaks the format.
        """
        file = known.folder / self.path
        try:
            raw = read_bytes(file, packed=True)
        except BadInput as error:
            allowed = f"a readable file, relative to the instance ({error.got})"
            raise BadInput("path", self.path, allowed) from None
        digest = hashlib.sha256(raw).hexdigest()
        if digest != self.sha256.lower():
            raise BadInput("sha256", self.sha256, f"{digest}, which the file has")
        try:
            content = parse_json(read_bytes(file))
            return validate(InFile, content, "classifier", known)
        except BadInput as error:
            raise error.in_file(str(file)) from None


def _classifier_form(value: Any) -> str | None:
    """The tag of a classifier's form. What is no object is taken for a network, so that the error says that
    an object is wanted; a kind that is no text becomes ``?``, an unknown tag."""
    if not isinstance(value, dict):
        return "relu-network"
    if "kind" not in value and ("path" in value or "sha256" in value):
        return "file"
    kind = value.get("kind")
    return kind if isinstance(kind, str) else None if kind is None else "?"


InlineClassifier = Annotated[NetworkModel | EnsembleModel, Field(discriminator="kind")]
InFile = Annotated[Classifier, Stated(InlineClassifier)]
ClassifierModel = Annotated[
    Annotated[NetworkModel, Tag("relu-network")]
    | Annotated[EnsembleModel, Tag("tree-ensemble")]
    | Annotated[FileModel, Tag("file")],
    Discriminator(_classifier_form),
]


def _known_classifier(classifier: Classifier, known: Known) -> Classifier:
    known.classifier = classifier
    return classifier


StatedClassifier = Annotated[Classifier, Stated(ClassifierModel), then(_known_classifier)]


class AcceptModel(Strict):
    """Networks: logit >= at_least + margin. Trees: score > above, or score >= at_least."""

    at_least: Number | None = Field(default=None, description="networks: default 0; trees: instead of above")
    margin: NonNegative | None = Field(default=None, description="networks; default 0")
    above: Number | None = Field(default=None, description="trees; default 0.5, for sums 0")

    def build(self, known: Known) -> Acceptance:
        """The acceptance rule.

        Raises
        ------
        BadInput
            A key is one of the other kind of classifier, trees have both ``above`` and ``at_least``, or the
            threshold is no float32 value though the network is float32.
        """
        network = isinstance(known.classifier, ReluNetwork)
        foreign = "above" if network else "margin"
        if getattr(self, foreign) is not None:
            allowed = "at_least and margin, for a network" if network else "above or at_least, for trees"
            raise BadInput(foreign, getattr(self, foreign), allowed)
        if isinstance(known.classifier, TreeEnsemble):
            if self.at_least is not None:
                if self.above is not None:
                    raise BadInput("at_least", self.at_least, "nothing beside above: one of the two")
                return Acceptance(self.at_least)
            default = 0.5 if known.classifier.aggregate == "mean" else 0.0
            return Acceptance(default if self.above is None else self.above, 0.0, strict=True)
        threshold = self.at_least or 0.0
        if isinstance(known.classifier, ReluNetwork) and known.classifier.dtype == "float32":
            _check_float32([threshold], "at_least")
        return Acceptance(threshold, self.margin or 0.0)


def accept_to_dict(instance: Instance) -> dict[str, float]:
    """The acceptance rule as JSON with defaults filled in."""
    accept = instance.accept
    if isinstance(instance.classifier, ReluNetwork):
        return {"at_least": accept.threshold, "margin": accept.margin}
    if accept.margin:  # trees' scores are doubles: the least that is enough
        return {"at_least": math.nextafter(accept.above, math.inf)}
    return {"above" if accept.strict else "at_least": accept.threshold}
