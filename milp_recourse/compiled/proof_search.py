r"""Proof trees: the search with its target frozen, where every leaf keeps the evidence that a checker needs.

The search proper shrinks boxes by whatever it has just learnt and changes its target as it goes, so its
nodes prove nothing to a reader who does not have its history. Here a shrunk end is a split whose other
side intervals alone close, the bounds of a node come from its own box, signs, slopes and the target, and a
leaf is closed by numbers as they will be written, rounded to a few decimal digits first, under the rules
of docs/certificate_spec_v2.md: whole numbers are treated as continuous there, and the lines of causal
units are the rule's, parallel ones for a curve. What passes here, with its rounding added outward, passes
in rational arithmetic.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.compiled.descent import try_point
from milp_recourse.compiled.elementary import (
    LOG,
    RELU,
    SIGMOID,
    chord,
    highest,
    is_open,
    log,
    lowest,
    steepness,
)
from milp_recourse.compiled.elementary import (
    SQUARE as SQUARED,
)
from milp_recourse.compiled.interior import dual_value, solve_node
from milp_recourse.compiled.layout import (
    ALPHA,
    BALL_SIZE,
    BEST_COST,
    BEST_PHAT,
    CASE,
    CHOICE,
    CONSTS,
    COST,
    FACTUAL,
    FALL,
    FIXED,
    GAIN,
    GAINED,
    GRID,
    HI,
    IDLE,
    INSIDE,
    INVERSE,
    KINDS,
    LABEL,
    LARGEST,
    LINE,
    LINEAR,
    LO,
    MODE,
    MULTIPLIERS,
    NOTHING,
    OTHER,
    POINT,
    RISE,
    SHARES,
    SIZE,
    SLOPE,
    SPLIT,
    SQUARE,
    TOP,
    UNIT,
    ZB,
    ZH,
    ZL,
    ZS,
)
from milp_recourse.compiled.levers import contract, least_cost, respond
from milp_recourse.compiled.network import (
    back_causes,
    offers,
    only_squares,
    over_box,
    relax_first,
    second_lines,
    squares_radius,
    within,
    within_squares,
)
from milp_recourse.compiled.node import contract_by_ball
from milp_recourse.compiled.numerics import BELOW, FARTHEST, HUGE, ROUNDOFF, TINY
from milp_recourse.compiled.problem import Problems, case
from milp_recourse.compiled.rows import (
    argument_line,
    keep_row,
    never_negative,
    reached,
    relaxed_arguments,
    residual_lines,
    sizes_direct,
    sizes_next,
    stated_row,
    stated_rows,
    stated_size,
    unit_line,
)
from milp_recourse.compiled.splitting import choose
from milp_recourse.compiled.work import cleared, copied
from milp_recourse.compiling import by_reference, compiled, entry, refer

INF = math.inf
Array = NDArray[np.float64]

PROVEN, MORE, FULL, SINGLE, FALSE = range(5)
"""Why :func:`prove` returns: all is closed; it has examined its share of nodes; the record is full; a node
stays open by rounding alone (it is a single action) or cannot be split; a feasible action costs less than is
claimed."""

LEAF, EMPTY, CUT, SIGN = range(4)
"""Kinds of recorded nodes: a leaf with multipliers, a leaf that intervals close, a cut of a lever's interval,
and a split on a unit's sign."""

LINES = 3
"""Most lines above the logit in a leaf."""

CHORD, SHARE = 2.0**32, 2.0**40
"""Slopes of upper lines, and shares of the maximum as written, are multiples of their inverses."""

DIGITS, FEW_DIGITS = 9, 3
"""Decimal digits of multipliers, and of the thetas that neurons are bounded with."""

WORTH = 0.02
"""A shrunk end is a split of its own if it takes off this share of the interval."""


@by_reference
class Open(NamedTuple):
    """Nodes to look at, last in, first out. ``state`` holds: their number, records, leaves, nodes examined.

    Attributes
    ----------
    ends
        The intervals of levers' values, or of labels' numbers, (size, 2, d).
    order
        For each unit, which split on the path from the root was on it, counted from 1, times the sign taken;
        0 where it was not split on, (size, K + 1, n).
    closed
        Whether intervals alone close it.
    """

    ends: Array
    order: NDArray[np.int64]
    closed: NDArray[np.uint8]
    state: NDArray[np.int64]


