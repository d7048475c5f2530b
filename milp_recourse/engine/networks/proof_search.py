r"""Proof trees: a second search, with a frozen target, whose leaves keep the numbers that the checker needs.

The first search (:mod:`milp_recourse.engine.networks.search`) shrinks boxes by whatever it has just learnt
and changes its target as it goes, so its nodes prove nothing to a reader who does not have its history. Here
an end of an interval moves only by a recorded cut whose other side the checker can close from intervals
alone. The bounds of a node come from its own box, signs, slopes and the target. A leaf is closed by the
numbers that will be written, which are rounded to a few decimal digits first, under the rules of
docs/certificate_spec_v2.md: whole numbers are treated as continuous, and a curve lies between two parallel
lines. Rounding is added outward here, so what passes here also passes in rational arithmetic.

o are the open nodes (:class:`Open`), t is the record (:class:`Record`), and q the problem with whole numbers
as continuous ones; other letters are those of :mod:`~milp_recourse.engine.networks.work`.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.compiling import allocated, by_reference, compiled, entry, record, refer
from milp_recourse.engine.networks import (
    descent,
    elementary,
    interior,
    levers,
    linear_bounds,
    node,
    rows,
    splitting,
)
from milp_recourse.engine.networks.elementary import LOG, RELU, SIGMOID, SQUARE
from milp_recourse.engine.networks.lever_arrays import ACTED
from milp_recourse.engine.networks.linear_bounds import CHORD, decimal
from milp_recourse.engine.networks.numerics import BELOW, CLOSE, COARSE, FARTHEST, HUGE, ROUNDOFF, TINY
from milp_recourse.engine.networks.problem_arrays import MOST_LINES, Problems, case
from milp_recourse.engine.networks.work import add, cleared, copied

INF = math.inf
Array = NDArray[np.float64]
Whole = NDArray[np.int64]

PROVEN, MORE, FULL, SINGLE, FALSE, EDGE = range(6)
"""Why :func:`prove` returns: all nodes are closed; it has examined its share of nodes; the record or the list
of open nodes is full; a node that is still open cannot be split (often it holds a single action, and rounding
alone keeps it open); a feasible action costs less than is claimed; the node that is examined next again has
no open unit of the network, and its largest logit is within rounding of what is needed."""

LEAF, EMPTY, CUT, SIGN = range(4)
"""Kinds of recorded nodes: a leaf with multipliers, a leaf that intervals close, a cut of a lever's interval,
and a split on a unit's sign."""

SHARE = 2.0**40
"""Levers' shares of the maximum are written as multiples of 1 / SHARE."""

DIGITS, FEW_DIGITS = 9, 3
"""Decimal digits of multipliers, and of the thetas that neurons are bounded with."""

WORTH = 0.02
"""A shrunk end is recorded as a split if it takes off more than this share of the interval."""


COUNTS = record(open=int, recorded=int, leaves=int, examined=int, asked=int)


@by_reference
class Open(NamedTuple):
    """The open nodes of a proof, at most ``size``: the one that came last is examined first.

    Attributes
    ----------
    ends
        The intervals of levers' values, or of labels' numbers.
    order
        For each unit 0 where it was not split on, else the sign taken times a number that grows with every
        split on the path from the root.
    promise
        How far too high the logit could be in the parent, what the split promised, its column in ``learned``,
        and what it has gained in the other child, -1 until that is examined.
    now
        How many nodes are open, are recorded, are leaves with multipliers, and have been examined; and 1 +
        the slot of a node that :data:`EDGE` was returned for and that is to be split (0: none).
    """

    ends: Annotated[Array, "size", 2, "levers"]
    order: Annotated[Whole, "size", "layers", "units"]
    promise: Annotated[Array, "size", 4]
    now: Annotated[Any, COUNTS]


