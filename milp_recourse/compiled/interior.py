r"""The convex problem of a node: a primal-dual interior-point method whose multipliers prove the bound.

.. math:: \min \sum_j q_j y_j^2 + c_j y_j \quad s.t. \quad A y + b \ge 0,\; 0 \le y \le 1

with the change of a lever split at zero where its cost bends there, a label's share in a convex combination,
and the cost's maximum
as variables y. Whatever comes out is only a guess at the multipliers: the bound is computed from them by
:func:`dual_value` in closed form (Mehrotra 1992, https://doi.org/10.1137/0802028, for the steps).
"""

from __future__ import annotations

import math

from milp_recourse.compiled.cache import compiled
from milp_recourse.compiled.layout import (
    COLUMN,
    COST,
    DL,
    DS,
    DV,
    DY,
    DZ,
    FIXED,
    GAIN,
    HI,
    LABEL,
    LAM,
    LARGEST,
    LEVER,
    LINEAR,
    LO,
    MODE,
    RD,
    RL,
    ROW_OF,
    ROW_SCALE,
    RP,
    RV,
    RZ,
    SHARE,
    SIGN,
    SIZE,
    SQUARE,
    THETA,
    TOP,
    TOPS,
    TRY_PRICES,
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
from milp_recourse.compiled.numerics import CLOSE, FINE, PIVOT, ROUNDOFF

INF = math.inf


@compiled
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
            slack += (
                p.lever[FIXED, i] + (p.lever[LINEAR, i] + shares[i] * p.lever[LARGEST, i] + size[s]) * far
            )
            slack += p.lever[SQUARE, i] * far * far
    value -= p.dual * slack + p.tiny
    return -INF if math.isnan(value) else value


@compiled
def _factor(m, k):
    """Cholesky's factor in place, lower; pivots that vanish are made large, which leaves their row out."""
    for j in range(k):
        v = m[j, j]
        for t in range(j):
            v -= m[j, t] * m[j, t]
        if not v > m[j, j] * PIVOT:
            v = max(m[j, j], 1.0) / ROUNDOFF
        root = math.sqrt(v)
        m[j, j] = root
        for i in range(j + 1, k):
            v = m[i, j]
            for t in range(j):
                v -= m[i, t] * m[j, t]
            m[i, j] = v / root


@compiled
def _solve(m, k, x):
    for i in range(k):
        v = x[i]
        for t in range(i):
            v -= m[i, t] * x[t]
        x[i] = v / m[i, i]
    for i in range(k - 1, -1, -1):
        v = x[i]
        for t in range(i + 1, k):
            v -= m[t, i] * x[t]
        x[i] = v / m[i, i]


@compiled
def _variables(p, box, allowed, budget, w, base):
    """The variables y of a box: column, sign, width, and costs; the point where all are zero into ``base``.

    A column -2 is the maximum. Returns their number.
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
    total = 0.0
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
        if not far > 0.0:
            continue
        column_[m], lever[m], sign_[m], width_[m] = s, i, sign, far
        q[m] = quad * far * far
        c[m] = (lin + 2.0 * quad * start * sign) * far + fixed
        tops[m] = top * far
        m += 1
    for j in range(m):
        total += abs(c[j]) + q[j]
    return m


@compiled
def solve_node(p, box, allowed, rows, consts, count, target, w, prices, shares, point, choice, steps):
    """Bound the least cost over a box subject to rows.

    Parameters
    ----------
    rows, consts, count
        rows u + consts >= 0.
    target
        Stop once the bound reaches it.
    prices, shares
        Get the best multipliers found, (MOST_ROWS,) and (d,).
    point
        Gets the relaxed optimum: coordinates; for labels the label with the largest share.
        ``w.col[SHARE]`` gets the shares per column.
    Returns
    -------
    float
        The proven bound; inf where the box is empty.
    """
    c_ = w.vec[C]
    dv = w.vec[DV]
    dy = w.vec[DY]
    dz = w.vec[DZ]
    h = w.vec[H]
    q = w.vec[Q]
    rd_ = w.vec[RD]
    rv_ = w.vec[RV]
    rz_ = w.vec[RZ]
    sign = w.vec[SIGN]
    theta = w.vec[THETA]
    tops = w.vec[TOPS]
    width = w.vec[WIDTH]
    y_ = w.vec[Y]
    b = w.kvec[B]
    dl = w.kvec[DL]
    ds = w.kvec[DS]
    rl_ = w.kvec[RL]
    row_scale = w.kvec[ROW_SCALE]
    rp = w.kvec[RP]
    x = w.kvec[X]
    column_ = w.ints[COLUMN]
    lever_ = w.ints[LEVER]
    row_of = w.ints[ROW_OF]
    try_shares = w.at[TRY_SHARES]
    share_ = w.col[SHARE]
    try_prices = w.row[TRY_PRICES]
    label_ = p.lever[LABEL]
    a_ = w.a
    m_ = w.m
    start = p.start
    d = p.lever.shape[1]
    columns = rows.shape[1]
    for i in range(d):
        shares[i] = 0.0
        try_shares[i] = 0.0
    for r in range(count):
        prices[r] = 0.0
        try_prices[r] = 0.0
    best = dual_value(p, box, allowed, rows, consts, count, prices, shares, w.col[GAIN], w.col[SIZE], choice)
    m = _variables(p, box, allowed, target, w, point)
    for c in range(columns):
        share_[c] = 0.0
    scale = 0.0
    for j in range(m):
        scale = max(scale, abs(c_[j]) + q[j])
    if p.has_largest:
        own, far = 0.0, 0.0
        for j in range(m):
            far = max(far, tops[j])
        for i in range(d):
            own = max(own, top_of(p, i, point[i]))
        far = 2.0 * (own + far)  # never at its upper end
        if far > 0.0:
            column_[m], lever_[m], sign[m], width[m] = -2, -1, 1.0, far
            q[m], c_[m], tops[m] = 0.0, far, 0.0
            scale = max(scale, far)
            m += 1
    if best >= target or m == 0:
        for i in range(d):
            if label_[i] > 0.0:
                share_[start[i] + int(point[i])] = 1.0
        return best
    if not scale > 0.0:
        scale = 1.0
    for j in range(m):
        c_[j] /= scale
        q[j] /= scale
    # rows: the given ones, one per lever of labels, one per lever in the maximum
    k = 0
    for r in range(count):
        total = consts[r]
        for i in range(d):
            if label_[i] > 0.0:
                total += rows[r, start[i] + int(point[i])]
            else:
                total += rows[r, start[i]] * point[i]
        largest = 0.0
        for j in range(m):
            c = column_[j]
            v = 0.0
            if c >= 0:
                i = lever_[j]
                if label_[i] > 0.0:
                    v = rows[r, c] - rows[r, start[i] + int(point[i])]
                else:
                    v = rows[r, c] * sign[j] * width[j]
            a_[j, k] = v
            largest = max(largest, abs(v))
        if largest > 0.0:
            for j in range(m):
                a_[j, k] /= largest
            b[k] = total / largest
            row_scale[k] = largest
            row_of[k] = r
            k += 1
    for i in range(d):
        if label_[i] > 0.0:
            n = 0
            for j in range(m):
                a_[j, k] = -1.0 if lever_[j] == i else 0.0
                n += lever_[j] == i
            if n > 1:
                b[k] = 1.0
                row_of[k] = -1
                k += 1
    if p.has_largest and m > 0 and column_[m - 1] == -2:
        far = width[m - 1]
        for i in range(d):
            own = top_of(p, i, point[i])
            n = 0
            for j in range(m):
                a_[j, k] = 0.0
                if lever_[j] == i and tops[j] > 0.0:
                    s = -1.0
                    if not label_[i] > 0.0 and point[i] * sign[j] < 0.0:
                        s = 1.0
                    if label_[i] > 0.0:
                        a_[j, k] = -(tops[j] - own) / far
                    else:
                        a_[j, k] = s * tops[j] / far
                    n += 1
            if n > 0 or own > 0.0:
                a_[m - 1, k] = 1.0
                b[k] = -own / far
                row_scale[k] = far
                row_of[k] = -2 - i
                k += 1
    y, z, v, s, lam = y_, w.vec[ZZ], w.vec[V], w.kvec[S], w.kvec[LAM]
    for j in range(m):
        y[j] = 0.5
        z[j] = 1.0
        v[j] = 1.0
    for r in range(k):
        s[r] = b[r]
        lam[r] = 1.0
    for j in range(m):
        for r in range(k):
            s[r] += a_[j, r] * 0.5
    for r in range(k):
        s[r] = max(1.0, abs(s[r]))
    stalled = 0
    for step in range(steps):
        # residuals
        mu = 0.0
        for j in range(m):
            total = 2.0 * q[j] * y[j] + c_[j] - z[j] + v[j]
            for r in range(k):
                total -= a_[j, r] * lam[r]
            rd_[j] = total
            mu += z[j] * y[j] + v[j] * (1.0 - y[j])
        for r in range(k):
            rp[r] = b[r] - s[r]
            mu += s[r] * lam[r]
        for j in range(m):
            for r in range(k):
                rp[r] += a_[j, r] * y[j]
        mu /= 2 * m + k
        # the bound that these multipliers prove
        if step >= 3:
            for r in range(count):
                try_prices[r] = 0.0
            whole = 0.0
            for r in range(k):
                at = row_of[r]
                if at >= 0:
                    try_prices[at] = lam[r] / row_scale[r] * scale
                elif at <= -2:
                    try_shares[-2 - at] = lam[r] * scale / row_scale[r]
                    whole += try_shares[-2 - at]
            if whole > 1.0:
                for i in range(d):
                    try_shares[i] /= whole * p.up
            value = dual_value(
                p, box, allowed, rows, consts, count, try_prices, try_shares, w.col[GAIN], w.col[SIZE], choice
            )
            if value > best:
                stalled = 0 if value > best + CLOSE * abs(value) else stalled + 1
                best = value
                for r in range(count):
                    prices[r] = try_prices[r]
                for i in range(d):
                    shares[i] = try_shares[i]
            else:
                stalled += 1
            if best >= target or (stalled >= 3 and mu < CLOSE) or mu < FINE:
                break
        # the matrix
        for j in range(m):
            theta[j] = 1.0 / (2.0 * q[j] + z[j] / y[j] + v[j] / (1.0 - y[j]))
        for r in range(k):
            for t in range(r + 1):
                m_[r, t] = 0.0
        for j in range(m):
            for r in range(k):
                f = a_[j, r] * theta[j]
                if f != 0.0:
                    for t in range(r + 1):
                        m_[r, t] += f * a_[j, t]
        for r in range(k):
            m_[r, r] += s[r] / lam[r]
        _factor(m_, k)
        sigma = 0.0
        for part in range(2):  # predictor, corrector
            for j in range(m):
                rz = -y[j] * z[j]
                rv = -(1.0 - y[j]) * v[j]
                if part == 1:
                    rz += sigma * mu - dy[j] * dz[j]
                    rv += sigma * mu + dy[j] * dv[j]
                rz_[j], rv_[j] = rz, rv
                h[j] = -rd_[j] + rz / y[j] - rv / (1.0 - y[j])
            for r in range(k):
                rl = -s[r] * lam[r]
                if part == 1:
                    rl += sigma * mu - ds[r] * dl[r]
                rl_[r] = rl
                x[r] = rl / lam[r] - rp[r]
            for j in range(m):
                f = theta[j] * h[j]
                for r in range(k):
                    x[r] -= a_[j, r] * f
            _solve(m_, k, x)
            for r in range(k):
                dl[r] = x[r]
            for j in range(m):
                total = h[j]
                for r in range(k):
                    total += a_[j, r] * dl[r]
                dy[j] = total * theta[j]
                dz[j] = (rz_[j] - z[j] * dy[j]) / y[j]
                dv[j] = (rv_[j] + v[j] * dy[j]) / (1.0 - y[j])
            for r in range(k):
                ds[r] = (rl_[r] - s[r] * dl[r]) / lam[r]
            ap, ad = 1.0, 1.0
            for j in range(m):
                if dy[j] < 0.0:
                    ap = min(ap, -y[j] / dy[j])
                elif dy[j] > 0.0:
                    ap = min(ap, (1.0 - y[j]) / dy[j])
                if dz[j] < 0.0:
                    ad = min(ad, -z[j] / dz[j])
                if dv[j] < 0.0:
                    ad = min(ad, -v[j] / dv[j])
            for r in range(k):
                if ds[r] < 0.0:
                    ap = min(ap, -s[r] / ds[r])
                if dl[r] < 0.0:
                    ad = min(ad, -lam[r] / dl[r])
            if part == 0:
                after = 0.0
                for j in range(m):
                    after += (y[j] + ap * dy[j]) * (z[j] + ad * dz[j])
                    after += (1.0 - y[j] - ap * dy[j]) * (v[j] + ad * dv[j])
                for r in range(k):
                    after += (s[r] + ap * ds[r]) * (lam[r] + ad * dl[r])
                after /= 2 * m + k
                sigma = (after / mu) ** 3 if mu > 0.0 else 0.0
                sigma = min(max(sigma, 0.0), 1.0)
        quadratic = False
        for j in range(m):
            if q[j] > 0.0:
                quadratic = True
        keep = 0.995
        if quadratic:  # one step length keeps the residual of a quadratic problem falling
            ap = ad = min(ap, ad)
        ap, ad = min(1.0, keep * ap), min(1.0, keep * ad)
        good = True
        for j in range(m):
            y[j] += ap * dy[j]
            z[j] += ad * dz[j]
            v[j] += ad * dv[j]
            if not (0.0 < y[j] < 1.0 and z[j] > 0.0 and v[j] > 0.0):
                good = False
        for r in range(k):
            s[r] += ap * ds[r]
            lam[r] += ad * dl[r]
            if not (s[r] > 0.0 and lam[r] > 0.0):
                good = False
        if not good:
            break
    # the relaxed optimum
    for j in range(m):
        y_[j] = min(max(y[j], 0.0), 1.0) if y[j] == y[j] else 0.5
    for j in range(m):
        c = column_[j]
        if c < 0:
            continue
        i = lever_[j]
        share_[c] += y_[j] if label_[i] > 0.0 else 0.0
        if not label_[i] > 0.0:
            point[i] += sign[j] * width[j] * y_[j]
    for i in range(d):
        if label_[i] > 0.0:
            ref = start[i] + int(point[i])
            rest = 1.0
            for j in range(start[i], start[i + 1]):
                rest -= share_[j]
            share_[ref] += rest
            at, most = ref, -1.0
            for j in range(start[i], start[i + 1]):
                if share_[j] > most:
                    at, most = j, share_[j]
            point[i] = float(at - start[i])
    return best
