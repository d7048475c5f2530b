r"""The rows of a node's Lagrangian: lines above its units, the logit and what a problem states, rounding
included.

A row is a line over the columns with its constant; it is not negative at any feasible point of the node. The
line at hand is w.columns.line. Letters are those of :mod:`~milp_recourse.engine.networks.work`.
"""

from __future__ import annotations

from milp_recourse.engine.compiling import compiled
from milp_recourse.engine.networks import linear_bounds
from milp_recourse.engine.networks.elementary import RELU, curve, is_open, steepness
from milp_recourse.engine.networks.lever_arrays import ACTED
from milp_recourse.engine.networks.numerics import HUGE
from milp_recourse.engine.networks.work import add, cleared, copied, dot


@compiled
def _size_through_causes(p, unit, sizes, count):
    """The sum of absolute terms behind a form's causal units, the first ``count`` of them. Shape: sizes
    (M,)."""
    total = 0.0
    for m in range(count):
        v = abs(p.resting[m])
        if p.kind[m] != RELU:
            v += max(abs(unit.slope[0, m]), abs(unit.alpha[0, m])) * unit.size[0, m]
            fall = abs(unit.fall[0, m])
            # a fall of HUGE stands for a line so low that its rounding does not matter (a square's lines
            # touch it: there the slope's share is at least the fall)
            v += max(abs(unit.rise[0, m]), fall if fall < HUGE else 0.0)
        elif unit.high[0, m] > 0.0:
            v += unit.size[0, m] + max(-unit.low[0, m], 0.0)
        total += sizes[m] * v
    return total


@compiled
def sizes_direct(p, w, k, first, count):
    """Sums of absolute terms behind arguments ``first`` to ``count`` of layer k (0 or 1), into w.layer[0]."""
    size = w.layer[0]
    for j in range(first, count):
        size[j] = p.offset[1, k, j] + linear_bounds.sizes_over_box(p, w, p.first[1, k, j])
        size[j] += _size_through_causes(p, w.unit, p.caused[1, k, j], j if k == 0 else p.widths[0])


@compiled
def sizes_next(p, w, k):
    """Sums of absolute terms behind layer k >= 1 (the logit's for k = K + 1), likewise."""
    count = p.widths[k] if k < len(p.widths) else 1
    if k == 1:
        sizes_direct(p, w, 1, 0, count)
        return
    zl, zh, zs, size = w.unit.low[k - 1], w.unit.high[k - 1], w.unit.size[k - 1], w.layer[0]
    for i in range(count):
        size[i] = abs(p.biases[k - 1, i])
    for j in range(p.widths[k - 1]):
        if zh[j] > 0.0:
            v, weights = zs[j] + max(-zl[j], 0.0), p.turned[k - 1, j]
            for i in range(count):
                size[i] += abs(weights[i]) * v


@compiled
def unit_line(p, w, k, i, side):
    """A line above side * (argument i of layer k), k = K + 1 for the logit, into w.columns.line; its
    constant.

    ``w.unit.score`` gets the coefficient that every unit before had.
    """
    if k < 2:
        return form_line(p, w, p.first[0, k, i], p.caused[0, k, i], p.offset[0, k, i], side)
    coef, causes, line = w.layer[2], w.layer[1], w.columns.line
    cleared(line)
    cleared(w.layer[1:])
    cleared(w.unit.score[: k - 1])
    const = linear_bounds.add_argument(p, k, i, side, coef, line, causes)
    return linear_bounds.back(p, w.unit, k - 1, coef, const, line, causes)


@compiled
def argument_line(p, w, k, i, side, ahead):
    """As :func:`unit_line`, from layer 2 on number ``ahead`` of those put together at once; then scores are
    not kept."""
    if k < 2:
        return unit_line(p, w, k, i, side)
    line, causes, lines = w.columns.line, w.layer[1], w.ahead.lines
    for c in range(len(line)):
        line[c] = lines[c, ahead]
    for m in range(p.widths[0]):
        causes[m] = lines[len(line) + m, ahead]
    return linear_bounds.back_causes(p, w.unit, causes, w.ahead.const[ahead], line)