@by_reference
class Record(NamedTuple):
    """A stretch of the tree in preorder, of at most ``size`` nodes, and the evidence of its leaves.

    Attributes
    ----------
    kind, where, at
        Of every node: its kind (:data:`LEAF` and the others); the lever that is cut, or the layer and the
        neuron of a sign, or the number of the leaf; the value at which a lever is cut.
    slopes
        Lower slopes of the units for each line above the logit.
    lines
        How many lines a leaf has; 0 where an empty interval of a neuron closes it.
    multipliers
        Those of the logit's lines, then of the units split on, layer by layer, then of the stated rows.
    order
        The signs of the units split on, as in :class:`Open`.
    ball
        The ball's multiplier, followed by the residuals at which its tangent touches it.
    shares
        Every lever's share of the maximum.
    theta
        The thetas (:func:`~milp_recourse.engine.networks.linear_bounds.within`) of every neuron's upper and
        lower bound.
    """

    kind: Annotated[Whole, "size"]
    where: Annotated[Whole, "size", 2]
    at: Annotated[Array, "size"]
    slopes: Annotated[Array, "leaves", MOST_LINES, "layers", "units"]
    lines: Annotated[Whole, "leaves"]
    multipliers: Annotated[Array, "leaves", "rows"]
    order: Annotated[Whole, "leaves", "layers", "units"]
    ball: Annotated[Array, "leaves", "touched"]
    shares: Annotated[Array, "leaves", "levers"]
    theta: Annotated[Array, "leaves", 2, "layers", "units"]


def memory(p: Problems, size: int, recorded: int, leaves: int) -> tuple[Open, Record]:
    """Room for ``size`` open nodes, and for so many recorded ones, ``leaves`` of them with multipliers."""
    d, layers, units = len(p.lever), len(p.widths), p.weights.shape[1]
    shapes = {"levers": d, "layers": layers, "units": units, "leaves": leaves, "touched": 1 + len(p.noise)}
    shapes["rows"] = MOST_LINES + layers * units + p.row.shape[-2]
    return allocated(Open, size=size, **shapes), allocated(Record, size=recorded, **shapes)


# -- numbers as they are written ------------------------------------------------------------


@compiled
def _difference(a, b, side):
    """a - b rounded up (side 1) or down (-1); the error of the rounded difference is a double itself (Knuth's
    two-sum), so it is known exactly."""
    nearest = a - b
    part = nearest - a
    rest = (a - (nearest - part)) - (b + part)
    if rest * side > 0.0:
        nearest += side * (abs(nearest) * 2.0 * ROUNDOFF)
    return nearest


# -- nodes ----------------------------------------------------------------------------------


@compiled
def _push(o, w, ends, order):
    """Put a node on top of the open ones. Shapes: ends (2, d), order (K + 1, n)."""
    k = o.now.open
    copied(ends, o.ends[k])
    copied(order, o.order[k])
    splitting.note_promise(w, o.promise[k])
    o.promise[k, 3] = -1.0
    o.now.open = k + 1


@compiled
def _learn(w, o, slot, promise, closed):
    """Note what a split has gained, once both children are examined; the other one is in the slot below. One
    child alone would mislead for all the time spent below it."""
    room, promised, _, other = promise
    gained = splitting.share_gained(w, room, closed)
    if other >= 0.0:
        splitting.learn(w, promise, other)
        splitting.learn(w, promise, gained)
    elif promised != 0.0:
        o.promise[slot - 1, 3] = gained


@compiled
def _load(p, o, slot, w):
    """Write the open node in ``slot`` to w, as a box and signs."""
    for i in range(len(p.lever)):
        _set_ends(p, w, i, o.ends[slot, 0, i], o.ends[slot, 1, i])
    for k in range(len(p.widths)):
        for j in range(p.widths[k]):
            s = o.order[slot, k, j]
            w.unit.split[k, j] = 1.0 if s > 0 else 2.0 if s < 0 else 0.0


@compiled
def _set_ends(p, w, i, low, high):
    """Write an interval of a lever's values to w's box, in the lever's coordinate; of labels, which ones are
    allowed."""
    lever = p.lever[i]
    if lever.label > 0.0:
        for c in range(p.start[i], p.start[i + 1]):
            w.allowed[c] = 1 if low <= c - p.start[i] <= high else 0
        return
    x, unit = lever.factual, lever.unit
    w.allowed[p.start[i]] = 1
    w.box[i].lo, w.box[i].hi = _difference(low, x, -1.0) / unit, _difference(high, x, 1.0) / unit
    w.box[i].mode = p.box[i].mode


