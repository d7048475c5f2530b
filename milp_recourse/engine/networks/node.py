r"""Bounds one node, that is a box, signs of ReLUs and a configuration.

Steps of :func:`examine`: cut the box to what the target leaves; bound the argument of every open ReLU over
the box, the ball, and what costs at most the target; put a line above the logit; bound the least cost
subject to the lines by a Lagrangian; repeat with slopes that are tight at the relaxed optimum.

Letters are those of :mod:`~milp_recourse.engine.networks.work`.
"""

from __future__ import annotations

import math

from milp_recourse.engine.compiling import compiled
from milp_recourse.engine.networks import levers, linear_bounds, rows
from milp_recourse.engine.networks.bent_lines import bend, left_to_bend
from milp_recourse.engine.networks.elementary import LOG, RELU, draw_lines, is_open
from milp_recourse.engine.networks.interior import solve_node
from milp_recourse.engine.networks.layer_lines import layer_lines
from milp_recourse.engine.networks.lever_arrays import ACTED, IDLE
from milp_recourse.engine.networks.numerics import TINY
from milp_recourse.engine.networks.problem_arrays import MOST_LINES, MOST_ROWS
from milp_recourse.engine.networks.work import AHEAD, add, cleared, copied

INF = math.inf

EMPTY = INF, INF, 0, 0
"""What :func:`examine` returns for a node that holds nothing cheaper than the target."""


@compiled
def _within_ball(p, w, const, top, size):
    r"""An upper bound of the line in w.columns.line with its constant over what of the box is in the ball.

    Any multipliers v of the residuals give one,

    .. math:: g u \le \max_{u \in box} \Big(g - \sum_f v_f L_f\Big) u + \max_{ball} \sum_f v_f \rho_f,
        \qquad \max_{ball} v \rho = \sqrt{R \textstyle\sum_f v_f^2 / w_f} - v n, \quad R = \sum_f w_f n_f^2,

    L_f the residual's line from below where v_f > 0, from above where v_f < 0. From effects to causes, each
    v_f is chosen so that the lever whose noise the residual is drops out of the line; what is left of the
    line over the box is then small.

    Parameters
    ----------
    top
        The line's largest value over the box, constant included; it is returned where the ball gives no
        smaller one.
    size
        The sum of absolute terms behind the line.
    """
    rest = w.columns.gain
    copied(w.columns.line, rest)
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
        value += abs(rate) * w.ball.consts[side, f] - rate * noise
        add(rest, abs(rate), w.tangent[side, f], len(rest))
        spread += rate * rate / weight
        doubt += abs(rate) * (w.ball.size[f] + abs(noise))
    if p.bent:  # with a linear part L the radius is R - L
        radius += w.ball.room[last] + p.slacks.line * (radius + abs(w.ball.room[last]))
        if radius < 0.0:
            return -INF
    reach = math.sqrt(radius * spread) * (1.0 + p.slacks.line)
    value += reach + linear_bounds.over_box(p, w, rest) + p.slacks.line * (doubt + reach) + p.slacks.tiny
    return min(top, value)


@compiled
def contract_by_ball(p, w):
    """Cut the levers' intervals to what the ball allows; False where nothing is left."""
    box, line = w.box, w.columns.line
    for i in range(len(p.lever)):
        for f in range(len(p.noise) if box[i].mode != IDLE and p.lever[i].label == 0.0 else 0):
            if p.owner[f] != p.start[i] or p.precision[f] == 0.0:
                continue
            for side in (1.0, -1.0):
                cleared(line)
                line[p.owner[f]] = side
                top = _within_ball(p, w, 0.0, INF, max(abs(box[i].lo), abs(box[i].hi)))
                if side > 0.0:
                    box[i].hi = min(box[i].hi, top)
                else:
                    box[i].lo = max(box[i].lo, -top)
            if not levers.remains(box, i):
                return False
    return True


@compiled
def _bound_layers(p, w, budget):
    """Bounds of every open unit's argument.

    Returns
    -------
    (ball, paid)
        -1 where the node is empty, 1 where the ball cuts the box, else 0; what
        :func:`~milp_recourse.engine.networks.linear_bounds.within` asks for.
    """
    paid, ball = linear_bounds.least_paid(p, w), 0
    if not bound_layer(p, w, budget, paid, 0, 0, 0):
        return -1, paid
    if len(p.noise) > 0:
        ball = rows.residual_lines(p, w)
        if ball > 0 and not contract_by_ball(p, w):
            ball = -1
        if ball < 0:
            return -1, paid
        paid = linear_bounds.least_paid(p, w)
    # with an action in hand, a parent's cut (there is one if its constant is not 0) replaces the ball, whose
    # row it contains
    used = 0 if w.now.cut_const != 0.0 and w.now.best_cost < INF else ball
    for k in range(1, len(p.widths)):
        if not bound_layer(p, w, budget, paid, k, used, 0):
            return -1, paid
    return ball, paid


