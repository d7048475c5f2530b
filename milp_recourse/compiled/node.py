r"""Bounds one node, that is a box, signs of ReLUs and a configuration, and chooses how to split it.

Steps of :func:`examine`: cut the box to what the target leaves; bound the argument of every open ReLU over
the box, the ball, and what costs at most the target; put a line above the logit; bound the least cost
subject to the lines by a Lagrangian; repeat with slopes that are tight at the relaxed optimum.
"""

from __future__ import annotations

import math

import numpy as np

from milp_recourse.compiled.elementary import LOG, RELU, distance, draw_lines, is_open, steepness
from milp_recourse.compiled.elementary import value as curve
from milp_recourse.compiled.interior import solve_node
from milp_recourse.compiled.layout import (
    ALPHA,
    BALL_ROOM,
    BALL_SIZE,
    BEST_COST,
    BEST_PHAT,
    CHOICE,
    CONSTS,
    COST,
    CUT,
    CUT_CONST,
    CUT_SHARES,
    FALL,
    FIXED,
    GAIN,
    GAINED,
    GRID,
    HI,
    IDLE,
    INSIDE,
    INVERSE,
    KNOTS,
    LABEL,
    LARGEST,
    LINE,
    LINEAR,
    LO,
    MODE,
    MULTIPLIERS,
    NOTHING,
    POINT,
    PROMISE,
    PROMISED,
    RISE,
    ROOM,
    SCORE,
    SHARE,
    SHARES,
    SHIFT,
    SIZE,
    SLOPE,
    SPLIT,
    SQUARE,
    TOP,
    ZB,
    ZH,
    ZL,
    ZS,
)
from milp_recourse.compiled.levers import contract, cost_of, knot_inside, relevel, respond, top_of
from milp_recourse.compiled.network import (
    back,
    back_causes,
    into_first,
    later_layers,
    offers,
    only_squares,
    over_box,
    relax,
    relax_cause,
    relax_first,
    second_lines,
    squares_radius,
    within,
    within_squares,
)
from milp_recourse.compiled.numerics import COARSE, TINY
from milp_recourse.compiled.work import cleared, copied
from milp_recourse.compiling import compiled, inner

INF = math.inf


@inner
def sizes_over_box(p, box, allowed, sizes):
    """The largest sum of absolute terms of a row of sizes over a box."""
    total = 0.0
    for i in range(p.lever.shape[1]):
        s = p.start[i]
        if p.lever[LABEL, i] > 0.0:
            most = 0.0
            for c in range(s, p.start[i + 1]):
                if allowed[c] != 0:
                    most = max(most, sizes[c])
            total += most
        elif box[MODE, i] != 2:
            total += sizes[s] * max(abs(box[LO, i]), abs(box[HI, i]))
    return total


@inner
def _through_causes(n, unit, sizes, count):
    """The sum of absolute terms behind a form's causal units, the first ``count`` of them."""
    total = 0.0
    for m in range(count):
        v = abs(n.resting[m])
        if n.kind[m] != RELU:
            v += max(abs(unit[SLOPE, 0, m]), abs(unit[ALPHA, 0, m])) * unit[ZS, 0, m]
            v += max(abs(unit[RISE, 0, m]), abs(unit[FALL, 0, m]))
        elif unit[ZH, 0, m] > 0.0:
            v += unit[ZS, 0, m]
            if unit[ZL, 0, m] < 0.0:
                v += abs(unit[ZL, 0, m])
        total += sizes[m] * v
    return total


@inner
def sizes_direct(p, w, k, first, count):
    """Sums of absolute terms behind arguments ``first`` to ``count`` of layer k (0 or 1), into w.layer[0]."""
    size = w.layer[0]
    for j in range(first, count):
        size[j] = p.offset[1, k, j] + sizes_over_box(p, w.box, w.allowed, p.first[1, k, j])
        size[j] += _through_causes(p, w.unit, p.caused[1, k, j], j if k == 0 else p.widths[0])


@inner
def sizes_next(p, w, k):
    """Sums of absolute terms behind layer k >= 2 (the logit's for k = K + 1) from the layer before,
    likewise."""
    zl, zh, zs, size = w.unit[ZL, k - 1], w.unit[ZH, k - 1], w.unit[ZS, k - 1], w.layer[0]
    count = p.widths[k] if k < len(p.widths) else 1
    for i in range(count):
        size[i] = abs(p.biases[k - 1, i])
    for j in range(p.widths[k - 1]):
        if zh[j] > 0.0:
            v, weights = zs[j], p.turned[k - 1, j]
            if zl[j] < 0.0:
                v += abs(zl[j])
            for i in range(count):
                size[i] += abs(weights[i]) * v


@inner
def unit_line(p, w, k, i, side):
    """A line above side * (argument i of layer k), k = K + 1 for the logit, into w.col[LINE]; its constant.

    ``w.unit[SCORE]`` gets the coefficient that every unit before had.
    """
    coef, causes, line, unit = w.layer[2], w.layer[1], w.col[LINE], w.unit
    units = p.widths[0]
    if k < 2:
        return form_line(p, w, p.first[0, k, i], p.caused[0, k, i], p.offset[0, k, i], side)
    cleared(line)
    for m in range(units):
        causes[m] = 0.0
    for j in range(p.widths[k - 1]):
        coef[j] = side * p.weights[k - 1, i, j]
    return back(p, unit, w.relaxed, k - 1, coef, side * p.biases[k - 1, i], line, causes)


@inner
def argument_line(p, w, k, i, side):
    """As :func:`unit_line`, for layer 2 from what is known of all its arguments; then scores are not kept."""
    if k != 2:
        return unit_line(p, w, k, i, side)
    line, causes = w.col[LINE], w.layer[1]
    columns, units = len(line), p.widths[0]
    row = 0 if side > 0.0 else 1
    for c in range(columns):
        line[c] = w.second[row, c, i]
    for m in range(units):
        causes[m] = w.second[row, columns + m, i]
    const = side * p.biases[1, i] + w.second[row, columns + units, i]
    return back_causes(p, w.unit, causes, const, line, w.unit[SCORE, 0]) if units > 0 else const