@compiled
def _nothing(p, w, target):
    """Whether intervals alone close the box in w (section 7.1); the causal units get bounds for that.

    Returns
    -------
    int
        -1 where they close it; 1 where a part of the box is outside the ball, else 0.
    """
    total, top, nothing, point = 0.0, 0.0, w.columns.zeros, w.points.least_paid
    levers.relevel(p, w.box)
    for i in range(len(p.lever)):  # the cheapest point of the box
        total += levers.least_cost(p, w, w.box, w.allowed, i)
        top = max(top, levers.respond(p, w.box, w.allowed, i, nothing, 0.0, 1.0, point))
        if p.lever[i].knots > 0.0 and w.box[i].mode == ACTED:  # least at the end next to the factual
            near = min(max(w.box[i].lo, 0.0), w.box[i].hi)
            top = max(top, levers.top_of(p, i, near) * (1.0 - p.slacks.cost))
    dear = (total + top) * (1.0 - p.slacks.cost) - p.slacks.tiny >= target
    if dear or not _bound_causes(p, w) or rows.stated_rows(p, w, 0, False) < 0:
        return -1
    return rows.residual_lines(p, w) if len(p.noise) > 0 else 0


@compiled
def _bound_causes(p, w):
    """Bounds and lines of the causal units, one after the other; False if a logarithm's argument is nowhere
    positive."""
    unit, size, line = w.unit, w.layer[0], w.columns.line
    for j in range(p.widths[0]):
        rows.sizes_direct(p, w, 0, j, j + 1)
        unit.size[0, j] = size[j]
        slack = p.slacks.line * size[j] + p.slacks.tiny
        const = rows.unit_line(p, w, 0, j, 1.0) + slack
        unit.high[0, j] = linear_bounds.over_box(p, w, line) + const
        const = rows.unit_line(p, w, 0, j, -1.0) + slack
        unit.low[0, j] = -(linear_bounds.over_box(p, w, line) + const)
        if p.kind[j] == RELU:
            linear_bounds.relax(p, unit, 0, j)
        elif p.kind[j] == LOG and unit.high[0, j] <= 0.0:
            return False
        else:
            _parallels(p, unit, j)
    return True


@compiled
def _parallels(p, unit, m):
    """The two parallel lines of a curve; their slope is the chord's, rounded down to a multiple of 1 / CHORD.

    The chord of a logarithm starts at the edge. Where the argument's interval reaches below the edge, the
    checker has no lower line, and the one that is set here is too low to prove anything.
    """
    kind, edge, l, h = p.kind[m], p.edge[m], unit.low[0, m], unit.high[0, m]
    width, beyond = h - l, kind == LOG and l < edge
    if beyond:
        l = unit.low[0, m] = edge if h > edge else min(h, TINY)
    if kind == SQUARE:
        slope = l + h
        over, under = h, 0.5 * slope
    else:
        slope = 0.0 if h <= edge else np.floor(elementary.chord(kind, l, h, edge) * CHORD) / CHORD
        over, under = 1.0 / slope if slope > 0.0 else INF, l
        if kind == SIGMOID:
            root = math.sqrt(max(1.0 - 4.0 * slope, 0.0))
            over = elementary.log((1.0 + root) / (1.0 - root)) if root < 1.0 else FARTHEST
            under = -over
    # the checker may round to the next slope, and its interval may be a little shorter
    room = 4.0 * width * (1.0 + abs(slope)) / CHORD + p.slacks.tiny
    steep = abs(elementary.steepness(kind, l, edge)) + abs(elementary.steepness(kind, h, edge))
    room += 2.0 * p.slacks.line * unit.size[0, m] * steep
    unit.slope[0, m] = unit.alpha[0, m] = slope
    unit.rise[0, m] = elementary.highest(kind, slope, l, h, over, edge) + room
    unit.fall[0, m] = -HUGE if beyond else elementary.lowest(kind, slope, l, h, under, edge) - room


