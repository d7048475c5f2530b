"""A tree over signs of ReLUs and intervals of levers, bound by semidefinite relaxations, beside a search that
takes long.

A relaxation takes as long as tens of the search's nodes, and proves far more of a wide one.
"""

from __future__ import annotations

import heapq
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.networks import search
from milp_recourse.engine.networks.numerics import BELOW, COARSE
from milp_recourse.engine.networks.problem_arrays import alone
from milp_recourse.engine.networks.propose import Run
from milp_recourse.engine.networks.semidefinite import Multipliers, Relaxation

Array = NDArray[np.float64]
Box = NDArray[np.void]

SHARE, BEHIND, MOST = 0.5, 0.5, 16.0
"""How many nodes of the search's the tree's are to take the time of, as a share of those; the last where the
search's own bound is below a part of what the tree has proven, the second."""

WORTH = 24
"""How many nodes of the search take the time of one relaxation."""

AWAY, MOST_AWAY, LAST = 1.0, 3.0, 2.0
"""A split promises what its unit loses, times (1 + how far its argument is from 0, at most so far) to this
power, since one of its sides closes soon then; and times this in the last layer."""

FLAT = 0.1
"""Levers are split where all units together lose less than this share of what the bound is above what is
needed."""

TRIED, MOST_TRIED = 50, 2**40
"""Nodes that a search from a node examines before levers are split, and where nothing is left to split; then
four times as many each time, up to the second: it may end with what the exact judgement refuses."""


class Node(NamedTuple):
    """An open node: what is known of its units and levers (:class:`~.semidefinite.Relaxation`), multipliers
    to begin with, what each split promises, whether a lever is to be split and where the relaxation is
    largest, and how many nodes the last search from it has examined."""

    known: Array
    box: Box
    given: Multipliers | None
    promise: Array
    flat: bool
    point: Array
    tried: int


class SignTree:
    """A tree beside a search, of a problem that :func:`~.semidefinite.covers`.

    Attributes
    ----------
    low
        The bound that is proven.
    open
        The open nodes: bound, number and node.
    """

    def __init__(self, state: Run) -> None:
        p, known = state.problem, np.zeros((3, *state.problem.biases.shape))
        known[0], known[1] = -math.inf, math.inf
        self.state, self.low, self.given, self.number = state, 0.0, 0, 0
        self.open: list[tuple[float, int, Node]] = []
        self._root = Node(known, p.box[0], None, np.zeros_like(known[0]), False, np.zeros(len(p.lever)), 0)

    def go_on(self) -> None:
        """Examine the share of nodes that is theirs, less what they have had."""
        state = self.state
        behind = state.proven < BEHIND * self.low
        least = int((MOST if behind else SHARE) * int(state.tree.now.examined))
        while self.given < least and self.low < state.target and not state.clock.over:
            if self.number == 0:
                self._examine(self._root, 0.0)
            else:
                bound, _, node = heapq.heappop(self.open)
                self._split(node, bound)
            self.low = max(self.low, min(self.open[0][0] if self.open else math.inf, state.target))

    def _open(self, bound: float, node: Node) -> None:
        self.number += 1
        heapq.heappush(self.open, (bound, self.number, node))

    def _split(self, node: Node, bound: float) -> None:
        """Examine a node's children, or search on from it where there is nothing to split."""
        i, cut, above = self._lever(node)
        k, j = np.unravel_index(int(np.argmax(node.promise)), node.promise.shape)
        if node.flat and i >= 0 and node.tried > 0:
            for end, value in (("hi", cut), ("lo", above)):
                box = node.box.copy()
                box[end][i] = value
                self._examine(node._replace(box=box, tried=0), bound)
        elif node.flat or not node.promise[k, j] > 0.0:
            self._search(node, bound)
        else:
            for side in (1, 2):
                known = node.known.copy()
                known[side - 1, k, j], known[2, k, j] = 0.0, side
                self._examine(node._replace(known=known), bound)

    @np.errstate(invalid="ignore")  # nothing is left of a lever that is not acted on
    def _lever(self, node: Node) -> tuple[int, float, float]:
        """Which lever to split, and the steps next to where the relaxation is largest; -1 for none."""
        grid, shift, square = (self.state.problem.lever[name] for name in ("grid", "shift", "square"))
        low, high = node.box["lo"], node.box["hi"]
        x, stepped = np.clip(node.point, low, high), grid > 0.0
        cut = np.floor((x - shift) / np.where(stepped, grid, 1.0)) * grid + shift
        off = np.minimum(x - cut, cut + grid - x)
        off[~stepped | ~(off > COARSE * grid) | (cut < low) | (cut + grid > high)] = 0.0
        i = int(np.argmax(off * np.sqrt(square)))
        return (i if off[i] > 0.0 else -1), float(cut[i]), float(cut[i] + grid[i])

    def _examine(self, node: Node, bound: float) -> None:
        """Close a node, or open it with what is found."""
        state, p = self.state, self.state.problem._replace(box=node.box[None])
        budget, need = state.target, float(p.need_low)
        self.number, self.given = self.number + 1, self.given + WORTH
        with search.SPARE.lent(p) as (work, _):
            least = search.bound_box(alone(p), work, node.known, budget, 1)
            if least == math.inf:
                return
            known = np.stack([work.unit.low, work.unit.high, node.known[2]])
            box, room = work.box.copy(), float(work.now.room)
        bound = max(bound, float(least))
        relaxation, late = Relaxation(p, box, known, budget, room), lambda: state.clock.over
        found = relaxation.guess(need, node.given, late)
        if node.given and (found is None or (found.bound >= need and found.centred is None)):
            found = relaxation.guess(need, late=late)
        node = node._replace(known=known, box=box, promise=np.zeros_like(node.promise), flat=False)
        if found is not None:
            top, rate = relaxation.proven(found.best)
            if top < need:
                return
            if rate > 0.0:
                bound = max(bound, (budget - (top - need) / rate * (1.0 + COARSE)) * BELOW)
            promise = found.lost * (1.0 + np.minimum(found.away, MOST_AWAY)) ** AWAY
            promise[-1] *= LAST
            flat = bool(found.lost.sum() < FLAT * (top - need))
            node = node._replace(given=found.centred, promise=promise, flat=flat, point=found.point)
        self._open(bound, node)

    def _search(self, node: Node, bound: float) -> None:
        """Close a node by a search from it, or open it again."""
        state, cost = self.state, float(self.state.work.now.best_cost)
        count = min(max(TRIED, 4 * node.tried), MOST_TRIED)
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
        if proven < state.target:
            self._open(max(bound, proven), node._replace(tried=count))
        now.close()
