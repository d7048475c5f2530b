"""Tree ensembles in scikit-learn's node arrays: deployed evaluation by the float32 rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Tree:
    """One binary tree; arrays of one length, a node is a leaf where ``left == -1``.

    Go left when float32(x[feature]) <= threshold, the threshold being a double.
    """

    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: NDArray[np.float64]

    def value_at(self, x32: NDArray[np.float64]) -> float:
        """Value of the leaf that a row (float32 values held as doubles) falls into."""
        node = 0
        while self.left[node] != -1:
            goes_left = x32[self.feature[node]] <= self.threshold[node]
            node = int(self.left[node] if goes_left else self.right[node])
        return float(self.value[node])


@dataclass(frozen=True, eq=False)
class TreeEnsemble:
    """score = float64 sum of tree values in order, divided by their number."""

    trees: tuple[Tree, ...]
    inputs: int

    def score(self, x: NDArray | Sequence[float]) -> float:
        """The deployed score of one row of doubles, shape (inputs,)."""
        x32 = np.asarray(x, dtype=np.float64).astype(np.float32).astype(np.float64)
        total = 0.0
        for tree in self.trees:
            total += tree.value_at(x32)
        return total / len(self.trees)
