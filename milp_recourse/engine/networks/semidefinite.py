r"""Bounds of the logit within a budget that are joint over all ReLUs: a semidefinite relaxation.

Lines above ReLUs (:mod:`~milp_recourse.engine.networks.linear_bounds`) are one unit's own. Where a cost with
squares is spent on many levers, no point comes near all of their corners at once, and quadratic bounds know
that (Raghunathan et al. 2018, https://arxiv.org/abs/1811.01057).

x (N,) are the d levers' coordinates u and the outputs a of the m open ReLUs of all layers but the last; every
argument is a form z = P x + p. Of points that cost at most C, each lever at least q u^2,

.. math:: a_i (a_i - z_i) = 0, \quad a_i \ge 0, \quad a_i - z_i \ge 0, \quad C - \sum_j q_j u_j^2 \ge 0

hold, and rows for the box's sides, the signs split on and the chords of open ReLUs. The product of two rows
is at least 0 (Sherali and Adams 1990), and between steps c and c + g of a lever is none, so that
(u - c) (u - c - g) is, too. An open ReLU of the last layer, of argument s, has

.. math:: \alpha s \le \max(0, s) \le s / 2 + t s^2 + 1 / (16 t), \quad 0 \le \alpha \le 1, \quad t > 0.

The logit with these bounds put in, and what is at least 0 added with multipliers theta (of products), e (of
rows) and lambda, is k + h x - x M x. Whatever the multipliers are, that is at most
:math:`k + h M^{-1} h / 4` if M is positive definite. :mod:`~milp_recourse.engine.networks.moments` looks for
good ones; :meth:`Relaxation.proven` bounds what they prove, rounding included.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.networks.lever_arrays import ACTED
from milp_recourse.engine.networks.moments import Method, Multipliers, Program, Solution, Start, cholesky
from milp_recourse.engine.networks.numerics import BELOW, TINY
from milp_recourse.engine.networks.problem_arrays import Problems
from milp_recourse.problem.enclosure import gamma

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Box = NDArray[np.void]

MOST_VARIABLES = 320
"""Most levers and units of all layers but the last: a step of the method takes about a twentieth of a second
then."""

WIDER = 1e-3
"""By how much of what its budget allows a lever's interval is made wider, so that it has a width; and of a
step, by how much the gap between two of them is made narrower at each end."""

PAIRS, VIOLATED, ACTIVE = 1.0, 0.02, 8.0
"""At most so many products of rows are added, in numbers of variables; of those that moments say are below 0
by so much of their size. They are kept while they are below 1 / so much of it."""

NONE = np.zeros((0, 2), dtype=np.int64)
"""No pairs of rows."""


def covers(p: Problems) -> bool:
    """Whether a problem has such bounds: its levers are numbers, all of whose costs have squares; there are
    one box, no causal units, rows or ball, and not too many levers and units."""
    lever, inner = p.lever, int(p.widths[1:-1].sum())
    squares = (lever["square"] > 0.0) & (lever["down"] > 0.0) & (lever["label"] + lever["knots"] == 0.0)
    plain = not (p.widths[0] or p.noise.size or p.row.shape[-2] or p.base.any()) and len(p.box) == 1
    return bool(plain and len(p.widths) > 1 and squares.all() and len(lever) + inner <= MOST_VARIABLES)


class Earlier(NamedTuple):
    """What a relaxation ended with, for those of other nodes: numbers of variables (0: the constant 1), Y,
    multipliers of a (a - z), (K + 1, n), and the mean of complementary products."""

    variables: Indices
    moments: Array
    beta: Array
    mean: float


class Seen(NamedTuple):
    """What a solution says of a node and for others.

    Attributes
    ----------
    pairs
        Names of rows whose products are to be taken next, (., 2).
    lost
        What the bounds of each open unit add to the logit at the optimum, (K + 1, n).
    away
        How far each open argument is from 0 there, in standard deviations, below 0 if it is, (K + 1, n).
    point
        The levers' coordinates there, (d,).
    earlier
        For other nodes.
    """

    pairs: Indices
    lost: Array
    away: Array
    point: Array
    earlier: Earlier


class _Forms(NamedTuple):
    """Forms P x + p, (r, N) and (r,), and the sums of absolute terms behind them over the box, (r,)."""

    terms: Array
    const: Array
    size: Array

    def of(self, chosen: NDArray[Any] | slice, sign: NDArray[Any] | float = 1.0) -> _Forms:
        """Some of them, each times a number."""
        by = np.broadcast_to(np.asarray(sign), self.const[chosen].shape)
        return _Forms(
            by[:, None] * self.terms[chosen], by * self.const[chosen], np.abs(by) * self.size[chosen]
        )

    def plus(self, const: Array) -> _Forms:
        """All with constants added."""
        return _Forms(self.terms, self.const + const, self.size + np.abs(const))

    def at(self, x: Array) -> Array:
        """Their values."""
        return self.terms @ x + self.const


def _joined(forms: Sequence[_Forms]) -> _Forms:
    return _Forms(*(np.concatenate(parts) for parts in zip(*forms, strict=True)))


class Relaxation:
    """The relaxation of one node of a problem that :func:`covers`.

    Parameters
    ----------
    box
        Records of the levers' intervals, (d,).
    known
        Bounds of all arguments that hold within the budget, and the signs split on (1: not negative, 2: not
        positive), (3, K + 1, n).
    budget
        C; the bounds hold for what costs at most so much.
    room
        About how far above what is needed the logit's line is: the least unit of the objective in the method.
    pairs
        Names of rows whose products are taken; of rows that another node has and this one does not, none is.
    point
        Coordinates around which steps are taken, (d,); None for no steps.
    """

    def __init__(
        self,
        p: Problems,
        box: Box,
        known: Array,
        budget: float,
        room: float,
        pairs: Indices = NONE,
        point: Array | None = None,
    ) -> None:
        self.p, self.budget, self.room, self.d = p, budget, max(room, TINY), len(p.lever)
        (low, high, split), widths, d = known, p.widths.tolist(), self.d
        is_open, last = (low < 0.0) & (high > 0.0), len(widths) - 1
        units = [(k, j) for k in range(1, last) for j in np.flatnonzero(is_open[k, : widths[k]]).tolist()]
        self.units = np.array(units, dtype=np.int64).reshape(-1, 2)
        size, self.place = d + len(units), d + np.arange(len(units))
        self.square = p.lever["square"] * np.minimum(p.lever["down"], 1.0) ** 2 * BELOW**2
        acts = box["mode"] == ACTED  # elsewhere the factual counts, too
        ends = np.array([np.where(acts, box["lo"], np.minimum(box["lo"], 0.0)), box["hi"]])
        ends[1] = np.where(acts, ends[1], np.maximum(ends[1], 0.0))
        within = np.sqrt(budget / self.square) * p.slacks.up**2
        ends += WIDER * within / math.sqrt(d) * np.array([[-1.0], [1.0]])  # without a width is no interior
        self.reach, self.usual = np.zeros(size), np.zeros(size)  # the largest size of x, and a usual one
        self.reach[:d] = np.minimum(np.abs(ends).max(axis=0), within)
        self.usual[:d] = np.minimum(within / math.sqrt(d), self.reach[:d])
        outputs, z, rows, names = _Forms(np.eye(d, size), np.zeros(d), self.reach[:d]), [], [], []
        at = d
        for k in range(1, last + 1):
            layer = self._layer(k, outputs)
            mine, on = is_open[k, : widths[k]], low[k, : widths[k]] >= 0.0
            where = np.flatnonzero(split[k, : widths[k]])
            below = split[k, where] == 2.0
            rows.append(layer.of(where, np.where(below, -1.0, 1.0)))
            names.append(2 * self._number(k, where) + below)
            if k == last:
                break
            z.append(layer.of(mine))
            new = slice(at, at + int(mine.sum()))
            self.reach[new], at = layer.size[mine], new.stop
            spread = np.sqrt(layer.terms[mine] ** 2 @ self.usual**2)
            usual = 0.5 * spread + np.maximum(layer.const[mine], 0.0)
            self.usual[new] = np.maximum(usual, WIDER * np.max(usual, initial=TINY))
            outputs = layer.of(slice(None), on)
            outputs.terms[np.flatnonzero(mine), np.arange(new.start, new.stop)] = 1.0
            outputs.size[mine] = layer.size[mine]
        self._last(layer, is_open[last], on)
        self.z = _joined([_Forms(np.zeros((0, size)), np.zeros(0), np.zeros(0)), *z])
        one = _Forms(np.eye(size), np.zeros(size), self.reach)
        own = one.of(self.place)
        over = _Forms(own.terms - self.z.terms, -self.z.const, own.size + self.z.size)
        sides = [
            one.of(slice(0, d), sign).plus(-sign * end) for sign, end in zip((1.0, -1.0), ends, strict=True)
        ]
        chords = self._chords(own, *known[:2, *self.units.T])
        every = _joined([own, over, *rows, *sides, chords, self.falls])
        unit, lever = self._number(*self.units.T), p.biases.size + np.arange(d)
        chord, no_name = 2 * (p.biases.size + d) + unit, np.full(len(self.falling), -1)
        self.names = np.concatenate(
            [2 * unit, 2 * unit + 1, *names, 2 * lever, 2 * lever + 1, chord, no_name]
        )
        self.rows = len(every.const)
        self.alphas = slice(self.rows - len(self.falling), self.rows)
        self._products(every, self._steps(box, one, point), pairs)

    def _number(self, layer: Indices | int, unit: Indices) -> Indices:
        """Of units: rows a >= 0 and z >= 0 are named twice that, a >= z and z <= 0 one more."""
        number: Indices = layer * self.p.biases.shape[1] + unit
        return number

    def _chords(self, own: _Forms, low: Array, high: Array) -> _Forms:
        """What the chords of open units are above their outputs."""
        slope, up = high / (high - low), self.p.slacks.up**4
        rise = np.maximum(-slope * low, (1.0 - slope) * high) * up
        terms, const = slope[:, None] * self.z.terms - own.terms, slope * self.z.const + rise
        return _Forms(terms, const, slope * self.z.size + own.size + rise)

    def _steps(self, box: Box, one: _Forms, point: Array | None) -> tuple[_Forms, _Forms]:
        """u - c and u - c - g of levers with steps c and c + g around a point."""
        grid = self.p.lever["grid"]
        if point is None:
            return one.of(slice(0, 0)), one.of(slice(0, 0))
        c, between = around(self.p, box, point)
        at = np.flatnonzero(between & (box["mode"] == ACTED))
        c, narrower = c[at], WIDER * grid[at]
        return one.of(at).plus(-c - narrower), one.of(at).plus(narrower - c - grid[at])

    def _products(self, rows: _Forms, steps: tuple[_Forms, _Forms], pairs: Indices) -> None:
        """All forms, also in the method's coordinates, (f, 1 + N), and of which products are taken."""
        m, kinks, gaps = len(self.units), len(self.rising), len(steps[0].const)
        self.forms, self.scale = _joined([rows, self.s, *steps]), np.append(1.0, self.usual)
        self.scaled = np.column_stack([self.forms.const, self.forms.terms]) * self.scale
        order = np.argsort(self.names, kind="stable")
        at = order[np.minimum(np.searchsorted(self.names[order], pairs), len(order) - 1)]
        at = np.sort(at[(self.names[at] == pairs).all(axis=1)], axis=1)
        kink, gap = self.rows + np.arange(kinks), self.rows + kinks + np.arange(gaps)
        self.left = np.concatenate([np.arange(m), kink, at[:, 0], gap])
        self.right = np.concatenate([m + np.arange(m), kink, at[:, 1], gap + gaps])
        self.kinks, self.paired = slice(m, m + kinks), slice(m + kinks, m + kinks + len(at))

    def _layer(self, k: int, outputs: _Forms) -> _Forms:
        """The arguments of layer k over the outputs of the one before, or for k = 1 over the levers."""
        p, count = self.p, int(self.p.widths[k])
        if k == 1:
            (first, sizes), (offset, size) = p.first[0, :, 1, :count], p.offset[0, :, 1, :count]
            return _Forms(first @ outputs.terms, offset, sizes @ outputs.size + size)
        weight, bias = p.weights[k - 1, :count, : len(outputs.const)], p.biases[k - 1, :count]
        size = np.abs(weight) @ outputs.size + np.abs(bias)
        return _Forms(weight @ outputs.terms, weight @ outputs.const + bias, size)

    def _last(self, s: _Forms, is_open: NDArray[np.bool_], on: NDArray[np.bool_]) -> None:
        """The logit over the last layer: what is linear, what rises with open units, and what falls."""
        p, count = self.p, len(s.const)
        weight, bias = p.weights[-1, 0, :count], float(p.biases[-1, 0])
        self.rising = np.flatnonzero(is_open[:count] & (weight > 0.0))
        self.falling = np.flatnonzero(is_open[:count] & (weight < 0.0))
        self.weight, self.falls = weight[self.rising], s.of(self.falling, weight[self.falling])
        self.s = s.of(self.rising, np.sqrt(self.weight))
        linear = _joined([s.of(on[:count], weight[on[:count]]), s.of(self.rising, 0.5 * self.weight)])
        self.linear, self.const = linear.terms.sum(axis=0), bias + float(linear.const.sum())
        self.const_size = abs(bias) + float(linear.size.sum())

    @np.errstate(all="ignore")
    def proven(self, found: Multipliers) -> tuple[float, float]:
        r"""An upper bound of the logit that multipliers prove (inf: none), and their lambda: with a budget
        that is smaller by c, it is smaller by lambda c.

        For any L and v, :math:`h x - x M x \le v^2 / 4 + |h - L v| |x| + |x| |M - L L^T| |x|`, so nothing
        rests on how L and v were found. Each sum is off by at most a slack times the sum of its absolute
        terms over the box; in x L L^T x those are at most the square of ``spread``.
        """
        (theta, budget, e), reach, size = found, self.reach, self.forms.size
        terms, const = self.forms.terms, self.forms.const
        t, positive = theta[self.kinks], np.append(theta[self.kinks.start :], budget).min() > 0.0
        m = (terms[self.left].T * (-0.5 * theta)) @ terms[self.right]
        m = m + m.T
        m[np.arange(self.d), np.arange(self.d)] += budget * self.square
        least, most = np.min(e, initial=0.0), np.max(e[self.alphas], initial=0.0)
        factor = cholesky(m) if positive and least >= 0.0 and most <= 1.0 else None
        if factor is None:
            return math.inf, budget
        left, right = const[self.left], const[self.right]
        h = self.linear + e @ terms[: self.rows]
        h = h + (theta * right) @ terms[self.left] + (theta * left) @ terms[self.right]
        k = self.const + e @ const[: self.rows] + theta @ (left * right) + budget * self.budget
        k += np.sum(self.weight / (16.0 * t))
        v = _solved(factor, h)
        if v is None:
            return math.inf, budget
        rest, off, length = np.abs(h - factor @ v), np.abs(m - factor @ factor.T), np.sqrt(v @ v)
        spread = np.sqrt(np.diag(m)) @ reach
        sizes = self.const_size + e @ size[: self.rows] + np.abs(theta) @ (size[self.left] * size[self.right])
        sizes += np.sum(self.weight / t) + np.abs(h) @ reach + (spread + length) ** 2
        sizes += budget * (self.budget + self.square @ reach[: self.d] ** 2)
        slack = 8.0 * (self.p.slacks.line + gamma(4 * (len(theta) + len(e)) + 64))
        bound = k + 0.25 * length**2 + rest @ reach + reach @ off @ reach + slack * sizes + TINY
        return (float(bound) if bound < math.inf else math.inf), budget

    @np.errstate(all="ignore")
    def guess(
        self,
        need: float,
        decided: float,
        earlier: Earlier | None = None,
        late: Callable[[], bool] = lambda: False,
    ) -> Solution | None:
        """Good multipliers, None where there are none.

        The method ends once the bound is below ``need``, or where all that it can still fall by is less than
        ``decided`` times what it is above that, or where it is ``late``.
        """
        d, scale = self.d, self.scale
        squares = np.zeros(len(scale))
        squares[1 : d + 1] = self.square * self.usual[:d] ** 2
        program = Program(
            forms=self.scaled,
            own=len(self.units),
            columns=1 + self.place,
            left=self.left,
            right=self.right,
            weights=self.weight,
            rows=self.rows,
            capped=self.alphas,
            linear=np.append(0.0, self.linear) * scale,
            squares=squares,
            budget=self.budget,
            unit=max(self.room, float(np.linalg.norm(self.linear * self.usual))),
        )
        try:
            start = None if earlier is None else self._start(earlier)
            found = Method(program, start).run(need - self.const, decided, late)
        except np.linalg.LinAlgError:
            return None
        return found if np.isfinite(found.moments / found.moments[0, 0]).all() else None

    @np.errstate(all="ignore")
    def seen(self, found: Solution) -> Seen:
        """What a solution says."""
        y = found.moments / found.moments[0, 0]
        x = y[0, 1:] * self.usual
        lost, earlier = self._lost(found.multipliers, x), self._earlier(found.start)
        return Seen(self._pairs(y), lost, self._away(y), x[: self.d], earlier)

    def _variables(self) -> Indices:
        """Numbers of variables that other nodes have, too; they rise."""
        return np.concatenate([np.arange(self.d + 1), self.d + 1 + self._number(*self.units.T)])

    def _earlier(self, start: Start) -> Earlier:
        beta = np.zeros(self.p.biases.shape)
        beta[tuple(self.units.T)] = start.free
        moments = start.moments / start.moments[0, 0] * self.scale * self.scale[:, None]
        return Earlier(self._variables(), moments, beta, start.mean)

    def _start(self, earlier: Earlier) -> Start | None:
        """Another node's, if it has all variables."""
        mine = self._variables()
        at = np.minimum(np.searchsorted(earlier.variables, mine), len(earlier.variables) - 1)
        if not (earlier.variables[at] == mine).all():
            return None
        moments = earlier.moments[np.ix_(at, at)] / self.scale / self.scale[:, None]
        return Start(moments, earlier.beta[tuple(self.units.T)], earlier.mean)

    def _pairs(self, y: Array) -> Indices:
        """See :class:`Seen`."""
        rows, units = self.scaled[: self.alphas.start], np.arange(len(self.units))
        between = rows @ y @ rows.T
        size = np.sqrt(np.maximum(np.diag(between), TINY))
        between /= size * size[:, None]
        kept = np.column_stack([self.left[self.paired], self.right[self.paired]])
        kept = kept[between[kept[:, 0], kept[:, 1]] < 1.0 / ACTIVE]
        between[units, len(units) + units] = 0.0
        between[kept[:, 0], kept[:, 1]] = 0.0
        below = np.flatnonzero(np.triu(between, 1) < -VIOLATED)
        worst = below[np.argsort(between.ravel()[below], kind="stable")[: int(PAIRS * len(self.reach))]]
        new = np.column_stack(np.unravel_index(worst, between.shape))
        pairs: Indices = self.names[np.concatenate([kept, new])]
        return pairs

    def _lost(self, found: Multipliers, x: Array) -> Array:
        """See :class:`Seen`."""
        made, theta, units = np.zeros(self.p.biases.shape), found.products, tuple(self.units.T)
        a, s, t = x[self.place], self.s.at(x), theta[self.kinks]
        falls = self.falls.at(x)  # weights are below 0
        made[units] = np.abs(theta[: len(a)] * a * (self.z.at(x) - a))
        made[-1, self.rising] = t * s**2 + self.weight / (16.0 * t) - 0.5 * np.sqrt(self.weight) * np.abs(s)
        made[-1, self.falling] = found.rows[self.alphas] * falls - np.minimum(falls, 0.0)
        return made

    def _away(self, y: Array) -> Array:
        """See :class:`Seen`."""
        made, m, kinks, forms = np.zeros(self.p.biases.shape), len(self.units), len(self.rising), self.scaled
        for where, some in (
            (tuple(self.units.T), forms[:m] - forms[m : 2 * m]),
            ((-1, self.rising), forms[self.rows : self.rows + kinks]),
            ((-1, self.falling), -forms[self.alphas]),
        ):
            mean = some @ y[0]
            variance = np.einsum("ij,ij->i", some @ y, some) - mean**2
            made[where] = mean / np.sqrt(np.maximum(variance, 0.0) + TINY)
        return made


@np.errstate(invalid="ignore")  # nothing is left of a lever that is not acted on
def around(p: Problems, box: Box, point: Array) -> tuple[Array, NDArray[np.bool_]]:
    """The steps at or below a point of a box, (d,), and which levers have these and the next one there."""
    grid, shift = p.lever["grid"], p.lever["shift"]
    x, stepped = np.clip(point, box["lo"], box["hi"]), grid > 0.0
    below = np.floor((x - shift) / np.where(stepped, grid, 1.0)) * grid + shift
    return below, stepped & (below >= box["lo"]) & (below + grid <= box["hi"])


def _solved(m: Array, y: Array) -> Array | None:
    """The solution x of m x = y, None where there is none in doubles."""
    try:
        return np.asarray(np.linalg.solve(m, y), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None