@inner
def _within_ball(p, w, box, allowed, line, rest, const, top, size):
    r"""An upper bound of a line with its constant over the part of the box that is in the ball.

    Any multipliers v of the residuals give one,

    .. math:: g u \le \max_{u \in box} \Big(g - \sum_f v_f L_f\Big) u + \max_{ball} \sum_f v_f \rho_f,
        \qquad \max_{ball} v \rho = \sqrt{R \textstyle\sum_f v_f^2 / w_f} - v n, \quad R = \sum_f w_f n_f^2,

    L_f the residual's line from below where v_f > 0, from above where v_f < 0. From effects to causes, each
    v_f is what leaves nothing of its own lever, so that the box hardly counts.

    Parameters
    ----------
    rest
        Work, (P,).
    top
        The line's largest value over the box, constant included: what is returned where the ball says no
        more.
    size
        The sum of absolute terms behind the line.
    """
    columns = len(rest)
    copied(line, rest)
    spread, radius, value, doubt, last = 0.0, 0.0, const, size, len(p.noise) - 1
    for f in range(len(p.noise) - 1, -1, -1):
        weight, noise = p.precision[f], p.noise[f]
        if weight == 0.0:
            continue
        radius += weight * noise * noise
        own = w.tangent[0, f, p.owner[f]]
        rate = rest[p.owner[f]] / own if own != 0.0 else 0.0
        if rate == 0.0:
            continue
        side = 1 if rate > 0.0 else 0  # v = rate; the line is tangent u + ball, for v > 0 its negative
        value += abs(rate) * w.ball[side, f] - rate * noise
        for c in range(columns):
            rest[c] += abs(rate) * w.tangent[side, f, c]
        spread += rate * rate / weight
        doubt += abs(rate) * (w.ball[BALL_SIZE, f] + abs(noise))
    if p.bent:  # with a linear part L the radius is R - L
        radius += w.ball[BALL_ROOM, last] + p.line * (radius + abs(w.ball[BALL_ROOM, last]))
        if radius < 0.0:
            return -INF
    reach = math.sqrt(radius * spread) * (1.0 + p.line)
    value += reach + over_box(p, box, allowed, rest) + p.line * (doubt + reach) + p.tiny
    return min(top, value)


@compiled
def contract_by_ball(p, w, box, allowed, line, rest):
    """Cut the levers' intervals to what the ball allows; False where nothing is left."""
    i = -1
    for f in range(len(p.noise)):
        column, i = p.owner[f], 0
        while p.start[i] != column:
            i += 1
        if p.precision[f] == 0.0 or box[MODE, i] == 2 or p.lever[LABEL, i] > 0.0:
            continue
        for side in range(2):
            cleared(line)
            line[column] = 1.0 if side == 0 else -1.0
            far = max(abs(box[LO, i]), abs(box[HI, i]))
            top = _within_ball(p, w, box, allowed, line, rest, 0.0, INF, far)
            if side == 0:
                box[HI, i] = min(box[HI, i], top)
            else:
                box[LO, i] = max(box[LO, i], -top)
        if not box[LO, i] <= box[HI, i]:
            if box[MODE, i] == 1:
                return False
            box[MODE, i] = 2
    return True


@compiled
def _bound_layers(p, w, budget):
    """Bounds of every open unit's argument.

    Returns
    -------
    int
        -1 where the node is empty, 1 where the ball cuts the box, else 0.
    """
    cut_const = w.scalar[CUT_CONST] if budget < INF else INF
    squares = only_squares(p)
    if not _bound_layer(p, w, budget, cut_const, squares, 0, 0):
        return -1
    ball = 0
    for turn in range(2 if p.bent else 1):
        if len(p.noise) == 0:
            break
        if turn > 0 and not _bound_layer(p, w, budget, cut_const, squares, 0, 0):
            return -1  # a smaller box, and curves nearer to their lines
        ball = residual_lines(p, w, w.box, w.allowed)
        if ball < 0:
            return -1
        if ball > 0 and not contract_by_ball(p, w, w.box, w.allowed, w.col[LINE], w.col[GAIN]):
            return -1
    # the parent's cut holds the ball's multiplier already
    used = 0 if cut_const < INF and w.scalar[BEST_COST] < INF else ball
    for k in range(1, len(p.widths)):
        if not _bound_layer(p, w, budget, cut_const, squares, k, used):
            return -1
    return ball


