r"""Branch and bound over cells where actions have effects on other features, piece by piece.

A node is a box of actions and a box of cells of what they move. Cells follow from the actions' intervals, and
the actions' intervals from the cells, the rows and the ball, to and fro; intervals are rounded outward. A
node is closed when it is empty, when its largest score is not accepted, or when no action in it costs less
than the best one in hand. With plausibility the least cost is bounded by weak duality: for any
:math:`\mu \ge 0` and any points :math:`\rho` at which the ball's squares are touched,

.. math:: \min_a \; c(a) + \mu \Bigl(\sum_k w_k (2 \rho_k r_k(a) - \rho_k^2) + l(a)\Bigr)

falls apart into one minimum per action, and is exact at the right multiplier and points.

References
----------
Boyd and Vandenberghe (2004), section 5.1 (weak duality); Messine (2004), https://doi.org/10.1051/ro:2004026
(affine constraints propagated to and fro)
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from milp_recourse.domain.forest import TreeEnsemble
from milp_recourse.forests.convex import ConvexProblem, Quadratic, saddle_point
from milp_recourse.forests.pieces import Forms, Piece, pieces_of
from milp_recourse.forests.table import LeafTable, Masks, best_cuts
from milp_recourse.incumbent import Incumbent
from milp_recourse.instance import Instance
from milp_recourse.result import Proposal

Array = NDArray[np.float64]
Cells = NDArray[np.int64]

BATCH = 64
"""Nodes that are examined together."""

ROUNDS = 3
"""Passes of propagation per node."""

SMALLEST = 1e-13
"""Intervals of actions that are relatively shorter than this are not cut any more."""

INSIDE = 1e-12
"""Relative distance that points keep from the ends of their box, and from the ball's."""

SAMPLES = 500
"""Actions that are tried before any box is cut, and as many between these and the factual."""

DUAL_STEPS, SWEEPS = 10, 2
"""Steps towards the ball's multiplier, and sweeps of coordinate descent in each."""


@dataclass(frozen=True)
class Costs:
    """c(a) = fixed + sum of (kappa d^2 + beta d + jump [d > 0]) + the largest omega d, with d = |a - x|."""

    factual: Array
    kappa: Array
    beta: Array
    jump: Array
    omega: Array
    label: NDArray[np.bool_]
    """Categories: d is 1 where the label changes, in the maximum too."""
    fixed: float
    bent: bool
    """Whether distances are in percentiles, or decreases have a scale of their own. Then a box's cost is that
    of its nearest point, and duality adds nothing."""

    @staticmethod
    def of(instance: Instance, piece: Piece) -> Costs:
        """The cost of acting on all of a piece's features."""
        cost = instance.cost
        w = np.array([instance.weight(n) for n in piece.names])
        s = np.array([cost.scale[n] if cost.uses_scale else 1.0 for n in piece.names])
        label = np.array([instance.feature(n).kind == "categorical" for n in piece.names], dtype=bool)
        smooth = w * cost.l2_squared / s**2, w * cost.l1 / s
        return Costs(
            np.array([instance.factual[n] for n in piece.names]),
            np.where(label, 0.0, smooth[0]),
            np.where(label, 0.0, smooth[1]),
            np.where(label, smooth[0] + smooth[1], 0.0),
            cost.linf * w / s,
            label,
            cost.l0 * float(w.sum()),
            bool(cost.quantiles or cost.decrease),
        )

    def least(self, instance: Instance, piece: Piece, low: Array, high: Array) -> Array:
        """The least cost in boxes (B, d), rounded down."""
        near = np.maximum(np.maximum(low - self.factual, self.factual - high), 0.0)
        if self.bent:
            for i, name in enumerate(piece.names):
                if name in instance.cost.decrease:
                    ratio = instance.cost.scale[name] / instance.cost.decrease[name]
                    near[:, i] *= np.where(high[:, i] < self.factual[i], ratio * (1 - 1e-15), 1.0)
                quantiles = instance.cost.quantiles.get(name)
                if quantiles is not None:
                    percentile = quantiles.evaluate(self.factual[i : i + 1])
                    ends = [quantiles.evaluate(end[:, i]) for end in (low, high)]
                    shift = np.maximum(np.maximum(ends[0] - percentile, percentile - ends[1]) - 4e-12, 0.0)
                    near = np.column_stack([near[:, :i], shift, near[:, i + 1 :]])
        apart = near > 0
        total = self.kappa * near**2 + self.beta * near + self.jump * apart
        widest = (self.omega * np.where(self.label, apart, near)).max(axis=1, initial=0.0)
        return np.maximum((total.sum(axis=1) + widest + self.fixed) * (1 - 1e-14), 0.0)


