r"""The network at a point, its gradient, and linear bounds over a box.

Each ReLU z -> max(0, z) with z in [l, h], l < 0 < h, lies below s z + t with s = h / (h - l), t = max(-s l,
(1 - s) h), and above alpha z for any alpha in [0, 1]. Put in from the last layer back to the levers, by the
sign of the coefficient, these give a line above (or below) any unit (Zhang et al. 2018,
https://arxiv.org/abs/1811.00866; Singh et al. 2019, https://doi.org/10.1145/3290354).

Layer 0 holds the causal units, whose arguments depend on the levers and on causal units of lower number;
layer 1 depends on the levers and on layer 0; later layers on the one before. Layer K + 1 is the logit.
"""

from __future__ import annotations

import math

from milp_recourse.compiled.elementary import RELU, draw_lines, size_at, steepness, value
from milp_recourse.compiled.layout import (
    ALPHA,
    AT_HIGH,
    AT_LOW,
    AT_REST,
    CHEAP,
    COST,
    FALL,
    FAR,
    FIXED,
    HI,
    LABEL,
    LARGEST,
    LEAST,
    LINEAR,
    LO,
    MODE,
    RISE,
    SCORE,
    SLOPE,
    SQUARE,
    TOP,
    ZH,
    ZL,
)
from milp_recourse.compiled.work import cleared
from milp_recourse.compiling import compiled, inner

INF = math.inf


@inner
def from_levers(p, k, count, u, z):
    """What the levers put into the first ``count`` arguments of layer k (0 or 1) at a point, into z."""
    first, offset = p.first[0, k], p.offset[0, k]
    for j in range(count):
        z[j] = offset[j]
    for i in range(len(u)):
        c = p.start[i]
        if p.lever[LABEL, i] > 0.0:
            c += int(u[i])
            for j in range(count):
                z[j] += first[j, c]
        elif u[i] != 0.0:
            v = u[i]
            for j in range(count):
                z[j] += first[j, c] * v


@compiled
def from_causes(p, z0):
    """The causal units' arguments z0, complete but for what they get from each other."""
    for m in range(p.widths[0]):
        for l in range(m):
            z0[m] += p.caused[0, 0, m, l] * (value(p.kind[l], z0[l], p.edge[l]) - p.resting[l])


@inner
def into_first(p, z0, count, z):
    """Add what the causal units put into the first ``count`` arguments of layer 1."""
    for m in range(p.widths[0]):
        v = value(p.kind[m], z0[m], p.edge[m]) - p.resting[m]
        if v != 0.0:
            for j in range(count):
                z[j] += p.caused[0, 1, j, m] * v


@inner
def later_layers(p, z):
    """From the values of layer 1 in z[1] to the logit; fills z, (K + 1, n)."""
    layers = len(p.widths)
    for k in range(1, layers - 1):
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
def logit_at(p, u, z, logit):
    """The logit at a point; z gets every unit's argument, (K + 1, n). ``logit`` is work, (n,)."""
    if p.widths[0] > 0:
        from_levers(p, 0, p.widths[0], u, z[0])
        from_causes(p, z[0])
    if len(p.widths) == 1:
        from_levers(p, 1, 1, u, logit)
        into_first(p, z[0], 1, logit)
        return logit[0]
    from_levers(p, 1, p.widths[1], u, z[1])
    into_first(p, z[0], p.widths[1], z[1])
    return later_layers(p, z)


@inner
def logit_size(p, u, z0, work):
    """The sum of absolute terms behind a point's logit; z0 are the causal units' arguments there. ``work`` is
    (3, n)."""
    widths = p.widths
    size, new, causes = work[0], work[1], work[2]
    sizes_at(p, u, z0, causes)
    layers = len(widths)
    count = widths[1] if layers > 1 else 1
    for j in range(count):
        size[j] = p.offset[1, 1, j]
        for m in range(widths[0]):
            if p.caused[1, 1, j, m] > 0.0:
                size[j] += p.caused[1, 1, j, m] * (causes[m] + abs(p.resting[m]))
    for i in range(len(u)):
        c = p.start[i]
        v = 1.0
        if p.lever[LABEL, i] > 0.0:
            c += int(u[i])
        else:
            v = abs(u[i])
        if v != 0.0:
            for j in range(count):
                size[j] += p.first[1, 1, j, c] * v
    for k in range(1, layers):
        m = widths[k + 1] if k + 1 < layers else 1
        for i in range(m):
            new[i] = abs(p.biases[k, i])
        for j in range(widths[k]):
            for i in range(m):
                new[i] += abs(p.turned[k, j, i]) * size[j]
        for i in range(m):
            size[i] = new[i]
    return size[0]


