r"""The network at a point, and linear bounds over a box.

Each ReLU z -> max(0, z) with z in [l, h], l < 0 < h, lies below s z + t with s = h / (h - l), t = max(-s l,
(1 - s) h), and above alpha z for any alpha in [0, 1]. Put in from the last layer back to the levers, by the
sign of the coefficient, these give a line above (or below) any unit (Zhang et al. 2018,
https://arxiv.org/abs/1811.00866; Singh et al. 2019, https://doi.org/10.1145/3290354).

Layer 0 holds the causal units, whose arguments depend on the levers and on causal units of lower number;
layer 1 depends on the levers and on layer 0; later layers on the one before. Layer K + 1 is the logit.

u (d,) is a point, a coordinate of each lever or its label's number; other letters are as in
:mod:`~milp_recourse.engine.networks.work`.
"""

from __future__ import annotations

import math

import numpy as np

from milp_recourse.engine.compiling import compiled
from milp_recourse.engine.networks.elementary import RELU, curve, draw_lines, size_at
from milp_recourse.engine.networks.lever_arrays import ACTED, IDLE
from milp_recourse.engine.networks.levers import absolute, kink_of, least_at, part, respond, term
from milp_recourse.engine.networks.numerics import TINY
from milp_recourse.engine.networks.work import add, cleared, copied

INF = math.inf

CHORD = 2.0**32
"""Slopes of upper lines are multiples of its inverse, as in certificates."""

THETAS, LEVERS_EACH, WORTH = 6, 3, 2.0**-6
"""Most thetas that :func:`within` tries; one for so many levers, but at least two; and what share of a bound
another one is to promise."""


@compiled
def entry_of(p, u, i):
    """The column in which a lever stands at a point, and its value there; all its others are 0."""
    if p.lever[i].label > 0.0:
        return p.start[i] + int(u[i]), 1.0
    return p.start[i], u[i]


@compiled
def arguments(p, w, x, z, sums, relaxed):
    """Every unit's argument at a point, into z (K + 1, n); the logit.

    Parameters
    ----------
    x
        The point: coordinates of the levers, (d,) or (P,) if relaxed: values of the columns (labels have
        shares).
    sums
        1 for the sums of absolute terms behind the arguments in w.unit.z instead, the logit's as well, and
        those behind the causal units into w.layer[2]; else 0.
    relaxed
        Then arguments of curves stay inside their bounds, which such points may leave.
    """
    layers, logit = len(p.widths), w.layer[0]
    for k in range(2):
        out = logit[:1] if k == layers else z[k, : p.widths[k]]
        copied(p.offset[sums, k], out)
        for c in range(len(x)):
            column, v = (c, x[c]) if relaxed else entry_of(p, x, c)
            v = v if sums == 0 else abs(v)
            for j in range(len(out) if v != 0.0 else 0):
                out[j] += p.first[sums, k, j, column] * v
        for m in range(p.widths[0]):  # in layer 0 each feeds those after it
            if k == 0 and relaxed and p.kind[m] != RELU:
                z[0, m] = min(max(z[0, m], w.unit.low[0, m]), w.unit.high[0, m])
            if sums == 0:
                v = curve(p.kind[m], z[0, m], p.edge[m]) - p.resting[m]
            else:
                w.layer[2, m] = size_at(p.kind[m], w.unit.z[0, m], z[0, m], p.edge[m], p.slacks.line)
                v = w.layer[2, m] + abs(p.resting[m])
            for j in range(m + 1 if k == 0 else 0, len(out)):
                if p.caused[sums, k, j, m] != 0.0:
                    out[j] += p.caused[sums, k, j, m] * v
    for k in range(1, layers):
        after = z[k + 1, : p.widths[k + 1]] if k + 1 < layers else logit[:1]
        for i in range(len(after)):
            after[i] = p.biases[k, i] if sums == 0 else abs(p.biases[k, i])
        for j in range(p.widths[k]):
            v = z[k, j]
            for i in range(len(after) if v > 0.0 else 0):
                weight = p.turned[k, j, i]
                after[i] += v * (weight if sums == 0 else abs(weight))
    return logit[0]