class CausalSearch:
    """One applicant's search over all pieces.

    Parameters
    ----------
    instance
        Its classifier is a :class:`TreeEnsemble`; see :func:`~milp_recourse.forests.pieces.why_not_pieces`.
    deadline
        ``time.perf_counter()`` value to stop at, or None.
    """

    def __init__(self, instance: Instance, deadline: float | None = None) -> None:
        self.instance, self.deadline = instance, deadline
        self.best = Incumbent(instance)
        self.stuck = math.inf
        self.nodes = 0
        self.late = False

    def run(self) -> Proposal:
        """Search to the end, or to the deadline."""
        searches = [_PieceSearch(self, piece) for piece in pieces_of(self.instance)]
        searches.sort(key=lambda s: s.least)
        for search in searches:  # an action, however little time is left
            if self.best.action is None:
                search.look()
        open_ = math.inf
        for search in searches:
            open_ = min(open_, search.run())
        bound = min(self.best.target, self.stuck, open_)
        message = None
        if bound < self.best.target:
            message = "the time limit was reached" if self.late else "a box became too small to cut"
        return Proposal(self.best.action, bound, "rigorous", self.nodes, message)

    def out_of_time(self) -> bool:
        """Whether the deadline has passed."""
        self.late = self.late or (self.deadline is not None and time.perf_counter() > self.deadline)
        return self.late


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


@dataclass(frozen=True)
class _Linear:
    """slope a + constant, which is at most 0 at every feasible a, with the sums of absolute terms that its
    rounding error is proportional to; and the actions' shares of the cost's maximum."""

    slope: Array
    size_of_slope: Array
    constant: Array
    size_of_constant: Array
    shares: Array


