"""Good actions for an ensemble, quickly: climb to acceptance, pull back, exchange. Proves nothing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.forests.axes import Axis
from milp_recourse.forests.compiling import compiled
from milp_recourse.forests.factors import Array, Ints, cell_masks
from milp_recourse.forests.table import BITS, LeafTable

Cells = NDArray[np.int32]


class Points(NamedTuple):
    """What it takes to score and price points, as arrays.

    Attributes
    ----------
    axis_from
        First cell of each axis, (axes + 1,); a point holds a cell per axis, numbered among all cells.
    masks
        Leaves that each cell meets, (cells, words of all trees).
    full
        All leaves, (words,).
    value
        Values of leaves by word and bit, (words, 32).
    base, mean, single
        What the sum starts from; whether it is divided by the trees' number; whether it is taken in float32.
    trees, threshold
        Their number; the score must be above the threshold.
    added, widest
        Costs of cells: shares of the sum, and of the maximum, which counts ``linf`` times.
    start
        The cheapest cell of every axis.
    """

    axis_from: Ints
    masks: NDArray[np.uint32]
    full: NDArray[np.uint32]
    value: Array
    base: float
    mean: bool
    single: bool
    trees: int
    threshold: float
    added: Array
    widest: Array
    linf: float
    start: Cells


def points(table: LeafTable, axes: list[Axis], linf: float, threshold: float) -> Points:
    """The arrays for a table of leaves over an applicant's axes."""
    axis_from = np.concatenate([[0], np.cumsum([len(a) for a in axes])]).astype(np.int32)
    forest = table.forest
    return Points(
        axis_from,
        cell_masks(table, axes),
        table.full,
        np.ascontiguousarray(table.value[:, 1:]),
        float(forest.base),
        forest.aggregate == "mean",
        forest.sum_dtype == "float32",
        table.trees,
        float(threshold),
        np.concatenate([a.added for a in axes]),
        np.concatenate([a.widest for a in axes]),
        float(linf),
        np.array([a.start for a in axes], dtype=np.int32) + axis_from[:-1],
    )


_ROOM = 37
_BIT = np.zeros(_ROOM, dtype=np.int64)
_BIT[[2**k % _ROOM for k in range(BITS)]] = np.arange(BITS)


@compiled
def _total(p, words, table):  # type: ignore[no-untyped-def]
    """The deployed score of the most valuable leaves among some."""
    per = len(p.full) // p.trees
    single, double = np.float32(p.base), p.base
    for t in range(p.trees):
        best = -np.inf
        for w in range(t * per, (t + 1) * per):
            m = words[w]
            if m:
                low = m & (~m + np.uint32(1))
                v = p.value[w, table[low % np.uint32(37)]]
                best = max(best, v)
        if p.single:
            single = np.float32(single + np.float32(best))
        else:
            double = double + best
    if p.single:
        return float(single / np.float32(p.trees)) if p.mean else float(single)
    return double / p.trees if p.mean else double


@compiled
def _score(p, x, table):  # type: ignore[no-untyped-def]
    words = p.full.copy()
    for i in range(len(x)):
        for w in range(len(words)):
            words[w] &= p.masks[x[i], w]
    return _total(p, words, table)


@compiled
def _rest(p, x, i, words):  # type: ignore[no-untyped-def]
    """Leaves that a point meets whatever its cell on axis i."""
    words[:] = p.full
    for j in range(len(x)):
        if j != i:
            for w in range(len(words)):
                words[w] &= p.masks[x[j], w]


@compiled
def price_of(p, x):  # type: ignore[no-untyped-def]
    """What a point costs."""
    total, widest = 0.0, 0.0
    for i in range(len(x)):
        total += p.added[x[i]]
        widest = max(widest, p.widest[x[i]])
    return total + p.linf * widest


@compiled
def _climb(p, x, greedy, table):  # type: ignore[no-untyped-def]
    """Move one axis at a time to where most score is gained (per cost, if greedy) until accepted."""
    axes, size = len(x), len(p.full)
    words, here = np.empty(size, np.uint32), np.empty(size, np.uint32)
    score = _score(p, x, table)
    for _ in range(4 * axes + 8):
        if score > p.threshold:
            return True
        best, at, cell, reached = 0.0, -1, -1, score
        for i in range(axes):
            _rest(p, x, i, words)
            now = p.added[x[i]] + p.linf * p.widest[x[i]]
            for c in range(p.axis_from[i], p.axis_from[i + 1]):
                if c == x[i]:
                    continue
                for w in range(size):
                    here[w] = words[w] & p.masks[c, w]
                s = _total(p, here, table)
                if s > score:
                    gain = min(s, p.threshold) - score + 1e-12
                    paid = max(p.added[c] + p.linf * p.widest[c] - now, 0.0) + 1e-9
                    worth = gain / paid if greedy else s - score
                    if worth > best:
                        best, at, cell, reached = worth, i, c, s
        if at < 0:
            return False
        x[at], score = cell, reached
    return score > p.threshold


