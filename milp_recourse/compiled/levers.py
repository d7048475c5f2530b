r"""What one lever does best at given prices, in closed form.

A box is ``lo, hi, mode`` per lever and ``allowed`` per column
(:class:`~milp_recourse.compiled.problem.Problem`).
"""

from __future__ import annotations

import math

from milp_recourse.compiled.layout import (
    COST,
    FIXED,
    GRID,
    HI,
    LABEL,
    LARGEST,
    LINEAR,
    LO,
    MODE,
    SQUARE,
    TOP,
)
from milp_recourse.compiling import compiled

INF = math.inf


@compiled
def respond(p, box, allowed, i, gain, theta, share, choice):
    r"""Minimise :math:`\theta c_i(u) + share \cdot top_i |u| - gain \cdot u` over a lever's box.

    Parameters
    ----------
    gain
        Per column, (P,).
    choice
        Gets the minimiser, (d,): a coordinate, or the label's number.

    Returns
    -------
    float
        The least value; inf where nothing is left.
    """
    s = p.start[i]
    best = INF
    if p.lever[LABEL, i] > 0.0:
        for j in range(s, p.start[i + 1]):
            if allowed[j] != 0:
                v = theta * p.column[COST, j] + share * p.column[TOP, j] - gain[j]
                if v < best:
                    best = v
                    choice[i] = j - s
        return best
    if box[MODE, i] != 1:
        best = 0.0
        choice[i] = 0.0
    if box[MODE, i] != 2:
        linear = theta * p.lever[LINEAR, i] + share * p.lever[LARGEST, i]
        square = theta * p.lever[SQUARE, i]
        g = gain[s]
        low, high = box[LO, i], box[HI, i]
        if abs(g) <= linear:
            t = 0.0
        else:
            excess = g - linear if g > 0 else g + linear
            t = excess / (2.0 * square) if square > 0.0 else INF if excess > 0 else -INF
        t = min(max(t, low), high)
        grid = p.lever[GRID, i]
        if grid > 0.0 and low < t < high:
            below = max(math.floor(t / grid) * grid, low)
            above = min(below + grid, high)
            vb = linear * abs(below) + square * below * below - g * below
            va = linear * abs(above) + square * above * above - g * above
            t = below if vb <= va else above
        v = linear * abs(t) + square * t * t - g * t + theta * p.lever[FIXED, i]
        if v < best:
            best = v
            choice[i] = t
    return best


@compiled
def cost_of(p, i, value):
    """A lever's cost at a coordinate or label, without its share in the maximum."""
    if p.lever[LABEL, i] > 0.0:
        return p.column[COST, p.start[i] + int(value)]
    if value == 0.0:
        return 0.0
    return p.lever[FIXED, i] + p.lever[LINEAR, i] * abs(value) + p.lever[SQUARE, i] * value * value


@compiled
def top_of(p, i, value):
    """A lever's entry in the maximum."""
    if p.lever[LABEL, i] > 0.0:
        return p.column[TOP, p.start[i] + int(value)]
    return p.lever[LARGEST, i] * abs(value)


@compiled
def cost_at(p, u):
    """The cost of a point, (d,)."""
    total = p.base[0]
    top = 0.0
    for i in range(len(u)):
        total += cost_of(p, i, u[i])
        top = max(top, top_of(p, i, u[i]))
    return total + top


@compiled
def least_cost(p, box, allowed, i):
    """The least of :func:`cost_of` over a lever's box; inf where nothing is left."""
    best = INF
    if p.lever[LABEL, i] > 0.0:
        for j in range(p.start[i], p.start[i + 1]):
            if allowed[j] != 0:
                best = min(best, p.column[COST, j])
        return best
    if box[MODE, i] != 1:
        best = 0.0
    if box[MODE, i] != 2 and box[LO, i] <= box[HI, i]:
        t = min(max(0.0, box[LO, i]), box[HI, i])
        best = min(best, p.lever[FIXED, i] + p.lever[LINEAR, i] * abs(t) + p.lever[SQUARE, i] * t * t)
    return best


@compiled
def reach(p, box, i):
    """The largest abs(u) of a numeric lever's box."""
    return 0.0 if box[MODE, i] == 2 else max(abs(box[LO, i]), abs(box[HI, i]))


@compiled
def pays_for(p, i, money, side):
    """No abs(u) beyond this costs at most ``money`` beyond what is fixed; rounded up."""
    if money < 0.0:
        return 0.0
    linear, square = p.lever[LINEAR, i], p.lever[SQUARE, i]
    t = INF
    if linear > 0.0:
        t = money / linear * p.up
    if square > 0.0:
        t = min(t, math.sqrt(money / square) * p.up)
    return t


@compiled
def contract(p, box, allowed, budget):
    """Cut off what costs more than the budget by itself; False where nothing is left.

    Every lever pays at least its least cost; what the others leave of the budget bounds each.
    """
    fixed = p.lever[FIXED]
    grid_ = p.lever[GRID]
    label = p.lever[LABEL]
    largest = p.lever[LARGEST]
    hi = box[HI]
    lo = box[LO]
    mode = box[MODE]
    start = p.start
    d = p.lever.shape[1]
    total = 0.0
    for i in range(d):
        if not label[i] > 0.0:
            grid = grid_[i]
            if grid > 0.0 and mode[i] != 2:
                lo[i] = math.ceil(lo[i] / grid) * grid
                hi[i] = math.floor(hi[i] / grid) * grid
            if mode[i] != 2 and not lo[i] <= hi[i]:
                if mode[i] == 1:
                    return False
                mode[i] = 2
        v = least_cost(p, box, allowed, i)
        if v == INF:
            return False
        total += v
    if not budget < INF:
        return True
    spare = (budget - total) + (abs(budget) + total) * p.cost + p.tiny
    if spare < 0.0:
        return False
    for i in range(d):
        own = least_cost(p, box, allowed, i)
        money = (spare + own) * p.up
        if label[i] > 0.0:
            for j in range(start[i], start[i + 1]):
                if allowed[j] != 0 and (p.column[COST, j] > money or p.column[TOP, j] > budget):
                    allowed[j] = 0
            continue
        if mode[i] == 2:
            continue
        if fixed[i] > money:
            if mode[i] == 1:
                return False
            mode[i] = 2
            continue
        t = pays_for(p, i, (money - fixed[i]) * p.up, 0)
        if largest[i] > 0.0:
            t = min(t, budget / largest[i] * p.up)
        lo[i] = max(lo[i], -t)
        hi[i] = min(hi[i], t)
        grid = grid_[i]
        if grid > 0.0:
            lo[i] = math.ceil(lo[i] / grid) * grid
            hi[i] = math.floor(hi[i] / grid) * grid
        if not lo[i] <= hi[i]:
            if mode[i] == 1:
                return False
            mode[i] = 2
    return True
