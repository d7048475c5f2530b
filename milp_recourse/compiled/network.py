r"""The network at a point, its gradient, and linear bounds over a box.

Each ReLU z -> max(0, z) with z in [l, h], l < 0 < h, lies below s z + t with s = h / (h - l), t = max(-s l,
(1 - s) h), and
above alpha z for any alpha in [0, 1]. Put in from the last layer back to the levers, by the sign of the
coefficient, these
give a line above (or below) any unit (Zhang et al. 2018, https://arxiv.org/abs/1811.00866; Singh et al. 2019,
https://doi.org/10.1145/3290354).
"""

from __future__ import annotations

import math

from milp_recourse.compiled.cache import compiled, entry
from milp_recourse.compiled.layout import (
    COST,
    FIXED,
    HI,
    LABEL,
    LARGEST,
    LINEAR,
    LO,
    MODE,
    SQUARE,
    TOP,
)
from milp_recourse.compiled.levers import respond

INF = math.inf


@compiled
def first_layer(p, u, z):
    """The first layer's values at a point, into z."""
    first_ = p.first[0]
    n = p.first.shape[1]
    for j in range(n):
        z[j] = p.offset[0, j]
    for i in range(len(u)):
        c = p.start[i]
        if p.lever[LABEL, i] > 0.0:
            c += int(u[i])
            for j in range(n):
                z[j] += first_[j, c]
        elif u[i] != 0.0:
            v = u[i]
            for j in range(n):
                z[j] += first_[j, c] * v


@compiled
def later_layers(p, z):
    """From the first layer's values in z[0] to the logit; fills z, (K, n)."""
    layers = len(p.widths)
    if layers == 0:
        return z[0, 0]
    for k in range(layers - 1):
        m = p.widths[k + 1]
        turned, after = p.turned[k], z[k + 1]
        for i in range(m):
            after[i] = p.biases[k, i]
        for j in range(p.widths[k]):
            v = z[k, j]
            if v > 0.0:
                for i in range(m):
                    after[i] += v * turned[j, i]
    last, before = p.weights[layers - 1, 0], z[layers - 1]
    total = p.biases[layers - 1, 0]
    for j in range(p.widths[layers - 1]):
        if before[j] > 0.0:
            total += last[j] * before[j]
    return total


@compiled
def logit_at(p, u, z):
    """The logit at a point; z gets every unit's argument, (max(K, 1), n)."""
    first_layer(p, u, z[0])
    return later_layers(p, z)


@entry
def logit_size(p, u, work):
    """The sum of absolute terms behind a point's logit."""
    first_size = p.first[1]
    widths = p.widths
    n = p.first.shape[1]
    size, new = work[0], work[1]
    for j in range(n):
        size[j] = p.offset[1, j]
    for i in range(len(u)):
        c = p.start[i]
        if p.lever[LABEL, i] > 0.0:
            c += int(u[i])
            for j in range(n):
                size[j] += first_size[j, c]
        else:
            v = abs(u[i])
            for j in range(n):
                size[j] += first_size[j, c] * v
    layers = len(widths)
    for k in range(layers):
        m = widths[k + 1] if k + 1 < layers else 1
        for i in range(m):
            total = abs(p.biases[k, i])
            for j in range(widths[k]):
                total += abs(p.weights[k, i, j]) * size[j]
            new[i] = total
        for i in range(m):
            size[i] = new[i]
    return size[0]


@compiled
def gradient(p, z, out, work):
    """The logit's gradient per column, at the point whose arguments are in z."""
    first = p.first[0]
    widths = p.widths
    weights = p.weights
    layers = len(widths)
    columns = p.first.shape[2]
    for c in range(columns):
        out[c] = 0.0
    if layers == 0:
        for c in range(columns):
            out[c] = first[0, c]
        return
    a, b = work[0], work[1]
    for j in range(widths[layers - 1]):
        a[j] = weights[layers - 1, 0, j]
    for k in range(layers - 1, -1, -1):
        n = widths[k]
        if k > 0:
            for i in range(widths[k - 1]):
                b[i] = 0.0
        for j in range(n):
            if z[k, j] > 0.0 and a[j] != 0.0:
                v = a[j]
                if k > 0:
                    for i in range(widths[k - 1]):
                        b[i] += v * weights[k - 1, j, i]
                else:
                    for c in range(columns):
                        out[c] += v * first[j, c]
        if k > 0:
            for i in range(widths[k - 1]):
                a[i] = b[i]


@compiled
def back(p, zl, zh, alpha, k, coef, const, out, seen):
    """A line above sum of coef * relu(layer k) + const.

    Parameters
    ----------
    zl, zh, alpha
        Bounds of every argument and the slope of its lower line, (K, n).
    coef
        Of layer k's outputs, (n,); used up.
    out
        Gets the line's coefficients, (P,).
    seen
        Gets the coefficient that each unit had, (K, n).

    Returns
    -------
    float
        The line's constant.
    """
    widths = p.widths
    columns = p.first.shape[2]
    for c in range(columns):
        out[c] = 0.0
    for layer in range(k, -1, -1):
        n = widths[layer]
        # arguments' coefficients, into seen's neighbour: coef itself
        for j in range(n):
            a = coef[j]
            seen[layer, j] = a
            if a == 0.0:
                continue
            l, h = zl[layer, j], zh[layer, j]
            if h <= 0.0:
                coef[j] = 0.0
            elif l < 0.0:
                if a > 0.0:
                    s = h / (h - l)
                    const += a * (max(-s * l, (1.0 - s) * h) * p.up)
                    coef[j] = a * s
                else:
                    coef[j] = a * alpha[layer, j]
        if layer > 0:
            w, m = p.weights[layer - 1], widths[layer - 1]
            new = seen[layer - 1]
            for i in range(m):
                new[i] = 0.0
            for j in range(n):
                a = coef[j]
                if a != 0.0:
                    const += a * p.biases[layer - 1, j]
                    for i in range(m):
                        new[i] += a * w[j, i]
            for i in range(m):
                coef[i] = new[i]
        else:
            for j in range(n):
                a = coef[j]
                if a != 0.0:
                    const += a * p.offset[0, j]
                    for c in range(columns):
                        out[c] += a * p.first[0, j, c]
    return const


