r"""The convex problem of a node: a primal-dual interior-point method whose multipliers prove the bound.

.. math:: \min \sum_j q_j y_j^2 + c_j y_j \quad s.t. \quad A y + b \ge 0,\; 0 \le y \le 1

The variables y are the changes of numeric levers (two variables where the cost bends at zero), the shares of
labels in a convex combination, and the cost's maximum. Where plausibility is asked for, y is also subject to
the ball

.. math:: \sum_f w_f \big(p_f(y)^2 - n_f^2\big) \le 0,

where two lines enclose the noise :math:`n_f + \rho_f` and p_f is what is nearest to zero between them. With
noise that is not normal, a line below the linear part of the energy is added on the left. (The ball's row in
the proof is that of :func:`~milp_recourse.engine.networks.rows.ball_row`.) The method only guesses
multipliers: the bound is computed from them by :func:`dual_value` in closed form. Its steps are those of
Mehrotra (1992, https://doi.org/10.1137/0802028).

Letters are those of :mod:`~milp_recourse.engine.networks.work`.
"""

from __future__ import annotations

import math

from milp_recourse.engine.compiling import compiled
from milp_recourse.engine.networks.lever_arrays import EITHER, IDLE
from milp_recourse.engine.networks.levers import absolute, kink_of, respond, times, top_of
from milp_recourse.engine.networks.numerics import CLOSE, FINE, HUGE, PIVOT, ROUNDOFF
from milp_recourse.engine.networks.rows import ball_row, in_ball, is_linear, summed, touching
from milp_recourse.engine.networks.work import add, cleared, copied, dot

INF = math.inf

NEAR = 2.0**-6
"""The method stops early if the bound can rise, and has just risen, by less than this share of what it still
misses the target by, and of itself."""


@compiled
def dual_value(p, w, rows, consts, count, multipliers, shares, choice):
    r"""The Lagrangian bound of the cost in w's node, rounding included; w.columns.gain gets the rows' sum.

    .. math:: D = \sum_i \min_{u_i \in X_i} \Big(c_i(u_i) + \mu_i top_i(u_i) - \sum_r \lambda_r G_{ri}
    u_i\Big)
              - \sum_r \lambda_r g_r

    for rows :math:`G_r u + g_r \ge 0`, any multipliers lambda >= 0 and shares mu >= 0 with sum at most one.

    Parameters
    ----------
    rows
        The lines, of which the first ``count`` are taken, (rows, P).
    consts, multipliers
        Of each row, (rows,).
    shares
        Of each lever in the maximum, (d,).
    choice
        Gets the minimiser, (d,).

    Returns
    -------
    float
        inf where nothing is left of a lever, -inf where multipliers are so large that products could
        overflow.
    """
    gain, size = w.columns.gain, w.columns.size
    total, slack = summed(rows, consts, multipliers, count, gain, size)
    for c in range(len(size)):  # a product that overflows is no number, and would read as "nothing is left"
        if not size[c] < HUGE:
            return -INF
    value = -total
    for i in range(len(p.lever)):
        v = respond(p, w.box, w.allowed, i, gain, 1.0, shares[i], choice)
        if v == INF:
            return INF
        value += v
        slack += absolute(p, w.box, w.allowed, i, shares[i], size)
    value -= p.slacks.dual * slack + p.slacks.tiny
    return -INF if math.isnan(value) else value


@compiled
def _factor(m, k):
    """Replace the lower triangle of a matrix, the first k rows and columns of m (size, size), by its Cholesky
    factor, whose diagonal is inverted.

    A pivot that vanishes is made so large that its unknown becomes about zero.
    """
    for j in range(k):
        row = m[j]
        v = row[j] - dot(row, row, j)
        if not v > row[j] * PIVOT:
            v = max(row[j], 1.0) / ROUNDOFF
        inverse = 1.0 / math.sqrt(v)
        row[j] = inverse
        for i in range(j + 1, k):
            m[i, j] = (m[i, j] - dot(m[i], row, j)) * inverse


@compiled
def _solve(m, k, x):
    """Solve the system that :func:`_factor` factored in m (size, size); x (k or more,) holds the right side
    and gets the solution."""
    for i in range(k):
        x[i] = (x[i] - dot(m[i], x, i)) * m[i, i]
    for i in range(k - 1, -1, -1):
        x[i] *= m[i, i]
        add(x, -x[i], m[i], i)