@compiled
def form_line(p, w, form, caused, const, side):
    """A line above side * (a form over levers and causal units), into w.columns.line; its constant. Shapes:
    form (P,), caused (M,)."""
    line, causes = w.columns.line, w.layer[1]
    cleared(line)
    for c in range(len(form)):
        line[c] = side * form[c]
    for m in range(len(caused)):
        causes[m] = side * caused[m]
    return linear_bounds.back_causes(p, w.unit, causes, side * const, line)


@compiled
def linearise(p, w):
    """The logit along the linear pieces, and the tangents to curves, of the point whose units' arguments are
    in w.unit.z: its gradient into w.columns.gradient, and its constant. The units' lines are these then."""
    unit = w.unit
    for k in range(len(p.widths)):
        for j in range(p.widths[k]):
            z, rest = unit.z[k, j], 0.0
            if k > 0:
                on = 1.0 if z > 0.0 else 0.0
            else:
                on = steepness(p.kind[j], z, p.edge[j])
                rest = curve(p.kind[j], z, p.edge[j]) - on * z
                unit.low[0, j], unit.high[0, j], unit.size[0, j] = 0.0, on, abs(z)
            unit.slope[k, j] = unit.alpha[k, j] = on
            unit.rise[k, j], unit.fall[k, j], unit.bent[k, j] = rest, rest, 0.0
    const = unit_line(p, w, len(p.widths), 0, 1.0)
    copied(w.columns.line, w.columns.gradient)
    return const


@compiled
def never_negative(p, w, const):
    """Whether the line in w.columns.line with this constant is nowhere negative in the box."""
    for c in range(len(w.columns.line)):
        w.columns.gain[c] = -w.columns.line[c]
    return const - linear_bounds.over_box(p, w, w.columns.gain) >= 0.0


@compiled
def keep_row(p, w, const, inside, count, layer, what):
    """Take w.columns.line + const >= 0 as row ``count``; False where nothing in the box meets it.

    Parameters
    ----------
    inside
        How far inside the convex problem's point is to stay.
    layer
        The units that the line was put together from lie in layers below this.
    what
        -1, -2, ... for lines above the logit; layer * width + unit of what was split on; the number of a row
        that the problem states, after all of these. w.row.kind gets it.
    """
    w.row.kind[count] = what
    copied(w.columns.line, w.rows[count])
    w.row.consts[count], w.row.inside[count] = const, inside
    cleared(w.row_coefficients[0, count])
    copied(w.unit.score, w.row_coefficients[0, count, :layer])
    copied(w.unit.alpha, w.row_coefficients[1, count])
    return not linear_bounds.over_box(p, w, w.columns.line) + const < 0.0


@compiled
def cut_by_row(p, w, r):
    """Cut the intervals of numeric levers that are acted on to what row ``r`` leaves of them where every
    other term is as large as it can be."""
    box, top = w.box, linear_bounds.over_box(p, w, w.rows[r]) + w.row.consts[r]
    for i in range(len(p.lever)):
        a, low, high = w.rows[r, p.start[i]], box[i].lo, box[i].hi
        if a == 0.0 or box[i].mode != ACTED or p.lever[i].label > 0.0:
            continue
        room = top / abs(a) * p.slacks.up
        room += (p.slacks.up - 1.0) * (room + abs(low) + abs(high)) + p.slacks.tiny
        if a > 0.0 and high - room > low:
            box[i].lo = high - room
        elif a < 0.0 and low + room < high:
            box[i].hi = low + room


@compiled
def stated_size(p, w, r):
    """The sum of absolute terms behind one of the problem's own rows."""
    size = linear_bounds.sizes_over_box(p, w, p.row[1, r]) + p.row_const[1, r]
    return size + _size_through_causes(p, w.unit, p.row_caused[1, r], p.widths[0])


