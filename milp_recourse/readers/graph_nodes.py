r"""The operators of ONNX graphs.

======================================  ==============================================================
Gemm, MatMul                            :math:`\alpha A' B' + \beta C`; applicants as rows or columns
Add, Sub, Mul, Div, Neg, Scaler         with a constant; Add and Sub of two tensors, too
Relu, LeakyRelu, Clip, Tanh, Sigmoid    of affine maps; a Clip of columns, too
BatchNormalization                      :math:`(z - \mu) / \sqrt{v + \epsilon} \cdot w + b`
Concat, FeatureVectorizer               along the columns
ArrayFeatureExtractor, Gather, Split    of columns; or of the classes at the predicted position
OneHotEncoder, LabelEncoder, Imputer    of columns
TreeEnsembleClassifier, -Regressor      :mod:`milp_recourse.readers.graph_trees`
LinearClassifier, LinearRegressor       the largest of several scores, one score above 0, or the number
Softmax, LogSoftmax, ArgMax             of affine maps, at the end
Cast, Identity, Dropout and shapes      between float32 and float64, or of labels; shapes (n, columns)
======================================  ==============================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import Unsupported
from milp_recourse.readers.formulas import Rule, by_largest, by_margin
from milp_recourse.readers.from_torch import TIED
from milp_recourse.readers.gaps import imputed_gaps
from milp_recourse.readers.graph_trees import tree_classifier, tree_regressor
from milp_recourse.readers.graph_values import Columns, Hidden, Net, Source, Sums, Value, Winner, joined
from milp_recourse.readers.layers import UNIT
from milp_recourse.readers.operations import Operation
from milp_recourse.readers.refusal import OR_ASK, refuse
from milp_recourse.readers.scores import NetworkScore
from milp_recourse.readers.track import Track
from milp_recourse.readers.transformers import after_imputer
from milp_recourse.readers.tree_parts import LARGEST

DOMAINS = ("", "ai.onnx", "ai.onnx.ml")
_SAME = ("Identity", "Dropout", "Flatten", "Squeeze", "Unsqueeze", "Reshape")


@dataclass
class Nodes:
    """Follows a graph from node to node.

    Attributes
    ----------
    values
        What each tensor holds.
    source
        Where columns are.
    labels
        For each column that an encoder treats as labels, those that it knows.
    dtypes
        The precisions of the constants that maps use.
    nets
        The columns that enter maps, as networks: all branches from them begin with the same one.
    """

    values: dict[str, Value]
    source: Source
    labels: dict[int, list[object]] = field(default_factory=dict)
    dtypes: set[str] = field(default_factory=set)
    nets: dict[str, Net] = field(default_factory=dict)

    def visit(self, node: Any, where: str) -> None:
        """Note what a node's outputs hold."""
        from onnx import helper

        if node.op_type == "Constant" and node.domain in DOMAINS:
            return  # its tensor is among the values
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        try:
            made = self._made(node, attributes, where)
        except Unsupported as error:
            made = [Hidden(error)] * len(node.output)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            unfit = refuse(where, f"attributes that do not fit ({error!r})", "a graph as exporters write it")
            made = [Hidden(unfit)] * len(node.output)
        self.values |= dict(zip(node.output, made, strict=False))

    def _made(self, node: Any, attributes: dict[str, Any], where: str) -> Sequence[Value]:
        if node.domain not in DOMAINS:
            raise refuse(where, f"an operator of domain {node.domain}", ALLOWED)
        operation = _OPERATIONS.get(node.op_type)
        if operation is None:
            raise refuse(where, node.op_type, ALLOWED)
        inputs = [self.values.get(name) if name else None for name in node.input]
        hidden = next((one for one in inputs if isinstance(one, Hidden)), None)
        if hidden is not None:
            raise hidden.error
        if all(isinstance(one, np.ndarray) for one in inputs) and node.op_type in _SAME:
            return [inputs[0]]  # type: ignore[list-item]
        made = operation(Call(self, node, attributes, where, inputs))
        return made if isinstance(made, list) else [made, Hidden(_probabilities(where))]

    def net(self, value: Columns | Net, rows: bool = True) -> Net:
        """The columns as the inputs of a network, or a network itself."""
        if isinstance(value, Net):
            return value
        if value.name not in self.nets:
            layers, columns = self.source.layers(value)
            self.nets[value.name] = Net(layers, columns, rows=rows)
        return self.nets[value.name]


