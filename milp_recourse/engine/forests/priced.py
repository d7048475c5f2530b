"""Branch and bound for large ensembles: bounds by prices, best bound first.

It starts with a good action (:mod:`milp_recourse.engine.forests.starts`), whose cost takes out cells and
leaves, and improves prices and multiplier at the root (:mod:`milp_recourse.engine.forests.passing`). A node
is closed when no cell of an axis or no leaf of a tree is left, when the deployed score of its trees' largest
values is refused, when its bound reaches the target (half the allowed gap below the cost in hand), or when
its cheapest point is accepted. Otherwise it is split where trees disagree, and the halves go on from its
prices. The bound is rounded down by more than its rounding error, so it is rigorous whatever the prices are.

Where the cost is a maximum alone, cells that cost as much as the action in hand are taken out, and the
question left is whether any point of the others is accepted. Prices then bound the score, as if cells cost
nothing.

Where the score is the smallest of several sums, the bound weighs them
(:mod:`milp_recourse.engine.forests.weighted`). A sum that the relaxed point leaves below its goal then gets
more weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.compiling import announced
from milp_recourse.engine.forests.axes import (
    Axis,
    Cells,
    action_of,
    axes_of,
    factual_cells,
    rounded_down,
    with_cells,
    without_twins,
)
from milp_recourse.engine.forests.factors import Array, Factors, Ints, cell_masks, factors
from milp_recourse.engine.forests.goal import affordable, first_multiplier, least_change
from milp_recourse.engine.forests.graphs import Graph
from milp_recourse.engine.forests.living import shrink
from milp_recourse.engine.forests.prices import PACE, PLAIN, SHARED, assess, improve, splits, take_out
from milp_recourse.engine.forests.starts import cost_of, good_point, polished
from milp_recourse.engine.forests.table import Budget, LeafTable, TooLarge, may_be_missing
from milp_recourse.engine.forests.tree_arrays import score_at, tree_arrays
from milp_recourse.engine.forests.weighted import WeightedSums
from milp_recourse.judge.best_first import BestFirst
from milp_recourse.judge.conclude import Proposal
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature
from milp_recourse.problem.forest import Tree, TreeEnsemble
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.options import LATE, NEVER, Clock, OutOfTime
from milp_recourse.problem.scm import independent

ROUNDS, ROOT_ROUNDS = 3, 30
"""Most rounds of a node and of the root. A round improves prices, then takes out cells and leaves."""

GAIN = 0.05
"""A round that takes nothing out has to raise the bound by this share of its distance from the target; else
the node is split."""

MOST_BYTES = 2**30
"""With open nodes of more bytes the newest node comes first instead of the one with the least bound."""

LARGEST_TABLE = 2**31
"""Most bytes of the masks of leaves; a search that would need more ends with its first action."""

OPEN = 0.03
"""If the root's bound is below the target by more than this share of it, the factor graph is rebuilt from the
cells and leaves that are left, and the root is bounded again."""

SMALL = 0.5
"""A node that has at most this share of its factor graph's leaves left gets a graph of its own for its
halves."""

OFTEN, RARELY = 16, 256
"""At each of the first ``OFTEN`` nodes an action is looked for, then at every eighth, from node ``RARELY`` on
at every 64th: with deep trees that takes as long as ten nodes."""

KICKS, NEAREST = 12, 12
"""The ``kicks`` of :func:`~milp_recourse.engine.forests.starts.good_point`, and most rows it starts from."""

WEIGHT = 10.0
"""How much larger a relative step of the multiplier is than one of a price."""

CLEAR, AIM = 10.0, 0.1
"""Where the cost is a maximum alone: what the first multiplier is multiplied by, and the share of the target
that the steps' length aims at."""

LARGEST = 2.0**120
"""Prices of open nodes are at most this large, so that they fit in 32 bits."""

LEAST = 2.0**-900
"""Where the cost is a maximum alone, a bound by prices of this much proves that nothing is accepted."""


