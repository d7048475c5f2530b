"""Read a network from an ONNX graph."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import Unsupported
from milp_recourse.problem.network import DType, ReluNetwork
from milp_recourse.readers.classes import two_classes
from milp_recourse.readers.from_torch import TIED
from milp_recourse.readers.layers import UNIT, Layers
from milp_recourse.readers.refusal import refuse, require

_ALLOWED = (
    "Gemm, MatMul, Add, Relu, LeakyRelu, Clip, Tanh, Sigmoid, BatchNormalization, Dropout, Flatten, "
    "Identity, and a Softmax or LogSoftmax at the end"
)
_OLDEST_OPSET = 7  # in earlier ones, Gemm and Add broadcast by attributes


def read_onnx(path_or_model: str | PathLike[str] | Any) -> ReluNetwork:
    r"""Read a feed-forward ReLU classifier from a graph that is one chain of nodes.

    ======================  ==============================================================
    Gemm                    :math:`\alpha A' B' + \beta C` with transA, transB
    MatMul, then Add        the constant may stand on either side
    Relu, LeakyRelu, Clip   after an affine map
    BatchNormalization      :math:`(z - \mu) / \sqrt{v + \epsilon} \cdot w + b`
    Flatten (axis 1)        does nothing to rows
    Identity, Dropout       do nothing
    Sigmoid                 at the end; dropped, as sigmoid(z) >= 1/2 exactly when z >= 0
    Softmax, LogSoftmax     at the end; dropped, as they keep the classes' order
    ======================  ==============================================================

    Applicants may be rows, ``x W + b``, or columns, ``W x + b``; a graph that mixes the two is
    refused. Weights are taken bit for bit, with two exceptions: they are multiplied by an alpha or beta other
    than 1, and an Add after a Gemm with bias is added to the bias. Both round to the graph's precision.
    Consecutive affine maps are multiplied, in doubles. Of two logits, the second minus the first is read.

    Parameters
    ----------
    path_or_model
        A file, or an ``onnx.ModelProto``; initialisers (or Constant nodes) float32 or float64.

    Returns
    -------
    ReluNetwork
        ``dtype`` is that of the initialisers, or float64 if multiplying maps gives a number that is no
        float32. Runtimes compute in the same precision but may sum in another order, so that they agree up to
        rounding.

    Raises
    ------
    Unsupported
        The graph has another operator or option, an opset before 7, more than one input, is no chain, has
        more than two outputs or another precision; the file is no ONNX model, or its numbers are in a file
        outside its folder; or onnx is not installed.
    FileNotFoundError
        There is no such file.
    """
    return two_classes(append_onnx, path_or_model)


def append_onnx(path_or_model: str | PathLike[str] | Any, layers: Layers) -> DType:
    """Append a graph's maps to ``layers``, and return the precision in which it computes."""
    onnx, folder = require("onnx", "read_onnx", "onnx"), None
    if isinstance(path_or_model, onnx.ModelProto):
        model = path_or_model
    else:
        model, folder = _load(onnx, path_or_model), Path(path_or_model).resolve().parent
    for opset in model.opset_import:
        if opset.domain in ("", "ai.onnx") and opset.version < _OLDEST_OPSET:
            raise refuse("model", f"opset {opset.version}", f"opset {_OLDEST_OPSET} or later")
    walk = _Walk(model.graph, layers, _Data(folder))
    for index, node in enumerate(model.graph.node):
        walk.visit(node, f"node {node.name or index} ({node.op_type})")
    return walk.end([output.name for output in model.graph.output])


def _load(onnx: Any, path: str | PathLike[str]) -> Any:
    from google.protobuf.message import DecodeError

    try:
        return onnx.load(path, load_external_data=False)
    except DecodeError as error:
        raise refuse(str(path), "a file that does not parse", "an ONNX model") from error


class _Data:
    """Reads tensors as arrays, also those whose numbers are in a file beside the model's.

    Parameters
    ----------
    folder
        The folder of the model's file, outside of which nothing is read; None for a model in memory.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def __call__(self, tensor: Any) -> NDArray:
        """The tensor's numbers."""
        from onnx import numpy_helper
        from onnx.external_data_helper import load_external_data_for_tensor, uses_external_data

        try:
            if uses_external_data(tensor):
                copy = type(tensor)()
                copy.CopyFrom(tensor)
                tensor = copy
                load_external_data_for_tensor(tensor, str(self._checked(tensor)))
            return numpy_helper.to_array(tensor)
        except Unsupported:
            raise
        except Exception as error:  # of the library's own kinds, which differ from version to version
            got = f"data that cannot be read ({error})"
            raise refuse(f"tensor {tensor.name}", got, "as many numbers as its shape has") from error

    def _checked(self, tensor: Any) -> Path:
        """The model's folder, where the tensor's file is a file in it, also if links are followed."""
        where, allowed = f"tensor {tensor.name}", "a file in the folder of the model's file, or below it"
        named = [entry.value for entry in tensor.external_data if entry.key == "location"]
        if self.folder is None:
            raise refuse(where, "data in another file", "a model with all its data, or its file's path")
        try:
            file = (self.folder / named[-1]).resolve()
            inside = len(named) == 1 and file.is_relative_to(self.folder) and file.is_file()
        except (OSError, ValueError, IndexError, RuntimeError):  # no such name, or links in a circle
            inside = False
        if not inside:
            raise refuse(where, f"data in {', '.join(named) or 'no file'}", allowed)
        return self.folder


