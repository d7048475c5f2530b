r"""A proof by prices in steps that the checker can follow (sections 7.3 and 7.5 of the document).

This is a second search, whose target is known. Like the first one it works on the cells and leaves that are
left of a box. Tables of prices take out cells and leaves; what is left is closed by a table or split. Every
table is rounded to whole numbers of a unit before it is judged, and it is judged as the checker does.

It begins in the box that the target pays for (:func:`paid_for`): in a forest of deep trees all but a few
leaves lie outside it, and what lies there is closed by cost. Where the cost is a maximum alone, the cells
inside are treated as free. A bound by prices above zero is then enough, because prices and multiplier can be
scaled until it reaches the target.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.forests.axes import Axis
from milp_recourse.engine.forests.factors import Array, Factors, cell_masks, factors
from milp_recourse.engine.forests.goal import first_multiplier, with_each_cell
from milp_recourse.engine.forests.living import lists, shrink
from milp_recourse.engine.forests.prices import PACE, SHARED, THOROUGH, assess, improve, splits, take_out
from milp_recourse.engine.forests.table import BITS, LeafTable
from milp_recourse.engine.forests.weighted import WeightedSums

Cells = NDArray[np.int64]
Flags = NDArray[np.bool_]

FINE, COARSE = 26, (10, 14)
"""Binary digits of prices: they are whole numbers of a unit, which is about the target times 2 to the minus
this. Coarse units make short files and are tried first."""

ROUNDS, ROOT_ROUNDS = 8, 30
"""Most rounds of a box and of the root."""

LARGEST = 2.0**52
"""Prices, and what a counted action costs more, are at most so many units: every whole number up to there is
a double."""

GAIN = 0.2
"""A round that takes nothing out has to raise the bound by this share of its distance from the target; else
the box is split."""

WEIGHT = 10.0
"""How much larger a relative step of the multiplier is than one of a price."""

FEW = 0.01
"""A table that takes out no more than this share of the cells and leaves that are left is not worth a node,
unless its prices close the node, or nothing comes before it: a checker prepares for the box in which prices
are first used, and again where one outside it comes later."""

MERGED = 0.1
"""A merging that takes out no more than this share of the cells is not worth a node: a check of one takes
longer than two tables'."""

ENOUGH = 0.2
"""Tables of the last prices are enough if they leave at most this share of what all of a node's prices take
out."""

REPEATS = 2
"""How often one table is applied, as long as it takes out more than :data:`FEW`; where the prices close the
node, ten times as often, as long as it takes out anything."""

TRIED, SLIGHT = 4, 0.3
"""How many splits are tried before one is chosen: the product of both halves' gains is compared, each plus
SLIGHT times what the bound misses."""

AIM, CLEAR = 0.1, 1e-7
"""Where the cost is a maximum alone: the share of the target that the steps' length aims at, and the share of
that with which a bound counts as above zero."""

SPLIT, PRICES, TAKE, MERGE = "split", "prices", "take", "merge"
"""Kinds of steps."""


@dataclass(frozen=True)
class Step:
    """A node of the proof, in preorder: split an axis after a cell; take out what a table does; let the
    cheapest of equal cells stand for the others; or a leaf, closed by a table.

    Attributes
    ----------
    axis, cell
        The axis that is split, and the last cell of its lower half.
    table
        Number of the table that is applied or closes the leaf.
    """

    kind: str
    axis: int = -1
    cell: int = -1
    table: int = -1


def paid_for(costs: Sequence[Array], wide: Sequence[Array], target: float) -> list[tuple[int, int]] | None:
    """For each axis, the first and the last cell that cost less than the target with the least of all other
    axes, in the sum and in the maximum; None where no point costs less."""
    found = []
    for least in with_each_cell(costs, wide):
        fine = np.flatnonzero(least * (1 - 2.0**-43) < target)
        if not len(fine):
            return None
        found.append((int(fine[0]), int(fine[-1])))
    return found


