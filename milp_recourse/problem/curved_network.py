r"""Networks some of whose units are curves: :math:`z_{k+1} = W_{k+1} f_k(z_k) + b_{k+1}`, with a function for
each unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.enclosure import Enclosure, Rounded
from milp_recourse.problem.expression import sigmoid
from milp_recourse.problem.network import ReluNetwork

Bend = Literal["relu", "identity", "sigmoid", "square"]
"""What a unit of a hidden layer does to its argument."""

Bends = tuple[str, ...] | None
"""A layer's functions, one for each unit; None where all are ReLUs."""


@dataclass(frozen=True, eq=False)
class CurvedNetwork(ReluNetwork):
    """A network with other functions than ReLUs in some hidden layer.

    Parameters
    ----------
    bends
        The functions of each hidden layer.
    """

    bends: tuple[Bends, ...] = ()

    @property
    def front(self) -> list[tuple[ReluNetwork, Bends]]:
        """The layers up to the last one with curves, each as a network of its own, and its functions."""
        return list(zip(self._parts[:-1], self.bends, strict=False))

    @property
    def head(self) -> ReluNetwork:
        """The layers after these."""
        return self._parts[-1]

    @cached_property
    def _parts(self) -> list[ReluNetwork]:
        cut = 1 + max(k for k, one in enumerate(self.bends) if one is not None)
        ends = [*zip(range(cut), range(1, cut + 1), strict=True), (cut, len(self.weights))]
        return [ReluNetwork(self.weights[a:b], self.biases[a:b], self.dtype) for a, b in ends]

    @cached_property
    def digest(self) -> bytes:
        """The SHA-256 of a ReLU network's digest and of the functions."""
        return sha256(super().digest + repr(self.bends).encode()).digest()

    def bent(self, layer: int, z: NDArray) -> NDArray:
        """A hidden layer's functions of its arguments, (..., units), in their precision."""
        bends = self.bends[layer]
        if bends is None:
            return super().bent(layer, z)
        made = z.copy()
        for name, function in _FUNCTIONS.items():
            chosen = np.array([one == name for one in bends])
            made[..., chosen] = function(z[..., chosen])
        return made

    def enclose(self, x: Sequence[Enclosure]) -> tuple[Enclosure, ...]:
        """Outputs as proven intervals."""
        values = tuple(x)
        for layer, bends in self.front:
            values = layer.enclose(values)
            names = bends or ("relu",) * len(values)
            values = tuple(
                v if name == "identity" else getattr(v, name)() for v, name in zip(values, names, strict=True)
            )
        return self.head.enclose(values)

    def nearly(self, x: NDArray) -> list[tuple[Rounded, float] | None]:
        """None for every row: values are always enclosed exactly."""
        return [None] * len(x)


_FUNCTIONS: dict[str, Any] = {
    "relu": lambda z: np.maximum(z, z.dtype.type(0)),
    "sigmoid": lambda z: sigmoid(z).astype(z.dtype),
    "square": np.square,
}


def with_bends(network: ReluNetwork, bends: Sequence[Bends]) -> ReluNetwork:
    """The network with these functions in its hidden layers; itself if all are ReLUs."""
    known = tuple(None if one is None or {*one} == {"relu"} else tuple(one) for one in bends)
    if not any(known):
        return network
    return CurvedNetwork(network.weights, network.biases, network.dtype, known)