@compiled
def logit_at(p, w, u):
    """The logit at a point, every unit's argument there into w.unit.z, and the point into w.points.place."""
    copied(u, w.points.place)
    return arguments(p, w, u, w.unit.z, 0, False)


@compiled
def at_point(p, w, form, caused, value, size):
    """A form's value at the point of :func:`logit_at` and the sum of absolute terms behind it, added to what
    is given, with w.layer[2] of :func:`arguments`. Shapes: form (2, P), caused (2, M)."""
    for i in range(len(w.points.best)):
        c, v = entry_of(p, w.points.place, i)
        if v != 0.0:
            value += form[0, c] * v
            size += form[1, c] * abs(v)
    for m in range(p.widths[0]):
        if caused[1, m] > 0.0:
            value += caused[0, m] * (curve(p.kind[m], w.unit.z[0, m], p.edge[m]) - p.resting[m])
            size += caused[1, m] * (w.layer[2, m] + abs(p.resting[m]))
    return value, size


@compiled
def relax(p, unit, k, j):
    """Lines of one unit from the bounds of its argument. The slope of a ReLU's chord is rounded down to a
    multiple of 1 / CHORD; a curve's tangents touch it in the middle of the bounds where they can."""
    l, h, rise = unit.low[k, j], unit.high[k, j], 0.0
    if k == 0 and p.kind[j] != RELU:
        draw_lines(unit, j, p.kind[j], p.edge[j], 0.5 * (l + h))
        return
    if h <= 0.0:
        slope, alpha = 0.0, 0.0
    elif l >= 0.0:
        slope, alpha = 1.0, 1.0
    else:
        slope, alpha = np.floor(h / (h - l) * CHORD) / CHORD, 1.0 if h > -l else 0.0
        # the checker may round to the next slope
        rise = max(-slope * l, (1.0 - slope) * h) * p.slacks.up + (h - l) / CHORD
    unit.slope[k, j], unit.rise[k, j], unit.bent[k, j] = slope, rise, 0.0
    unit.alpha[k, j], unit.fall[k, j] = alpha, 0.0


@compiled
def add_argument(p, k, j, a, coef, line, causes):
    """Add a times argument j of layer k (of layer K + 1: the logit) to ``coef``, the coefficients of layer k
    - 1, or for k < 2 to ``line`` and ``causes``, those of the columns and the causal units; returns a times
    its constant. Shapes: coef, causes (n,), line (P,)."""
    if k > 1:
        add(coef, a, p.weights[k - 1, j], p.widths[k - 1])
        return a * p.biases[k - 1, j]
    add(line, a, p.first[0, k, j], p.first.shape[3])
    add(causes, a, p.caused[0, k, j], p.widths[0])
    return a * p.offset[0, k, j]


@compiled
def back_causes(p, unit, coef, const, out):
    """Put in the causal units: a line above sum of coef * (causal unit - at rest) + const, added to ``out``.

    Parameters
    ----------
    coef
        (n,), of which the first M count; used up; what each had goes into ``unit.score``.
    out
        Gets the line's coefficients added, (P,).
    """
    for m in range(p.widths[0] - 1, -1, -1):
        a = coef[m]
        unit.score[0, m] = a
        if a == 0.0:
            continue
        slope = a * unit.slope[0, m] if a > 0.0 else a * unit.alpha[0, m]
        const += a * (unit.rise[0, m] if a > 0.0 else unit.fall[0, m])
        const += slope * p.offset[0, 0, m] - a * p.resting[m]
        if slope != 0.0:
            add(out, slope, p.first[0, 0, m], p.first.shape[3])
            add(coef, slope, p.caused[0, 0, m], m)
    return const


