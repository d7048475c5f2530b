r"""Good actions early: steps along linearisations, levers pulled back to the factual, one dropped and repair.

Nothing here proves anything. A point counts as accepted only if its logit is above what is needed by more
than what rounding can take (:func:`try_point`), and Python judges it exactly before it bounds the search.
"""

from __future__ import annotations

import math

import numpy as np

from milp_recourse.compiled.elementary import RELU, steepness
from milp_recourse.compiled.elementary import value as curve
from milp_recourse.compiled.interior import solve_node
from milp_recourse.compiled.layout import (
    ALPHA,
    ANCHOR,
    BEST,
    BEST_CASE,
    BEST_COST,
    CASE,
    CEILING,
    CONSTS,
    COST,
    FACTUAL,
    FALL,
    GRAD,
    GRID,
    HI,
    INSIDE,
    KNOTS,
    LABEL,
    LARGEST,
    LEFT,
    LINEAR,
    LO,
    MODE,
    ORDER,
    OTHER,
    OWN_FIXED,
    POINT,
    RATE,
    RISE,
    SHIFT,
    SLOPE,
    SQUARE,
    TOP,
    TOP_RATE,
    TRIAL,
    UNIT,
    ZH,
    ZL,
    ZS,
    Z,
)
from milp_recourse.compiled.levers import cost_at, cost_of, percentiles_pay_for, respond
from milp_recourse.compiled.network import gradient, logit_at, logit_size, sizes_at
from milp_recourse.compiled.node import ball_hair, residual_lines, stated_rows
from milp_recourse.compiled.numerics import CLOSE, COARSE, ROUNDOFF, SEEN
from milp_recourse.compiled.work import cleared, copied
from milp_recourse.compiling import compiled

INF = math.inf

STEPS = 16
"""Most interior-point steps of a hop: where there is an optimum, hardly any takes more than 13."""

DIVE = 6
"""Hops of the dives in the tree, where few levers are."""


