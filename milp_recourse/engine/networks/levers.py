r"""The best value of one lever at given multipliers of the rows, in closed form; its cost and its interval.

A box is ``lo, hi, mode`` per lever and ``allowed`` per column
(:class:`~milp_recourse.engine.networks.problem_arrays.Problem`).
"""

from __future__ import annotations

import math

import numpy as np

from milp_recourse.engine.compiling import compiled
from milp_recourse.engine.networks import layout as at
from milp_recourse.engine.networks.numerics import SAME

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
    s, best = p.start[i], INF
    if p.lever[at.LABEL, i] > 0.0:
        for j in range(s, p.start[i + 1]):
            v = theta * p.column[at.COST, j] + share * p.column[at.TOP, j] - gain[j]
            if allowed[j] != 0 and v < best:
                best, choice[i] = v, j - s
        return best
    if box[at.MODE, i] != 1:
        best, choice[i] = 0.0, 0.0
    if box[at.MODE, i] != 2:
        linear = theta * p.lever[at.LINEAR, i] + share * p.lever[at.LARGEST, i]
        square, g = theta * p.lever[at.SQUARE, i], gain[s]
        low, high, grid = box[at.LO, i], box[at.HI, i], p.lever[at.GRID, i]
        t = least_at(linear, square, g, low, high)
        if grid > 0.0 and low < t < high:
            shift = p.lever[at.SHIFT, i]
            below = np.floor((t - shift) / grid) * grid + shift
            below, above = max(below, low), min(below + grid, high)  # an end may lie between whole values
            t = below if term(linear, square, g, below) <= term(linear, square, g, above) else above
        v = term(linear, square, g, t) + theta * p.lever[at.FIXED, i]
        if v < best:
            best, choice[i] = v, t
    return best


@compiled
def least_at(linear, square, gain, low, high):
    """Where :func:`term` is least in an interval."""
    excess = max(gain - linear, 0.0) + min(gain + linear, 0.0)  # one is 0; faster than asking which
    t = excess / (2.0 * square) if square > 0.0 else excess * INF if excess != 0.0 else 0.0
    return min(max(t, low), high)


@compiled
def absolute(p, box, allowed, i, share, sizes):
    """The largest sum of absolute terms of what :func:`respond` minimises over a lever's box with theta = 1,
    gain * u being at most ``sizes`` * abs(u)."""
    s, most = p.start[i], 0.0
    if p.lever[at.LABEL, i] > 0.0:
        for j in range(s, p.start[i + 1]):
            if allowed[j] != 0:
                most = max(most, p.column[at.COST, j] + share * p.column[at.TOP, j] + abs(sizes[j]))
        return most
    if box[at.MODE, i] == 2:
        return 0.0
    far = max(abs(box[at.LO, i]), abs(box[at.HI, i]))
    rate = p.lever[at.LINEAR, i] + p.lever[at.SQUARE, i] * far + share * p.lever[at.LARGEST, i]
    return abs(p.lever[at.FIXED, i]) + (rate + abs(sizes[s])) * far


@compiled
def times(p, line, u):
    """A line's terms at a point."""
    total = 0.0
    for i in range(len(u)):
        c = p.start[i]
        total += line[c + int(u[i])] if p.lever[at.LABEL, i] > 0.0 else line[c] * u[i]
    return total


@compiled
def term(linear, square, gain, u):
    """What a numeric lever that is acted on adds to a Lagrangian, without its fixed cost."""
    return linear * abs(u) + square * u * u - gain * u


@compiled
def level(p, i, value):
    """How many percentiles a coordinate is from the factual: linear between knots, constant beyond them."""
    knots, up = p.knot[0, i], p.knot[1, i]
    last = int(p.lever[at.KNOTS, i]) - 1
    if value <= knots[0]:
        return up[0]
    if value >= knots[last]:
        return up[last]
    low, high = 0, last
    while high - low > 1:
        middle = (low + high) // 2
        if knots[middle] <= value:
            low = middle
        else:
            high = middle
    if value > 0.0:  # from the nearer knot: without cancellation, so the error is relative to what comes out
        return up[low] + (up[high] - up[low]) * ((value - knots[low]) / (knots[high] - knots[low]))
    return up[high] + (up[low] - up[high]) * ((knots[high] - value) / (knots[high] - knots[low]))


@compiled
def knot_inside(p, i, low, high, near):
    """The knot strictly inside an interval that is next to a coordinate; inf for none."""
    best = INF
    for k in range(int(p.lever[at.KNOTS, i])):
        t = p.knot[0, i, k]
        if low < t < high and abs(t - near) < abs(best - near):
            best = t
    return best


@compiled
def relevel(p, box):
    r"""Bound the cost of levers measured in percentiles from below: their FIXED, LINEAR and LARGEST.

    Let g(t) be how many percentiles coordinate t is from the factual. One line below g goes through the
    origin with slope :math:`\min g(t) / |t|` over the knots and the ends of the interval. Where the interval
    lies on one side of the origin there is another: the chord, lowered until no knot is below it. The cost
    gets whichever is higher in the middle of the interval, the entry in the maximum the first. Both are below
    g everywhere because g is linear between knots.
    """
    for i in range(p.lever.shape[1]):
        n = int(p.lever[at.KNOTS, i])
        if n == 0 or box[at.MODE, i] == 2:
            continue
        l, h, slope = box[at.LO, i], box[at.HI, i], INF
        for k in range(-2, n):
            t = l if k == -2 else h if k == -1 else p.knot[0, i, k]
            if l <= t <= h and t != 0.0:
                slope = min(slope, level(p, i, t) / abs(t))
        slope = slope * (1.0 - p.cost) if slope < INF else 0.0
        fixed, rate = p.lever[at.OWN_FIXED, i], p.lever[at.RATE, i]
        p.lever[at.LARGEST, i] = p.lever[at.TOP_RATE, i] * slope
        p.lever[at.FIXED, i], p.lever[at.LINEAR, i] = fixed, rate * slope
        if box[at.MODE, i] == 0 or l <= 0.0 <= h or not l < h:
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
            p.lever[at.FIXED, i] = fixed + rate * least - p.cost * (fixed + rate * (high + chord * far))
            p.lever[at.LINEAR, i] = rate * chord


