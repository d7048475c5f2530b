r"""A proof by prices that a checker can follow: boxes of cells, each closed by its least cost or by prices.

The search of :mod:`milp_recourse.forests.priced` takes out cells and leaves one by one; a proof may only cut
boxes. So this second search, which knows its target, drops the ends of intervals where the bound reaches it,
and writes down the prices that do so. Prices are rounded to a unit before they are judged.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from milp_recourse.forests.axes import Axis
from milp_recourse.forests.factors import Array, Factors, cell_masks, factors
from milp_recourse.forests.living import lists, shrink
from milp_recourse.forests.prices import ascend, assess, choose
from milp_recourse.forests.table import LeafTable
from milp_recourse.forests.weighted import WeightedSums

Cells = NDArray[np.int64]

UNIT_BITS = 26
"""Prices are whole numbers of units, a unit being about the target times 2 to the minus this."""

STEPS, ROUNDS, ROOT_ROUNDS = 12, 8, 30

GAIN = 0.05
"""The share of what is missing that a round has to gain, or ends are cut off, or the box is split."""

LENGTH = 0.5
"""What Polyak's step is multiplied by at first; every box begins with it."""

WEIGHT = 10.0
"""How much larger a relative step of the multiplier is than one of a price."""

NO_SHARES = np.empty(0)

SPLIT, COST, PRICES, SCORE = "split", "cost", "prices", "score"


@dataclass(frozen=True)
class Step:
    """A node in preorder: cut axis after a cell; or a leaf closed by cost, by a table of prices, or by score.

    Attributes
    ----------
    axis, cell
        Of a split.
    table
        Number of the table.
    low, high
        First and last cells of a box closed by score.
    """

    kind: str
    axis: int = -1
    cell: int = -1
    table: int = -1
    low: Cells | None = None
    high: Cells | None = None


@dataclass(frozen=True)
class PriceTable:
    """Prices in units, per class of the factor graph, the multiplier, and the weights of the sums."""

    unit: float
    mu: float
    price: NDArray[np.int64] | None
    weights: Array


@dataclass
class _Open:
    low: Cells
    high: Cells
    price: Array
    mu: float
    weights: Array
    rounds: int = ROUNDS