@dataclass
class Call:
    """One node: its attributes and what its inputs hold."""

    nodes: Nodes
    node: Any
    attributes: dict[str, Any]
    where: str
    inputs: Sequence[Value | None]

    @property
    def output(self) -> str:
        """The first output's name."""
        return str(self.node.output[0])

    def data(self, position: int = 0) -> Columns | Net:
        """An input that depends on the applicant.

        Raises
        ------
        Unsupported
            It does not, or holds something else.
        """
        value = self.inputs[position]
        if not isinstance(value, Columns | Net):
            raise refuse(self.where, f"input {self.node.input[position]}", "numbers made of the columns")
        return value

    def net(self, position: int = 0, rows: bool = True) -> Net:
        """An input as a network whose layers may be changed.

        Raises
        ------
        Unsupported
            It is no network, a softmax came before, or applicants lie the other way.
        """
        value = self.data(position)
        if isinstance(value, Columns) and (value.truncated or value.kind == "str"):
            raise refuse(self.where, value.truncated or "texts", "an encoder before it")
        net = self.nodes.net(value, rows)
        if net.closed == "sigmoid":  # something follows: it is a function like others
            hidden = replace(net.copy(), closed="")
            hidden.layers.curve("sigmoid", self.where, self.unit)
            return hidden
        if net.closed:
            what = "a softmax" if net.closed == "softmax" else "one less a sigmoid"
            raise refuse(self.where, f"{self.node.op_type} right after {what}", f"nothing after {what}")
        return net.copy()

    def constant(self, position: int) -> NDArray:
        """An input that is the same for everybody, in the precision of all others."""
        value = self.inputs[position]
        if not isinstance(value, np.ndarray):
            got = f"input {self.node.input[position]}, which is no constant"
            raise refuse(self.where, got, "an initialiser or Constant node")
        self.nodes.dtypes.add(str(value.dtype))
        if self.nodes.dtypes not in ({"float32"}, {"float64"}):
            held = " and ".join(sorted(self.nodes.dtypes))
            raise refuse(self.where, f"constants of {held}", "all float32 or all float64")
        return value

    @property
    def unit(self) -> float:
        """The unit roundoff of the constants' precision."""
        return UNIT["float64" if self.nodes.dtypes == {"float64"} else "float32"]

    def shift(self, position: int, net: Net) -> NDArray:
        """A constant, broadcast to one number per output; it must be the same for every applicant."""
        constant, outputs = self.constant(position), net.width
        full = [(outputs,), (1, outputs)] if net.rows else [(outputs, 1)]
        if (constant.size != 1 and constant.shape not in full) or constant.ndim > 2:
            shapes = " or ".join(str(shape) for shape in full)
            raise refuse(self.where, f"a shift of shape {constant.shape}", f"shape {shapes}")
        return np.broadcast_to(constant.reshape(-1), (outputs,))


ALLOWED = f"affine maps, ReLUs, encoders and trees, {OR_ASK}"


def _probabilities(where: str) -> Unsupported:
    return refuse(where, "probabilities as the answer", "the label as an output of the graph")


def _gemm(call: Call) -> Value:
    get = call.attributes.get
    alpha, beta = get("alpha", 1.0), get("beta", 1.0)
    transposed = [bool(get("transA", 0)), bool(get("transB", 0))]
    first = not isinstance(call.inputs[0], np.ndarray)
    data_transposed, matrix_transposed = transposed if first else reversed(transposed)
    net = _oriented(call, 0 if first else 1, first, first != data_transposed)
    matrix = call.constant(1 if first else 0)
    weight = _outputs_first(matrix.T if matrix_transposed else matrix, first, call.where)
    net = replace(net, rows=first)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        scaled = weight.dtype.type(alpha) * weight
        bias = np.zeros(len(weight), weight.dtype)
        if len(call.inputs) > 2 and call.inputs[2] is not None:
            shaped = replace(net, layers=_Width(len(weight)))  # type: ignore[arg-type]
            bias = bias + weight.dtype.type(beta) * call.shift(2, shaped)
        net.layers.affine(scaled, bias, call.where, call.unit, np.abs(bias).astype(np.float64))
    return net