@compiled
def percentiles_pay_for(p, i, money, rate, side):
    """How far on one side (1: up, -1: down) a change in percentiles, at ``rate`` each, can go for at most
    ``money``: the distance in coordinates, rounded up; inf where the money is enough for any."""
    n, reached, before = int(p.lever[at.KNOTS, i]), 0.0, 0.0
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
    if p.lever[at.LABEL, i] > 0.0:
        return p.column[at.COST, p.start[i] + int(value)]
    if value == 0.0:
        return 0.0
    if p.lever[at.KNOTS, i] > 0.0:
        return p.lever[at.OWN_FIXED, i] + p.lever[at.RATE, i] * level(p, i, value)
    return p.lever[at.FIXED, i] + p.lever[at.LINEAR, i] * abs(value) + p.lever[at.SQUARE, i] * value * value


@compiled
def top_of(p, i, value):
    """A lever's entry in the maximum."""
    if p.lever[at.LABEL, i] > 0.0:
        return p.column[at.TOP, p.start[i] + int(value)]
    if p.lever[at.KNOTS, i] > 0.0:
        return p.lever[at.TOP_RATE, i] * level(p, i, value)
    return p.lever[at.LARGEST, i] * abs(value)


@compiled
def cost_at(p, u):
    """The cost of a point, (d,)."""
    total, top = p.base[0], 0.0
    for i in range(len(u)):
        total += cost_of(p, i, u[i])
        top = max(top, top_of(p, i, u[i]))
    return total + top


@compiled
def least_cost(p, w, box, allowed, i):
    """The least of :func:`cost_of` over a lever's box; inf where nothing is left."""
    return respond(p, box, allowed, i, w.col[at.NOTHING], 1.0, 0.0, w.at[at.IDLE])


@compiled
def affordable(p, i, money, budget, side):
    """How far on one side a numeric lever that is acted on can go for a cost of at most ``money`` and an
    entry in the maximum of at most ``budget``: the distance in coordinates, rounded up, -inf for nowhere."""
    if p.lever[at.FIXED, i] > money:
        return -INF
    if p.lever[at.KNOTS, i] > 0.0:
        far = percentiles_pay_for(p, i, (money - p.lever[at.OWN_FIXED, i]) * p.up, p.lever[at.RATE, i], side)
        return min(far, percentiles_pay_for(p, i, budget, p.lever[at.TOP_RATE, i], side))
    left, far = max(money - p.lever[at.FIXED, i], 0.0) * p.up, INF
    if p.lever[at.LINEAR, i] > 0.0:
        far = left / p.lever[at.LINEAR, i] * p.up
    if p.lever[at.SQUARE, i] > 0.0:
        far = min(far, math.sqrt(left / p.lever[at.SQUARE, i]) * p.up)
    if p.lever[at.LARGEST, i] > 0.0:
        far = min(far, budget / p.lever[at.LARGEST, i] * p.up)
    return far


@compiled
def to_whole(p, box, i):
    """Cut a lever's interval to its whole values, if it has such; what is within rounding of one counts as
    it."""
    grid, shift = p.lever[at.GRID, i], p.lever[at.SHIFT, i]
    if grid > 0.0:
        box[at.LO, i] = np.ceil((box[at.LO, i] - shift) / grid - SAME) * grid + shift
        box[at.HI, i] = np.floor((box[at.HI, i] - shift) / grid + SAME) * grid + shift


@compiled
def remains(box, i):
    """Whether anything is left of a numeric lever. If its interval is empty but it may be left alone, its
    mode becomes 2 (not acted on)."""
    if box[at.MODE, i] != 2 and not box[at.LO, i] <= box[at.HI, i]:
        if box[at.MODE, i] == 1:
            return False
        box[at.MODE, i] = 2
    return True


@compiled
def contract(p, w, box, allowed, budget):
    """Cut off what exceeds the budget, a node's target; False where nothing is left.

    Every lever pays at least its least cost; what the others leave of the budget bounds each.
    """
    total = 0.0
    for i in range(p.lever.shape[1]):
        to_whole(p, box, i)
        if not remains(box, i):
            return False
        total += least_cost(p, w, box, allowed, i)
    if not (total < INF and budget < INF):
        return total < INF
    spare = (budget - total) + (abs(budget) + total) * p.cost + p.tiny
    if spare < 0.0:
        return False
    for i in range(p.lever.shape[1]):
        money = (spare + least_cost(p, w, box, allowed, i)) * p.up
        if p.lever[at.LABEL, i] > 0.0:
            for j in range(p.start[i], p.start[i + 1]):
                if p.column[at.COST, j] > money or p.column[at.TOP, j] > budget:
                    allowed[j] = 0
        elif box[at.MODE, i] != 2:
            box[at.LO, i] = max(box[at.LO, i], -affordable(p, i, money, budget, -1))
            box[at.HI, i] = min(box[at.HI, i], affordable(p, i, money, budget, 1))
            to_whole(p, box, i)
            if not remains(box, i):
                return False
    return True
