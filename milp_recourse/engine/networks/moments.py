r"""A semidefinite relaxation of products of forms, and a primal-dual interior-point method for it.

Of y = (1, x), (n,), some forms F y are at least 0, as are some products of two of them; other products are 0,
and the squares of x are paid from a budget:

.. math:: \max\; l y + \tfrac12 \sum_i \sqrt{w_i}\, |F_i y| + \sum_c \min(0, F_c y) \quad s.t. \quad
          F_a y \ge 0,\; (F_a y) (F_b y) = 0 \text{ or } \ge 0,\; \textstyle\sum_j q_j y_j^2 \le C.

The relaxation has a positive semidefinite matrix Y, (n, n), in place of y y^T, with :math:`Y_{00} = 1`. Its
dual has a multiplier for each of these, and with :math:`\sqrt{w} |s| / 2 \le t s^2 + w / (16 t)` is

.. math:: \min\; \tau + \sum_i \frac{w_i}{16 t_i} \quad s.t. \quad Z = \tau E - \tfrac12 (e_0 (l + e F)^T +
          (l + e F) e_0^T) - \tfrac12 \sum \theta_{ab} (F_a F_b^T + F_b F_a^T) + \lambda (diag(q) - C E)
          \succeq 0

where E is 1 in its first place and 0 elsewhere; e, lambda, and theta of products that are at least 0, are not
negative, t is positive, and e is at most 1 for the forms :math:`F_c`. Directions are those of Helmberg,
Rendl, Vanderbei and Wolkowicz (1996, https://doi.org/10.1137/0806020), with corrections as Mehrotra's (1992,
https://doi.org/10.1137/0802028). Nothing rests on how good the multipliers are: what they prove is computed
by :meth:`~milp_recourse.engine.networks.semidefinite.Relaxation.proven`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.compiling import entry

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

STEPS = 60
"""Most steps."""

COLD_DUAL, COLD_PRIMAL = 0.1, 10.0
"""Z and Y begin as multiples of the unit matrix, the first in what the objective is measured in."""

SLACK = 0.2
"""The least that a product, or a row, begins with, as a share of its size."""

EARLIER = 30.0
"""Another program begins with the Y of the last step whose gap was so many times what the bound ends above
what is needed."""

INSIDE, SHORTER, TRIES = 0.95, 0.8, 40
"""How much of the longest step is taken, what lengths that are tried are multiplied by, and how many."""

CENTRING, STUCK = 0.8, 1e-3
"""The share of the gap that is kept where steps are short; and below which length of a step none follows,
whose square is also the least share that is kept."""


@dataclass(frozen=True)
class Program:
    """What is to be relaxed.

    Attributes
    ----------
    forms
        F, (f, n). The first ``own`` are multiples of the coordinates ``columns``, (own,).
    left, right
        The forms whose products are of interest, (K,): of the first ``own`` these are 0, then follow squares,
        one for each of ``weights``, and then those at least 0.
    rows, capped
        How many of the first forms have multipliers e; they are at least 0, but for those that add
        min(0, F y) to the objective, so that their multipliers are at most 1.
    linear, squares, budget
        l, (n,), q, (n,), and C.
    unit
        What the objective is measured in.
    """

    forms: Array
    own: int
    columns: Indices
    left: Indices
    right: Indices
    weights: Array
    rows: int
    capped: slice
    linear: Array
    squares: Array
    budget: float
    unit: float


class Start(NamedTuple):
    """What a method can begin with: Y, (n, n), multipliers of products that are 0, (own,), and the mean of
    complementary products before the step that led there."""

    moments: Array
    free: Array
    mean: float


class Multipliers(NamedTuple):
    """theta of products, (K,), lambda of the budget, and e of rows, (rows,)."""

    products: Array
    budget: float
    rows: Array


class Solution(NamedTuple):
    """What a method ends with: multipliers, Y, and what others can begin with."""

    multipliers: Multipliers
    moments: Array
    start: Start


class _Step(NamedTuple):
    """Changes of theta, lambda, tau, e, Z, Y and slacks."""

    theta: Array
    budget: float
    tau: float
    rows: Array
    dual: Array
    primal: Array
    slacks: Array


class Method:
    """The method's state: multipliers, Z (``dual``), Y (``primal``) and slacks."""

    def __init__(self, program: Program, start: Start | None = None) -> None:
        p = self.p = program
        self.n = p.forms.shape[1]
        self.kinks = slice(p.own, p.own + len(p.weights))
        self.positive = slice(self.kinks.stop, len(p.left))
        self.paid = -p.squares
        self.paid[0] = p.budget
        others = np.unique(np.concatenate([p.left[p.own :], p.right]))
        others = others[others >= p.own]
        place = np.arange(len(p.forms))
        place[others] = p.own + np.arange(len(others))
        self.left, self.right = place[p.left], place[p.right]
        self.used = np.vstack([p.forms[: p.own], p.forms[others]])
        self.scale = p.forms[np.arange(p.own), p.columns]
        self.certain = False  # whether Z is what the multipliers make it, or that is positive definite, too
        if start is None:
            self._cold()
        else:
            self._warm(start)
        self.slacks = self.mean / self._bounded()

    def _cold(self) -> None:
        p, unit = self.p, COLD_DUAL * self.p.unit
        sizes = np.sqrt((p.forms**2).sum(axis=1))
        self.theta = unit / (sizes[p.left] * sizes[p.right])
        self.theta[: p.own] = 0.0
        self.theta[self.kinks] = 0.25 * np.sqrt(p.weights) / sizes[p.left[self.kinks]]
        self.rows, self.lam, self.tau = unit / sizes[: p.rows], unit / p.budget, unit
        self.rows[p.capped] = 0.5
        self.dual, self.primal = unit * np.eye(self.n), COLD_PRIMAL * np.eye(self.n)
        self.mean = COLD_PRIMAL * unit

    def _warm(self, start: Start) -> None:
        """Complementary products are all the same, and what Y does not meet is made up."""
        p, y, mean = self.p, start.moments, start.mean
        self.primal, self.mean, self.dual = y, mean, np.asarray(mean * np.linalg.inv(y), dtype=np.float64)
        rows = p.forms @ y[0]
        sizes = np.sqrt(np.einsum("ij,ij->i", p.forms @ y, p.forms))
        products = self.of(y)
        least = SLACK * (sizes[p.left] * sizes[p.right])[self.positive]
        at_least = mean / np.maximum(products[self.positive], least)
        kinks = 0.25 * np.sqrt(p.weights / products[self.kinks])
        self.theta = np.concatenate([start.free, kinks, at_least])
        self.rows = mean / np.maximum(rows[: p.rows], SLACK * sizes[: p.rows])
        far = rows[p.capped]  # e s = (1 - e) s' = mean, s - s' = far
        larger = 0.5 * (2.0 * mean + np.abs(far) + np.sqrt(far**2 + 4.0 * mean**2))
        self.rows[p.capped] = np.where(far > 0.0, mean / larger, 1.0 - mean / larger)
        self.lam = mean / max(products[-1], SLACK * p.budget)
        self.tau = self.dual[0, 0] - self._dual(self.theta, self.lam, self.rows, 0.0, p.linear)[0, 0]

    def _joined(self, theta: Array, lam: float, rows: Array, one: float) -> Array:
        """What is at least 0 and has a slack: e, theta of products, lambda, and what is left of caps."""
        return np.concatenate([rows, theta[self.positive], [lam], one - rows[self.p.capped]])

    def _bounded(self) -> Array:
        return self._joined(self.theta, self.lam, self.rows, 1.0)

    def _dual(self, theta: Array, lam: float, rows: Array, tau: float, linear: Array) -> Array:
        """Z of multipliers."""
        by, own = np.zeros_like(self.used), self.p.own
        _weigh(self.used, self.left, self.right, theta, by)
        made: Array = self.used[own:].T @ by[own:]
        made[self.p.columns] += self.scale[:, None] * by[:own]
        first = 0.5 * (linear + rows @ self.p.forms[: len(rows)])
        made[0] -= first
        made[:, 0] -= first
        made.ravel()[:: self.n + 1] -= lam * self.paid
        made[0, 0] += tau
        return made

    def made(self) -> Array:
        """Z of the multipliers."""
        return self._dual(self.theta, self.lam, self.rows, self.tau, self.p.linear)

    def times(self, y: Array) -> Array:
        """Used forms times a symmetric matrix, (u, n)."""
        own = self.p.own
        return np.vstack([self.scale[:, None] * y[self.p.columns], self.used[own:] @ y])

    def between(self, by: Array) -> Array:
        """What :meth:`times` gives, between used forms, (u, u)."""
        own = self.p.own
        first = by[:, self.p.columns] * self.scale
        made = np.empty((len(by), len(by)))
        made[:, :own], made[:own, own:] = first, first[own:].T
        made[own:, own:] = by[own:] @ self.used[own:].T
        return made

    def of(self, y: Array, by: Array | None = None) -> Array:
        """What a symmetric matrix says of all products and of the budget; ``by``: :meth:`times` of it."""
        by = self.times(y) if by is None else by
        made = np.empty(len(self.left) + 1)
        _of_products(by, self.used, self.left, self.right, made)
        made[-1] = self.paid @ np.diag(y)
        return made

    @property
    def bound(self) -> float:
        """What the multipliers bound the objective by, if Z is what they make it."""
        return self.tau + float(np.sum(self.p.weights / (16.0 * self.theta[self.kinks])))

    @property
    def gap(self) -> float:
        """The sum of complementary products."""
        return float(np.sum(self.primal * self.dual) + self.slacks @ self._bounded())

    def run(self, need: float, decided: float, late: Callable[[], bool]) -> Solution:
        """Go on until the bound is below ``need``, or the gap is below ``decided`` times what the bound is
        above it, or it is ``late``."""
        path = [(math.inf, self._start())]
        for _ in range(STEPS):
            if late() or not self.step():
                break
            missed, gap = self.bound - need, self.gap
            path.append((gap, self._start()))
            if missed < 0.0 and not self.certain:
                self.certain = cholesky(self.made()) is not None
            if self.certain and (missed < 0.0 or gap < decided * missed):
                break
        enough = EARLIER * (self.bound - need)
        start = next((one for gap, one in reversed(path) if gap >= enough), path[0][1])
        return Solution(Multipliers(self.theta, self.lam, self.rows), self.primal, start)

    def _start(self) -> Start:
        return Start(self.primal, self.theta[: self.p.own], self.mean)

    def step(self) -> bool:
        """Take a step; False if there is none."""
        gap = self.gap
        self.mean = gap / (self.n + len(self.slacks))
        system = _System(self)
        if system.factor is None:
            return False
        there = system.step(0.0, None)
        primal, dual = self._lengths(there)
        after = float(np.sum((self.primal + primal * there.primal) * (self.dual + dual * there.dual)))
        after += float((self.slacks + primal * there.slacks) @ (self._bounded() + dual * self._moved(there)))
        share = min(max(after / gap, STUCK) ** 2, 1.0) if min(primal, dual) > 0.1 else CENTRING
        there = system.step(share * self.mean, there)
        primal, dual = self._lengths(there)
        self.primal, self.slacks = self.primal + primal * there.primal, self.slacks + primal * there.slacks
        self.dual, self.theta = self.dual + dual * there.dual, self.theta + dual * there.theta
        self.rows, self.lam = self.rows + dual * there.rows, self.lam + dual * there.budget
        self.tau += dual * there.tau
        self.certain = self.certain or dual == 1.0
        return max(primal, dual) > STUCK

    def _moved(self, step: _Step) -> Array:
        return self._joined(step.theta, step.budget, step.rows, 0.0)

    def _lengths(self, step: _Step) -> tuple[float, float]:
        """How far Y and slacks, and Z and multipliers, can go."""
        kinks = np.max(-step.theta[self.kinks] / self.theta[self.kinks], initial=0.0)
        dual = max(np.max(-self._moved(step) / self._bounded(), initial=0.0), kinks)
        primal = np.max(-step.slacks / self.slacks, initial=0.0)
        return _length(self.primal, step.primal, float(primal)), _length(self.dual, step.dual, float(dual))