class _PieceSearch:
    """The search of one piece: a queue of boxes, the one of least cost first."""

    def __init__(self, search: CausalSearch, piece: Piece) -> None:
        forest = search.instance.classifier
        assert isinstance(forest, TreeEnsemble)
        self.search, self.piece = search, piece
        self.costs = Costs.of(search.instance, piece)
        self.threshold = search.instance.accept.above
        self.table = LeafTable(forest, piece.cells, piece.columns)
        self.heap: list[tuple[float, int, _Boxes]] = []
        self.order = 0
        self.columns = piece.forms
        self.whole = self.columns.exact & (np.abs(self.columns.matrix) @ piece.integral > 0)
        first = np.zeros((1, len(piece.columns)), dtype=np.int64)
        last = np.array([len(c) - 1 for c in piece.columns], dtype=np.int64)[None]
        low, high, masks = piece.low[None].copy(), piece.high[None].copy(), self.table.full[None]
        self.queue(_Boxes(low, high, first, last, masks, np.full(1, math.inf), np.zeros(1)))
        self.least = self.heap[0][0] if self.heap else math.inf

    def run(self) -> float:
        """Search to the end, or to the deadline; returns the least bound of the nodes still open, inf for
        none."""
        search = self.search
        while self.heap and self.heap[0][0] < search.best.target:
            if search.out_of_time():
                return self.heap[0][0]
            taken: list[_Boxes] = []
            while self.heap and len(taken) < BATCH and self.heap[0][0] < search.best.target:
                taken.append(heapq.heappop(self.heap)[2])
            search.nodes += len(taken)
            self.step(_Boxes.joined(taken))
        return math.inf

    def look(self) -> None:
        """Try random actions, and points between each of them and the cheapest point of the root box."""
        if not self.heap:
            return
        root, rng = self.heap[0][2], np.random.default_rng(0)
        start = np.clip(self.costs.factual, root.low, root.high)
        far = root.low + rng.random((SAMPLES, start.shape[1])) * (root.high - root.low)
        points = np.concatenate([far, start + rng.random((SAMPLES, 1)) * (far - start)])
        self.try_points(root.at(np.zeros(len(points), dtype=np.int64)), points)

    def step(self, nodes: _Boxes) -> None:
        """Try points of the nodes, raise their bounds by duality, split those that stay open."""
        points = np.clip(self.costs.factual, nodes.low, nodes.high)
        done = self.try_points(nodes, points)
        done |= self.try_points(nodes, np.clip(self.costs.factual, *self.inner(nodes)))
        if self.piece.weights is not None and not self.costs.bent:
            index = np.flatnonzero(~done & (nodes.least < self.search.best.target))
            if len(index):
                least, near = self.dual(nodes.at(index))
                nodes.least[index] = least
                done[index] |= self.try_points(nodes.at(index), near)
        if not self.costs.bent:
            open_ = ~done & (nodes.least < self.search.best.target) & self.decided(nodes)
            for k in np.flatnonzero(open_):
                one = np.array([k])
                bound, point = self.convex(nodes.at(one))
                nodes.least[k] = max(nodes.least[k], bound)
                if point is not None:
                    done[k] |= self.try_points(nodes.at(one), point[None])[0]
        kept = np.flatnonzero(~done & (nodes.least < self.search.best.target))
        if len(kept):
            self.split(nodes.at(kept))

    def inner(self, nodes: _Boxes) -> tuple[Array, Array]:
        """The ends of slightly smaller boxes (by :data:`INSIDE`, relatively, at most to the middle), so that
        rounding seldom moves a point into the next cell."""
        low, high = nodes.low, nodes.high
        slack = np.minimum(INSIDE * (np.abs(low) + np.abs(high) + 1.0), 0.5 * (high - low))
        return low + slack, high - slack

    def try_points(self, nodes: _Boxes, points: Array) -> NDArray[np.bool_]:
        """Judge points that look feasible and cheaper than the best; returns which nodes are closed because
        their point attains their bound."""
        piece, best = self.piece, self.search.best
        points = np.where(piece.integral, np.round(points), points)
        costs = self.costs.least(self.search.instance, piece, points, points)
        values = points @ self.columns.matrix.T + self.columns.constant
        cells = self.cells(values, values)[0]
        scores = self.table.bound(self.table.met(cells, cells))
        good = (scores > self.threshold) & (costs < best.cost)
        if len(piece.rows.constant):
            rows = points @ piece.rows.matrix.T + piece.rows.constant
            good &= ((rows >= piece.row_low) & (rows <= piece.row_high)).all(axis=1)
        if piece.weights is not None:
            good &= self.excess(points) <= 1e-12
        done = np.zeros(len(points), dtype=bool)
        for k in np.flatnonzero(good)[np.argsort(costs[good], kind="stable")]:
            action = dict(zip(piece.names, points[k].tolist(), strict=True))
            if costs[k] < best.cost and best.take(action):
                done[k] = nodes.least[k] >= best.target
        return done

    def excess(self, points: Array) -> Array:
        """Left side of the ball at points, (B,)."""
        piece = self.piece
        assert piece.weights is not None
        r = points @ piece.residuals.matrix.T + piece.residuals.constant
        linear = (points @ piece.linear.matrix.T + piece.linear.constant)[:, 0]
        return np.asarray(r**2 @ piece.weights + linear)

    def cells(self, low: Array, high: Array) -> tuple[Cells, Cells]:
        """Cells of intervals of the columns' values, (B, columns) each."""
        first, last = np.zeros(low.shape, dtype=np.int64), np.zeros(low.shape, dtype=np.int64)
        for k, column in enumerate(self.piece.columns):
            first[:, k] = np.searchsorted(column.cuts, low[:, k])
            last[:, k] = np.searchsorted(column.cuts, high[:, k])
        return first, last

    # -- propagation ---------------------------------------------------------------------

    def queue(self, nodes: _Boxes) -> None:
        """Shrink boxes, close what can be closed, queue the rest."""
        for _ in range(ROUNDS):
            nodes = self.shrink(nodes)
            empty = (nodes.low > nodes.high).any(axis=1) | (nodes.first > nodes.last).any(axis=1)
            nodes = nodes.at(np.flatnonzero(~empty))
        if not len(nodes.least):
            return
        masks = nodes.masks & self.table.met(nodes.first, nodes.last)
        bound = self.table.bound(masks)
        costs = self.costs.least(self.search.instance, self.piece, nodes.low, nodes.high)
        nodes = replace(nodes, masks=masks, bound=bound, least=np.maximum(nodes.least, costs))
        for k in np.flatnonzero((bound > self.threshold) & (nodes.least < self.search.best.target)):
            self.order -= 1
            heapq.heappush(self.heap, (float(nodes.least[k]), self.order, nodes.at(np.array([k]))))

    def shrink(self, nodes: _Boxes) -> _Boxes:
        """One pass: cells from actions, actions from cells, rows and the ball."""
        piece = self.piece
        low, high, first, last = nodes.low, nodes.high, nodes.first, nodes.last
        if piece.columns:
            reached = self.cells(*self.columns.range(low, high))
            first, last = np.maximum(first, reached[0]), np.minimum(last, reached[1])
            low, high = self.pull(self.columns, low, high, *self.ends(first, last))
        if len(piece.rows.constant):
            low, high = self.pull(piece.rows, low, high, *np.broadcast_arrays(piece.row_low, piece.row_high))
        if piece.weights is not None and len(piece.weights):
            limit = self.radius(low, high)
            low, high = self.pull(piece.residuals, low, high, -limit, limit)
            high = np.where((limit < 0).any(axis=1, keepdims=True), low - 1.0, high)
        whole = piece.integral
        low = np.where(whole, np.ceil(low - 1e-9), low)
        high = np.where(whole, np.floor(high + 1e-9), high)
        return replace(nodes, low=low, high=high, first=first, last=last)

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

    def radius(self, low: Array, high: Array) -> Array:
        """How large each residual may be in absolute value, (B, residuals); below 0: the ball is missed."""
        piece = self.piece
        assert piece.weights is not None
        r = piece.residuals.range(low, high)
        least = piece.weights * np.square(np.maximum(np.maximum(r[0], -r[1]), 0.0))
        linear = piece.linear.range(low, high)[0][:, 0]
        left = -linear[:, None] - (least.sum(axis=1, keepdims=True) - least) * (1 - 1e-12)
        left = left + 1e-12 * (np.abs(linear[:, None]) + least.sum(axis=1, keepdims=True)) + 1e-300
        return np.where(left < 0, -1.0, np.sqrt(np.maximum(left, 0.0) / piece.weights) * (1 + 1e-12))

    # -- duality -------------------------------------------------------------------------

    def decided(self, nodes: _Boxes) -> NDArray[np.bool_]:
        """Whether no split of cells can change what the trees say."""
        return self.table.decided(nodes.masks) | (nodes.first == nodes.last).all(axis=1)

    def dual(self, nodes: _Boxes) -> tuple[Array, Array]:
        """Lower bounds of what costs in the boxes' parts of the ball, (B,), and the last points that were
        met in the ball on the way (the boxes' cheapest points where none was), (B, d)."""
        low, high = nodes.low, nodes.high
        bound, near = nodes.least.copy(), np.clip(self.costs.factual, low, high)
        outside = np.flatnonzero(self.excess(near) > 0)
        if not len(outside):
            return bound, near
        low, high = low[outside], high[outside]
        inner_low, inner_high = self.inner(nodes.at(outside))
        small, large = np.full(len(outside), -60.0), np.full(len(outside), 60.0)
        a = near[outside]
        best = np.zeros(len(outside))
        inside = a.copy()
        unit = max(float(np.max(self.costs.kappa + self.costs.beta, initial=0.0)), 1e-12)
        for _ in range(DUAL_STEPS):
            middle = 0.5 * (small + large)
            mu = unit * np.exp2(middle)
            a = self.descend(inner_low, inner_high, a, mu)
            out = self.excess(a) > -INSIDE
            small, large = np.where(out, middle, small), np.where(out, large, middle)
            inside = np.where(out[:, None], inside, a)
            best = np.maximum(best, self.value(low, high, a, mu))
        bound[outside] = np.maximum(bound[outside], best)
        near[outside] = inside
        return bound, near

    def descend(self, low: Array, high: Array, a: Array, mu: Array) -> Array:
        """Coordinate descent on c(a) + mu ball(a), from a."""
        piece, costs = self.piece, self.costs
        assert piece.weights is not None
        matrix, linear = piece.residuals.matrix, piece.linear.matrix[0]
        a = a.copy()
        r = a @ matrix.T + piece.residuals.constant
        weighted = piece.weights[:, None] * matrix
        curves = 2 * (costs.kappa + mu[:, None] * (weighted * matrix).sum(axis=0)) + 1e-300
        for _ in range(SWEEPS):
            for j in range(a.shape[1]):
                # minimise over the distance t from x: curve t^2 / 2 + slope t + beta |t|
                distance = a[:, j] - costs.factual[j]
                slope = mu * (2 * (r @ weighted[:, j]) + linear[j]) + 2 * costs.kappa[j] * distance
                slope -= curves[:, j] * distance
                far = np.maximum(np.abs(slope) - costs.beta[j], 0.0) / curves[:, j]
                moved = np.clip(costs.factual[j] - np.sign(slope) * far, low[:, j], high[:, j])
                r += (moved - a[:, j])[:, None] * matrix[:, j]
                a[:, j] = moved
        return a

    def value(self, low: Array, high: Array, a: Array, mu: Array, more: _Linear | None = None) -> Array:
        """The dual bound at mu, with the squares touched at a, rounded down; (B,).

        Parameters
        ----------
        more
            A form that no feasible action makes positive, to be added, and shares of the maximum.
        """
        piece, costs = self.piece, self.costs
        weights = np.zeros(0) if piece.weights is None else piece.weights
        matrix, offset = piece.residuals.matrix, piece.residuals.constant
        linear, shift = piece.linear.matrix[0], piece.linear.constant[0]
        rho = a @ matrix.T + offset
        touched = np.abs(rho) * weights
        far, x = np.maximum(np.abs(low), np.abs(high)), costs.factual
        g = mu[:, None] * (2 * (rho * weights) @ matrix + linear)
        size_of_g = mu[:, None] * (2 * touched @ np.abs(matrix) + np.abs(linear))
        constant = mu * ((weights * (2 * rho * offset - rho**2)).sum(axis=1) + shift)
        size = mu * (touched @ (2 * np.abs(offset)) + (touched * np.abs(rho)).sum(axis=1) + np.abs(shift))
        beta = np.broadcast_to(costs.beta, g.shape)
        if more is not None:
            g, size_of_g = g + more.slope, size_of_g + more.size_of_slope
            constant, size = constant + more.constant, size + more.size_of_constant
            beta = beta + more.shares * np.where(costs.label, 0.0, costs.omega)
        # g a = g x + g (a - x), and the rest in t = a - x
        l, u, kappa = low - x, high - x, costs.kappa
        with np.errstate(divide="ignore", invalid="ignore"):
            plus, minus = -(g + beta) / (2 * kappa), -(g - beta) / (2 * kappa)
        turns = (np.clip(np.nan_to_num(t), l, u) for t in (np.zeros_like(g), plus, minus))
        least = np.min([kappa * t**2 + beta * np.abs(t) + g * t for t in (l, u, *turns)], axis=0)
        total = (least + g * x).sum(axis=1) + constant + costs.fixed
        away = np.maximum(np.abs(l), np.abs(u))
        size = size + (kappa * away**2 + beta * away + size_of_g * (far + away + np.abs(x))).sum(axis=1)
        return np.asarray(total - 2.0**-50 * (len(x) + len(weights) + 64) * (size + costs.fixed))

    def convex(self, node: _Boxes) -> tuple[float, Array | None]:
        """Bound and best point of one node whose trees are decided: a convex problem.

        It is solved by an interior-point method in distances p, n >= 0, a = x + p - n, with the cells of
        columns and the rows as constraints. The bound is a Lagrangian at the method's multipliers, and valid
        whatever these are.
        """
        piece, costs = self.piece, self.costs
        low, high = node.low[0], node.high[0]
        d, x = len(low), costs.factual
        free = high - low > SMALLEST * (np.abs(low) + np.abs(high) + 1.0)
        if not free.any():
            return 0.0, None
        held = np.where(free, 0.0, low - x)
        ends = self.ends(node.first, node.last)
        rows = np.concatenate([self.columns.matrix, piece.rows.matrix])
        offsets = np.concatenate([self.columns.constant, piece.rows.constant])
        least = np.concatenate([ends[0][0], piece.row_low])
        most = np.concatenate([ends[1][0], piece.row_high])
        used = np.concatenate([~self.columns.exact, ~piece.rows.exact]) & (rows[:, free] != 0).any(axis=1)
        signs = [(k, 1.0, most[k]) for k in np.flatnonzero(used & np.isfinite(most))]
        signs += [(k, -1.0, -least[k]) for k in np.flatnonzero(used & np.isfinite(least))]
        matrix = np.array([s * rows[k] for k, s, _ in signs]).reshape(-1, d)
        right = np.array([end - s * offsets[k] for k, s, end in signs])  # matrix @ a <= right
        q, c, g, h = self._distances(free, matrix[:, free], right - matrix @ (x + held), low - x, high - x)
        ball = None
        if piece.weights is not None:
            spread = np.zeros((d, len(q)))
            count = int(free.sum())
            spread[np.flatnonzero(free), np.arange(count)] = 1.0
            spread[np.flatnonzero(free), count + np.arange(count)] = -1.0
            start = x + held
            ball = Quadratic(
                piece.residuals.matrix @ spread,
                piece.residuals.matrix @ start + piece.residuals.constant,
                piece.weights,
                piece.linear.matrix[0] @ spread,
                float(piece.linear.matrix[0] @ start + piece.linear.constant[0]),
            )
        found = saddle_point(ConvexProblem(q, c, g, h, ball), np.full(len(q), 1e-3))
        if found is None:
            return 0.0, None
        z, multipliers, mu = found
        count = int(free.sum())
        a = x + held
        a[free] += z[:count] - z[count : 2 * count]
        a = np.clip(a, low, high)
        lam = np.maximum(multipliers[: len(right)], 0.0)
        shares = np.zeros(d)
        if costs.omega.any():
            shares[free] = np.maximum(multipliers[len(right) : len(right) + count], 0.0)
            shares /= max(shares.sum() * (1 + 1e-15), 1e-300)
            shares = np.minimum(shares * (1 - 1e-14), 1.0)
        more = _Linear(
            (lam @ matrix)[None],
            (lam @ np.abs(matrix))[None],
            np.array([-(lam @ right)]),
            np.array([lam @ (np.abs(right) + 2 * np.abs([offsets[k] for k, *_ in signs]))])
            if signs
            else np.zeros(1),
            shares[None],
        )
        bound = self.value(node.low, node.high, a[None], np.array([max(mu, 0.0)]), more)
        return float(bound[0]), a

    def _distances(
        self, free: NDArray[np.bool_], matrix: Array, right: Array, low: Array, high: Array
    ) -> tuple[Array, Array, Array, Array]:
        """q, c, G, h of the :class:`ConvexProblem` in z = (p, n, t), a_i - x_i = p_i - n_i for free actions.

        t, the maximum, is there only under linf. The rows of G: the given ones, omega (p + n) <= t, the box,
        z >= 0.
        """
        costs, count = self.costs, int(free.sum())
        widest = bool(costs.omega.any())
        size = 2 * count + widest
        kappa, beta = costs.kappa[free], costs.beta[free]
        q = np.concatenate([kappa, kappa, np.zeros(int(widest))])
        c = np.concatenate([beta, beta, np.ones(int(widest))])
        pad = np.zeros((len(matrix), int(widest)))
        blocks, limits = [np.concatenate([matrix, -matrix, pad], axis=1)], [right]
        eye = np.eye(count)
        if widest:
            omega = np.diag(np.where(costs.label[free], 0.0, costs.omega[free]))
            blocks.append(np.concatenate([omega, omega, -np.ones((count, 1))], axis=1))
            limits.append(np.zeros(count))
        none = np.zeros((count, int(widest)))
        blocks += [np.concatenate([eye, -eye, none], axis=1), np.concatenate([-eye, eye, none], axis=1)]
        limits += [high[free], -low[free]]
        blocks.append(-np.eye(size))
        limits.append(np.zeros(size))
        return q, c, np.concatenate(blocks), np.concatenate(limits)

    # -- splitting -----------------------------------------------------------------------

    def split(self, nodes: _Boxes) -> None:
        """Queue the halves of nodes: of boxes of cells while trees are undecided, then of actions."""
        decided = self.decided(nodes)
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
            self.search.stuck = min(self.search.stuck, float(n.least[thin].min()))
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
