r"""The convex problem of a node: a primal-dual interior-point method whose multipliers prove the bound.

.. math:: \min \sum_j q_j y_j^2 + c_j y_j \quad s.t. \quad A y + b \ge 0,\; 0 \le y \le 1

with the change of a lever split at zero where its cost bends there, a label's share in a convex combination,
and the cost's maximum as variables y, and, where plausibility is asked for, subject to the ball

.. math:: \sum_f w_f \big(p_f(y)^2 - n_f^2\big) \le 0,

p_f the residual's line that is nearer to zero, or, with other than normal noise, the same plus a line
below the energy's linear part on the left (:func:`ball_row` has its row in the proof). Whatever comes out
is only a guess at the multipliers: the bound is computed from them by :func:`dual_value` in closed form
(Mehrotra 1992, https://doi.org/10.1137/0802028, for the steps).
"""

from __future__ import annotations

import math

from milp_recourse.compiled.layout import (
    BALL_AT,
    BALL_LEAST,
    BALL_SIDE,
    BALL_SIZE,
    BEST_PHAT,
    COLUMN,
    CONSTS,
    COST,
    DIAGONAL,
    DL,
    DS,
    DV,
    DY,
    DZ,
    FIXED,
    GAIN,
    HI,
    INSIDE,
    LABEL,
    LAM,
    LARGEST,
    LEFT,
    LEVER,
    LINEAR,
    LO,
    MODE,
    MULTIPLIERS,
    PHAT,
    RD,
    RL,
    ROW_OF,
    ROW_SCALE,
    RP,
    RV,
    RZ,
    SCALED,
    SHARE,
    SHARES,
    SIGN,
    SIZE,
    SQUARE,
    THETA,
    TOP,
    TOPS,
    TRY_MULTIPLIERS,
    TRY_SHARES,
    WIDTH,
    ZZ,
    B,
    C,
    H,
    Q,
    S,
    V,
    X,
    Y,
)
from milp_recourse.compiled.levers import respond, top_of
from milp_recourse.compiled.numerics import CLOSE, FINE, HUGE, PIVOT, ROUNDOFF
from milp_recourse.compiled.work import cleared, copied
from milp_recourse.compiling import compiled, inner

INF = math.inf

NEAR = 2.0**-6
"""A bound that misses its optimum by so much of what both miss the target by is as good."""


@inner
def dual_value(p, box, allowed, rows, consts, count, prices, shares, gain, size, choice):
    r"""The Lagrangian bound of the node's cost, rounding included.

    .. math:: D = \sum_i \min_{u_i \in X_i} \Big(c_i(u_i) + \mu_i top_i |u_i| - \sum_r \lambda_r G_{ri}
    u_i\Big)
              - \sum_r \lambda_r g_r

    for rows :math:`G_r u + g_r \ge 0`, any prices lambda >= 0 and shares mu >= 0 with sum at most one.

    Parameters
    ----------
    gain, size
        Work, (P,).
    choice
        Gets the minimiser.

    Returns
    -------
    float
        inf where nothing is left of a lever, -inf where prices are so large that products could overflow.
    """
    start = p.start
    columns = rows.shape[1]
    d = p.lever.shape[1]
    for c in range(columns):
        gain[c] = 0.0
        size[c] = 0.0
    value = 0.0
    slack = 0.0
    for r in range(count):
        v = prices[r]
        if v > 0.0:
            value -= v * consts[r]
            slack += v * abs(consts[r])
            for c in range(columns):
                gain[c] += v * rows[r, c]
                size[c] += v * abs(rows[r, c])
    for c in range(columns):  # a product that overflows is no number, and would read as "nothing is left"
        if not size[c] < HUGE:
            return -INF
    for i in range(d):
        v = respond(p, box, allowed, i, gain, 1.0, shares[i], choice)
        if v == INF:
            return INF
        value += v
        s = start[i]
        if p.lever[LABEL, i] > 0.0:
            most = 0.0
            for j in range(s, start[i + 1]):
                if allowed[j] != 0:
                    most = max(most, p.column[COST, j] + shares[i] * p.column[TOP, j] + size[j])
            slack += most
        elif box[MODE, i] != 2:
            far = max(abs(box[LO, i]), abs(box[HI, i]))
            slack += abs(p.lever[FIXED, i])
            slack += (p.lever[LINEAR, i] + shares[i] * p.lever[LARGEST, i] + size[s]) * far
            slack += p.lever[SQUARE, i] * far * far
    value -= p.dual * slack + p.tiny
    return -INF if math.isnan(value) else value