@dataclass
class _Width:
    outputs: int


def _matmul(call: Call) -> Value:
    first = not isinstance(call.inputs[0], np.ndarray)
    net = _oriented(call, 0 if first else 1, first, first)
    weight = _outputs_first(call.constant(1 if first else 0), first, call.where)
    net.layers.affine(weight, np.zeros(len(weight)), call.where, call.unit)
    return net


def _oriented(call: Call, position: int, rows_out: bool, rows_in: bool) -> Net:
    """The data of a product, which has applicants as rows, or as columns, like the nodes before it."""
    net = call.net(position, rows_in)
    if net.rows != rows_in:
        held, met = ("rows", "columns") if net.rows else ("columns", "rows")
        raise refuse(call.where, f"applicants as {met}", f"applicants as {held}, as in the nodes before")
    return replace(net, rows=rows_out)


def _outputs_first(matrix: NDArray, data_first: bool, where: str) -> NDArray:
    """The matrix as (outputs, inputs): transposed if rows are multiplied by it from the right."""
    if matrix.ndim != 2:
        raise refuse(where, f"a factor of shape {matrix.shape}", "a matrix")
    return matrix.T if data_first else matrix


def _arithmetic(call: Call) -> Value:
    """Add, Sub, Mul or Div."""
    kind = call.node.op_type
    at = next((k for k, one in enumerate(call.inputs) if isinstance(one, np.ndarray)), None)
    if at is None:
        return _of_two(call, kind)
    value = call.data(1 - at)
    if isinstance(value, Net) and value.closed == "sigmoid" and kind == "Sub" and at == 0:
        return replace(value, closed="rest") if (call.constant(0) == 1).all() else call.net(1)
    falls = kind == "Sub" and at == 0
    if kind == "Div" and at == 0:
        raise refuse(call.where, "a constant divided by numbers", f"numbers divided by it, {OR_ASK}")
    if isinstance(value, Columns) and value.tracks is not None and not falls:
        constant = call.constant(at)
        if constant.size in (1, len(value.tracks)) and (kind in ("Add", "Sub") or (constant > 0).all()):
            sign, name = (-1.0 if kind == "Sub" else 1.0), _KINDS[kind]
            each = np.broadcast_to(constant.astype(np.float64).reshape(-1), (len(value.tracks),))
            return value.after(call.output, [[Operation(name, sign * float(c))] for c in each])  # type: ignore[arg-type]
    net = call.net(1 - at)
    if not net.width:
        raise refuse(call.where, f"{kind} before the first affine map", "it after MatMul or Gemm")
    constant = call.shift(at, net).astype(np.float64)
    if kind in ("Mul", "Div"):
        factor = constant if kind == "Mul" else 1.0 / constant
        net.layers.rescale(factor, np.zeros(net.width), call.where, call.unit, np.zeros(net.width))
        return net
    signed = -constant if kind == "Sub" and at == 1 else constant
    if kind == "Add" and net.layers.segments[-1]:
        net.layers.shift(signed, call.where, "float64" if call.unit == UNIT["float64"] else "float32")
    else:
        ones = np.full(net.width, -1.0 if falls else 1.0)
        net.layers.rescale(ones, signed, call.where, call.unit, np.abs(signed))
    return net


_KINDS = {"Add": "add", "Sub": "add", "Mul": "multiply", "Div": "divide"}