@compiled
def _variables(p, w, point):
    """Write the variables y of the box in w: their columns, steps, costs and what they add to their lever's
    entry in the maximum. ``point`` gets the point at which all are zero. Shape: point (d,).

    A step is what a coordinate changes by as y goes from 0 to 1; a label's is 1. The last variable is the
    maximum, if it costs anything: its column is -2, and its step is more than it can be.

    Returns
    -------
    (number, scale, quadratic)
        How many variables there are; the largest cost of one, by which all costs are divided; whether any
        cost is quadratic.
    """
    m, own, far, quadratic = 0, 0.0, 0.0, False
    for i in range(len(p.lever)):
        label = p.lever[i].label > 0.0
        m = _labels(p, w, i, point, m) if label else _intervals(p, w, i, point, m)
        own = max(own, top_of(p, i, point[i]))
    q, c, tops = w.variables.q, w.variables.c, w.variables.tops
    for j in range(m):
        far = max(far, abs(tops[j]))
    if own + far > 0.0:
        far = 2.0 * (own + far)
        m = _variable(w, m, -2, -1, far, 0.0, far, 0.0)
    scale = 0.0
    for j in range(m):
        scale = max(scale, abs(c[j]) + q[j])
    scale = scale if scale > 0.0 else 1.0
    for j in range(m):
        c[j], q[j] = c[j] / scale, q[j] / scale
        quadratic = quadratic or q[j] > 0.0
    return m, scale, quadratic


@compiled
def _variable(w, m, column, lever, step, q, c, top):
    """Write variable m: its column and lever, its step, its costs, and what it adds to the lever's entry in
    the maximum; returns how many variables there are then."""
    w.variables.column[m], w.variables.lever[m], w.variables.step[m] = column, lever, step
    w.variables.q[m], w.variables.c[m], w.variables.tops[m] = q, c, top
    return m + 1


@compiled
def _labels(p, w, i, point, m):
    """Write a variable for each allowed label but the cheapest, from number m on; returns how many variables
    there are then. ``point`` gets the cheapest label. Shape: point (d,)."""
    least = respond(p, w.box, w.allowed, i, w.columns.zeros, 1.0, 0.0, point)
    cheapest, top = p.start[i] + int(point[i]), top_of(p, i, point[i])
    for c in range(p.start[i], p.start[i + 1]):
        if w.allowed[c] != 0 and c != cheapest:
            m = _variable(w, m, c, i, 1.0, 0.0, p.column[c].cost - least, p.column[c].top - top)
    return m


@compiled
def _intervals(p, w, i, point, m):
    """Write a variable for a numeric lever's way from its start to each end of its interval, from number m
    on; returns how many variables there are then. ``point`` gets the start: zero where the cost bends there,
    else an end. Shape: point (d,)."""
    lever = p.lever[i]
    point[i] = 0.0
    if w.box[i].mode == IDLE:
        return m
    l, h, fixed, column = w.box[i].lo, w.box[i].hi, 0.0, p.start[i]
    if w.box[i].mode == EITHER:
        l, h, fixed = min(l, 0.0), max(h, 0.0), lever.fixed
    linear, square, top = lever.linear, lever.square, lever.largest
    fall = lever.down
    bent = l < 0.0 < h and (linear > 0.0 or fixed > 0.0 or top > 0.0 or (square > 0.0 and fall != 1.0))
    start = 0.0 if bent else l if h > 0.0 else h
    point[i] = start
    for side in (1.0, -1.0):
        step = (h if side > 0.0 else l) - start
        far = abs(step)
        if side < 0.0:
            linear, square, top = linear * fall, square * fall * fall, top * fall
        if far > 0.0:
            paid = linear * far + 2.0 * square * start * step + fixed
            entry = top * (abs(start + step) - abs(start))
            m = _variable(w, m, column, i, step, square * far * far, paid, entry)
    return m


@compiled
def _along(p, w, line, point, j):
    """By how much a line changes as variable j goes from 0 to 1. Shapes: line (P,), point (d,)."""
    c, i = w.variables.column[j], w.variables.lever[j]
    if c < 0:
        return 0.0
    if p.lever[i].label > 0.0:
        return line[c] - line[p.start[i] + int(point[i])]
    step = w.variables.step[j]
    return line[c] * step + kink_of(p, line, i) * (abs(point[i] + step) - abs(point[i]))


