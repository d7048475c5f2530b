r"""Proof trees: a second search, with a frozen target, whose leaves keep the numbers that the checker needs.

The first search (:mod:`milp_recourse.compiled.search`) shrinks boxes by whatever it has just learnt and
changes its target as it goes, so its nodes prove nothing to a reader who does not have its history. Here an
end of an interval moves only by a recorded cut whose other side the checker can close from intervals alone.
The bounds of a node come from its own box, signs, slopes and the target. A leaf is closed by the numbers that
will be written, which are rounded to a few decimal digits first, under the rules of
docs/certificate_spec_v2.md: whole numbers are treated as continuous, and a curve lies between two parallel
lines. Rounding is added outward here, so what passes here also passes in rational arithmetic.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.compiled import layout as at
from milp_recourse.compiled.descent import try_point
from milp_recourse.compiled.elementary import (
    LOG,
    RELU,
    SIGMOID,
    SQUARE,
    chord,
    highest,
    log,
    lowest,
    steepness,
)
from milp_recourse.compiled.interior import dual_value, solve_node
from milp_recourse.compiled.levers import contract, least_cost
from milp_recourse.compiled.network import (
    CHORD,
    back_causes,
    least_paid,
    over_box,
    relax,
    short,
)
from milp_recourse.compiled.node import (
    bound_layer,
    contract_by_ball,
    first_rows,
    logit_row,
    note_room,
    tighter,
)
from milp_recourse.compiled.numerics import BELOW, FARTHEST, HUGE, ROUNDOFF, TINY
from milp_recourse.compiled.problem import Problems, case
from milp_recourse.compiled.rows import (
    in_ball,
    is_linear,
    open_units,
    reached,
    relaxed_arguments,
    residual_lines,
    sizes_direct,
    sizes_next,
    stated_rows,
    stated_size,
    unit_line,
)
from milp_recourse.compiled.splitting import (
    ARGUMENT,
    INTERVAL,
    LABELS,
    choose,
    learn,
    note_promise,
    share_gained,
)
from milp_recourse.compiled.work import cleared, copied
from milp_recourse.compiling import by_reference, compiled, entry, inner, refer

INF = math.inf
Array = NDArray[np.float64]

PROVEN, MORE, FULL, SINGLE, FALSE = range(5)
"""Why :func:`prove` returns: all nodes are closed; it has examined its share of nodes; the record or the list
of open nodes is full; a node that is still open cannot be split (often it holds a single action, and rounding
alone keeps it open); a feasible action costs less than is claimed."""

LEAF, EMPTY, CUT, SIGN = range(4)
"""Kinds of recorded nodes: a leaf with multipliers, a leaf that intervals close, a cut of a lever's interval,
and a split on a unit's sign."""

LINES = 3
"""Most lines above the logit in a leaf."""

SHARE = 2.0**40
"""Levers' shares of the maximum are written as multiples of 1 / SHARE."""

DIGITS, FEW_DIGITS = 9, 3
"""Decimal digits of multipliers, and of the thetas that neurons are bounded with."""

WORTH = 0.02
"""A shrunk end is recorded as a split if it takes off more than this share of the interval."""


@by_reference
class Open(NamedTuple):
    """The open nodes of a proof: the one that came last is examined first.

    Attributes
    ----------
    ends
        The intervals of levers' values, or of labels' numbers, (size, 2, d).
    order
        For each unit, which split on the path from the root was on it, counted from 1, times the sign taken;
        0 where it was not split on, (size, K + 1, n).
    promise
        How far too high the logit could be in the parent, what the split promised, its column in ``learned``,
        and what it has gained in the other child, -1 until that is examined, (size, 4).
    closed
        1 for the part that a shrunk end has cut off, which intervals alone close; else 0, (size,).
    state
        How many nodes are open, are recorded, are leaves with multipliers, and have been examined, (4,).
    """

    ends: Array
    order: NDArray[np.int64]
    promise: Array
    closed: NDArray[np.uint8]
    state: NDArray[np.int64]


