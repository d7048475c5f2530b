"""Read a classifier, regression or network from an ONNX graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import Unsupported
from milp_recourse.problem.network import DType, ReluNetwork
from milp_recourse.readers.classes import two_classes
from milp_recourse.readers.formulas import by_largest, by_margin
from milp_recourse.readers.from_torch import TIED
from milp_recourse.readers.graph_call import Nodes
from milp_recourse.readers.graph_nodes import visit
from milp_recourse.readers.graph_run import GraphInputs, GraphStep, Runtime
from milp_recourse.readers.graph_values import (
    ROUND,
    Columns,
    Hidden,
    Net,
    Source,
    Sums,
    Unknown,
    Value,
    Winner,
)
from milp_recourse.readers.layers import UNIT, Layers
from milp_recourse.readers.member import Member, regression
from milp_recourse.readers.places import Place
from milp_recourse.readers.refusal import OR_ASK, refuse, require
from milp_recourse.readers.scores import outputs_of
from milp_recourse.readers.track import Track

_LABELS = (6, 7, 8)  # int32, int64 and text
_OLDEST_OPSET = 7  # in earlier ones, Gemm and Add broadcast by attributes


def read_onnx(path_or_model: str | PathLike[str] | Any) -> ReluNetwork:
    """Read a feed-forward ReLU classifier from a graph of one input; :mod:`milp_recourse.readers.graph_nodes`
    lists the operators.

    A closing Sigmoid, Softmax or LogSoftmax is dropped, as it keeps the order of logits. Weights are taken
    bit for bit, with two exceptions: they are multiplied by an alpha or beta other than 1, and an Add after a
    Gemm with bias is added to the bias. Both round to the graph's precision. Consecutive affine maps are
    multiplied, in doubles. Of two logits, the second minus the first is read.

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
        The graph has another operator or option, an opset before 7, more than one input, more than
        two outputs or another precision; the file is no ONNX model, or its numbers are in a file
        outside its folder; or onnx is not installed.
    FileNotFoundError
        There is no such file.
    """

    def append(path_or_model: Any, layers: Layers) -> DType:
        graph = Graph(path_or_model)
        inputs = [one.name for one in graph.proto.graph.input if one.name not in graph.constants]
        if len(inputs) != 1:
            raise refuse("graph", f"{len(inputs)} inputs", "one input, the features")
        nodes = graph.follow({inputs[0]: Columns(inputs[0], None, "float32")}, Unknown())
        net = graph.answer(nodes)
        if not isinstance(net, Net):
            raise refuse("graph", "an answer that is no network's", "read_model, with the DataFrame")
        net.check_order()
        own = net.layers.lengthened(0)
        layers.inputs, layers.segments, layers.bends = own.inputs, own.segments, own.bends
        return "float64" if nodes.dtypes == {"float64"} else "float32"

    return two_classes(append, path_or_model)


def is_onnx(model: Any) -> bool:
    """Whether a model is a file, an ONNX model, or a session of onnxruntime."""
    roots = {kind.__module__.split(".")[0] for kind in type(model).__mro__}
    return isinstance(model, str | PathLike) or bool(roots & {"onnx", "onnxruntime"})


def graph_of(model: Any, X: Any) -> TableGraph:
    """The graph of such a model, on rows of X."""
    return TableGraph(model, X)


class Graph:
    """An ONNX graph and its constants.

    Parameters
    ----------
    model
        A file, an ``onnx.ModelProto``, or an ``onnxruntime.InferenceSession``.
    """

    def __init__(self, model: Any) -> None:
        onnx, folder = require("onnx", "read_onnx", "onnx"), None
        if hasattr(model, "_model_bytes"):
            path, held = model._model_path, model._model_bytes
            model = path if path else onnx.load_model_from_string(held)
        if isinstance(model, onnx.ModelProto):
            self.proto = model
        else:
            self.proto, folder = _load(onnx, model), Path(model).resolve().parent
        for opset in self.proto.opset_import:
            if opset.domain in ("", "ai.onnx") and opset.version < _OLDEST_OPSET:
                raise refuse("model", f"opset {opset.version}", f"opset {_OLDEST_OPSET} or later")
        read = _Data(folder)
        self.constants = {one.name: read(one) for one in self.proto.graph.initializer}
        for node in self.proto.graph.node:
            if node.op_type == "Constant" and len(node.attribute) == 1:
                held = onnx.helper.get_attribute_value(node.attribute[0])
                tensor = isinstance(held, onnx.TensorProto)
                self.constants[node.output[0]] = read(held) if tensor else _plain(held)
        self.folder = folder

    def follow(
        self, inputs: dict[str, Columns], source: Source, labels: dict[int, list[object]] | None = None
    ) -> Nodes:
        """What all tensors hold; ``labels`` is filled with those that encoders know."""
        values: dict[str, Value] = {**self.constants, **inputs}
        nodes = Nodes(values, source, {} if labels is None else labels)
        kinds = {str(one.dtype) for one in self.constants.values() if one.dtype.kind == "f"}
        nodes.dtypes |= kinds if kinds <= {"float64"} else set()
        for index, node in enumerate(self.proto.graph.node):
            visit(nodes, node, f"node {node.name or index} ({node.op_type})")
        return nodes

    def answer(self, nodes: Nodes) -> Net | Sums | Winner:
        """What the graph's output holds: of several, the first label."""
        names = [output.name for output in self.proto.graph.output]
        found = [nodes.values.get(name) for name in names]
        labels = [one for one in found if isinstance(one, Winner)]
        if labels:
            return labels[0]
        hidden = next((one for one in found if isinstance(one, Hidden)), None)
        if hidden is not None:
            raise hidden.error
        if len(found) != 1:
            raise refuse("graph", f"outputs {', '.join(names)}", f"one of them alone, or labels, {OR_ASK}")
        (value,) = found
        if isinstance(value, Net | Sums):
            return value
        raise refuse("graph", f"the output {names[0]}", f"labels, logits or numbers, {OR_ASK}")


