r"""Branch and bound over cells, cheapest first: exact for any ensemble where no feature causes another.

A node is a box of cells. It costs at least the sum of its axes' cheapest cells (plus the largest
weighted step, for linf), and scores at most what :class:`~milp_recourse.forests.table.LeafTable` says.
It is closed by score when that is not accepted. Otherwise its cheapest point is tried: if the deployed
model accepts it, nothing in the node is cheaper; if not, the node is split where both halves lose most of
the score that is above the threshold. Nodes are taken cheapest first, so few that cost more than the
optimum are ever looked at.

Every comparison is between doubles the deployed model computes itself, or against costs rounded down:
the bound is rigorous.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milp_recourse.domain.forest import TreeEnsemble
from milp_recourse.forests.axes import Axis, action_of, axes_of, factual_cells, rounded_down
from milp_recourse.forests.branch_tree import COST, SCORE, BranchTree
from milp_recourse.forests.table import LeafTable, Masks
from milp_recourse.instance import Instance

Array = NDArray[np.float64]
Cells = NDArray[np.int64]

BATCH = 32
"""Nodes taken at once: enough to keep numpy busy, few enough that little is looked at in vain."""


@dataclass(frozen=True)
class Outcome:
    """How a search ended.

    Attributes
    ----------
    action, cost
        The cheapest action found and its cost rounded down; None without one.
    lower_bound
        No feasible action costs less; inf where none exists.
    nodes
        Boxes looked at.
    message
        Why it stopped early, if it did.
    tree
        The branching, where it was asked for.
    """

    action: dict[str, float] | None
    cost: float | None
    lower_bound: float
    nodes: int
    message: str | None = None
    tree: BranchTree | None = None


class ForestSearch:
    """One applicant's search.

    Parameters
    ----------
    instance
        Its classifier is a :class:`TreeEnsemble`, nothing that can move causes anything else, and no
        plausibility is asked.
    deadline
        ``time.perf_counter()`` value to stop at, or None.
    record
        Keep the :class:`BranchTree`.
    """

    def __init__(self, instance: Instance, deadline: float | None = None, record: bool = False) -> None:
        assert isinstance(instance.classifier, TreeEnsemble)
        self.instance, self.deadline = instance, deadline
        self.forest = instance.classifier
        axes = axes_of(instance)
        self.impossible = axes is None
        self.axes: Sequence[Axis] = axes or []
        self.tree = BranchTree(self.axes) if record else None
        self.start = np.array([axis.start for axis in self.axes], dtype=np.int64)
        self.nodes = 0

    def run(self) -> Outcome:
        """Search to the end, or to the deadline."""
        if self.impossible:
            return Outcome(None, None, math.inf, 0, tree=self.tree)
        self.table = LeafTable(self.forest, factual_cells(self.instance, self.forest), self.axes)
        low = np.zeros((1, len(self.axes)), dtype=np.int64)
        high = np.array([[len(axis) - 1 for axis in self.axes]], dtype=np.int64)
        queue = _Queue()
        best: tuple[float, Cells] | None = None
        self._file(queue, low, high, self.table.met(low, high), np.zeros(1, dtype=np.int64), math.inf)
        while len(queue):
            limit = math.inf if best is None else best[0]
            if queue.least >= limit:
                break
            if self.deadline is not None and time.perf_counter() > self.deadline:
                bound = min(queue.least, limit)
                return self._outcome(best, bound, "the time limit was reached")
            nodes = queue.take(BATCH, limit)
            self.nodes += len(nodes.cost)
            points = np.clip(self.start, nodes.low, nodes.high)
            accepted = self.table.bound(self.table.met(points, points)) > self.instance.accept.above
            for k in np.flatnonzero(accepted):  # in order of cost
                if best is None or nodes.cost[k] < best[0]:
                    best = (float(nodes.cost[k]), points[k])
                self._close(nodes.number[k : k + 1], COST)
            left = np.flatnonzero(~accepted)
            if len(left):
                self._split(queue, nodes.at(left), points[left], math.inf if best is None else best[0])
        bound = math.inf if best is None else best[0]
        for number in queue.numbers():
            self._close([number], COST)
        return self._outcome(best, bound, None)

    def costs(self, low: Cells, high: Cells) -> Array:
        """Least cost in boxes, rounded down, shape (n,)."""
        points = np.clip(self.start, low, high)
        total, widest = np.zeros(len(low)), np.zeros(len(low))
        for axis, cells in zip(self.axes, points.T, strict=True):
            total += axis.added[cells]
            np.maximum(widest, axis.widest[cells], out=widest)
        return rounded_down(total + self.instance.cost.linf * widest, len(self.axes))

    def _split(self, queue: _Queue, nodes: _Nodes, points: Cells, limit: float) -> None:
        """Cut every node in two and file the halves."""
        axis, cut, low_masks, high_masks = best_cuts(
            self.table, nodes.low, nodes.high, nodes.masks, nodes.bound, self.instance.accept.above
        )
        rows = np.arange(len(axis))
        lower, upper = nodes.high.copy(), nodes.low.copy()
        lower[rows, axis], upper[rows, axis] = cut, cut + 1
        numbers = np.zeros((2, len(axis)), dtype=np.int64)
        if self.tree is not None:
            for k in rows:
                numbers[:, k] = self.tree.split(int(nodes.number[k]), int(axis[k]), int(cut[k]))
        self._file(
            queue,
            np.concatenate([nodes.low, upper]),
            np.concatenate([lower, nodes.high]),
            np.concatenate([low_masks, high_masks]),
            numbers.ravel(),
            limit,
        )

    def _file(
        self, queue: _Queue, low: Cells, high: Cells, masks: Masks, numbers: Cells, limit: float
    ) -> None:
        """Close what can be closed; queue the rest."""
        bound, cost = self.table.bound(masks), self.costs(low, high)
        refused = ~(bound > self.instance.accept.above)
        dear = ~refused & (cost >= limit)
        self._close(numbers[refused], SCORE)
        self._close(numbers[dear], COST)
        open_ = ~(refused | dear)
        queue.put(_Nodes(low[open_], high[open_], masks[open_], bound[open_], cost[open_], numbers[open_]))

    def _close(self, numbers: Cells | list[int], kind: int) -> None:
        if self.tree is not None:
            for number in numbers:
                self.tree.kind[int(number)] = kind

    def _outcome(self, best: tuple[float, Cells] | None, bound: float, message: str | None) -> Outcome:
        action = None if best is None else action_of(self.axes, best[1])
        cost = None if best is None else best[0]
        return Outcome(action, cost, bound, self.nodes, message, self.tree)


def best_cuts(
    table: LeafTable, low: Cells, high: Cells, masks: Masks, bound: Array, threshold: float
) -> tuple[Cells, Cells, Masks, Masks]:
    """Where to cut boxes of cells: the axis and cell whose halves both lose most of the excess score.

    Parameters
    ----------
    low, high
        Boxes (n, axes), none a single point.
    masks, bound
        The leaves they meet and their largest scores.

    Returns
    -------
    tuple
        Axis and last cell of the lower half, (n,) each, and the masks of both halves.
    """
    size = len(bound)
    best = np.full(size, -1.0)
    axis, cut = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    halved = np.zeros((2, *masks.shape), dtype=masks.dtype)
    excess = np.maximum(bound - threshold, 1e-300)
    for i in range(low.shape[1]):
        wide = np.flatnonzero(high[:, i] > low[:, i])
        if not len(wide):
            continue
        from_, to, whole = low[wide, i], high[wide, i], masks[wide]
        at = np.minimum(from_ + (to - from_) // 2, to - 1)
        halves = whole & table.slab(i, from_, at), whole & table.slab(i, at + 1, to)
        lost = [np.minimum((bound[wide] - table.bound(h)) / excess[wide], 1.0) for h in halves]
        merit = 10.0 * np.minimum(*lost) + np.maximum(*lost)
        better = merit > best[wide]
        chosen = wide[better]
        best[chosen], axis[chosen], cut[chosen] = merit[better], i, at[better]
        halved[0][chosen], halved[1][chosen] = halves[0][better], halves[1][better]
    return axis, cut, halved[0], halved[1]


@dataclass(frozen=True)
class _Nodes:
    """Boxes with their masks, score bounds, costs and numbers in the branch tree."""

    low: Cells
    high: Cells
    masks: Masks
    bound: Array
    cost: Array
    number: Cells

    def at(self, index: NDArray[np.int64]) -> _Nodes:
        return _Nodes(*(getattr(self, name)[index] for name in self.__dataclass_fields__))


_Open = tuple[float, int, tuple[Cells, Cells, Masks, float, int]]


class _Queue:
    """Open nodes, cheapest first; equal costs newest first, which is depth first."""

    def __init__(self) -> None:
        self._heap: list[_Open] = []
        self._order = 0

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def least(self) -> float:
        return self._heap[0][0]

    def put(self, nodes: _Nodes) -> None:
        for k in range(len(nodes.cost)):
            self._order -= 1
            rest = (nodes.low[k], nodes.high[k], nodes.masks[k], float(nodes.bound[k]), int(nodes.number[k]))
            heapq.heappush(self._heap, (float(nodes.cost[k]), self._order, rest))

    def take(self, count: int, limit: float) -> _Nodes:
        """The ``count`` cheapest below ``limit``."""
        taken: list[_Open] = []
        while self._heap and len(taken) < count and self._heap[0][0] < limit:
            taken.append(heapq.heappop(self._heap))
        costs = [cost for cost, *_ in taken]
        low, high, masks, bound, number = zip(*(rest for *_, rest in taken), strict=True)
        arrays = (np.array(column) for column in (low, high, masks, bound, costs, number))
        return _Nodes(*arrays)

    def numbers(self) -> list[int]:
        return [rest[4] for _, _, rest in self._heap]