@compiled
def bound_layer(p, w, budget, paid, k, ball, digits):
    """Bounds of the open arguments of layer k, and its units' lines; False where the node is empty.

    Parameters
    ----------
    paid
        From :func:`~milp_recourse.engine.networks.linear_bounds.least_paid`.
    ball
        Whether to bound over the ball too: positive, else 0.
    digits
        Of the thetas that w.unit.theta_high and w.unit.theta_low get, 0 for all.
    """
    unit, size, count, lines = w.unit, w.layer[0], 0, 0
    if k > 0:
        rows.sizes_next(p, w, k)
    for j in range(p.widths[k]):
        if k == 0:  # a causal unit's size needs the bounds of those before it
            rows.sizes_direct(p, w, 0, j, j + 1)
        unit.size[k, j] = size[j]
        if (k == 0 and p.kind[j] != RELU) or unit.low[k, j] < 0.0 < unit.high[k, j]:
            if k > 1 and lines % AHEAD == 0:
                layer_lines(p, w, k, j)
            count = _lines_of(p, w, k, j, ball, count, lines % AHEAD)
            lines += 2
        if k == 0 or j + 1 == p.widths[k]:
            _bound_by_lines(p, w, budget, paid, k, count, digits)
            count = 0
            for i in range(j if k == 0 else 0, j + 1):
                if k == 0 and p.kind[i] == LOG:
                    # below the edge the density is 0, or too small to be plausible
                    least = p.edge[i] if unit.high[0, i] > 2.0 * p.edge[i] else TINY
                    unit.low[0, i] = max(unit.low[0, i], least)
                if unit.low[k, i] > unit.high[k, i]:
                    return False
                linear_bounds.relax(p, unit, k, i)
                if w.now.spare > 0.0 and unit.low[k, i] < 0.0 < unit.high[k, i]:
                    bend(p, w, k, i)
    return True


@compiled
def _lines_of(p, w, k, j, ball, count, ahead):
    """Bounds of one argument over the box and the ball (if ``ball`` is positive), from layer 2 on by two of
    the lines that are put together at once, from number ``ahead`` on. Its lines that the budget
    may bound further follow the first ``count`` ones of w.lines; returns how many there are then."""
    zl, zh, size, line = w.unit.low[k], w.unit.high[k], w.unit.size[k, j], w.columns.line
    slack, curved = p.slacks.line * size + p.slacks.tiny, k == 0 and p.kind[j] != RELU
    for side in (1.0, -1.0):
        const = rows.argument_line(p, w, k, j, side, ahead if side > 0.0 else ahead + 1) + slack
        if side > 0.0 and w.now.spare > 0.0:
            copied(line, w.unit.upper[k, j])
            w.unit.base[k, j] = const
        top = linear_bounds.over_box(p, w, line) + const
        if top > 0.0 and ball > 0:
            top = _within_ball(p, w, const, top, size)
        if top > 0.0 or curved:
            linear_bounds.keep_line(w, count, j, side, const, top, size)
            count += 1
        elif side > 0.0:
            zh[j] = min(zh[j], top)
        else:
            zl[j] = max(zl[j], -top)
    return count


@compiled
def _bound_by_lines(p, w, budget, paid, k, count, digits):
    """Bounds of the arguments whose lines are in w.lines, over what the budget pays for."""
    zl, zh, lines = w.unit.low[k], w.unit.high[k], w.lines
    linear_bounds.within(p, w, count, budget, paid, digits)
    for m in range(count):
        j, above = int(lines.unit[m]), lines.side[m] > 0.0
        bound, theta = lines.bound[m], lines.theta[m]
        if above:
            zh[j], w.unit.theta_high[k, j] = min(zh[j], bound), theta
        elif zh[j] > 0.0 or k == 0:  # a neuron that is off needs no lower end
            zl[j], w.unit.theta_low[k, j] = max(zl[j], -bound), theta