@inner
def _bound_layer(p, w, budget, cut_const, squares, k, ball):
    """Bounds of one layer's open arguments; False where the node is empty."""
    box, allowed, unit, at, offer = w.box, w.allowed, w.unit, w.at, w.offer
    zl, zh, zs, alpha, size = unit[ZL, k], unit[ZH, k], unit[ZS, k], unit[ALPHA, k], w.layer[0]
    line, cut, shares = w.col[LINE], w.col[CUT], at[CUT_SHARES]
    if (
        not cut_const < INF
    ):  # no cut yet: a row of zeros; a cut nearly implies the budget, and is much tighter
        cut, shares, cut_const = w.col[NOTHING], at[IDLE], 0.0
    radius, inverse, least, priced = 0.0, at[INVERSE], 0.0, 0.0
    if squares:
        radius = squares_radius(p, box, cut, budget + cut_const, inverse)
    elif budget < INF:
        least, priced = offers(p, box, allowed, cut, shares, offer)
    if k == 1:
        sizes_direct(p, w, 1, 0, p.widths[1])
    elif k > 1:
        sizes_next(p, w, k)
        if k == 2:
            second_lines(p, w.relaxed, w.second)
    for j in range(p.widths[k]):
        if k == 0:  # a causal unit's size needs the bounds of those before it
            sizes_direct(p, w, 0, j, j + 1)
        zs[j] = size[j]
        curve = k == 0 and p.kind[j] != RELU
        if not curve and (zl[j] >= 0.0 or zh[j] <= 0.0):
            if k == 0:
                relax_cause(p, unit, j)
            continue
        slack = p.line * zs[j] + p.tiny
        for side in (1.0, -1.0):
            const = argument_line(p, w, k, j, side) + slack
            top = over_box(p, box, allowed, line) + const
            if top > 0.0 and ball > 0:
                top = _within_ball(p, w, box, allowed, line, w.col[GAIN], const, top, zs[j])
            if (top > 0.0 or curve) and budget < INF and squares:
                top, _ = within_squares(p, box, line, const, top, budget, cut, cut_const, radius, inverse)
            elif (top > 0.0 or curve) and budget < INF:
                top, _ = within(
                    p, box, allowed, line, const, top, budget, cut, shares, cut_const, offer, least, priced
                )
            if side > 0.0:
                zh[j] = min(zh[j], top)
            else:
                zl[j] = max(zl[j], -top)
            if zh[j] <= 0.0 and not curve:
                break
        if curve and p.kind[j] == LOG:  # less is no density, or so little that it is not plausible
            if zh[j] <= 0.0:
                return False
            zl[j] = max(zl[j], p.edge[j] if zh[j] > 2.0 * p.edge[j] else TINY)
        if zl[j] > zh[j]:
            return False
        if zl[j] < 0.0 < zh[j] and not curve:
            alpha[j] = 1.0 if zh[j] > -zl[j] else 0.0
        if k == 0:
            relax_cause(p, unit, j)
    if k > 0:
        relax(unit, k, 0, p.widths[k], p.up)
    if k == 1:
        relax_first(p, unit, w.relaxed)
    return True


@inner
def keep_row(p, w, box, allowed, const, inside, count, layer):
    """Take w.col[LINE] + const >= 0 as row ``count``; False where nothing in the box meets it.

    Parameters
    ----------
    inside
        How far inside the convex problem's point is to stay.
    layer
        The units that the line was put together from lie in layers below this.
    """
    if over_box(p, box, allowed, w.col[LINE]) + const < 0.0:
        return False
    copied(w.col[LINE], w.rows[count])
    w.row[CONSTS, count] = const
    w.row[INSIDE, count] = inside
    for t in range(w.unit.shape[1]):
        for q in range(w.unit.shape[2]):
            w.seen[0, count, t, q] = w.unit[SCORE, t, q] if t < layer else 0.0
            w.seen[1, count, t, q] = w.unit[ALPHA, t, q]
    return True


@inner
def never_negative(p, w, box, allowed, const):
    """Whether the line in w.col[LINE] with this constant is nowhere negative in the box."""
    for c in range(w.col.shape[1]):
        w.col[GAIN, c] = -w.col[LINE, c]
    return const - over_box(p, box, allowed, w.col[GAIN]) >= 0.0


@inner
def form_line(p, w, form, caused, const, side):
    """A line above side * (a form over levers and causal units), into w.col[LINE]; its constant."""
    line, causes, units = w.col[LINE], w.layer[1], p.widths[0]
    for c in range(len(line)):
        line[c] = side * form[c]
    if units == 0:
        return side * const
    for m in range(units):
        causes[m] = side * caused[m]
    return back_causes(p, w.unit, causes, side * const, line, w.unit[SCORE, 0])


@compiled
def stated_rows(p, w, box, allowed, count, bent):
    """The problem's own rows that the box does not imply; how many rows there are then, -1 where nothing is
    left.

    Parameters
    ----------
    bent
        Whether those through curves alone: the others are there.
    """
    for r in range(p.row.shape[1]):
        if bent:
            through = False
            for m in range(p.widths[0]):
                through = through or (p.kind[m] != RELU and p.row_caused[0, r, m] != 0.0)
            if not through:
                continue
        count = stated_row(p, w, box, allowed, r, count)
        if count < 0:
            return -1
    return count


@compiled
def stated_size(p, w, box, allowed, r):
    """The sum of absolute terms behind one of the problem's own rows."""
    size = sizes_over_box(p, box, allowed, p.row[1, r]) + p.row_const[1, r]
    return size + _through_causes(p, w.unit, p.row_caused[1, r], p.widths[0])


@compiled
def stated_row(p, w, box, allowed, r, count):
    """Add a row of the problem's own if the box does not imply it; the new count, -1 if nothing is left."""
    slack = p.line * stated_size(p, w, box, allowed, r) + p.tiny
    const = form_line(p, w, p.row[0, r], p.row_caused[0, r], p.row_const[0, r], 1.0) + slack
    if never_negative(p, w, box, allowed, const):
        return count
    return count + 1 if keep_row(p, w, box, allowed, const, 4.0 * slack, count, 1) else -1