@inner
def _dot(x, y, first, after):
    """Sum of x[i] y[i] over first <= i < after, as four sums that need not wait for each other."""
    one, two, three, four = 0.0, 0.0, 0.0, 0.0
    whole = first + (after - first) // 4 * 4
    for i in range(first, whole, 4):
        one += x[i] * y[i]
        two += x[i + 1] * y[i + 1]
        three += x[i + 2] * y[i + 2]
        four += x[i + 3] * y[i + 3]
    for i in range(whole, after):
        one += x[i] * y[i]
    return (one + two) + (three + four)


@inner
def _factor(m, k):
    """Cholesky's factor in place, lower, its diagonal inverted; pivots that vanish are made large, which
    leaves their row out."""
    for j in range(k):
        row = m[j]
        v = row[j] - _dot(row, row, 0, j)
        if not v > row[j] * PIVOT:
            v = max(row[j], 1.0) / ROUNDOFF
        inverse = 1.0 / math.sqrt(v)
        row[j] = inverse
        for i in range(j + 1, k):
            m[i, j] = (m[i, j] - _dot(m[i], row, 0, j)) * inverse


@inner
def _solve(m, k, x):
    for i in range(k):
        x[i] = (x[i] - _dot(m[i], x, 0, i)) * m[i, i]
    for i in range(k - 1, -1, -1):
        v = x[i] * m[i, i]
        x[i] = v
        for t in range(i):
            x[t] -= m[i, t] * v


@compiled
def _wanted(w, count, ball, column, sign):
    """Whether some row gets larger when a coordinate moves that way from where it costs least."""
    for r in range(count):
        if r != ball and w.rows[r, column] * sign > 0.0:
            return True
    return ball >= 0


@inner
def _variables(p, box, allowed, w, count, ball, base):
    """The variables y of a box: column, sign, width, and costs; the point where all are zero into ``base``.

    A column -2 is the maximum. What no row asks for is left out. Returns their number.
    """
    c = w.vec[C]
    q = w.vec[Q]
    sign_ = w.vec[SIGN]
    tops = w.vec[TOPS]
    width_ = w.vec[WIDTH]
    column_ = w.ints[COLUMN]
    lever = w.ints[LEVER]
    cost = p.column[COST]
    mode = box[MODE]
    start_ = p.start
    m = 0
    for i in range(p.lever.shape[1]):
        s = start_[i]
        if p.lever[LABEL, i] > 0.0:
            ref, cheap = -1, INF
            for j in range(s, start_[i + 1]):
                if allowed[j] != 0 and cost[j] < cheap:
                    ref, cheap = j, cost[j]
            base[i] = float(ref - s)
            for j in range(s, start_[i + 1]):
                if allowed[j] != 0 and j != ref:
                    column_[m], lever[m], sign_[m], width_[m] = j, i, 1.0, 1.0
                    q[m], c[m] = 0.0, cost[j] - cheap
                    tops[m] = p.column[TOP, j]
                    m += 1
            continue
        base[i] = 0.0
        if mode[i] == 2:
            continue
        l, h, fixed = box[LO, i], box[HI, i], 0.0
        if mode[i] == 0:
            l, h, fixed = min(l, 0.0), max(h, 0.0), p.lever[FIXED, i]
        lin, quad, top = p.lever[LINEAR, i], p.lever[SQUARE, i], p.lever[LARGEST, i]
        if l < 0.0 < h and (lin > 0.0 or fixed > 0.0 or top > 0.0):
            for side in range(2):
                far = h if side == 0 else -l
                if not _wanted(w, count, ball, s, 1.0 - 2.0 * side):
                    continue
                column_[m], lever[m], sign_[m], width_[m] = s, i, 1.0 if side == 0 else -1.0, far
                q[m], c[m], tops[m] = quad * far * far, lin * far + fixed, top * far
                m += 1
            continue
        sign = 1.0 if l >= 0.0 or (h > 0.0) else -1.0
        if sign > 0.0:
            start, far = l, h - l
        else:
            start, far = h, h - l
        base[i] = start
        if not far > 0.0 or not (l < 0.0 < h or _wanted(w, count, ball, s, sign)):
            continue
        column_[m], lever[m], sign_[m], width_[m] = s, i, sign, far
        q[m] = quad * far * far
        c[m] = (lin + 2.0 * quad * start * sign) * far + fixed
        tops[m] = top * far
        m += 1
    return m


