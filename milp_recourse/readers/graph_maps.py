"""Operators of ONNX graphs that append to networks: affine maps, functions of their outputs, the largest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.readers.formulas import Rule, by_largest, by_margin
from milp_recourse.readers.from_torch import TIED
from milp_recourse.readers.graph_call import Call
from milp_recourse.readers.graph_values import Columns, Net, Sums, Value, Winner, joined
from milp_recourse.readers.layers import UNIT
from milp_recourse.readers.operations import Operation
from milp_recourse.readers.refusal import OR_ASK, refuse
from milp_recourse.readers.scores import NetworkScore
from milp_recourse.readers.tree_parts import LARGEST


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


def _outputs_first(matrix: NDArray[np.floating[Any]], data_first: bool, where: str) -> NDArray[Any]:
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


def _weighted(call: Call, coefficients: NDArray[np.floating[Any]], bias: NDArray[Any]) -> Net:
    """The map of a linear model, which rounds its inputs to float32."""
    value, net = call.data(), call.net()
    if isinstance(value, Columns) and value.kind != "float32":
        eye = np.eye(net.width)
        net.layers.affine(eye, np.zeros(len(eye)), call.where, UNIT["float32"])
    net.layers.affine(coefficients.reshape(len(bias), -1), bias, call.where, UNIT["float32"])
    return net


MAPS: dict[str, Callable[[Call], Value]] = {
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
}
"""Operator -> what its output holds."""