@inner
def residual_lines(p, w, box, allowed):
    """Lines above every residual and its negative, into w.tangent and w.ball.

    Returns
    -------
    int
        0 where the whole box is in the ball, -1 where nothing of it is, else 1.
    """
    most, least, slack = 0.0, 0.0, 0.0
    for f in range(len(p.noise)):
        weight, last = p.precision[f], p.bent and f == len(p.noise) - 1
        if weight == 0.0 and not last:
            continue
        size = sizes_over_box(p, box, allowed, p.residual[1, f])
        size += _through_causes(p, w.unit, p.residual_caused[1, f], p.widths[0])
        at_rest = p.excess if last else 0.0
        size += abs(at_rest)
        w.ball[BALL_SIZE, f] = size
        low, high = 0.0, 0.0
        for side in range(2):
            sign = 1.0 if side == 0 else -1.0
            const = (
                form_line(p, w, p.residual[0, f], p.residual_caused[0, f], at_rest, sign)
                + p.line * size
                + p.tiny
            )
            w.ball[side, f] = const
            copied(w.col[LINE], w.tangent[side, f])
            for m in range(p.widths[0]):
                w.ball_seen[side, f, m] = w.unit[SCORE, 0, m]
            far = over_box(p, box, allowed, w.col[LINE]) + const
            if side == 0:
                high = p.noise[f] + far
            else:
                low = p.noise[f] - far
        if last:
            w.ball[BALL_ROOM, f] = -low
            most += high
            least += low
            slack += 4.0 * size
            continue
        near = max(low, -high, 0.0)
        most += weight * (max(low * low, high * high) - p.noise[f] ** 2)
        least += weight * (near * near - p.noise[f] ** 2)
        slack += weight * (near + abs(p.noise[f]) + size) ** 2
    if least > p.line * slack + p.tiny:
        return -1
    return 1 if most > 0.0 else 0


@compiled
def ball_hair(p, w):
    """What rounding can do to the ball's value anywhere in a node whose residuals have their lines."""
    total, last = 0.0, len(p.noise) - 1
    for f in range(len(p.noise)):
        size = w.ball[BALL_SIZE, f]
        if p.bent and f == last:
            total += size
        elif p.precision[f] > 0.0:
            total += p.precision[f] * size * (2.0 * size + abs(p.noise[f]))
    return min(p.hair[1], 8.0 * p.line * total + p.tiny)


@compiled
def _ball_seen(p, w, r):
    """The causal units' coefficients in the ball's row."""
    for t in range(len(p.widths)):
        for q in range(p.widths[t]):
            w.seen[0, r, t, q] = 0.0
            w.seen[1, r, t, q] = w.unit[ALPHA, t, q]
    for f in range(len(p.noise)):
        at = w.ball[BEST_PHAT, f]
        side, rate = 1 if at > 0.0 else 0, 2.0 * p.precision[f] * abs(at)
        if p.bent and f == len(p.noise) - 1:
            side, rate = 1, 1.0
        for m in range(p.widths[0]):
            w.seen[0, r, 0, m] += rate * w.ball_seen[side, f, m]


@inner
def relaxed_arguments(p, w):
    """Every unit's argument at the relaxed optimum (labels by their shares), into w.unit[ZB]."""
    zb = w.unit[ZB]
    layers = len(p.widths)
    for k in range(2):
        if k == layers or p.widths[k] == 0:
            continue
        for j in range(p.widths[k]):
            zb[k, j] = p.offset[0, k, j]
        for i in range(p.lever.shape[1]):
            s = p.start[i]
            if p.lever[LABEL, i] > 0.0:
                for c in range(s, p.start[i + 1]):
                    v = w.col[SHARE, c]
                    if v != 0.0:
                        for j in range(p.widths[k]):
                            zb[k, j] += p.first[0, k, j, c] * v
            elif w.at[POINT, i] != 0.0:
                for j in range(p.widths[k]):
                    zb[k, j] += p.first[0, k, j, s] * w.at[POINT, i]
        if k == 0:
            for m in range(p.widths[0]):
                if p.kind[m] != RELU:  # what is relaxed may leave what is possible
                    zb[0, m] = min(max(zb[0, m], w.unit[ZL, 0, m]), w.unit[ZH, 0, m])
                v = curve(p.kind[m], zb[0, m], p.edge[m]) - p.resting[m]
                for l in range(m + 1, p.widths[0]):
                    zb[0, l] += p.caused[0, 0, l, m] * v
        else:
            into_first(p, zb[0], p.widths[1], zb[1])
    if layers > 1:
        later_layers(p, zb)


@compiled
def reached(w, r, p):
    """A row's value at the relaxed optimum."""
    rows = w.rows
    start = p.start
    total = w.row[CONSTS, r]
    for i in range(p.lever.shape[1]):
        s = start[i]
        if p.lever[LABEL, i] > 0.0:
            for c in range(s, start[i + 1]):
                total += rows[r, c] * w.col[SHARE, c]
        else:
            total += rows[r, s] * w.at[POINT, i]
    return total