@compiled
def over_box(p, box, allowed, line):
    """The largest value of a line's terms over a box (without its constant)."""
    mode = box[MODE]
    start = p.start
    total = 0.0
    for i in range(p.lever.shape[1]):
        s = start[i]
        if p.lever[LABEL, i] > 0.0:
            best = -INF
            for j in range(s, start[i + 1]):
                if allowed[j] != 0 and line[j] > best:
                    best = line[j]
            total += best
        elif mode[i] != 2:
            g = line[s]
            v = g * box[HI, i] if g > 0.0 else g * box[LO, i]
            if mode[i] == 0:
                v = max(v, 0.0)
            total += v
    return total


@compiled
def within(p, box, allowed, line, const, top, budget, cut, cut_shares, cut_const, gain, choice):
    r"""An upper bound of a line over the part of a box that costs at most ``budget``, rounding included.

    With a cut u + constant >= 0 that holds at every feasible point of the node, and shares mu of the cost's
    maximum, these points have

    .. math:: r(u) = \sum_i c_i(u_i) + \mu_i top_i |u_i| - cut \cdot u \le C + constant = C',

    and for any theta >= 0 the line is at most :math:`\theta C' + \sum_i \max_{X_i} (g_i u_i - \theta
    r_i(u_i))`. The right side is
    convex in theta; its minimum is enclosed by tangents.

    Parameters
    ----------
    top
        The line's largest value over the box, constant included.
    cut, cut_shares, cut_const
        Zeros for the budget alone.
    gain
        Work, (P,).
    """
    start, fixed, linear, square = p.start, p.lever[FIXED], p.lever[LINEAR], p.lever[SQUARE]
    largest, label = p.lever[LARGEST], p.lever[LABEL]
    price, tops = p.column[COST], p.column[TOP]
    d = len(fixed)
    limit = budget + cut_const
    # at theta = 0: what the line's maximiser spends; and the least that any point spends
    spent, least, rest = 0.0, 0.0, const
    size, priced = abs(const), abs(budget) + abs(cut_const)
    for i in range(d):
        s = start[i]
        if label[i] > 0.0:
            best, own, cheap, at, far, most = -INF, 0.0, INF, 0.0, 0.0, 0.0
            for j in range(s, start[i + 1]):
                if allowed[j] != 0:
                    pays = price[j] + cut_shares[i] * tops[j]
                    far, most = max(far, abs(line[j])), max(most, pays + abs(cut[j]))
                    pays -= cut[j]
                    if line[j] > best or (line[j] == best and pays < own):
                        best, own = line[j], pays
                    if pays < cheap:
                        cheap, at = pays, line[j]
            spent += own
            least += cheap
            rest += at
            size += far
            priced += most
            continue
        least += respond(p, box, allowed, i, cut, 1.0, cut_shares[i], choice)
        rest += line[s] * choice[i]
        if box[MODE, i] == 2:
            continue
        l, h = box[LO, i], box[HI, i]
        g, rate = line[s], linear[i] + cut_shares[i] * largest[i]
        t = h if g > 0.0 else l
        if g == 0.0:
            t = choice[i]
        if box[MODE, i] == 0 and g * t <= 0.0:
            t = 0.0
        else:
            spent += fixed[i] + rate * abs(t) + square[i] * t * t - cut[s] * t
        far = max(abs(l), abs(h))
        size += abs(g) * far
        priced += fixed[i] + (rate + abs(cut[s])) * far + square[i] * far * far
    if spent <= limit or limit <= least:
        return top
    best = top
    left_t, left_v, left_s = 0.0, top, limit - spent
    right_t, right_v, right_s = 0.0, rest, limit - least
    for _ in range(4):
        theta = ((left_v - left_s * left_t) - (right_v - right_s * right_t)) / (right_s - left_s)
        if not theta > left_t:
            break
        for c in range(len(gain)):
            gain[c] = line[c] + theta * cut[c]
        value, cost = theta * limit + const, 0.0
        for i in range(d):
            value -= respond(p, box, allowed, i, gain, theta, theta * cut_shares[i], choice)
            v, s = choice[i], start[i]
            if label[i] > 0.0:
                s += int(v)
                cost += price[s] + cut_shares[i] * tops[s] - cut[s]
            elif v != 0.0 or box[MODE, i] == 1:
                cost += fixed[i] + (linear[i] + cut_shares[i] * largest[i]) * abs(v) + square[i] * v * v
                cost -= cut[s] * v
        bound = value + p.budget * (size + theta * priced) + p.tiny
        best = min(best, bound)
        slope = limit - cost
        expected = left_v + left_s * (theta - left_t)
        if slope < 0.0:
            left_t, left_v, left_s = theta, value, slope
        else:
            right_t, right_v, right_s = theta, value, slope
            if slope == 0.0:
                break
        if value - expected <= 0.02 * (top - expected):
            break
    return best