@inner
def ball_row(p, w, r, phat):
    r"""The tangent to the plausibility ball at residuals phat, as row r with its constant, rounding included.

    For any phat, :math:`(n + \rho)^2 \ge 2 \hat p (n + \rho) - \hat p^2`, so the ball implies

    .. math:: \sum_f w_f \big( (\hat p_f - n_f)^2 - 2 \hat p_f \rho_f \big) \ge 0,

    where a residual is replaced by the line above :math:`-\hat p_f \rho_f`, and the ball's linear part L by
    the one above -L: a row that is valid in the node whatever phat is.
    """
    columns = w.rows.shape[1]
    cleared(w.rows[r])
    const, size = 0.0, 0.0
    for f in range(len(p.noise)):
        weight, n, at = p.precision[f], p.noise[f], phat[f]
        if p.bent and f == len(p.noise) - 1:  # the linear part: a line above its negative
            const += w.ball[1, f]
            size += w.ball[BALL_SIZE, f]
            for c in range(columns):
                w.rows[r, c] += w.tangent[1, f, c]
            continue
        if weight == 0.0:
            continue
        side = 1 if at > 0.0 else 0
        rate = 2.0 * weight * abs(at)
        const += weight * (at - n) * (at - n) + rate * w.ball[side, f]
        size += weight * (abs(at) + abs(n)) ** 2 + rate * w.ball[BALL_SIZE, f]
        for c in range(columns):
            w.rows[r, c] += rate * w.tangent[side, f, c]
    w.row[CONSTS, r] = const + p.line * size + p.tiny


@inner
def _rows(p, w, count, ball, m, point):
    """The convex problem's rows from those of the node, its labels and the cost's maximum; returns their
    number."""
    rows, consts, a, b = w.rows, w.row[CONSTS], w.a, w.kvec[B]
    column, lever, row_of = w.ints[COLUMN], w.ints[LEVER], w.ints[ROW_OF]
    sign, width, tops = w.vec[SIGN], w.vec[WIDTH], w.vec[TOPS]
    start, label = p.start, p.lever[LABEL]
    d = p.lever.shape[1]
    k = 0
    for r in range(count):
        if r == ball:
            continue
        total = consts[r] - w.row[INSIDE, r]
        for i in range(d):
            total += rows[r, start[i] + int(point[i])] if label[i] > 0.0 else rows[r, start[i]] * point[i]
        largest = 0.0
        for j in range(m):
            c = column[j]
            a_j = 0.0
            if c >= 0:
                i = lever[j]
                if label[i] > 0.0:
                    a_j = rows[r, c] - rows[r, start[i] + int(point[i])]
                else:
                    a_j = rows[r, c] * sign[j] * width[j]
            a[k, j] = a_j
            largest = max(largest, abs(a_j))
        if largest > 0.0:
            for j in range(m):
                a[k, j] /= largest
            b[k] = total / largest
            w.kvec[ROW_SCALE, k] = largest
            row_of[k] = r
            k += 1
    for i in range(d):
        if label[i] > 0.0:
            n = 0
            for j in range(m):
                a[k, j] = -1.0 if lever[j] == i else 0.0
                n += lever[j] == i
            if n > 1:
                b[k] = 1.0
                row_of[k] = -1
                k += 1
    if p.has_largest and m > 0 and column[m - 1] == -2:
        far = width[m - 1]
        for i in range(d):
            own = top_of(p, i, point[i])
            n = 0
            for j in range(m):
                a[k, j] = 0.0
                if lever[j] == i and tops[j] > 0.0:
                    s = -1.0
                    if not label[i] > 0.0 and point[i] * sign[j] < 0.0:
                        s = 1.0
                    if label[i] > 0.0:
                        a[k, j] = -(tops[j] - own) / far
                    else:
                        a[k, j] = s * tops[j] / far
                    n += 1
            if n > 0 or own > 0.0:
                a[k, m - 1] = 1.0
                b[k] = -own / far
                w.kvec[ROW_SCALE, k] = far
                row_of[k] = -2 - i
                k += 1
    return k


