r"""The best value of one lever at given multipliers of the rows, in closed form; its cost and its interval.

A box is box (d,), records of ``lo``, ``hi`` and ``mode`` per lever, and allowed (P,), a number per column
(:class:`~milp_recourse.engine.networks.problem_arrays.Problem`).

u (d,) is a point, a coordinate of each lever or its label's number; other letters are as in
:mod:`~milp_recourse.engine.networks.work`.
"""

from __future__ import annotations

import math

import numpy as np

from milp_recourse.engine.compiling import compiled
from milp_recourse.engine.networks.lever_arrays import ACTED, IDLE
from milp_recourse.engine.networks.numerics import SAME

INF = math.inf


@compiled
def respond(p, box, allowed, i, gain, theta, share, choice):
    r"""Minimise :math:`\theta c_i(u) + share \cdot top_i(u) - gain \cdot u` over a lever's box.

    Parameters
    ----------
    box
        Intervals and modes, (d,).
    allowed
        Which labels are, (P,).
    gain
        Per column, (P,).
    choice
        Gets the minimiser, (d,): a coordinate, or the label's number.

    Returns
    -------
    float
        The least value; inf where nothing is left.
    """
    lever = p.lever[i]
    s, best = p.start[i], INF
    if lever.label > 0.0:
        for j in range(s, p.start[i + 1]):
            v = theta * p.column[j].cost + share * p.column[j].top - gain[j]
            if allowed[j] != 0 and v < best:
                best, choice[i] = v, j - s
        return best
    if box[i].mode != ACTED:
        best, choice[i] = 0.0, 0.0
    if box[i].mode != IDLE:
        linear = theta * lever.linear + share * lever.largest
        square, fall, grid, kink = theta * lever.square, lever.down, lever.grid, kink_of(p, gain, i)
        low, high, g, more = box[i].lo, box[i].hi, gain[s], False
        if kink != 0.0:
            more = low < 0.0 < high
            g, low = g + (kink if high > 0.0 else -kink), 0.0 if more else low
        while True:
            t = least_at(linear, square, fall, g, low, high)
            v = term(linear, square, fall, g, t)
            if grid > 0.0 and low < t < high:
                shift = lever.shift
                below = np.floor((t - shift) / grid) * grid + shift
                t, above = max(below, low), min(below + grid, high)  # an end may lie between whole values
                v, other = term(linear, square, fall, g, t), term(linear, square, fall, g, above)
                if other < v:
                    t, v = above, other
            v += theta * lever.fixed + share * lever.least
            if v < best:
                best, choice[i] = v, t
            if not more:
                break
            low, high, g, more = box[i].lo, 0.0, gain[s] - kink, False  # below 0
    return best


@compiled
def kink_of(p, line, i):
    """A line's coefficient of the distance of a numeric lever's coordinate from 0. Shape: line (P,), without
    kinks, or (L,)."""
    return line[p.start[-1] + i] if len(line) > p.start[-1] else 0.0


@compiled
def part(box, i, side, kink):
    """What of a numeric lever's interval in box (d,) lies on one side of 0, and the sign of its coordinate
    there; all of the interval where that lies on one side, or where there is no kink at 0."""
    low, high = box[i].lo, box[i].hi
    if not low < 0.0 < high or kink == 0.0:
        return low, high, 1.0 if high > 0.0 else -1.0
    return max(low, 0.0) if side > 0.0 else low, high if side > 0.0 else min(high, 0.0), side


@compiled
def least_at(linear, square, fall, gain, low, high):
    """Where :func:`term` is least in an interval."""
    excess = max(gain - linear, 0.0) + min(gain + fall * linear, 0.0)  # one is 0; faster than asking which
    square *= fall * fall if excess < 0.0 else 1.0
    t = excess / (2.0 * square) if square > 0.0 else excess * INF if excess != 0.0 else 0.0
    return min(max(t, low), high)