@compiled
def _shrink(p, q, w, o, t, ends, order, target, ball):
    """Cut off what the cost and the ball (if ``ball`` is positive) rule out. Each cut is recorded as a split
    whose other side is an empty leaf; the checker closes that without whole numbers, as ``q`` has it. Shapes:
    ends (2, d), order (K + 1, n)."""
    left_of = w.aside
    levers.relevel(p, w.box)
    left = levers.contract(p, w, w.box, w.allowed, target)
    if left and ball > 0:
        node.contract_by_ball(p, w)
    for i in range(len(p.lever)):
        lever = p.lever[i]
        x, unit = lever.factual, lever.unit
        left_of[i].lo, left_of[i].hi = x + unit * w.box[i].lo, x + unit * w.box[i].hi
        if lever.label > 0.0:
            left_of[i].lo, left_of[i].hi = INF, -INF
            for c in range(p.start[i], p.start[i + 1]):
                if w.allowed[c] != 0:
                    left_of[i].lo = min(left_of[i].lo, c - p.start[i])
                    left_of[i].hi = max(left_of[i].hi, c - p.start[i])
        _set_ends(p, w, i, ends[0, i], ends[1, i])
    for i in range(len(p.lever) if left else 0):
        for side in (1, -1):
            free = p.lever[i].label > 0.0 or w.box[i].mode == ACTED
            if free and ends[0, i] < ends[1, i]:
                end = left_of[i].hi if side > 0 else left_of[i].lo
                _shrink_end(p, q, w, o, t, ends, order, target, i, end, side)


@compiled
def _shrink_end(p, q, w, o, t, ends, order, target, i, end, side):
    """Cut a lever's interval near ``end`` and keep what is below it (side 1) or above it (-1), if intervals
    alone close the other part and that is large enough to be worth two nodes. Shapes: ends (2, d),
    order (K + 1, n)."""
    low, high, whole = ends[0, i], ends[1, i], _is_whole(p, i)
    if whole:
        step, first = _steps(p, i)
        k = (end - first) / step + side * CLOSE
        place = first + (np.floor(k) + 0.5 if side > 0 else np.ceil(k) - 0.5) * step
    else:
        place = decimal(end, high - low, 2.0, side)
    if not (low < place < high and (high - place if side > 0 else place - low) > WORTH * (high - low)):
        return
    below, above = _around(p, i, place)
    _set_ends(p, w, i, above if side > 0 else low, high if side > 0 else below)
    if _nothing(q, w, target) < 0:
        if side > 0:
            _cut(p, w, o, t, ends, order, i, place)
        else:  # the part below comes first
            _write(o, t, CUT, i, 0, place)
            _write(o, t, EMPTY, 0, 0, 0.0)
            ends[0, i] = above
    _set_ends(p, w, i, ends[0, i], ends[1, i])


@compiled
def _cut(p, w, o, t, ends, order, i, place):
    """Record a cut of a lever's interval and open the part above it; ``ends`` is the part below then. Shapes:
    ends (2, d), order (K + 1, n)."""
    below, above = _around(p, i, place)
    _write(o, t, CUT, i, 0, place)
    low, ends[0, i] = ends[0, i], above
    _push(o, w, ends, order)
    ends[0, i], ends[1, i] = low, below


@compiled
def _is_whole(p, i):
    """Whether a lever's values are steps or labels."""
    return p.lever[i].label > 0.0 or p.lever[i].grid > 0.0


@compiled
def _steps(p, i):
    """The distance of a lever's values, and one of them."""
    lever = p.lever[i]
    unit, grid = lever.unit, lever.grid
    return (unit * grid, lever.factual + unit * lever.shift) if grid > 0.0 else (1.0, 0.0)


@compiled
def _around(p, i, place):
    """The largest value below a cut and the least one above it; for a continuous lever both are the cut."""
    if not _is_whole(p, i):
        return place, place
    step, first = _steps(p, i)
    k = (place - first) / step
    return first + np.floor(k) * step, first + np.ceil(k) * step


@compiled
def _write(o, t, kind, a, b, place):
    """Append a node to the record: its kind, ``where`` (a, b) and ``at`` of :class:`Record`."""
    k = o.now.recorded
    t.kind[k], t.where[k, 0], t.where[k, 1], t.at[k] = kind, a, b, place
    o.now.recorded = k + 1