@compiled
def _counts(p, f):
    """Whether a residual is in the ball at all."""
    return p.precision[f] > 0.0 or (p.bent and f == len(p.noise) - 1)


@inner
def _ball_lines(p, w, m, point):
    """The residuals' lines in the variables y; returns what the ball is divided by, 0 where it cannot
    move."""
    start, label = p.start, p.lever[LABEL]
    column, lever, sign, width = w.ints[COLUMN], w.ints[LEVER], w.vec[SIGN], w.vec[WIDTH]
    far = 0.0
    for f in range(len(p.noise)):
        reach = 0.0
        if not _counts(p, f):
            continue
        for side in range(2):
            at, line = w.ball[side, f], w.tangent[side, f]
            for i in range(p.lever.shape[1]):
                at += line[start[i] + int(point[i])] if label[i] > 0.0 else line[start[i]] * point[i]
            w.ball[BALL_AT + side, f] = at
            for j in range(m):
                c, v = column[j], 0.0
                if c >= 0:
                    i = lever[j]
                    v = (
                        line[c] - line[start[i] + int(point[i])]
                        if label[i] > 0.0
                        else line[c] * sign[j] * width[j]
                    )
                w.pull[side, f, j] = v
                reach = max(reach, abs(v))
        far += 2.0 * p.precision[f] * reach * (abs(p.noise[f]) + reach)
        if p.bent and f == len(p.noise) - 1:
            far += reach
    return far


@inner
def _ball_at(p, w, m, y, scale, row):
    """The ball's value over ``scale`` at y; its gradient's negative into that row of w.a, residuals into
    w.ball."""
    total = 0.0
    for j in range(m):
        w.a[row, j] = 0.0
    for f in range(len(p.noise)):
        n, weight = p.noise[f], p.precision[f]
        w.ball[BALL_SIDE, f], w.ball[PHAT, f] = -1.0, 0.0
        if not _counts(p, f):
            continue
        above, below = w.ball[BALL_AT, f], w.ball[BALL_AT + 1, f]
        for j in range(m):
            above += w.pull[0, f, j] * y[j]
            below += w.pull[1, f, j] * y[j]
        if p.bent and f == len(p.noise) - 1:
            w.ball[BALL_LEAST, f] = -below
            total -= below
            for j in range(m):
                w.a[row, j] += w.pull[1, f, j] / scale
            continue
        side, at = -1.0, 0.0
        if n - below > 0.0:
            side, at = 1.0, n - below
        elif n + above < 0.0:
            side, at = 0.0, n + above
        w.ball[BALL_SIDE, f] = side
        w.ball[PHAT, f] = at
        total += weight * (at - n) * (at + n)
        if side >= 0.0 and weight > 0.0:
            rate = 2.0 * weight * abs(at) / scale
            for j in range(m):
                w.a[row, j] += rate * w.pull[int(side), f, j]
    return total / scale


@compiled
def _onto_ball(p, w):
    """Move the residuals at hand to the ball's surface, where tangents cut off most."""
    radius, norm = 0.0, 0.0
    for f in range(len(p.noise)):
        radius += p.precision[f] * p.noise[f] ** 2
        norm += p.precision[f] * w.ball[PHAT, f] ** 2
    if p.bent:
        radius -= w.ball[BALL_LEAST, len(p.noise) - 1]
    if norm > 0.0 and radius > 0.0:
        for f in range(len(p.noise)):
            w.ball[PHAT, f] *= math.sqrt(radius / norm)


@inner
def _ball_curvature(p, w, m, k, scale, price):
    """The ball's second derivatives as rows k, k + 1, ... of w.a, the inverse of what each counts for into
    w.kvec[DIAGONAL]; returns the number of all rows."""
    every = k
    for f in range(len(p.noise)):
        side, bend = w.ball[BALL_SIDE, f], 2.0 * p.precision[f] * price / scale
        if side >= 0.0 and bend > 0.0:
            for j in range(m):
                w.a[every, j] = w.pull[int(side), f, j]
            w.kvec[DIAGONAL, every] = 1.0 / bend
            every += 1
    return every


