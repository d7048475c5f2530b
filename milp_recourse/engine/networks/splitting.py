"""What a node is split on: a sign, a lever's interval or label, whether it acts, a curve's argument.

Letters are those of :mod:`~milp_recourse.engine.networks.work`; l and h are the ends of an interval.
"""

from __future__ import annotations

import math

import numpy as np

from milp_recourse.engine.compiling import compiled
from milp_recourse.engine.networks.elementary import RELU, curve, distance, is_open
from milp_recourse.engine.networks.lever_arrays import ACTED, EITHER, IDLE
from milp_recourse.engine.networks.levers import (
    bound_of,
    cost_of,
    knot_inside,
    respond,
    top_bound_of,
    top_of,
)
from milp_recourse.engine.networks.numerics import COARSE, HUGE
from milp_recourse.engine.networks.rows import reached, relaxed_arguments
from milp_recourse.engine.networks.work import add, cleared
from milp_recourse.problem.result import RELATIVE_GAP as GAP

INF = math.inf

NOTHING, ARGUMENT, INTERVAL, ACTED_ON, LABELS = range(5)
"""Kinds of splits: none, the interval of a unit's argument at a value (of a ReLU at 0: its sign), a lever's
interval at a value, whether a lever is acted on, one label or the others."""

FEW_LEVERS, FEW_WITHOUT_ACTION, FEW_OPEN = 4, 8, 6
"""With so few levers to settle, with an action in hand and without, and more open units than this, levers are
split. With more levers they compete with signs while more units are open than the levers want splits."""

HALVINGS, MANY = 4.0, 4.0
"""How often a continuous lever is thought to be halved; of more values, one half way to an end is cut at."""

PRIOR = 0.5
"""A split on one lever or unit is thought to keep what such splits keep on the average until its own had
promised about this much (1 is all that was lost in a node)."""

FADES = 1.0 - 2.0**-9
"""Factor on what earlier splits of a kind have gained, applied whenever the next gain is noted."""

LITTLE = 2.0**-10
"""Splits on costs with knots that lose less than this share of the lever's cost and the gap come last."""

EACH = 0.25
"""Part of its share of the gap that a cost with knots may lose without being split."""

SLIGHT = 0.125
"""Where the rows' multipliers lose less than this share of the gap at the relaxed optimum, rows that it
contradicts count alike."""

LAST = 2.0**-60
"""Factor on losses that are to be split on last."""


@compiled
def values_left(p, w, i):
    """How many values a lever has in the node: 1 where it is settled, inf for an interval."""
    if p.lever[i].label > 0.0:
        total = 0.0
        for c in range(p.start[i], p.start[i + 1]):
            total += w.allowed[c] != 0
        return total
    if w.box[i].mode == IDLE:
        return 1.0
    width, grid = w.box[i].hi - w.box[i].lo, p.lever[i].grid
    more = 0.0 if not width > 0.0 else width / grid if grid > 0.0 else INF
    return more + (2.0 if w.box[i].mode == EITHER else 1.0)


@compiled
def settled(p, w):
    """Whether nothing but continuous values is open in the node."""
    for i in range(len(p.lever)):
        left, mode = values_left(p, w, i), w.box[i].mode
        if left > 1.0 and (left < INF or mode == EITHER):
            return False
        bent = knot_inside(p, i, w.box[i].lo, w.box[i].hi, 0.0) < INF
        if left > 1.0 and p.lever[i].knots > 0.0 and bent:  # its cost is bent, or only bounded
            return False
    return True


@compiled
def single(p, w):
    """Whether the node is one point (then in w.points.anchor)."""
    for i in range(len(p.lever)):
        if values_left(p, w, i) != 1.0:
            return False
        respond(p, w.box, w.allowed, i, w.columns.zeros, 1.0, 0.0, w.points.anchor)
    return True


@compiled
def _wanted(p, w):
    """About how many splits the node's numbers need until they are settled, at least 1; 0 where few levers
    are left and all of these are intervals that are acted on. Labels count nothing: they always compete."""
    total, free, other = 0.0, 0, False
    for i in range(len(p.lever)):
        values, label = values_left(p, w, i), p.lever[i].label > 0.0
        if values > 1.0:
            total += 0.0 if label else min(math.log2(values), HALVINGS)
            free += 1
            other = other or label
        other = other or w.box[i].mode == EITHER
    few = FEW_LEVERS if w.now.best_cost < INF else FEW_WITHOUT_ACTION
    return max(total, 1.0) if free > few or other else 0.0