@dataclass(frozen=True)
class PriceTable:
    """A table as it is written: prices in units, per class of the factor graph, with the multiplier, the
    weights of the sums, the shares of the maximum and, in units, what a counted action costs more.

    A price of -1 is that of a class without living cells, which may have any; without prices all are 0."""

    unit: float
    mu: float
    price: NDArray[np.int64] | None
    weights: Array
    shares: Array
    nu: int = 0


@dataclass
class _State:
    """What is left: a box, and cells and leaves inside it."""

    low: Cells
    high: Cells
    alive: Flags
    leaves: Flags

    def copy(self) -> _State:
        """The same, in arrays of its own."""
        return _State(self.low.copy(), self.high.copy(), self.alive.copy(), self.leaves.copy())

    def halves(self, axis: int, cell: int) -> list[_State]:
        """The two parts of the box up to a cell of an axis, and behind it."""
        found = []
        for a, b in ((self.low[axis], cell), (cell + 1, self.high[axis])):
            half = self.copy()
            half.alive[self.low[axis] : a] = False
            half.alive[b + 1 : self.high[axis] + 1] = False
            half.low[axis], half.high[axis] = a, b
            found.append(half)
        return found

    def size(self) -> int:
        """How many cells and leaves are left."""
        return int(self.alive.sum() + self.leaves.sum())


@dataclass(frozen=True)
class _Prices:
    """Prices as they are improved, not rounded yet, with multiplier, weights, shares and what a counted
    action costs more as in :class:`PriceTable`."""

    price: Array
    mu: float
    weights: Array
    shares: Array
    nu: float = 0.0


@dataclass
class _Open:
    """A node to be visited: what is left there, the prices to begin with, and most rounds to improve them."""

    state: _State
    start: _Prices
    rounds: int = ROUNDS


