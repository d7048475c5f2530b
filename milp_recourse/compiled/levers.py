r"""The best value of one lever at given multipliers of the rows, in closed form; its cost and its interval.

A box is ``lo, hi, mode`` per lever and ``allowed`` per column
(:class:`~milp_recourse.compiled.problem.Problem`).
"""

from __future__ import annotations

import math

import numpy as np

from milp_recourse.compiled.layout import (
    COST,
    FIXED,
    GRID,
    HI,
    KNOTS,
    LABEL,
    LARGEST,
    LINEAR,
    LO,
    MODE,
    OWN_FIXED,
    RATE,
    SHIFT,
    SQUARE,
    TOP,
    TOP_RATE,
)
from milp_recourse.compiled.numerics import SEEN
from milp_recourse.compiling import compiled, inner

INF = math.inf


@inner
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
            shift = p.lever[SHIFT, i]
            below = max(np.floor((t - shift) / grid) * grid + shift, low)
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
def level(p, i, value):
    """How many percentiles a coordinate is from the factual: linear between knots, constant beyond them."""
    at, up = p.knot[0, i], p.knot[1, i]
    last = int(p.lever[KNOTS, i]) - 1
    if value <= at[0]:
        return up[0]
    if value >= at[last]:
        return up[last]
    low, high = 0, last
    while high - low > 1:
        middle = (low + high) // 2
        if at[middle] <= value:
            low = middle
        else:
            high = middle
    if value > 0.0:  # from the nearer knot: without cancellation, so the error is relative to what comes out
        return up[low] + (up[high] - up[low]) * ((value - at[low]) / (at[high] - at[low]))
    return up[high] + (up[low] - up[high]) * ((at[high] - value) / (at[high] - at[low]))


@compiled
def knot_inside(p, i, low, high, near):
    """The knot strictly inside an interval that is next to a coordinate; inf for none."""
    best = INF
    for k in range(int(p.lever[KNOTS, i])):
        t = p.knot[0, i, k]
        if low < t < high and abs(t - near) < abs(best - near):
            best = t
    return best


@compiled
def relevel(p, box):
    r"""Bound the cost of levers measured in percentiles from below: their FIXED, LINEAR and LARGEST.

    With g the percentiles from the factual: through the origin, :math:`\min g(t) / |t|` over knots and ends
    of the interval; and on one side of it the chord, lowered until no knot is below it. The higher one in the
    middle stays, for the maximum the first. Linear between knots, g is above both if it is so there and at
    the ends.
    """
    for i in range(p.lever.shape[1]):
        n = int(p.lever[KNOTS, i])
        if n == 0 or box[MODE, i] == 2:
            continue
        l, h = box[LO, i], box[HI, i]
        slope = INF
        for k in range(-2, n):
            t = l if k == -2 else h if k == -1 else p.knot[0, i, k]
            if l <= t <= h and t != 0.0:
                slope = min(slope, level(p, i, t) / abs(t))
        slope = slope * (1.0 - p.cost) if slope < INF else 0.0
        fixed, rate = p.lever[OWN_FIXED, i], p.lever[RATE, i]
        p.lever[LARGEST, i] = p.lever[TOP_RATE, i] * slope
        p.lever[FIXED, i], p.lever[LINEAR, i] = fixed, rate * slope
        if box[MODE, i] == 0 or l <= 0.0 <= h or not l < h:
            continue
        near, far = min(abs(l), abs(h)), max(abs(l), abs(h))
        low, high = min(level(p, i, l), level(p, i, h)), max(level(p, i, l), level(p, i, h))
        chord, least = (high - low) / (far - near), INF
        for k in range(-2, n):
            t = l if k == -2 else h if k == -1 else p.knot[0, i, k]
            if l <= t <= h:
                least = min(least, level(p, i, t) - chord * abs(t))
        least -= p.cost * (high + chord * far)
        if chord * (near + far) + 2.0 * least > slope * (near + far):
            p.lever[FIXED, i] = fixed + rate * least - p.cost * (fixed + rate * (high + chord * far))
            p.lever[LINEAR, i] = rate * chord


@compiled
def percentiles_pay_for(p, i, money, rate, side):
    """No coordinate beyond this, on that side, costs at most ``money`` at a rate each; rounded up."""
    n, reached, before = int(p.lever[KNOTS, i]), 0.0, 0.0
    if not rate > 0.0:
        return INF
    share = max(money, 0.0) / rate * p.up * p.up
    for step in range(n):
        k = step if side > 0 else n - 1 - step
        t, v = p.knot[0, i, k] * side, p.knot[1, i, k]
        if t <= 0.0:
            continue
        if v > share:
            part = reached + (t - reached) * min((share - before) / (v - before) * p.up * p.up, 1.0)
            return part + p.cost * t
        reached, before = t, v
    return INF


@compiled
def cost_of(p, i, value):
    """A lever's cost at a coordinate or label, without its share in the maximum."""
    if p.lever[LABEL, i] > 0.0:
        return p.column[COST, p.start[i] + int(value)]
    if value == 0.0:
        return 0.0
    if p.lever[KNOTS, i] > 0.0:
        return p.lever[OWN_FIXED, i] + p.lever[RATE, i] * level(p, i, value)
    return p.lever[FIXED, i] + p.lever[LINEAR, i] * abs(value) + p.lever[SQUARE, i] * value * value


@compiled
def top_of(p, i, value):
    """A lever's entry in the maximum."""
    if p.lever[LABEL, i] > 0.0:
        return p.column[TOP, p.start[i] + int(value)]
    if p.lever[KNOTS, i] > 0.0:
        return p.lever[TOP_RATE, i] * level(p, i, value)
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
def to_whole(p, box, i):
    """Cut a lever's interval to its whole values; what is a hair from one counts as it."""
    grid, shift = p.lever[GRID, i], p.lever[SHIFT, i]
    box[LO, i] = np.ceil((box[LO, i] - shift) / grid - SEEN) * grid + shift
    box[HI, i] = np.floor((box[HI, i] - shift) / grid + SEEN) * grid + shift


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
            if grid_[i] > 0.0 and mode[i] != 2:
                to_whole(p, box, i)
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
        if p.lever[KNOTS, i] > 0.0:
            left = (money - p.lever[OWN_FIXED, i]) * p.up
            for side in (1, -1):
                t = percentiles_pay_for(p, i, left, p.lever[RATE, i], side)
                t = min(t, percentiles_pay_for(p, i, budget, p.lever[TOP_RATE, i], side))
                if side > 0:
                    hi[i] = min(hi[i], t)
                else:
                    lo[i] = max(lo[i], -t)
        if grid_[i] > 0.0:
            to_whole(p, box, i)
        if not lo[i] <= hi[i]:
            if mode[i] == 1:
                return False
            mode[i] = 2
    return True
