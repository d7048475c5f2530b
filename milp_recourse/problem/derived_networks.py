r"""Networks made from others: with curves as units, of several inputs, above the logarithm of a sum.

*Curves*: :math:`z_{k+1} = W_{k+1} f_k(z_k) + b_{k+1}`, with a function for each unit.

*Several inputs*: one network that accepts if a given network accepts each of them, by the least of their
logits. Since :math:`\min(a, b) = \max(0, a) - \max(0, -a) - \max(0, a - b)`, the least logit of copies of a
network is a ReLU network again. Its weights are those of the copies, up to signs, and zeros and ones, so
nothing is rounded.

*Logarithm of a sum of exponentials*: a ReLU network that is nowhere below it, and hardly above. Two numbers
are taken together by :math:`\log(e^a + e^b) = a + \operatorname{softplus}(b - a)`, and softplus is replaced
by chords: a convex piecewise linear function, :math:`h(y) = v + \sum_k w_k \max(0, y - t_k)` with all
:math:`w_k > 0`, that is above softplus, which is convex, at each knot and so everywhere. Between knots that
are evenly spaced in :math:`u = \arctan \sinh(y/2)`, whose derivative is the root of softplus' curvature, the
distance is the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.enclosure import Enclosure, Rounded
from milp_recourse.problem.expression import sigmoid
from milp_recourse.problem.instance import kept_with
from milp_recourse.problem.network import ReluNetwork

Array = NDArray[np.float64]
_Float = TypeVar("_Float", bound=np.floating[Any])

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

    @property
    def written(self) -> dict[str, Any]:
        """As files state it, with the functions of hidden layers that have some."""
        entry = super().written
        for layer, functions in zip(entry["layers"], self.bends, strict=False):
            layer.update({"functions": list(functions)} if functions else {})
        return entry

    def bent(self, layer: int, z: NDArray[_Float]) -> NDArray[_Float]:
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

    def nearly(self, x: Array) -> list[tuple[Rounded, float] | None]:
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


def pairwise_extreme(count: int, largest: bool) -> Iterator[tuple[Array, Array]]:
    """Pairs of matrices (before, after) that leave the smallest or largest of ``count`` numbers z.

    Each pair halves how many numbers are left: z becomes after @ max(0, before @ z).
    """
    return extreme_of_each([count], largest)


def extreme_of_each(counts: Sequence[int], largest: bool) -> Iterator[tuple[Array, Array]]:
    """The same for several groups of numbers, one after the other in z: one number is left of each."""
    left = list(counts)
    while max(left) > 1:
        halves = [_halved(count, largest) for count in left]
        yield along_the_diagonal([before for before, _ in halves]), along_the_diagonal([a for _, a in halves])
        left = [(count + 1) // 2 for count in left]


def _halved(count: int, largest: bool) -> tuple[Array, Array]:
    """The pair of matrices that compares neighbours; the last number of an odd count stays."""
    sign = 1.0 if largest else -1.0
    pairs, odd = divmod(count, 2)
    before, after = np.zeros((3 * pairs + 2 * odd, count)), np.zeros((pairs + odd, 3 * pairs + 2 * odd))
    for k in range(pairs + odd):
        before[3 * k, 2 * k], before[3 * k + 1, 2 * k] = 1.0, -1.0
        after[k, 3 * k], after[k, 3 * k + 1] = 1.0, -1.0
        if k < pairs:
            before[3 * k + 2, 2 * k + 1], before[3 * k + 2, 2 * k] = sign, -sign
            after[k, 3 * k + 2] = sign
    return before, after


def along_the_diagonal(blocks: Sequence[Array]) -> Array:
    """One matrix of the blocks, with zeros elsewhere."""
    whole = np.zeros((sum(len(b) for b in blocks), sum(b.shape[1] for b in blocks)))
    row = column = 0
    for block in blocks:
        whole[row : row + len(block), column : column + block.shape[1]] = block
        row, column = row + len(block), column + block.shape[1]
    return whole


MOST_COPIES = 32
"""So many networks that :func:`smallest_logit` makes of one are kept with it."""


@kept_with(MOST_COPIES)
def smallest_logit(network: ReluNetwork, copies: int) -> ReluNetwork:
    """The network that takes several input rows side by side and returns the smallest of their logits.

    Parameters
    ----------
    network
        A network with one output.
    copies
        Number of input rows, 1 or more.

    Returns
    -------
    ReluNetwork
        A float64 network of ``copies * network.inputs`` columns, row after row.
    """
    weights = [np.asarray(np.kron(np.eye(copies), w), dtype=np.float64) for w in network.weights]
    biases = [np.tile(b, copies) for b in network.biases]
    for before, after in pairwise_extreme(copies, largest=False):
        weights[-1], biases[-1] = before @ weights[-1], before @ biases[-1]
        weights.append(after)
        biases.append(np.zeros(len(after)))
    return ReluNetwork.from_layers(list(zip(weights, biases, strict=True)), "float64")


KNOTS = 800
"""The most chords of the pairs that are taken together at a time: they bring :func:`excess` to 2e-6."""

_LIFT = 1e-11
"""More than what rounding takes away from the chords: sums of :data:`KNOTS` terms of at most 30 in size."""


def pairwise_log_sum(count: int) -> Iterator[tuple[Array, Array, Array, Array]]:
    """Matrices and shifts (before, shift, after, constant) that leave a number above log(sum of e^z) of
    ``count`` numbers z: z becomes after @ max(0, before @ z + shift) + constant, with half as many numbers
    each time."""
    while count > 1:
        pairs, odd = divmod(count, 2)
        knots, weights, value = chords(KNOTS // pairs)
        each = 2 + len(knots)
        before, shift = np.zeros((each * pairs + 2 * odd, count)), np.zeros(each * pairs + 2 * odd)
        after, constant = np.zeros((pairs + odd, len(before))), np.zeros(pairs + odd)
        for k in range(pairs + odd):
            at = each * k
            before[at, 2 * k], before[at + 1, 2 * k] = 1.0, -1.0
            after[k, at], after[k, at + 1] = 1.0, -1.0
            if k < pairs:
                own = slice(at + 2, at + each)
                before[own, 2 * k], before[own, 2 * k + 1], shift[own] = -1.0, 1.0, -knots
                after[k, own], constant[k] = weights, value
        yield before, shift, after, constant
        count = pairs + odd


@lru_cache(maxsize=8)
def chords(count: int) -> tuple[Array, Array, float]:
    """The knots t, the weights w and the value v of a function h above softplus, with ``count`` knots."""
    # outside the knots softplus is about as far from 0, and from y, as the chords are from it
    end = -math.log(math.pi**2 / (8.0 * count**2))
    far = math.atan(math.sinh(end / 2.0))
    knots = 2.0 * np.arcsinh(np.tan(np.linspace(-far, far, count)))
    values = np.logaddexp(0.0, knots)
    slopes = np.concatenate([[0.0], np.diff(values) / np.diff(knots), [1.0 + _LIFT]])
    return knots, np.diff(slopes), float(values[0]) + _LIFT


def excess(count: int) -> float:
    """How far above log(sum of e^z) of ``count`` numbers the network's number can be, for numbers of usual
    size."""
    total = 0.0
    while count > 1:
        pairs, odd = divmod(count, 2)
        knots, weights, value = chords(KNOTS // pairs)
        slopes = np.cumsum(weights)[:-1]
        # the chord is farthest from softplus where softplus has the chord's slope
        touched = np.log(slopes / (1.0 - slopes))
        above = value + np.maximum(touched[:, None] - knots, 0.0) @ weights - np.logaddexp(0.0, touched)
        total += max(float(above.max()), value)
        count = pairs + odd
    return total