@inner
def examine(p, w, target, lines, steps):
    """Bound the node in w.box, w.allowed, w.unit[ZL], w.unit[ZH], w.unit[SPLIT] (all of which get tighter).

    Parameters
    ----------
    target
        Actions that cost at least this need not be ruled out.
    lines
        Most lines above the logit.
    steps
        Most interior-point steps.

    Returns
    -------
    (bound, last, rows, open, ball)
        The proven bound (inf: nothing here below the target), what the last prices prove, the number of
        rows behind these, the number of open ReLUs, the ball's row or -1.
    """
    alpha = w.unit[ALPHA]
    split = w.unit[SPLIT]
    zh = w.unit[ZH]
    zl = w.unit[ZL]
    zs = w.unit[ZS]
    widths = p.widths
    layers = len(widths)
    relevel(p, w.box)
    if not contract(p, w.box, w.allowed, target):
        return INF, INF, 0, 0, -1
    relevel(p, w.box)
    cuts = _bound_layers(p, w, target)
    if cuts < 0:
        return INF, INF, 0, 0, -1
    if layers > 1:
        sizes_next(p, w, layers)
    else:
        sizes_direct(p, w, 1, 0, 1)
    logit_size = w.layer[0, 0]
    unsure = 0
    bends = False
    for k in range(layers):
        for j in range(widths[k]):
            if k == 0 and p.kind[j] != RELU:
                bends = True
                unsure += is_open(w.unit, j)
            elif zl[k, j] < 0.0 < zh[k, j]:
                unsure += 1
    slack = p.line * (logit_size + abs(p.need_low)) + p.tiny
    inside = slack + 2.0 * p.hair[0]
    const = unit_line(p, w, layers, 0, 1.0) - p.need_low + slack
    if not keep_row(p, w, w.box, w.allowed, const, inside, 0, layers):
        return INF, INF, 0, 0, -1
    w.scalar[ROOM] = _room(p, w, const, target)
    count, room = 1, w.row.shape[1] - lines - (lines if bends else 1) * p.row.shape[1] - 2
    for k in range(layers):
        for j in range(widths[k]):
            if split[k, j] == 0:
                continue
            curved = k == 0 and p.kind[j] != RELU
            for side in (1.0, -1.0):
                if count >= room or (not curved and split[k, j] != side):
                    continue
                if curved and int(split[k, j]) & (1 if side > 0.0 else 2) == 0:
                    continue
                hair = p.line * zs[k, j] + p.tiny
                if curved:  # inside the ends of the argument's interval
                    hair -= zl[k, j] if side > 0.0 else -zh[k, j]
                const = unit_line(p, w, k, j, side) + hair
                if never_negative(p, w, w.box, w.allowed, const):
                    continue
                hair = 2.0 * (p.line * zs[k, j] + p.tiny)
                if not keep_row(p, w, w.box, w.allowed, const, hair, count, max(k, 1)):
                    return INF, INF, 0, 0, -1
                count += 1
    count = stated_rows(p, w, w.box, w.allowed, count, False)
    if count < 0:
        return INF, INF, 0, 0, -1
    ball = -1
    if cuts > 0:
        ball, count = count, count + 1
        w.row[INSIDE, ball] = ball_hair(p, w)
        w.row[CONSTS, ball] = 0.0
        cleared(w.rows[ball])
    bound = value = -INF
    solved = count
    for turn in range(lines):
        solved = count
        value = solve_node(
            p, w, w.box, w.allowed, count, ball, target, w.at[POINT], w.at[CHOICE], steps, unsure == 0
        )
        bound = max(bound, value)
        if bound >= target or turn + 1 == lines or unsure == 0:
            break
        relaxed_arguments(p, w)
        changed = False
        for k in range(layers):
            for j in range(widths[k]):
                if k == 0 and p.kind[j] != RELU:
                    if is_open(w.unit, j):
                        changed = True
                        draw_lines(w.unit, j, p.kind[j], p.edge[j], w.unit[ZB, 0, j])
                elif zl[k, j] < 0.0 < zh[k, j]:
                    a = 1.0 if w.unit[ZB, k, j] > 0.0 else 0.0
                    if a != alpha[k, j]:
                        changed = True
                        alpha[k, j] = a
        if not changed:
            break
        if layers > 1:
            relax_first(p, w.unit, w.relaxed)
        const = unit_line(p, w, layers, 0, 1.0) - p.need_low + slack
        if not keep_row(p, w, w.box, w.allowed, const, inside, count, layers):
            return INF, INF, 0, 0, -1
        cut_off = reached(w, count, p) < 0.0
        count += cut_off
        if bends:  # the other rows and the ball with the curves' new lines
            before = count
            count = stated_rows(p, w, w.box, w.allowed, count, True)
            if count < 0 or (ball >= 0 and residual_lines(p, w, w.box, w.allowed) < 0):
                return INF, INF, 0, 0, -1
            cut_off = cut_off or ball >= 0
            for r in range(before, count):
                cut_off = cut_off or reached(w, r, p) < 0.0
        if not cut_off:
            break
    if ball >= 0:
        _ball_seen(p, w, ball)
    return max(bound, 0.0), value, solved, unsure, ball


@compiled
def _room(p, w, const, budget):
    """The first row's largest value where the node costs at most the budget, its constant included."""
    line, cut_const = w.col[LINE], w.scalar[CUT_CONST]
    top = over_box(p, w.box, w.allowed, line) + const
    if not budget < INF:
        return top
    cut, shares = w.col[CUT], w.at[CUT_SHARES]
    if not cut_const < INF:
        cut, shares, cut_const = w.col[NOTHING], w.at[IDLE], 0.0
    if only_squares(p):
        inverse = w.at[INVERSE]
        radius = squares_radius(p, w.box, cut, budget + cut_const, inverse)
        top, _ = within_squares(p, w.box, line, const, top, budget, cut, cut_const, radius, inverse)
    else:
        least, priced = offers(p, w.box, w.allowed, cut, shares, w.offer)
        top, _ = within(
            p, w.box, w.allowed, line, const, top, budget, cut, shares, cut_const, w.offer, least, priced
        )
    return top


@compiled
def take_cut(p, w, count):
    """The rows summed with the last multipliers, a valid cut for children: cut u + constant >= 0."""
    cut, size, shares = w.col[CUT], w.col[SIZE], w.at[SHARES]
    prices, consts = w.row[MULTIPLIERS], w.row[CONSTS]
    total, slack = 0.0, 0.0
    for c in range(len(cut)):
        cut[c] = 0.0
        size[c] = 0.0
    for r in range(count):
        v = prices[r]
        if v > 0.0:
            total += v * consts[r]
            slack += v * abs(consts[r])
            for c in range(len(cut)):
                cut[c] += v * w.rows[r, c]
                size[c] += v * abs(w.rows[r, c])
    for i in range(p.lever.shape[1]):
        s = p.start[i]
        w.at[CUT_SHARES, i] = shares[i]
        if p.lever[LABEL, i] > 0.0:
            most = 0.0
            for c in range(s, p.start[i + 1]):
                if w.allowed[c] != 0:
                    most = max(most, size[c])
            slack += most
        elif w.box[MODE, i] != 2:
            slack += size[s] * max(abs(w.box[LO, i]), abs(w.box[HI, i]))
    w.scalar[CUT_CONST] = total + p.dual * slack + p.tiny