@compiled
def sizes_at(p, u, z0, causes):
    """The sums of absolute terms behind the causal units at a point, whose arguments are z0."""
    for m in range(p.widths[0]):
        total = p.offset[1, 0, m]
        for i in range(len(u)):
            c = p.start[i]
            if p.lever[LABEL, i] > 0.0:
                total += p.first[1, 0, m, c + int(u[i])]
            else:
                total += p.first[1, 0, m, c] * abs(u[i])
        for l in range(m):
            if p.caused[1, 0, m, l] > 0.0:
                total += p.caused[1, 0, m, l] * (causes[l] + abs(p.resting[l]))
        causes[m] = size_at(p.kind[m], z0[m], total, p.edge[m], p.line)


@inner
def gradient(p, z, out, work):
    """The logit's gradient per column, at the point whose arguments are in z. ``work`` is (3, n)."""
    widths = p.widths
    layers = len(widths)
    columns = len(out)
    cleared(out)
    a, b, causes = work[0], work[1], work[2]
    for m in range(widths[0]):
        causes[m] = 0.0
    if layers == 1:
        a[0] = 1.0
    for j in range(widths[layers - 1] if layers > 1 else 0):
        a[j] = p.weights[layers - 1, 0, j] if z[layers - 1, j] > 0.0 else 0.0
    for k in range(layers - 1, 1, -1):
        for i in range(widths[k - 1]):
            b[i] = 0.0
        for j in range(widths[k]):
            v = a[j]
            if v != 0.0:
                for i in range(widths[k - 1]):
                    b[i] += v * p.weights[k - 1, j, i]
        for i in range(widths[k - 1]):
            a[i] = b[i] if z[k - 1, i] > 0.0 else 0.0
    for j in range(widths[1] if layers > 1 else 1):
        v = a[j]
        if v != 0.0:
            for c in range(columns):
                out[c] += v * p.first[0, 1, j, c]
            for m in range(widths[0]):
                causes[m] += v * p.caused[0, 1, j, m]
    for m in range(widths[0] - 1, -1, -1):
        v = causes[m]
        if v != 0.0:
            v *= steepness(p.kind[m], z[0, m], p.edge[m])
        if v != 0.0:
            for c in range(columns):
                out[c] += v * p.first[0, 0, m, c]
            for l in range(m):
                causes[l] += v * p.caused[0, 0, m, l]


@inner
def relax(unit, k, first, count, up):
    """Slopes and constants of the lines of layer k's ReLUs ``first`` to ``count``, from the bounds of their
    arguments and the slopes in ALPHA."""
    zl, zh, alpha, slope, rise = unit[ZL, k], unit[ZH, k], unit[ALPHA, k], unit[SLOPE, k], unit[RISE, k]
    for j in range(first, count):
        l, h = zl[j], zh[j]
        rise[j] = 0.0
        if h <= 0.0:
            slope[j] = alpha[j] = 0.0
        elif l >= 0.0:
            slope[j] = alpha[j] = 1.0
        else:
            s = h / (h - l)
            slope[j], rise[j] = s, max(-s * l, (1.0 - s) * h) * up


@compiled
def relax_cause(n, unit, m):
    """Lines of one causal unit from the bounds of its argument; a curve's touch it in the middle."""
    if n.kind[m] == RELU:
        unit[FALL, 0, m] = 0.0
        relax(unit, 0, m, m + 1, n.up)
    else:
        draw_lines(unit, m, n.kind[m], n.edge[m], 0.5 * (unit[ZL, 0, m] + unit[ZH, 0, m]))


@inner
def relax_first(n, unit, relaxed):
    """Layer 1's lines over the columns and the causal units, into ``relaxed``."""
    columns, units = n.first.shape[3], n.widths[0]
    for side in range(2):
        slopes = unit[SLOPE, 1] if side == 0 else unit[ALPHA, 1]
        for j in range(n.widths[1]):
            slope = slopes[j]
            for c in range(columns):
                relaxed[side, j, c] = slope * n.first[0, 1, j, c]
            for m in range(units):
                relaxed[side, j, columns + m] = slope * n.caused[0, 1, j, m]
            relaxed[side, j, columns + units] = slope * n.offset[0, 1, j] + (
                unit[RISE, 1, j] if side == 0 else 0.0
            )


