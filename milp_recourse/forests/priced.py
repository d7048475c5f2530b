r"""Branch and bound for large ensembles: bounds by prices, best bound first.

It starts with a good action (:mod:`milp_recourse.forests.starts`), whose cost takes out cells and leaves, and
improves prices and multiplier at the root (:mod:`milp_recourse.forests.prices`). A node is closed when the
deployed score of its trees' largest values is refused, when its bound reaches the cost in hand, or when its
cheapest point is accepted. Otherwise it is split where, at the same prices, both halves' bounds rise most,
and the halves go on from its prices. The bound is rounded down by more than its rounding error, so it is
rigorous whatever the prices are.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from milp_recourse.domain.cost import Cost
from milp_recourse.domain.features import Feature
from milp_recourse.domain.forest import Tree, TreeEnsemble
from milp_recourse.domain.scm import independent
from milp_recourse.forests.axes import Axis, action_of, axes_of, factual_cells, rounded_down
from milp_recourse.forests.factors import Array, Factors, factors
from milp_recourse.forests.goal import affordable, score_goal
from milp_recourse.forests.living import lists, shrink
from milp_recourse.forests.prices import ascend, assess, choose, take_out
from milp_recourse.forests.search import Outcome
from milp_recourse.forests.starts import Cells, Points, good_point, points, settled
from milp_recourse.forests.table import LeafTable, may_be_missing
from milp_recourse.instance import Acceptance, Instance, Preferences

STEPS, ROUNDS, ROOT_ROUNDS = 12, 4, 30
"""Steps of the prices between looks at what they take out, and how many such looks a node is given."""

GAIN = 0.05
"""The share of what is missing that a round has to gain, or the node is split."""

LENGTH = 0.5
"""What Polyak's step is multiplied by at first; every node begins with it."""

MOST_BYTES = 2**30
"""What open nodes may take before the search goes deep instead of to the best bound."""

KICKS = 12
NEAREST = 12
"""Rows to start from that are looked at."""

WEIGHT = 10.0
"""How much larger a relative step of the multiplier is than one of a price."""


@dataclass
class _Node:
    """An open node: what lives in it, its prices, and where it is to be split."""

    bound: float
    alive: NDArray[np.bool_]
    leaves: NDArray[np.bool_]
    price: NDArray[np.float32]
    mu: float
    choice: tuple[int, int]