@compiled
def absolute(p, box, allowed, i, share, sizes):
    """The largest sum of absolute terms of what :func:`respond` minimises over a lever's box with theta = 1,
    gain * u being at most ``sizes`` * abs(u). Shapes: box (d,), allowed, sizes (P,)."""
    lever = p.lever[i]
    s, most = p.start[i], 0.0
    if lever.label > 0.0:
        for j in range(s, p.start[i + 1]):
            if allowed[j] != 0:
                most = max(most, p.column[j].cost + share * p.column[j].top + abs(sizes[j]))
        return most
    if box[i].mode == IDLE:
        return 0.0
    far = max(abs(box[i].lo), abs(box[i].hi))
    size = far * max(lever.down, 1.0)
    rate = abs(lever.linear) + lever.square * size + share * abs(lever.largest)
    gain = (abs(sizes[s]) + abs(kink_of(p, sizes, i))) * far
    return abs(lever.fixed) + share * abs(lever.least) + rate * size + gain


@compiled
def times(p, line, u):
    """The terms of a line (P,) at a point."""
    total, kinks = 0.0, p.start[-1]
    for i in range(len(u)):
        c = p.start[i]
        total += line[c + int(u[i])] if p.lever[i].label > 0.0 else line[c] * u[i]
    for c in range(kinks, len(line)):
        total += line[c] * abs(u[c - kinks])
    return total


@compiled
def term(linear, square, fall, gain, u):
    """What a numeric lever that is acted on adds to a Lagrangian, without its fixed cost.

    ``fall`` is what a fall counts, as a multiple of a rise by as much. With -1 the cost has no bend: it is
    linear u + square u^2 on both sides.
    """
    size = max(u, -fall * u)
    return linear * size + square * size * size - gain * u


@compiled
def level(p, i, value):
    """The size of a change to a coordinate: linear between knots, constant beyond them."""
    knots, up = p.knot[0, i], p.knot[1, i]
    last = int(p.lever[i].knots) - 1
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
    for k in range(int(p.lever[i].knots)):
        t = p.knot[0, i, k]
        if low < t < high and abs(t - near) < abs(best - near):
            best = t
    return best


@compiled
def relevel(p, box):
    r"""Bound the cost of levers with knots from below: what ``down``, ``fixed``, ``linear``, ``square``,
    ``largest`` and ``least`` of their records are in a box (d,).

    Let g(t) be the size at coordinate t. On each side a line below g goes through the origin, with slope
    :math:`\min g(t) / |t|` over the knots and the ends of the interval. Where the interval lies on one side
    there is another: the chord, lowered until no knot is below it. Whichever is higher in the middle of the
    interval is taken; of squares, the chord's only where the chord is negative by no more than rounding, of
    which the square is lost in what the cost is lowered by. Both are below g everywhere because g is linear
    between knots.
    """
    for i in range(len(p.lever)):
        lever = p.lever[i]
        n = int(lever.knots)
        if n == 0 or box[i].mode == IDLE:
            continue
        l, h, up, down = box[i].lo, box[i].hi, INF, INF
        for k in range(-2, n):
            t = l if k == -2 else h if k == -1 else p.knot[0, i, k]
            if l <= t <= h and t > 0.0:
                up = min(up, level(p, i, t) / t)
            elif l <= t <= h and t < 0.0:
                down = min(down, level(p, i, t) / -t)
        fall = 1.0
        if 0.0 < up < INF and down < INF:
            fall = down / up * (1.0 - p.slacks.cost)
        slope = min(up, down) if fall == 1.0 else up
        slope = slope * (1.0 - p.slacks.cost) if slope < INF else 0.0
        lever.down, lever.fixed = fall, lever.own_fixed
        lever.linear = lever.rate * slope
        lever.square = lever.square_rate * slope * slope
        lever.largest, lever.least = lever.top_rate * slope, 0.0
        if box[i].mode == ACTED and not l <= 0.0 <= h and l < h:
            _chord(p, i, l, h, slope)


