r"""One classifier that accepts where several inputs are all accepted: the smallest of their scores.

For networks :math:`\min(a, b) = \max(0, b) - \max(0, -b) - \max(0, b - a)`, pair by pair, so a network of
copies is a network again. Its weights are those of the copies, with signs, and zeros and ones: nothing is
rounded.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from milp_recourse.domain.network import ReluNetwork

Array = NDArray[np.float64]


@lru_cache(maxsize=32)
def smallest_logit(network: ReluNetwork, copies: int) -> ReluNetwork:
    """The network of so many inputs, side by side, whose logit is the smallest of theirs.

    Parameters
    ----------
    network
        With one output.
    copies
        1 or more.

    Returns
    -------
    ReluNetwork
        On ``copies * network.inputs`` columns, the first copy's first; in float64.
    """
    weights = [_side_by_side(w, copies) for w in network.weights]
    biases = [np.tile(b, copies) for b in network.biases]
    left = copies
    while left > 1:
        pairs, odd = divmod(left, 2)
        before, after = np.zeros((3 * pairs + 2 * odd, left)), np.zeros((pairs + odd, 3 * pairs + 2 * odd))
        for k in range(pairs):
            a, b, row = 2 * k, 2 * k + 1, 3 * k
            before[row, b], before[row, a] = 1.0, -1.0
            before[row + 1, b], before[row + 2, b] = 1.0, -1.0
            after[k, row : row + 3] = -1.0, 1.0, -1.0
        if odd:
            before[-2, -1], before[-1, -1] = 1.0, -1.0
            after[-1, -2:] = 1.0, -1.0
        weights[-1], biases[-1] = before @ weights[-1], before @ biases[-1]
        weights.append(after)
        biases.append(np.zeros(len(after)))
        left = pairs + odd
    return ReluNetwork.from_layers(list(zip(weights, biases, strict=True)), "float64")


def _side_by_side(weight: Array, copies: int) -> Array:
    """The block diagonal matrix of equal blocks."""
    return np.asarray(np.kron(np.eye(copies), weight), dtype=np.float64)
