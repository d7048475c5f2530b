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

    def values_at(self, x32: NDArray[np.float64]) -> NDArray[np.float64]:
        """Value of the leaf that each row (n, inputs) of float32 values held as doubles falls into."""
        node, every = np.zeros(len(x32), dtype=np.int64), np.arange(len(x32))
        while (inner := self.left[node] != -1).any():
            feature = np.where(inner, self.feature[node], 0)
            goes_left = x32[every, feature] <= self.threshold[node]
            node = np.where(inner, np.where(goes_left, self.left[node], self.right[node]), node)
        return self.value[node]


@dataclass(frozen=True, eq=False)
class TreeEnsemble:
    """score = float64 sum of tree values in order, divided by their number."""

    trees: tuple[Tree, ...]
    inputs: int

    def score(self, x: NDArray | Sequence[float]) -> float:
        """The deployed score of one row of doubles, shape (inputs,)."""
        return float(self.scores(np.asarray(x, dtype=np.float64)[None])[0])

    def scores(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The deployed scores of rows of doubles, shape (n, inputs)."""
        x32 = x.astype(np.float32).astype(np.float64)
        total = np.zeros(len(x))
        for tree in self.trees:
            total += tree.values_at(x32)
        return total / len(self.trees)