# -- bounds ---------------------------------------------------------------------------------


@compiled
def _bound_neurons(p, w, budget):
    """Bounds of every neuron's argument from the box and the signs in w and the budget; False if an argument
    has no value left."""
    unit = w.unit
    cleared(unit.theta_high)
    cleared(unit.theta_low)
    for k in range(1, len(p.widths)):
        for j in range(p.widths[k]):
            unit.low[k, j] = 0.0 if unit.split[k, j] == 1.0 else -INF
            unit.high[k, j] = 0.0 if unit.split[k, j] == 2.0 else INF
    paid, left = linear_bounds.least_paid(p, w), True
    if levers.bends(p):  # the checker knows costs between knots: its thetas give others
        budget = -INF
    for k in range(1, len(p.widths)):
        left = left and node.bound_layer(p, w, budget, paid, k, 0, FEW_DIGITS)
    for k in range(1, len(p.widths) if left else 0):
        for j in range(p.widths[k]):
            unit.rise[k, j] += _next_slope(p, w, k, j)
    return left


# -- leaves ---------------------------------------------------------------------------------


@compiled
def _next_slope(p, w, k, j):
    """What a neuron's upper line may differ by from the checker's anywhere in the box if rounding leaves open
    to which multiple of 1 / CHORD the slope is rounded down; else 0.

    The line itself has room for the next slope where the argument is inside its interval. With other slopes
    below, or thetas, the line above the argument reaches beyond that.
    """
    l, h, size = w.unit.low[k, j], w.unit.high[k, j], w.unit.size[k, j]
    if l >= 0.0 or h <= 0.0:
        return 0.0
    steps, doubt = (
        h / (h - l) * CHORD,
        4.0 * CHORD * (p.slacks.line * size + p.slacks.tiny) / (h - l) + COARSE,
    )
    return 4.0 * size / CHORD if abs(steps - np.floor(steps + 0.5)) <= doubt else 0.0


@compiled
def _add_term(p, w, t, leaf, which, logit_size):
    """Add one of a leaf's terms, bounded from above by a line, to the sum in the last of w.rows.

    Term number ``which`` is the logit with that number's slopes (``t.slopes``) and multiplier. The first
    term also has all other rows that the leaf weighs: the checker adds rows up before it replaces units by
    their lines.
    """
    line, causes, coef = w.columns.line, w.layer[1], w.layer[2]
    layers, g, last = len(p.widths), t.multipliers[leaf, which], len(w.rows) - 1
    cleared(line)
    cleared(w.layer[1:])
    cleared(w.unit.score)
    copied(t.slopes[leaf, which], w.unit.alpha)
    size = g * (logit_size + abs(p.need_low))
    const = linear_bounds.add_argument(p, layers, 0, g, coef, line, causes) - g * p.need_low
    if which == 0:
        rest, rest_size = _add_others(p, w, t, leaf, line, causes)
        const += rest
        size += rest_size
    const = linear_bounds.back(p, w.unit, layers - 1, coef, const, line, causes)
    add(w.rows[last], 1.0, line, len(line))
    w.row.consts[last] += const + p.slacks.line * size + p.slacks.tiny