@compiled
def _rows(p, w, count, ball, m, point):
    """Write the convex problem's rows to w.a: the node's (without the ball's), one for each lever with
    several labels, and one for each lever that the cost's maximum covers; returns their number. Shape: point
    (d,)."""
    a, column, lever, tops, d = w.a, w.variables.column, w.variables.lever, w.variables.tops, len(p.lever)
    k = 0
    for r in range(count):
        if r == ball:
            continue
        largest = 0.0
        for j in range(m):
            a[k, j] = _along(p, w, w.rows[r], point, j)
            largest = max(largest, abs(a[k, j]))
        if largest > 0.0:
            const = w.row.consts[r] - w.row.inside[r] + times(p, w.rows[r], point)
            k = _taken(w, k, m, r, const, largest)
    for i in range(d):  # shares of labels sum to one
        n = 0
        for j in range(m if p.lever[i].label > 0.0 else 0):
            a[k, j] = -1.0 if lever[j] == i else 0.0
            n += lever[j] == i
        if n > 1:
            k = _taken(w, k, m, -1, 1.0, 1.0)
    if m == 0 or column[m - 1] != -2:
        return k
    for i in range(d):  # each lever's entry is at most the maximum
        own = top_of(p, i, point[i])
        some = own > 0.0
        for j in range(m):
            a[k, j] = -tops[j] if lever[j] == i else 0.0
            some = some or a[k, j] != 0.0
        if some:
            a[k, m - 1] = far = w.variables.step[m - 1]
            k = _taken(w, k, m, -2 - i, -own, far)
    return k


@compiled
def _taken(w, k, m, what, const, unit):
    """Make w.a[k] with its constant a row of the convex problem, both divided by ``unit``; returns how many
    rows there are then. ``what``: which row of the node it is, -1 for labels' shares, -2 - i for lever i's
    entry in the maximum."""
    for j in range(m):
        w.a[k, j] /= unit
    w.convex_rows.b[k], w.convex_rows.scale[k], w.convex_rows.stands_for[k] = const / unit, unit, what
    return k + 1


# -- the ball ---------------------------------------------------------------------------------


@compiled
def _ball_lines(p, w, m, point):
    """Write the residuals' lines over the variables y; returns what the ball's row is divided by, 0 where no
    variable moves the ball. Shape: point (d,)."""
    far = 0.0
    for f in range(len(p.noise)):
        if not in_ball(p, f):
            continue
        reach = 0.0
        for side in range(2):
            line = w.tangent[side, f]
            w.ball.rest[side, f] = w.ball.consts[side, f] + times(p, line, point)
            for j in range(m):
                w.pull[side, f, j] = v = _along(p, w, line, point, j)
                reach = max(reach, abs(v))
        linear = is_linear(p, f)
        far += 2.0 * p.precision[f] * reach * (abs(p.noise[f]) + reach) + (reach if linear else 0.0)
    return far


@compiled
def _ball_at(p, w, m, k, scale, inside):
    """Write the ball at the iterate as row k: minus its gradient over ``scale``, and a constant such that the
    row's value is minus the ball's. ``inside`` is added to the ball; w.ball.phat gets the residuals.

    Its second derivatives become rows k + 1, k + 2, ... of w.a, with their weights in w.convex_rows.weight;
    returns the number of all rows.
    """
    y, row, total, every = w.pair.slack, w.a[k, :m], inside, k + 1
    multiplier = w.pair.multiplier[2 * m + k] / scale
    cleared(row)
    for f in range(len(p.noise)):
        n, phat = p.noise[f], 0.0
        if in_ball(p, f):
            above = w.ball.rest[0, f] + dot(w.pull[0, f], y, m)
            below = w.ball.rest[1, f] + dot(w.pull[1, f], y, m)
            if is_linear(p, f):
                total -= below
            else:
                phat = n - below if n - below > 0.0 else min(n + above, 0.0)
                total += p.precision[f] * (phat - n) * (phat + n)
            side, rate = touching(p, f, phat)
            add(row, rate / scale, w.pull[side, f], m)
            if phat != 0.0 and multiplier > 0.0:
                copied(w.pull[side, f], w.a[every, :m])
                w.convex_rows.weight[every] = 2.0 * p.precision[f] * multiplier
                every += 1
        w.ball.phat[f] = phat
    w.convex_rows.b[k] = -total / scale - dot(row, y, m)
    return every


