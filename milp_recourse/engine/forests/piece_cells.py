"""The cells that boxes of a piece's actions lead to, the leaves met there, and cells as domains."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.forests.causal_pieces import Piece
from milp_recourse.engine.forests.cell_problem import FAR
from milp_recourse.engine.forests.table import LeafTable, Masks
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import Clock

Array = NDArray[np.float64]
Cells = NDArray[np.int64]


class PieceCells:
    """The cells of one piece's columns.

    Parameters
    ----------
    clock
        When to give up listing the leaves of its cells.

    Attributes
    ----------
    whole
        Of the columns that are an action, those whose action is a whole number.
    moved
        The columns whose values follow from actions, and whose features they are: to the engine their cells
        are domains.
    """

    def __init__(self, instance: Instance, piece: Piece, clock: Clock) -> None:
        forest = instance.classifier
        assert isinstance(forest, TreeEnsemble)
        self.piece, self.columns, self.threshold = piece, piece.forms, instance.accept.above
        self.table = LeafTable(forest, piece.cells, piece.columns, clock=clock)
        self.whole = self.columns.exact & (np.abs(self.columns.matrix) @ piece.integral > 0)
        feature_of = [feature for feature in instance.features for _ in feature.columns]
        self.moved = {
            k: feature_of[column.columns[0][0]]
            for k, column in enumerate(piece.columns)
            if not (column.labels or self.columns.exact[k])
        }

    def every_cell(self) -> tuple[Cells, Cells]:
        """The first and the last cell of every column, (1, columns) each."""
        last = np.array([len(column) - 1 for column in self.piece.columns], dtype=np.int64)[None]
        return np.zeros_like(last), last

    def cells(self, low: Array, high: Array) -> tuple[Cells, Cells]:
        """Cells of intervals of the columns' values, (B, columns) each."""
        first, last = np.zeros(low.shape, dtype=np.int64), np.zeros(low.shape, dtype=np.int64)
        for k, column in enumerate(self.piece.columns):
            first[:, k] = np.searchsorted(column.cuts, low[:, k])
            last[:, k] = np.searchsorted(column.cuts, high[:, k])
        return first, last

    def ends(self, first: Cells, last: Cells) -> tuple[Array, Array]:
        """Interval of real column values whose nearest doubles lie in cells, (B, columns), outward.

        For a column that is an action, a double itself, the ends are the cells' own.
        """
        low, high = np.full(first.shape, -np.inf), np.full(last.shape, np.inf)
        for k, column in enumerate(self.piece.columns):
            cuts = np.concatenate([[-np.inf], column.cuts, [np.inf]])
            below, above = (
                cuts[np.clip(first[:, k], 0, len(cuts) - 1)],
                cuts[np.clip(last[:, k], -1, len(cuts) - 2) + 1],
            )
            exact = self.columns.exact[k]
            if self.whole[k]:
                low[:, k] = np.floor(below) + 1
            else:
                low[:, k] = np.nextafter(below, np.inf) if exact else below
            high[:, k] = above if exact else np.nextafter(above, np.inf)
        return low, high

    def domains(self, low: Array, high: Array) -> dict[str, tuple[float, float]]:
        """Intervals of the columns' values, (columns,), as domains of the features that actions move."""
        made = {}
        for i, feature in self.moved.items():
            least, most = feature.domain or (-FAR, FAR)
            made[feature.name] = max(least, float(low[i])), min(most, float(high[i]))
        return made

    def decided(self, masks: Masks, first: Cells, last: Cells) -> NDArray[np.bool_]:
        """Whether no split of cells can change what the trees say."""
        decided: NDArray[np.bool_] = self.table.decided(masks) | (first == last).all(axis=1)
        return decided