@by_reference
class Record(NamedTuple):
    """A stretch of the tree in preorder, and the evidence of its leaves.

    Attributes
    ----------
    kind, where, at
        Of every node; ``where`` is the lever, or layer and neuron, or the number of the leaf, (size, 2).
    slopes
        Lower slopes of the units for each line, (leaves, LINES, K + 1, n).
    lines
        How many lines a leaf has, (leaves,); 0 where an empty interval of a neuron closes it.
    logit, signs, order, rows, ball, shares
        Multipliers of the logit's lines, of the arguments of units split on (signed as ``order`` says), of
        the stated rows, of the ball (first; then the residuals that it is touched at), and shares of the
        maximum.
    theta
        What neurons are bounded with from above and from below, (leaves, 2, K + 1, n).
    form, const, price
        Work: the sum of the terms.
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
    form: Array
    const: Array
    price: Array


def open_nodes(p: Problems, size: int) -> Open:
    """Room for so many open nodes."""
    layers, n = len(p.widths), p.weights.shape[1]
    return Open(
        np.zeros((size, 2, p.lever.shape[1])),
        np.zeros((size, layers, n), dtype=np.int64),
        np.zeros(size, dtype=np.uint8),
        np.zeros(4, dtype=np.int64),
    )


def record(p: Problems, size: int, leaves: int) -> Record:
    """Room for so many records and leaves."""
    layers, n, d, columns = len(p.widths), p.weights.shape[1], p.lever.shape[1], int(p.start[-1])
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
        np.zeros((1, columns)),
        np.zeros(1),
        np.ones(1),
    )


# -- numbers as they are written ------------------------------------------------------------


@compiled
def short(value, digits):
    """A number at so many significant decimal digits."""
    if not 0.0 < abs(value) < INF:
        return value
    scale = 10.0 ** min(max(digits - 1.0 - np.floor(math.log10(abs(value))), 0.0), 22.0)
    result = np.floor(value * scale + 0.5) / scale
    return result if abs(result) < INF else value


@compiled
def decimal(at, width, digits, side):
    """A short decimal near ``at`` (side 0), not below (1) or not above it (-1); ``at`` itself without one."""
    scale = 10.0 ** min(max(np.ceil(-math.log10(max(width, 1e-300))) + digits, 0.0), 22.0)
    scaled = at * scale
    if side > 0:
        result = np.ceil(scaled) / scale
        return result if result >= at else at
    if side < 0:
        result = np.floor(scaled) / scale
        return result if result <= at else at
    return np.floor(scaled + 0.5) / scale


@compiled
def _difference(a, b, side):
    """a - b rounded up (side 1) or down (-1); its rounding error is itself a double (Knuth)."""
    nearest = a - b
    part = nearest - a
    rest = (a - (nearest - part)) - (b + part)
    if rest * side > 0.0:
        nearest += side * (abs(nearest) * 2.0 * ROUNDOFF)
    return nearest


# -- nodes ----------------------------------------------------------------------------------


@compiled
def _push(o, ends, order, closed):
    k = o.state[0]
    copied(ends, o.ends[k])
    copied(order, o.order[k])
    o.closed[k] = closed
    o.state[0] = k + 1


@compiled
def _load(p, o, slot, w):
    """The node as box and signs in w."""
    for i in range(p.lever.shape[1]):
        _set_ends(p, w, i, o.ends[slot, 0, i], o.ends[slot, 1, i])
    for k in range(len(p.widths)):
        for j in range(p.widths[k]):
            s = o.order[slot, k, j]
            w.unit[SPLIT, k, j] = 1.0 if s > 0 else -1.0 if s < 0 else 0.0


@compiled
def _set_ends(p, w, i, low, high):
    """A lever's interval in w, in its coordinate."""
    if p.lever[LABEL, i] > 0.0:
        for c in range(p.start[i], p.start[i + 1]):
            w.allowed[c] = 1 if low <= c - p.start[i] <= high else 0
        return
    x, unit = p.lever[FACTUAL, i], p.lever[UNIT, i]
    w.allowed[p.start[i]] = 1
    w.box[LO, i], w.box[HI, i] = _difference(low, x, -1.0) / unit, _difference(high, x, 1.0) / unit
    w.box[MODE, i] = p.box[MODE, i]


@compiled
def _dear(p, w, target):
    """Whether the box's cheapest corner costs the target (rule 7.1, the first)."""
    total, top = 0.0, 0.0
    for i in range(p.lever.shape[1]):
        total += least_cost(p, w.box, w.allowed, i)
        if p.lever[LABEL, i] > 0.0:
            least = INF
            for c in range(p.start[i], p.start[i + 1]):
                if w.allowed[c] != 0:
                    least = min(least, p.column[TOP, c])
            top = max(top, least)
        elif w.box[MODE, i] == 1:
            near = max(w.box[LO, i], -w.box[HI, i], 0.0)
            top = max(top, p.lever[LARGEST, i] * near)
    total += top
    return total * (1.0 - p.cost) - p.tiny >= target