@compiled
def _of_lever(p, w, i, value):
    """How to split a lever's part of the box, as :func:`choose` returns it."""
    label, mode = p.lever[i].label > 0.0, w.box[i].mode
    return (LABELS if label else INTERVAL if mode == ACTED else ACTED_ON), i, value


@compiled
def _between(p, w, i):
    """A lever's main label, or where to cut its interval: between its middle and the relaxed optimum.

    Where the cost is proportional to the change and many values are left, it is half way to the dearer end of
    an interval well around 0: one child leaves less of the budget to others, in the other this lever buys
    less.
    """
    t, l, h, lever = w.points.relaxed[i], w.box[i].lo, w.box[i].hi, p.lever[i]
    proportional = lever.linear > 0.0 and lever.square == lever.knots == 0.0
    if proportional and min(h, -l) > (h - l) / 8.0 and values_left(p, w, i) > MANY:
        return 0.5 * (h if h > -lever.down * l else l)
    return t if lever.label > 0.0 else _amid(l, h, t)


@compiled
def _amid(l, h, z):
    """Between the middle of an interval and a point, away from the ends."""
    return min(max(0.25 * (l + h) + 0.5 * z, l + 0.2 * (h - l)), h - 0.2 * (h - l))


@compiled
def _of_unit(p, w, index):
    """How to split on a unit, as :func:`choose` returns it: on the sign of a ReLU, or at a value of a curve's
    argument."""
    if index >= w.unit.low.shape[1] or p.kind[index] == RELU:
        return ARGUMENT, index, 0.0
    return ARGUMENT, index, _amid(w.unit.low[0, index], w.unit.high[0, index], w.unit.relaxed[0, index])


@compiled
def add_implied_sign(p, w):
    """Make a sign that bounds imply a row of the node: the one that the relaxed optimum contradicts most.
    Returns whether it contradicts any.

    Bounds of arguments hold for points that cost less than the target and meet the rows. Other points of the
    box may contradict them; where no unit is open, only ever smaller boxes would rule those out without this
    row. The arguments of the relaxed optimum are those of :func:`choose`.
    """
    most, layer, place, sign, unit = 0.0, -1, -1, 0.0, w.unit
    for k in range(1, len(p.widths)):
        for j in range(p.widths[k]):
            implied = 1.0 if unit.low[k, j] >= 0.0 else -1.0 if unit.high[k, j] <= 0.0 else 0.0
            off = -implied * unit.relaxed[k, j]
            if unit.split[k, j] == 0.0 and off > max(most, COARSE * unit.size[k, j]):
                most, layer, place, sign = off, k, j, implied
    if layer >= 0:
        unit.split[layer, place] = 1.0 if sign > 0.0 else 2.0
    return layer >= 0


@compiled
def choose(p, w, count, unsure, gap):
    """What to split: (kind, index, value), kind one of :data:`NOTHING` and the others.

    For a unit the index is layer * width + unit. A sign or a lever promises its share of all that is lost at
    the relaxed optimum. Promises are compared after multiplying them by what share of theirs splits on it
    have kept so far (:func:`_kept`); where few levers are left, as they are.

    Parameters
    ----------
    count
        Rows of the last Lagrangian.
    unsure
        Open units.
    gap
        How far the last Lagrangian's bound is below the target. Where multipliers are small, as at the
        cheapest point of a box, rows lose next to nothing of it, whatever the units do.
    """
    relaxed_arguments(p, w)
    w.now.promise = 0.0
    wanted, promise = _wanted(p, w), 0.0
    best, index, every = _lost_by_units(p, w, w.row.multipliers, count, wanted > 0.0)
    if every <= (SLIGHT * gap if w.now.best_cost < INF else 0.0):
        _weigh_contradicted(p, w, count, every > 0.0, gap)
        best, index, every = _lost_by_units(p, w, w.row.try_multipliers, count, wanted > 0.0)
    kind, value = ARGUMENT if index >= 0 else NOTHING, 0.0
    if kind == ARGUMENT and unsure > max(FEW_OPEN, wanted):
        lost, i = _widest(p, w, wanted > 0.0)
        if i >= 0 and (wanted == 0.0 or _kept(w, 1, i) * lost > _kept(w, 0, len(p.lever) + index) * best):
            w.now.promise, w.now.which = lost / every, i
            return _of_lever(p, w, i, _between(p, w, i))
        promise, w.now.which = -best / every, len(p.lever) + index
    if kind == ARGUMENT:
        kind, index, value = _of_unit(p, w, index)
    counts = abs(gap) + (COARSE * w.now.best_cost if w.now.best_cost < INF else 0.0)
    for i in range(len(p.lever)):
        lost, cut = _lost_by_lever(p, w, i, count, counts if gap < INF else 0.0)
        if lost > best or (kind == NOTHING and lost >= 0.0):
            best = max(lost, best)
            kind, index, value = _of_lever(p, w, i, cut)
    if kind == ARGUMENT:
        w.now.promise = promise
    return (kind, index, value) if kind != NOTHING else _anything(p, w)


