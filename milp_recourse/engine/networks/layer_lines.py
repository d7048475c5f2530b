"""Lines above many arguments of one layer at once.

Putting in one line after the other takes two to three times as long as products of matrices do. Letters are
those of :mod:`~milp_recourse.engine.networks.work`.
"""

from __future__ import annotations

from milp_recourse.engine.compiling import compiled
from milp_recourse.engine.networks.work import AHEAD, cleared


@compiled
def layer_lines(p, w, k, j):
    """Lines above the next open arguments of layer k >= 2, from unit j on, and above their negatives, by
    turns, over the columns and the causal units, into w.ahead.

    The same as one at a time (:func:`~milp_recourse.engine.networks.linear_bounds.back`), but for rounding.
    """
    unit, ahead, const, count = w.unit, w.ahead, w.ahead.const, 0
    for i in range(j, p.widths[k]):
        if 2 * count < AHEAD and unit.low[k, i] < 0.0 < unit.high[k, i]:
            const[2 * count], const[2 * count + 1] = p.biases[k - 1, i], -p.biases[k - 1, i]
            ahead.units[count] = i
            count += 1
    n = (2 * count + 7) // 8 * 8  # what is beyond the lines is not read
    for u in range(p.widths[k - 1]):
        row, weights = ahead.coef[(k - 1) % 2, u], p.turned[k - 1, u]
        for q in range(count):
            weight = weights[ahead.units[q]]
            row[2 * q], row[2 * q + 1] = weight, -weight
    lines, through, units = ahead.lines, ahead.through, ahead.units
    cleared(lines)
    for layer in range(k - 1, 0, -1):
        active, bent = _through(p, w, layer, n)
        if bent > 0:
            _add_products(lines, unit.upper.shape[2], unit.upper[layer], ahead.bent, bent, ahead.above, n)
        if layer > 1:
            before = ahead.coef[(layer - 1) % 2]
            cleared(before)
            _add_products(before, p.widths[layer - 1], p.weights[layer - 1], units, active, through, n)
        else:
            rest, causes = lines[len(lines) - p.widths[0] :], p.caused[0, 1]
            _add_products(lines, p.first.shape[3], p.first[0, 1], units, active, through, n)
            _add_products(rest, p.widths[0], causes, units, active, through, n)


@compiled
def _through(p, w, layer, n):
    """From the coefficients of a layer's outputs, those of its arguments and of its bent lines, into
    w.ahead.through and w.ahead.above; how many arguments and bent lines have any. Constants are added."""
    unit, ahead, const, coef = w.unit, w.ahead, w.ahead.const, w.ahead.coef[layer % 2]
    count, bent = 0, 0
    for u in range(p.widths[layer]):
        slope, alpha, rise = unit.slope[layer, u], unit.alpha[layer, u], unit.rise[layer, u]
        bias = p.biases[layer - 1, u] if layer > 1 else p.offset[0, 1, u]
        if unit.bent[layer, u] > 0.0:
            slope, rise, ahead.bent[bent] = 0.0, unit.base[layer, u], u
            for r in range(n):
                ahead.above[bent, r] = max(coef[u, r], 0.0)
            bent += 1
        for r in range(n):
            high, low = max(coef[u, r], 0.0), min(coef[u, r], 0.0)
            v = high * slope + low * alpha
            ahead.through[count, r] = v
            const[r] += high * rise + v * bias
        ahead.units[count] = u
        count += slope != 0.0 or alpha != 0.0
    return count, bent


@compiled
def _add_products(out, m, a, of, count, f, n):
    """Add to n numbers of each of the first m rows of ``out`` those of the first ``count`` rows of f, which
    has room for three more, times the numbers a[of[q], i]. Shapes: out (m, AHEAD), a (units, m), of
    (count + 3,), f (count + 3, AHEAD); all may have more rows.

    Of four rows four products at a time are added, while numbers are in registers.
    """
    for q in range(count, count + 3):
        of[q] = of[0]
        cleared(f[q])
    for i in range(0, m - 3, 4):
        o0, o1, o2, o3 = out[i], out[i + 1], out[i + 2], out[i + 3]
        for q in range(0, count, 4):
            a0, a1, a2, a3 = a[of[q]], a[of[q + 1]], a[of[q + 2]], a[of[q + 3]]
            f0, f1, f2, f3 = f[q], f[q + 1], f[q + 2], f[q + 3]
            s0, s1, s2, s3 = a0[i], a1[i], a2[i], a3[i]
            t0, t1, t2, t3 = a0[i + 1], a1[i + 1], a2[i + 1], a3[i + 1]
            u0, u1, u2, u3 = a0[i + 2], a1[i + 2], a2[i + 2], a3[i + 2]
            v0, v1, v2, v3 = a0[i + 3], a1[i + 3], a2[i + 3], a3[i + 3]
            for r in range(n):
                o0[r] += s0 * f0[r] + s1 * f1[r] + s2 * f2[r] + s3 * f3[r]
                o1[r] += t0 * f0[r] + t1 * f1[r] + t2 * f2[r] + t3 * f3[r]
                o2[r] += u0 * f0[r] + u1 * f1[r] + u2 * f2[r] + u3 * f3[r]
                o3[r] += v0 * f0[r] + v1 * f1[r] + v2 * f2[r] + v3 * f3[r]
    for i in range(m - m % 4, m):
        one = out[i]
        for q in range(0, count, 4):
            s0, s1, s2, s3 = a[of[q], i], a[of[q + 1], i], a[of[q + 2], i], a[of[q + 3], i]
            f0, f1, f2, f3 = f[q], f[q + 1], f[q + 2], f[q + 3]
            for r in range(n):
                one[r] += s0 * f0[r] + s1 * f1[r] + s2 * f2[r] + s3 * f3[r]