@compiled
def _nothing(p, w, target):
    """Whether intervals alone close the box in w (rule 7.1), causal units being bounded first.

    Returns
    -------
    int
        -1 where they do; 1 where the ball cuts the box, else 0.
    """
    if _dear(p, w, target):
        return -1
    if not _bound_causes(p, w):
        return -1
    if stated_rows(p, w, w.box, w.allowed, 0, False) < 0:
        return -1
    return residual_lines(p, w, w.box, w.allowed) if len(p.noise) > 0 else 0


@compiled
def _bound_causes(p, w):
    """Bounds and lines of the causal units in turn; False: a logarithm's argument is nowhere positive."""
    unit, size, line = w.unit, w.layer[0], w.col[LINE]
    for j in range(p.widths[0]):
        sizes_direct(p, w, 0, j, j + 1)
        unit[ZS, 0, j] = size[j]
        slack = p.line * size[j] + p.tiny
        for side in (1.0, -1.0):
            const = unit_line(p, w, 0, j, side) + slack
            top = over_box(p, w.box, w.allowed, line) + const
            if side > 0.0:
                unit[ZH, 0, j] = top
            else:
                unit[ZL, 0, j] = -top
        if p.kind[j] == RELU:
            _relax(unit, 0, j, j + 1, p.up)
        elif p.kind[j] == LOG and unit[ZH, 0, j] <= 0.0:
            return False
        else:
            _parallels(p, unit, j)
    return True


@compiled
def _parallels(p, unit, m):
    """The lines of a curve, their slope being the chord's, rounded down to a multiple of 1 / CHORD.

    A logarithm's argument is taken from its edge on. If it reaches further the rule has no line below, and
    what is drawn here is too low for any proof.
    """
    kind, edge, l, h = p.kind[m], p.edge[m], unit[ZL, 0, m], unit[ZH, 0, m]
    width, beyond = h - l, kind == LOG and l < edge
    if beyond:
        l = unit[ZL, 0, m] = edge if h > edge else min(h, TINY)
    if kind == SQUARED:
        slope = l + h
        over, under = h, 0.5 * slope
    else:
        slope = 0.0 if h <= edge else np.floor(chord(kind, l, h, edge) * CHORD) / CHORD
        over, under = 1.0 / slope if slope > 0.0 else INF, l
        if kind == SIGMOID:
            root = math.sqrt(max(1.0 - 4.0 * slope, 0.0))
            over = log((1.0 + root) / (1.0 - root)) if root < 1.0 else FARTHEST
            under = -over
    # the checker's slope may be the next, its interval a little shorter
    room = 4.0 * width * (1.0 + abs(slope)) / CHORD + p.tiny
    room += 2.0 * p.line * unit[ZS, 0, m] * (abs(steepness(kind, l, edge)) + abs(steepness(kind, h, edge)))
    unit[SLOPE, 0, m] = unit[ALPHA, 0, m] = slope
    unit[RISE, 0, m] = highest(kind, slope, l, h, over, edge) + room
    unit[FALL, 0, m] = -HUGE if beyond else lowest(kind, slope, l, h, under, edge) - room


@compiled
def _shrink(p, w, o, t, ends, order, target, ball):
    """Cut off what cost and ball rule out, as splits whose other side is an empty leaf; False: all of it."""
    d = p.lever.shape[1]
    for i in range(d):
        for part in range(3):
            w.aside[part, i] = w.box[part, i]
    copied(w.allowed, w.aside_allowed)
    if not contract(p, w.box, w.allowed, target):
        for i in range(d):  # what is left of a box that intervals should have closed
            _set_ends(p, w, i, ends[0, i], ends[1, i])
        return True
    if ball > 0:
        contract_by_ball(p, w, w.box, w.allowed, w.col[LINE], w.col[GAIN])
    least, most, first, last = w.aside[3], w.aside[4], w.aside[5], w.aside[6]
    for i in range(d):
        least[i], most[i] = w.box[LO, i], w.box[HI, i]
        if p.lever[LABEL, i] > 0.0:
            first[i], last[i] = INF, -INF
            for c in range(p.start[i], p.start[i + 1]):
                if w.allowed[c] != 0:
                    first[i], last[i] = min(first[i], c - p.start[i]), max(last[i], c - p.start[i])
    for i in range(d):
        for part in range(3):
            w.box[part, i] = w.aside[part, i]
    copied(w.aside_allowed, w.allowed)
    for i in range(d):
        label = p.lever[LABEL, i] > 0.0
        if (not label and w.box[MODE, i] != 1) or not ends[0, i] < ends[1, i]:
            continue
        whole = label or p.lever[GRID, i] > 0.0
        x, unit = p.lever[FACTUAL, i], p.lever[UNIT, i]
        for side in (1, -1):
            low, high = ends[0, i], ends[1, i]
            if label:
                end = last[i] if side > 0 else first[i]
            else:
                end = x + unit * (most[i] if side > 0 else least[i])
            if whole:
                at = np.floor(end) + 0.5 if side > 0 else np.ceil(end) - 0.5
                at = min(max(at, low - 0.5), high + 0.5)
            else:
                at = decimal(end, high - low, 2.0, side)
            off = high - at if side > 0 else at - low
            if not (low < at < high and off > WORTH * (high - low)):
                continue
            if side > 0:
                _set_ends(p, w, i, np.ceil(at) if whole else at, high)
            else:
                _set_ends(p, w, i, low, np.floor(at) if whole else at)
            if _nothing(p, w, target) < 0:
                if side > 0:
                    ends[1, i] = np.floor(at) if whole else at
                    _push(o, ends, order, 1)
                    _write(o, t, CUT, i, 0, at)
                else:
                    ends[0, i] = np.ceil(at) if whole else at
                    _write(o, t, CUT, i, 0, at)
                    _write(o, t, EMPTY, 0, 0, 0.0)
            _set_ends(p, w, i, ends[0, i], ends[1, i])
    return True