@compiled
def note_promise(w, promise):
    """Keep with a new node how far too high the logit could be in its parent, what the split promised to take
    of that, and the split's column in w.learned. Into promise (3 or more,)."""
    promise[0], promise[1], promise[2] = w.now.room, w.now.promise, w.now.which


@compiled
def share_gained(w, room, closed):
    """What share of the logit's room in the parent the split that made the node in w has taken; all of it
    where the node is ``closed``."""
    return 1.0 if closed or not room > 0.0 else 1.0 - min(max(w.now.room, 0.0), room) / room


@compiled
def learn(w, noted, gained):
    """Note what a split has taken of the logit's room (:func:`share_gained`), and had promised (``noted`` by
    :func:`note_promise`): noted (3 or more,)."""
    room, promise, which = noted[0], noted[1], noted[2]
    if not (room > 0.0 and promise != 0.0):
        return
    for k in range(2):  # of signs and of levers
        w.gained[k] *= FADES
        w.promised[k] *= FADES
    kind, column = 0 if promise < 0.0 else 1, int(which)
    w.gained[kind] += gained
    w.promised[kind] += abs(promise)
    w.learned[0, column] += gained
    w.learned[1, column] += abs(promise)


@compiled
def _kept(w, kind, which):
    """What share of its promises a split on one lever or unit is thought to keep.

    ``kind`` is 0 for signs, 1 for levers; ``which`` is the column in w.learned.
    """
    ratio = (1.0 + w.gained[kind]) / (1.0 + w.promised[kind])
    return (PRIOR * ratio + w.learned[0, which]) / (PRIOR + w.learned[1, which])


@compiled
def _weigh_contradicted(p, w, count, weighed, gap):
    """Set w.row.try_multipliers to one number for rows that the relaxed optimum contradicts, that is, which
    are below 0 there with the units' own values; 0 for the others. With an action in hand it is the number
    with which these rows lose the whole gap, so that they compare with levers' costs, whatever the logit's
    units.

    Where it contradicts none by more than what rounding takes, the multipliers stay (``weighed``: some unit
    loses something under them), or the logit's line alone counts.
    """
    weights, found, total = w.row.try_multipliers, w.convex_rows.x, 0.0
    cleared(weights)
    for r in range(count):
        weights[r] = 1.0
        _, _, lost = _lost_by_units(p, w, weights, count, False)
        weights[r] = 0.0
        found[r] = 1.0 if lost > reached(w, r) else 0.0
        total += lost if found[r] > 0.0 else 0.0
    one = gap / total if gap / HUGE < total < INF and w.now.best_cost < INF else 1.0
    for r in range(count):
        own = w.row.multipliers[r] if weighed else 1.0 if r == 0 else 0.0
        weights[r] = one * found[r] if total > 0.0 else own