class _System:
    """The equations of a step. Multipliers of rows are eliminated; lambda and tau are the last two."""

    def __init__(self, m: Method) -> None:
        p, y, paid, count = m.p, m.primal, m.paid, len(m.left)
        self.m, self.w = m, _symmetric(np.linalg.inv(m.dual))
        w, y0, w0 = self.w, y[0], self.w[0]
        by, bw = m.times(y), m.times(w)
        h, self.sides = np.zeros((count + 2, count + 2)), np.empty((count + 2, m.n))
        _curvature(m.between(by), m.between(bw), m.left, m.right, h)
        _sides(by, bw, m.left, m.right, paid, self.sides, h)
        h[count, count] = paid @ (y * w) @ paid
        h[count + 1, count:] = -(paid * y0) @ w0, y0[0] * w0[0]
        self.sides[count] = 0.5 * ((paid * y0) @ w + (paid * w0) @ y)
        self.sides[count + 1] = -0.5 * (y0[0] * w0 + w0[0] * y0)
        self.of_w = m.of(w, bw)
        self.ratio = m.slacks / m._bounded()
        rows, products, (of_budget,), caps = self.parts(self.ratio)
        at = np.zeros(count + 2)
        at[m.kinks], at[m.positive] = p.weights / (8.0 * m.theta[m.kinks] ** 3), products
        at[count] = of_budget
        h.ravel()[:: count + 3] += at
        self.bend = rows.copy()
        self.bend[p.capped] += caps
        scaled = p.forms[p.own : p.rows] / np.sqrt(self.bend[p.own :, None])
        spread = scaled.T @ scaled
        spread[p.columns, p.columns] += m.scale**2 / self.bend[: p.own]
        inner = 0.25 * (w0[0] * y + np.outer(w0, y0) + np.outer(y0, w0) + y0[0] * w)
        mixed = np.linalg.inv(np.eye(m.n) + inner @ spread)
        self.inner = mixed @ inner
        h -= self.sides @ (spread @ mixed) @ self.sides.T
        self.factor = cholesky(h)
        self.off, self.off_part, self.of_off = np.zeros_like(y), np.zeros_like(y), np.zeros(count + 1)
        if not m.certain:
            self.off = m.made() - m.dual
            self.off_part = _symmetric(y @ self.off @ w)
            self.of_off = m.of(self.off_part)

    def parts(self, joined: Array) -> list[Array]:
        """The parts of :meth:`Method._joined`."""
        rows, m = self.m.p.rows, self.m
        products = rows + m.positive.stop - m.positive.start
        return np.split(joined, [rows, products, products + 1])

    def _of_rows(self, y: Array) -> Array:
        """e for a right side of rows, if the other multipliers stay."""
        rows = self.m.p.forms[: self.m.p.rows]
        y = y / self.bend
        y -= rows @ (self.inner @ (y @ rows)) / self.bend
        return y

    def step(self, mean: float, before: _Step | None) -> _Step:
        """The step to complementary products of this mean; with corrections for the products of the changes
        of a step ``before``."""
        m, p, y, w = self.m, self.m.p, self.m.primal, self.w
        wanted, second, rows, count = mean / m._bounded(), np.zeros_like(y), p.forms[: p.rows], len(m.left)
        of_base = mean * self.of_w - self.of_off
        if before is not None:
            wanted -= m._moved(before) * before.slacks / m._bounded()
            second = -_symmetric(before.primal @ before.dual @ w)
            of_base = of_base + m.of(second)
        base = mean * w - self.off_part + second
        of_rows, products, (of_budget,), caps = self.parts(wanted)
        right = -np.append(of_base, -base[0, 0])
        right[m.kinks] += p.weights / (16.0 * m.theta[m.kinks] ** 2)
        right[m.positive] += products
        right[count] += of_budget
        right[count + 1] -= 1.0
        of_rows = of_rows - rows @ base[0]
        of_rows[p.capped] -= caps
        right -= self.sides @ (self._of_rows(of_rows) @ rows)
        _substitute(self.factor, right)
        e = self._of_rows(of_rows - rows @ (right @ self.sides))
        theta, lam, tau = right[:count], float(right[count]), float(right[count + 1])
        dual = m._dual(theta, lam, e, tau, np.zeros(m.n)) + self.off
        primal = mean * w - y - _symmetric(y @ dual @ w) + second
        slacks = wanted - m.slacks - self.ratio * m._joined(theta, lam, e, 0.0)
        return _Step(theta, lam, tau, e, dual, primal, slacks)