def _of_two(call: Call, kind: str) -> Value:
    if kind not in ("Add", "Sub"):
        raise refuse(call.where, f"{kind} of two tensors", f"Add or Sub, {OR_ASK}")
    both = [call.net(0), call.net(1)]
    if both[0].width != both[1].width or both[0].rows != both[1].rows:
        raise refuse(call.where, f"{both[0].width} and {both[1].width} columns", "as many of both")
    net, eye = joined(both, call.where), np.eye(both[0].width)
    pair = np.hstack([eye, eye if kind == "Add" else -eye])
    net.layers.affine(pair, np.zeros(len(eye)), call.where, call.unit)
    return net


def _negative(call: Call) -> Value:
    net = call.net()
    net.layers.rescale(np.full(net.width, -1.0), np.zeros(net.width), call.where, 0.0, np.zeros(net.width))
    return net


def _relu(call: Call) -> Value:
    net = call.net()
    net.layers.relu(call.where)
    return net


def _leaky(call: Call) -> Value:
    net = call.net()
    net.layers.leaky(float(call.attributes.get("alpha", np.float32(0.01))), call.where, call.unit)
    return net


def _clip(call: Call) -> Value:
    ends: list[float | None] = [None, None]
    for k, name in enumerate(("min", "max")):
        if name in call.attributes:
            ends[k] = float(call.attributes[name])
        elif len(call.inputs) > k + 1 and call.inputs[k + 1] is not None:
            ends[k] = float(call.constant(k + 1).reshape(()))
    low, high = ends
    value = call.data()
    if isinstance(value, Columns) and value.tracks is not None:
        clip = Operation("clip", -LARGEST if low is None else low, LARGEST if high is None else high)
        return value.after(call.output, [[clip]] * len(value.tracks))
    net = call.net()
    if low == 0 and high is None:
        net.layers.relu(call.where)
    elif low is None or high is None:
        raise refuse(call.where, f"limits {low} and {high}", "both limits, or the lower limit 0 alone")
    else:
        net.layers.clamp(low, high, call.where)
    return net


def _normalise(call: Call) -> Value:
    if call.attributes.get("training_mode", 0):
        raise refuse(call.where, "training mode", "a graph exported in eval mode")
    net = call.net()
    if not net.rows:
        raise refuse(call.where, "applicants as columns", "applicants as rows")
    epsilon = float(call.attributes.get("epsilon", np.float32(1e-5)))
    weight, bias, mean, variance = (call.constant(k).astype(np.float64) for k in (1, 2, 3, 4))
    net.layers.normalise(mean, variance, epsilon, weight, bias, call.where, call.unit)
    return net


def _sigmoid(call: Call) -> Value:
    net = call.net()
    net.layers.lengthened(0).sigmoid(call.where, call.unit)  # checks what comes before
    return replace(net, closed="sigmoid", where=call.where)


def _tanh(call: Call) -> Value:
    net = call.net()
    net.layers.curve("tanh", call.where, call.unit)
    return net


def _softmax(call: Call) -> Value:
    net = call.net()
    axis = call.attributes.get("axis", -1)
    if axis not in (1, -1) or not net.rows:
        raise refuse(call.where, f"axis {axis}", "axis 1, over the classes, applicants as rows")
    net.layers.lengthened(0).softmax(call.where)
    return replace(net, closed="softmax")


def _winner(net: Net, unit: float, classes: Sequence[object]) -> Winner:
    """The largest of several outputs; of one, whether it is above 0."""
    net.check_order()
    softmax = unit if net.closed == "softmax" else 0.0
    slack = TIED * unit if net.closed else 0.0
    scores = tuple(NetworkScore(net.layers, k, net.columns, softmax) for k in range(net.width))
    two = len(scores) == 1
    rule: Rule = by_margin(slack=(slack, slack)) if two else by_largest(len(scores), slack=slack)
    return Winner(scores, rule, tuple(classes), "logit")


def _argmax(call: Call) -> Value:
    net = call.data()
    axis = call.attributes.get("axis", 0)
    if not isinstance(net, Net) or axis not in (1, -1) or call.attributes.get("select_last_index", 0):
        raise refuse(call.where, "ArgMax of other numbers", f"of a network's outputs, axis 1, {OR_ASK}")
    return _winner(net, call.unit, range(max(net.width, 2)))