@inner
def _by_variables(vec, kvec, a, matrix, m, k, every):
    r"""The matrix of the reduced Newton system in the variables, factored; for fewer variables than rows.

    .. math:: \Theta^{-1} + A^T (\Lambda / S) A + P^T B P

    with the ball's curvature B in rows k to ``every``. What rows count for goes into kvec[X].
    """
    theta, weight = vec[THETA], kvec[X]
    for j in range(m):
        for t in range(j):
            matrix[j, t] = 0.0
        matrix[j, j] = 1.0 / theta[j]
    for r in range(every):
        row = a[r]
        weight[r] = kvec[LAM, r] / kvec[S, r] if r < k else 1.0 / kvec[DIAGONAL, r]
        for j in range(m):
            v = weight[r] * row[j]
            for t in range(j + 1):
                matrix[j, t] += v * row[t]
    _factor(matrix, m)


@inner
def _by_rows(vec, kvec, a, matrix, m, k, every):
    r"""The matrix of the normal equations in the rows, :math:`A \Theta A^T + S / \Lambda`, factored."""
    theta, scaled = vec[THETA], vec[SCALED]
    last = m - 1
    for r in range(every):
        row, first, after = a[r], last, 0
        for j in range(last):
            scaled[j] = row[j] * theta[j]
            if row[j] != 0.0:
                first, after = min(first, j), j + 1
        scaled[last] = row[last] * theta[last]
        for t in range(r + 1):  # the maximum is in many rows that have little else
            matrix[r, t] = _dot(scaled, a[t], first, max(first, after)) + scaled[last] * a[t, last]
    for r in range(k):
        matrix[r, r] += kvec[S, r] / kvec[LAM, r]
    for r in range(k, every):
        matrix[r, r] += kvec[DIAGONAL, r]
    _factor(matrix, every)


@inner
def _factored(vec, kvec, a, matrix, m, k, every):
    """The matrix of a Newton step, of whichever of the two systems is smaller."""
    y, z, v, q, theta = vec[Y], vec[ZZ], vec[V], vec[Q], vec[THETA]
    for j in range(m):
        theta[j] = 1.0 / (2.0 * q[j] + z[j] / y[j] + v[j] / (1.0 - y[j]))
    if m < every:
        _by_variables(vec, kvec, a, matrix, m, k, every)
    else:
        _by_rows(vec, kvec, a, matrix, m, k, every)


@inner
def _direction(vec, kvec, a, matrix, m, k, every, target, corrected):
    """A Newton step towards complementarity ``target``; with Mehrotra's correction from the step before."""
    y, z, v, h = vec[Y], vec[ZZ], vec[V], vec[H]
    dy, dz, dv, rz, rv = vec[DY], vec[DZ], vec[DV], vec[RZ], vec[RV]
    s, lam, rl, dl, ds = kvec[S], kvec[LAM], kvec[RL], kvec[DL], kvec[DS]
    for j in range(m):
        at_low, at_high = -y[j] * z[j], -(1.0 - y[j]) * v[j]
        if corrected:
            at_low += target - dy[j] * dz[j]
            at_high += target + dy[j] * dv[j]
        rz[j], rv[j] = at_low, at_high
        h[j] = -vec[RD, j] + at_low / y[j] - at_high / (1.0 - y[j])
    for r in range(k):
        rl[r] = -s[r] * lam[r]
        if corrected:
            rl[r] += target - ds[r] * dl[r]
    if m < every:
        _step_by_variables(vec, kvec, a, matrix, m, k)
    else:
        _step_by_rows(vec, kvec, a, matrix, m, k, every)
    for j in range(m):
        dz[j] = (rz[j] - z[j] * dy[j]) / y[j]
        dv[j] = (rv[j] + v[j] * dy[j]) / (1.0 - y[j])
    for r in range(k):
        ds[r] = (rl[r] - s[r] * dl[r]) / lam[r]


@inner
def _step_by_variables(vec, kvec, a, matrix, m, k):
    """The step of the variables and of the rows' multipliers, from the matrix of :func:`_by_variables`."""
    dy, h = vec[DY], vec[H]
    s, lam, rl, rp, dl, weight = kvec[S], kvec[LAM], kvec[RL], kvec[RP], kvec[DL], kvec[X]
    for j in range(m):
        dy[j] = h[j]
    for r in range(k):
        row = a[r]
        dl[r] = (rl[r] - lam[r] * rp[r]) / s[r]
        for j in range(m):
            dy[j] += row[j] * dl[r]
    _solve(matrix, m, dy)
    for r in range(k):
        row, moved = a[r], 0.0
        for j in range(m):
            moved += row[j] * dy[j]
        dl[r] -= weight[r] * moved