@dataclass
class _Node:
    """An open node.

    Attributes
    ----------
    alive, leaves
        Which of the graph's cells and leaves are left, (cells,) and (leaves,).
    price, shares
        Prices by class, (classes,), and the axes' shares of the maximum, (axes,), or (0,) without one.
    mu, nu, weights
        Multipliers of the score, of the number of actions, and of the sums that the score is made of.
    choice
        Where it is to be split: an axis, and the last cell of the lower half.
    """

    graph: Graph
    bound: float
    alive: NDArray[np.bool_]
    leaves: NDArray[np.bool_]
    price: NDArray[np.float32]
    shares: Array
    mu: float
    nu: float
    weights: Array
    choice: tuple[int, int]


def _kept(price: Array) -> NDArray[np.float32]:
    """Prices as an open node keeps them."""
    return np.clip(price, -LARGEST, LARGEST).astype(np.float32)


class PricedSearch(BestFirst[_Node]):
    """One applicant's search.

    Parameters
    ----------
    instance
        Its classifier is a :class:`TreeEnsemble`, nothing that can move causes anything else, and no
        plausibility is asked. Of several sums, the smallest is its score.
    starts
        Rows (n, features) that are thought to be accepted, or None.
    most
        How many levers may be in cells that cost anything; None: all.
    """

    def __init__(
        self,
        instance: Instance,
        clock: Clock = NEVER,
        starts: Array | None = None,
        watch: Callable[[float, float], object] | None = None,
        most: int | None = None,
    ) -> None:
        assert isinstance(instance.classifier, TreeEnsemble)
        super().__init__(instance, clock, watch=watch, newest=True)
        self.instance, self.forest, self.starts, self.most = instance, instance.classifier, starts, most
        self.cheapest = math.inf  # what the best point costs, rounded down

    def run(self) -> Proposal:
        """Search to the end, or until time is over."""
        axes = axes_of(self.instance)
        if axes is None:
            return Proposal(None, math.inf, "rigorous", 0)
        told = [without_twins(axis, self.forest) for axis in axes]
        starts = self._rows(axes, [place for _, place in told])
        axes = [axis for axis, _ in told]
        self._set(axes)
        self._offer(*good_point(self.points, self._points(starts), KICKS, self.clock))
        if self.best.action is not None:
            self._set([affordable(axis, self.target) for axis in axes])
        cells = factual_cells(self.instance, self.forest)
        try:
            self.table = LeafTable(self.forest, cells, self.axes, LARGEST_TABLE, self.clock, self._budget())
            masks = cell_masks(self.table, self.axes)
        except (TooLarge, OutOfTime) as stopped:
            moves = not score_at(self.points, self.points.start) > self.instance.accept.above
            bound = least_change(self.axes) if moves else 0.0
            self.close()  # what costs more is not among the axes
            self.close(bound)
            memory = "the leaves within what the best action costs take too much memory"
            self.stop(memory if isinstance(stopped, TooLarge) else LATE)
            self.next()
            return self.outcome()
        sums = WeightedSums(factors(self.table, self.axes, masks), self.table, self.instance.accept.above)
        self._enter(Graph(sums, self.points, np.arange(len(self.points.added), dtype=np.int32)))
        self.only_maximum = bool(self.points.widest.any()) and not self.points.added.any()
        if self.best.action is None:
            self.ceiling = 1.0 + 2.0 * float(sum(self._most(axis) for axis in self.axes))
        return self._search()

    def _budget(self) -> Budget:
        """The target, with the axes' costs rounded down."""
        count = len(self.axes)
        added, widest = (
            [rounded_down(c, count) for c in each]
            for each in ([a.added for a in self.axes], [a.widest for a in self.axes])
        )
        return Budget(added, widest, self.target)

    def _most(self, axis: Axis) -> float:
        """The most that a cell of an axis costs."""
        return float((axis.added + axis.widest).max())

    def _set(self, axes: Sequence[Axis]) -> None:
        """Search over these axes from now on."""
        self.axes = list(axes)
        cells = factual_cells(self.instance, self.forest)
        self.points = tree_arrays(self.forest, cells, self.axes, self.instance.accept.above, self.most)

    def _enter(self, graph: Graph) -> None:
        """Bound nodes in this graph from now on."""
        self.graph, self.room = graph, graph.room
        self.factors, self.goal = graph.sums.under(graph.sums.even)

    def _offer(self, point: Ints, cost: float) -> bool:
        """Keep an accepted point if it is the cheapest."""
        if not math.isfinite(cost):
            return False
        low = float(rounded_down(np.array([cost]), len(self.axes))[0])
        if low >= self.cheapest:
            return False
        self.cheapest = low
        return self.offer(action_of(self.axes, point - self.points.axis_from[:-1])).feasible

    def _rows(self, axes: Sequence[Axis], places: Sequence[Cells]) -> Cells:
        """The cheapest of the given rows as cells of axes without twins, (rows, axes)."""
        if self.starts is None or not len(self.starts) or not axes:
            return np.empty((0, len(axes)), dtype=np.int64)
        names = [f.name for f in self.instance.features]
        rows, paid = [], np.zeros(len(self.starts))
        for i, axis in enumerate(axes):
            values = self.starts[:, names.index(axis.feature)]
            after = int(may_be_missing(axis))  # the first cell holds no values then
            cells = after + np.searchsorted(axis.high[after:], values)
            cells = np.where(np.isnan(values), axis.start, np.minimum(cells, len(axis) - 1))
            paid += axis.added[cells] + axis.widest[cells]
            rows.append(places[i][cells])
        nearest = np.argsort(paid, kind="stable")[:NEAREST]
        return np.stack(rows, axis=1)[nearest]

    def _points(self, cells: Cells) -> Ints:
        """Rows of cells as points."""
        return np.ascontiguousarray((cells + self.points.axis_from[:-1]).astype(np.int32))

    def _search(self) -> Proposal:
        """Bound the root, then split open nodes until none is left, or time is over."""
        f = self.factors
        price = np.zeros(int(f.class_from[-1]))
        shared = len(self.axes) if self.points.widest.any() and not self.only_maximum else 0
        shares = np.full(shared, 1.0 / max(1, shared))
        score = float(score_at(self.points, self.points.start))
        cost = min(self.best.cost, self.ceiling)
        mu = first_multiplier(self.table, self.instance.accept.above, score, cost)
        mu, even = mu * (CLEAR if self.only_maximum else 1.0), self.graph.sums.even
        root = self._bounded(-math.inf, *self._everything(), price, shares, mu, 0.0, even, ROOT_ROUNDS)
        if root is not None and root.bound < (1.0 - OPEN) * self.target and not self.clock.over:
            root = self._rebuilt(root)
        f = self.factors  # the rebuilt root's
        size = 4 * (int(f.class_from[-1]) + int(SMALL * len(f.table))) + len(self.graph.cell) + len(f.value)
        most = max(16, MOST_BYTES // size)
        if root is not None:
            self.push(max(root.bound, 0.0), root)
        while taken := self.next():
            [(bound, node)] = taken
            if bound >= self.target:
                self.close(bound)
                continue
            self._enter(node.graph)
            if node.leaves.sum() <= SMALL * len(node.leaves) and not self._in_own_graph(node):
                continue
            for side in (0, 1):
                alive, leaves = self._half(node, side), node.leaves.copy()
                price, shares = node.price.astype(np.float64), node.shares.copy()
                own = price, shares, node.mu, node.nu, node.weights
                child = self._bounded(bound, alive, leaves, *own, ROUNDS)
                if child is not None:
                    self.push(child.bound, child, soon=self.count >= most)
        self.close()  # cells and leaves were taken out against the target
        return self.outcome()

    def _everything(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Flags that all cells and all leaves of the graph live."""
        return np.ones(len(self.graph.cell), dtype=np.bool_), np.ones(len(self.factors.value), dtype=np.bool_)

    def _rebuilt(self, root: _Node) -> _Node | None:
        """The root, bounded again over axes and in a graph of nothing but its living cells and leaves; None
        where it is closed."""
        kept, axis_from = np.zeros(len(self.graph.cell), dtype=np.bool_), self.factors.axis_from
        if not self._in_own_graph(root):
            return None
        kept[self.graph.cell] = True
        cells = np.split(kept, axis_from[1:-1])
        self._set([with_cells(axis, own) for axis, own in zip(self.axes, cells, strict=True)])
        self._enter(Graph(self.graph.sums, self.points, np.arange(len(self.points.added), dtype=np.int32)))
        price = root.price.astype(np.float64)
        alive, leaves = self._everything()
        own = price, root.shares, root.mu, root.nu, root.weights
        return self._bounded(root.bound, alive, leaves, *own, ROUNDS)

    def _in_own_graph(self, node: _Node) -> bool:
        """Give a node a graph of nothing but its living cells and leaves; False where none are left."""
        # the leaves' own values, without the node's weights: what is left is weighted anew
        if not self._shrunk(self.graph.sums.factors, node.alive, node.leaves):
            return False
        living = self.room.cell[: self.room.cell_to[-1]]
        axis, cell = node.choice
        first, last = self.room.cell_to[axis], int(np.searchsorted(living, cell, side="right")) - 1
        node.choice = axis, max(last, int(first) - 1)
        node.graph, price = self.graph.of_living(node.price.astype(np.float64))
        self._enter(node.graph)
        node.price = _kept(price)
        node.alive, node.leaves = self._everything()
        return True

    def _shrunk(self, f: Factors, alive: NDArray[np.bool_], leaves: NDArray[np.bool_]) -> bool:
        """Take out what cannot be used below the target, and list the rest; False where nothing is left."""
        g = self.graph
        return bool(shrink(f, g.cost, alive, leaves, self.room, True, True, g.least, self.target))

    def _half(self, node: _Node, side: int) -> NDArray[np.bool_]:
        """The living cells of a node's lower half (side 0) or upper half."""
        axis, cell = node.choice
        alive = node.alive.copy()
        first, end = self.factors.axis_from[axis], self.factors.axis_from[axis + 1]
        if side == 0:
            alive[cell + 1 : end] = False
        else:
            alive[first : cell + 1] = False
        return alive

    def _bounded(
        self,
        parent: float,
        alive: NDArray[np.bool_],
        leaves: NDArray[np.bool_],
        price: Array,
        shares: Array,
        mu: float,
        nu: float,
        weights: Array,
        rounds: int,
    ) -> _Node | None:
        """Bound a new node; None where it is closed.

        ``alive`` and ``leaves`` lose what is taken out; the rest are the parent's bound, prices and
        multipliers to begin with (:class:`_Node`), and most rounds.
        """
        self.nodes += 1
        g, live = self.graph, self.room
        self.factors, self.goal = g.sums.under(weights)
        g.torn[:] = 0.0
        best, before, pace = parent, -math.inf, PACE
        for round_ in range(rounds):
            if self.only_maximum:
                best = max(best, self._box(alive))
            if best >= self.target:
                self.close(best)
                return None
            if not self._shrunk(self.factors, alive, leaves):
                return None
            if not self._largest() > self.instance.accept.above or self._settled_by_cheapest(alive):
                return None
            target, costs = self.target, (g.added, g.wide, shares, g.moved, g.most)
            aim, weight = (AIM * target, 0.0) if self.only_maximum else (target, WEIGHT)
            effort = SHARED if len(shares) or len(g.moved) else PLAIN
            _, mu, nu, pace = improve(
                *(self.factors, *costs, live, mu, nu, self.goal, price, aim, effort, pace, weight, g.torn)
            )
            bound, slack = self._assess(mu, nu, price, shares)
            if bound >= (LEAST if self.only_maximum else target):
                self.close(max(bound, target))
                return None
            best = best if self.only_maximum else max(best, bound)
            often = self.nodes <= OFTEN or self.best.action is None
            looks = often or self.nodes % (8 if self.nodes < RARELY else 64) == 0
            if round_ == 0 and looks and self._offer(*polished(self.points, g.cell[g.x])):
                target = self.target
            reach = LEAST if self.only_maximum else target
            taken_out = take_out(live, bound, slack, g.energy, g.loss, reach, alive, leaves)
            now = bound if self.only_maximum else best
            gained = (now - before) / max(reach - now, 1e-300)
            if (taken_out == 0 and gained < GAIN) or self.clock.over:
                break
            before = now
            weights = g.sums.reweighted(weights, live, g.energy)
            self.factors, self.goal = g.sums.under(weights)
        if taken_out:
            if not self._shrunk(self.factors, alive, leaves):
                return None
            bound, _ = self._assess(mu, nu, price, shares)
        choice = self._best_split((LEAST if self.only_maximum else self.target) - bound)
        return _Node(g, best, alive, leaves, _kept(price), shares, mu, nu, weights, choice)

    def _best_split(self, missing: float) -> tuple[int, int]:
        """The ``choice`` of a node (:class:`_Node`) whose bound misses the target by so much; (-1, -1) where
        no axis has more than one cell left."""
        axes, cells = splits(self.room, missing, self.graph.loss, self.graph.torn)
        return (int(axes[0]), int(cells[0])) if len(axes) else (-1, -1)

    def _box(self, alive: NDArray[np.bool_]) -> float:
        """What the dearest axis costs at least, rounded down, after cells that cost the target or more have
        been taken out; where the cost is a maximum alone."""
        cost = self.graph.cost
        alive &= cost * (1.0 - 2.0**-48) < self.target
        least = np.minimum.reduceat(np.where(alive, cost, np.inf), self.factors.axis_from[:-1])
        return max(float(least.max()) * (1.0 - 2.0**-48) - 2.0**-1000, 0.0)

    def _assess(self, mu: float, nu: float, price: Array, shares: Array) -> tuple[float, float]:
        """The node's bound, rounded down, and by how much."""
        f, g, cost = self.factors, self.graph, self._separate(shares, nu)
        bound, slack = assess(f, cost, g.room, mu, self.goal, price, g.x, g.energy, g.loss)
        return float(bound) - nu * g.most * (1.0 + 2.0**-48), float(slack)

    def _separate(self, shares: Array, nu: float) -> Array:
        """What cells cost in a sum over the axes, with each axis' share of the maximum and what a counted
        action costs more; rounded down."""
        g, cost = self.graph, self.graph.added
        if len(shares):
            whole = shares / (shares.sum() * (1.0 + 2.0**-44))  # together at most 1, whatever was rounded
            cost = cost + whole[g.of_cell] * g.wide
        cost = cost + nu * g.moved if len(g.moved) else cost
        return np.maximum(cost * (1.0 - 2.0**-48) - 2.0**-1000, 0.0)

    def _largest(self) -> float:
        """The deployed score of the trees' most valuable living leaves."""
        first = self.room.leaf[self.room.leaf_to[:-1]]
        return float(self.forest.total(self.graph.sums.values[first][None])[0])

    def _settled_by_cheapest(self, alive: NDArray[np.bool_]) -> bool:
        """Whether the cheapest living point is accepted; if so, nothing in the node is cheaper, and it is
        kept if it is the best. Also true where every living point has too many actions."""
        p, g, first = self.points, self.graph, self.factors.axis_from
        cost = np.where(alive, g.cost, np.inf)
        point = g.cell[[a + int(np.argmin(cost[a:b])) for a, b in pairwise(first)]]
        if np.count_nonzero(p.added[point] + p.widest[point]) > p.most:
            return True
        if not score_at(p, point) > self.instance.accept.above:
            return False
        self._offer(point, float(cost_of(p, point)))
        return True


@lru_cache(maxsize=1)
def ready() -> None:
    """Compile the search, or load it from disk, once per process, before anybody's time limit starts."""
    names = "x", "y"
    stumps = [
        Tree(
            np.array([column, -2, -2]),
            np.array([0.5, -2.0, -2.0]),
            np.array([1, -1, -1]),
            np.array([2, -1, -1]),
            np.array([0.0, 0.0, 1.0]),
        )
        for column in range(len(names))
    ]
    with announced("the search of trees"):
        search = PricedSearch(
            Instance(
                tuple(Feature(name, "continuous", True, (0.0, 1.0)) for name in names),
                independent(names),
                TreeEnsemble(tuple(stumps), len(names)),
                dict.fromkeys(names, 0.0),
                Preferences(names),
                Cost.pure("l1", {"x": 1.0, "y": 2.0}),
                Acceptance(0.75, strict=True),  # one stump is not enough, so that prices are needed
            )
        )
        search.run()
        # So small a problem needs none of these.
        cost_of(search.points, search.graph.cell[search.factors.axis_from[:-1]])
        search.graph.of_living(np.zeros(int(search.factors.class_from[-1])))
        search._best_split(1.0)