@dataclass
class PriceProof:
    """Proves that no accepted point of some axes costs less than a target.

    Parameters
    ----------
    table, axes
        The leaves, and the axes that are acted on: every cell may be set.
    cost
        Lower bounds of what cells cost, all axes' one after the other.
    above
        Scores are accepted above it; of several sums, the smallest is the score.
    target
        What is to be proven.
    deadline
        ``time.perf_counter()`` value to stop at, or None.
    most_nodes
        Nodes after which the proof is given up.

    Attributes
    ----------
    steps, tables
        The proof, where :meth:`run` returns True.
    """

    table: LeafTable
    axes: Sequence[Axis]
    cost: Array
    above: float
    target: float
    deadline: float | None
    most_nodes: int
    steps: list[Step] = field(default_factory=list)
    tables: list[PriceTable] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.factors: Factors = factors(self.table, self.axes, cell_masks(self.table, self.axes))
        self.room, self.x = lists(self.factors), np.zeros(len(self.axes), dtype=np.int32)
        self.energy = np.zeros(len(self.factors.value))
        self.loss = np.zeros((3, len(self.cost)))
        self.sums = WeightedSums(self.factors, self.table, self.above)
        self.unit = 2.0 ** (math.ceil(math.log2(max(self.target, 1e-290))) - UNIT_BITS)
        floors = len(self.table.forest.trees) + len(self.axes) + 4
        self.goal_target = self.target * (1 + 2.0**-50) + floors * self.unit * 2.0**-24

    def run(self) -> bool:
        """Search; False where time or room ran out, or something accepted costs less."""
        f = self.factors
        first = f.axis_from[:-1].astype(np.int64)
        last = f.axis_from[1:].astype(np.int64) - 1
        price = np.zeros(int(f.class_from[-1]))
        start = _Open(first, last, price, self._multiplier(), self.sums.even, ROOT_ROUNDS)
        waiting: list[_Open | Step] = [start]
        while waiting:
            node = waiting.pop()
            if isinstance(node, Step):
                self.steps.append(node)
                continue
            late = self.deadline is not None and time.perf_counter() > self.deadline
            if late or len(self.steps) > self.most_nodes:
                return False
            more = self._visit(node)
            if more is None:
                return False
            waiting += reversed(more)
        return True

    def _multiplier(self) -> float:
        p = np.array([[axis.start for axis in self.axes]])
        forest = self.table.forest
        here = float(self.table.bound(self.table.met(p, p))[0])
        missing = (self.above - here) * (len(forest.trees) if forest.aggregate == "mean" else 1)
        return max(self.target, 1e-12) / max(missing, 1e-9)

    def _visit(self, node: _Open) -> list[_Open | Step] | None:
        """What a box becomes: steps and boxes in preorder; None where it holds a counterexample."""
        before: list[_Open | Step] = []
        after: list[_Open | Step] = []  # closed halves above, innermost last
        low, high = node.low.copy(), node.high.copy()
        least = self._least(low, high)
        if self._dear(least):
            return [Step(COST)]
        self._cut_by_cost(low, high, least, before, after)
        closed = self._by_score(low, high)
        if closed is not None:
            return [*before, closed, *reversed(after)]
        live, weights = self.room, node.weights
        price, mu, length, best = node.price, node.mu, LENGTH, -math.inf
        for round_ in range(node.rounds):
            if round_:
                weights = self.sums.turned(weights, live, self.energy)
            f, goal = self._under(weights)
            alive, leaves = self._inside(low, high), np.ones(len(f.value), dtype=np.bool_)
            if not shrink(f, self.cost, alive, leaves, live, False):
                return [*before, self._listed(None, 0.0, weights), *reversed(after)]
            _, mu, length = ascend(
                f,
                self.cost,
                self.cost,
                NO_SHARES,
                live,
                mu,
                goal,
                price,
                1.001 * self.goal_target,
                STEPS,
                max(length, 0.02),
                10.0,
            )
            price = np.round(price / self.unit) * self.unit
            self._zero_idle(price)
            bound, slack = assess(f, self.cost, live, mu, goal, price, self.x, self.energy, self.loss)
            reached = self.goal_target + slack
            listed = partial(self._listed, price, mu, weights)
            if bound >= reached:
                return [*before, listed(), *reversed(after)]
            gained = (bound - best) / max(reached - bound, 1e-300)
            best = max(best, bound)
            if gained < GAIN or round_ == node.rounds - 1:
                if not self._cut_by_prices(low, high, bound - slack, reached, listed, before, after):
                    break
                best = -math.inf
        closed = Step(COST) if self._dear(self._least(low, high)) else self._by_score(low, high)
        if closed is not None:
            return [*before, closed, *reversed(after)]
        f, goal = self._under(weights)
        alive, leaves = self._inside(low, high), np.ones(len(f.value), dtype=np.bool_)
        if not shrink(f, self.cost, alive, leaves, live, False):
            return [*before, self._listed(None, 0.0, weights), *reversed(after)]
        bound, slack = assess(f, self.cost, live, mu, goal, price, self.x, self.energy, self.loss)
        i, c = (int(k) for k in choose(f, live, bound, self.goal_target, self.loss))
        if i < 0:
            return None  # one point, accepted, and cheaper
        halves = []
        for a, b in ((low[i], c), (c + 1, high[i])):
            lower, upper = low.copy(), high.copy()
            lower[i], upper[i] = a, b
            halves.append(_Open(lower, upper, price.copy(), mu, weights))
        return [*before, Step(SPLIT, i, c), *halves, *reversed(after)]

    def _under(self, weights: Array) -> tuple[Factors, float]:
        """The factor graph under weights of the sums, and what the weighted sum must reach."""
        factors, goal = self.sums.under(weights)
        return factors, goal - 2.0**-50 * float(self.sums.reach @ weights)

    def _least(self, low: Cells, high: Cells) -> Array:
        """The cheapest cell of every axis."""
        return np.array([self.cost[a : b + 1].min() for a, b in zip(low, high, strict=True)])

    def _dear(self, least: Array) -> bool:
        return float(least.sum()) * (1 - 2.0**-45) >= self.target

    def _inside(self, low: Cells, high: Cells) -> NDArray[np.bool_]:
        alive = np.zeros(len(self.cost), dtype=np.bool_)
        for a, b in zip(low, high, strict=True):
            alive[a : b + 1] = True
        return alive

    def _zero_idle(self, price: Array) -> None:
        """No prices where a tree's living leaves are not told apart: the search has left them out."""
        f, live = self.factors, self.room
        used = np.zeros(len(f.slot_axis), dtype=np.bool_)
        used[live.slot[: live.slot_to[-1]]] = True
        price[~np.repeat(used, np.diff(f.class_from))] = 0.0

    def _cut_by_cost(
        self, low: Cells, high: Cells, least: Array, before: list[_Open | Step], after: list[_Open | Step]
    ) -> None:
        """Close the ends of intervals that alone cost too much beside the least of all others."""
        total = float(least.sum())
        for i in range(len(low)):
            room = self.target * (1 + 2.0**-40) - (total - least[i]) * (1 - 2.0**-45)
            cells = np.arange(low[i], high[i] + 1)
            fine = cells[self.cost[low[i] : high[i] + 1] < room]
            if not len(fine):
                continue
            if fine[0] > low[i]:
                before += [Step(SPLIT, i, int(fine[0]) - 1), Step(COST)]
                low[i] = fine[0]
            if fine[-1] < high[i]:
                before.append(Step(SPLIT, i, int(fine[-1])))
                after.append(Step(COST))
                high[i] = fine[-1]

    def _cut_by_prices(
        self,
        low: Cells,
        high: Cells,
        bound: float,
        reached: float,
        listed: Callable[[], Step],
        before: list[_Open | Step],
        after: list[_Open | Step],
    ) -> bool:
        """Close the ends of intervals whose bound at these prices suffices; whether there were any."""
        number = -1
        for i in range(len(low)):
            cells = np.arange(low[i], high[i] + 1)
            up, down = self.loss[1, cells], self.loss[2, cells]
            below = cells[bound + up >= reached]
            above = cells[bound + down >= reached]
            for side, ends in ((0, below), (1, above)):
                if not len(ends) or (len(below) and len(above) and below[-1] >= above[0] and side):
                    continue
                if number < 0:
                    number = listed().table
                if side == 0:
                    cut = int(ends[-1])
                    if cut >= high[i]:
                        continue
                    before += [Step(SPLIT, i, cut), Step(PRICES, table=number)]
                    low[i] = cut + 1
                elif ends[0] > low[i]:
                    before.append(Step(SPLIT, i, int(ends[0]) - 1))
                    after.append(Step(PRICES, table=number))
                    high[i] = ends[0] - 1
        return number >= 0

    def _by_score(self, low: Cells, high: Cells) -> Step | None:
        """A leaf, where not even the trees' largest values are accepted."""
        first = self.factors.axis_from[:-1]
        masks = self.table.met((low - first)[None], (high - first)[None])
        best = self.table.best(masks)[0]
        if self.table.forest.total(best[None])[0] > self.above:
            return None
        goals = self.sums.goals - 2.0**-50 * self.sums.reach
        missing = goals - np.bincount(self.table.forest.part_of, best, len(goals))
        clear = 1e-6 * np.maximum(1.0, np.abs(goals))
        worst = int(np.argmax(missing / clear))
        if missing[worst] > clear[worst]:
            alone = np.eye(len(goals))[worst]
            return self._listed(None, 1.01 * (self.target + 1e-300) / float(clear[worst]), alone)
        return Step(SCORE, low=low - first, high=high - first)

    def _listed(self, price: Array | None, mu: float, weights: Array) -> Step:
        """A leaf closed by these prices, which become a table unless the last one has them."""
        units = None if price is None else np.round(price / self.unit).astype(np.int64)
        recent = range(len(self.tables) - 1, max(-1, len(self.tables) - 4), -1)
        for number in range(len(self.tables)) if units is None else recent:
            known = self.tables[number]
            same = known.price is units is None
            if units is not None and known.price is not None:
                same = np.array_equal(known.price, units)
            if same and known.mu == mu and np.array_equal(known.weights, weights):
                return Step(PRICES, table=number)
        self.tables.append(PriceTable(self.unit, mu, units, weights))
        return Step(PRICES, table=len(self.tables) - 1)