@inner
def _step_by_rows(vec, kvec, a, matrix, m, k, every):
    """The same from the matrix of :func:`_by_rows`."""
    theta, h, dy, scaled = vec[THETA], vec[H], vec[DY], vec[SCALED]
    x, dl = kvec[X], kvec[DL]
    for r in range(every):
        x[r] = kvec[RL, r] / kvec[LAM, r] - kvec[RP, r] if r < k else 0.0
    for j in range(m):
        scaled[j] = theta[j] * h[j]
    for r in range(every):
        x[r] -= _dot(a[r], scaled, 0, m)
    _solve(matrix, every, x)
    for r in range(every):
        dl[r] = x[r]
        row = a[r]
        for j in range(m):
            h[j] += row[j] * x[r]
    for j in range(m):
        dy[j] = h[j] * theta[j]


@inner
def _lengths(vec, kvec, m, k):
    """How far the primal and the dual variables can go, at most 1."""
    y, z, v, dy, dz, dv = vec[Y], vec[ZZ], vec[V], vec[DY], vec[DZ], vec[DV]
    s, lam, ds, dl = kvec[S], kvec[LAM], kvec[DS], kvec[DL]
    primal, dual = 1.0, 1.0
    for j in range(m):
        if dy[j] < 0.0:
            primal = min(primal, -y[j] / dy[j])
        elif dy[j] > 0.0:
            primal = min(primal, (1.0 - y[j]) / dy[j])
        if dz[j] < 0.0:
            dual = min(dual, -z[j] / dz[j])
        if dv[j] < 0.0:
            dual = min(dual, -v[j] / dv[j])
    for r in range(k):
        if ds[r] < 0.0:
            primal = min(primal, -s[r] / ds[r])
        if dl[r] < 0.0:
            dual = min(dual, -lam[r] / dl[r])
    return primal, dual


@inner
def _centring(vec, kvec, m, k, mu, primal, dual):
    """Mehrotra's choice of how much to centre, from where the uncorrected step leads."""
    y, z, v, dy, dz, dv = vec[Y], vec[ZZ], vec[V], vec[DY], vec[DZ], vec[DV]
    s, lam, ds, dl = kvec[S], kvec[LAM], kvec[DS], kvec[DL]
    after = 0.0
    for j in range(m):
        after += (y[j] + primal * dy[j]) * (z[j] + dual * dz[j])
        after += (1.0 - y[j] - primal * dy[j]) * (v[j] + dual * dv[j])
    for r in range(k):
        after += (s[r] + primal * ds[r]) * (lam[r] + dual * dl[r])
    after /= 2 * m + k
    sigma = (after / mu) ** 3 if mu > 0.0 else 0.0
    return min(max(sigma, 0.0), 1.0)


@inner
def _move(vec, kvec, m, k, primal, dual):
    """Take the step; False where rounding has left the interior."""
    y, z, v, dy, dz, dv = vec[Y], vec[ZZ], vec[V], vec[DY], vec[DZ], vec[DV]
    s, lam, ds, dl = kvec[S], kvec[LAM], kvec[DS], kvec[DL]
    good = True
    for j in range(m):
        y[j] += primal * dy[j]
        z[j] += dual * dz[j]
        v[j] += dual * dv[j]
        if not (0.0 < y[j] < 1.0 and z[j] > 0.0 and v[j] > 0.0):
            good = False
    for r in range(k):
        s[r] += primal * ds[r]
        lam[r] += dual * dl[r]
        if not (s[r] > 0.0 and lam[r] > 0.0):
            good = False
    return good