@compiled
def _lost_by_units(p, w, multipliers, count, learns):
    """What the bound loses at open units: the rows' multipliers times the unit's coefficients in the rows,
    times the distance between the unit's line and its value at the relaxed optimum. w.unit.score gets the
    loss per width of the unit's argument. With ``learns``, the unit of the largest loss is chosen after
    multiplying losses by :func:`_kept`. Shape: multipliers (R,).

    Returns
    -------
    (most, where, total)
        ``most`` is that unit's loss; ``where`` is layer * width + unit, -1 for nowhere.
    """
    unit = w.unit
    most, where, total, top = 0.0, -1, 0.0, 0.0
    for k in range(len(p.widths)):
        for j in range(p.widths[k]):
            unit.score[k, j] = 0.0
            l, h, z = unit.low[k, j], unit.high[k, j], unit.relaxed[k, j]
            if not is_open(p, unit, k, j):
                continue
            curved, lost = k == 0 and p.kind[j] != RELU, 0.0
            if curved:
                v = curve(p.kind[j], z, p.edge[j])
                least = 0.01 * distance(unit, j)  # a line that touches here loses elsewhere
                above = max(unit.slope[0, j] * z + unit.rise[0, j] - v, least)
                under = max(v - unit.alpha[0, j] * z - unit.fall[0, j], least)
            else:
                v = max(z, 0.0)
                above, under = max(h / (h - l) * (z - l) - v, 0.0), 0.0
            for r in range(count):
                a = multipliers[r] * w.row_coefficients[0, r, k, j]
                if a > 0.0:
                    lost += a * above
                elif a < 0.0:
                    lost -= a * (under if curved else v - w.row_coefficients[1, r, k, j] * z)
            unit.score[k, j] = lost / (h - l)
            total += lost
            place = k * unit.low.shape[1] + j
            likely = lost * _kept(w, 0, len(p.lever) + place) if learns else lost
            if likely > top:
                top, most, where = likely, lost, place
    return most, where, total


@compiled
def _lost_by_lever(p, w, i, count, counts):
    """What the bound loses because the relaxed optimum mixes a lever's labels, is no whole number or not
    what a size costs, or pays for part of an action, and where to split; -1 for nothing.

    Where sizes are near 0, rounding alone loses much of a lever's cost; what is lost is to be some of
    ``counts``, too: the gap that is left to the target, and a little of the best cost.
    """
    lever = p.lever[i]
    t, mode, l, h = w.points.relaxed[i], w.box[i].mode, w.box[i].lo, w.box[i].hi
    if lever.label > 0.0:
        return _lost_by_label(p, w, i, count), t
    best, value, lost, moved, grid, fixed = -1.0, t, -1.0, 0.0, lever.grid, lever.fixed
    if lever.knots > 0.0 and (mode == EITHER or (mode == ACTED and l < h)):
        own, most = cost_of(p, i, t), top_of(p, i, t)
        loss = max(own - bound_of(p, i, t), 0.0)
        loss += w.points.shares[i] * max(most - top_bound_of(p, i, t), 0.0)
        forgiven = 0.5 * (GAP * min(w.now.best_cost, w.now.ceiling) + w.now.allowance)
        if loss > max(COARSE * (own + most + counts), EACH * forgiven / len(p.lever)):
            best = loss if loss >= LITTLE * (own + most + counts) else loss * LAST
            knot = knot_inside(p, i, l, h, t)
            value = knot if knot < INF else _between(p, w, i)
    for r in range(count):
        moved += w.row.multipliers[r] * abs(w.rows[r, p.start[i]])
    apart = 0.0  # how far the optimum is from the lever's steps
    if grid > 0.0:
        part = (t - lever.shift) / grid
        part -= np.floor(part)  # beyond 2^63 an integer would overflow
        part = min(part, 1.0 - part)
        apart = part * grid if part > COARSE else 0.0
    if grid > 0.0 and mode == ACTED and l < h:
        lost = moved * apart if apart > 0.0 else -1.0
    elif mode == EITHER and t != 0.0:
        far = max(h, 0.0) if t > 0.0 else max(-l, 0.0)
        lost = (fixed * (1.0 - abs(t) / far) if far > 0.0 else fixed) + moved * apart
        if not l <= t <= h:
            lost += moved * min(abs(t), abs(t - (l if l > 0.0 else h)))
    return (lost, t) if lost > best else (best, value)


@compiled
def _lost_by_label(p, w, i, count):
    """The larger of what a lever's mixture of labels costs and what it moves the rows by, against its main
    label; -1 where there is no mixture."""
    main, share = p.start[i] + int(w.points.relaxed[i]), w.columns.share
    if share[main] >= 1.0 - COARSE:
        return -1.0
    paid, moved = 0.0, 0.0
    for c in range(p.start[i], p.start[i + 1]):
        paid += share[c] * abs(p.column[c].cost - p.column[main].cost)
    for r in range(count):
        v = 0.0
        for c in range(p.start[i], p.start[i + 1]):
            v += share[c] * (w.rows[r, c] - w.rows[r, main])
        moved += w.row.multipliers[r] * abs(v)
    return max(paid, moved)