# -- Newton's step ----------------------------------------------------------------------------
# Every inequality is a pair of a slack and its multiplier, w.pair: first y >= 0, then 1 - y >= 0, then rows.


@compiled
def _factored(w, m, k, every):
    r"""Write the matrix of a Newton step, factored, to w.m: in the variables or in the rows, whichever are
    fewer,

    .. math:: \Theta^{-1} + A^T W A \quad or \quad A \Theta A^T + W^{-1},

    with W = Lambda / S. Rows k to ``every`` are the ball's curvature, whose part of W is in
    w.convex_rows.weight."""
    a, matrix, weight, first, scaled = w.a, w.m, w.convex_rows.weight, 2 * m, w.variables.scaled
    s, lam, theta, inverse = w.pair.slack, w.pair.multiplier, w.variables.theta, w.pair.inverse
    for i in range(2 * m + k):
        inverse[i] = 1.0 / s[i]
    for j in range(m):
        theta[j] = 1.0 / (2.0 * w.variables.q[j] + lam[j] * inverse[j] + lam[m + j] * inverse[m + j])
    for r in range(k):
        weight[r] = lam[first + r] * inverse[first + r]
    if m < every:
        for j in range(m):
            for t in range(j):
                matrix[j, t] = 0.0
            matrix[j, j] = 1.0 / theta[j]
        for r in range(every):
            for j in range(m):
                add(matrix[j], weight[r] * a[r, j], a[r], j + 1)
    for r in range(every if m >= every else 0):
        for j in range(m):
            scaled[j] = a[r, j] * theta[j]
        for t in range(r + 1):
            matrix[r, t] = dot(scaled, a[t], m)
        matrix[r, r] += 1.0 / weight[r]
    _factor(matrix, min(m, every))


@compiled
def _direction(w, m, k, every, target, corrected):
    """A Newton step towards complementarity ``target``, into w.pair.slack_step and w.pair.multiplier_step; if
    ``corrected``, with Mehrotra's correction from the step that is there."""
    pair, variables = w.pair, w.variables
    s, lam, ds, dl, rest = pair.slack, pair.multiplier, pair.slack_step, pair.multiplier_step, pair.rest
    inverse = pair.inverse
    for i in range(2 * m + k):
        rest[i] = -s[i] * lam[i]
        if corrected:
            rest[i] += target - ds[i] * dl[i]
    for j in range(m):
        variables.h[j] = rest[j] * inverse[j] - rest[m + j] * inverse[m + j] - variables.rd[j]
    _step(w, m, k, every)
    for j in range(m):
        ds[m + j] = -ds[j]
    for i in range(2 * m):
        dl[i] = (rest[i] - lam[i] * ds[i]) * inverse[i]


@compiled
def _step(w, m, k, every):
    """The step of the variables and of the rows' slacks and multipliers, from :func:`_factored`'s matrix."""
    pair, a, first, dy, rp = w.pair, w.a, 2 * m, w.pair.slack_step, w.convex_rows.rp
    s, lam, rest = pair.slack[first:], pair.multiplier[first:], pair.rest[first:]
    inverse = pair.inverse[first:]
    ds, dl, x, theta = (
        pair.slack_step[first:],
        pair.multiplier_step[first:],
        w.convex_rows.x,
        w.variables.theta,
    )
    for j in range(m):
        dy[j] = w.variables.h[j]
    if m < every:
        for r in range(k):
            add(dy, (rest[r] - lam[r] * rp[r]) * inverse[r], a[r], m)
        _solve(w.m, m, dy)
        for r in range(k):
            ds[r] = rp[r] + dot(a[r], dy, m)
            dl[r] = (rest[r] - lam[r] * ds[r]) * inverse[r]
        return
    for j in range(m):
        w.variables.scaled[j] = theta[j] * dy[j]
    for r in range(every):
        x[r] = (rest[r] / lam[r] - rp[r] if r < k else 0.0) - dot(a[r], w.variables.scaled, m)
    _solve(w.m, every, x)
    for r in range(every):
        add(dy, x[r], a[r], m)
    for j in range(m):
        dy[j] *= theta[j]
    for r in range(k):
        dl[r], ds[r] = x[r], (rest[r] - s[r] * x[r]) / lam[r]