@compiled
def _write(o, t, kind, a, b, at):
    k = o.state[1]
    t.kind[k], t.where[k, 0], t.where[k, 1], t.at[k] = kind, a, b, at
    o.state[1] = k + 1


# -- bounds ---------------------------------------------------------------------------------


@compiled
def _priced(v, box, allowed, line, const, theta, budget, gain, choice):
    """A line's largest value where a box costs at most the budget, by one theta, rounding included."""
    value, size = theta * budget + const, abs(const) + theta * abs(budget)
    for i in range(v.lever.shape[1]):
        value -= respond(v, box, allowed, i, line, theta, 0.0, choice)
        s = v.start[i]
        if v.lever[LABEL, i] > 0.0:
            far = 0.0
            for c in range(s, v.start[i + 1]):
                if allowed[c] != 0:
                    far = max(far, abs(line[c]) + theta * v.column[COST, c])
            size += far
        elif box[MODE, i] != 2:
            far = max(abs(box[LO, i]), abs(box[HI, i]))
            size += (abs(line[s]) + theta * (v.lever[LINEAR, i] + v.lever[SQUARE, i] * far)) * far
            size += theta * v.lever[FIXED, i]
    return value + v.budget * size + v.tiny


@compiled
def _relax(unit, k, first, count, up):
    """Lines of ReLUs ``first`` to ``count``, the chord's slope rounded down to a multiple of 1 / CHORD."""
    for j in range(first, count):
        l, h = unit[ZL, k, j], unit[ZH, k, j]
        rise, alpha = 0.0, 0.0
        if h <= 0.0:
            slope = 0.0
        elif l >= 0.0:
            slope = alpha = 1.0
        else:
            slope = np.floor(h / (h - l) * CHORD) / CHORD
            rise = max(-slope * l, (1.0 - slope) * h) * up + (h - l) / CHORD  # the checker's may be the next
            alpha = 1.0 if h > -l else 0.0
        unit[SLOPE, k, j], unit[ALPHA, k, j], unit[RISE, k, j], unit[FALL, k, j] = slope, alpha, rise, 0.0