@compiled
def _widest(p, w, learns):
    """The lever that the bound loses most over, and how much; -1 where nothing can be split.

    A unit's loss, per width of its argument, times the part of that width that is the lever's. A label's part
    is between its main label and the allowed one that is farthest from it. ``learns`` as in
    :func:`_lost_by_units`.
    """
    most, which, top = 0.0, -1, 0.0
    for i in range(len(p.lever)):
        s, lost = p.start[i], 0.0
        if p.lever[i].label > 0.0:
            own = s + int(w.points.relaxed[i])
            for c in range(s, p.start[i + 1]):
                if w.allowed[c] != 0 and c != own:
                    lost = max(lost, _lost_along(p, w, c, own))
        else:
            l, h = w.box[i].lo, w.box[i].hi
            if w.box[i].mode != IDLE and h - l > COARSE * max(abs(l), abs(h)):
                lost = (h - l) * _lost_along(p, w, s, -1)
        likely = lost * _kept(w, 1, i) if learns else lost
        if likely > top:
            top, most, which = likely, lost, i
    return most, which


@compiled
def _lost_along(p, w, c, own):
    """Units' scores times how far a step along a column, less the column ``own`` unless that is -1, moves
    their arguments: a unit that is not off passes on all that reaches it, a causal unit what its upper line
    does.

    At the relaxed optimum an open unit may be at rest. By its derivative there, a lever that counts through
    it alone would never be split, however wide, and others would become ever narrower.
    """
    moved, score, high = w.layer, w.unit.score, w.unit.high
    total, causes = 0.0, w.layer[2]
    for k in range(min(len(p.widths), 2)):
        for j in range(p.widths[k]):
            moved[2 - k, j] = p.first[0, k, j, c] - (p.first[0, k, j, own] if own >= 0 else 0.0)
    for m in range(p.widths[0]):
        total += score[0, m] * abs(causes[m])
        steep = w.unit.slope[0, m] * causes[m]
        if steep != 0.0:
            for l in range(m + 1, p.widths[0]):
                causes[l] += p.caused[0, 0, l, m] * steep
            for j in range(p.widths[1] if len(p.widths) > 1 else 0):
                moved[1, j] += p.caused[0, 1, j, m] * steep
    for k in range(1, len(p.widths)):
        here, after = moved[k % 2], moved[(k + 1) % 2]
        count = p.widths[k + 1] if k + 1 < len(p.widths) else 0
        cleared(after)
        for j in range(p.widths[k]):
            total += score[k, j] * abs(here[j])
            if high[k, j] > 0.0 and here[j] != 0.0:
                add(after, here[j], p.turned[k, j], count)
    return total


@compiled
def _anything(p, w):
    """Where nothing is lost at the relaxed optimum: the unit whose argument reaches farthest beyond its bend,
    else the lever with the fewest values, else the widest interval; as :func:`choose`."""
    most, kind, index, unit = 0.0, NOTHING, 0, w.unit
    for k in range(len(p.widths)):
        for j in range(p.widths[k]):
            far = min(-unit.low[k, j], unit.high[k, j])
            if k == 0 and p.kind[j] != RELU:
                far = distance(unit, j) if is_open(p, unit, 0, j) else 0.0
            if far > most:
                most, kind, index = far, ARGUMENT, k * unit.low.shape[1] + j
    if kind == ARGUMENT:
        return _of_unit(p, w, index)
    fewest, widest, which = INF, 0.0, -1
    for i in range(len(p.lever)):
        left, l, h = values_left(p, w, i), w.box[i].lo, w.box[i].hi
        width = INF if w.box[i].mode == EITHER else h - l
        if left == INF and width < INF and not l < 0.5 * (l + h) < h:
            continue
        if left > 1.0 and (left < fewest or (left == fewest and width > widest)):
            fewest, widest, which = left, width, i
    return _of_lever(p, w, which, _between(p, w, which)) if which >= 0 else (NOTHING, 0, 0.0)