@by_reference
class Record(NamedTuple):
    """A stretch of the tree in preorder, and the evidence of its leaves.

    Attributes
    ----------
    kind, where, at
        Of every node: its kind (:data:`LEAF` and the others), (size,); the lever that is cut, or the layer
        and the neuron of a sign, or the number of the leaf, (size, 2); the value at which a lever is cut,
        (size,).
    slopes
        Lower slopes of the units for each line, (leaves, LINES, K + 1, n).
    lines
        How many lines a leaf has, (leaves,); 0 where an empty interval of a neuron closes it.
    logit, signs, order, rows, ball, shares
        Multipliers: of the logit's lines, of the units split on (``order`` has their signs, as in
        :class:`Open`), of the stated rows, and of the ball, followed by the residuals at which its tangent
        touches it. Then every lever's share of the maximum.
    theta
        The thetas (:func:`~milp_recourse.compiled.network.within`) of every neuron's upper and lower bound,
        (leaves, 2, K + 1, n).
    """

    kind: NDArray[np.int64]
    where: NDArray[np.int64]
    at: Array
    slopes: Array
    lines: NDArray[np.int64]
    logit: Array
    signs: Array
    order: NDArray[np.int64]
    rows: Array
    ball: Array
    shares: Array
    theta: Array


def open_nodes(p: Problems, size: int) -> Open:
    """Arrays for ``size`` open nodes; none is open yet."""
    layers, n = len(p.widths), p.weights.shape[1]
    return Open(
        np.zeros((size, 2, p.lever.shape[1])),
        np.zeros((size, layers, n), dtype=np.int64),
        np.zeros((size, 4)),
        np.zeros(size, dtype=np.uint8),
        np.zeros(4, dtype=np.int64),
    )


def record(p: Problems, size: int, leaves: int) -> Record:
    """Arrays for a record of ``size`` nodes, ``leaves`` of them with multipliers."""
    layers, n, d = len(p.widths), p.weights.shape[1], p.lever.shape[1]
    return Record(
        np.zeros(size, dtype=np.int64),
        np.zeros((size, 2), dtype=np.int64),
        np.zeros(size),
        np.zeros((leaves, LINES, layers, n)),
        np.zeros(leaves, dtype=np.int64),
        np.zeros((leaves, LINES)),
        np.zeros((leaves, layers, n)),
        np.zeros((leaves, layers, n), dtype=np.int64),
        np.zeros((leaves, p.row.shape[-2])),
        np.zeros((leaves, 1 + len(p.noise))),
        np.zeros((leaves, d)),
        np.zeros((leaves, 2, layers, n)),
    )


# -- numbers as they are written ------------------------------------------------------------


@compiled
def decimal(place, width, digits, side):
    """A short decimal near ``place`` (side 0), not below it (1) or not above it (-1).

    It is a multiple of a power of ten, about ``width`` / 10^digits. If rounding puts it on the wrong side,
    ``place`` itself is returned.
    """
    scale = 10.0 ** min(max(np.ceil(-math.log10(max(width, 1e-300))) + digits, 0.0), 22.0)
    scaled = place * scale
    if side > 0:
        result = np.ceil(scaled) / scale
        return result if result >= place else place
    if side < 0:
        result = np.floor(scaled) / scale
        return result if result <= place else place
    return np.floor(scaled + 0.5) / scale


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
def _push(o, w, ends, order, closed):
    """Put a node on top of the open ones."""
    k = o.state[0]
    copied(ends, o.ends[k])
    copied(order, o.order[k])
    note_promise(w, o.promise[k])
    o.promise[k, 3] = -1.0
    o.closed[k] = closed
    o.state[0] = k + 1


@compiled
def _learn(w, o, slot, promise, closed):
    """Note what a split has gained, once both children are examined (``promise`` as in :class:`Open`). The
    other child is then in the slot below. One child alone would mislead for all the time spent below it."""
    gained, other = share_gained(w, promise[0], closed), promise[3]
    if other >= 0.0:
        learn(w, promise, other)
        learn(w, promise, gained)
    elif slot > 0:
        o.promise[slot - 1, 3] = gained


@compiled
def _load(p, o, slot, w):
    """Write the open node in ``slot`` to w, as a box and signs."""
    for i in range(p.lever.shape[1]):
        _set_ends(p, w, i, o.ends[slot, 0, i], o.ends[slot, 1, i])
    for k in range(len(p.widths)):
        for j in range(p.widths[k]):
            s = o.order[slot, k, j]
            w.unit[at.SPLIT, k, j] = 1.0 if s > 0 else 2.0 if s < 0 else 0.0


