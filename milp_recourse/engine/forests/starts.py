"""Good actions for an ensemble, found quickly: climb to acceptance, pull back, exchange. Nothing is proven.

The deployed score decides whether a point is accepted. Sums along an axis stand in for it only where they are
clear of the threshold by more than rounding.

w are the applicant's :class:`~milp_recourse.engine.forests.tree_arrays.TreeArrays`; x (axes,) is a point, a
cell of each axis, which functions move; i and j number axes, c cells. Where they occur, values (trees,) are
the trees' values at x, and sums (cells,) what :func:`~milp_recourse.engine.forests.tree_arrays.sums_along`
fills in.
"""

from __future__ import annotations

import numpy as np

from milp_recourse.engine.compiling import counting as compiled
from milp_recourse.engine.compiling import counting_entry as entry
from milp_recourse.engine.forests.factors import Ints
from milp_recourse.engine.forests.tree_arrays import (
    TreeArrays,
    deployed,
    summed,
    sums_along,
    update_values,
    values_at,
)
from milp_recourse.problem.options import NEVER, Clock


@entry
def cost_of(w, x):
    """What a point costs."""
    total, widest = 0.0, 0.0
    for i in range(len(x)):
        total += w.added[x[i]]
        widest = max(widest, w.widest[x[i]])
    return total + widest


@compiled
def moved(w, x):
    """How many axes are in cells that cost anything."""
    count = 0
    for i in range(len(x)):
        count += w.added[x[i]] + w.widest[x[i]] > 0.0
    return count


@compiled
def _needed(w):
    """What the sum of the trees' values has to be above, rounding aside."""
    return w.threshold * len(w.root) if w.mean else w.threshold


@compiled
def _climb(w, x, greedy):
    """Move one axis at a time to where most score is gained (per cost, if greedy), after too many moves have
    been taken back; returns whether the point becomes accepted."""
    axes, values, sums = len(x), np.empty(len(w.root)), np.empty(len(w.added))
    needed = _needed(w)
    values_at(w, x, values)
    for _ in range(4 * axes + 8):
        count = moved(w, x)
        if count <= w.most and deployed(w, values) > w.threshold:
            return True
        score = summed(w, values)
        best, at, cell = -np.inf if count > w.most else 0.0, -1, -1
        for i in range(axes):
            sums_along(w, x, i, values, sums)
            now = w.added[x[i]] + w.widest[x[i]]
            if count > w.most:
                if now > 0.0 and sums[w.start[i]] > best:
                    best, at, cell = sums[w.start[i]], i, w.start[i]
                continue
            if count == w.most and now == 0.0:
                continue
            for c in range(w.axis_from[i], w.axis_from[i + 1]):
                if sums[c] > score + w.error:
                    gain = min(sums[c], needed + 2.0 * w.error) - score
                    paid = max(w.added[c] + w.widest[c] - now, 0.0) + 1e-9
                    worth = gain / paid if greedy else sums[c] - score
                    if worth > best:
                        best, at, cell = worth, i, c
        if at < 0:
            return False
        x[at] = cell
        update_values(w, x, at, values)
    return moved(w, x) <= w.most and deployed(w, values) > w.threshold


@compiled
def _cheapest(w, x, i, values, sums, limit):
    """The cheapest cell of axis i that costs less than ``limit`` and with which the point is accepted, the
    other axes held; -1 for none. Shapes: values (trees,), sums (cells,)."""
    sums_along(w, x, i, values, sums)
    needed, before = _needed(w), x[i]
    best, at, moved = limit, -1, False
    for c in range(w.axis_from[i], w.axis_from[i + 1]):
        cost = w.added[c] + w.widest[c]
        if cost < best and sums[c] > needed - w.error:
            good = sums[c] > needed + w.error
            if not good:
                x[i], moved = c, True
                update_values(w, x, i, values)
                good = deployed(w, values) > w.threshold
            if good:
                best, at = cost, c
    if moved:
        x[i] = before
        update_values(w, x, i, values)
    return at


@compiled
def _pull(w, x, order, values, sums):
    """Move every axis in turn, in the order (axes,), to its cheapest accepted cell, until nothing changes.
    Shapes: values (trees,), sums (cells,)."""
    changed = True
    while changed:
        changed = False
        for n in range(len(order)):
            i = order[n]
            if x[i] == w.start[i]:
                continue
            c = _cheapest(w, x, i, values, sums, w.added[x[i]] + w.widest[x[i]])
            if c >= 0:
                x[i], changed = c, True
                update_values(w, x, i, values)