@compiled
def _chord(p, i, l, h, slope):
    """Set a lever's rows to the cost of sizes on the lowered chord over an interval on one side of the origin
    if that is higher than the line of this slope in the middle."""
    lever = p.lever[i]
    fixed, rate, square, top = lever.own_fixed, lever.rate, lever.square_rate, lever.top_rate
    near, far = min(abs(l), abs(h)), max(abs(l), abs(h))
    low, high = min(level(p, i, l), level(p, i, h)), max(level(p, i, l), level(p, i, h))
    chord, least = (high - low) / (far - near), INF
    for k in range(-2, int(lever.knots)):
        t = l if k == -2 else h if k == -1 else p.knot[0, i, k]
        if l <= t <= h:
            least = min(least, level(p, i, t) - chord * abs(t))
    reach = high + chord * far
    least -= p.slacks.cost * reach
    lower = chord * (near + far) + 2.0 * least <= slope * (near + far)
    if lower or (square > 0.0 and chord * near + least < -2.0 * p.slacks.cost * reach):
        return
    own, side = fixed + (rate + square * least) * least, 1.0 if l > 0.0 else -1.0
    lever.fixed = own - p.slacks.cost * (fixed + (rate + square * reach) * reach)
    # without a bend, which would not be convex where the line falls
    lever.down, lever.linear = -1.0, side * (rate + 2.0 * square * least) * chord
    lever.square, lever.largest = square * chord * chord, side * top * chord
    lever.least = top * least - p.slacks.cost * top * reach


@compiled
def bends(p):
    """Whether some lever's size has knots."""
    knots = 0.0
    for i in range(len(p.lever)):
        knots += p.lever[i].knots
    return knots > 0.0


@compiled
def _size_paid(p, i, money, budget):
    """The largest size that ``money`` pays for, with an entry in the maximum of at most ``budget``; rounded
    up."""
    lever = p.lever[i]
    size = INF
    if lever.rate > 0.0:
        size = money / lever.rate
    if lever.square_rate > 0.0:
        size = min(size, math.sqrt(money / lever.square_rate))
    if lever.top_rate > 0.0:
        size = min(size, budget / lever.top_rate)
    return max(size, 0.0) * p.slacks.up * p.slacks.up


@compiled
def _reached(p, i, size, side):
    """How far on one side (1: up, -1: down) a change of at most a size can go: the distance in coordinates,
    rounded up; inf where the size is enough for any."""
    n, reached, before = int(p.lever[i].knots), 0.0, 0.0
    for step in range(n):
        k = step if side > 0 else n - 1 - step
        t, v = p.knot[0, i, k] * side, p.knot[1, i, k]
        if t <= 0.0:
            continue
        if v > size:
            part = reached + (t - reached) * min(
                (size - before) / (v - before) * p.slacks.up * p.slacks.up, 1.0
            )
            return part + p.slacks.cost * t
        reached, before = t, v
    return INF


@compiled
def cost_of(p, i, value):
    """A lever's cost at a coordinate or label, without its share in the maximum."""
    lever = p.lever[i]
    if lever.label > 0.0:
        return p.column[p.start[i] + int(value)].cost
    if value == 0.0:
        return 0.0
    if lever.knots > 0.0:
        size = level(p, i, value)
        return lever.own_fixed + (lever.rate + lever.square_rate * size) * size
    return bound_of(p, i, value)


@compiled
def bound_of(p, i, value):
    """What ``fixed``, ``linear``, ``square`` and ``down`` of a numeric lever's record say that acting on it
    costs at a coordinate; without knots that is its cost."""
    lever = p.lever[i]
    return lever.fixed + term(lever.linear, lever.square, lever.down, 0.0, value)


@compiled
def top_bound_of(p, i, value):
    """The same of a lever's entry in the maximum."""
    lever = p.lever[i]
    return lever.least + lever.largest * max(value, -lever.down * value)