@compiled
def _set_ends(p, w, i, low, high):
    """Write an interval of a lever's values to w's box, in the lever's coordinate; of labels, which ones are
    allowed."""
    if p.lever[at.LABEL, i] > 0.0:
        for c in range(p.start[i], p.start[i + 1]):
            w.allowed[c] = 1 if low <= c - p.start[i] <= high else 0
        return
    x, unit = p.lever[at.FACTUAL, i], p.lever[at.UNIT, i]
    w.allowed[p.start[i]] = 1
    w.box[at.LO, i], w.box[at.HI, i] = _difference(low, x, -1.0) / unit, _difference(high, x, 1.0) / unit
    w.box[at.MODE, i] = p.box[at.MODE, i]


@compiled
def _dear(p, w, target):
    """Whether the cheapest point of the box in w costs the target or more (the first rule of section 7.1)."""
    total, top = 0.0, 0.0
    for i in range(p.lever.shape[1]):
        total += least_cost(p, w, w.box, w.allowed, i)
        if p.lever[at.LABEL, i] > 0.0:
            least = INF
            for c in range(p.start[i], p.start[i + 1]):
                if w.allowed[c] != 0:
                    least = min(least, p.column[at.TOP, c])
            top = max(top, least)
        elif w.box[at.MODE, i] == 1:
            near = max(w.box[at.LO, i], -w.box[at.HI, i], 0.0)
            top = max(top, p.lever[at.LARGEST, i] * near)
    total += top
    return total * (1.0 - p.cost) - p.tiny >= target


@compiled
def _nothing(p, w, target):
    """Whether intervals alone close the box in w (section 7.1); the causal units get bounds for that.

    Returns
    -------
    int
        -1 where they close it; 1 where a part of the box is outside the ball, else 0.
    """
    if _dear(p, w, target):
        return -1
    if not _bound_causes(p, w):
        return -1
    if stated_rows(p, w, 0, False) < 0:
        return -1
    return residual_lines(p, w) if len(p.noise) > 0 else 0


@compiled
def _bound_causes(p, w):
    """Bounds and lines of the causal units, one after the other; False if a logarithm's argument is nowhere
    positive."""
    unit, size, line = w.unit, w.layer[0], w.col[at.LINE]
    for j in range(p.widths[0]):
        sizes_direct(p, w, 0, j, j + 1)
        unit[at.ZS, 0, j] = size[j]
        slack = p.line * size[j] + p.tiny
        for side in (1.0, -1.0):
            const = unit_line(p, w, 0, j, side) + slack
            top = over_box(p, w, line) + const
            if side > 0.0:
                unit[at.ZH, 0, j] = top
            else:
                unit[at.ZL, 0, j] = -top
        if p.kind[j] == RELU:
            relax(p, unit, 0, j)
        elif p.kind[j] == LOG and unit[at.ZH, 0, j] <= 0.0:
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
    kind, edge, l, h = p.kind[m], p.edge[m], unit[at.ZL, 0, m], unit[at.ZH, 0, m]
    width, beyond = h - l, kind == LOG and l < edge
    if beyond:
        l = unit[at.ZL, 0, m] = edge if h > edge else min(h, TINY)
    if kind == SQUARE:
        slope = l + h
        over, under = h, 0.5 * slope
    else:
        slope = 0.0 if h <= edge else np.floor(chord(kind, l, h, edge) * CHORD) / CHORD
        over, under = 1.0 / slope if slope > 0.0 else INF, l
        if kind == SIGMOID:
            root = math.sqrt(max(1.0 - 4.0 * slope, 0.0))
            over = log((1.0 + root) / (1.0 - root)) if root < 1.0 else FARTHEST
            under = -over
    # the checker may round to the next slope, and its interval may be a little shorter
    room = 4.0 * width * (1.0 + abs(slope)) / CHORD + p.tiny
    room += 2.0 * p.line * unit[at.ZS, 0, m] * (abs(steepness(kind, l, edge)) + abs(steepness(kind, h, edge)))
    unit[at.SLOPE, 0, m] = unit[at.ALPHA, 0, m] = slope
    unit[at.RISE, 0, m] = highest(kind, slope, l, h, over, edge) + room
    unit[at.FALL, 0, m] = -HUGE if beyond else lowest(kind, slope, l, h, under, edge) - room