@compiled
def _lengths(pair, n):
    """The largest step lengths, at most 1, with which no slack and no multiplier becomes negative."""
    inverse, lam, ds, dl = pair.inverse, pair.multiplier, pair.slack_step, pair.multiplier_step
    primal, dual = 1.0, 1.0
    for i in range(n):
        primal, dual = max(primal, -ds[i] * inverse[i]), max(dual, -dl[i] / lam[i])
    return 1.0 / primal, 1.0 / dual


@compiled
def _centring(pair, n, mu, primal, dual):
    """Mehrotra's choice of how much to centre, from where the uncorrected step leads."""
    s, lam, ds, dl = pair.slack, pair.multiplier, pair.slack_step, pair.multiplier_step
    after = 0.0
    for i in range(n):
        after += (s[i] + primal * ds[i]) * (lam[i] + dual * dl[i])
    return min(max((after / (n * mu)) ** 3, 0.0), 1.0) if mu > 0.0 else 0.0


@compiled
def _move(pair, n, primal, dual):
    """Take the step; False where rounding has left the interior."""
    s, lam, ds, dl = pair.slack, pair.multiplier, pair.slack_step, pair.multiplier_step
    good = True
    for i in range(n):
        s[i] += primal * ds[i]
        lam[i] += dual * dl[i]
        good = good and s[i] > 0.0 and lam[i] > 0.0
    return good


@compiled
def _residuals(w, m, k):
    """Residuals of the optimality conditions; the mean complementarity."""
    s, lam, rd, mu = w.pair.slack, w.pair.multiplier, w.variables.rd, 0.0
    for j in range(m):
        rd[j] = 2.0 * w.variables.q[j] * s[j] + w.variables.c[j] - lam[j] + lam[m + j]
    for r in range(k):
        w.convex_rows.rp[r] = w.convex_rows.b[r] - s[2 * m + r] + dot(w.a[r], s, m)
        add(rd, -lam[2 * m + r], w.a[r], m)
    for i in range(2 * m + k):
        mu += s[i] * lam[i]
    return mu / (2 * m + k)


@compiled
def _begin(p, w, m, k, ball_scale):
    """The first iterate: in the middle of the box, with multipliers and slacks of rows of at least 1."""
    s, lam = w.pair.slack, w.pair.multiplier
    for i in range(2 * m + k):
        s[i], lam[i] = 0.5 if i < 2 * m else 0.0, 1.0
    if ball_scale > 0.0:
        _ball_at(p, w, m, k - 1, ball_scale, 0.0)
    _residuals(w, m, k)
    for r in range(k):
        s[2 * m + r] = max(1.0, abs(w.convex_rows.rp[r]))


@compiled
def _on_trial(p, w, m, k, scale):
    """Turn the iterate's multipliers into those of the node's rows, w.row.try_multipliers, and into shares
    of the maximum, w.points.try_shares, for the proof."""
    multipliers, shares, lam = w.row.try_multipliers, w.points.try_shares, w.pair.multiplier
    cleared(multipliers)
    whole = 0.0
    for r in range(k):
        row, multiplier = w.convex_rows.stands_for[r], lam[2 * m + r] * scale / w.convex_rows.scale[r]
        if row >= 0:
            multipliers[row] = multiplier
        elif row <= -2:
            shares[-2 - row] = multiplier
            whole += multiplier
    if whole > 1.0:
        for i in range(len(shares)):
            shares[i] /= whole * p.slacks.up


@compiled
def _relaxed_optimum(p, w, m, point):
    """Turn the variables into a point: a coordinate for a numeric lever, else the label with the largest
    share. w.columns.share gets the shares. Shape: point (d,)."""
    y, share, start = w.pair.slack, w.columns.share, p.start
    cleared(share)
    for j in range(m):
        c, i, part = w.variables.column[j], w.variables.lever[j], y[j]
        part = 0.5 if math.isnan(part) else min(max(part, 0.0), 1.0)
        if c >= 0 and p.lever[i].label > 0.0:
            share[c] += part
        elif c >= 0:
            point[i] += w.variables.step[j] * part
    for i in range(len(point)):
        if p.lever[i].label > 0.0:
            rest, most, main = 1.0, -1.0, start[i] + int(point[i])
            for j in range(start[i], start[i + 1]):
                rest -= share[j]
            share[main] += rest
            for j in range(start[i], start[i + 1]):
                if share[j] > most:
                    main, most = j, share[j]
            point[i] = float(main - start[i])


