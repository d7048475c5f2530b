r"""Bounds of the logit within a budget that are joint over all ReLUs: a semidefinite relaxation.

Lines above ReLUs (:mod:`~milp_recourse.engine.networks.linear_bounds`) are one unit's own. Where a cost with
squares is spent on many levers, no point comes near all of their corners at once, and quadratic bounds know
that (Raghunathan et al. 2018, https://arxiv.org/abs/1811.01057).

x (N,) are the d levers' coordinates u and the outputs a of the m open ReLUs of all layers but the last; every
argument is a form z = P x + p. Of points that cost at most C, each lever at least q u^2,

.. math::
    a_i (z_i - a_i) = 0, \quad a_i \ge 0, \quad a_i - z_i \ge 0, \quad C - \sum_j q_j u_j^2 \ge 0

hold, and rows for the box's sides and the signs split on. An open ReLU of the last layer, of argument s, has

.. math:: \alpha s \le \max(0, s) \le s / 2 + t s^2 + 1 / (16 t), \quad 0 \le \alpha \le 1, \quad t > 0.

The logit with these bounds put in, and what is at least 0 added with multipliers beta (any), e and lambda (at
least 0), is k + h x - x M x. Whatever the multipliers are, that is at most :math:`k + h M^{-1} h / 4` if M is
positive definite. :class:`Relaxation` looks for good ones, by Newton's method with a barrier;
:meth:`Relaxation.proven` bounds what they prove, rounding included.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.networks.lever_arrays import ACTED
from milp_recourse.engine.networks.numerics import BELOW, COARSE, TINY
from milp_recourse.engine.networks.problem_arrays import Problems
from milp_recourse.problem.enclosure import gamma

Array = NDArray[np.float64]

MOST_VARIABLES = 320
"""Most levers and units of all layers but the last: a node of so many takes about half a second."""

STEPS, STEPS_WARM = 60, 24
"""Most steps of Newton's method, and most from another node's multipliers."""

WIDER = 1e-3
"""By how much of what its budget allows a lever's interval is made wider, so that it has a width."""

FIRST, LESS, CENTRED, HOPELESS = 10.0, 0.3, 4.0, 1.5
"""What the barrier first weighs, as a share of how far the logit's line is above what is needed; what it is
multiplied by, and how far the merit may still fall then, in units of it. No more multipliers are looked for
once the bound is above what is needed by so many times what the barrier weighs."""


def covers(p: Problems) -> bool:
    """Whether a problem has such bounds: its levers are numbers, all of whose costs have squares; there are
    no causal units, rows or ball, and not too many units."""
    lever, inner = p.lever, int(p.widths[1:-1].sum())
    squares = (lever["square"] > 0.0) & (lever["down"] > 0.0) & (lever["label"] + lever["knots"] == 0.0)
    plain = not (p.widths[0] or p.noise.size or p.row.shape[-2] or p.base.any()) and len(p.box) == 1
    return bool(plain and len(p.widths) > 1 and squares.all() and len(lever) + inner <= MOST_VARIABLES)


class Multipliers(NamedTuple):
    """Multipliers by what they belong to, so that another node can begin with them; NaN where a node has
    none.

    Attributes
    ----------
    beta, above, over, sign
        Of each unit: of a (z - a) = 0, a >= 0, a >= z, and a sign split on, (K + 1, n).
    last
        t of each unit of the last layer, or alpha where the logit falls with it, (n,).
    sides
        Of the lower and upper sides of the box, (2, d).
    budget
        lambda.
    barrier
        What they are centred for.
    """

    beta: Array
    above: Array
    over: Array
    sign: Array
    last: Array
    sides: Array
    budget: float
    barrier: float


class Guess(NamedTuple):
    """What Newton's method ends with.

    Attributes
    ----------
    bound, best
        The least bound, in doubles, and its multipliers.
    centred
        Those that other nodes are to begin with, or None.
    lost
        What the bounds of each open unit add to the logit at the optimum, (K + 1, n).
    away
        How far each open argument is from 0 there, in the standard deviations of the relaxation, (K + 1, n).
    point
        The levers' coordinates there, (d,).
    """

    bound: float
    best: Multipliers
    centred: Multipliers | None
    lost: Array
    away: Array
    point: Array