@compiled
def _shrink(p, q, w, o, t, ends, order, target, ball):
    """Cut off what the cost and the ball (if ``ball`` is positive) rule out. Each cut is recorded as a split
    whose other side is an empty leaf; the checker closes that without whole numbers, as ``q`` has it."""
    least, most = w.aside[0], w.aside[1]
    left = contract(p, w, w.box, w.allowed, target)
    if left and ball > 0:
        contract_by_ball(p, w)
    for i in range(p.lever.shape[1]):
        x, unit = p.lever[at.FACTUAL, i], p.lever[at.UNIT, i]
        least[i], most[i] = x + unit * w.box[at.LO, i], x + unit * w.box[at.HI, i]
        if p.lever[at.LABEL, i] > 0.0:
            least[i], most[i] = INF, -INF
            for c in range(p.start[i], p.start[i + 1]):
                if w.allowed[c] != 0:
                    least[i], most[i] = min(least[i], c - p.start[i]), max(most[i], c - p.start[i])
        _set_ends(p, w, i, ends[0, i], ends[1, i])
    for i in range(p.lever.shape[1] if left else 0):
        free = p.lever[at.LABEL, i] > 0.0 or w.box[at.MODE, i] == 1
        for side in (1, -1):
            if free and ends[0, i] < ends[1, i]:
                _shrink_end(p, q, w, o, t, ends, order, target, i, most[i] if side > 0 else least[i], side)


@compiled
def _shrink_end(p, q, w, o, t, ends, order, target, i, end, side):
    """Cut a lever's interval near ``end`` and keep what is below it (side 1) or above it (-1), if intervals
    alone close the other part and that is large enough to be worth two nodes."""
    low, high, whole = ends[0, i], ends[1, i], _is_whole(p, i)
    if whole:
        place = min(max(np.floor(end) + 0.5 if side > 0 else np.ceil(end) - 0.5, low - 0.5), high + 0.5)
    else:
        place = decimal(end, high - low, 2.0, side)
    below, above = _around(place, whole)
    if not (low < place < high and (high - place if side > 0 else place - low) > WORTH * (high - low)):
        return
    _set_ends(p, w, i, above if side > 0 else low, high if side > 0 else below)
    if _nothing(q, w, target) < 0:
        _write(o, t, CUT, i, 0, place)
        if side > 0:
            ends[1, i] = below
            _push(o, w, ends, order, 1)
        else:
            ends[0, i] = above
            _write(o, t, EMPTY, 0, 0, 0.0)
    _set_ends(p, w, i, ends[0, i], ends[1, i])


@compiled
def _is_whole(p, i):
    """Whether a lever's values are whole numbers or labels."""
    return p.lever[at.LABEL, i] > 0.0 or p.lever[at.GRID, i] > 0.0


@compiled
def _around(place, whole):
    """The largest value below a cut and the least one above it; for a continuous lever both are the cut."""
    return (np.floor(place), np.ceil(place)) if whole else (place, place)


@compiled
def _write(o, t, kind, a, b, place):
    """Append a node to the record: its kind, ``where`` (a, b) and ``at`` of :class:`Record`."""
    k = o.state[1]
    t.kind[k], t.where[k, 0], t.where[k, 1], t.at[k] = kind, a, b, place
    o.state[1] = k + 1


# -- bounds ---------------------------------------------------------------------------------


@compiled
def _bound_neurons(p, w, budget):
    """Bounds of every neuron's argument from the box and the signs in w and the budget; False if an argument
    has no value left."""
    unit = w.unit
    cleared(unit[at.THETA_HIGH :])
    for k in range(1, len(p.widths)):
        for j in range(p.widths[k]):
            unit[at.ZL, k, j] = 0.0 if unit[at.SPLIT, k, j] == 1.0 else -INF
            unit[at.ZH, k, j] = 0.0 if unit[at.SPLIT, k, j] == 2.0 else INF
    paid, left = least_paid(p, w), True
    for k in range(1, len(p.widths)):
        left = left and bound_layer(p, w, budget, paid, k, 0, FEW_DIGITS)
    return left


# -- leaves ---------------------------------------------------------------------------------