@compiled
def examine(p, w, target, lines, steps):
    """Bound the node in w.box, w.allowed, w.unit.low, w.unit.high (which get tighter) and w.unit.split.

    The cut that it inherits is in w.columns.cut, w.now.cut_const and w.points.cut_shares, zeros for none.
    Costs are those of the levers' values, without ``p.base``. In p, the rows of ``lever`` that bound costs
    with knots become those of the node.

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
    (bound, last, rows, open)
        The proven bound (inf: nothing feasible here costs less than the target); the bound that the last
        multipliers, w.row.multipliers, prove; how many rows these weigh; the number of open units. The
        relaxed optimum is in w.points.relaxed.
    """
    levers.relevel(p, w.box)
    if not levers.contract(p, w, w.box, w.allowed, target):
        return EMPTY
    levers.relevel(p, w.box)
    w.now.spare = left_to_bend(p, w, target)
    ball_cuts, paid = _bound_layers(p, w, target)
    if ball_cuts < 0:
        return EMPTY
    unsure = rows.open_units(p, w.unit, 0)
    rows.sizes_next(p, w, len(p.widths))
    size = w.layer[0, 0] + abs(p.need_low)
    slack = p.slacks.line * size + p.slacks.tiny
    count, ball = first_rows(p, w, slack, ball_cuts)
    if count < 0:
        return EMPTY
    note_room(p, w, size, target, paid)
    if w.now.room < 0.0:  # what costs less than the target has too low a logit
        return EMPTY
    bound, value, solved = -INF, -INF, count
    for turn in range(lines):
        solved = count
        value = solve_node(p, w, count, ball, target, w.points.relaxed, w.points.choice, steps, unsure == 0)
        bound = max(bound, value)
        if bound >= target or turn + 1 == lines or unsure == 0:
            break
        rows.relaxed_arguments(p, w)
        if not tighter(p, w, 0):
            break
        count, cut_off = _rows_again(p, w, slack, count, ball, turn + 1)
        if count < 0:
            return EMPTY
        if not cut_off:
            break
    if ball >= 0:
        rows.note_ball_coefficients(p, w, ball)
    return max(bound, 0.0), value, solved, unsure


@compiled
def first_rows(p, w, slack, ball_cuts):
    """The rows of a node: a line above the logit, signs and intervals split on, the problem's own, and a
    place for the ball's if it cuts the box.

    Parameters
    ----------
    slack
        The rounding slack of the logit's line.
    ball_cuts
        Whether the ball cuts the box: 1, else 0.

    Returns
    -------
    (count, ball)
        Of rows, -1 - r where row r leaves nothing; the ball's number, or -1.
    """
    if not logit_row(p, w, slack, 0, 0):
        return -1, -1
    count, ball = _split_rows(p, w), -1
    if count >= 0:
        count = rows.stated_rows(p, w, count, False)
    if count >= 0 and ball_cuts > 0:
        ball, count = count, count + 1
        w.row.inside[ball], w.row.consts[ball] = rows.ball_slack(p, w), 0.0
        cleared(w.rows[ball])
    return count, ball


@compiled
def note_room(p, w, size, budget, paid):
    """Note how far above what it must be the logit's line, row 0, reaches in the node within the budget:
    splits are to take that away (:func:`~milp_recourse.engine.networks.splitting.learn`)."""
    copied(w.rows[0], w.columns.line)
    top = linear_bounds.over_box(p, w, w.columns.line) + w.row.consts[0]
    linear_bounds.keep_line(w, 0, 0, 1.0, w.row.consts[0], top, size)
    linear_bounds.within(p, w, 1, budget, paid, 0)
    w.now.room = w.lines.bound[0]


@compiled
def logit_row(p, w, slack, count, turn):
    """The logit's line as row ``count``, the line number ``turn`` of the node; False where it is nowhere high
    enough."""
    const = rows.unit_line(p, w, len(p.widths), 0, 1.0) - p.need_low + slack
    return rows.keep_row(p, w, const, 8.0 * slack, count, len(p.widths), -1 - turn)


@compiled
def _split_rows(p, w):
    """Rows for the signs and the intervals of arguments that were split on, from row 1 on; how many rows
    there are then, -1 - r where row r leaves nothing."""
    unit, count, room = w.unit, 1, MOST_ROWS - MOST_LINES
    for k in range(len(p.widths)):
        for j in range(p.widths[k]):
            slack, curved = p.slacks.line * unit.size[k, j] + p.slacks.tiny, k == 0 and p.kind[j] != RELU
            for side in (1.0, -1.0):
                if int(unit.split[k, j]) & (1 if side > 0.0 else 2) == 0 or count >= room:
                    continue
                const = rows.unit_line(p, w, k, j, side) + slack
                if curved:  # inside the ends of the argument's interval
                    const -= unit.low[k, j] if side > 0.0 else -unit.high[k, j]
                if rows.never_negative(p, w, const):
                    continue
                if not rows.keep_row(p, w, const, 2.0 * slack, count, max(k, 1), k * unit.low.shape[1] + j):
                    return -1 - count
                if curved:  # curves and the ball are bounded over the box alone
                    rows.cut_by_row(p, w, count)
                count += 1
    return count