@compiled
def _exchange(w, x, values, sums):
    """Take back all or part of one axis' move and make up for it on another axis; returns whether that made
    the point cheaper. Shapes: values (trees,), sums (cells,)."""
    axes = len(x)
    cost = cost_of(w, x)
    for i in range(axes):
        if x[i] == w.start[i]:
            continue
        old = np.int64(x[i])
        towards = 1 if w.start[i] > old else -1
        for how in range(3):
            c = np.int64(w.start[i]) if how == 0 else old + towards if how == 1 else (w.start[i] + old) // 2
            if c == old or (how and c == w.start[i]):
                continue
            x[i] = c
            update_values(w, x, i, values)
            for j in range(axes):
                if j == i:
                    continue
                before = x[j]
                x[j] = w.start[j]
                room = cost - cost_of(w, x) + w.added[x[j]] + w.widest[x[j]]
                full = moved(w, x) >= w.most
                x[j] = before
                if room <= 0.0 or full:
                    continue
                better = _cheapest(w, x, j, values, sums, room * (1.0 - 1e-12))
                if better >= 0:
                    x[j] = better
                    if cost_of(w, x) < cost * (1.0 - 1e-12):
                        update_values(w, x, j, values)
                        return True
                    x[j] = before
            x[i] = old
        update_values(w, x, i, values)
    return False


@compiled
def _polish(w, x, order):
    """Pull an accepted point back and exchange moves, until neither makes it cheaper. Shape: order
    (axes,)."""
    values, sums = np.empty(len(w.root)), np.empty(len(w.added))
    values_at(w, x, values)
    _pull(w, x, order, values, sums)
    for _ in range(20):
        if not _exchange(w, x, values, sums):
            break
        _pull(w, x, order, values, sums)


@entry
def _search(w, starts, first, end, best, cost, order):
    """The cheapest accepted point after the tries of these numbers, and its cost; see :func:`good_point`.

    ``best``, ``cost`` and ``order`` are what the tries before have left. Shapes: starts (starts, axes), best,
    order (axes,).
    """
    if first == 0:
        np.random.seed(0)
    axes = len(w.start)
    for n in range(first, end):
        x, accepted = _begin(w, starts, best, cost, n)
        if not accepted:
            continue
        if n % 2:
            for i in range(axes - 1, 0, -1):
                j = np.random.randint(i + 1)
                order[i], order[j] = order[j], order[i]
        else:
            order[:] = np.argsort(-(w.added[x] + w.widest[x]))
        _polish(w, x, order)
        now = cost_of(w, x)
        if now < cost:
            best, cost = x, now
    return best, cost


@compiled
def _begin(w, starts, best, cost, n):
    """The point that try n begins with, and whether it is accepted. Shapes: starts (starts, axes), best
    (axes,).

    The first tries climb from the given points, the next two from the cheapest point, later ones from the
    best point, perturbed, or, while there is none, from a random one.
    """
    x = w.start.copy()
    if n < len(starts):
        x[:] = starts[n]
        return x, _climb(w, x, True)
    if n < len(starts) + 2:
        return x, _climb(w, x, n == len(starts))
    if cost < np.inf:
        x[:] = best
        for _ in range(2):
            i = np.random.randint(len(x))
            x[i] = w.start[i]
            if np.random.random() < 0.5:
                x[i] = np.random.randint(w.axis_from[i], w.axis_from[i + 1])
        return x, _climb(w, x, True)
    for i in range(len(x)):
        x[i] = np.random.randint(w.axis_from[i], w.axis_from[i + 1])
    return x, _climb(w, x, False)


def good_point(w: TreeArrays, starts: Ints, kicks: int, clock: Clock = NEVER) -> tuple[Ints, float]:
    """The cheapest accepted point found from some points and by climbing; its cost, inf without one.

    Parameters
    ----------
    starts
        Points that are thought to be accepted, (n, axes).
    kicks
        How often the best is perturbed, or, while there is none, how many random points are climbed from;
        -2 leaves out the climbs from the cheapest point as well.
    clock
        No more is tried once it has ended.
    """
    tries = len(starts) + 2 + kicks
    each = tries if clock.end is None else 1
    point, cost, order = w.start.copy(), np.inf, np.arange(len(w.start))
    for first in range(0, tries, each):
        point, cost = _search(w, starts, first, first + each, point, cost, order)
        if clock.over:
            break
    return point, float(cost)


def polished(w: TreeArrays, x: Ints) -> tuple[Ints, float]:
    """The accepted point that climbing and pulling back make of a point, and its cost; inf if the climb gets
    stuck."""
    return good_point(w, x[None], -2)  # no try but the first
