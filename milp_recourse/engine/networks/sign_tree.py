"""A tree over signs of ReLUs and intervals of levers, bound by semidefinite relaxations, beside a search that
takes long.

A relaxation takes as long as hundreds of the search's nodes, and proves far more of a wide one. Most units
have one sign within the budget, which lines do not see and a relaxation of the other side does.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.blas_threads import ONE_BLAS_THREAD
from milp_recourse.engine.networks import search
from milp_recourse.engine.networks.moments import Solution
from milp_recourse.engine.networks.numerics import BELOW, COARSE
from milp_recourse.engine.networks.problem_arrays import alone
from milp_recourse.engine.networks.propose import BEHIND, Run
from milp_recourse.engine.networks.semidefinite import NONE, Relaxation, Seen, around
from milp_recourse.problem.result import gap_tolerance

Array = NDArray[np.float64]
Box = NDArray[np.void]

SHARE, MOST = 0.5, 16.0
"""The tree gets the time of so many nodes for each node of the search (:meth:`~.propose.Run.due`)."""

WORTH, EACH = 50.0, 2e-4
"""How many nodes of the search take the time of one relaxation: the first, and the second times the square of
its variables and products."""

PART, EARLY, LEAST = 0.25, 0.1, 1e-3
"""Where what is proven once the root is relaxed is below :data:`~.propose.BEHIND` times the budget, the tree
is first closed within so much of it, the first, unless that budget is below a share of the target, the last;
and the root is not relaxed on where its bound is below so much, the second."""

DECIDED, CLOSES = 0.2, 1.0
"""When a relaxation is accurate enough (:meth:`~.semidefinite.Relaxation.guess`): for a node's bound, and to
see whether a side closes."""

ROUNDS, GAIN, PLAIN = 10, 0.9, 2
"""A node is relaxed again, with more products and signs, while the bound is above what is needed by at most
such a share of what it was, at most so often. Where no sign is known, so many first rounds add products
alone."""

LIKELY, PATIENCE = 0.7, 6
"""Of units whose argument is so many standard deviations from 0, the other side is tried; until so many in a
row stay open, counted apart for the last layer."""

WITHOUT = 0.03
"""A tree begins without trying other sides. After this share of about the time that trying those of the root
takes, it begins anew with them: then fewer nodes have fewer units."""

AWAY, MOST_AWAY, LAST = 1.0, 3.0, 2.0
"""A split promises what its unit loses, times (1 + how far its argument is from 0, at most so far) to this
power, since one of its sides closes soon then; and times this in the last layer."""

FLAT = 0.1
"""Levers are split where all units together lose less than this share of what the bound is above what is
needed, if costs are squares alone: of others, relaxations leave out a part."""

SEARCHED, FALLS, MOST_FIRST = 1.0, 0.7, 5000
"""With other sides tried, a node is searched from before it is split if its relaxation's bound is above
what is needed by less than such a share, the second, of what it was where such a search failed on the way to
it. The search gets so many times what its relaxations took, the first, and examines at most so many nodes,
the last."""

FEW, TRIED, MOST_TRIED = 24, 50, 2**40
"""The same before a lever, or a node with at most so many open units, is split. A search examines at least so
many nodes; where nothing is left to split, four times as many each time, up to the last: it may end with what
the exact judgement refuses."""


class Node(NamedTuple):
    """An open node.

    Attributes
    ----------
    known, box
        What is known of its units and levers (:class:`~.semidefinite.Relaxation`).
    seen, found
        Whether it has been relaxed, and what the last relaxation has found that found something: its own, or
        that of a node which it is a part of; None without one.
    excess
        How far that relaxation's bound of the logit is above what is needed.
    tried
        How many nodes the last search from it was allowed; 0 without one.
    given
        What its relaxations took, in nodes of the search.
    failed
        The excess where a search last failed, here or on the way to it; inf without one.
    """

    known: Array
    box: Box
    seen: bool = False
    found: Seen | None = None
    excess: float = math.inf
    tried: int = 0
    given: float = 0.0
    failed: float = math.inf


class SignTree:
    """A tree beside a search, of a problem that :func:`~.semidefinite.covers`.

    Attributes
    ----------
    low
        The bound that is proven; others may raise it.
    part
        What the tree is closed within, if that is less than the target.
    open
        The open nodes: bound, number and node.
    """

    def __init__(self, state: Run) -> None:
        known = np.zeros((3, *state.problem.biases.shape))
        known[0], known[1] = -math.inf, math.inf
        self.state, self.low, self.given, self.number = state, 0.0, 0.0, 0
        self.one_takes, self.part, self.root = 0.0, math.inf, Node(known, state.problem.box[0])
        self.need = float(state.problem.need_low)
        self.open: list[tuple[float, int, Node]]
        self._begin(fixes=False)
        self.squares = not state.problem.lever["linear"].any()
        self._work = self._go_on()

    def go_on(self) -> None:
        """Examine nodes until the tree has had its share of time."""
        state, least = self.state, self.state.due(self.low, SHARE, MOST)
        with ONE_BLAS_THREAD:
            while self.given < least and self.low < state.target and not state.clock.over:
                bound = next(self._work)
                self.low = max(self.low, min(bound, self.open[0][0] if self.open else math.inf, self.budget))

    @property
    def budget(self) -> float:
        """What nodes are closed within."""
        return min(self.part, self.state.target)

    def _behind(self, bound: float) -> bool:
        """Whether a root with this bound is left for one within a smaller part."""
        budget = self.budget
        return budget > LEAST * self.state.target and max(bound, self.low) / BEHIND < BELOW * budget

    def _go_on(self) -> Iterator[float]:
        """Close the tree within the budget; where the root proves little, within a part, then larger ones.
        Yields as :meth:`_within`."""
        while True:
            yield from self._within()
            yield math.inf  # what is proven of this part is known before the next one
            self.part = max(self.low / BEHIND, PART * self.budget)
            self._begin(fixes=False)

    def _begin(self, fixes: bool) -> None:
        """Begin at the root, trying other sides or not."""
        self.open, self.fixes, self.pause = [], fixes, math.inf
        self._open(self.low, self.root)

    def _within(self) -> Iterator[float]:
        """Examine or split the nodes one by one, until all are closed, or others have proven the part, or the
        root's bound is behind; yields the bound of the one at hand, after each relaxation, and inf where all
        are open again or closed."""
        while self.open and self.low < self.budget:
            if not self.fixes and self.given > self.pause:
                self._begin(fixes=True)
            bound, _, node = heapq.heappop(self.open)
            if node.seen:
                self._split(node, bound)
                yield math.inf
                continue
            first = node is self.root
            node, bound = yield from self._examined(node, bound)
            if bound < math.inf:
                self._open(bound, node)
            if first and self._behind(bound):
                return
            if first and node.found is not None and not self.fixes:
                likely = int((np.abs(node.found.away) > LIKELY).sum())
                self.pause = WITHOUT * self.one_takes * likely

    def _open(self, bound: float, node: Node) -> None:
        self.number += 1
        heapq.heappush(self.open, (bound, self.number, node))

    def _split(self, node: Node, bound: float) -> None:
        """Open a node's children, or search on from it where there is nothing to split."""
        found, child = node.found, node._replace(seen=False, tried=0, given=0.0)
        if found is None:
            self._search(node, bound)
            return
        is_open = (node.known[0] < 0.0) & (node.known[1] > 0.0) & (found.lost > 0.0)
        lost = np.where(is_open, found.lost, 0.0)
        flat = lost.sum() < (FLAT * node.excess if self.squares else 0.0)
        i, cut, above = self._lever(node, found.point) if flat else (-1, 0.0, 0.0)
        searches = flat or is_open.sum() <= FEW or (self.fixes and node.excess < FALLS * node.failed)
        if (searches and node.tried == 0) or not (i >= 0 or is_open.any()):
            self._search(node, bound)
        elif i >= 0:
            for end, value in (("hi", cut), ("lo", above)):
                box = node.box.copy()
                box[end][i] = value
                self._open(bound, child._replace(box=box))
        else:
            promise = lost * (1.0 + np.minimum(np.abs(found.away), MOST_AWAY)) ** AWAY
            promise[-1] *= LAST
            k, j = divmod(int(np.argmax(promise)), promise.shape[1])
            for side in (1, 2):
                self._open(bound, child._replace(known=_with(node.known, k, j, side)))

    @np.errstate(invalid="ignore")  # the same as around's
    def _lever(self, node: Node, point: Array) -> tuple[int, float, float]:
        """Which lever to split, and the steps next to where the relaxation is largest; -1 for none."""
        grid, square = self.state.problem.lever["grid"], self.state.problem.lever["square"]
        x = np.clip(point, node.box["lo"], node.box["hi"])
        cut, between = around(self.state.problem, node.box, point)
        off = np.minimum(x - cut, cut + grid - x)
        off[~between | ~(off > COARSE * grid)] = 0.0
        i = int(np.argmax(off * np.sqrt(square)))
        return (i if off[i] > 0.0 else -1), float(cut[i]), float(cut[i] + grid[i])

    def _examined(self, node: Node, bound: float) -> Generator[float, None, tuple[Node, float]]:
        """A node and its bound with what relaxations find; inf if it is closed."""
        began, swept = self.given, not self.fixes
        plain = PLAIN if not (node.known[2] > 0.0).any() else 0
        for turn in range(ROUNDS):
            before, last = node.found, node.excess if node.seen else math.inf
            node, bound = self._bound(node, bound)
            yield bound
            # one that finds nothing leaves what the node had
            if bound == math.inf or node.found is None or node.found is before:
                break
            if turn == plain and bound < EARLY * self.budget and self._behind(bound):
                break
            stalls = node.excess > GAIN * last
            if stalls and swept:
                break
            if self.fixes and (stalls or turn >= plain):
                swept, known = True, (yield from self._fixed(node, node.found, bound))
                node = node._replace(known=known)
        return node._replace(given=self.given - began), bound

    def _bound(self, node: Node, bound: float) -> tuple[Node, float]:
        """A node with what one relaxation finds, and its bound; inf if it is closed."""
        made = self._relaxation(node)
        if made is None:
            return node, math.inf
        relaxation, node, least = made
        takes = _takes(relaxation)
        self.one_takes = self.one_takes or takes
        for before in (node.found, None) if node.found else (None,):
            self.given += takes
            found, top, rate = self._guess(relaxation, DECIDED, before)
            if top < math.inf:
                break
        if top < self.need:
            return node, math.inf
        bound, budget = max(bound, least), self.budget
        if found is None or top == math.inf:
            return node._replace(seen=True), bound
        if rate > 0.0:
            bound = max(bound, (budget - (top - self.need) / rate * (1.0 + COARSE)) * BELOW)
        return node._replace(seen=True, found=relaxation.seen(found), excess=top - self.need), bound

    def _fixed(self, node: Node, found: Seen, bound: float) -> Generator[float, None, Array]:
        """What is known of a node, with the signs of units whose other side closes: as many sides at once as
        there are threads."""
        away, known, failed = found.away, node.known, [0, 0]
        last = (np.arange(len(away)) == len(away) - 1).astype(np.int64)
        order = np.lexsort((-np.abs(away).ravel(), np.repeat(last, away.shape[1])))
        units = (divmod(at, away.shape[1]) for at in order.tolist() if abs(away.flat[at]) > LIKELY)
        others = [(k, j, 1 if away[k, j] < 0.0 else 2) for k, j in units]
        tried, count = (one for one in others if failed[last[one[0]]] < PATIENCE), self.state.threads
        while some := list(islice(tried, count)):
            sides = [node._replace(known=_with(known, *one)) for one in some]
            with ThreadPoolExecutor(count) as threads:
                tops = list((threads.map if count > 1 else map)(self._top, sides, repeat(found)))
            for (k, j, side), (top, takes) in zip(some, tops, strict=True):
                self.given += takes
                failed[last[k]] = 0 if top < self.need else failed[last[k]] + 1
                known = _with(known, k, j, 3 - side) if top < self.need else known
            yield bound
        return known

    def _top(self, node: Node, before: Seen) -> tuple[float, float]:
        """The bound of the logit in a node, to see whether that closes, and what the relaxation took."""
        made = self._relaxation(node)
        return (self._guess(made[0], CLOSES, before)[1], _takes(made[0])) if made else (-math.inf, 0.0)

    def _relaxation(self, node: Node) -> tuple[Relaxation, Node, float] | None:
        """A node's relaxation, the node with what lines say of units and levers, and its bound by lines; None
        if these close it."""
        p = self.state.problem._replace(box=node.box[None])
        with search.SPARE.lent(p) as (work, _):
            least = float(search.bound_box(alone(p), work, node.known, self.budget, 1))
            if least == math.inf:
                return None
            known = np.stack([work.unit.low, work.unit.high, node.known[2]])
            node, room = node._replace(known=known, box=work.box.copy()), float(work.now.room)
        pairs, point = (NONE, None) if node.found is None else (node.found.pairs, node.found.point)
        return Relaxation(p, node.box, known, self.budget, room, pairs, point), node, least

    def _guess(
        self, relaxation: Relaxation, decided: float, before: Seen | None
    ) -> tuple[Solution | None, float, float]:
        """What the method finds, the bound of the logit that this proves, and the budget's multiplier."""
        found = relaxation.guess(self.need, decided, before and before.earlier, lambda: self.state.clock.over)
        top, rate = relaxation.proven(found.multipliers) if found else (math.inf, 0.0)
        return found, top, rate

    def _search(self, node: Node, bound: float) -> None:
        """Close a node by a search from it, or open it again."""
        state, cost = self.state, float(self.state.work.now.best_cost)
        if self.part < state.target:  # a search's target is below the cost that it begins with
            gap = gap_tolerance(self.part, float(state.work.now.allowance))
            cost = min(cost, self.part + max(0.0, gap))
        first = min(max(TRIED, SEARCHED * node.given), MOST_FIRST)
        count = int(min(max(first, 4 * node.tried), MOST_TRIED))
        now = state.another(cost, state.problem._replace(box=node.box[None]))
        why = now.examine(0)
        slot = now.tree.heap[0]
        now.tree.low[slot], now.tree.high[slot], now.tree.split[slot] = node.known
        while why != search.DONE and int(now.tree.now.examined) < count and not state.clock.over:
            why = now.examine(count - int(now.tree.now.examined))
            now.confirm()
            if now.react(why) is not None:
                break
        self.given += max(int(now.tree.now.examined), 1)
        state.learn(now, cost)
        # what it closed, it closed against the cost of its own best action, which need not pass
        proven = min(now.proven, now.target)
        if proven < self.budget:
            self._open(max(bound, proven), node._replace(tried=count, failed=node.excess))
        now.close()


def _takes(relaxation: Relaxation) -> float:
    """How many nodes of the search take the time of a relaxation, about."""
    return WORTH + EACH * (len(relaxation.reach) + len(relaxation.left)) ** 2


def _with(known: Array, layer: int, unit: int, side: int) -> Array:
    """What is known of units, with one's sign (1: not negative, 2: not positive)."""
    known = known.copy()
    known[side - 1, layer, unit], known[2, layer, unit] = 0.0, side
    return known