def ready() -> None:
    """Compile what is compiled, or load it."""
    one, none = np.eye(1), np.zeros(1, np.int64)
    _curvature(one, one, none, none, np.zeros((3, 3)))
    _substitute(one, np.zeros(1))
    _sides(one, one, none, none, np.zeros(1), np.zeros((3, 1)), np.zeros((3, 3)))
    _weigh(one, none, none, np.zeros(1), np.zeros((1, 1)))
    _of_products(one, one, none, none, np.zeros(2))


@entry
def _weigh(forms, left, right, theta, made):
    """Add to made (u, n), for each of products left, right (K,) of forms (u, n), the other form times half
    the negative of theta (K,)."""
    for k in range(len(left)):
        part, a, b = -0.5 * theta[k], left[k], right[k]
        for j in range(forms.shape[1]):
            made[a, j] += part * forms[b, j]
            made[b, j] += part * forms[a, j]


@entry
def _of_products(by, forms, left, right, made):
    """What a matrix says of products left, right (K,) of forms (u, n), into made (K + 1,); by (u, n) is forms
    times the matrix."""
    for k in range(len(left)):
        total, a, b = 0.0, left[k], right[k]
        for j in range(forms.shape[1]):
            total += by[a, j] * forms[b, j]
        made[k] = total


