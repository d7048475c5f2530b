"""One node of an ONNX graph and what its inputs hold, as the functions of its operator ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.readers.graph_values import Columns, Net, Source, Value
from milp_recourse.readers.layers import UNIT
from milp_recourse.readers.refusal import refuse


@dataclass
class Nodes:
    """What is known of a graph that is followed from node to node.

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

    def constant(self, position: int) -> NDArray[np.floating[Any]]:
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

    def shift(self, position: int, net: Net) -> NDArray[np.floating[Any]]:
        """A constant, broadcast to one number per output; it must be the same for every applicant."""
        constant, outputs = self.constant(position), net.width
        full = [(outputs,), (1, outputs)] if net.rows else [(outputs, 1)]
        if (constant.size != 1 and constant.shape not in full) or constant.ndim > 2:
            shapes = " or ".join(str(shape) for shape in full)
            raise refuse(self.where, f"a shift of shape {constant.shape}", f"shape {shapes}")
        return np.broadcast_to(constant.reshape(-1), (outputs,))
