r"""One network that accepts if a given network accepts each of several inputs: the least of their logits.

Since :math:`\min(a, b) = \max(0, a) - \max(0, -a) - \max(0, a - b)`, the least logit of copies of a network
is a ReLU network again. Its weights are those of the copies, up to signs, and zeros and ones, so nothing is
rounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.network import ReluNetwork

Array = NDArray[np.float64]


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


@lru_cache(maxsize=32)
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
