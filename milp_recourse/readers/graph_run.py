"""Run an ONNX graph on rows of a table, with onnxruntime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import BadInput
from milp_recourse.readers.graph_values import Columns
from milp_recourse.readers.refusal import refuse, require
from milp_recourse.readers.track import Track
from milp_recourse.readers.transformers import Walk, add_labels

_LARGEST_WHOLE = 2.0**53


class GraphInputs:
    """Which columns of X each input of a graph takes.

    Parameters
    ----------
    graph
        The ONNX graph.
    constants
        Names of its constants, which files of an old version list among the inputs.
    X
        The table; inputs of one column each are matched by name, others by the columns' order.

    Raises
    ------
    Unsupported
        Names or numbers of columns do not fit.
    """

    def __init__(self, graph: Any, constants: Mapping[str, Any], X: Any) -> None:
        from onnx import helper

        self.inputs = [value for value in graph.input if value.name not in constants]
        kinds = [value.type.tensor_type.elem_type for value in self.inputs]
        named = [np.dtype(helper.tensor_dtype_to_np_dtype(kind)) for kind in kinds]
        self.kinds = [str if dtype.kind == "O" else dtype.type for dtype in named]
        shapes = [[d.dim_value or None for d in v.type.tensor_type.shape.dim] for v in self.inputs]
        self.one_by_one = bool(shapes) and all(shape[:1] == [1] for shape in shapes)
        widths = [shape[1] if len(shape) == 2 else None for shape in shapes]
        names = [value.name for value in self.inputs]
        texts = {str(name): name for name in X.columns}
        if len(names) > 1 and set(names) <= set(texts) and all(w in (1, None) for w in widths):
            self.names: list[Any] = [texts[name] for name in names]
            self.columns = [[k] for k in range(len(names))]
            return
        self.names = list(X.columns)
        whole = [len(self.names)] if len(widths) == 1 and widths[0] is None else widths
        if None in whole or sum(w or 0 for w in whole) != len(self.names):
            got = f"inputs {', '.join(names)} of {', '.join(str(w or 'any') for w in widths)} columns"
            raise refuse("graph", got, f"one for each column of X, by name, or {len(self.names)} in all")
        ends = np.cumsum([0, *(w or 0 for w in whole)]).tolist()
        self.columns = [list(range(a, b)) for a, b in pairwise(ends)]

    def feed(self, frame: Any) -> dict[str, NDArray[Any]]:
        """The inputs' tensors for rows of X.

        Raises
        ------
        BadInput
            A cell is none that the input takes.
        """
        fed = {}
        for value, kind, own in zip(self.inputs, self.kinds, self.columns, strict=True):
            arrays = [_column(frame[self.names[k]], kind, self.names[k]) for k in own]
            fed[value.name] = np.stack(arrays, axis=1)
        return fed


def _column(column: Any, kind: Any, name: object) -> NDArray[Any]:
    if kind is str:
        cells = column.tolist()
        strange = next((cell for cell in cells if not isinstance(cell, str)), None)
        if len(cells) != sum(isinstance(cell, str) for cell in cells):
            raise BadInput(f"column {name!r}", repr(strange), "texts, which the graph takes")
        return np.array(cells, dtype=object)
    try:
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise BadInput(f"column {name!r}", f"{column.iloc[0]!r}", "numbers, which the graph takes") from error
    if (
        np.issubdtype(kind, np.integer)
        and not ((numbers == np.round(numbers)) & (np.abs(numbers) <= _LARGEST_WHOLE)).all()
    ):
        strange = float(numbers[~(numbers == np.round(numbers))][0])
        raise BadInput(f"column {name!r}", strange, "whole numbers, which the graph takes")
    with np.errstate(over="ignore"):
        return np.asarray(numbers.astype(kind))


class Runtime:
    """A graph, run by onnxruntime in one thread.

    Parameters
    ----------
    model
        An ONNX model that holds all its data.
    inputs
        Where its inputs come from.

    Raises
    ------
    Unsupported
        onnxruntime is not installed, or does not take the model.
    """

    def __init__(self, model: Any, inputs: GraphInputs, more: Sequence[str] = ()) -> None:
        runtime = require("onnxruntime", "read_model of this graph", "onnx")
        copy = type(model)()
        copy.CopyFrom(model)
        known = {output.name for output in copy.graph.output}
        for name in more:
            if name not in known:
                copy.graph.output.add().name = name
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        try:
            data = copy.SerializeToString()
            self.session = runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            first = (str(error).strip().splitlines() or [""])[0]
            raise refuse("model", f"a graph that onnxruntime refuses: {first}", "one that it runs") from error
        self.inputs = inputs

    def __call__(self, frame: Any, name: str) -> NDArray[Any]:
        """A tensor for rows of X, one row each."""
        if self.inputs.one_by_one and len(frame) > 1:
            return np.concatenate([self(frame.iloc[k : k + 1], name) for k in range(len(frame))])
        return np.asarray(self.session.run([name], self.inputs.feed(frame))[0])


class GraphStep:
    """A tensor of a graph, whose columns are each made of one of X's, as the last of the transformers.

    Parameters
    ----------
    columns
        The tensor.
    inputs
        Where the graph's inputs come from.
    labels
        For each column that an encoder treats as labels, those that it knows.
    runtime
        Makes what runs the graph; not called for an input itself.
    """

    reads_float32 = True

    def __init__(
        self,
        columns: Columns,
        inputs: GraphInputs,
        labels: Mapping[int, Sequence[object]],
        runtime: Callable[[], Runtime],
    ) -> None:
        self.columns, self.inputs, self.labels, self._runtime = columns, inputs, labels, runtime
        self.feature_names_in_ = list(inputs.names)
        self.n_features_in_ = len(self.feature_names_in_)

    def transform(self, frame: Any) -> NDArray[np.float64]:
        """The tensor for rows of X."""
        found = next((v for v in self.inputs.inputs if v.name == self.columns.name), None)
        if found is not None:
            made = self.inputs.feed(frame)[found.name]
        else:
            made = self._runtime()(frame, self.columns.name)
        return np.asarray(made.reshape(len(frame), -1), dtype=np.float64)

    def follow(self, walk: Walk, tracks: Sequence[Track], where: str) -> list[Track]:
        """What each of the tensor's columns is made of."""
        for raw in {track.raw for track in self.columns.tracks or () if track.coded}:
            add_labels(walk.labels.setdefault(raw, []), iter(self.labels[raw]))
        walk.sparse = False
        return list(self.columns.tracks or ())