@compiled
def top_of(p, i, value):
    """A lever's entry in the maximum."""
    lever = p.lever[i]
    if lever.label > 0.0:
        return p.column[p.start[i] + int(value)].top
    if lever.knots > 0.0:
        return lever.top_rate * level(p, i, value)
    return top_bound_of(p, i, value)


@compiled
def cost_at(p, u):
    """The cost of a point."""
    total, top = p.base[0], 0.0
    for i in range(len(u)):
        total += cost_of(p, i, u[i])
        top = max(top, top_of(p, i, u[i]))
    return total + top


@compiled
def least_cost(p, w, box, allowed, i):
    """The least of :func:`cost_of` over a lever's box; inf where nothing is left. Shapes: box (d,), allowed
    (P,)."""
    return respond(p, box, allowed, i, w.columns.zeros, 1.0, 0.0, w.points.least_paid)


@compiled
def affordable(p, i, money, budget, side):
    """How far on one side a numeric lever that is acted on can go for a cost of at most ``money`` and an
    entry in the maximum of at most ``budget``: the distance in coordinates, rounded up, -inf for nowhere."""
    lever = p.lever[i]
    knots = lever.knots > 0.0
    left, far = (money - (lever.own_fixed if knots else lever.fixed)) * p.slacks.up, INF
    if left < 0.0:
        return -INF
    if knots:
        return _reached(p, i, _size_paid(p, i, left, budget), side)
    if lever.linear > 0.0:
        far = left / lever.linear * p.slacks.up
    if lever.square > 0.0:
        far = min(far, math.sqrt(left / lever.square) * p.slacks.up)
    if lever.largest > 0.0:
        far = min(far, budget / lever.largest * p.slacks.up)
    return far if side > 0 else far / lever.down * p.slacks.up


@compiled
def to_whole(p, box, i):
    """Cut a lever's interval in box (d,) to its whole values, if it has such; what is within rounding of one
    counts as it."""
    grid, shift = p.lever[i].grid, p.lever[i].shift
    if grid > 0.0:
        box[i].lo = np.ceil((box[i].lo - shift) / grid - SAME) * grid + shift
        box[i].hi = np.floor((box[i].hi - shift) / grid + SAME) * grid + shift


@compiled
def remains(box, i):
    """Whether anything is left of a numeric lever in box (d,). If its interval is empty but it may be left
    alone, its mode becomes IDLE."""
    if box[i].mode != IDLE and not box[i].lo <= box[i].hi:
        if box[i].mode == ACTED:
            return False
        box[i].mode = IDLE
    return True


@compiled
def contract(p, w, box, allowed, budget):
    """Cut off what exceeds the budget, a node's target; False where nothing is left. Shapes: box (d,),
    allowed (P,).

    Every lever pays at least its least cost; what the others leave of the budget bounds each.
    """
    total = 0.0
    for i in range(len(p.lever)):
        to_whole(p, box, i)
        if not remains(box, i):
            return False
        total += least_cost(p, w, box, allowed, i)
    if not (total < INF and budget < INF):
        return total < INF
    spare = (budget - total) + (abs(budget) + total) * p.slacks.cost + p.slacks.tiny
    if spare < 0.0:
        return False
    for i in range(len(p.lever)):
        money = (spare + least_cost(p, w, box, allowed, i)) * p.slacks.up
        if p.lever[i].label > 0.0:
            for j in range(p.start[i], p.start[i + 1]):
                if p.column[j].cost > money or p.column[j].top > budget:
                    allowed[j] = 0
        elif box[i].mode != IDLE:
            box[i].lo = max(box[i].lo, -affordable(p, i, money, budget, -1))
            box[i].hi = min(box[i].hi, affordable(p, i, money, budget, 1))
            to_whole(p, box, i)
            if not remains(box, i):
                return False
    return True