@compiled
def stated_rows(p, w, count, curved_only):
    """The problem's own rows that the box does not imply; how many rows there are then, -1 - r where row r
    leaves nothing.

    Parameters
    ----------
    curved_only
        Whether to add the rows through curves only: with new lines these have changed, the others have not.
    """
    for r in range(p.row.shape[1]):
        wanted = not curved_only
        for m in range(p.widths[0]):
            wanted = wanted or (p.kind[m] != RELU and p.row_caused[0, r, m] != 0.0)
        if not wanted:
            continue
        slack = p.slacks.line * stated_size(p, w, r) + p.slacks.tiny
        const = form_line(p, w, p.row[0, r], p.row_caused[0, r], p.row_const[0, r], 1.0) + slack
        if not never_negative(p, w, const):
            what = len(w.unit.low) * w.unit.low.shape[1] + r
            if not keep_row(p, w, const, 4.0 * slack, count, 1, what):
                return -1 - count
            count += 1
    return count


@compiled
def residual_lines(p, w):
    """Lines above every residual of the ball and its negative, into w.tangent and w.ball.

    Returns
    -------
    int
        0 where the lines show that the whole box is in the ball, -1 where they show that nothing of it is,
        else 1.
    """
    most, least, slack = 0.0, 0.0, 0.0
    for f in range(len(p.noise)):
        if not in_ball(p, f):
            continue
        form, caused, noise, low, high = p.residual[0, f], p.residual_caused[0, f], p.noise[f], 0.0, 0.0
        rest = p.excess if is_linear(p, f) else 0.0
        size = linear_bounds.sizes_over_box(p, w, p.residual[1, f]) + abs(rest)
        size += _size_through_causes(p, w.unit, p.residual_caused[1, f], p.widths[0])
        w.ball.size[f] = size
        for side in range(2):
            const = (
                form_line(p, w, form, caused, rest, 1.0 - 2.0 * side) + p.slacks.line * size + p.slacks.tiny
            )
            w.ball.consts[side, f] = const
            copied(w.columns.line, w.tangent[side, f])
            for m in range(p.widths[0]):
                w.ball_coefficients[side, f, m] = w.unit.score[0, m]
            far = linear_bounds.over_box(p, w, w.columns.line) + const
            if side == 0:
                high = noise + far
            else:
                low = noise - far
        if is_linear(p, f):
            w.ball.room[f] = -low
            most += high
            least += low
            slack += 4.0 * size
        else:
            weight, near = p.precision[f], max(low, -high, 0.0)
            most += weight * (max(low * low, high * high) - noise**2)
            least += weight * (near * near - noise**2)
            slack += weight * (near + abs(noise) + size) ** 2
    if least > p.slacks.line * slack + p.slacks.tiny:
        return -1
    return 1 if most > 0.0 else 0


@compiled
def is_linear(p, f):
    """Whether a residual is the ball's linear part."""
    return p.bent and f == len(p.noise) - 1


@compiled
def in_ball(p, f):
    """Whether a residual is in the ball at all."""
    return p.precision[f] > 0.0 or is_linear(p, f)


@compiled
def touching(p, f, where):
    """Which line of a residual (0: above it, 1: above its negative) a tangent to the ball at value ``where``
    of its noise takes, and times what: (side, rate). Of the ball's linear part it takes the second, once,
    whatever the value."""
    if is_linear(p, f):
        return 1, 1.0
    return (1 if where > 0.0 else 0), 2.0 * p.precision[f] * abs(where)


