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
    LINEAR,
    LO,
    MODE,
    SQUARE,
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
    widths = p.widths
    layers = len(widths)
    if layers == 0:
        return z[0, 0]
    for k in range(layers):
        n = widths[k]
        m = widths[k + 1] if k + 1 < layers else 1
        w = p.weights[k]
        for i in range(m):
            total = p.biases[k, i]
            for j in range(n):
                if z[k, j] > 0.0:
                    total += w[i, j] * z[k, j]
            if k + 1 < layers:
                z[k + 1, i] = total
            else:
                return total
    return 0.0


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
def within(p, box, allowed, line, const, top, budget, floor, choice):
    r"""An upper bound of a line over the part of a box that costs at most ``budget``, rounding included.

    For any theta >= 0, max of line over it <= theta C + sum_i max over X_i of (g_i u_i - theta c_i(u_i)). The
    right side is convex in theta; its minimum is enclosed by tangents.

    Parameters
    ----------
    top
        The line's largest value over the box, constant included.
    floor
        The least any point of the box costs, (a sum of levers' least costs).
    """
    fixed = p.lever[FIXED]
    label = p.lever[LABEL]
    linear = p.lever[LINEAR]
    square = p.lever[SQUARE]
    cost_ = p.column[COST]
    hi = box[HI]
    lo = box[LO]
    mode = box[MODE]
    start = p.start
    if not budget < INF:
        return top
    d = p.lever.shape[1]
    # the slope at theta = 0: what the maximiser over the box costs
    spent = 0.0
    size = abs(const)
    priced = 0.0
    for i in range(d):
        s = start[i]
        if label[i] > 0.0:
            best, own, far = -INF, 0.0, 0.0
            for j in range(s, start[i + 1]):
                if allowed[j] != 0:
                    far = max(far, abs(line[j]))
                    priced += cost_[j]
                    if line[j] > best or (line[j] == best and cost_[j] < own):
                        best, own = line[j], cost_[j]
            spent += own
            size += far
        elif mode[i] != 2:
            g = line[s]
            t = hi[i] if g > 0.0 else lo[i]
            if g == 0.0:
                t = min(max(0.0, lo[i]), hi[i])
            v = fixed[i] + linear[i] * abs(t) + square[i] * t * t
            if mode[i] == 0 and g * t <= 0.0:
                v = 0.0
            spent += v
            far = max(abs(lo[i]), abs(hi[i]))
            size += abs(g) * far
            priced += fixed[i] + linear[i] * far + square[i] * far * far
    if spent <= budget:
        return top
    best = top
    # left tangent: value top, slope budget - spent < 0; right: all levers at their least cost
    left_t, left_v, left_s = 0.0, top, budget - spent
    right_s = budget - floor
    if right_s <= 0.0:
        return top
    right_v = -INF  # the right tangent's value at right_t; unknown yet
    right_t = 0.0
    # value on the ray where every lever rests: sum of g at the least cost
    rest = const
    for i in range(d):
        s = start[i]
        if label[i] > 0.0:
            cheap, at = INF, 0.0
            for j in range(s, start[i + 1]):
                if allowed[j] != 0 and cost_[j] < cheap:
                    cheap, at = cost_[j], line[j]
            rest += at
        elif mode[i] == 1:
            rest += line[s] * min(max(0.0, lo[i]), hi[i])
    right_v = rest
    for _ in range(6):
        theta = ((left_v - left_s * left_t) - (right_v - right_s * right_t)) / (right_s - left_s)
        if not theta > left_t:
            break
        value = theta * budget + const
        cost = 0.0
        for i in range(d):
            value -= respond(p, box, allowed, i, line, theta, 0.0, choice)
            if label[i] > 0.0:
                cost += cost_[start[i] + int(choice[i])]
            elif choice[i] != 0.0 or mode[i] == 1:
                v = choice[i]
                cost += fixed[i] + linear[i] * abs(v) + square[i] * v * v
        bound = value + p.budget * (size + theta * (priced + abs(budget))) + p.tiny
        best = min(best, bound)
        slope = budget - cost
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