class _Walk:
    """Follows the one tensor that depends on the input from node to node, and appends each node's maps."""

    def __init__(self, graph: Any, layers: Layers, data: _Data) -> None:
        self._to_array = data
        self._constants = {tensor.name: self._to_array(tensor) for tensor in graph.initializer}
        inputs = [value.name for value in graph.input if value.name not in self._constants]
        if len(inputs) != 1:
            raise refuse("graph", f"{len(inputs)} inputs", "one input, the features")
        self._current: str = inputs[0]
        self._layers = layers
        self._dtypes: set[str] = {str(a.dtype) for a in self._constants.values() if a.dtype.kind == "f"}
        self._rows: bool | None = None  # whether applicants are rows; None if not known yet

    def visit(self, node: Any, where: str) -> None:
        """Append one node, which must follow the one before it."""
        attributes = {a.name: a for a in node.attribute}
        if node.domain not in ("", "ai.onnx"):
            raise refuse(where, f"an operator of domain {node.domain}", _ALLOWED)
        if node.op_type == "Constant" and "value" in attributes:
            self._constants[node.output[0]] = self._to_array(attributes["value"].t)
            return
        if node.op_type == "Identity" and node.input[0] in self._constants:
            self._constants[node.output[0]] = self._constants[node.input[0]]
            return
        operations = {
            "Gemm": self._gemm,
            "MatMul": self._matmul,
            "Add": self._add,
            "Flatten": self._flatten,
            "Relu": lambda node, attributes, where: self._layers.relu(where),
            "LeakyRelu": self._leaky,
            "Clip": self._clip,
            "BatchNormalization": self._normalise,
            "Sigmoid": lambda node, attributes, where: self._layers.sigmoid(where, self._unit),
            "Tanh": lambda node, attributes, where: self._layers.curve("tanh", where, self._unit),
            "Softmax": self._softmax,
            "LogSoftmax": self._softmax,
            "Dropout": self._dropout,
            "Identity": lambda node, attributes, where: None,
        }
        if node.op_type not in operations:
            raise refuse(where, node.op_type, _ALLOWED)
        if list(node.input).count(self._current) != 1:
            raise refuse(where, f"inputs {', '.join(node.input)}", f"a chain: {self._current} comes next")
        operations[node.op_type](node, attributes, where)
        self._current = node.output[0]

    def end(self, outputs: list[str]) -> DType:
        """Check the outputs after the last node, and return the precision."""
        if outputs != [self._current]:
            raise refuse("graph", f"outputs {', '.join(outputs)}", f"the chain's end, {self._current}, alone")
        self._layers.slack += TIED * self._unit
        return self._dtype

    @property
    def _dtype(self) -> DType:
        return "float64" if self._dtypes == {"float64"} else "float32"

    @property
    def _unit(self) -> float:
        return UNIT[self._dtype]

    def _gemm(self, node: Any, attributes: dict[str, Any], where: str) -> None:
        alpha, beta = (attributes[n].f if n in attributes else 1.0 for n in ("alpha", "beta"))
        transposed = [bool(attributes[n].i) if n in attributes else False for n in ("transA", "transB")]
        first = node.input[0] == self._current
        data_transposed, matrix_transposed = transposed if first else reversed(transposed)
        self._orient(first, first != data_transposed, where)
        matrix = self._constant(node, 1 if first else 0, where)
        weight = _outputs_first(matrix.T if matrix_transposed else matrix, first, where)
        bias = np.zeros(len(weight), weight.dtype)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            if len(node.input) > 2 and node.input[2]:
                bias = bias + weight.dtype.type(beta) * self._bias(node, 2, len(weight), where)
            size = np.abs(bias).astype(np.float64)
            self._layers.affine(weight.dtype.type(alpha) * weight, bias, where, self._unit, size)

    def _matmul(self, node: Any, attributes: dict[str, Any], where: str) -> None:
        first = node.input[0] == self._current
        self._orient(first, first, where)
        weight = _outputs_first(self._constant(node, 1 if first else 0, where), first, where)
        self._layers.affine(weight, np.zeros(len(weight)), where, self._unit)

    def _add(self, node: Any, attributes: dict[str, Any], where: str) -> None:
        position = 1 if node.input[0] == self._current else 0
        if self._rows is None:
            raise refuse(where, "Add before the first affine map", "Add right after MatMul or Gemm")
        outputs = self._layers.outputs
        assert outputs is not None
        self._layers.shift(self._bias(node, position, outputs, where), where, self._dtype)

    def _leaky(self, node: Any, attributes: dict[str, Any], where: str) -> None:
        slope = attributes["alpha"].f if "alpha" in attributes else float(np.float32(0.01))
        self._layers.leaky(float(slope), where, self._unit)

    def _clip(self, node: Any, attributes: dict[str, Any], where: str) -> None:
        ends: list[float | None] = [None, None]
        for k, name in enumerate(("min", "max")):
            if name in attributes:
                ends[k] = float(attributes[name].f)
            elif len(node.input) > k + 1 and node.input[k + 1]:
                ends[k] = float(np.asarray(self._constant(node, k + 1, where)).reshape(()))
        low, high = ends
        if low == 0 and high is None:
            self._layers.relu(where)
        elif low is None or high is None:
            raise refuse(where, f"limits {low} and {high}", "both limits, or the lower limit 0 alone")
        else:
            self._layers.clamp(low, high, where)

    def _normalise(self, node: Any, attributes: dict[str, Any], where: str) -> None:
        if "training_mode" in attributes and attributes["training_mode"].i:
            raise refuse(where, "training mode", "a graph exported in eval mode")
        if self._rows is False:
            raise refuse(where, "applicants as columns", "applicants as rows")
        self._rows = True
        epsilon = attributes["epsilon"].f if "epsilon" in attributes else float(np.float32(1e-5))
        held = [np.asarray(self._constant(node, k, where), dtype=np.float64) for k in (1, 2, 3, 4)]
        weight, bias, mean, variance = held
        self._layers.normalise(mean, variance, float(epsilon), weight, bias, where, self._unit)

    def _softmax(self, node: Any, attributes: dict[str, Any], where: str) -> None:
        axis = attributes["axis"].i if "axis" in attributes else -1
        if axis not in (1, -1) or self._rows is False:
            raise refuse(where, f"axis {axis}", "axis 1, over the classes, applicants as rows")
        self._layers.softmax(where)

    def _dropout(self, node: Any, attributes: dict[str, Any], where: str) -> None:
        if len(node.input) > 2 and node.input[2] and bool(self._constants.get(node.input[2], True)):
            raise refuse(where, "Dropout in training mode", "a graph exported in eval mode")

    def _flatten(self, node: Any, attributes: dict[str, Any], where: str) -> None:
        axis = attributes["axis"].i if "axis" in attributes else 1
        if axis != 1:
            raise refuse(where, f"Flatten with axis {axis}", "axis 1")

    def _orient(self, rows_out: bool, rows_in: bool, where: str) -> None:
        """Check that a product has applicants as rows, or as columns, like the nodes before it."""
        if self._rows is not None and self._rows != rows_in:
            held, met = ("rows", "columns") if self._rows else ("columns", "rows")
            raise refuse(where, f"applicants as {met}", f"applicants as {held}, as in the nodes before")
        self._rows = rows_out

    def _constant(self, node: Any, position: int, where: str) -> NDArray:
        name = node.input[position]
        if name not in self._constants:
            raise refuse(where, f"input {name}, which is no constant", "an initialiser or Constant node")
        constant = self._constants[name]
        self._dtypes.add(str(constant.dtype))
        if self._dtypes not in ({"float32"}, {"float64"}):
            held = " and ".join(sorted(self._dtypes))
            raise refuse(where, f"constants of {held}", "all float32 or all float64")
        return constant

    def _bias(self, node: Any, position: int, outputs: int, where: str) -> NDArray:
        """A constant broadcast to one number per output; it must be the same for every applicant."""
        constant = self._constant(node, position, where)
        full = [(outputs,), (1, outputs)] if self._rows else [(outputs, 1)]
        if (constant.size != 1 and constant.shape not in full) or constant.ndim > 2:
            shapes = " or ".join(str(shape) for shape in full)
            raise refuse(where, f"a shift of shape {constant.shape}", f"shape {shapes}")
        return np.broadcast_to(constant.reshape(-1), (outputs,))


def _outputs_first(matrix: NDArray, data_first: bool, where: str) -> NDArray:
    """The matrix as (outputs, inputs): transposed if rows are multiplied by it from the right."""
    if matrix.ndim != 2:
        raise refuse(where, f"a factor of shape {matrix.shape}", "a matrix")
    return matrix.T if data_first else matrix
