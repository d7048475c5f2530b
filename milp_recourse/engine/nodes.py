"""Open nodes of one stack as arrays; the tree's bookkeeping stays in numpy, whatever the kernel runs on."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

Array = np.ndarray

SIGNS = 10
"""Most ReLU signs a node carries; behind them boxes are halved."""


@dataclass
class Nodes:
    """n nodes: boxes (d, n), applicants' columns (n,), lower bounds (n,), signed ReLU numbers (SIGNS, n)."""

    low: Array
    high: Array
    who: Array
    bound: Array
    signs: Array

    def __len__(self) -> int:
        return int(self.who.shape[0])

    @staticmethod
    def roots(low: Array, high: Array) -> Nodes:
        """One node per applicant: the whole box."""
        n = low.shape[1]
        return Nodes(low, high, np.arange(n), np.zeros(n), np.zeros((SIGNS, n), dtype=np.int32))

    def take(self, index: Array | slice) -> Nodes:
        """The nodes at ``index`` (numbers, a mask or a slice)."""
        return Nodes(*(getattr(self, f.name)[..., index] for f in fields(self)))

    def joined(self, others: list[Nodes]) -> Nodes:
        """These and others."""
        parts = [self, *others]
        return Nodes(*(np.concatenate([getattr(p, f.name) for p in parts], axis=-1) for f in fields(self)))
