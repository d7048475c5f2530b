r"""One classifier that accepts where several inputs are all accepted: the smallest of their scores.

For networks :math:`\min(a, b) = \max(0, a) - \max(0, -a) - \max(0, a - b)`, pair by pair, so a network of
copies is a network again. Its weights are those of the copies, with signs, and zeros and ones: nothing is
rounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from milp_recourse.domain.network import ReluNetwork

Array = NDArray[np.float64]


def pairwise_extreme(count: int, largest: bool) -> Iterator[tuple[Array, Array]]:
    """Matrices before and after ReLUs that leave the smallest or largest of so many numbers, pair by pair."""
    sign = 1.0 if largest else -1.0
    while count > 1:
        pairs, odd = divmod(count, 2)
        before, after = np.zeros((3 * pairs + 2 * odd, count)), np.zeros((pairs + odd, 3 * pairs + 2 * odd))
        for k in range(pairs + odd):
            before[3 * k, 2 * k], before[3 * k + 1, 2 * k] = 1.0, -1.0
            after[k, 3 * k], after[k, 3 * k + 1] = 1.0, -1.0
            if k < pairs:
                before[3 * k + 2, 2 * k + 1], before[3 * k + 2, 2 * k] = sign, -sign
                after[k, 3 * k + 2] = sign
        yield before, after
        count = pairs + odd


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
    weights = [np.asarray(np.kron(np.eye(copies), w), dtype=np.float64) for w in network.weights]
    biases = [np.tile(b, copies) for b in network.biases]
    for before, after in pairwise_extreme(copies, largest=False):
        weights[-1], biases[-1] = before @ weights[-1], before @ biases[-1]
        weights.append(after)
        biases.append(np.zeros(len(after)))
    return ReluNetwork.from_layers(list(zip(weights, biases, strict=True)), "float64")