class PricedSearch:
    """One applicant's search.

    Parameters
    ----------
    instance
        Its classifier is a :class:`TreeEnsemble`, nothing that can move causes anything else, no plausibility
        is asked, and its cost has no linf part.
    deadline
        ``time.perf_counter()`` value to stop at, or None.
    starts
        Rows (n, features) that are thought to be accepted, or None.
    """

    def __init__(
        self, instance: Instance, deadline: float | None = None, starts: Array | None = None
    ) -> None:
        assert isinstance(instance.classifier, TreeEnsemble)
        self.instance, self.deadline, self.forest = instance, deadline, instance.classifier
        self.starts = starts
        self.nodes = 0
        self.best: tuple[float, dict[str, float]] | None = None
        self.floor = math.inf

    def run(self) -> Outcome:
        """Search to the end, or to the deadline."""
        axes = axes_of(self.instance)
        if axes is None:
            return Outcome(None, None, math.inf, 0)
        self._set(axes)
        self._offer(*good_point(self.points, self._rows(axes), KICKS))
        if self.best is not None:
            self._set([affordable(axis, 0.0, self.best[0]) for axis in axes])
        self.factors = factors(self.table, self.axes, self.points.masks)
        self.room = lists(self.factors)
        self.x = np.zeros(len(self.axes), dtype=np.int32)
        self.energy, self.loss = np.zeros(len(self.factors.value)), np.zeros((3, len(self.points.added)))
        cost = self.points.added * (1.0 - 2.0**-49) - 2.0**-1000
        self.cost = np.maximum(cost, 0.0)
        self.goal, _ = score_goal(self.table, self.instance.accept.above)
        self.dearest = 1.0 + 2.0 * sum(float(axis.added.max()) for axis in self.axes)
        return self._search()

    @property
    def target(self) -> float:
        """What a node's bound must reach; a hair below the cost in hand."""
        if self.best is None:
            return self.dearest
        return self.best[0] - 0.5 * self.instance.gap_tolerance(self.best[0])

    def _set(self, axes: Sequence[Axis]) -> None:
        self.axes = list(axes)
        self.table = LeafTable(self.forest, factual_cells(self.instance, self.forest), self.axes)
        threshold = self.instance.accept.above
        self.points: Points = points(self.table, self.axes, 0.0, threshold)

    def _offer(self, point: Cells, cost: float) -> bool:
        """Keep an accepted point if it is the cheapest."""
        if not math.isfinite(cost):
            return False
        low = float(rounded_down(np.array([cost]), len(self.axes))[0])
        if self.best is not None and low >= self.best[0]:
            return False
        self.best = low, action_of(self.axes, point - self.points.axis_from[:-1])
        return True

    def _rows(self, axes: Sequence[Axis]) -> Cells:
        """The rows to start from, the nearest ones, as points."""
        if self.starts is None or not len(self.starts) or not axes:
            return np.empty((0, len(axes)), dtype=np.int32)
        names = [f.name for f in self.instance.features]
        offset = self.points.axis_from
        rows, paid = [], np.zeros(len(self.starts))
        for i, axis in enumerate(axes):
            values = self.starts[:, names.index(axis.feature)]
            after = int(may_be_missing(axis))  # the first cell holds no values then
            cells = after + np.searchsorted(axis.high[after:], values)
            cells = np.where(np.isnan(values), axis.start, np.minimum(cells, len(axis) - 1))
            paid += axis.added[cells]
            rows.append(cells + offset[i])
        nearest = np.argsort(paid, kind="stable")[:NEAREST]
        return np.ascontiguousarray(np.stack(rows, axis=1)[nearest].astype(np.int32))

    def _search(self) -> Outcome:
        f: Factors = self.factors
        alive, leaves = np.ones(len(self.cost), dtype=np.bool_), np.ones(len(f.value), dtype=np.bool_)
        heap: list[tuple[float, int, _Node]] = []
        price = np.zeros(int(f.class_from[-1]))
        most = max(16, MOST_BYTES // (4 * len(price) + len(alive) + len(leaves)))
        root = self._settle(-math.inf, alive, leaves, price, self._multiplier(), ROOT_ROUNDS)
        if root is not None:
            heap.append((root.bound, 0, root))
        order = 0
        while heap:
            node = heapq.heappop(heap)[2]
            if node.bound >= self.target:
                self.floor = min(self.floor, node.bound)
                continue
            if self.deadline is not None and time.perf_counter() > self.deadline:
                bound = min(one.bound for one in (node, *(one for *_, one in heap)))
                return self._outcome(min(bound, self.floor), "the time limit was reached")
            for side in (0, 1):
                alive, leaves = self._half(node, side), node.leaves.copy()
                child = self._settle(
                    node.bound, alive, leaves, node.price.astype(np.float64), node.mu, ROUNDS
                )
                if child is not None:
                    order -= 1  # the newest first among equals, and where memory is short
                    heapq.heappush(heap, (child.bound if len(heap) < most else -math.inf, order, child))
        return self._outcome(self.floor, None)

    def _multiplier(self) -> float:
        """Cost in hand per score that is missing."""
        p = self.points
        here = float(self.table.bound(self.table.met(*(2 * [(p.start - p.axis_from[:-1])[None]])))[0])
        missing = (self.instance.accept.above - here) * (
            len(self.forest.trees) if self.forest.aggregate == "mean" else 1
        )
        scale = self.dearest if self.best is None else self.best[0]
        return max(scale, 1e-12) / max(missing, 1e-9)

    def _half(self, node: _Node, side: int) -> NDArray[np.bool_]:
        axis, cell = node.choice
        alive = node.alive.copy()
        first, end = self.factors.axis_from[axis], self.factors.axis_from[axis + 1]
        if side == 0:
            alive[cell + 1 : end] = False
        else:
            alive[first : cell + 1] = False
        return alive

    def _settle(
        self,
        parent: float,
        alive: NDArray[np.bool_],
        leaves: NDArray[np.bool_],
        price: Array,
        mu: float,
        rounds: int,
    ) -> _Node | None:
        """Bound a new node; None where it is closed."""
        self.nodes += 1
        f, live = self.factors, self.room
        best, before, length = parent, -math.inf, LENGTH
        for round_ in range(rounds):
            if not shrink(f, self.cost, alive, leaves, live, True):
                return None
            if not self._largest() > self.instance.accept.above or self._cheapest(alive):
                return None
            target = self.target
            _, mu, length = ascend(
                f, self.cost, live, mu, self.goal, price, target, STEPS, max(length, 0.02), WEIGHT
            )
            bound, slack = self._assess(mu, price)
            best = max(best, bound)
            if best >= target:
                self.floor = min(self.floor, best)
                return None
            if (round_ == 0 or self.nodes % 8 == 0) and self._offer(*settled(self.points, self.x)):
                target = self.target
            gone = take_out(f, live, bound, slack, self.energy, self.loss, target, alive, leaves)
            gained = (best - before) / max(target - best, 1e-300)
            late = self.deadline is not None and time.perf_counter() > self.deadline
            if (gone == 0 and gained < GAIN) or late:
                break
            before = best
        if gone:
            if not shrink(f, self.cost, alive, leaves, live, True):
                return None
            bound, _ = self._assess(mu, price)
        i, c = choose(f, live, bound, self.target, self.loss)
        return _Node(best, alive, leaves, price.astype(np.float32), mu, (int(i), int(c)))

    def _assess(self, mu: float, price: Array) -> tuple[float, float]:
        """The node's bound, rounded down, and by how much."""
        f, live = self.factors, self.room
        bound, slack = assess(f, self.cost, live, mu, self.goal, price, self.x, self.energy, self.loss)
        return float(bound), float(slack)

    def _largest(self) -> float:
        """The deployed score of the trees' most valuable living leaves."""
        live, f = self.room, self.factors
        first = live.leaf[live.leaf_to[:-1]]
        return float(self.forest.total(f.value[first][None])[0])

    def _cheapest(self, alive: NDArray[np.bool_]) -> bool:
        """Whether the cheapest living point is accepted: nothing in the node is cheaper. It is offered."""
        p = self.points
        cost = np.where(alive, p.added, np.inf)
        point = p.axis_from[:-1] + np.array(
            [int(np.argmin(cost[a:b])) for a, b in zip(p.axis_from[:-1], p.axis_from[1:], strict=True)],
            dtype=np.int32,
        )
        cells = (point - p.axis_from[:-1])[None]
        if not self.table.bound(self.table.met(cells, cells))[0] > self.instance.accept.above:
            return False
        self._offer(point.astype(np.int32), float(p.added[point].sum()))
        return True

    def _outcome(self, bound: float, message: str | None) -> Outcome:
        if self.best is None:
            return Outcome(None, None, max(bound, 0.0) if message else math.inf, self.nodes, message)
        cost, action = self.best
        low = min(bound, self.floor, self.target)  # cells and leaves were taken out at the target
        return Outcome(action, cost, max(low, 0.0), self.nodes, message)


@lru_cache(maxsize=1)
def ready() -> None:
    """Compile, or load what is compiled, before anybody's time limit starts."""
    stump = Tree(
        np.array([0, -2, -2]),
        np.array([0.5, -2.0, -2.0]),
        np.array([1, -1, -1]),
        np.array([2, -1, -1]),
        np.array([0.0, 0.0, 1.0]),
    )
    PricedSearch(
        Instance(
            (Feature("x", "continuous", True, (0.0, 1.0)),),
            independent(["x"]),
            TreeEnsemble((stump, stump), 1),
            {"x": 0.0},
            Preferences(("x",)),
            Cost.pure("l1", {"x": 1.0}),
            Acceptance(0.5, strict=True),
        )
    ).run()
