"""What the readers share: collecting layers in order, and refusing in one line."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from milp_recourse.domain.network import DType, ReluNetwork
from milp_recourse.errors import Unsupported


def refuse(where: str, got: str, allowed: str) -> Unsupported:
    """The error ``WHERE: got GOT; allowed: ALLOWED``, on one line."""
    return Unsupported(" ".join(f"{where}: got {got}; allowed: {allowed}".split()))


def require(module: str, reader: str, extra: str) -> ModuleType:
    """Import the library a reader needs.

    Raises
    ------
    Unsupported
        It is not installed; the message says how to get it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise Unsupported(
            f"{reader} needs {module}, which is not installed: pip install 'milp-recourse[{extra}]'"
        ) from error


class Chain:
    """Affine maps and ReLUs in the order data meets them, as ``W_1, relu, W_2, ..., W_K``.

    A sigmoid is accepted once, after the last affine map, and dropped.
    """

    def __init__(self) -> None:
        self._layers: list[tuple[NDArray, NDArray]] = []
        self._last = "the input"

    def affine(self, weight: NDArray, bias: NDArray, where: str) -> None:
        """Append z -> W z + b, with shapes (outputs, inputs) and (outputs,)."""
        if self._last not in ("the input", "a ReLU"):
            allowed = "a ReLU between any two affine maps (merge them)"
            raise refuse(where, f"an affine map right after {self._last}", allowed)
        self._layers.append((weight, bias))
        self._last = "an affine map"

    def shift(self, constant: NDArray, where: str) -> None:
        """Add a constant of shape (outputs,) to the affine map just appended."""
        if self._last != "an affine map":
            raise refuse(where, f"a shift right after {self._last}", "a shift right after an affine map")
        weight, bias = self._layers[-1]
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused by network()
            self._layers[-1] = (weight, bias + constant)

    def relu(self, where: str) -> None:
        """Append max(0, z)."""
        if self._last not in ("an affine map", "a ReLU"):
            raise refuse(where, f"a ReLU right after {self._last}", "a ReLU after an affine map")
        self._last = "a ReLU"

    def sigmoid(self, where: str) -> None:
        """Drop the closing sigmoid; nothing but the end may follow."""
        if self._last != "an affine map":
            raise refuse(where, f"a sigmoid right after {self._last}", "a sigmoid after the last affine map")
        self._last = "a sigmoid"

    @property
    def outputs(self) -> int:
        """Outputs of the last affine map."""
        return int(self._layers[-1][0].shape[0])

    def network(self, dtype: DType) -> ReluNetwork:
        """The network read.

        Raises
        ------
        Unsupported
            Nothing was read, a ReLU comes last, there is not one output, or numbers do not fit.
        """
        if self._last in ("the input", "a ReLU"):
            raise refuse("last layer", self._last, "an affine map with one output, the logit")
        return network(self._layers, dtype)


def network(layers: Sequence[tuple[NDArray, NDArray]], dtype: DType) -> ReluNetwork:
    """A classifier from (weight, bias) pairs.

    Raises
    ------
    Unsupported
        Shapes do not chain, a number is not finite or not of ``dtype``, or outputs are not one.
    """
    try:
        made = ReluNetwork.from_layers(layers, dtype)
    except ValueError as error:
        raise Unsupported(str(error)) from error
    if made.outputs != 1:
        raise refuse(
            "last layer",
            f"{made.outputs} outputs",
            "1, the logit (two-class softmax: keep the second row of weights and biases minus the first)",
        )
    return made