@compiled
def _cheapest(p, words, i, here, table, limit):  # type: ignore[no-untyped-def]
    """The cheapest accepted cell of axis i below a limit, given the leaves met otherwise; or -1."""
    best, at = limit, -1
    for c in range(p.axis_from[i], p.axis_from[i + 1]):
        dear = p.added[c] + p.linf * p.widest[c]
        if dear < best:
            for w in range(len(words)):
                here[w] = words[w] & p.masks[c, w]
            if _total(p, here, table) > p.threshold:
                best, at = dear, c
    return at


@compiled
def _pull(p, x, order, table):  # type: ignore[no-untyped-def]
    """Every axis in turn to its cheapest accepted cell until nothing changes."""
    size = len(p.full)
    words, here = np.empty(size, np.uint32), np.empty(size, np.uint32)
    changed = True
    while changed:
        changed = False
        for n in range(len(order)):
            i = order[n]
            if x[i] == p.start[i]:
                continue
            _rest(p, x, i, words)
            c = _cheapest(p, words, i, here, table, p.added[x[i]] + p.linf * p.widest[x[i]])
            if c >= 0:
                x[i], changed = c, True


@compiled
def _exchange(p, x, table):  # type: ignore[no-untyped-def]
    """Give up (part of) one move and make up for it on another axis; whether it got cheaper."""
    axes, size = len(x), len(p.full)
    words, here = np.empty(size, np.uint32), np.empty(size, np.uint32)
    cost = price_of(p, x)
    for i in range(axes):
        if x[i] == p.start[i]:
            continue
        old = np.int64(x[i])
        towards = 1 if p.start[i] > old else -1
        for how in range(3):
            c = np.int64(p.start[i]) if how == 0 else old + towards if how == 1 else (p.start[i] + old) // 2
            if c == old or (how and c == p.start[i]):
                continue
            x[i] = c
            for j in range(axes):
                if j == i:
                    continue
                was = x[j]
                x[j] = p.start[j]
                room = cost - price_of(p, x) + p.added[x[j]] + p.linf * p.widest[x[j]]
                x[j] = was
                if room <= 0.0:
                    continue
                _rest(p, x, j, words)
                better = _cheapest(p, words, j, here, table, room * (1.0 - 1e-12))
                if better >= 0:
                    x[j] = better
                    if price_of(p, x) < cost * (1.0 - 1e-12):
                        return True
                    x[j] = was
            x[i] = old
    return False


@compiled
def _settle(p, x, order, table):  # type: ignore[no-untyped-def]
    _pull(p, x, order, table)
    for _ in range(20):
        if not _exchange(p, x, table):
            break
        _pull(p, x, order, table)


@compiled
def _search(p, starts, kicks, seed, table):  # type: ignore[no-untyped-def]
    np.random.seed(seed)
    axes = len(p.start)
    best, cost = p.start.copy(), np.inf
    order = np.arange(axes)
    rows = len(starts)
    for n in range(rows + 2 + kicks):
        if n < rows:
            x = starts[n].copy()
            if not _score(p, x, table) > p.threshold:
                continue
        elif n < rows + 2:
            x = p.start.copy()
            if not _climb(p, x, n == rows, table):
                continue
        elif cost < np.inf:
            x = best.copy()
            for _ in range(2):
                i = np.random.randint(axes)
                x[i] = p.start[i]
                if np.random.random() < 0.5:
                    x[i] = np.random.randint(p.axis_from[i], p.axis_from[i + 1])
            if not _climb(p, x, True, table):
                continue
        else:
            x = p.start.copy()
            for i in range(axes):
                x[i] = np.random.randint(p.axis_from[i], p.axis_from[i + 1])
            if not _climb(p, x, False, table):
                continue
        if n % 2:
            for i in range(axes - 1, 0, -1):
                j = np.random.randint(i + 1)
                order[i], order[j] = order[j], order[i]
        else:
            order = np.argsort(-(p.added[x] + p.linf * p.widest[x]))
        _settle(p, x, order, table)
        now = price_of(p, x)
        if now < cost:
            best, cost = x, now
    return best, cost


def good_point(p: Points, starts: Cells, kicks: int, seed: int = 0) -> tuple[Cells, float]:
    """The cheapest accepted point found from some points and by climbing; its cost, inf without one.

    Parameters
    ----------
    starts
        Points that are thought to be accepted, (n, axes).
    kicks
        How often the best is perturbed, or, while there is none, how many random points are climbed from.
    """
    point, cost = _search(p, starts, kicks, seed, _BIT)
    return point, float(cost)


def settled(p: Points, x: Cells) -> tuple[Cells, float]:
    """A point, climbed to acceptance if need be and pulled back; cost inf where the climb gets stuck."""
    x = x.copy()
    if not _climb(p, x, True, _BIT):
        return x, np.inf
    _settle(p, x, np.argsort(-(p.added[x] + p.linf * p.widest[x])), _BIT)
    return x, float(price_of(p, x))