@inner
def _residuals(vec, kvec, a, m, k, value):
    """Residuals of the optimality conditions, the last row's from ``value`` unless nan; the mean
    complementarity."""
    y, z, v, q, c = vec[Y], vec[ZZ], vec[V], vec[Q], vec[C]
    s, lam, rp, b = kvec[S], kvec[LAM], kvec[RP], kvec[B]
    mu, rd = 0.0, vec[RD]
    for j in range(m):
        rd[j] = 2.0 * q[j] * y[j] + c[j] - z[j] + v[j]
        mu += z[j] * y[j] + v[j] * (1.0 - y[j])
    for r in range(k):
        row = a[r]
        rp[r] = b[r] - s[r] + _dot(row, y, 0, m)
        mu += s[r] * lam[r]
        for j in range(m):
            rd[j] -= row[j] * lam[r]
    if not math.isnan(value):
        rp[k - 1] = -value - s[k - 1]
    return mu / (2 * m + k)


@inner
def _prices(p, w, count, k, scale):
    """The multipliers in hand as prices of the node's rows and shares of the maximum, for the proof."""
    prices, shares = w.row[TRY_MULTIPLIERS], w.at[TRY_SHARES]
    for r in range(count):
        prices[r] = 0.0
    whole = 0.0
    for r in range(k):
        at = w.ints[ROW_OF, r]
        if at >= 0:
            prices[at] = w.kvec[LAM, r] / w.kvec[ROW_SCALE, r] * scale
        elif at <= -2:
            shares[-2 - at] = w.kvec[LAM, r] * scale / w.kvec[ROW_SCALE, r]
            whole += shares[-2 - at]
    if whole > 1.0:
        for i in range(len(shares)):
            shares[i] /= whole * p.up


@compiled
def _relaxed_optimum(p, w, m, point):
    """The point that the variables stand for: coordinates, labels with the largest share; shares into
    w.col[SHARE]."""
    y, share, start, label = w.vec[Y], w.col[SHARE], p.start, p.lever[LABEL]
    column, lever, sign, width = w.ints[COLUMN], w.ints[LEVER], w.vec[SIGN], w.vec[WIDTH]
    for j in range(m):
        y[j] = min(max(y[j], 0.0), 1.0) if y[j] == y[j] else 0.5
    for j in range(m):
        c = column[j]
        if c < 0:
            continue
        i = lever[j]
        if label[i] > 0.0:
            share[c] += y[j]
        else:
            point[i] += sign[j] * width[j] * y[j]
    for i in range(len(point)):
        if label[i] > 0.0:
            ref = start[i] + int(point[i])
            rest = 1.0
            for j in range(start[i], start[i + 1]):
                rest -= share[j]
            share[ref] += rest
            at, most = ref, -1.0
            for j in range(start[i], start[i + 1]):
                if share[j] > most:
                    at, most = j, share[j]
            point[i] = float(at - start[i])