@inner
def second_lines(n, relaxed, second):
    """Lines above all arguments of layer 2 and above their negatives, over the columns and the causal units.

    The same as one at a time (:func:`back`), but for all units at once, which processors do several of at
    a time. A unit of layer 1 that is off is left out, and one that is on has the same line above and
    below.
    """
    count, turned = n.widths[2], n.turned[1]
    for c in range(relaxed.shape[2]):
        above, below = second[0, c], second[1, c]
        for i in range(count):
            above[i] = 0.0
            below[i] = 0.0
        for j in range(n.widths[1]):
            high, low, weights = relaxed[0, j, c], relaxed[1, j, c], turned[j]
            if high != low:
                for i in range(count):
                    one, other = weights[i] * high, weights[i] * low
                    above[i] += one if weights[i] > 0.0 else other
                    below[i] -= other if weights[i] > 0.0 else one
            elif high != 0.0:
                for i in range(count):
                    above[i] += weights[i] * high
                    below[i] -= weights[i] * high


@inner
def back_causes(n, unit, coef, const, out, seen):
    """Put in the causal units: a line above sum of coef * (causal unit - at rest) + const, added to ``out``.

    Parameters
    ----------
    coef
        (M,); used up.
    """
    for m in range(n.widths[0] - 1, -1, -1):
        a = coef[m]
        seen[m] = a
        if a == 0.0:
            continue
        slope = a * unit[SLOPE, 0, m] if a > 0.0 else a * unit[ALPHA, 0, m]
        const += a * (unit[RISE, 0, m] if a > 0.0 else unit[FALL, 0, m])
        const += slope * n.offset[0, 0, m] - a * n.resting[m]
        if slope != 0.0:
            for c in range(len(out)):
                out[c] += slope * n.first[0, 0, m, c]
            for l in range(m):
                coef[l] += slope * n.caused[0, 0, m, l]
    return const


@inner
def back(n, unit, relaxed, k, coef, const, out, causes):
    """A line above sum of coef * relu(layer k) + const, k >= 1, added to ``out``.

    Parameters
    ----------
    coef
        Of layer k's outputs, (n,); used up.
    out
        Gets the line's coefficients added, (P,).
    causes
        Coefficients of the causal units, to which are added, (n,); used up.

    Returns
    -------
    float
        The line's constant. ``unit[SCORE]`` gets the coefficient that each unit had.
    """
    seen, columns, units = unit[SCORE], len(out), n.widths[0]
    for layer in range(k, 1, -1):
        slope, rise, alpha, had = unit[SLOPE, layer], unit[RISE, layer], unit[ALPHA, layer], seen[layer]
        w, m = n.weights[layer - 1], n.widths[layer - 1]
        new = seen[layer - 1]
        for i in range(m):
            new[i] = 0.0
        for j in range(n.widths[layer]):
            a = coef[j]
            had[j] = a
            if a > 0.0:
                const += a * rise[j]
                a *= slope[j]
            else:
                a *= alpha[j]
            if a != 0.0:
                const += a * n.biases[layer - 1, j]
                for i in range(m):
                    new[i] += a * w[j, i]
        for i in range(m):
            coef[i] = new[i]
    had = seen[1]
    for j in range(n.widths[1]):
        a = coef[j]
        had[j] = a
        if a != 0.0:
            side = 0 if a > 0.0 else 1
            for c in range(columns):
                out[c] += a * relaxed[side, j, c]
            for m in range(units):
                causes[m] += a * relaxed[side, j, columns + m]
            const += a * relaxed[side, j, columns + units]
    return back_causes(n, unit, causes, const, out, seen[0]) if units > 0 else const


@inner
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
def only_squares(p):
    """Whether the cost is a sum of squares of numeric levers' changes."""
    for i in range(p.lever.shape[1]):
        other = p.lever[LABEL, i] + p.lever[LINEAR, i] + p.lever[LARGEST, i]
        if other > 0.0 or not p.lever[SQUARE, i] > 0.0:
            return False
    return True