@compiled
def ball_row(p, w, r, phat):
    r"""The tangent to the plausibility ball at residuals phat (F,), as row r with its constant, rounding
    included.

    For any phat, :math:`(n + \rho)^2 \ge 2 \hat p (n + \rho) - \hat p^2`, so the ball implies

    .. math:: \sum_f w_f \big( (\hat p_f - n_f)^2 - 2 \hat p_f \rho_f \big) \ge 0,

    where a residual is replaced by the line above :math:`-\hat p_f \rho_f`, and the ball's linear part L by
    the one above -L: a row that is valid in the node whatever phat is.
    """
    cleared(w.rows[r])
    const, size = 0.0, 0.0
    for f in range(len(p.noise)):
        if not in_ball(p, f):
            continue
        weight, n, touched = p.precision[f], p.noise[f], phat[f]
        side, rate = touching(p, f, touched)
        const += weight * (touched - n) * (touched - n) + rate * w.ball.consts[side, f]
        size += weight * (abs(touched) + abs(n)) ** 2 + rate * w.ball.size[f]
        add(w.rows[r], rate, w.tangent[side, f], w.rows.shape[1])
    w.row.consts[r] = const + p.slacks.line * size + p.slacks.tiny


@compiled
def ball_slack(p, w):
    """What rounding can do to the ball's value in a node, after :func:`residual_lines` drew its lines."""
    total = 0.0
    for f in range(len(p.noise)):
        size = w.ball.size[f]
        if is_linear(p, f):
            total += size
        elif p.precision[f] > 0.0:
            total += p.precision[f] * size * (2.0 * size + abs(p.noise[f]))
    return 8.0 * p.slacks.line * total + p.slacks.tiny


@compiled
def note_ball_coefficients(p, w, r):
    """Write every unit's coefficient in the ball's row r, and its lower slope, to w.row_coefficients.

    The coefficients of units that are not causal are 0.
    """
    cleared(w.row_coefficients[0, r])
    copied(w.unit.alpha, w.row_coefficients[1, r])
    for f in range(len(p.noise)):
        side, rate = touching(p, f, w.ball.best_phat[f])
        add(w.row_coefficients[0, r, 0], rate, w.ball_coefficients[side, f], p.widths[0])


@compiled
def relaxed_arguments(p, w):
    """Every unit's argument at the relaxed optimum, into w.unit.relaxed; w.columns.share, which holds the
    shares of labels, gets the numeric levers' coordinates."""
    for i in range(len(p.lever)):
        if not p.lever[i].label > 0.0:
            w.columns.share[p.start[i]] = w.points.relaxed[i]
        if len(w.columns.share) > p.start[-1]:
            w.columns.share[p.start[-1] + i] = abs(w.points.relaxed[i])
    linear_bounds.arguments(p, w, w.columns.share[: p.start[-1]], w.unit.relaxed, 0, True)


@compiled
def reached(w, r):
    """A row's value at the relaxed optimum, after :func:`relaxed_arguments`."""
    return w.row.consts[r] + dot(w.rows[r], w.columns.share, len(w.columns.line))


@compiled
def summed(rows, consts, multipliers, count, line, size):
    """Add up the rows times their multipliers, into ``line``, and the absolute terms, into ``size``; returns
    the sum's constant and the absolute terms behind it. Shapes: rows (rows, P), consts, multipliers (rows,),
    line, size (P,)."""
    total, slack = 0.0, 0.0
    cleared(line)
    cleared(size)
    for r in range(count):
        v = multipliers[r]
        if v > 0.0:
            total += v * consts[r]
            slack += v * abs(consts[r])
            for c in range(len(line)):
                line[c] += v * rows[r, c]
                size[c] += v * abs(rows[r, c])
    return total, slack


@compiled
def on_edge(p, w):
    """Whether no unit of the network is open, and the largest logit (row 0) is within rounding of what is
    needed."""
    top = linear_bounds.over_box(p, w, w.rows[0]) + w.row.consts[0]
    return top <= w.row.inside[0] and open_units(p, w.unit, 1) == 0


@compiled
def open_units(p, unit, first):
    """How many units are open from a layer on: ReLUs whose sign is, curves between two lines."""
    total = 0
    for k in range(first, len(p.widths)):
        for j in range(p.widths[k]):
            total += is_open(p, unit, k, j)
    return total