@dataclass
class PriceProof:
    """Proves that no accepted point of some axes costs less than a target.

    Parameters
    ----------
    table, axes
        The leaves, whose clock is the search's, and the axes that are acted on: every cell may be set.
    cost, wide
        Lower bounds of what cells cost, and of what enters the maximum, all axes' one after the other. Where
        the cost is a maximum alone, every cell costs less than the target.
    above
        Scores above this are accepted; of several sums, the smallest is the score.
    target
        The lower bound of the cost that is to be proven.
    most_nodes
        Nodes after which the proof is given up.
    rank
        The places of every axis' cells by exact cost, one axis after the other: the first stands for others
        that lead to the same leaves. None: no cell may stand for others, as under conditions.
    most
        How many axes may be in cells that cost anything; None: all.

    Attributes
    ----------
    steps, tables
        The proof, where :meth:`run` returns True.
    """

    table: LeafTable
    axes: Sequence[Axis]
    cost: Array
    wide: Array
    above: float
    target: float
    most_nodes: int
    rank: Cells | None = None
    most: int | None = None
    steps: list[Step] = field(default_factory=list)
    tables: list[PriceTable] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.numbers: dict[int | tuple[float, ...], int] = {}  # of tables that are listed
        self.masks = cell_masks(self.table, self.axes)
        self.factors: Factors = factors(self.table, self.axes, self.masks)
        f = self.factors
        rank = np.arange(len(f.value)) - np.repeat(f.leaf_from[:-1], np.diff(f.leaf_from))
        tree = np.repeat(np.arange(len(f.leaf_from) - 1), np.diff(f.leaf_from))
        self.word_of = tree * self.table.words + rank // BITS
        self.flag_of = np.left_shift(np.uint32(1), (rank % BITS).astype(np.uint32))
        self.cell_cost = self.cost + self.wide
        limited = self.most is not None
        self.moved = (self.cell_cost > 0.0).astype(np.float64) if limited else np.empty(0)
        self.limit = float(self.most or 0)
        self.budget = self.cost, self.target  # leaves whose cells cost the target do not count
        self.room, self.x = lists(f), np.zeros(len(self.axes), dtype=np.int32)
        self.energy = np.zeros(len(f.value))
        self.loss, self.torn = np.zeros((3, len(self.cost))), np.zeros(len(self.cost))
        self.sums = WeightedSums(f, self.table, self.above)
        self.terms = len(self.table.forest.trees) + len(self.axes) + 4
        self.shared = bool(self.wide.any())
        self.only_maximum = self.shared and not self.cost.any()
        self.of_cell = np.repeat(np.arange(len(self.axes)), np.diff(f.axis_from))
        self.slot_of = np.repeat(np.arange(len(f.slot_axis)), np.diff(f.class_from))

    def unit(self, bits: int) -> float:
        """The unit of prices at so many binary digits."""
        return 2.0 ** (math.ceil(math.log2(max(self.target, 1e-290))) - bits)

    def goal(self, bits: int) -> float:
        """What the bound of a table must reach: the target, and as the checker may round every term down, as
        much more."""
        rounded = self.terms * self.unit(bits) * 2.0**-24
        own = CLEAR * AIM * self.target if self.only_maximum else self.target * (1 + 2.0**-50)
        return own + rounded

    def run(self) -> bool:
        """Search for the proof; False if time or nodes run out, or an accepted point costs less.

        Raises
        ------
        OutOfTime
            Time has run out inside a node.
        """
        f = self.factors
        first = f.axis_from[:-1].astype(np.int64)
        last = f.axis_from[1:].astype(np.int64) - 1
        everything = _State(first, last, np.ones(len(self.cost), np.bool_), np.ones(len(f.value), np.bool_))
        count = len(self.axes) if self.shared and not self.only_maximum else 0
        price = np.zeros(int(f.class_from[-1]))
        cheapest = np.array([[axis.start for axis in self.axes]])
        score = float(self.table.bound(self.table.met(cheapest, cheapest))[0])
        mu = first_multiplier(self.table, self.above, score, self.target)
        mu *= 10.0 if self.only_maximum else 1.0
        start = _Prices(price, mu, self.sums.even, np.full(count, 1.0 / max(1, count)))
        waiting: list[_Open | Step] = [_Open(everything, start, ROOT_ROUNDS)]
        while waiting:
            node = waiting.pop()
            if isinstance(node, Step):
                self.steps.append(node)
                continue
            if self.table.clock.over or len(self.steps) > self.most_nodes:
                return False
            more = self._visit(node)
            if more is None:
                return False
            waiting += reversed(more)
        return True

    def _visit(self, node: _Open) -> list[_Open | Step] | None:
        """The steps and open nodes, in preorder, that a node is replaced by; None where it holds an accepted
        point below the target."""
        state, before = node.state, list[Step]()
        closed = self._plainly(state)
        if closed is None:
            before, closed, prices = self._improved(state, node)
        if closed is None:
            closed = self._plainly(state)
        if closed is not None:
            return [*before, closed]
        bound, _ = self._judged(state, prices, FINE)
        if bound >= self.goal(FINE):
            return [*before, self._closing(self._rounded(prices, FINE))]
        missing = self.goal(FINE) - bound
        tried = list(zip(*splits(self.room, missing, self.loss, self.torn), strict=True))[:TRIED]
        if not tried:  # one point, whose score is accepted
            return None
        pairs = [state.halves(i, c) for i, c in tried]
        best = 0
        if len(tried) > 1:
            gains = [[self._bound_soon(half, prices) - bound for half in pair] for pair in pairs]
            merits = [math.prod(max(gain, 0.0) + SLIGHT * missing for gain in both) for both in gains]
            best = merits.index(max(merits))
        (i, c), halves = tried[best], pairs[best]
        return [*before, Step(SPLIT, int(i), int(c)), *(_Open(half, prices) for half in halves)]

    def _bound_soon(self, half: _State, prices: _Prices) -> float:
        """What one round makes of the bound of a half; the goal where it reaches that."""
        self.table.clock.check()
        found = self._round(half.copy(), prices, PACE, np.zeros_like(self.torn))
        return self.goal(FINE) if found is None else min(found[0], self.goal(FINE))

    def _improved(self, state: _State, node: _Open) -> tuple[list[Step], Step | None, _Prices]:
        """Improve prices, and take out of the state what tables of them do.

        Returns
        -------
        (steps, leaf, prices)
            The steps that take it out; the leaf, if a table closes the state; the last prices.
        """
        now, goal, best, closed = state.copy(), self.goal(FINE), -math.inf, False
        prices, pace, rounds = node.start, PACE, list[_Prices]()
        self.torn[:] = 0.0
        for round_ in range(node.rounds):
            self.table.clock.check()
            if round_:
                weights = self.sums.reweighted(prices.weights, self.room, self.energy)
                prices = replace(prices, weights=weights)
            found = self._round(now, prices, pace, self.torn)
            if found is None:
                closed = True
                break
            _, prices, pace = found
            self._calm_idle(prices.price)
            rounds.append(prices)
            bound, slack = self._assessed(prices, FINE)
            if bound >= goal:
                closed = True
                break
            before = now.size()
            self._take_out(now, bound, slack, FINE)
            gained = (bound - best) / max(goal - bound, 1e-300)
            best = max(best, bound)
            if gained < GAIN and now.size() == before:
                break
        rounds = rounds or [node.start]
        steps, leaf = self._followed(state, now, rounds, closed)
        return steps, leaf, rounds[-1]

    def _round(
        self, now: _State, prices: _Prices, pace: tuple[float, float], torn: Array
    ) -> tuple[float, _Prices, tuple[float, float]] | None:
        """Improve prices for a state, which loses what cannot be used; None where nothing of it is left.

        Returns the bound (not rounded down), the prices, and ``pace``; ``torn`` is updated
        (:func:`~milp_recourse.engine.forests.prices.improve`).
        """
        f, needed = self._under(prices.weights)
        merge = self.rank is not None
        if not shrink(f, self.cell_cost, now.alive, now.leaves, self.room, merge, True, *self.budget):
            return None
        price, shares = prices.price.copy(), prices.shares.copy()
        effort = SHARED if len(shares) or len(self.moved) else THOROUGH
        aim, weight = (AIM * self.target, 0.0) if self.only_maximum else (self.goal(FINE), WEIGHT)
        costs = self.cost, self.wide, shares, self.moved, self.limit
        own = self.room, prices.mu, prices.nu, needed, price
        bound, mu, nu, pace = improve(f, *costs, *own, aim, effort, pace, weight, torn)
        return float(bound), _Prices(price, float(mu), prices.weights, shares, float(nu)), pace

    def _followed(
        self, state: _State, now: _State, rounds: list[_Prices], closed: bool
    ) -> tuple[list[Step], Step | None]:
        """Take out of the state what tables of the last rounds' prices do, and list these tables as steps.

        ``now`` is what all rounds have left. One round's table is tried first, then those of two, four and so
        on, until they leave nearly as little, or close the state as the rounds did (``closed``). Returns the
        steps, and the leaf if a table closes the state.
        """
        counts = [1 << k for k in range(len(rounds).bit_length()) if 1 << k < len(rounds)] + [len(rounds)]
        plans = [(COARSE[0], 1)] * closed + [(COARSE[1], n) for n in counts] + [(FINE, len(rounds))] * closed
        enough = now.size() + ENOUGH * (state.size() - now.size())
        self._merge(state, begun := list[PriceTable | None]())
        for bits, count in plans:
            trial, used = state.copy(), begun.copy()
            for prices in rounds[-count:]:
                leaf = self._applied(trial, prices, bits, used, closed)
                if leaf is not None:
                    return self._steps(used), self._closing(leaf)
            if not closed and trial.size() <= enough:
                break
        state.alive[:], state.leaves[:] = trial.alive, trial.leaves
        return self._steps(used), None

    def _steps(self, used: list[PriceTable | None]) -> list[Step]:
        """The steps that apply tables in turn; None stands for a merging."""
        return [Step(MERGE) if one is None else Step(TAKE, table=self._listed(one)) for one in used]

    def _applied(
        self, state: _State, prices: _Prices, bits: int, used: list[PriceTable | None], closed: bool
    ) -> PriceTable | None:
        """Apply the table of some prices to the state as long as it takes out enough, and append it to
        ``used`` each time; returns the table if it closes the state."""
        table = None
        for _ in range(10 * REPEATS if closed else REPEATS):
            bound, slack = self._judged(state, prices, bits)
            table = table or self._rounded(prices, bits)
            if bound >= self.goal(bits):
                return table
            before = state.copy()
            self._take_out(state, bound, slack, bits)
            few = FEW * before.size() if used or self.steps else -1.0
            if before.size() - state.size() <= (0 if closed else few):
                state.alive, state.leaves = before.alive, before.leaves
                break
            used.append(table)
        return None

    def _merge(self, state: _State, used: list[PriceTable | None]) -> None:
        """Of cells from which the same leaves can be reached, keep the cheapest; ``used`` gets None if that
        takes out enough."""
        f, room = self.factors, self.room
        if self.rank is None:
            return
        if not shrink(f, self.cost, state.alive, state.leaves, room, False, False, *self.budget):
            return
        living = np.zeros_like(self.table.full)
        leaves = np.flatnonzero(state.leaves)
        np.bitwise_or.at(living, self.word_of[leaves], self.flag_of[leaves])
        used_words = np.flatnonzero(living)
        merged = []
        for a, b in pairwise(f.axis_from):
            cells = a + np.flatnonzero(state.alive[a:b])
            order = cells[np.argsort(self.rank[cells])]
            reached = self.masks[np.ix_(order, used_words)] & living[used_words]
            rows = np.ascontiguousarray(reached).view(f"V{reached.shape[1] * reached.itemsize}").ravel()
            kept = np.zeros(len(order), dtype=np.bool_)
            kept[np.unique(rows, return_index=True)[1]] = True
            merged += order[~kept].tolist()
        if len(merged) > MERGED * state.alive.sum():
            state.alive[merged] = False
            used.append(None)

    def _under(self, weights: Array) -> tuple[Factors, float]:
        """The factor graph under weights of the sums, and what the weighted sum must reach."""
        factors, goal = self.sums.under(weights)
        return factors, goal - 2.0**-50 * float(self.sums.reach @ weights)

    def _judged(self, state: _State, prices: _Prices, bits: int) -> tuple[float, float]:
        """The bound that prices, rounded to whole units, prove of a state, and by how much it was lowered for
        rounding.

        The bound is inf where the state is empty. Leaves that its cells do not lead to are taken out of it.
        """
        f, _ = self._under(prices.weights)
        if not shrink(f, self.cost, state.alive, state.leaves, self.room, False, False, *self.budget):
            return math.inf, 0.0
        return self._assessed(prices, bits)

    def _assessed(self, prices: _Prices, bits: int) -> tuple[float, float]:
        """The same for the cells and leaves that :attr:`room` lists."""
        (f, goal), unit, cost = self._under(prices.weights), self.unit(bits), self.cost
        if len(prices.shares):
            cost = cost + self._shares(prices)[self.of_cell] * self.wide
        nu = self._counted(prices, bits) * unit
        if nu:
            cost = cost + nu * self.moved
        if nu or len(prices.shares):
            cost = np.maximum(cost * (1.0 - 2.0**-48) - 2.0**-1000, 0.0)
        price = self._whole(prices, bits) * unit
        bound, slack = assess(f, cost, self.room, prices.mu, goal, price, self.x, self.energy, self.loss)
        return float(bound) - nu * self.limit * (1.0 + 2.0**-48), float(slack)

    def _take_out(self, state: _State, bound: float, slack: float, bits: int) -> None:
        """Take out of the state what the last assessment rules out."""
        goal = self.goal(bits)
        take_out(self.room, bound, slack, self.energy, self.loss, goal, state.alive, state.leaves)

    def _shares(self, prices: _Prices) -> Array:
        """Shares of the maximum that add up to at most 1 exactly."""
        shares: Array = prices.shares / (prices.shares.sum() * (1.0 + 2.0**-44))
        return shares

    def _calm_idle(self, price: Array) -> None:
        """Give all classes of each slot that is not listed the lowest of their prices. Such a slot tells no
        leaves apart, and the steps have left its prices as they were."""
        f, live = self.factors, self.room
        idle = np.ones(len(f.slot_axis), dtype=np.bool_)
        idle[live.slot[: live.slot_to[-1]]] = False
        chosen = idle[self.slot_of] & live.kept
        lowest = np.full(len(idle), np.inf)
        np.minimum.at(lowest, self.slot_of[chosen], price[chosen])
        price[chosen] = lowest[self.slot_of[chosen]]

    def _nothing(self) -> PriceTable:
        """A table without prices, which closes an empty state."""
        return PriceTable(self.unit(FINE), 0.0, None, self.sums.even, np.empty(0))

    def _plainly(self, state: _State) -> Step | None:
        """A leaf without prices, if nothing is left, if least costs alone reach the target, or if not even
        the trees' largest values are accepted; else None."""
        f, _ = self._under(self.sums.even)
        nothing = self._closing(self._nothing())
        alive, leaves = state.alive.copy(), state.leaves.copy()
        if not shrink(f, self.cost, alive, leaves, self.room, False, False, *self.budget):
            return nothing
        paid, most = (np.where(state.alive, of, np.inf) for of in (self.cost, self.wide))
        least, wide = (np.minimum.reduceat(of, f.axis_from[:-1]) for of in (paid, most))
        if self.most is not None and np.count_nonzero(least + wide) > self.most:
            table = self._nothing()
            return self._closing(replace(table, nu=math.ceil(2.0 * self.target / table.unit)))
        if (least.sum() + wide.max()) * (1 - 2.0**-44) >= self.goal(FINE) and not self.only_maximum:
            shares = np.eye(len(wide))[int(wide.argmax())] if self.shared else np.empty(0)
            return self._closing(replace(self._nothing(), shares=shares))
        best = self.sums.values[self.room.leaf[self.room.leaf_to[:-1]]]
        return None if self.table.forest.total(best[None])[0] > self.above else nothing

    def _rounded(self, prices: _Prices, bits: int) -> PriceTable:
        """The table of some prices, in whole units."""
        unit = self.unit(bits)
        price = np.where(self.room.kept, self._whole(prices, bits), -1).astype(np.int64)
        scale = (1.0 + 2.0**-30) / (CLEAR * AIM) if self.only_maximum else 1.0
        shares = self._shares(prices) if len(prices.shares) else prices.shares
        nu = self._counted(prices, bits)
        return PriceTable(unit * scale, prices.mu * scale, price, prices.weights, shares, nu)

    def _counted(self, prices: _Prices, bits: int) -> int:
        """What a counted action costs more, as it is written, and judged: in whole units."""
        return round(min(prices.nu / self.unit(bits), LARGEST))

    def _whole(self, prices: _Prices, bits: int) -> Array:
        """Prices as they are written, and judged: in whole units, 0 for classes without living cells.

        In every slot the lowest price becomes 0: adding a number to all prices of a slot changes no bound.
        """
        price, kept = np.round(prices.price / self.unit(bits)), self.room.kept
        lowest = np.full(len(self.factors.slot_axis), np.inf)
        np.minimum.at(lowest, self.slot_of[kept], price[kept])
        return np.minimum(np.where(kept, price - lowest[self.slot_of], 0.0), LARGEST)

    def _closing(self, table: PriceTable) -> Step:
        """The leaf that a table closes."""
        return Step(PRICES, table=self._listed(table))

    def _listed(self, table: PriceTable) -> int:
        """The number of a table; a new one unless it is listed, or has no prices and equals one."""
        key: int | tuple[float, ...] = id(table)
        if table.price is None:
            key = (table.unit, table.mu, table.nu, *table.weights, *table.shares)
        if key not in self.numbers:
            self.numbers[key] = len(self.tables)
            self.tables.append(table)
        return self.numbers[key]