@entry
def _sides(of_y, of_w, left, right, paid, sides, made):
    """What products left, right (K,) of forms amount to with rows, into sides (K + 2, n), and with the
    budget, paid (n,), and tau, into the last two rows of made (K + 2, K + 2), from used forms times Y and
    times the inverse of Z, of_y, of_w (u, n)."""
    count = len(left)
    for k in range(count):
        ya, yb, wa, wb, spent = of_y[left[k]], of_y[right[k]], of_w[left[k]], of_w[right[k]], 0.0
        ya0, yb0, wa0, wb0 = 0.25 * ya[0], 0.25 * yb[0], 0.25 * wa[0], 0.25 * wb[0]
        for j in range(len(paid)):
            sides[k, j] = ya0 * wb[j] + wb0 * ya[j] + yb0 * wa[j] + wa0 * yb[j]
            spent += paid[j] * (ya[j] * wb[j] + yb[j] * wa[j])
        made[count, k], made[count + 1, k] = 0.5 * spent, -8.0 * (ya0 * wb0 + yb0 * wa0)


@entry
def _curvature(of_y, of_w, left, right, made):
    """What pairs of products of forms left, right (K,) amount to, in the lower triangle of made
    (K + 2, K + 2), from what Y and the inverse of Z say of used forms, of_y, of_w (u, u)."""
    for i in range(len(left)):
        a, b = left[i], right[i]
        ya, yb, wa, wb, row = of_y[a], of_y[b], of_w[a], of_w[b], made[i]
        for j in range(i + 1):
            c, d = left[j], right[j]
            row[j] = 0.25 * (ya[c] * wb[d] + yb[d] * wa[c] + ya[d] * wb[c] + yb[c] * wa[d])