class _Point(NamedTuple):
    """Multipliers (beta, t, lambda, e) as one vector, what they bound the logit by, the factor L of M = L L^T
    and its log-determinant, and where the bound is reached."""

    theta: Array
    bound: float
    factor: Array
    volume: float
    x: Array


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
        About how far above what is needed the logit's line is: multipliers are about in proportion to that.
    """

    def __init__(self, p: Problems, box: NDArray[np.void], known: Array, budget: float, room: float) -> None:
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
        ends += WIDER * within / math.sqrt(d) * np.array([[-1.0], [1.0]])  # Newton's method needs room
        self.reach, self.usual = np.zeros(size), np.zeros(size)  # the largest size of x, and a usual one
        self.reach[:d] = np.minimum(np.abs(ends).max(axis=0), within)
        self.usual[:d] = np.minimum(within / math.sqrt(d), self.reach[:d])
        outputs = _Forms(np.eye(d, size), np.zeros(d), self.reach[:d])
        rows, open_forms, at, signs = [], [], d, []
        for k in range(1, last + 1):
            z = self._layer(k, outputs)
            mine, on = is_open[k, : widths[k]], low[k, : widths[k]] >= 0.0
            where = np.flatnonzero(split[k, : widths[k]])
            signs += [(k, j) for j in where.tolist()]
            rows.append(z.of(where, np.where(split[k, where] == 1.0, 1.0, -1.0)))
            if k == last:
                break
            open_forms.append(z.of(mine))
            new = slice(at, at + int(mine.sum()))
            self.reach[new], at = z.size[mine], new.stop
            spread = np.sqrt(z.terms[mine] ** 2 @ self.usual**2)
            usual = 0.5 * spread + np.maximum(z.const[mine], 0.0)
            self.usual[new] = np.maximum(usual, WIDER * np.max(usual, initial=TINY))
            outputs = z.of(slice(None), on)
            outputs.terms[np.flatnonzero(mine), np.arange(new.start, new.stop)] = 1.0
            outputs.size[mine] = z.size[mine]
        self.signs = np.array(signs, dtype=np.int64).reshape(-1, 2)
        nothing = _Forms(np.zeros((0, size)), np.zeros(0), np.zeros(0))
        self.z = _joined([nothing, *open_forms])
        one = _Forms(np.eye(size), np.zeros(size), self.reach)
        own, z = one.of(self.place), self.z
        over = _Forms(own.terms - z.terms, -z.const, own.size + z.size)
        sides = [
            _Forms(s * one.terms[:d], -s * c, one.size[:d] + np.abs(c))
            for s, c in ((1.0, ends[0]), (-1.0, ends[1]))
        ]
        self._last(self._layer(last, outputs), is_open[last], low[last] >= 0.0)
        self.over, self.rows = over.terms, _joined([own, over, *rows, *sides, self.falls])
        self.alphas = slice(len(self.rows.const) - len(self.falls.const), None)
        # what the barrier weighs
        self.count = size + len(self.rows.const) + len(self.weight) + len(self.falls.const)

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
        self.weight, self.s = weight[self.rising], s.of(self.rising)
        self.falls = s.of(self.falling, weight[self.falling])
        linear = _joined([s.of(on[:count], weight[on[:count]]), self.s.of(slice(None), 0.5 * self.weight)])
        self.linear, self.const = linear.terms.sum(axis=0), bias + float(linear.const.sum())
        self.const_size = abs(bias) + float(linear.size.sum())

    # what multipliers prove

    def _parts(self, theta: Array) -> tuple[Array, Array, float, Array]:
        """beta, t, lambda and e."""
        m, count = len(self.units), len(self.units) + len(self.weight)
        return theta[:m], theta[m:count], float(theta[count]), theta[count + 1 :]

    def _matrix(self, theta: Array) -> Array:
        """M, (N, N)."""
        beta, t, budget, _ = self._parts(theta)
        made = -(self.s.terms.T * (self.weight * t)) @ self.s.terms
        made[np.arange(self.d), np.arange(self.d)] += budget * self.square
        made[self.place, self.place] += beta
        half = 0.5 * beta[:, None] * self.z.terms
        made[self.place] -= half
        made[:, self.place] -= half.T
        return made

    def _terms(self, theta: Array) -> tuple[float, Array]:
        """k and h, (N,)."""
        beta, t, budget, e = self._parts(theta)
        h = self.linear + (2.0 * self.weight * t * self.s.const) @ self.s.terms + e @ self.rows.terms
        h[self.place] += beta * self.z.const
        squares = t * self.s.const**2 + 1.0 / (16.0 * t)
        return float(self.const + self.weight @ squares + e @ self.rows.const + budget * self.budget), h

    @np.errstate(all="ignore")
    def proven(self, found: Multipliers) -> tuple[float, float]:
        r"""An upper bound of the logit that multipliers prove (inf: none), and their lambda: with a budget
        that is smaller by c, it is smaller by lambda c.

        For any L and v, :math:`h x - x M x \le v^2 / 4 + |h - L v| |x| + |x| |M - L L^T| |x|`, so nothing
        rests on how L and v were found. Each sum is off by at most a slack times the sum of its absolute
        terms over the box; in x L L^T x those are at most the square of ``spread``.
        """
        theta, reach = self._taken(found), self.reach
        beta, t, budget, e = self._parts(theta)
        positive = np.concatenate([t, [budget]]).min() > 0.0 and e.min() >= 0.0
        m = self._matrix(theta)
        factor = _factor(m) if positive and np.max(e[self.alphas], initial=0.0) <= 1.0 else None
        if factor is None:
            return math.inf, budget
        k, h = self._terms(theta)
        v = _solved(factor, h)
        if v is None:
            return math.inf, budget
        rest, off, length = np.abs(h - factor @ v), np.abs(m - factor @ factor.T), np.sqrt(v @ v)
        spread, outputs = np.sqrt(np.diag(m)) @ reach, reach[self.place]
        sizes = self.const_size + e @ self.rows.size + np.abs(beta) @ (outputs * (outputs + self.z.size))
        sizes += self.weight @ (t * self.s.size**2 + 1.0 / t) + np.abs(h) @ reach + (spread + length) ** 2
        sizes += budget * (self.budget + self.square @ reach[: self.d] ** 2)
        slack = 8.0 * (self.p.slacks.line + gamma(4 * len(theta) + 64))
        bound = k + 0.25 * length**2 + rest @ reach + reach @ off @ reach + slack * sizes + TINY
        return (float(bound) if bound < math.inf else math.inf), budget

    def _taken(self, found: Multipliers) -> Array:
        """This node's multipliers, as one vector, of those by what they belong to."""
        units, signs = tuple(self.units.T), tuple(self.signs.T)
        first = found.beta[units], found.last[self.rising], [found.budget]
        rows = found.above[units], found.over[units], found.sign[signs], found.sides.ravel()
        return np.concatenate([*first, *rows, found.last[self.falling]])

    def _given(self, theta: Array, barrier: float) -> Multipliers:
        """The opposite."""
        beta, above, over, sign, last = (np.full(self.p.biases.shape, math.nan) for _ in range(5))
        m, units = len(self.units), tuple(self.units.T)
        beta[units], last[-1, self.rising], budget, e = self._parts(theta)
        parts = np.split(e, np.cumsum([m, m, len(self.signs), 2 * self.d]))
        above[units], over[units], sign[tuple(self.signs.T)], sides, last[-1, self.falling] = parts
        return Multipliers(beta, above, over, sign, last[-1], sides.reshape(2, -1), budget, barrier)

    # good multipliers

    def _start(self, given: Multipliers | None) -> tuple[Array, float]:
        """Multipliers and barrier that Newton's method starts with: another node's, and those that are in
        proportion to usual values of what they belong to."""
        barrier = FIRST * self.room / self.count if given is None else given.barrier
        squares = self.usual**2
        e = barrier / (np.sqrt(self.rows.terms**2 @ squares) + np.abs(self.rows.const) + TINY)
        e[self.alphas] = 0.5
        beta = self.room / (len(squares) * squares[self.place])
        t = 0.25 / (np.sqrt(self.s.terms**2 @ squares) + np.abs(self.s.const) + TINY)
        theta = np.concatenate([beta, t, [self.room / self.budget], e])
        if given is not None:
            had = self._taken(given)
            theta = np.where(np.isnan(had), theta, had)
        (beta, t, _, _), deep = self._parts(theta), len(self.p.widths) - self.units[:, 0]
        for _ in range(STEPS):
            if _factor(self._matrix(theta)) is not None:
                break
            beta *= 1.2 ** (deep - 1)  # each layer bears the next one
            t *= 0.8
            theta[len(beta) + len(t)] *= 1.2 ** (len(self.p.widths) - 1)
        return theta, barrier

    def _at(self, theta: Array) -> _Point | None:
        """What multipliers amount to; None where M is not positive definite."""
        m = self._matrix(theta)
        factor = _factor(m)
        if factor is None:
            return None
        k, h = self._terms(theta)
        x = _solved(m, 0.5 * h)
        if x is None:
            return None
        return _Point(theta, k + 0.5 * float(h @ x), factor, 2.0 * float(np.log(np.diag(factor)).sum()), x)

    def _merit(self, here: _Point, barrier: float) -> float:
        """The bound with the barrier, which Newton's method makes small."""
        _, t, _, e = self._parts(here.theta)
        logs = np.log(e).sum() + np.log(t).sum() + np.log1p(-e[self.alphas]).sum()
        return here.bound - barrier * (here.volume + float(logs))

    @np.errstate(all="ignore")
    def guess(
        self, need: float, given: Multipliers | None = None, late: Callable[[], bool] = lambda: False
    ) -> Guess | None:
        """Good multipliers, by Newton's method; it ends once the bound is below ``need`` or is not going to
        be, or where it is ``late``. None where nothing is found."""
        theta, barrier = self._start(given)
        here, curved, centred = self._at(theta), barrier, None
        best = here
        for _ in range(STEPS if given is None else STEPS_WARM):
            if here is None or best is None or here.bound < need or late():
                break
            there, fall = self._step(here, barrier, curved)
            if there is None:
                break
            here, curved = there, barrier
            best = here if here.bound < best.bound else best
            if fall < CENTRED * barrier:
                centred = self._given(here.theta, barrier)
                if here.bound - HOPELESS * barrier * self.count > need:
                    break
                barrier *= LESS
        if here is None or best is None:
            return None
        found = self._given(best.theta, barrier)
        return Guess(
            best.bound, found, centred, self._lost(here), self._away(here, barrier), here.x[: self.d]
        )

    def _step(self, here: _Point, barrier: float, curved: float) -> tuple[_Point | None, float]:
        """The next point, None where there is none, and how fast the merit falls towards it."""
        try:
            step, fall = self._newton(here, barrier, curved)
        except np.linalg.LinAlgError:
            return None, 0.0
        return self._along(here, step, fall, barrier), fall

    def _along(self, here: _Point, step: Array, fall: float, barrier: float) -> _Point | None:
        """The first point on the way back from a whole step that is allowed and good enough, or None."""
        (_, t, _, e), (_, dt, _, de) = self._parts(here.theta), self._parts(step)
        left = np.concatenate([t, e, 1.0 - e[self.alphas]])
        spent = -np.concatenate([dt, de, -de[self.alphas]])
        share = min(1.0, 0.95 * float(np.min(left[spent > 0.0] / spent[spent > 0.0], initial=math.inf)))
        merit = self._merit(here, barrier)
        while share > COARSE:
            there = self._at(here.theta + share * step)
            if there is not None and self._merit(there, barrier) <= merit - 0.1 * share * fall:
                return there
            share *= 0.6 if there is not None else 0.42
        return None

    def _newton(self, here: _Point, barrier: float, curved: float) -> tuple[Array, float]:
        r"""A step of Newton's method, and how fast the merit falls along it.

        With primes for derivatives by multipliers v and w, :math:`h M^{-1} h / 4` has the curvature
        :math:`2 r_v M^{-1} r_w, r = h' / 2 - M' x`, and :math:`-\log \det M` has
        :math:`tr(M^{-1} M'_v M^{-1} M'_w)`; that counts ``curved`` times, the barrier of the step before. M
        is the same for all e, which are eliminated.
        """
        (_, t, _, e), x, d, m, o = self._parts(here.theta), here.x, self.d, len(self.units), self.weight
        back = np.linalg.inv(here.factor)
        inverse, units, rows, q = back.T @ back, np.arange(m), self.rows.terms, self.square
        z, a, s = self.z.at(x), x[self.place], self.s.at(x)
        over, of_s, levers = self.over @ inverse, self.s.terms @ inverse, inverse[:d, :d]
        slope = np.empty(m + len(o) + 1)
        slope[:m] = a * (z - a) - barrier * over[units, self.place]
        slope[m:-1] = (
            o * (s**2 + barrier * (of_s * self.s.terms).sum(axis=1) - 1.0 / (16.0 * t**2)) - barrier / t
        )
        slope[-1] = self.budget - q @ (x[:d] ** 2 + barrier * np.diag(levers))
        slope_e, bend_e = self.rows.at(x) - barrier / e, curved / e**2
        slope_e[self.alphas] += barrier / (1.0 - e[self.alphas])
        bend_e[self.alphas] += curved / (1.0 - e[self.alphas]) ** 2
        r = np.zeros((len(slope), len(x)))
        r[:m] = 0.5 * a[:, None] * self.z.terms
        r[units, self.place] += 0.5 * z - a
        r[m:-1] = (o * s)[:, None] * self.s.terms
        r[-1, :d] = -q * x[:d]
        wide = np.linalg.inv(here.factor @ here.factor.T + 0.5 * (rows.T / bend_e) @ rows)
        volume, cross, with_s = np.empty((len(slope), len(slope))), over[:, self.place], of_s[:, self.place]
        own = inverse[self.place]
        volume[:m, :m] = 0.5 * (own[:, self.place] * (over @ self.over.T) + cross * cross.T)
        volume[m:-1, m:-1] = np.outer(o, o) * (of_s @ self.s.terms.T) ** 2
        volume[m:-1, :m] = -o[:, None] * with_s * (of_s @ self.over.T)
        volume[-1, :m] = (own[:, :d] * over[:, :d]) @ q
        volume[-1, m:-1] = -o * (of_s[:, :d] ** 2 @ q)
        volume[-1, -1] = q @ levers**2 @ q
        volume[:m, m:-1], volume[:-1, -1] = volume[m:-1, :m].T, volume[-1, :-1]
        bend = 2.0 * r @ wide @ r.T + curved * volume
        inner = np.arange(m, len(slope) - 1)
        bend[inner, inner] += o / (8.0 * t**3) + curved / t**2

        def settled(y: Array) -> Array:
            """(diag(bend_e) + rows M^-1 rows^T / 2)^-1 y."""
            return (y - 0.5 * rows @ (wide @ (rows.T @ (y / bend_e)))) / bend_e

        first = -np.linalg.solve(bend, slope - r @ (inverse @ (rows.T @ settled(slope_e))))
        second = -settled(slope_e + rows @ (inverse @ (r.T @ first)))
        return np.concatenate([first, second]), -float(slope @ first + slope_e @ second)

    def _lost(self, here: _Point) -> Array:
        """See :class:`Guess`."""
        (beta, t, _, e), x, made = self._parts(here.theta), here.x, np.zeros(self.p.biases.shape)
        z, a, s, falls = self.z.at(x), x[self.place], self.s.at(x), self.falls.at(x)
        made[tuple(self.units.T)] = np.abs(beta * a * (z - a))
        made[-1, self.rising] = self.weight * (0.5 * s + t * s**2 + 1.0 / (16.0 * t) - np.maximum(s, 0.0))
        made[-1, self.falling] = e[self.alphas] * falls - np.minimum(falls, 0.0)  # falls have weights below 0
        return made

    def _away(self, here: _Point, barrier: float) -> Array:
        """See :class:`Guess`."""
        made = np.zeros(self.p.biases.shape)
        for where, forms in (
            (tuple(self.units.T), self.z),
            ((-1, self.rising), self.s),
            ((-1, self.falling), self.falls),
        ):
            spread = _solved(here.factor, forms.terms.T)
            if spread is not None:
                made[where] = np.abs(forms.at(here.x)) / (np.sqrt(barrier * (spread**2).sum(axis=0)) + TINY)
        return made


def _factor(m: Array) -> Array | None:
    """The factor of Cholesky, None where m is not positive definite."""
    try:
        return np.asarray(np.linalg.cholesky(m), dtype=np.float64) if np.isfinite(m).all() else None
    except np.linalg.LinAlgError:
        return None


def _solved(m: Array, y: Array) -> Array | None:
    """The solution x of m x = y, None where there is none in doubles."""
    try:
        return np.asarray(np.linalg.solve(m, y), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None