@compiled
def tighten(p, w, bound, target, count):
    """Cut off of each lever what the Lagrangian at the last prices rules out below the target.

    What a lever's own term exceeds its minimum by is added to the bound where it is taken.
    """
    hi = w.box[HI]
    lo = w.box[LO]
    gain = w.col[GAIN]
    size = w.col[SIZE]
    cost = p.column[COST]
    top = p.column[TOP]
    rows = w.rows
    allowed = w.allowed
    start = p.start
    if not target < INF:
        return
    spare = (target - bound) + p.dual * (abs(target) + abs(bound))
    if not spare >= 0.0:
        return
    # gains at the prices; sizes cover their rounding
    columns = rows.shape[1]
    for c in range(columns):
        gain[c] = 0.0
        size[c] = 0.0
    for r in range(count):
        v = w.row[MULTIPLIERS, r]
        if v > 0.0:
            for c in range(columns):
                gain[c] += v * rows[r, c]
                size[c] += v * abs(rows[r, c])
    for i in range(p.lever.shape[1]):
        s = start[i]
        share = w.at[SHARES, i]
        if p.lever[LABEL, i] > 0.0:
            least, far = INF, 0.0
            for j in range(s, start[i + 1]):
                if allowed[j] != 0:
                    v = cost[j] + share * top[j]
                    least = min(least, v - gain[j])
                    far = max(far, v + size[j])
            for j in range(s, start[i + 1]):
                if allowed[j] != 0:
                    v = cost[j] + share * top[j] - gain[j]
                    if v - least > spare + 2.0 * p.dual * far + p.tiny:
                        allowed[j] = 0
            continue
        if w.box[MODE, i] != 1:
            continue
        l, h = lo[i], hi[i]
        linear, square, g = p.lever[LINEAR, i] + share * p.lever[LARGEST, i], p.lever[SQUARE, i], gain[s]
        far = max(abs(l), abs(h))
        room = spare + 2.0 * p.dual * ((linear + size[s]) * far + square * far * far) + p.tiny
        # f(u) = linear |u| + square u^2 - g u; its least value is the one in the bound, at whole values only
        least = respond(p, w.box, allowed, i, gain, 1.0, share, w.at[CHOICE]) - p.lever[FIXED, i]
        t = w.at[CHOICE, i]
        for side in range(2):
            end = h if side == 0 else l
            if end == t or linear * abs(end) + square * end * end - g * end - least <= room:
                continue
            # by bisection: the farthest point that is paid for, rounded outward
            near, away = t, end
            for _ in range(20):
                middle = 0.5 * (near + away)
                if linear * abs(middle) + square * middle * middle - g * middle - least <= room:
                    near = middle
                else:
                    away = middle
            if side == 0:
                hi[i] = away
            else:
                lo[i] = away


@inner
def _widest(p, w):
    """The lever that the bound loses most over, and how much; -1 where nothing can be split.

    A unit's loss, per width of its argument, times the part of that width that is the lever's. A label's part
    is between its main label and the allowed one that is farthest from it.
    """
    zb, moved, score = w.unit[ZB], w.layer, w.unit[SCORE]
    most, which = 0.0, -1
    for i in range(p.lever.shape[1]):
        total, c, own, width = 0.0, p.start[i], -1, w.box[HI, i] - w.box[LO, i]
        if p.lever[LABEL, i] > 0.0:
            own, width, farthest = c + int(w.at[POINT, i]), 1.0, 0.0
            for e in range(p.start[i], p.start[i + 1]):
                far = 0.0
                if w.allowed[e] != 0:
                    for k in range(min(len(p.widths), 2)):
                        for j in range(p.widths[k]):
                            far += score[k, j] * abs(p.first[0, k, j, e] - p.first[0, k, j, own])
                if far > farthest:
                    farthest, c = far, e
            if not farthest > 0.0:
                continue
        elif w.box[MODE, i] == 2 or not width > COARSE * max(abs(w.box[LO, i]), abs(w.box[HI, i])):
            continue
        for m in range(p.widths[0]):  # the arguments' derivatives at the relaxed optimum, layer by layer
            moved[2, m] = p.first[0, 0, m, c] - (p.first[0, 0, m, own] if own >= 0 else 0.0)
            for l in range(m):
                steep = steepness(p.kind[l], zb[0, l], p.edge[l])
                if steep != 0.0:
                    moved[2, m] += p.caused[0, 0, m, l] * steep * moved[2, l]
            total += score[0, m] * abs(moved[2, m])
        for k in range(1, len(p.widths)):
            here, before = moved[k % 2], moved[(k - 1) % 2]
            for j in range(p.widths[k]):
                here[j] = p.first[0, 1, j, c] if k == 1 else 0.0
                if k == 1 and own >= 0:
                    here[j] -= p.first[0, 1, j, own]
            for m in range(p.widths[k - 1]):
                if k == 1:
                    steep = steepness(p.kind[m], zb[0, m], p.edge[m])
                    if steep != 0.0:
                        for j in range(p.widths[1]):
                            here[j] += p.caused[0, 1, j, m] * steep * moved[2, m]
                elif before[m] != 0.0:
                    weights = p.turned[k - 1, m]
                    for j in range(p.widths[k]):
                        here[j] += weights[j] * before[m]
            for j in range(p.widths[k]):
                total += score[k, j] * abs(here[j])
                if not zb[k, j] > 0.0:
                    here[j] = 0.0
        if total * width > most:
            most, which = total * width, i
    return most, which


@compiled
def _halvings(p, w):
    """About how many splits the node's levers need until they are settled; nothing for a few intervals."""
    total, free, named = 0.0, 0, False
    for i in range(p.lever.shape[1]):
        values, grid = 0.0, p.lever[GRID, i]
        if p.lever[LABEL, i] > 0.0:
            for c in range(p.start[i], p.start[i + 1]):
                values += w.allowed[c] != 0
        elif w.box[MODE, i] != 2 and w.box[LO, i] < w.box[HI, i]:
            values = (w.box[HI, i] - w.box[LO, i]) / grid + 1.0 if grid > 0.0 else 2.0**HALVINGS
        if values > 1.0:
            total += min(math.log2(values), HALVINGS)
            free += 1
            named |= p.lever[LABEL, i] > 0.0
        named |= w.box[MODE, i] == 0
    few = FEW_LEVERS if w.scalar[BEST_COST] < INF else FEW_WITHOUT_ACTION
    return total if free > few or named else 0.0