@compiled
def _add_others(p, w, t, leaf, line, causes):
    """Add the signs' rows, the problem's own and the ball's tangent, times their multipliers, to ``line``,
    ``causes`` and the coefficients of layers in w.unit.score; returns their constant and the sum of absolute
    terms behind them. Shapes: line (P,), causes (n,)."""
    const, size, mu, first = 0.0, 0.0, t.ball[leaf, 0], MOST_LINES + t.order[leaf].size
    for k in range(1, len(p.widths)):
        for j in range(p.widths[k]):
            a = t.multipliers[leaf, MOST_LINES + k * t.order.shape[2] + j]
            if a > 0.0:
                side = 1.0 if t.order[leaf, k, j] > 0 else -1.0
                size += a * w.unit.size[k, j]
                const += linear_bounds.add_argument(p, k, j, side * a, w.unit.score[k - 1], line, causes)
    for r in range(p.row.shape[1]):
        multiplier = t.multipliers[leaf, first + r]
        if multiplier > 0.0:
            add(line, multiplier, p.row[0, r], p.row.shape[2])
            add(causes, multiplier, p.row_caused[0, r], p.widths[0])
            const += multiplier * p.row_const[0, r]
            size += multiplier * rows.stated_size(p, w, r)
    for f in range(len(p.noise) if mu > 0.0 else 0):
        if not rows.in_ball(p, f):
            continue
        weight, noise, touched = mu * p.precision[f], p.noise[f], t.ball[leaf, 1 + f]
        rate, rest = 2.0 * weight * touched, 0.0
        if rows.is_linear(p, f):  # the ball's linear part
            rate, rest = mu, p.excess
        const += weight * (touched - noise) * (touched - noise) - rate * rest
        add(line, -rate, p.residual[0, f], p.residual.shape[2])
        add(causes, -rate, p.residual_caused[0, f], p.widths[0])
        size += weight * (abs(touched) + abs(noise)) ** 2 + abs(rate) * w.ball.size[f]
    return const, size


@compiled
def _holds(p, w, t, leaf, logit_size, target):
    """Whether the leaf as it is written proves the target. The last of w.rows, which no leaf needs, gets the
    sum of the leaf's terms, with a multiplier of 1."""
    last = len(w.rows) - 1
    cleared(w.rows[last])
    w.row.consts[last], w.row.try_multipliers[last] = 0.0, 1.0
    for which in range(t.lines[leaf]):
        _add_term(p, w, t, leaf, which, logit_size)
    consts, weights, choice = w.row.consts[last:], w.row.try_multipliers[last:], w.points.choice
    return interior.dual_value(p, w, w.rows[last:], consts, 1, weights, t.shares[leaf], choice) >= target


@compiled
def _clear(t, leaf):
    """Set all multipliers of a leaf to 0."""
    t.lines[leaf] = 0
    cleared(t.multipliers[leaf])
    cleared(t.ball[leaf])
    cleared(t.shares[leaf])


@compiled
def _weigh(w, t, leaf, r, multiplier):
    """Write the multiplier of row r of w to a leaf."""
    what = w.row.kind[r]  # as keep_row numbers what rows stand for
    where = MOST_LINES + what if what >= 0 else -1 - what
    t.multipliers[leaf, where] = linear_bounds.short(multiplier, DIGITS)


@compiled
def _take(p, w, t, leaf, count, ball):
    """Write the convex problem's multipliers, rounded to :data:`DIGITS`, to a leaf. Row ``ball`` is the
    ball's, -1 for none."""
    for r in range(count):
        if r != ball:
            _weigh(w, t, leaf, r, w.row.multipliers[r])
            continue
        t.ball[leaf, 0] = linear_bounds.short(w.row.multipliers[r], DIGITS)
        for f in range(len(p.noise)):
            t.ball[leaf, 1 + f] = linear_bounds.short(w.ball.best_phat[f], DIGITS)
    for i in range(len(p.lever)):
        t.shares[leaf, i] = np.floor(w.points.shares[i] * BELOW * SHARE) / SHARE


@compiled
def _outside(p, w, t, leaf, r, lines, logit_size, target):
    """Write a leaf's multipliers where row r is negative in all of the box: this row's alone, large enough
    for the target. Returns whether the leaf proves it."""
    _clear(t, leaf)
    t.lines[leaf] = lines
    multiplier = 2.0 * (target + 1.0) / -(linear_bounds.over_box(p, w, w.rows[r]) + w.row.consts[r])
    if multiplier < INF:
        _weigh(w, t, leaf, r, multiplier)
    return _holds(p, w, t, leaf, logit_size, target)


@compiled
def _close(p, w, t, leaf, order, target, budget, ball, steps):
    """:func:`_evidence` that bounds neurons within the budget only where the leaf does not close without it:
    thetas take most of a leaf's room. Shape: order (K + 1, n)."""
    found = _evidence(p, w, t, leaf, order, target, budget, budget, ball, steps)
    bounded = found[0] and t.theta[leaf].any()
    if bounded and not _evidence(p, w, t, leaf, order, target, budget, -INF, ball, steps)[0]:
        return _evidence(p, w, t, leaf, order, target, budget, budget, ball, steps)
    return found


