"""Branch and bound over cells where actions have effects on other features, piece by piece.

A node is a box of actions and a box of cells of what they move. Cells follow from the actions' intervals, and
the actions' intervals from the cells and the rows, to and fro; intervals are rounded outward. A node is
closed when it is empty, when its largest score is not accepted, or when no action in it costs less than the
best one in hand, whether or not the trees accept it. The compiled engine says what actions cost at least,
given rows, cells, plausibility and the signs of structural ReLUs (:mod:`milp_recourse.engine.box_bounds`);
where trees have nothing left to say, its relaxed optimum is the cheapest action.

References
----------
Messine (2004), https://doi.org/10.1051/ro:2004026 (affine constraints propagated to and fro)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.box_bounds import EngineBox
from milp_recourse.engine.forests.axes import rounded_down
from milp_recourse.engine.forests.causal_pieces import Forms, Piece, pieces_of
from milp_recourse.engine.forests.cell_problem import with_domains
from milp_recourse.engine.forests.piece_cells import PieceCells
from milp_recourse.engine.forests.table import Masks, best_cuts
from milp_recourse.judge.best_first import BestFirst, Queue
from milp_recourse.judge.conclude import Proposal
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import GRACE, LATE, NEVER, Clock, OutOfTime
from milp_recourse.program import lower

Array = NDArray[np.float64]
Cells = NDArray[np.int64]

BATCH = 64
"""Nodes that are examined together."""

ROUNDS = 3
"""Passes of propagation per node."""

SMALLEST = 1e-13
"""Intervals of actions that are relatively shorter than this are not cut any more."""

INSIDE = 1e-12
"""Relative distance that points keep from the ends of their box, and how far outside the ball they may seem
to be and still be judged."""

SAMPLES = 500
"""Actions that are tried before any box is cut, and as many between these and the factual."""


class Costs:
    """The cost of acting on all of a piece's features.

    Attributes
    ----------
    levers
        What each one's values cost.
    factual
        Their values before the action.
    """

    def __init__(self, instance: Instance, piece: Piece) -> None:
        self.levers = [instance.lever_costs[name] for name in piece.names]
        self.factual = np.array([cost.factual for cost in self.levers])

    def least(self, low: Array, high: Array) -> Array:
        """The least cost in boxes (B, d), rounded down."""
        total, widest = np.zeros(len(low)), np.zeros(len(low))
        near = np.minimum(np.maximum(self.factual, low), high)
        for i, cost in enumerate(self.levers):
            added, entries = cost.evaluate(near[:, i])
            total, widest = total + added, np.maximum(widest, entries)
        return rounded_down(total + widest, len(self.levers))


class CausalSearch(BestFirst["_PieceSearch"]):
    """One applicant's search over all pieces, one after the other, the one of the least bound first.

    Parameters
    ----------
    instance
        Its classifier is a :class:`TreeEnsemble`; see
        :func:`~milp_recourse.engine.forests.causal_pieces.why_not_pieces`.
    """

    def __init__(self, instance: Instance, clock: Clock = NEVER) -> None:
        super().__init__(instance, clock)
        self.instance, self.engines = instance, Engines(instance)
        self.message = "a box became too small to cut"

    def run(self) -> Proposal:
        """Search to the end, or until time is over."""
        pieces, listing = list[_PieceSearch](), self.clock.at_least(0.5 * GRACE)
        grace = self.clock.later(0.5 * GRACE)
        try:
            for one in pieces_of(self.instance, listing):
                pieces.append(_PieceSearch(self, one))
        except OutOfTime:
            for piece in pieces[:1]:  # that of the most levers: an action, however little time is left
                piece.look()
                while piece.count and self.best.action is None and not grace.over:
                    piece.step()
            self.stop(LATE)
            return self.outcome()
        for piece in sorted(pieces, key=lambda one: one.least):
            if self.best.action is None and not grace.over:
                piece.look()
            self.push(piece.least, piece)
        while taken := self.next():
            [(_, piece)] = taken
            piece.step()
            self.push(piece.least, piece, soon=piece.least < self.target)
        self.close()  # what boxes were closed against
        return self.outcome()


class Engines:
    """The compiled engine's arrays by what is acted on, with domains in place of trees."""

    def __init__(self, instance: Instance) -> None:
        self.instance = with_domains(instance)
        self.program = lower(self.instance)
        self.known: dict[tuple[str, ...], EngineBox | None] = {}

    def of(self, names: tuple[str, ...]) -> EngineBox | None:
        """Where exactly these features are acted on; None if the engine has no arrays."""
        if names not in self.known:
            self.known[names] = EngineBox.of(self.instance, self.program.fix(frozenset(names)))
        return self.known[names]


