"""Open nodes of one stack as arrays."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

Array = np.ndarray

SIGNS = 10
"""Most ReLU signs a node carries; behind them boxes are halved."""


@dataclass
class Nodes:
    """n nodes.

    Attributes
    ----------
    low, high
        Boxes, (d, n).
    who
        Applicants' columns, (n,).
    bound
        Lower bounds of the cost, (n,).
    signs
        Signed ReLU numbers, (SIGNS, n).
    cut
        A form in the actions, (d + 1, n), that is not negative at any feasible action of the node that
        costs less than the target: targets only fall, so children inherit it.
    """

    low: Array
    high: Array
    who: Array
    bound: Array
    signs: Array
    cut: Array

    def __len__(self) -> int:
        return int(self.who.shape[0])

    @staticmethod
    def roots(low: Array, high: Array) -> Nodes:
        """One node per applicant: the whole box."""
        d, n = low.shape
        signs, cut = np.zeros((SIGNS, n), dtype=np.int32), np.zeros((d + 1, n))
        return Nodes(low, high, np.arange(n), np.zeros(n), signs, cut)

    def take(self, index: Array | slice) -> Nodes:
        """The nodes at ``index`` (numbers, a mask or a slice)."""
        return Nodes(*(getattr(self, f.name)[..., index] for f in fields(self)))

    def joined(self, others: list[Nodes]) -> Nodes:
        """These and others."""
        parts = [self, *others]
        return Nodes(*(np.concatenate([getattr(p, f.name) for p in parts], axis=-1) for f in fields(self)))