@entry
def _substitute(factor, x):
    """Replace x (k,) by the solution of L L^T y = x, L being factor (k, k)."""
    for i in range(len(x)):
        row, rest = factor[i], x[i]
        for j in range(i):
            rest -= row[j] * x[j]
        x[i] = rest / row[i]
    for i in range(len(x) - 1, -1, -1):
        row = factor[i]
        x[i] /= row[i]
        for j in range(i):
            x[j] -= x[i] * row[j]


def _symmetric(m: NDArray[np.floating[Any]]) -> Array:
    """The symmetric part of a matrix."""
    return np.asarray(0.5 * (m + m.T), dtype=np.float64)


def _length(at: Array, step: Array, limit: float) -> float:
    """How much of a step of a positive definite matrix is taken, if 1 / ``limit`` is the most for others."""
    length = min(1.0, INSIDE / limit) if limit > 0.0 else 1.0
    for _ in range(TRIES):
        if cholesky(at + (length if length == 1.0 else length / INSIDE) * step) is not None:
            return length
        length *= SHORTER
    return 0.0


def cholesky(m: Array) -> Array | None:
    """The factor of Cholesky, of the lower triangle; None where m is not positive definite."""
    try:
        factor = np.asarray(np.linalg.cholesky(m), dtype=np.float64)
        # what is no number stays so in all later places
        return factor if np.isfinite(np.diag(factor)).all() else None
    except np.linalg.LinAlgError:
        return None