@compiled
def _bound_neurons(p, w, t, leaf, budget):
    """Bounds of every neuron's argument from this box, these signs and the budget; False: one has none."""
    unit, box, allowed = w.unit, w.box, w.allowed
    line, gain, choice, size = w.col[LINE], w.col[GAIN], w.at[CHOICE], w.layer[0]
    squares, radius, least, priced = only_squares(p), 0.0, 0.0, 0.0
    if squares and budget < INF:
        radius = squares_radius(p, box, w.col[NOTHING], budget, w.at[INVERSE])
    elif budget < INF:
        least, priced = offers(p, box, allowed, w.col[NOTHING], w.at[IDLE], w.offer)
    cleared(t.theta[leaf])
    for k in range(1, len(p.widths)):
        if k == 1:
            sizes_direct(p, w, 1, 0, p.widths[1])
        else:
            sizes_next(p, w, k)
            if k == 2:
                second_lines(p, w.relaxed, w.second)
        for j in range(p.widths[k]):
            unit[ZS, k, j] = size[j]
            slack = p.line * size[j] + p.tiny
            sign = unit[SPLIT, k, j]
            low, high = 0.0 if sign > 0.0 else -INF, 0.0 if sign < 0.0 else INF
            for side in (1.0, -1.0):
                if (side > 0.0 and sign < 0.0) or (side < 0.0 and (sign > 0.0 or high <= 0.0)):
                    continue
                const = argument_line(p, w, k, j, side) + slack
                top = over_box(p, box, allowed, line) + const
                if top > 0.0 and budget < INF:
                    if squares:
                        _, theta = within_squares(
                            p, box, line, const, top, budget, w.col[NOTHING], 0.0, radius, w.at[INVERSE]
                        )
                    else:
                        _, theta = within(
                            p, box, allowed, line, const, top, budget, w.col[NOTHING], w.at[IDLE], 0.0,
                            w.offer, least, priced,
                        )  # fmt: skip
                    if theta > 0.0:
                        theta = short(theta, FEW_DIGITS)
                        found = _priced(p, box, allowed, line, const, theta, budget, gain, choice)
                        if found < top:
                            top = found
                            t.theta[leaf, 0 if side > 0.0 else 1, k, j] = theta
                if side > 0.0:
                    high = min(high, top)
                else:
                    low = max(low, -top)
            unit[ZL, k, j], unit[ZH, k, j] = low, high
            if low > high:
                return False
        _relax(unit, k, 0, p.widths[k], p.up)
        if k == 1:
            relax_first(p, unit, w.relaxed)
    return True


# -- leaves ---------------------------------------------------------------------------------


@compiled
def _add_term(p, w, t, leaf, which, logit_size):
    """Add a leaf's term, from above, to the sum in ``t.form`` and ``t.const``.

    The rows are added up before units are replaced, as the rule says, with the slopes in ``t.slopes``.
    """
    unit = w.unit
    line, causes, coef, new = w.col[LINE], w.layer[1], w.layer[2], w.layer[0]
    layers, units, g = len(p.widths), p.widths[0], t.logit[leaf, which]
    slopes = t.slopes[leaf, which]
    cleared(line)
    for m in range(units):
        causes[m] = 0.0
    const, size = -g * p.need_low, g * (logit_size + abs(p.need_low))
    if layers == 1:
        const += g * p.offset[0, 1, 0]
        for c in range(len(line)):
            line[c] = g * p.first[0, 1, 0, c]
        for m in range(units):
            causes[m] = g * p.caused[0, 1, 0, m]
    else:
        const += g * p.biases[layers - 1, 0]
        for j in range(p.widths[layers - 1]):
            coef[j] = g * p.weights[layers - 1, 0, j]
    for k in range(layers - 1, 0, -1):
        if k > 1:
            for i in range(p.widths[k - 1]):
                new[i] = 0.0
        for j in range(p.widths[k]):
            a = coef[j]
            if a > 0.0:
                const += a * unit[RISE, k, j]
                a *= unit[SLOPE, k, j]
            else:
                a *= slopes[k, j]
            if which == 0 and t.signs[leaf, k, j] > 0.0:
                price = t.signs[leaf, k, j]
                a += price if t.order[leaf, k, j] > 0 else -price
                size += price * unit[ZS, k, j]
            if a == 0.0:
                continue
            if k > 1:
                const += a * p.biases[k - 1, j]
                for i in range(p.widths[k - 1]):
                    new[i] += a * p.weights[k - 1, j, i]
            else:
                const += a * p.offset[0, 1, j]
                for c in range(len(line)):
                    line[c] += a * p.first[0, 1, j, c]
                for m in range(units):
                    causes[m] += a * p.caused[0, 1, j, m]
        if k > 1:
            for i in range(p.widths[k - 1]):
                coef[i] = new[i]
    if which == 0:
        for r in range(p.row.shape[1]):
            price = t.rows[leaf, r]
            if price > 0.0:
                const += price * p.row_const[0, r]
                size += price * stated_size(p, w, w.box, w.allowed, r)
                for c in range(len(line)):
                    line[c] += price * p.row[0, r, c]
                for m in range(units):
                    causes[m] += price * p.row_caused[0, r, m]
        mu = t.ball[leaf, 0]
        for f in range(len(p.noise)):
            weight, noise, at = p.precision[f], p.noise[f], t.ball[leaf, 1 + f]
            if mu > 0.0 and weight > 0.0:
                const += mu * weight * (at - noise) * (at - noise)
                size += mu * weight * ((abs(at) + abs(noise)) ** 2 + 2.0 * abs(at) * w.ball[BALL_SIZE, f])
                for c in range(len(line)):
                    line[c] -= 2.0 * mu * weight * at * p.residual[0, f, c]
                for m in range(units):
                    causes[m] -= 2.0 * mu * weight * at * p.residual_caused[0, f, m]
        if mu > 0.0 and p.bent:  # the ball's linear part
            f = len(p.noise) - 1
            const -= mu * p.excess
            size += mu * w.ball[BALL_SIZE, f]
            for c in range(len(line)):
                line[c] -= mu * p.residual[0, f, c]
            for m in range(units):
                causes[m] -= mu * p.residual_caused[0, f, m]
    if units > 0:
        const = back_causes(p, unit, causes, const, line, w.kept[0])
    for c in range(len(line)):
        t.form[0, c] += line[c]
    t.const[0] += const + p.line * size + p.tiny