@compiled
def squares_radius(p, box, cut, limit, inverse):
    r""":math:`C' + \sum cut_i^2 / 4 q_i` for :func:`within_squares`; 1 / q_i of every lever that moves
    into ``inverse``."""
    radius = limit
    for i in range(p.lever.shape[1]):
        inverse[i] = 1.0 / p.lever[SQUARE, i] if box[MODE, i] != 2 else 0.0
        radius += 0.25 * cut[p.start[i]] ** 2 * inverse[i]
    return radius


@inner
def within_squares(p, box, line, const, top, budget, cut, cut_const, radius, inverse):
    r""":func:`within` where the cost is a sum of squares: theta is the best one without the box, in closed
    form.

    With r(u) = sum of :math:`q_i u_i^2 - cut_i u_i \le C'` that is
    :math:`\theta = \tfrac12 \sqrt{\sum g_i^2 / q_i} / \sqrt{C' + \sum cut_i^2 / 4 q_i}`.
    """
    pull = 0.0
    for i in range(p.lever.shape[1]):
        pull += line[p.start[i]] ** 2 * inverse[i]
    if not (pull > 0.0 and radius > 0.0):
        return top, 0.0
    theta = 0.5 * math.sqrt(pull / radius)
    value, size = theta * (budget + cut_const) + const, abs(const) + theta * (abs(budget) + abs(cut_const))
    bend = 0.5 / theta
    for i in range(p.lever.shape[1]):
        if inverse[i] > 0.0:
            s, q = p.start[i], theta * p.lever[SQUARE, i]
            g, l, h = line[s] + theta * cut[s], box[LO, i], box[HI, i]
            if box[MODE, i] == 0:
                l, h = min(l, 0.0), max(h, 0.0)
            t = min(max(g * inverse[i] * bend, l), h)
            value += (g - q * t) * t
            far = max(-l, h, 0.0)
            size += (abs(line[s]) + theta * abs(cut[s]) + q * far) * far
    value += p.budget * size + p.tiny
    return (value, theta) if value < top else (top, 0.0)


@inner
def offers(p, box, allowed, cut, cut_shares, offer):
    r"""What :func:`within` asks of every line alike, per column into ``offer``, (6, P).

    Of a numeric lever r at the ends of its interval and at rest (inf: not in the box), where r is least, how
    much it is there, and the largest abs(u); of a label r (as at the lower end) and whether it is the
    cheapest.

    Returns
    -------
    (least, priced)
        The sums of the least r, and of the absolute terms behind the largest.
    """
    least, priced = 0.0, 0.0
    for i in range(p.lever.shape[1]):
        s, share = p.start[i], cut_shares[i]
        if p.lever[LABEL, i] > 0.0:
            cheap, most, at = INF, 0.0, s
            for j in range(s, p.start[i + 1]):
                offer[CHEAP, j] = 0.0
                if allowed[j] != 0:
                    pays = p.column[COST, j] + share * p.column[TOP, j]
                    most = max(most, pays + abs(cut[j]))
                    offer[AT_LOW, j] = pays - cut[j]
                    if offer[AT_LOW, j] < cheap:
                        cheap, at = offer[AT_LOW, j], j
            offer[CHEAP, at] = 1.0
            least += cheap
            priced += most
            continue
        offer[CHEAP, s] = offer[FAR, s] = offer[LEAST, s] = offer[AT_REST, s] = 0.0
        offer[AT_LOW, s] = offer[AT_HIGH, s] = INF
        if box[MODE, i] == 2:
            continue
        l, h, fixed, g = box[LO, i], box[HI, i], p.lever[FIXED, i], cut[s]
        rate, square = p.lever[LINEAR, i] + share * p.lever[LARGEST, i], p.lever[SQUARE, i]
        if box[MODE, i] == 1:
            offer[AT_REST, s] = fixed if l <= 0.0 <= h else INF
        offer[AT_LOW, s] = fixed + rate * abs(l) + square * l * l - g * l
        offer[AT_HIGH, s] = fixed + rate * abs(h) + square * h * h - g * h
        far = max(abs(l), abs(h))
        t = l if offer[AT_LOW, s] < offer[AT_HIGH, s] else h
        if square > 0.0:
            excess = max(g - rate, 0.0) if g > 0.0 else min(g + rate, 0.0)
            t = min(max(0.5 * excess / square, l), h)
        value = fixed + rate * abs(t) + square * t * t - g * t
        if offer[AT_REST, s] < value:
            t, value = 0.0, offer[AT_REST, s]
        offer[CHEAP, s], offer[LEAST, s], offer[FAR, s] = t, value, far
        least += value
        priced += abs(fixed) + (rate + abs(g)) * far + square * far * far
    return least, priced