def _plain(held: Any) -> NDArray[Any]:
    """A Constant node's numbers, in the precision that ONNX gives them."""
    array = np.asarray(held)
    return array.astype(np.float32) if array.dtype.kind == "f" else array


class TableGraph(Graph):
    """An ONNX graph on rows of a table."""

    def __init__(self, model: Any, X: Any) -> None:
        super().__init__(model)
        self.inputs = GraphInputs(self.proto.graph, self.constants, X)

    def member(self, place: Place, desired: object) -> Member:
        """The graph as a classifier or, where its answer is a number, a regression.

        Parameters
        ----------
        place
            The whole model's.
        desired
            A network's only output is a logit, above 0 for the second class, or a number if this is
            (low, high).

        Raises
        ------
        Unsupported
            The answer depends on a node that cannot be read.
        """
        source = _Table(self, place)
        nodes = self.follow(self._columns(), source, source.labels)
        value, name = self.answer(nodes), "the graph"
        if isinstance(value, Winner):
            return Member(name, value.classes, value.scores, value.rule, measure=value.measure)
        if isinstance(value, Sums):
            return regression(name, value.scores[0])
        unit = UNIT["float64" if nodes.dtypes == {"float64"} else "float32"]
        value.check_order()
        scores = outputs_of(value.layers, value.columns, unit if value.width > 1 else 0.0)
        if isinstance(desired, list | tuple) and value.width == 1 and not value.closed:
            return regression(name, scores[0])
        slack, count = TIED * unit, len(scores)  # whether or not a sigmoid or softmax closes the network
        rule = by_margin(slack=(slack, slack)) if count == 1 else by_largest(count, slack=slack)
        return Member(name, tuple(range(max(count, 2))), scores, rule, measure="logit")

    def predict(self, classes: Sequence[object]) -> Callable[[Any], list[object]] | None:
        """What onnxruntime predicts for rows of X: a label, the class of the largest output, or a number;
        None if it cannot be said.

        Parameters
        ----------
        classes
            The classes of a network without labels; () for a regression.
        """
        if find_spec("onnxruntime") is None:
            return None
        closed, rows = "", True
        try:
            value = self.answer(self.follow(self._columns(), Unknown()))
            closed, rows = (value.closed, value.rows) if isinstance(value, Net) else ("", True)
        except Unsupported:
            pass
        if not rows:
            return None
        runtime, outputs = Runtime(self.full, self.inputs), self.proto.graph.output
        kinds = [output.type.tensor_type.elem_type for output in outputs]
        labels = [one.name for one, kind in zip(outputs, kinds, strict=True) if kind in _LABELS]
        name, labelled = (labels or [outputs[0].name])[0], bool(labels)

        def predict(frame: Any) -> list[object]:
            out = runtime(frame, name).reshape(len(frame), -1)
            if labelled or (out.shape[1] == 1 and len(classes) != 2):
                return list(out[:, 0].tolist())
            if out.shape[1] == 1:
                return [classes[int(z >= (0.5 if closed else 0.0))] for z in out[:, 0]]
            return [classes[k] for k in out.argmax(axis=1).tolist()]

        return predict

    @cached_property
    def full(self) -> Any:
        """The model with all its data, which has been checked when the constants were read."""
        from onnx.external_data_helper import load_external_data_for_model

        full = type(self.proto)()
        full.CopyFrom(self.proto)
        if self.folder is not None:
            load_external_data_for_model(full, str(self.folder))
        return full

    def _columns(self) -> dict[str, Columns]:
        """What the inputs hold."""
        found = {}
        for value, kind, own in zip(self.inputs.inputs, self.inputs.kinds, self.inputs.columns, strict=True):
            name = "str" if kind is str else np.dtype(kind).name
            operations = (ROUND,) if name == "float32" else ()
            found[value.name] = Columns(value.name, tuple(Track(k, operations) for k in own), name)
        return found


class _Table(Source):
    """Tensors as the last of the transformers before a model."""

    def __init__(self, graph: TableGraph, place: Place) -> None:
        self._graph, self._place = graph, place
        self.labels: dict[int, list[object]] = {}
        self._places: dict[str, Place] = {}
        self._runtime: Runtime | None = None

    def layers(self, columns: Columns) -> tuple[Layers, tuple[int, ...]]:
        return self._at(columns).layers()

    def positions(self, columns: Columns) -> tuple[int, ...]:
        return self._at(columns).columns

    def _at(self, columns: Columns) -> Place:
        if columns.name not in self._places:
            names = [one.name for one in self._graph.proto.graph.output]
            step = GraphStep(columns, self._graph.inputs, self.labels, self._run)
            where = f"tensor {columns.name}"
            self._places[columns.name] = self._place.after([(where, step)], where)
            self._runtime = self._runtime if columns.name in names else None
        return self._places[columns.name]

    def _run(self) -> Runtime:
        if self._runtime is None:
            self._runtime = Runtime(self._graph.full, self._graph.inputs, list(self._places))
        return self._runtime


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

    def __call__(self, tensor: Any) -> NDArray[Any]:
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