@compiled
def back(p, unit, k, coef, const, out, causes):
    """A line above sum of coef * relu(layer k) + sum of causes * causal units + const, added to ``out``.

    Parameters
    ----------
    coef
        Of layer k's outputs, (n,); used up. Those of lower layers' outputs are in ``unit.score``.
    out
        Gets the line's coefficients added, (P,).
    causes
        (n,), of which the first M count; used up.

    Returns
    -------
    float
        The line's constant. ``unit.score`` gets the coefficient that each unit had.
    """
    for layer in range(k, 0, -1):
        new = unit.score[layer - 1]
        for j in range(p.widths[layer]):
            a = coef[j]
            unit.score[layer, j] = a
            if a > 0.0 and unit.bent[layer, j] > 0.0:
                const += a * unit.base[layer, j]
                add(out, a, unit.upper[layer, j], len(out))
                continue
            if a > 0.0:
                const += a * unit.rise[layer, j]
                a *= unit.slope[layer, j]
            else:
                a *= unit.alpha[layer, j]
            if a != 0.0:
                const += add_argument(p, layer, j, a, new, out, causes)
        copied(new, coef)
    return back_causes(p, unit, causes, const, out)


@compiled
def over_box(p, w, line):
    """The largest value of a line's terms over a box (without its constant). Shape: line (P,)."""
    total = 0.0
    for i in range(len(p.lever)):
        s, mode = p.start[i], w.box[i].mode
        if p.lever[i].label > 0.0:
            best = -INF
            for c in range(s, p.start[i + 1]):
                if w.allowed[c] != 0:
                    best = max(best, line[c])
            total += best
        elif mode != IDLE:
            l, h, kink = w.box[i].lo, w.box[i].hi, kink_of(p, line, i)
            v = max(line[s] * l, line[s] * h)
            if kink != 0.0:
                v = max(line[s] * l + kink * abs(l), line[s] * h + kink * abs(h))
                v = max(v, 0.0) if l < 0.0 < h else v
            total += v if mode == ACTED else max(v, 0.0)
    return total


@compiled
def sizes_over_box(p, w, sizes):
    """The largest sum of absolute terms of a line, or of a row of sizes, over a box. Shape: sizes (P,)."""
    total = 0.0
    for i in range(len(p.lever)):
        s, most = p.start[i], 0.0
        if p.lever[i].label > 0.0:
            for c in range(s, p.start[i + 1]):
                if w.allowed[c] != 0:
                    most = max(most, abs(sizes[c]))
        elif w.box[i].mode != IDLE:
            most = (abs(sizes[s]) + abs(kink_of(p, sizes, i))) * max(abs(w.box[i].lo), abs(w.box[i].hi))
        total += most
    return total


@compiled
def decimal(value, width, digits, side):
    """A short decimal near a number (side 0), not below it (1) or not above it (-1).

    It is a multiple of a power of ten, about ``width`` / 10^digits. If rounding puts it on the wrong side,
    or beyond all numbers, the number itself is returned.
    """
    scale = 10.0 ** min(max(np.ceil(-math.log10(max(width, TINY))) + digits, 0.0), 22.0)
    scaled = value * scale
    result = (np.ceil(scaled) if side > 0 else np.floor(scaled if side < 0 else scaled + 0.5)) / scale
    return result if (result - value) * side >= 0.0 and abs(result) < INF else value


@compiled
def short(value, digits):
    """A number at so many significant decimal digits."""
    return decimal(value, abs(value), digits - 1.0, 0)


@compiled
def least_paid(p, w):
    """What :func:`within` needs whatever the line is: the least r of the box (w.points.least_paid gets its
    point), and the sum of absolute terms behind the largest r."""
    least, size = 0.0, 0.0
    for i in range(len(p.lever)):
        share, cut = w.points.cut_shares[i], w.columns.cut
        least += respond(p, w.box, w.allowed, i, cut, 1.0, share, w.points.least_paid)
        size += absolute(p, w.box, w.allowed, i, share, cut)
    return least, size