@inner
def within(p, box, allowed, line, const, top, budget, cut, cut_shares, cut_const, offer, least, priced):
    r"""An upper bound of a line over the part of a box that costs at most ``budget``, rounding included.

    With a cut u + constant >= 0 that holds at every feasible point of the node, and shares mu of the cost's
    maximum, these points have

    .. math:: r(u) = \sum_i c_i(u_i) + \mu_i top_i |u_i| - cut \cdot u \le C + constant = C',

    and for any theta >= 0 the line is at most
    :math:`\theta C' + \sum_i \max_{X_i} (g_i u_i - \theta r_i(u_i))`; without a square a maximum is at an end
    or at rest. The right side is convex in theta; its minimum is enclosed by tangents.

    Parameters
    ----------
    top
        The line's largest value over the box, constant included.
    cut, cut_shares, cut_const
        Zeros for the budget alone.
    offer, least, priced
        From :func:`offers`.

    Returns
    -------
    (bound, theta)
        The upper bound, and the theta that it came from (0: the box alone).
    """
    start, square, label = p.start, p.lever[SQUARE], p.lever[LABEL]
    lo, hi, mode, d = box[LO], box[HI], box[MODE], p.lever.shape[1]
    limit = budget + cut_const
    # at theta = 0: what the line's maximiser spends; and the line where least is spent
    spent, rest, size = 0.0, const, abs(const)
    for i in range(d):
        s = start[i]
        if label[i] > 0.0:
            best, own, far = -INF, 0.0, 0.0
            for j in range(s, start[i + 1]):
                if allowed[j] != 0:
                    rest += line[j] * offer[CHEAP, j]
                    far = max(far, abs(line[j]))
                    if line[j] > best or (line[j] == best and offer[AT_LOW, j] < own):
                        best, own = line[j], offer[AT_LOW, j]
            spent += own
            size += far
            continue
        g = line[s]
        rest += g * offer[CHEAP, s]
        size += abs(g) * offer[FAR, s]
        if mode[i] == 2:
            continue
        if g == 0.0:
            spent += offer[LEAST, s]
        elif mode[i] == 0 and (hi[i] <= 0.0 if g > 0.0 else lo[i] >= 0.0):
            continue
        else:
            spent += offer[AT_HIGH, s] if g > 0.0 else offer[AT_LOW, s]
    if spent <= limit or limit <= least:
        return top, 0.0
    best, chosen = top, 0.0
    left_t, left_v, left_s = 0.0, top, limit - spent
    right_t, right_v, right_s = 0.0, rest, limit - least
    for _ in range(4):
        theta = ((left_v - left_s * left_t) - (right_v - right_s * right_t)) / (right_s - left_s)
        if not theta > left_t:
            break
        value, cost = theta * limit + const, 0.0
        for i in range(d):
            s = start[i]
            if label[i] > 0.0:
                most, own = -INF, 0.0
                for j in range(s, start[i + 1]):
                    v = line[j] - theta * offer[AT_LOW, j]
                    if allowed[j] != 0 and v > most:
                        most, own = v, offer[AT_LOW, j]
                value += most
                cost += own
                continue
            own = offer[AT_REST, s]
            most = -theta * own
            if mode[i] == 2:
                continue
            if square[i] > 0.0:
                rate = p.lever[LINEAR, i] + cut_shares[i] * p.lever[LARGEST, i]
                g = line[s] / theta + cut[s]
                excess = max(g - rate, 0.0) if g > 0.0 else min(g + rate, 0.0)
                t = min(max(0.5 * excess / square[i], lo[i]), hi[i])
                pays = p.lever[FIXED, i] + rate * abs(t) + square[i] * t * t - cut[s] * t
                v = line[s] * t - theta * pays
                if v > most:
                    most, own = v, pays
            else:
                low, high = (
                    line[s] * lo[i] - theta * offer[AT_LOW, s],
                    line[s] * hi[i] - theta * offer[AT_HIGH, s],
                )
                if low > most:
                    most, own = low, offer[AT_LOW, s]
                if high > most:
                    most, own = high, offer[AT_HIGH, s]
            value += most
            cost += own
        bound = value + p.budget * (size + theta * priced) + p.tiny
        if bound < best:
            best, chosen = bound, theta
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
    return best, chosen