def _linear_classifier(call: Call) -> Value:
    get = call.attributes.get
    labels = get("classlabels_strings") or get("classlabels_ints") or ()
    classes = [one.decode() if isinstance(one, bytes) else int(one) for one in labels]
    bias = np.asarray(get("intercepts", ()), dtype=np.float64)
    net = _weighted(call, np.asarray(call.attributes["coefficients"]), bias)
    if len(classes) != max(len(bias), 2):
        raise refuse(call.where, f"{len(bias)} scores of {len(classes)} classes", "one for each, or for two")
    return _winner(net, UNIT["float32"], classes)


def _linear_regressor(call: Call) -> Value:
    if call.attributes.get("post_transform", b"NONE") != b"NONE" or call.attributes.get("targets", 1) != 1:
        raise refuse(call.where, "several targets, or a post_transform", f"one target, NONE, {OR_ASK}")
    bias = np.asarray(call.attributes.get("intercepts", [0.0]), dtype=np.float64)
    net = _weighted(call, np.asarray(call.attributes["coefficients"]), bias)
    return Sums((NetworkScore(net.layers, 0, net.columns),))


def _weighted(call: Call, coefficients: NDArray, bias: NDArray) -> Net:
    """The map of a linear model, which rounds its inputs to float32."""
    value, net = call.data(), call.net()
    if isinstance(value, Columns) and value.kind != "float32":
        eye = np.eye(net.width)
        net.layers.affine(eye, np.zeros(len(eye)), call.where, UNIT["float32"])
    net.layers.affine(coefficients.reshape(len(bias), -1), bias, call.where, UNIT["float32"])
    return net


def _scaler(call: Call) -> Value:
    value = call.data()
    if not isinstance(value, Columns) or value.tracks is None:
        raise refuse(call.where, "a Scaler behind an affine map", f"one of columns, {OR_ASK}")
    count = len(value.tracks)
    offset, scale = (
        np.broadcast_to(np.asarray(call.attributes[name], dtype=np.float64), (count,)).tolist()
        for name in ("offset", "scale")
    )
    if min(scale, default=1.0) <= 0:
        raise refuse(call.where, f"the scale {min(scale)}", "scales above 0")
    pairs = zip(offset, scale, strict=True)
    return value.after(
        call.output, [[Operation("add", 0.0 - o), Operation("multiply", s)] for o, s in pairs]
    ).rounded(call.output)


def _imputer(call: Call) -> Value:
    value = call.data()
    held = call.attributes.get("imputed_value_floats")
    if not isinstance(value, Columns) or value.tracks is None or held is None:
        raise refuse(call.where, "an Imputer of whole numbers, or behind others", "one of float columns")
    replaced = float(call.attributes.get("replaced_value_float", 0.0))
    if not np.isnan(replaced):
        raise refuse(call.where, f"an Imputer that replaces {replaced}", f"one that replaces nan, {OR_ASK}")
    filled = np.broadcast_to(np.asarray(held, dtype=np.float64), (len(value.tracks),)).tolist()
    gaps = imputed_gaps(np.nan)
    tracks = (
        t if t.coded else after_imputer(t, own, gaps, call.where)
        for t, own in zip(value.tracks, filled, strict=True)
    )
    return replace(value, name=call.output, tracks=tuple(tracks))


def _encoder(call: Call) -> Value:
    """OneHotEncoder or LabelEncoder: what labels become is found by running the graph."""
    value = call.data()
    one_hot = call.node.op_type == "OneHotEncoder"
    if not isinstance(value, Columns) or value.tracks is None or (one_hot and len(value.tracks) != 1):
        raise refuse(call.where, f"{call.node.op_type} of other tensors", "of one column of labels")
    if any(not t.coded and any(o.kind != "round" for o in t.operations) for t in value.tracks):
        raise refuse(call.where, f"{call.node.op_type} behind a scaler or imputer", "of a raw column")
    names = ("cats_strings", "cats_int64s") if one_hot else ("keys_strings", "keys_int64s", "keys_floats")
    keys = next((call.attributes[n] for n in names if len(call.attributes.get(n, ()))), None)
    if keys is None:
        raise refuse(call.where, f"{call.node.op_type} without {' or '.join(names)}", "these attributes")
    kind = "float32" if one_hot or "values_floats" in call.attributes else "int64"
    kind = "str" if "values_strings" in call.attributes else kind
    labels = [key.decode() if isinstance(key, bytes) else key for key in keys]
    tracks = []
    for track in value.tracks:
        if not track.coded:
            known = self_labels = call.nodes.labels.setdefault(track.raw, [])
            known += [label for label in labels if label not in set(self_labels)]
        coded = Track(track.raw, coded=True)
        tracks += [replace(coded) for _ in range(len(labels) if one_hot else 1)]  # each is its own
    return Columns(call.output, tuple(tracks), kind)