@compiled
def _holds(p, w, t, leaf, lines, logit_size, target):
    """Whether the leaf as it is written proves the target."""
    cleared(t.form)
    t.const[0] = 0.0
    for which in range(lines):
        _add_term(p, w, t, leaf, which, logit_size)
    value = dual_value(
        p, w.box, w.allowed, t.form, t.const, 1, t.price, t.shares[leaf],
        w.col[GAIN], w.col[SIZE], w.at[CHOICE],
    )  # fmt: skip
    return value >= target


@compiled
def _clear(t, leaf):
    t.lines[leaf] = 0
    cleared(t.logit[leaf])
    cleared(t.signs[leaf])
    cleared(t.rows[leaf])
    cleared(t.ball[leaf])
    cleared(t.shares[leaf])


@compiled
def _take(p, w, t, leaf, kinds, count, lines, ball):
    """The convex problem's multipliers, rounded as they are written, into a leaf."""
    _clear(t, leaf)
    t.lines[leaf] = lines
    for r in range(count):
        price, what = short(w.row[MULTIPLIERS, r], DIGITS), kinds[r]
        if r == ball:
            t.ball[leaf, 0] = price
            for f in range(len(p.noise)):
                t.ball[leaf, 1 + f] = short(w.ball[BEST_PHAT, f], DIGITS)
        elif what < LINES:
            t.logit[leaf, what] = price
        elif what < LINES + p.row.shape[1]:
            t.rows[leaf, what - LINES] = price
        else:
            place = what - LINES - p.row.shape[1]
            t.signs[leaf, place // w.unit.shape[2], place % w.unit.shape[2]] = price
    for i in range(p.lever.shape[1]):
        t.shares[leaf, i] = np.floor(w.at[SHARES, i] * BELOW * SHARE) / SHARE


@compiled
def _outside(p, w, t, leaf, kinds, count, target, worst):
    """A leaf for a row that is negative in all of the box, by ``worst``."""
    _clear(t, leaf)
    t.lines[leaf] = 1
    price, what = short(2.0 * (target + 1.0) / worst, DIGITS), kinds[count]
    if not price < INF:
        return
    if what < LINES:
        t.logit[leaf, 0] = price
    else:
        place = what - LINES - p.row.shape[1]
        t.signs[leaf, place // w.unit.shape[2], place % w.unit.shape[2]] = price


@compiled
def _slopes(p, w, t, leaf, which):
    for k in range(1, len(p.widths)):
        for j in range(p.widths[k]):
            t.slopes[leaf, which, k, j] = w.unit[ALPHA, k, j]


@compiled
def _evidence(p, w, t, leaf, order, target, budget, ball, kinds, steps):
    """Try to close the node by neurons' bounds and duality.

    Returns
    -------
    (closed, rows, open)
        Whether it is, rows of the last Lagrangian, and open units.
    """
    layers, unit = len(p.widths), w.unit
    copied(order, t.order[leaf])
    _clear(t, leaf)
    if not _bound_neurons(p, w, t, leaf, budget):
        for k in range(1, layers):  # of layers that were not reached the slopes are any
            for j in range(p.widths[k]):
                t.slopes[leaf, 0, k, j] = 1.0 if unit[ALPHA, k, j] > 0.5 else 0.0
        return True, 0, 0
    _slopes(p, w, t, leaf, 0)
    if layers > 1:
        sizes_next(p, w, layers)
    else:
        sizes_direct(p, w, 1, 0, 1)
    logit_size = w.layer[0, 0]
    slack = p.line * (logit_size + abs(p.need_low)) + p.tiny
    unsure = 0
    for k in range(layers):
        for j in range(p.widths[k]):
            if k == 0 and p.kind[j] != RELU:
                unsure += is_open(unit, j)
            elif unit[ZL, k, j] < 0.0 < unit[ZH, k, j]:
                unsure += 1
    const = unit_line(p, w, layers, 0, 1.0) - p.need_low + slack
    kinds[0] = count = 0
    if not never_negative(p, w, w.box, w.allowed, const):
        if not keep_row(p, w, w.box, w.allowed, const, 0.0, 0, layers):
            _outside(p, w, t, leaf, kinds, 0, target, -(over_box(p, w.box, w.allowed, w.col[LINE]) + const))
            return _holds(p, w, t, leaf, 1, logit_size, target), 0, unsure
        count = 1
    room, per = w.row.shape[1] - LINES - p.row.shape[1] - 2, unit.shape[2]
    for k in range(1, layers):
        for j in range(p.widths[k]):
            if order[k, j] == 0 or count >= room:
                continue
            side = 1.0 if order[k, j] > 0 else -1.0
            const = unit_line(p, w, k, j, side)
            const += p.line * unit[ZS, k, j] + p.tiny
            kinds[count] = LINES + p.row.shape[1] + k * per + j
            if never_negative(p, w, w.box, w.allowed, const):
                continue
            if not keep_row(p, w, w.box, w.allowed, const, 0.0, count, k):
                worst = -(over_box(p, w.box, w.allowed, w.col[LINE]) + const)
                _outside(p, w, t, leaf, kinds, count, target, worst)
                return _holds(p, w, t, leaf, 1, logit_size, target), 0, unsure
            count += 1
    for r in range(p.row.shape[1]):
        before = count
        count = stated_row(p, w, w.box, w.allowed, r, count)
        if count > before:
            kinds[before] = LINES + r
    which = -1
    if ball > 0:
        which, count = count, count + 1
        w.row[INSIDE, which] = 0.0
        w.row[CONSTS, which] = 0.0
        kinds[which] = -1
        cleared(w.rows[which])
    for turn in range(LINES):
        value = solve_node(
            p, w, w.box, w.allowed, count, which, target, w.at[POINT], w.at[OTHER], steps, unsure == 0
        )
        if value >= target:
            _take(p, w, t, leaf, kinds, count, turn + 1, which)
            if _holds(p, w, t, leaf, turn + 1, logit_size, target):
                return True, count, unsure
        if turn + 1 == LINES or unsure == 0:
            break
        relaxed_arguments(p, w)
        changed = False
        for k in range(1, layers):
            for j in range(p.widths[k]):
                if unit[ZL, k, j] < 0.0 < unit[ZH, k, j]:
                    a = 1.0 if unit[ZB, k, j] > 0.0 else 0.0
                    if a != unit[ALPHA, k, j]:
                        changed = True
                        unit[ALPHA, k, j] = a
        if not changed:
            break
        _slopes(p, w, t, leaf, turn + 1)
        if layers > 1:
            relax_first(p, unit, w.relaxed)
        const = unit_line(p, w, layers, 0, 1.0) - p.need_low + slack
        kinds[count] = turn + 1
        if not keep_row(p, w, w.box, w.allowed, const, 0.0, count, layers):
            _clear(t, leaf)
            t.lines[leaf] = turn + 2
            worst = -(over_box(p, w.box, w.allowed, w.col[LINE]) + const)
            t.logit[leaf, turn + 1] = short(2.0 * (target + 1.0) / worst, DIGITS)
            return _holds(p, w, t, leaf, turn + 2, logit_size, target), 0, unsure
        if not reached(w, count) < 0.0:
            break
        count += 1
    return False, count, unsure


# -- splits ---------------------------------------------------------------------------------


@compiled
def _split(p, w, o, t, ends, order, count, unsure):
    """Split the node in w; False where nothing can be split."""
    kind, index, value = choose(p, w, count, unsure)
    per = w.unit.shape[2]
    if kind == 1 and index // per > 0:
        k, j, most = index // per, index % per, 0
        for a in range(order.shape[0]):
            for b in range(order.shape[1]):
                most = max(most, abs(order[a, b]))
        _write(o, t, SIGN, k - 1, j, 0.0)
        order[k, j] = most + 1
        _push(o, ends, order, 0)
        order[k, j] = -(most + 1)
        _push(o, ends, order, 0)
        return True
    i, at = index, value
    if kind in (1, 5):
        i, at = _cross(p, w, index % per, value if kind == 5 else 0.0)
    elif kind == 4:
        at = value - 0.5 if value > ends[0, i] else value + 0.5
    elif kind == 2:
        at = p.lever[FACTUAL, i] + p.lever[UNIT, i] * value
    else:
        i = -1
    if kind == 0 or i < 0 or not _cut(p, o, t, ends, order, i, at):
        # whatever is widest
        best, i = 0.0, -1
        for l in range(p.lever.shape[1]):
            width = ends[1, l] - ends[0, l]
            if not p.lever[LABEL, l] > 0.0:
                if w.box[MODE, l] != 1:
                    continue
                width /= p.lever[UNIT, l]
            if width > best:
                best, i = width, l
        return i >= 0 and _cut(p, o, t, ends, order, i, 0.5 * (ends[0, i] + ends[1, i]))
    return True


@compiled
def _cut(p, o, t, ends, order, i, at):
    """Split a lever's interval near a value; False where that leaves one side without anything."""
    low, high = ends[0, i], ends[1, i]
    whole = p.lever[LABEL, i] > 0.0 or p.lever[GRID, i] > 0.0
    if whole:
        near = min(max(np.floor(at), low), high - 1.0) + 0.5
    else:
        near = decimal(at, high - low, 3.0, 0)
        if not low < near < high:
            near = at
    if not low < near < high:
        return False
    _write(o, t, CUT, i, 0, near)
    ends[0, i] = np.ceil(near) if whole else near
    _push(o, ends, order, 0)
    ends[0, i], ends[1, i] = low, np.floor(near) if whole else near
    _push(o, ends, order, 0)
    ends[1, i] = high
    return True


@compiled
def _cross(p, w, m, value):
    """Which lever to cut, and where, so that a causal unit's argument has a value there; -1 for none."""
    box, line = w.box, w.col[LINE]
    const = unit_line(p, w, 0, m, 1.0) - value
    best, i, reach, middle = 0.0, -1, 0.0, const
    for l in range(p.lever.shape[1]):
        if p.lever[LABEL, l] > 0.0 or box[MODE, l] != 1:
            continue
        g, span = line[p.start[l]], box[HI, l] - box[LO, l]
        middle += g * 0.5 * (box[LO, l] + box[HI, l])
        reach += abs(g) * span
        if abs(g) * span > best:
            best, i = abs(g) * span, l
    if i < 0:
        return -1, 0.0
    low, high = box[LO, i], box[HI, i]
    span = high - low
    cut = 0.5 * (low + high) - middle / line[p.start[i]]
    if reach > best:
        cut = min(max(cut, low + 0.2 * span), high - 0.2 * span)
    if not low + 1e-6 * span < cut < high - 1e-6 * span:
        return -1, 0.0
    return i, p.lever[FACTUAL, i] + p.lever[UNIT, i] * cut


# -- the tree -------------------------------------------------------------------------------


@entry
def prove(pp, pq, w, o, t, c, target, budget, share, steps):
    """Close nodes until there is something to say to Python.

    Parameters
    ----------
    pp, pq
        The problem, and the same with whole numbers as continuous ones.
    c
        The configuration.
    target
        What every leaf must prove, without what acting costs whatever the value.
    budget
        What is claimed, likewise; inf where there is nothing that costs less than infinity.
    share
        Most nodes.

    Returns
    -------
    int
        :data:`PROVEN`, :data:`MORE`, :data:`FULL`, :data:`SINGLE` or :data:`FALSE`.
    """
    p, q = refer(case(pp, c)), refer(case(pq, c))
    d = p.lever.shape[1]
    linear = len(p.widths) == 1 and p.widths[0] == 0 and len(p.noise) == 0
    claimed = (budget + p.base[0]) * (1.0 - p.cost)
    w.scalar[BEST_COST], w.scalar[CASE] = claimed, c
    w.scalar[GAINED:] = 0.0  # nothing is learnt here: a proof depends on its claim alone
    kinds, ends, order = w.ints[KINDS], w.ends, w.order
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
        _load(p, o, slot, w)
        ball, leaf = _nothing(q, w, target), o.state[2]
        if ball < 0:
            _write(o, t, EMPTY, 0, 0, 0.0)
            continue
        closed = False
        if linear:  # one line often closes a whole box; shrinking it first would split it
            closed, count, unsure = _evidence(q, w, t, leaf, order, target, budget, ball, kinds, steps)
        if not closed:
            _shrink(p, w, o, t, ends, order, target, ball)
            ball = _nothing(q, w, target)
            if ball < 0:
                _write(o, t, EMPTY, 0, 0, 0.0)
                continue
            closed, count, unsure = _evidence(q, w, t, leaf, order, target, budget, ball, kinds, steps)
        if closed:
            o.state[2] += 1
            _write(o, t, LEAF, leaf, 0, 0.0)
            continue
        copied(w.at[POINT], w.at[CHOICE])
        if try_point(p, w, w.at[CHOICE]) and w.scalar[BEST_COST] < claimed:
            return FALSE
        if not _split(p, w, o, t, ends, order, count, unsure):
            copied(ends, o.ends[o.state[0]])
            return SINGLE
    return MORE