@compiled
def tighter(p, w, first):
    """Choose lower slopes of ReLUs, from a first layer on, that are tight at the relaxed optimum, and draw
    curves' lines there; whether that changes any."""
    changed, unit = False, w.unit
    for k in range(first, len(p.widths)):
        for j in range(p.widths[k]):
            z, before = unit.relaxed[k, j], unit.alpha[k, j]
            if not is_open(p, unit, k, j):
                continue
            if k == 0 and p.kind[j] != RELU:
                changed = True
                draw_lines(unit, j, p.kind[j], p.edge[j], z)
            else:
                unit.alpha[k, j] = 1.0 if z > 0.0 else 0.0
                changed = changed or before != unit.alpha[k, j]
    return changed


@compiled
def _rows_again(p, w, slack, count, ball, turn):
    """More rows with the lines at hand: the logit's, and with causal units those through curves and the
    ball's lines.

    Returns
    -------
    (count, cut off)
        Of rows, -1 where nothing is left; whether they cut off the relaxed optimum.
    """
    if not logit_row(p, w, slack, count, turn):
        return -1, True
    cut_off = rows.reached(w, count) < 0.0
    count += cut_off
    if p.widths[0] > 0:
        before = count
        count = rows.stated_rows(p, w, count, True)
        if count < 0 or (ball >= 0 and rows.residual_lines(p, w) < 0):
            return -1, True
        cut_off = cut_off or ball >= 0
        for r in range(before, count):
            cut_off = cut_off or rows.reached(w, r) < 0.0
    return count, cut_off


@compiled
def take_cut(p, w, count):
    """The rows summed with the last multipliers, a valid cut for children: cut u + constant >= 0."""
    multipliers, cut = w.row.multipliers, w.columns.cut
    total, slack = rows.summed(w.rows, w.row.consts, multipliers, count, cut, w.columns.size)
    slack += linear_bounds.sizes_over_box(p, w, w.columns.size)
    w.now.cut_const = total + p.slacks.dual * slack + p.slacks.tiny
    copied(w.points.shares, w.points.cut_shares)


@compiled
def tighten(p, w, bound, target):
    """Cut off of each lever what the Lagrangian with the last multipliers (:func:`take_cut`) shows to cost at
    least the target.

    At any value of a lever, the cost is at least the bound plus what the lever's term of the Lagrangian there
    exceeds the term's minimum by.
    """
    spare = (target - bound) + p.slacks.dual * (abs(target) + abs(bound))
    if not (target < INF and spare >= 0.0):
        return
    box, gain, size, allowed = w.box, w.columns.cut, w.columns.size, w.allowed
    for i in range(len(p.lever)):
        lever = p.lever[i]
        share, choice = w.points.shares[i], w.points.choice
        least, s = levers.respond(p, box, allowed, i, gain, 1.0, share, choice), p.start[i]
        least += spare + p.slacks.tiny
        room = least + 2.0 * p.slacks.dual * levers.absolute(p, box, allowed, i, share, size)
        if lever.label > 0.0:
            for j in range(s, p.start[i + 1]):
                if p.column[j].cost + share * p.column[j].top - gain[j] > room:
                    allowed[j] = 0
        elif box[i].mode == ACTED:
            room -= lever.fixed + share * lever.least
            # the least value is the one in the bound, at whole values only
            low = _last_paid(p, w, i, -1.0, choice[i], room)
            box[i].hi = _last_paid(p, w, i, 1.0, choice[i], room)
            box[i].lo = low


@compiled
def _last_paid(p, w, i, side, t, room):
    """From t towards an end, on its side of 0 if the cut has a kink there, the farthest coordinate at which a
    lever's term is at most ``room``, rounded outward."""
    lever, kink = p.lever[i], levers.kink_of(p, w.columns.cut, i)
    low, high, sign = levers.part(w.box, i, side, kink)
    linear, square, fall = lever.linear + w.points.shares[i] * lever.largest, lever.square, lever.down
    gain, end = w.columns.cut[p.start[i]] + sign * kink, high if side > 0.0 else low
    if not low <= t <= high:  # it is on the other side of 0
        t = levers.least_at(linear, square, fall, gain, low, high)
        if levers.term(linear, square, fall, gain, t) > room:
            return 0.0
    if end == t or levers.term(linear, square, fall, gain, end) <= room:
        return end
    for _ in range(20):
        middle = 0.5 * (t + end)
        if levers.term(linear, square, fall, gain, middle) <= room:
            t = middle
        else:
            end = middle
    return end