@compiled
def _evidence(p, w, t, leaf, order, target, budget, within, ball, steps):
    """Try to close the node in w by the neurons' bounds and by weak duality, and write the leaf. Neurons are
    bounded with the budget ``within``, -INF for none. Shape: order (K + 1, n).

    Returns
    -------
    (closed, rows, open, value)
        Whether it is closed; how many rows the last Lagrangian has; how many units are open; the last
        Lagrangian's bound.
    """
    layers, unit = len(p.widths), w.unit
    copied(order, t.order[leaf])
    _clear(t, leaf)
    bounded = _bound_neurons(p, w, within)
    copied(unit.theta_high, t.theta[leaf, 0])
    copied(unit.theta_low, t.theta[leaf, 1])
    copied(unit.alpha, t.slopes[leaf, 0])
    if not bounded:  # the slopes of layers that were not reached do not matter
        return True, 0, 0, INF
    rows.sizes_next(p, w, layers)
    logit_size, size = w.layer[0, 0], w.layer[0, 0] + abs(p.need_low)
    slack, unsure = p.slacks.line * size + p.slacks.tiny, rows.open_units(p, unit, 0)
    count, tangent = node.first_rows(p, w, slack, ball)
    if count < 0:
        return _outside(p, w, t, leaf, -1 - count, 1, logit_size, target), 0, unsure, -INF
    node.note_room(p, w, size, budget, linear_bounds.least_paid(p, w))
    point, other = w.points.relaxed, w.points.other
    for turn in range(MOST_LINES):
        value = interior.solve_node(p, w, count, tangent, target, point, other, steps, unsure == 0)
        if value >= target:
            _clear(t, leaf)
            t.lines[leaf] = turn + 1
            _take(p, w, t, leaf, count, tangent)
            if _holds(p, w, t, leaf, logit_size, target):
                return True, count, unsure, value
        if turn + 1 == MOST_LINES or unsure == 0:
            break
        rows.relaxed_arguments(p, w)
        if not node.tighter(p, w, 1):
            break
        copied(unit.alpha, t.slopes[leaf, turn + 1])
        if not node.logit_row(p, w, slack, count, turn + 1):
            return _outside(p, w, t, leaf, count, turn + 2, logit_size, target), 0, unsure, -INF
        if not rows.reached(w, count) < 0.0:
            break
        count += 1
    return False, count, unsure, value


# -- splits ---------------------------------------------------------------------------------


@compiled
def _split(p, w, o, t, ends, order, count, unsure, gap):
    """Record how the node in w is split and open its children; False where nothing can be split. Shapes: ends
    (2, d), order (K + 1, n)."""
    kind, index, value = splitting.choose(p, w, count, unsure, gap)
    layer, j = index // w.unit.low.shape[1], index % w.unit.low.shape[1]
    if kind == splitting.ARGUMENT and layer > 0:
        _write(o, t, SIGN, layer - 1, j, 0.0)
        for sign in (1, -1):
            order[layer, j] = sign * o.now.examined
            _push(o, w, ends, order)
        return True
    i, place = -1, value
    if kind == splitting.LABELS:
        i, place = index, value - 0.5 if value > ends[0, index] else value + 0.5
    elif kind == splitting.INTERVAL:
        i, place = index, p.lever[index].factual + p.lever[index].unit * value
    if i >= 0 and _part(p, w, o, t, ends, order, i, place):
        return True
    # on a causal unit no split is recorded: a lever is cut instead of what promised
    i, w.now.promise = _widest(p, w, ends), 0.0
    return i >= 0 and _part(p, w, o, t, ends, order, i, 0.5 * (ends[0, i] + ends[1, i]))