@inner
def solve_node(p, w, box, allowed, count, ball, target, point, choice, steps, exactly):
    """Bound the least cost over a box subject to the rows in w.rows, w.row[CONSTS] (rows u + consts >= 0).

    Parameters
    ----------
    count, ball
        Rows, and which of them is the tangent to the plausibility ball, -1 for none; it gets the tangent that
        the best bound came from.
    target
        Stop once the bound reaches it.
    point
        Gets the relaxed optimum: coordinates; for labels the label with the largest share. ``w.col[SHARE]``
        gets the shares per column.
    choice
        Work, (d,).
    exactly
        Whether to go on until the point is as good as it gets, though the bound no longer rises.

    Returns
    -------
    float
        The proven bound; inf where the box is empty. ``w.row[MULTIPLIERS]`` and ``w.at[SHARES]`` get its
        multipliers, ``w.scalar[LEFT]`` the complementarity that is left: much where there is no optimum.
    """
    vec, kvec, a, matrix = w.vec, w.kvec, w.a, w.m
    rows, consts, prices, shares = w.rows, w.row[CONSTS], w.row[MULTIPLIERS], w.at[SHARES]
    try_prices, try_shares = w.row[TRY_MULTIPLIERS], w.at[TRY_SHARES]
    q, c, y = vec[Q], vec[C], vec[Y]
    d = p.lever.shape[1]
    for i in range(d):
        shares[i] = 0.0
        try_shares[i] = 0.0
    for r in range(count):
        prices[r] = 0.0
        try_prices[r] = 0.0
    w.scalar[LEFT] = 0.0
    best = dual_value(p, box, allowed, rows, consts, count, prices, shares, w.col[GAIN], w.col[SIZE], choice)
    m = _variables(p, box, allowed, w, count, ball, point)
    cleared(w.col[SHARE])
    scale = 0.0
    for j in range(m):
        scale = max(scale, abs(c[j]) + q[j])
    if p.has_largest:
        own, far = 0.0, 0.0
        for j in range(m):
            far = max(far, vec[TOPS, j])
        for i in range(d):
            own = max(own, top_of(p, i, point[i]))
        far = 2.0 * (own + far)  # never at its upper end
        if far > 0.0:
            w.ints[COLUMN, m], w.ints[LEVER, m], vec[SIGN, m], vec[WIDTH, m] = -2, -1, 1.0, far
            q[m], c[m], vec[TOPS, m] = 0.0, far, 0.0
            scale = max(scale, far)
            m += 1
    if best >= target or m == 0:
        for i in range(d):
            if p.lever[LABEL, i] > 0.0:
                w.col[SHARE, p.start[i] + int(point[i])] = 1.0
        return best
    if not scale > 0.0:
        scale = 1.0
    quadratic = False
    for j in range(m):
        c[j] /= scale
        q[j] /= scale
        quadratic = quadratic or q[j] > 0.0
    k = _rows(p, w, count, ball, m, point)
    ball_scale, curved = 0.0, 0
    if ball >= 0:
        ball_scale = _ball_lines(p, w, m, point)
        if ball_scale > 0.0:
            kvec[ROW_SCALE, k], w.ints[ROW_OF, k], kvec[B, k] = ball_scale, ball, 0.0
            curved, k = len(p.noise), k + 1
    every = k
    for j in range(m):
        y[j] = 0.5
        vec[ZZ, j] = 1.0
        vec[V, j] = 1.0
    for r in range(k):
        value = kvec[B, r]
        if not (curved > 0 and r == k - 1):
            for j in range(m):
                value += a[r, j] * 0.5
        else:
            value = -_ball_at(p, w, m, y, ball_scale, k - 1)
        kvec[S, r] = max(1.0, abs(value))
        kvec[LAM, r] = 1.0
    stalled, mu = 0, 0.0
    for step in range(steps):
        value = math.nan
        if curved > 0:
            value = _ball_at(p, w, m, y, ball_scale, k - 1) + w.row[INSIDE, ball] / ball_scale
        mu = _residuals(vec, kvec, a, m, k, value)
        if step >= 3:  # the bound that these multipliers prove
            _prices(p, w, count, k, scale)
            if curved > 0:
                _onto_ball(p, w)
                ball_row(p, w, ball, w.ball[PHAT])
            value = dual_value(
                p, box, allowed, rows, consts, count, try_prices, try_shares, w.col[GAIN], w.col[SIZE], choice
            )
            before = best
            if value > best:
                stalled = 0 if value > best + CLOSE * abs(value) else stalled + 1
                best = value
                for r in range(count):
                    prices[r] = try_prices[r]
                copied(try_shares, shares)
                if curved > 0:
                    copied(w.ball[PHAT], w.ball[BEST_PHAT])
            else:
                stalled += 1
            if best >= target or (stalled >= 3 and mu < CLOSE and not exactly) or mu < FINE:
                break
            # no bound is above best + gap, nearly: where that is clear of the target the last digits are idle
            gap, near = (2 * m + k) * mu * scale, NEAR * min(target - best, best)
            if gap < near and best - before < near and not exactly:
                break
        if curved > 0:
            every = _ball_curvature(p, w, m, k, ball_scale, kvec[LAM, k - 1])
        _factored(vec, kvec, a, matrix, m, k, every)
        _direction(vec, kvec, a, matrix, m, k, every, 0.0, False)
        primal, dual = _lengths(vec, kvec, m, k)
        sigma = _centring(vec, kvec, m, k, mu, primal, dual)
        _direction(vec, kvec, a, matrix, m, k, every, sigma * mu, True)
        primal, dual = _lengths(vec, kvec, m, k)
        if quadratic and curved == 0:  # one step length keeps the residual of a quadratic problem falling
            primal = dual = min(primal, dual)
        if not _move(vec, kvec, m, k, min(1.0, 0.995 * primal), min(1.0, 0.995 * dual)):
            break
    if ball >= 0:
        if prices[ball] > 0.0:
            ball_row(p, w, ball, w.ball[BEST_PHAT])
        else:
            consts[ball] = 0.0
    w.scalar[LEFT] = mu
    _relaxed_optimum(p, w, m, point)
    return best