@compiled
def _add(form, caused, const, a, line, causes):
    """Add a times a form to ``line`` and to the causal units' coefficients ``causes``; returns a times the
    form's constant."""
    for c in range(len(line)):
        line[c] += a * form[c]
    for m in range(len(caused)):
        causes[m] += a * caused[m]
    return a * const


@compiled
def _add_argument(p, k, j, a, coef, line, causes):
    """Add a times argument j of layer k to ``coef``, the coefficients of the units of layer k - 1; returns a
    times the argument's constant. Layer 1's arguments are added to ``line`` and ``causes`` instead."""
    if k == 1:
        return _add(p.first[0, 1, j], p.caused[0, 1, j], p.offset[0, 1, j], a, line, causes)
    for i in range(p.widths[k - 1]):
        coef[i] += a * p.weights[k - 1, j, i]
    return a * p.biases[k - 1, j]


@inner
def _next_slope(p, w, k, j):
    """What a neuron's upper line may differ by from the checker's anywhere in the box if rounding leaves open
    to which multiple of 1 / CHORD the slope is rounded down; else 0.

    The line itself has room for the next slope where the argument is inside its interval. With other slopes
    below, or thetas, the line above the argument reaches beyond that.
    """
    l, h, size = w.unit[at.ZL, k, j], w.unit[at.ZH, k, j], w.unit[at.ZS, k, j]
    if l >= 0.0 or h <= 0.0:
        return 0.0
    steps, doubt = h / (h - l) * CHORD, 4.0 * CHORD * (p.line * size + p.tiny) / (h - l) + 2.0**-20
    return 4.0 * size / CHORD if abs(steps - np.floor(steps + 0.5)) <= doubt else 0.0


@compiled
def _add_term(p, w, t, leaf, which, logit_size):
    """Add one of a leaf's terms, bounded from above by a line, to the sum in the last of w.rows.

    Term number ``which`` is the logit with that number's slopes (``t.slopes``) and multiplier. The first
    term also has all other rows that the leaf weighs: the checker adds rows up before it replaces units by
    their lines.
    """
    line, causes, coef, new = w.col[at.LINE], w.layer[1], w.layer[2], w.layer[0]
    layers, g = len(p.widths), t.logit[leaf, which]
    cleared(line)
    cleared(causes)
    cleared(coef)
    size = g * (logit_size + abs(p.need_low))
    const = _add_argument(p, layers, 0, g, coef, line, causes) - g * p.need_low
    for k in range(layers - 1, 0, -1):
        cleared(new)
        for j in range(p.widths[k]):
            a = coef[j]
            if a > 0.0:
                const += a * (w.unit[at.RISE, k, j] + _next_slope(p, w, k, j))
                a *= w.unit[at.SLOPE, k, j]
            else:
                a *= t.slopes[leaf, which, k, j]
            if which == 0 and t.signs[leaf, k, j] > 0.0:
                multiplier = t.signs[leaf, k, j]
                a += multiplier if t.order[leaf, k, j] > 0 else -multiplier
                size += multiplier * w.unit[at.ZS, k, j]
            if a != 0.0:
                const += _add_argument(p, k, j, a, new, line, causes)
        copied(new, coef)
    if which == 0:
        rest, rest_size = _add_others(p, w, t, leaf, line, causes)
        const += rest
        size += rest_size
    const = back_causes(p, w.unit, causes, const, line)
    last = len(w.rows) - 1
    for c in range(len(line)):
        w.rows[last, c] += line[c]
    w.row[at.CONSTS, last] += const + p.line * size + p.tiny


@compiled
def _add_others(p, w, t, leaf, line, causes):
    """Add the problem's own rows and the ball's tangent, times their multipliers, to ``line`` and ``causes``;
    returns their constant and the sum of absolute terms behind them."""
    const, size, mu = 0.0, 0.0, t.ball[leaf, 0]
    for r in range(p.row.shape[1]):
        multiplier = t.rows[leaf, r]
        if multiplier > 0.0:
            const += _add(p.row[0, r], p.row_caused[0, r], p.row_const[0, r], multiplier, line, causes)
            size += multiplier * stated_size(p, w, r)
    for f in range(len(p.noise) if mu > 0.0 else 0):
        if not in_ball(p, f):
            continue
        weight, noise, touched = mu * p.precision[f], p.noise[f], t.ball[leaf, 1 + f]
        rate, rest = 2.0 * weight * touched, 0.0
        if is_linear(p, f):  # the ball's linear part
            rate, rest = mu, p.excess
        const += weight * (touched - noise) * (touched - noise)
        const += _add(p.residual[0, f], p.residual_caused[0, f], rest, -rate, line, causes)
        size += weight * (abs(touched) + abs(noise)) ** 2 + abs(rate) * w.ball[at.BALL_SIZE, f]
    return const, size