@compiled
def random(w):
    """The next number in [0, 1): xorshift, so the same in every run."""
    x = w.random[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    w.random[0] = x
    return float(x >> np.uint64(11)) * ROUNDOFF


@compiled
def snap(p, u):
    """Put a point on actions that doubles can say, inside the bounds."""
    for i in range(len(u)):
        if p.lever[LABEL, i] > 0.0 or u[i] == 0.0:
            continue
        a = p.lever[FACTUAL, i] + p.lever[UNIT, i] * u[i]
        if p.lever[GRID, i] > 0.0:
            a = np.floor(a + 0.5)
        if p.box[MODE, i] == 0 and not p.ends[0, i] <= a <= p.ends[1, i]:
            inside = min(max(a, p.ends[0, i]), p.ends[1, i])
            if abs(inside - a) > abs(a - p.lever[FACTUAL, i]):
                u[i] = 0.0
                continue
        a = min(max(a, p.ends[0, i]), p.ends[1, i])
        u[i] = (a - p.lever[FACTUAL, i]) / p.lever[UNIT, i]


@compiled
def _inside(p, w, u):
    """Whether a point, whose arguments are in w.unit[Z], meets rows and ball beyond doubt."""
    z0, sizes = w.unit[Z, 0], w.layer[1]
    units = p.widths[0]
    if units > 0:
        sizes_at(p, u, z0, sizes)
    for r in range(p.row.shape[1]):
        value, size = p.row_const[0, r], p.row_const[1, r]
        value, size = _at_point(p, u, z0, sizes, p.row[:, r], p.row_caused[:, r], value, size)
        if not value >= p.line * size + p.tiny:
            return False
    excess, doubt = 0.0, 0.0
    for f in range(len(p.noise)):
        weight, n = p.precision[f], p.noise[f]
        last = p.bent and f == len(p.noise) - 1
        if weight > 0.0 or last:
            value, size = p.excess if last else 0.0, abs(p.excess) if last else 0.0
            value, size = _at_point(p, u, z0, sizes, p.residual[:, f], p.residual_caused[:, f], value, size)
            if last:
                excess += value
                doubt += size
            else:
                excess += weight * value * (value + 2.0 * n)
                doubt += weight * size * (abs(value) + abs(n) + size)
    return excess <= -(4.0 * p.line * doubt) or doubt == 0.0


@compiled
def _at_point(p, u, z0, sizes, form, caused, value, size):
    """A form's value at a point and the sum of absolute terms behind it, added to what is given."""
    for i in range(len(u)):
        c, v = p.start[i], u[i]
        if p.lever[LABEL, i] > 0.0:
            c, v = c + int(u[i]), 1.0
        if v != 0.0:
            value += form[0, c] * v
            size += form[1, c] * abs(v)
    for m in range(p.widths[0]):
        if caused[1, m] > 0.0:
            value += caused[0, m] * (curve(p.kind[m], z0[m], p.edge[m]) - p.resting[m])
            size += caused[1, m] * (sizes[m] + abs(p.resting[m]))
    return value, size


@compiled
def constrained(p):
    """Whether a point must meet more than its box and the logit."""
    return p.row.shape[1] > 0 or len(p.noise) > 0


@compiled
def try_point(p, w, u):
    """Whether a point is accepted beyond doubt; takes it as the best if it is the cheapest. ``u`` is
    snapped.
    """
    snap(p, u)
    logit = logit_at(p, u, w.unit[Z], w.layer[0])
    if not logit >= p.need_high:
        return False
    if logit < p.need_high + p.hair[0]:
        error = 3.0 * p.line * logit_size(p, u, w.unit[Z, 0], w.layer) + p.tiny
        if not logit >= p.need_high + error:
            return False
    if constrained(p) and not _inside(p, w, u):
        return False
    cost = cost_at(p, u)
    if cost < w.scalar[BEST_COST]:
        w.scalar[BEST_COST] = cost
        w.scalar[BEST_CASE] = w.scalar[CASE]
        copied(u, w.at[BEST])
    return True


@compiled
def only_largest(p):
    """Whether the cost is the maximum alone."""
    if not p.has_largest:
        return False
    for i in range(p.lever.shape[1]):
        if p.lever[LABEL, i] > 0.0:
            for c in range(p.start[i], p.start[i + 1]):
                if p.column[COST, c] > 0.0:
                    return False
        elif p.lever[OWN_FIXED, i] + p.lever[RATE, i] > 0.0 or (
            p.lever[KNOTS, i] == 0.0 and p.lever[LINEAR, i] + p.lever[SQUARE, i] > 0.0
        ):
            return False
    return True


@compiled
def one_largest(p, box, allowed, g, need, most, out, other):
    """The cheapest point of a box with g u >= need where the cost is the maximum alone, at most ``most``:
    bisection over its value; False if there is none."""
    low, high, found = 0.0, most, False
    for _ in range(50):
        middle = 0.5 * (low + high) if found else high
        total, left = 0.0, True
        for i in range(p.lever.shape[1]):
            s = p.start[i]
            if p.lever[LABEL, i] > 0.0:
                best = -INF
                for c in range(s, p.start[i + 1]):
                    if allowed[c] != 0 and p.column[TOP, c] <= middle and g[c] > best:
                        best, other[i] = g[c], float(c - s)
                left = left and best > -INF
                total += best
                continue
            other[i] = 0.0
            if box[MODE, i] == 2:
                continue
            if p.lever[KNOTS, i] > 0.0:
                up = percentiles_pay_for(p, i, middle, p.lever[TOP_RATE, i], 1)
                down = percentiles_pay_for(p, i, middle, p.lever[TOP_RATE, i], -1)
            else:
                up = down = middle / p.lever[LARGEST, i]
            l, h = max(box[LO, i], -down), min(box[HI, i], up)
            grid = p.lever[GRID, i]
            if grid > 0.0:
                shift = p.lever[SHIFT, i]
                l = np.ceil((l - shift) / grid) * grid + shift
                h = np.floor((h - shift) / grid) * grid + shift
            if not l <= h:
                left = left and box[MODE, i] == 0
                continue
            t = h if g[s] > 0.0 else l
            if box[MODE, i] == 0 and g[s] * t <= 0.0:
                t = 0.0
            other[i] = t
            total += g[s] * t
        if left and total >= need:
            found, high = True, middle
            copied(other, out)
        elif not found:
            return False
        else:
            low = middle
        if high - low <= CLOSE * high:
            break
    return found


@compiled
def at(p, g, u):
    """g u."""
    total = 0.0
    for i in range(len(u)):
        total += g[p.start[i] + int(u[i])] if p.lever[LABEL, i] > 0.0 else g[p.start[i]] * u[i]
    return total


@compiled
def cheapest(p, w, box, allowed, g, need, u, out, other):
    """The cheapest point of a box with g u >= need and, linearised at u, whatever else is asked for; False if
    none is found, or none that is clearly cheaper than the best.

    Where that is rows or the ball, w's node, point and multipliers are overwritten.
    """
    if not constrained(p) and only_largest(p):
        most = min(w.scalar[BEST_COST], w.scalar[CEILING])
        return one_largest(p, box, allowed, g, need, most, out, other)
    units = p.widths[0]
    for m in range(units):  # the linear piece that u lies in, or the tangent there
        z = w.unit[Z, 0, m]
        on = steepness(p.kind[m], z, p.edge[m])
        w.unit[SLOPE, 0, m] = w.unit[ALPHA, 0, m] = on
        w.unit[RISE, 0, m] = w.unit[FALL, 0, m] = curve(p.kind[m], z, p.edge[m]) - on * z
        w.kept[0, m], w.kept[1, m] = w.unit[ZL, 0, m], w.unit[ZH, 0, m]
        w.unit[ZL, 0, m], w.unit[ZH, 0, m] = 0.0, on
        w.unit[ZS, 0, m] = abs(z)
    copied(g, w.rows[0])
    w.row[CONSTS, 0], w.row[INSIDE, 0] = -need, 0.0
    count = stated_rows(p, w, box, allowed, 1, False)
    ball = -1
    if len(p.noise) > 0 and count > 0:
        where = residual_lines(p, w, box, allowed)
        if where > 0:
            ball, count = count, count + 1
            w.row[INSIDE, ball], w.row[CONSTS, ball] = 2.0 * ball_hair(p, w), 0.0
            cleared(w.rows[ball])
        elif where < 0:
            count = -1
    for m in range(units):
        w.unit[ZL, 0, m], w.unit[ZH, 0, m] = w.kept[0, m], w.kept[1, m]
    if count < 0:
        return False
    # what is not clearly cheaper than the action in hand is no news
    dear = min(w.scalar[BEST_COST] * (1.0 - COARSE), w.scalar[CEILING]) - p.base[0]
    least = solve_node(p, w, box, allowed, count, ball, dear, out, other, STEPS, True)
    return least < dear and w.scalar[LEFT] < COARSE


@compiled
def hops(p, w, box, allowed, u, most):
    """Linearise the logit, take the cheapest point that reaches it, go on from there. ``u`` moves along."""
    anchor = w.at[ANCHOR]
    trial = w.at[TRIAL]
    label = p.lever[LABEL]
    d = len(u)
    found = False
    before = INF
    have = False
    curved = False
    for m in range(p.widths[0]):
        curved = curved or p.kind[m] != RELU
    for hop in range(most):
        logit = logit_at(p, u, w.unit[Z], w.layer[0])
        gradient(p, w.unit[Z], w.col[GRAD], w.layer)
        need = (p.need_high + 2.0 * p.hair[0] - logit) + at(p, w.col[GRAD], u)
        if not cheapest(p, w, box, allowed, w.col[GRAD], need, u, trial, w.at[OTHER]):
            # as far as it goes; with rows or a ball that is where the convex problem has come to, which is
            # hardly ever any good: dives at every node do not go on from there
            if have or hop >= (most - DIVE if constrained(p) else most // 2):
                break
            if constrained(p) and w.scalar[BEST_COST] < INF:
                break
            if not constrained(p):
                for i in range(d):
                    respond(p, box, allowed, i, w.col[GRAD], 0.0, 0.0, trial)
        if hop >= (8 if curved else 4) and not have:  # it swings: half the way
            for i in range(d):
                if not label[i] > 0.0:
                    trial[i] = 0.5 * (trial[i] + u[i])
        if try_point(p, w, trial):
            found = True
            cost = cost_at(p, trial)
            for i in range(d):
                anchor[i] = trial[i]
                u[i] = trial[i]
            have = True
            if not cost < before * (1.0 - SEEN):
                break
            before = cost
            continue
        if have:  # between the last accepted point and the next
            low, high = 0.0, 1.0
            for _ in range(16):
                middle = 0.5 * (low + high)
                for i in range(d):
                    u[i] = trial[i] if label[i] > 0.0 else anchor[i] + middle * (trial[i] - anchor[i])
                if try_point(p, w, u):
                    low = middle
                else:
                    high = middle
            if low == 0.0:
                copied(trial, u)
                have = False
                before = INF
                continue
            for i in range(d):
                u[i] = trial[i] if label[i] > 0.0 else anchor[i] + low * (trial[i] - anchor[i])
            if not try_point(p, w, u):
                break
            cost = cost_at(p, u)
            copied(u, anchor)
            if not cost < before * (1.0 - (SEEN if curved else COARSE)):
                break
            before = cost
        else:
            same = True
            for i in range(d):
                if abs(u[i] - trial[i]) > SEEN:
                    same = False
                u[i] = trial[i]
            if same:
                break
    if have:
        copied(anchor, u)
    return found


@compiled
def resting(p, i, u):
    """The coordinate or label where a lever costs least: the factual's where that is allowed."""
    if p.lever[LABEL, i] > 0.0:
        best, where = INF, u[i]
        for j in range(p.start[i], p.start[i + 1]):
            if p.allowed[j] != 0 and p.column[COST, j] < best:
                best, where = p.column[COST, j], float(j - p.start[i])
        return where
    if p.box[MODE, i] != 1:
        return 0.0
    t = min(max(0.0, p.box[LO, i]), p.box[HI, i])
    return t


@compiled
def pull_back(p, w, u):
    """Move each lever of an accepted point towards the factual as far as the logit allows, in a random
    order.
    """
    order_ = w.ints[ORDER]
    start_ = p.start
    d = len(u)
    for i in range(d):
        order_[i] = i
    for i in range(d - 1, 0, -1):
        j = int(random(w) * (i + 1))
        order_[i], order_[j] = order_[j], order_[i]
    for position in range(d):
        i = order_[position]
        goal, start = resting(p, i, u), u[i]
        if goal == start:
            continue
        u[i] = goal
        if try_point(p, w, u):
            continue
        if p.lever[LABEL, i] > 0.0:
            own = cost_of(p, i, start)
            u[i] = start
            for j in range(start_[i], start_[i + 1]):
                if p.allowed[j] != 0 and p.column[COST, j] < own:
                    u[i] = float(j - start_[i])
                    if try_point(p, w, u):
                        break
                    u[i] = start
            continue
        low, high = 0.0, 1.0
        for _ in range(9):
            middle = 0.5 * (low + high)
            u[i] = goal + middle * (start - goal)
            if try_point(p, w, u):
                high = middle
            else:
                low = middle
        u[i] = goal + high * (start - goal) if high < 1.0 else start
        if not try_point(p, w, u):
            u[i] = start


@compiled
def drops(p, w, rounds):
    """Let one lever of the best point rest, or forbid it more, and repair: what comes out cheaper stays."""
    hi = w.box[HI]
    lo = w.box[LO]
    mode = w.box[MODE]
    label = p.lever[LABEL]
    hi_ = p.box[HI]
    lo_ = p.box[LO]
    mode_ = p.box[MODE]
    allowed = w.allowed
    start = p.start
    d = p.lever.shape[1]
    u = w.at[POINT]
    for _ in range(rounds):
        copied(w.at[BEST], u)
        tries = 1 + int(random(w) * 2)
        for i in range(d):
            lo[i], hi[i], mode[i] = lo_[i], hi_[i], mode_[i]
        for j in range(p.column.shape[1]):
            allowed[j] = p.allowed[j]
        for _try in range(tries):
            i = int(random(w) * d)
            goal = resting(p, i, u)
            if goal == u[i] and _try == 0:
                i = int(random(w) * d)
                goal = resting(p, i, u)
            if label[i] > 0.0:
                for j in range(start[i], start[i + 1]):
                    allowed[j] = 1 if j == start[i] + int(goal) else 0
            elif random(w) < 0.7:
                if goal == 0.0 and mode_[i] == 0:
                    mode[i] = 2
                else:
                    lo[i] = hi[i] = goal
            else:
                cut = u[i] * (0.3 + 1.2 * random(w))
                grid = p.lever[GRID, i]
                if grid > 0.0:
                    cut = np.floor((cut - p.lever[SHIFT, i]) / grid) * grid + p.lever[SHIFT, i]
                cut = min(max(cut, lo_[i]), hi_[i])
                if u[i] > 0.0 and cut >= lo_[i]:
                    hi[i] = max(cut, lo[i])
                elif u[i] < 0.0 and cut <= hi_[i]:
                    lo[i] = min(cut, hi[i])
            if label[i] > 0.0:
                u[i] = goal
            else:
                u[i] = goal if mode[i] == 2 else min(max(u[i], lo[i]), hi[i])
        hops(p, w, w.box, allowed, u, 8)


@compiled
def settle(p, w, u):
    """An accepted point made as cheap as its neighbourhood allows."""
    pull_back(p, w, u)
    hops(p, w, p.box, p.allowed, u, 8)
    if try_point(p, w, u):
        pull_back(p, w, u)


@compiled
def descend(p, w, starts, samples, kept, rounds):
    """Search for good actions from given points, random points and the factual; ``w.at[BEST]`` is what was
    found.

    Parameters
    ----------
    starts
        Coordinates, (n, d).
    samples
        Random points.
    kept
        How many of the cheapest accepted points are settled.
    rounds
        Of :func:`drops`.
    """
    label = p.lever[LABEL]
    hi = p.box[HI]
    lo = p.box[LO]
    start = p.start
    allowed = p.allowed
    d = p.lever.shape[1]
    u = w.at[POINT]
    for i in range(d):
        u[i] = resting(p, i, u)
    hops(p, w, p.box, allowed, u, 12)
    if try_point(p, w, u):
        pull_back(p, w, u)
    # the cheapest accepted points, by insertion
    pool, cost = w.found[:, : len(w.at[POINT])], w.found[:, len(w.at[POINT])]
    count = 0
    n = len(starts)
    for k in range(n + samples):
        if k < n:
            for i in range(d):
                u[i] = starts[k, i]
                if label[i] > 0.0:
                    j = start[i] + int(u[i])
                    if not (u[i] >= 0.0 and j < start[i + 1] and allowed[j] != 0):
                        u[i] = resting(p, i, u)
        else:
            share = 0.2 + 0.8 * random(w)
            for i in range(d):
                u[i] = resting(p, i, u)
                if random(w) > share:
                    continue
                if label[i] > 0.0:
                    j = start[i] + int(random(w) * (start[i + 1] - start[i]))
                    if allowed[j] != 0:
                        u[i] = float(j - start[i])
                else:
                    u[i] = lo[i] + random(w) * (hi[i] - lo[i])
        snap(p, u)
        v = cost_at(p, u)
        if count == kept and v >= cost[kept - 1]:
            continue
        if not try_point(p, w, u):
            continue
        at_ = min(count, kept - 1)
        while at_ > 0 and cost[at_ - 1] > v:
            cost[at_] = cost[at_ - 1]
            for i in range(d):
                pool[at_, i] = pool[at_ - 1, i]
            at_ -= 1
        cost[at_] = v
        for i in range(d):
            pool[at_, i] = u[i]
        count = min(count + 1, kept)
    for k in range(count):
        for i in range(d):
            u[i] = pool[k, i]
        settle(p, w, u)
    if not w.scalar[BEST_COST] < INF:  # uphill from random points
        for _ in range(30):
            for i in range(d):
                if label[i] > 0.0:
                    j = start[i] + int(random(w) * (start[i + 1] - start[i]))
                    u[i] = float(j - start[i]) if allowed[j] != 0 else resting(p, i, u)
                else:
                    u[i] = lo[i] + random(w) * (hi[i] - lo[i])
            snap(p, u)
            if climb(p, w, u):
                settle(p, w, u)
                break
    if w.scalar[BEST_COST] < INF:
        drops(p, w, rounds)
        for _ in range(3):
            before = w.scalar[BEST_COST]
            copied(w.at[BEST], u)
            pull_back(p, w, u)
            around(p, w, u)
            if not w.scalar[BEST_COST] < before * (1.0 - COARSE):
                break


@compiled
def around(p, w, u):
    """Move each lever of the best point to other values and pull the others back."""
    hi = p.box[HI]
    lo = p.box[LO]
    start = p.start
    d = len(u)
    for i in range(d):
        label = p.lever[LABEL, i] > 0.0
        tries = start[i + 1] - start[i] if label else 6
        for k in range(tries):
            copied(w.at[BEST], u)
            if label:
                if p.allowed[start[i] + k] == 0 or float(k) == u[i]:
                    continue
                u[i] = float(k)
            else:
                reach = hi[i] - lo[i]
                u[i] += (1.0 if k < 3 else -1.0) * max(reach * 0.25 ** (k % 3 + 1), p.lever[GRID, i])
                u[i] = min(max(u[i], lo[i]), hi[i])
            if try_point(p, w, u):
                pull_back(p, w, u)


@compiled
def climb(p, w, u):
    """Move to the corner that the gradient points to, as long as the logit rises; whether it gets
    accepted.
    """
    other = w.at[OTHER]
    trial = w.at[TRIAL]
    d = len(u)
    value = logit_at(p, u, w.unit[Z], w.layer[0])
    for _ in range(12):
        logit_at(p, u, w.unit[Z], w.layer[0])
        gradient(p, w.unit[Z], w.col[GRAD], w.layer)
        for i in range(d):
            respond(p, p.box, p.allowed, i, w.col[GRAD], 0.0, 0.0, trial)
        step, moved = 1.0, False
        for _half in range(8):
            for i in range(d):
                other[i] = trial[i] if p.lever[LABEL, i] > 0.0 else u[i] + step * (trial[i] - u[i])
            if try_point(p, w, other):
                copied(other, u)
                return True
            v = logit_at(p, other, w.unit[Z], w.layer[0])
            if v > value:
                value, moved = v, True
                break
            step *= 0.5
        if not moved:  # one lever's label at a time
            return False
        copied(other, u)
    return False