@dataclass(frozen=True)
class _Boxes:
    """Nodes: boxes of actions (B, d) and of cells (B, columns), their masks and bounds."""

    low: Array
    high: Array
    first: Cells
    last: Cells
    masks: Masks
    bound: Array
    """Largest score, (B,)."""
    least: Array
    """Lower bound of the cost, (B,)."""

    def at(self, index: NDArray[np.int64] | NDArray[np.bool_]) -> _Boxes:
        return _Boxes(*(getattr(self, name)[index] for name in self.__dataclass_fields__))

    @staticmethod
    def joined(parts: Sequence[_Boxes]) -> _Boxes:
        names = _Boxes.__dataclass_fields__
        return _Boxes(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


class _PieceSearch(PieceCells, Queue[_Boxes]):
    """The boxes of one piece."""

    def __init__(self, search: CausalSearch, piece: Piece) -> None:
        Queue.__init__(self, newest=True)
        PieceCells.__init__(self, search.instance, piece, search.clock.later(GRACE))
        self.search, self.costs = search, Costs(search.instance, piece)
        self.engine = search.engines.of(piece.names)
        low, high, (first, last) = piece.low[None].copy(), piece.high[None].copy(), self.every_cell()
        every = self.table.full[None]
        self.root = self.queue(_Boxes(low, high, first, last, every, np.full(1, math.inf), np.zeros(1)))

    def look(self) -> None:
        """Try random actions, and points between each of them and the cheapest point of the root box."""
        if not len(self.root.least):
            return
        root, rng = self.root, np.random.default_rng(0)
        start = np.clip(self.costs.factual, root.low, root.high)
        far = root.low + rng.random((SAMPLES, start.shape[1])) * (root.high - root.low)
        points = np.concatenate([far, start + rng.random((SAMPLES, 1)) * (far - start)])
        self.try_points(root.at(np.zeros(len(points), dtype=np.int64)), points)

    def step(self) -> None:
        """Take the nodes of least bounds, try points of them, raise their bounds by duality, split those that
        stay open."""
        nodes = _Boxes.joined([boxes for _, boxes in self.pop(self.search.best.target, BATCH)])
        self.search.nodes += len(nodes.least)
        points = np.clip(self.costs.factual, nodes.low, nodes.high)
        done = self.try_points(nodes, points)
        done |= self.try_points(nodes, np.clip(self.costs.factual, *_inner(nodes.low, nodes.high)))
        open_ = np.flatnonzero(~done & (nodes.least < self.search.best.target))
        if self.engine is not None and len(open_):
            decided = self.decided(nodes.masks, nodes.first, nodes.last)
            for k in open_.tolist():
                found = self.cheapest(nodes, k, bool(decided[k]))
                done[k], points[k] = found is None, points[k] if found is None else found
            left = open_[~done[open_]]
            done[left] |= self.try_points(nodes.at(left), points[left])
        kept = np.flatnonzero(~done & (nodes.least < self.search.best.target))
        if len(kept):
            self.split(nodes.at(kept))

    def cheapest(self, nodes: _Boxes, k: int, decided: bool) -> Array | None:
        """Shrink node k and raise its bound to what the engine proves; the relaxed optimum, None if nothing
        in the node costs less than the target.

        Where trees are ``decided``, the optimum of a slightly smaller node: it lies at the ends of cells,
        and rounding could move it into the next ones.
        """
        assert self.engine is not None
        low, high, target = nodes.low[k], nodes.high[k], self.search.best.target
        ends = np.stack(self.ends(nodes.first[k : k + 1], nodes.last[k : k + 1]))[:, 0]
        found = self.engine.bound(low, high, target, (), self.domains(*ends), self.piece.signs)
        if found is None:
            return None
        nodes.low[k], nodes.high[k] = low, high = np.maximum(low, found.low), np.minimum(high, found.high)
        nodes.least[k] = max(nodes.least[k], found.least)
        if (low > high).any():
            return None
        if decided:
            domains, box = self.domains(*_inner(*ends)), _inner(low, high)
            found = self.engine.bound(*box, target, (), domains, self.piece.signs) or found
        return found.point

    def try_points(self, nodes: _Boxes, points: Array) -> NDArray[np.bool_]:
        """Judge points that look feasible and cheaper than the best; returns which nodes are closed because
        their point attains their bound."""
        piece, best = self.piece, self.search.best
        points = np.where(piece.integral, np.round(points), points)
        costs = self.costs.least(points, points)
        values = points @ self.columns.matrix.T + self.columns.constant
        cells = self.cells(values, values)[0]
        scores = self.table.bound(self.table.met(cells, cells))
        good = (scores > self.threshold) & (costs < best.cost)
        if len(piece.rows.constant):
            rows = points @ piece.rows.matrix.T + piece.rows.constant
            good &= ((rows >= piece.row_low) & (rows <= piece.row_high)).all(axis=1)
        if piece.weights is not None:
            good &= self.excess(points) <= INSIDE
        done = np.zeros(len(points), dtype=bool)
        for k in np.flatnonzero(good)[np.argsort(costs[good], kind="stable")]:
            action = dict(zip(piece.names, points[k].tolist(), strict=True))
            if costs[k] < best.cost and self.search.offer(action).feasible:
                done[k] = nodes.least[k] >= best.target
        return done

    def excess(self, points: Array) -> Array:
        """Left side of the ball at points, (B,)."""
        piece = self.piece
        assert piece.weights is not None
        r = points @ piece.residuals.matrix.T + piece.residuals.constant
        linear = (points @ piece.linear.matrix.T + piece.linear.constant)[:, 0]
        return np.asarray(r**2 @ piece.weights + linear)

    # -- propagation ---------------------------------------------------------------------

    def queue(self, nodes: _Boxes) -> _Boxes:
        """Shrink boxes, close what can be closed, and queue the rest, which is returned."""
        for _ in range(ROUNDS):
            nodes = self.shrink(nodes)
            empty = (nodes.low > nodes.high).any(axis=1) | (nodes.first > nodes.last).any(axis=1)
            nodes = nodes.at(np.flatnonzero(~empty))
        if not len(nodes.least):
            return nodes
        masks = nodes.masks & self.table.met(nodes.first, nodes.last)
        bound = self.table.bound(masks)
        costs = self.costs.least(nodes.low, nodes.high)
        nodes = replace(nodes, masks=masks, bound=bound, least=np.maximum(nodes.least, costs))
        nodes = nodes.at((bound > self.threshold) & (nodes.least < self.search.best.target))
        for k in range(len(nodes.least)):
            self.push(float(nodes.least[k]), nodes.at(np.array([k])))
        return nodes

    def shrink(self, nodes: _Boxes) -> _Boxes:
        """One pass: cells from actions, actions from cells and rows."""
        piece = self.piece
        low, high, first, last = nodes.low, nodes.high, nodes.first, nodes.last
        if piece.columns:
            reached = self.cells(*self.columns.range(low, high))
            first, last = np.maximum(first, reached[0]), np.minimum(last, reached[1])
            low, high = self.pull(self.columns, low, high, *self.ends(first, last))
        if len(piece.rows.constant):
            low, high = self.pull(piece.rows, low, high, *np.broadcast_arrays(piece.row_low, piece.row_high))
        whole = piece.integral
        low = np.where(whole, np.ceil(low - 1e-9), low)
        high = np.where(whole, np.floor(high + 1e-9), high)
        return replace(nodes, low=low, high=high, first=first, last=last)

    def pull(self, forms: Forms, low: Array, high: Array, least: Array, most: Array) -> tuple[Array, Array]:
        """Shrink boxes to where least <= form <= most can hold, rounded outward."""
        slack = forms.slack(low, high)
        for k in range(len(forms.constant)):
            row = forms.matrix[k]
            used = np.flatnonzero(row)
            if not len(used):
                continue
            floor = least[..., k] - forms.constant[k] - 2 * slack[:, k]
            top = most[..., k] - forms.constant[k] + 2 * slack[:, k]
            small = np.where(row > 0, row * low, row * high)
            large = np.where(row > 0, row * high, row * low)
            for j in used:
                others = [i for i in used if i != j]
                up = (top - small[:, others].sum(axis=1)) / row[j]
                down = (floor - large[:, others].sum(axis=1)) / row[j]
                if row[j] < 0:
                    up, down = down, up
                if not forms.exact[k]:
                    up, down = up + 4 * 2.0**-52 * np.abs(up), down - 4 * 2.0**-52 * np.abs(down)
                high[:, j] = np.minimum(high[:, j], np.where(np.isnan(up), np.inf, up))
                low[:, j] = np.maximum(low[:, j], np.where(np.isnan(down), -np.inf, down))
        return low, high

    # -- splitting -----------------------------------------------------------------------

    def split(self, nodes: _Boxes) -> None:
        """Queue the halves of nodes: of boxes of cells while trees are undecided, then of actions."""
        decided = self.decided(nodes.masks, nodes.first, nodes.last)
        open_ = np.flatnonzero(~decided)
        if len(open_):
            n = nodes.at(open_)
            axis, cut, low_masks, high_masks = best_cuts(
                self.table, n.first, n.last, n.masks, n.bound, self.threshold
            )
            rows = np.arange(len(axis))
            last, first = n.last.copy(), n.first.copy()
            last[rows, axis], first[rows, axis] = cut, cut + 1
            below, above = replace(n, last=last, masks=low_masks), replace(n, first=first, masks=high_masks)
            self.queue(_Boxes.joined([below, above]))
        n = nodes.at(np.flatnonzero(decided))
        if not len(n.least):
            return
        width = n.high - n.low
        room = np.maximum(self.piece.high - self.piece.low, 1e-300)
        size = np.where(width > SMALLEST * (np.abs(n.low) + np.abs(n.high) + room), width / room, 0.0)
        axis = size.argmax(axis=1)
        rows = np.arange(len(axis))
        thin = size[rows, axis] <= 0
        if thin.any():
            self.search.close(float(n.least[thin].min()))
        n, axis = n.at(~thin), axis[~thin]
        rows = np.arange(len(axis))
        if not len(axis):
            return
        middle = 0.5 * (n.low[rows, axis] + n.high[rows, axis])
        whole = self.piece.integral[axis]
        high, low = n.high.copy(), n.low.copy()
        high[rows, axis] = np.where(whole, np.floor(middle), middle)
        low[rows, axis] = np.where(whole, np.floor(middle) + 1, middle)
        self.queue(_Boxes.joined([replace(n, high=high), replace(n, low=low)]))


def _inner(low: Array, high: Array) -> tuple[Array, Array]:
    """The ends of slightly smaller intervals (by :data:`INSIDE`, relatively, at most to the middle), so that
    rounding seldom moves a point into the next cell."""
    size = 1.0 + sum(np.where(np.isfinite(end), np.abs(end), 0.0) for end in (low, high))
    room = np.fmin(INSIDE * size, 0.5 * (high - low))
    return low + room, high - room