def _concat(call: Call) -> Value:
    axis = call.attributes.get("axis", 1)
    parts = [call.data(k) for k in range(len(call.inputs))]
    if axis not in (1, -1, 2):
        raise refuse(call.where, f"Concat along axis {axis}", "axis 1, over the columns")
    found = [one for one in parts if isinstance(one, Columns)]
    if len(found) == len(parts) and all(one.tracks is not None for one in found):
        tracks = tuple(replace(track) for one in found for track in one.tracks or ())
        why = next((one.truncated for one in found if one.truncated), "")
        return Columns(call.output, tracks, found[0].kind, why)
    nets = [one for one in parts if isinstance(one, Net)]
    if len(parts) == 2 and [one.closed for one in nets] == ["rest", "sigmoid"]:
        first, second = nets
        if first.layers is not second.layers or first.width != 1:
            raise refuse(call.where, "two sigmoids", "one minus a sigmoid, and the sigmoid")
        return second  # of both, the second is larger where the logit is above 0
    return joined([call.net(k) for k in range(len(parts))], call.where)


def _picked(call: Call) -> Value:
    """ArrayFeatureExtractor or Gather: columns, or the class at a position."""
    value, at = call.inputs
    if isinstance(at, Winner):
        if not isinstance(value, np.ndarray) or value.size != len(at.classes):
            raise refuse(call.where, "a table of other labels", "a constant with one for each class")
        classes = tuple(one.decode() if isinstance(one, bytes) else one for one in value.reshape(-1).tolist())
        return replace(at, classes=classes)
    value = call.data()
    axis = call.attributes.get("axis", 0) if call.node.op_type == "Gather" else 1
    if not isinstance(value, Columns) or value.tracks is None or not isinstance(at, np.ndarray) or axis != 1:
        raise refuse(call.where, f"{call.node.op_type} of other tensors", "of columns, by constant positions")
    tracks = tuple(replace(value.tracks[int(k)]) for k in at.reshape(-1))
    return replace(value, name=call.output, tracks=tracks)