@compiled
def _holds(p, w, t, leaf, lines, logit_size, target):
    """Whether the leaf as it is written proves the target. The last of w.rows, which no leaf needs, gets the
    sum of the leaf's terms, with a multiplier of 1."""
    last = len(w.rows) - 1
    cleared(w.rows[last])
    w.row[at.CONSTS, last], w.row[at.TRY_MULTIPLIERS, last] = 0.0, 1.0
    for which in range(lines):
        _add_term(p, w, t, leaf, which, logit_size)
    weights, shares = w.row[at.TRY_MULTIPLIERS, last:], t.shares[leaf]
    value = dual_value(p, w, w.rows[last:], w.row[at.CONSTS, last:], 1, weights, shares, w.at[at.CHOICE])
    return value >= target


@compiled
def _clear(t, leaf):
    """Set all multipliers of a leaf to 0."""
    t.lines[leaf] = 0
    cleared(t.logit[leaf])
    cleared(t.signs[leaf])
    cleared(t.rows[leaf])
    cleared(t.ball[leaf])
    cleared(t.shares[leaf])


@compiled
def _weigh(t, leaf, what, multiplier):
    """Write a row's multiplier to a leaf; ``what`` is the row's entry in w.ints[KINDS]
    (:func:`~milp_recourse.compiled.rows.keep_row`)."""
    n = t.signs.shape[2]
    stated = t.signs.shape[1] * n
    if what < 0:
        t.logit[leaf, -1 - what] = multiplier
    elif what < stated:
        t.signs[leaf, what // n, what % n] = multiplier
    else:
        t.rows[leaf, what - stated] = multiplier


@compiled
def _take(p, w, t, leaf, count, lines, ball):
    """Write the convex problem's multipliers, rounded to :data:`DIGITS`, to a leaf. Row ``ball`` is the
    ball's, -1 for none."""
    _clear(t, leaf)
    t.lines[leaf] = lines
    for r in range(count):
        multiplier = short(w.row[at.MULTIPLIERS, r], DIGITS)
        if r != ball:
            _weigh(t, leaf, w.ints[at.KINDS, r], multiplier)
            continue
        t.ball[leaf, 0] = multiplier
        for f in range(len(p.noise)):
            t.ball[leaf, 1 + f] = short(w.ball[at.BEST_PHAT, f], DIGITS)
    for i in range(p.lever.shape[1]):
        t.shares[leaf, i] = np.floor(w.at[at.SHARES, i] * BELOW * SHARE) / SHARE


@compiled
def _outside(p, w, t, leaf, r, lines, target):
    """Write a leaf's multipliers where row r is negative in all of the box: this row's alone, large enough
    for the target."""
    _clear(t, leaf)
    t.lines[leaf] = lines
    multiplier = short(2.0 * (target + 1.0) / -(over_box(p, w, w.rows[r]) + w.row[at.CONSTS, r]), DIGITS)
    if multiplier < INF:
        _weigh(t, leaf, w.ints[at.KINDS, r], multiplier)


@compiled
def _slopes(p, w, t, leaf, which):
    """Write the neurons' lower slopes to a leaf, for its line number ``which``."""
    for k in range(1, len(p.widths)):
        for j in range(p.widths[k]):
            t.slopes[leaf, which, k, j] = w.unit[at.ALPHA, k, j]


@compiled
def _evidence(p, w, t, leaf, order, target, budget, ball, steps):
    """Try to close the node in w by the neurons' bounds and by weak duality, and write the leaf.

    Returns
    -------
    (closed, rows, open, value)
        Whether it is closed; how many rows the last Lagrangian has; how many units are open; the last
        Lagrangian's bound.
    """
    layers, unit = len(p.widths), w.unit
    copied(order, t.order[leaf])
    _clear(t, leaf)
    bounded = _bound_neurons(p, w, budget)
    copied(unit[at.THETA_HIGH :], t.theta[leaf])
    if not bounded:  # the slopes of layers that were not reached do not matter
        for k in range(1, layers):
            for j in range(p.widths[k]):
                t.slopes[leaf, 0, k, j] = 1.0 if unit[at.ALPHA, k, j] > 0.5 else 0.0
        return True, 0, 0, INF
    _slopes(p, w, t, leaf, 0)
    sizes_next(p, w, layers)
    logit_size = w.layer[0, 0]
    slack, unsure = p.line * (logit_size + abs(p.need_low)) + p.tiny, open_units(p, unit)
    count, tangent = first_rows(p, w, slack, ball)
    if count < 0:
        _outside(p, w, t, leaf, -1 - count, 1, target)
        return _holds(p, w, t, leaf, 1, logit_size, target), 0, unsure, -INF
    note_room(p, w, budget, least_paid(p, w))
    for turn in range(LINES):
        value = solve_node(p, w, count, tangent, target, w.at[at.POINT], w.at[at.OTHER], steps, unsure == 0)
        if value >= target:
            _take(p, w, t, leaf, count, turn + 1, tangent)
            if _holds(p, w, t, leaf, turn + 1, logit_size, target):
                return True, count, unsure, value
        if turn + 1 == LINES or unsure == 0:
            break
        relaxed_arguments(p, w)
        if not tighter(p, w, 1):
            break
        _slopes(p, w, t, leaf, turn + 1)
        if not logit_row(p, w, slack, count, turn + 1):
            _outside(p, w, t, leaf, count, turn + 2, target)
            return _holds(p, w, t, leaf, turn + 2, logit_size, target), 0, unsure, -INF
        if not reached(w, count) < 0.0:
            break
        count += 1
    return False, count, unsure, value


# -- splits ---------------------------------------------------------------------------------


@compiled
def _split(p, w, o, t, ends, order, count, unsure, gap):
    """Record how the node in w is split and open its children; False where nothing can be split."""
    kind, index, value = choose(p, w, count, unsure, gap)
    layer, j, most = index // w.unit.shape[2], index % w.unit.shape[2], 0
    if kind == ARGUMENT and layer > 0:
        for a in range(order.shape[0]):
            for b in range(order.shape[1]):
                most = max(most, abs(order[a, b]))
        _write(o, t, SIGN, layer - 1, j, 0.0)
        for sign in (1, -1):
            order[layer, j] = sign * (most + 1)
            _push(o, w, ends, order, 0)
        return True
    i, place = -1, value
    if kind == ARGUMENT:  # a lever is cut instead of what promised
        w.scalar[at.PROMISE] = 0.0
        i, place = _cross(p, w, j, value)
    elif kind == LABELS:
        i, place = index, value - 0.5 if value > ends[0, index] else value + 0.5
    elif kind == INTERVAL:
        i, place = index, p.lever[at.FACTUAL, index] + p.lever[at.UNIT, index] * value
    if i >= 0 and _cut(p, w, o, t, ends, order, i, place):
        return True
    i, w.scalar[at.PROMISE] = _widest(p, w, ends), 0.0
    return i >= 0 and _cut(p, w, o, t, ends, order, i, 0.5 * (ends[0, i] + ends[1, i]))


@compiled
def _widest(p, w, ends):
    """The lever with the widest interval, in its units, or the most labels; -1 where none is free."""
    most, which = 0.0, -1
    for i in range(p.lever.shape[1]):
        width = (ends[1, i] - ends[0, i]) / p.lever[at.UNIT, i]
        free = p.lever[at.LABEL, i] > 0.0 or w.box[at.MODE, i] == 1
        if free and width > most:
            most, which = width, i
    return which


@compiled
def _cut(p, w, o, t, ends, order, i, place):
    """Split a lever's interval near a value; False where one of the parts would be empty."""
    low, high, whole = ends[0, i], ends[1, i], _is_whole(p, i)
    if whole:
        near = min(max(np.floor(place), low), high - 1.0) + 0.5
    else:
        near = decimal(place, high - low, 3.0, 0)
        if not low < near < high:
            near = place
    if not low < near < high:
        return False
    below, above = _around(near, whole)
    _write(o, t, CUT, i, 0, near)
    ends[0, i] = above
    _push(o, w, ends, order, 0)
    ends[0, i], ends[1, i] = low, below
    _push(o, w, ends, order, 0)
    ends[1, i] = high
    return True


@compiled
def _cross(p, w, m, value):
    """Which lever to cut, and at what of its values, to split the argument of causal unit m at ``value``.

    It is the lever that the argument depends on most. It is cut where the argument has that value if the
    other levers are in the middle of their intervals. The lever is -1 where none can be cut.
    """
    box, line = w.box, w.col[at.LINE]
    const = unit_line(p, w, 0, m, 1.0) - value
    best, i, reach, middle = 0.0, -1, 0.0, const
    for l in range(p.lever.shape[1]):
        if p.lever[at.LABEL, l] > 0.0 or box[at.MODE, l] != 1:
            continue
        g, span = line[p.start[l]], box[at.HI, l] - box[at.LO, l]
        middle += g * 0.5 * (box[at.LO, l] + box[at.HI, l])
        reach += abs(g) * span
        if abs(g) * span > best:
            best, i = abs(g) * span, l
    if i < 0:
        return -1, 0.0
    low, high = box[at.LO, i], box[at.HI, i]
    span = high - low
    cut = 0.5 * (low + high) - middle / line[p.start[i]]
    if reach > best:
        cut = min(max(cut, low + 0.2 * span), high - 0.2 * span)
    if not low + 1e-6 * span < cut < high - 1e-6 * span:
        return -1, 0.0
    return i, p.lever[at.FACTUAL, i] + p.lever[at.UNIT, i] * cut


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
        :data:`PROVEN`, :data:`MORE`, :data:`FULL`, :data:`SINGLE` or :data:`FALSE`.
    """
    p, q = refer(case(pp, c)), refer(case(pq, c))
    d = p.lever.shape[1]
    linear = len(p.widths) == 1 and p.widths[0] == 0 and len(p.noise) == 0
    claimed = (budget + p.base[0]) * (1.0 - p.cost)
    w.scalar[at.BEST_COST], w.scalar[at.CASE] = claimed, c
    ends, order = w.ends, w.order
    for _ in range(share):
        if o.state[0] == 0:
            return PROVEN
        if o.state[1] + 4 * d + 4 > len(t.kind) or o.state[2] + 1 > len(t.lines):
            return FULL
        if o.state[0] + 2 * d + 4 > len(o.closed):
            return FULL
        o.state[0] -= 1
        slot = o.state[0]
        if o.closed[slot] != 0:
            _write(o, t, EMPTY, 0, 0, 0.0)
            continue
        o.state[3] += 1
        copied(o.ends[slot], ends)
        copied(o.order[slot], order)
        promise = o.promise[slot, 0], o.promise[slot, 1], o.promise[slot, 2], o.promise[slot, 3]
        _load(p, o, slot, w)
        ball, leaf = _nothing(q, w, target), o.state[2]
        if ball < 0:
            _learn(w, o, slot, promise, True)
            _write(o, t, EMPTY, 0, 0, 0.0)
            continue
        closed = False
        if linear:  # one line often closes a whole box; shrinking it first would split it
            closed, count, unsure, value = _evidence(q, w, t, leaf, order, target, budget, ball, steps)
        if not closed:
            _shrink(p, q, w, o, t, ends, order, target, ball)
            ball = _nothing(q, w, target)
            if ball < 0:
                _learn(w, o, slot, promise, True)
                _write(o, t, EMPTY, 0, 0, 0.0)
                continue
            closed, count, unsure, value = _evidence(q, w, t, leaf, order, target, budget, ball, steps)
        _learn(w, o, slot, promise, closed)
        if closed:
            o.state[2] += 1
            _write(o, t, LEAF, leaf, 0, 0.0)
            continue
        copied(w.at[at.POINT], w.at[at.CHOICE])
        if try_point(p, w, w.at[at.CHOICE]) and w.scalar[at.BEST_COST] < claimed:
            return FALSE
        if not _split(p, w, o, t, ends, order, count, unsure, target - value):
            copied(ends, o.ends[o.state[0]])
            return SINGLE
    return MORE