@compiled
def _of_lever(p, w, i):
    """How to split a lever's part of the box; as :func:`choose`."""
    if p.lever[LABEL, i] > 0.0:
        return 4, i, w.at[POINT, i]
    return 2 if w.box[MODE, i] == 1 else 3, i, _between(p, w, i)


@compiled
def _between(p, w, i):
    """Where to cut an interval: between its middle and the relaxed optimum, away from the ends."""
    l, h = w.box[LO, i], w.box[HI, i]
    cut = 0.25 * (l + h) + 0.5 * w.at[POINT, i]
    return min(max(cut, l + 0.2 * (h - l)), h - 0.2 * (h - l))


LITTLE = 2.0**-10
"""Splits on percentile costs that lose less than this share of the lever's cost come last."""

FEW_LEVERS, FEW_WITHOUT_ACTION, FEW_OPEN = 4, 8, 6
"""With so few levers to settle, with an action in hand and without, and more open units than this, levers are
split. With more levers they compete with signs while more units are open than the levers want splits."""

HALVINGS = 4.0
"""How often a continuous lever is thought to be halved."""


@compiled
def _bent(p, w, m):
    """How to split on a curve: the interval of its only lever, or that of its argument; as :func:`choose`."""
    l, h, z = w.unit[ZL, 0, m], w.unit[ZH, 0, m], w.unit[ZB, 0, m]
    cut = min(max(0.25 * (l + h) + 0.5 * z, l + 0.2 * (h - l)), h - 0.2 * (h - l))
    only, entries = -1, 0
    for i in range(p.lever.shape[1]):
        for c in range(p.start[i], p.start[i + 1]):
            if p.first[0, 0, m, c] != 0.0:
                entries += 1
                only = i
    for q in range(m):
        entries += p.caused[0, 0, m, q] != 0.0
    if entries == 1 and only >= 0 and not p.lever[LABEL, only] > 0.0 and w.box[MODE, only] == 1:
        low, high = w.box[LO, only], w.box[HI, only]
        u = (cut - p.offset[0, 0, m]) / p.first[0, 0, m, p.start[only]]
        u = min(max(u, low + 0.1 * (high - low)), high - 0.1 * (high - low))
        if low < u < high:
            return 2, only, u
    return 5, m, cut


@compiled
def hold(p, w):
    """Make the sign that a bound implies and the relaxed optimum contradicts most a row of the node; whether
    there is one.

    Bounds count on what costs less than the target and meets the rows: other points of the box need not obey,
    and where no unit is open nothing else would rule these out but ever smaller boxes. The relaxed optimum's
    arguments are those of :func:`choose`.
    """
    best, at, unit = 0.0, -1, w.unit
    for k in range(1, len(p.widths)):
        for j in range(p.widths[k]):
            if unit[SPLIT, k, j] != 0.0:
                continue
            z, off = unit[ZB, k, j], 0.0
            if unit[ZL, k, j] >= 0.0:
                off = -z
            elif unit[ZH, k, j] <= 0.0:
                off = z
            if off > best and off > COARSE * unit[ZS, k, j]:
                best, at = off, k * unit.shape[2] + j
    if at >= 0:
        k, j = at // unit.shape[2], at % unit.shape[2]
        unit[SPLIT, k, j] = 1.0 if unit[ZL, k, j] >= 0.0 else -1.0
    return at >= 0