@compiled
def _widest(p, w, ends):
    """The lever with the widest interval, in its units, or the most labels; -1 where none is free. Shape:
    ends (2, d)."""
    most, which = 0.0, -1
    for i in range(len(p.lever)):
        width = (ends[1, i] - ends[0, i]) / p.lever[i].unit
        if (p.lever[i].label > 0.0 or w.box[i].mode == ACTED) and width > most:
            most, which = width, i
    return which


@compiled
def _part(p, w, o, t, ends, order, i, place):
    """Split a lever's interval near a value; False where one of the parts would be empty. Shapes:
    ends (2, d), order (K + 1, n)."""
    low, high = ends[0, i], ends[1, i]
    if _is_whole(p, i):
        step = _steps(p, i)[0]
        near = min(max(_around(p, i, place)[0], low), high - step) + 0.5 * step
    else:
        near = decimal(place, high - low, 3.0, 0)
        if not low < near < high:
            near = place
    if not low < near < high:
        return False
    _cut(p, w, o, t, ends, order, i, near)
    _push(o, w, ends, order)
    return True


# -- the tree -------------------------------------------------------------------------------


@entry
def prove(pp, pq, w, o, t, c, target, budget, share, steps):
    """Close nodes until all are closed or one of the other reasons to return comes up.

    Parameters
    ----------
    pp, pq
        The problem, and the same with whole numbers as continuous ones.
    w, o, t
        Memory; the open nodes and the record, both of which may come from an earlier call.
    c
        The configuration.
    target
        The cost that every leaf must prove to be a lower bound, less ``base`` (what this configuration's
        acting costs whatever the values).
    budget
        The cost that is claimed to be least, less ``base``; inf where no action is claimed to exist.
    share
        Most nodes to examine.
    steps
        Most interior-point steps of a convex problem.

    Returns
    -------
    int
        :data:`PROVEN`, :data:`MORE`, :data:`FULL`, :data:`SINGLE`, :data:`FALSE` or :data:`EDGE`.
    """
    p, q = refer(case(pp, c)), refer(case(pq, c))
    d = len(p.lever)
    linear = len(p.widths) == 1 and p.widths[0] == 0 and len(p.noise) == 0
    claimed = (budget + p.base[0]) * (1.0 - p.slacks.cost)
    w.now.best_cost, w.now.case, w.now.spare = claimed, c, 0.0
    ends, order = w.ends, w.order
    for _ in range(share):
        if o.now.open == 0:
            return PROVEN
        recorded = o.now.recorded + 4 * d + 4 > len(t.kind) or o.now.leaves + 1 > len(t.lines)
        if recorded or o.now.open + 2 * d + 4 > len(o.ends):
            return FULL
        o.now.open -= 1
        slot, leaf, closed = o.now.open, o.now.leaves, False
        copied(o.ends[slot], ends)
        copied(o.order[slot], order)
        promise = o.promise[slot, 0], o.promise[slot, 1], o.promise[slot, 2], o.promise[slot, 3]
        o.now.examined += 1
        w.now.promise = 0.0
        _load(p, o, slot, w)
        count, unsure, value = 0, 0, 0.0
        for shrunk in range(2):
            ball = _nothing(q, w, target)
            if ball >= 0 and (shrunk == 1 or linear):
                # one line often closes a whole linear problem, which shrinking would split
                closed, count, unsure, value = _close(q, w, t, leaf, order, target, budget, ball, steps)
            if ball < 0 or closed:
                break
            if shrunk == 0:
                _shrink(p, q, w, o, t, ends, order, target, ball)
        _learn(w, o, slot, promise, closed or ball < 0)
        if ball < 0:
            _write(o, t, EMPTY, 0, 0, 0.0)
            continue
        if closed:
            o.now.leaves += 1
            _write(o, t, LEAF, leaf, 0, 0.0)
            continue
        copied(w.points.relaxed, w.points.choice)
        if descent.try_point(p, w, w.points.choice) and w.now.best_cost < claimed:
            return FALSE
        if count > 0 and o.now.asked != slot + 1 and rows.on_edge(p, w):
            _push(o, w, ends, order)
            return EDGE
        o.now.asked = 0
        if not _split(p, w, o, t, ends, order, count, unsure, target - value):
            copied(ends, o.ends[o.now.open])
            return SINGLE
    return MORE