@compiled
def _at_thetas(p, w, count):
    r""":math:`\sum_i \max_{X_i} (g_i u_i - \theta r_i(u_i))` of every line at its theta, and r there."""
    lines, box, cuts = w.lines, w.box, w.columns.cut
    theta, value, paid = lines.tried, lines.gains, lines.pays
    most, own = lines.here, lines.own
    cleared(value[:count])
    cleared(paid[:count])
    for i in range(len(p.lever)):
        lever = p.lever[i]
        s, share, mode = p.start[i], w.points.cut_shares[i], box[i].mode
        if lever.label > 0.0:
            for m in range(count):
                most[m] = -INF
            for c in range(s, p.start[i + 1]):
                line, r = lines.terms[c], p.column[c].cost + share * p.column[c].top - cuts[c]
                for m in range(count if w.allowed[c] != 0 else 0):
                    v = line[m] - theta[m] * r
                    if v > most[m]:
                        most[m], own[m] = v, r
            add(value, 1.0, most, count)
            add(paid, 1.0, own, count)
        elif mode != IDLE:
            linear = lever.linear + share * lever.largest
            square, fall = lever.square, lever.down
            line, cut = lines.terms[s], cuts[s]
            fixed = lever.fixed + share * lever.least
            low, high, rests = box[i].lo, box[i].hi, -INF if mode == ACTED else 0.0
            if len(cuts) > p.start[-1]:
                _at_bent(p, w, i, count, rests)
                continue
            for m in range(count):
                a, gain = theta[m], line[m] + theta[m] * cut
                t = least_at(a * linear, a * square, fall, gain, low, high)
                r = fixed + term(linear, square, fall, cut, t)
                v = line[m] * t - a * r
                value[m] += 0.0 if v <= rests else v  # no number stays no number
                paid[m] += 0.0 if v <= rests else r


@compiled
def _at_bent(p, w, i, count, rests):
    """What :func:`_at_thetas` adds for a lever where lines may be bent; ``rests``: 0 if it may rest."""
    lines, lever, share, kink = w.lines, p.lever[i], w.points.cut_shares[i], kink_of(p, w.columns.cut, i)
    line, kinks = lines.terms[p.start[i]], lines.terms[p.start[-1] + i]
    linear, fixed = lever.linear + share * lever.largest, lever.fixed + share * lever.least
    most, own = lines.here, lines.own
    for m in range(count):
        most[m], own[m] = rests, 0.0
    for side in range(2 if w.box[i].lo < 0.0 < w.box[i].hi else 1):
        low, high, sign = part(w.box, i, 1.0 - 2.0 * side, 1.0)
        cut = w.columns.cut[p.start[i]] + sign * kink
        if lever.square == 0.0 and low > -INF and high < INF:  # it is at one of the ends
            first = fixed + term(linear, 0.0, lever.down, cut, low)
            last = fixed + term(linear, 0.0, lever.down, cut, high)
            for m in range(count):
                a, g = lines.tried[m], line[m] + sign * kinks[m]
                v, other = g * low - a * first, g * high - a * last
                r = last if other > v else first
                v = max(v, other) + 0.0 * (v + other)  # no number stays no number
                own[m] = own[m] if v <= most[m] else r
                most[m] = most[m] if v <= most[m] else v
            continue
        for m in range(count):
            a, g = lines.tried[m], line[m] + sign * kinks[m]
            t = least_at(a * linear, a * lever.square, lever.down, g + a * cut, low, high)
            r = fixed + term(linear, lever.square, lever.down, cut, t)
            v = g * t - a * r
            own[m] = own[m] if v <= most[m] else r
            most[m] = most[m] if v <= most[m] else v  # no number stays no number
    add(lines.gains, 1.0, most, count)
    add(lines.pays, 1.0, own, count)


@compiled
def keep_line(w, k, unit, side, const, top, spread):
    """Make the line in w.columns.line number k of w.lines: of which unit and side it is, its constant, its
    largest value over the box, constant included, and the sum of absolute terms behind it."""
    lines = w.lines
    lines.unit[k], lines.side[k], lines.const[k] = unit, side, const
    lines.top[k], lines.spread[k] = top, spread
    for c in range(len(w.columns.line)):
        lines.terms[c, k] = w.columns.line[c]