@compiled
def choose(p, w, count, unsure):
    """What to split: (kind, index, value); kind 0 nothing, 1 a sign, 2 an interval at value, 3 a mode, 4 a
    label, 5 the interval of a curve's argument at value.

    For a sign the index is layer * width + unit. A unit's score is what the bound loses there: the rows'
    prices times the distance between its line and its value at the relaxed optimum. What a sign or a lever
    promises is its share of all that is lost; it counts for what such splits have kept of their promises.
    """
    zh = w.unit[ZH]
    zl = w.unit[ZL]
    hi = w.box[HI]
    lo = w.box[LO]
    mode_ = w.box[MODE]
    point = w.at[POINT]
    share = w.col[SHARE]
    prices_ = w.row[MULTIPLIERS]
    fixed = p.lever[FIXED]
    label_ = p.lever[LABEL]
    cost = p.column[COST]
    rows_ = w.rows
    start = p.start
    widths = p.widths
    layers = len(widths)
    relaxed_arguments(p, w)
    priced = False  # else the relaxed optimum costs nothing, and the logit's line alone counts
    for r in range(count):
        if prices_[r] > 0.0:
            priced = True
    best, kind, index, value = 0.0, 0, 0, 0.0
    every, w.scalar[PROMISE] = 0.0, 0.0
    last, last_lever, last_cut = 0.0, 0, 0.0
    n = w.unit.shape[2]
    for k in range(layers):
        for j in range(widths[k]):
            l, h = zl[k, j], zh[k, j]
            w.unit[SCORE, k, j] = 0.0
            curved = k == 0 and p.kind[j] != RELU
            z = w.unit[ZB, k, j]
            if curved:
                if not is_open(w.unit, j):
                    continue
                relu = curve(p.kind[j], z, p.edge[j])
                above = max(w.unit[SLOPE, 0, j] * z + w.unit[RISE, 0, j] - relu, 0.0)
                under = max(relu - w.unit[ALPHA, 0, j] * z - w.unit[FALL, 0, j], 0.0)
                least = 0.01 * distance(
                    w.unit, j
                )  # a line that touches at the relaxed optimum loses elsewhere
                above, under = max(above, least), max(under, least)
            else:
                if not l < 0.0 < h:
                    continue
                relu, under = max(z, 0.0), 0.0
                above = max(h / (h - l) * (z - l) - relu, 0.0)
            total = 0.0
            for r in range(count):
                price = prices_[r] if priced else (1.0 if r == 0 else 0.0)
                if price > 0.0:
                    a = w.seen[0, r, k, j]
                    if a > 0.0:
                        total += price * a * above
                    elif a < 0.0:
                        total -= price * a * (under if curved else relu - w.seen[1, r, k, j] * z)
            w.unit[SCORE, k, j] = total / (h - l)
            every += total
            if total > best:
                best, kind, index = total, 1, k * n + j
    wanted = _halvings(p, w)
    if kind == 1 and unsure > max(FEW_OPEN, wanted):
        lost, i = _widest(p, w)
        signs = (1.0 + w.scalar[GAINED]) / (1.0 + w.scalar[PROMISED])
        levers = (1.0 + w.scalar[GAINED + 1]) / (1.0 + w.scalar[PROMISED + 1])
        w.scalar[PROMISE] = -best / every
        if i >= 0 and (wanted == 0.0 or levers * lost > signs * best):
            w.scalar[PROMISE] = lost / every
            return _of_lever(p, w, i)
    if kind == 1 and index < n and p.kind[index] != RELU:
        kind, index, value = _bent(p, w, index)
    for i in range(p.lever.shape[1]):
        s = start[i]
        if label_[i] > 0.0:
            main = s + int(point[i])
            if share[main] >= 1.0 - COARSE:
                continue
            loss = 0.0
            for c in range(s, start[i + 1]):
                loss += share[c] * abs(cost[c] - cost[main])
            moved = 0.0
            for r in range(count):
                v = 0.0
                for c in range(s, start[i + 1]):
                    v += share[c] * (rows_[r, c] - rows_[r, main])
                moved += prices_[r] * abs(v)
            total = max(loss, moved)
            if total > best or kind == 0:
                best, kind, index, value = max(total, best), 4, i, point[i]
            continue
        grid = p.lever[GRID, i]
        t = point[i]
        if p.lever[KNOTS, i] > 0.0 and mode_[i] != 2 and (mode_[i] == 0 or lo[i] < hi[i]):
            linear, top = p.lever[LINEAR, i] * abs(t) + p.lever[FIXED, i], p.lever[LARGEST, i] * abs(t)
            own, most = cost_of(p, i, t), top_of(p, i, t)
            total = max(own - linear, 0.0) + w.at[SHARES, i] * max(most - top, 0.0)
            cut = knot_inside(p, i, lo[i], hi[i], t)
            if not cut < INF:
                cut = _between(p, w, i)
            if total < LITTLE * (own + most):  # not what keeps the node open, unless nothing else does
                if total > max(last, COARSE * (own + most)):
                    last, last_lever, last_cut = total, i, cut
            elif total > best:
                best, kind, index, value = total, 2 if mode_[i] == 1 else 3, i, cut
        if grid > 0.0 and mode_[i] == 1 and lo[i] < hi[i]:
            part = (t - p.lever[SHIFT, i]) / grid
            part -= np.floor(part)
            part = min(part, 1.0 - part)
            if part > COARSE:
                moved = 0.0
                for r in range(count):
                    moved += prices_[r] * abs(rows_[r, s])
                total = moved * part * grid
                if total > best or kind == 0:
                    best, kind, index, value = max(total, best), 2, i, t
        elif mode_[i] == 0:
            l, h = min(lo[i], 0.0), max(hi[i], 0.0)
            total = 0.0
            if t != 0.0:
                far = h if t > 0.0 else -l
                total = fixed[i] * (1.0 - abs(t) / far) if far > 0.0 else fixed[i]
                if not lo[i] <= t <= hi[i]:
                    gap = min(abs(t), abs(t - (lo[i] if lo[i] > 0.0 else hi[i])))
                    for r in range(count):
                        total += prices_[r] * abs(rows_[r, s]) * gap
            if total > best or (kind == 0 and t != 0.0):
                best, kind, index = max(total, best), 3, i
    if kind != 1:
        w.scalar[PROMISE] = 0.0
    if kind != 0:
        return kind, index, value
    if last > 0.0:
        return 2 if mode_[last_lever] == 1 else 3, last_lever, last_cut
    # nothing is lost at the relaxed optimum: open units and levers that are not settled yet
    most = 0.0
    for k in range(layers):
        for j in range(widths[k]):
            l, h = zl[k, j], zh[k, j]
            if (k > 0 or p.kind[j] == RELU) and l < 0.0 < h and min(-l, h) > most:
                most, kind, index = min(-l, h), 1, k * n + j
    if kind == 0:
        for m in range(widths[0]):
            if p.kind[m] != RELU and is_open(w.unit, m) and distance(w.unit, m) > most:
                most, kind, index = distance(w.unit, m), 1, m
        if kind == 1:
            kind, index, value = _bent(p, w, index)
    if kind != 0:
        return kind, index, value
    for i in range(p.lever.shape[1]):
        if label_[i] > 0.0:
            left = 0
            for c in range(start[i], start[i + 1]):
                left += w.allowed[c] != 0
            if left > 1:
                return 4, i, point[i]
        elif mode_[i] == 0:
            return 3, i, 0.0
    for whole in (True, False):  # whole values first
        widest = 0.0
        for i in range(p.lever.shape[1]):
            if label_[i] > 0.0 or mode_[i] == 2 or (p.lever[GRID, i] > 0.0) != whole:
                continue
            width, middle = hi[i] - lo[i], 0.5 * (lo[i] + hi[i])
            if width > widest and lo[i] < middle < hi[i]:
                widest, kind, index, value = width, 2, i, middle
        if kind != 0:
            break
    return kind, index, value