def _split(call: Call) -> Value | list[Value]:
    value = call.data()
    if not isinstance(value, Columns) or value.tracks is None or call.attributes.get("axis") not in (1, -1):
        raise refuse(call.where, "Split of other tensors", "of columns, along axis 1")
    given = call.attributes.get("split") or (
        call.inputs[1].tolist() if isinstance(call.inputs[-1], np.ndarray) else None  # type: ignore[union-attr]
    )
    count = len(call.node.output)
    sizes = given or [-(-len(value.tracks) // count)] * count
    ends = np.cumsum([0, *sizes]).tolist()
    parts = zip(call.node.output, ends[:-1], ends[1:], strict=True)
    return [replace(value, name=name, tracks=value.tracks[a:b]) for name, a, b in parts]


def _cast(call: Call) -> Value:
    from onnx import helper

    value = call.inputs[0]
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(call.attributes["to"]))
    kind = "str" if dtype.kind == "O" else str(dtype)
    if isinstance(value, np.ndarray):
        return value.astype(dtype)
    if isinstance(value, Winner):
        whole = all(isinstance(one, int | float) and one == int(one) for one in value.classes)
        if dtype.kind in "if" and whole:
            return replace(value, classes=tuple(int(one) for one in value.classes))  # type: ignore[call-overload]
        if kind == "str" and all(isinstance(one, str) for one in value.classes):
            return value
        raise refuse(call.where, f"labels as {kind}", "labels as they are")
    if isinstance(value, Columns) and value.kind == kind:
        return replace(value, name=call.output)
    if isinstance(value, Columns) and kind == "float32" and value.kind != "str":
        return value.rounded(call.output)
    if isinstance(value, Columns) and kind == "float64" and value.kind != "str":
        return replace(value, name=call.output, kind=kind)
    if isinstance(value, Columns):
        all_coded = all(track.coded for track in value.tracks or ())
        why = "" if all_coded and kind != "str" else f"numbers as {kind}"
        return replace(value, name=call.output, kind=kind, truncated=why)
    net = call.net()
    if kind == "float32":
        net.layers.affine(np.eye(net.width), np.zeros(net.width), call.where, UNIT["float32"])
    elif kind != "float64":
        raise refuse(call.where, f"a Cast to {kind}", "float32 or float64")
    return net


def _same(call: Call) -> Value:
    """Identity, Dropout, and nodes that change shapes."""
    value, get = call.inputs[0], call.attributes.get
    kind = call.node.op_type
    if kind == "Dropout" and any(isinstance(one, np.ndarray) and bool(one) for one in call.inputs[2:]):
        raise refuse(call.where, "Dropout in training mode", "a graph exported in eval mode")
    if kind == "Flatten" and get("axis", 1) != 1:
        raise refuse(call.where, f"Flatten with axis {get('axis')}", "axis 1")
    if kind == "Reshape" and not isinstance(value, Winner):
        shape = [] if not isinstance(call.inputs[1], np.ndarray) else call.inputs[1].reshape(-1).tolist()
        width = call.data().width if isinstance(value, Net) else len(call.data().tracks or ())  # type: ignore[union-attr]
        if not (shape[:1] == [-1] and shape[1:] in ([], [width]) and (shape[1:] or width == 1)) and not (
            len(shape) == 2 and shape[0] == 0 and shape[1] in (-1, width)
        ):
            raise refuse(call.where, f"the shape {shape}", f"(-1, {width}): one row per applicant")
    if kind in ("Squeeze", "Unsqueeze") and isinstance(value, Net) and value.width != 1:
        raise refuse(call.where, f"{kind} of {value.width} columns", "of one")
    return replace(value, name=call.output) if isinstance(value, Columns) else value  # type: ignore[return-value]


def _trees(call: Call) -> Value:
    value = call.data()
    if not isinstance(value, Columns) or value.tracks is None or value.truncated or value.kind == "str":
        raise refuse(call.where, "trees behind an affine map", f"trees behind scalers and encoders, {OR_ASK}")
    read = tree_classifier if call.node.op_type == "TreeEnsembleClassifier" else tree_regressor
    return read(call.attributes, value, call.nodes.source, call.where)


_OPERATIONS: dict[str, Callable[[Call], Value | list[Value]]] = {
    "Gemm": _gemm,
    "MatMul": _matmul,
    **dict.fromkeys(("Add", "Sub", "Mul", "Div"), _arithmetic),
    "Neg": _negative,
    "Relu": _relu,
    "LeakyRelu": _leaky,
    "Clip": _clip,
    "BatchNormalization": _normalise,
    "Sigmoid": _sigmoid,
    "Tanh": _tanh,
    **dict.fromkeys(("Softmax", "LogSoftmax"), _softmax),
    "ArgMax": _argmax,
    "LinearClassifier": _linear_classifier,
    "LinearRegressor": _linear_regressor,
    "Scaler": _scaler,
    "Imputer": _imputer,
    **dict.fromkeys(("OneHotEncoder", "LabelEncoder"), _encoder),
    **dict.fromkeys(("Concat", "FeatureVectorizer"), _concat),
    **dict.fromkeys(("ArrayFeatureExtractor", "Gather"), _picked),
    "Split": _split,
    "Cast": _cast,
    **dict.fromkeys(_SAME, _same),
    **dict.fromkeys(("TreeEnsembleClassifier", "TreeEnsembleRegressor"), _trees),
}