@compiled
def within(p, w, count, budget, paid, digits):
    r"""Upper bounds of the first lines of w.lines over the part of a box that costs at most ``budget``,
    rounding included, into w.lines.bound; w.lines.theta gets their thetas (0: the box alone).

    With a cut u + constant >= 0 that holds at every feasible point of the node, and shares mu of the cost's
    maximum, these points have

    .. math:: r(u) = \sum_i c_i(u_i) + \mu_i top_i(u_i) - cut \cdot u \le C + constant = C',

    and for any theta >= 0 the line is at most
    :math:`\theta C' + \sum_i \max_{X_i} (g_i u_i - \theta r_i(u_i))`. This is convex in theta. What is tried
    is where two tangents meet, on either side of the best theta: at first those at 0 and at infinity, then
    those at what was tried. With squares the first is the best one for a box without ends. All lines are
    treated at once, because processors do several of the same at a time. The cut is w.columns.cut with
    w.now.cut_const and w.points.cut_shares; zeros there leave the budget alone.

    Parameters
    ----------
    count
        How many lines there are (:func:`keep_line`).
    paid
        From :func:`least_paid`.
    digits
        Significant decimal digits of theta, 0 for all.
    """
    lines, limit, (least, size), d = w.lines, budget + w.now.cut_const, paid, len(p.lever)
    theta, value, spent, chosen, spread = lines.tried, lines.gains, lines.pays, lines.theta, lines.spread
    left, fall, right, climb, bound = lines.left, lines.fall, lines.right, lines.climb, lines.bound
    copied(lines.top, bound)
    cleared(chosen)
    if limit <= least:  # nothing is paid for but by rounding, so that no theta helps; the box's bounds hold
        return
    cleared(theta)
    _at_thetas(p, w, count)
    copied(lines.top, left)
    copied(lines.const, right)
    for i in range(d):
        lever = p.lever[i]
        line, idle = lines.terms[p.start[i]], w.points.least_paid[i]
        if len(lines.terms) > p.start[-1]:
            add(right, abs(idle), lines.terms[p.start[-1] + i], count)
        rise, sink = lever.square, lever.square * lever.down**2
        if lever.label > 0.0:
            line, idle = lines.terms[p.start[i] + int(idle)], 1.0
        add(right, idle, line, count)
        for m in range(count if rise > 0.0 and w.box[i].mode != IDLE else 0):
            square = rise if line[m] > 0.0 else sink
            theta[m] += line[m] * line[m] / square if square > 0.0 else 0.0
    for m in range(count):  # 0 where all of the box can be paid for
        fall[m], climb[m] = limit - spent[m], limit - least
        meet = max(left[m] - right[m], 0.0) / (climb[m] - min(fall[m], 0.0))
        free = 0.5 * math.sqrt(theta[m] / climb[m]) if theta[m] > 0.0 else meet
        theta[m] = free if fall[m] < 0.0 else 0.0
    more, k, tries = True, 0, min(max(d // LEVERS_EACH, 2), THETAS)
    while more and k < tries:
        for m in range(count if digits > 0 else 0):
            theta[m] = short(theta[m], digits)
        _at_thetas(p, w, count)
        for m in range(count):
            here = value[m] + theta[m] * limit + lines.const[m]
            most = here + p.slacks.budget * (spread[m] + theta[m] * (size + abs(limit))) + p.slacks.tiny
            if most < bound[m]:
                bound[m], chosen[m] = most, theta[m]
        more, k = k == 0, k + 1
        for m in range(count if k < tries else 0):  # "zero" is what the tangent there is at 0
            slope, zero = limit - spent[m], value[m] + theta[m] * spent[m] + lines.const[m]
            left[m], right[m] = zero if slope < 0.0 else left[m], right[m] if slope < 0.0 else zero
            fall[m], climb[m] = slope if slope < 0.0 else fall[m], climb[m] if slope < 0.0 else slope
            theta[m] = max(left[m] - right[m], 0.0) / (climb[m] - fall[m]) if fall[m] < 0.0 else 0.0
        for m in range(count if 1 < k < tries else 0):
            more = more or (1.0 - WORTH) * bound[m] > max(left[m] + fall[m] * theta[m], 0.0)