@compiled
def _met(p, w, count, point):
    """Whether a point, such as the cheapest of the box, meets the first rows. Shape: point (d,)."""
    met = True
    for r in range(count):
        met = met and w.row.consts[r] + times(p, w.rows[r], point) >= w.row.inside[r]
    return met


DIVERGED = 2.0**40
"""A convex problem whose mean complementarity is larger is given up: no point is as far inside its rows as is
asked, and the iterates only get worse."""


@compiled
def solve_node(p, w, count, ball, target, point, choice, steps, exactly):
    """Bound the least cost over w.box subject to the rows in w.rows, w.row.consts (rows u + consts >= 0).

    Parameters
    ----------
    count, ball
        Rows, and which of them is the tangent to the plausibility ball, -1 for none; it gets the tangent that
        the best bound came from.
    target
        Stop once the bound reaches it.
    point
        Gets the relaxed optimum, (d,): coordinates; for labels the label with the largest share.
        ``w.columns.share`` gets the shares per column.
    choice
        Work, (d,).
    exactly
        Whether to go on until the point is as good as it gets, though the bound no longer rises.

    Returns
    -------
    float
        The proven bound; inf where the box is empty. ``w.row.multipliers`` and ``w.points.shares`` get its
        multipliers, ``w.now.left`` the mean complementarity of the last iterate, which is large where
        the convex problem has no optimum.
    """
    pair, multipliers, shares = w.pair, w.row.try_multipliers, w.points.try_shares
    cleared(multipliers)
    cleared(shares)
    copied(multipliers, w.row.multipliers)
    copied(shares, w.points.shares)
    w.now.left, consts = 0.0, w.row.consts
    best = dual_value(p, w, w.rows, consts, count, multipliers, shares, choice)
    m, scale, quadratic = _variables(p, w, point)
    if best >= target or m == 0:
        _relaxed_optimum(p, w, 0, point)
        return best
    if ball < 0 and w.variables.column[m - 1] != -2 and _met(p, w, count, choice):
        copied(choice, point)
        _relaxed_optimum(p, w, 0, point)
        return best
    k = _rows(p, w, count, ball, m, point)
    ball_scale = _ball_lines(p, w, m, point) if ball >= 0 else 0.0
    curved = ball_scale > 0.0
    if curved:
        w.convex_rows.scale[k], w.convex_rows.stands_for[k] = ball_scale, ball
        k += 1
    every, n = k, 2 * m + k
    _begin(p, w, m, k, ball_scale)
    stalled, mu = 0, 0.0
    for step in range(steps):
        if curved:
            every = _ball_at(p, w, m, k - 1, ball_scale, w.row.inside[ball])
        mu = _residuals(w, m, k)
        if mu > DIVERGED:
            break
        if step >= 3:  # the bound that these multipliers prove
            _on_trial(p, w, m, k, scale)
            if curved:
                ball_row(p, w, ball, w.ball.phat)
            value, before = dual_value(p, w, w.rows, consts, count, multipliers, shares, choice), best
            stalled = 0 if value > best + CLOSE * abs(value) else stalled + 1
            if value > best:
                best = value
                copied(multipliers, w.row.multipliers)
                copied(shares, w.points.shares)
                copied(w.ball.phat, w.ball.best_phat)
            if best >= target or (stalled >= 3 and mu < CLOSE and not exactly) or mu < FINE:
                break
            # about the largest bound is best + gap; far below the target its last digits change nothing
            gap, near = n * mu * scale, NEAR * min(target - best, best)
            if gap < near and best - before < near and not exactly:
                break
        _factored(w, m, k, every)
        _direction(w, m, k, every, 0.0, False)
        primal, dual = _lengths(pair, n)
        sigma = _centring(pair, n, mu, primal, dual)
        _direction(w, m, k, every, sigma * mu, True)
        primal, dual = _lengths(pair, n)
        if quadratic and not curved:  # one length keeps the residual of a quadratic problem falling
            primal = dual = min(primal, dual)
        if not _move(pair, n, min(1.0, 0.995 * primal), min(1.0, 0.995 * dual)):
            break
    if ball >= 0:
        ball_row(p, w, ball, w.ball.best_phat)
    w.now.left = mu
    _relaxed_optimum(p, w, m, point)
    return best
