r"""One node: a box, signs of ReLUs, and what can be proven about its cheapest accepted point.

Order: cut off what the target does not pay for; bound every open ReLU over the box and over what costs at
most the target;
a line above the logit; the least cost where line and signs allow it, by a Lagrangian; a second line with the
slopes that are tight at
the relaxed optimum; then what to split.
"""

from __future__ import annotations

import math

from milp_recourse.compiled.cache import compiled
from milp_recourse.compiled.interior import solve_node
from milp_recourse.compiled.layout import (
    ALPHA,
    CHOICE,
    CONSTS,
    COST,
    CUT,
    CUT_CONST,
    CUT_SHARES,
    FIXED,
    GAIN,
    GRID,
    HI,
    IDLE,
    LABEL,
    LARGEST,
    LINE,
    LINEAR,
    LO,
    MODE,
    NOTHING,
    POINT,
    PRICES,
    SCORE,
    SHARE,
    SHARES,
    SIZE,
    SPLIT,
    SQUARE,
    TOP,
    ZB,
    ZH,
    ZL,
    ZS,
)
from milp_recourse.compiled.levers import contract, respond
from milp_recourse.compiled.network import back, later_layers, over_box, within
from milp_recourse.compiled.numerics import COARSE

INF = math.inf


@compiled
def _sizes_first(p, box, allowed, zs):
    """Sums of absolute terms behind the first layer's arguments, over a box."""
    first_size = p.first[1]
    start = p.start
    n = zs.shape[1]
    for j in range(n):
        zs[0, j] = p.offset[1, j] if j < p.first.shape[1] else 0.0
    for i in range(p.lever.shape[1]):
        s = start[i]
        if p.lever[LABEL, i] > 0.0:
            for j in range(p.first.shape[1]):
                most = 0.0
                for c in range(s, start[i + 1]):
                    if allowed[c] != 0:
                        most = max(most, first_size[j, c])
                zs[0, j] += most
        elif box[MODE, i] != 2:
            far = max(abs(box[LO, i]), abs(box[HI, i]))
            for j in range(p.first.shape[1]):
                zs[0, j] += first_size[j, s] * far


@compiled
def _sizes_next(p, zl, zh, zs, k):
    """Sums of absolute terms behind layer k (the logit's for k = K) from those of the layer before."""
    widths = p.widths
    layers = len(widths)
    m = widths[k] if k < layers else 1
    logit = 0.0
    for i in range(m):
        total = abs(p.biases[k - 1, i])
        for j in range(widths[k - 1]):
            if zh[k - 1, j] > 0.0:
                v = zs[k - 1, j]
                if zl[k - 1, j] < 0.0:
                    v += abs(zl[k - 1, j])
                total += abs(p.weights[k - 1, i, j]) * v
        if k < layers:
            zs[k, i] = total
        else:
            logit = total
    return logit


@compiled
def _line(p, w, k, i, side):
    """A line above side * (argument i of layer k), k = K for the logit, into w.col[LINE]; returns its
    constant.
    """
    if k == 0:
        for c in range(w.col.shape[1]):
            w.col[LINE, c] = side * p.first[0, i, c]
        return side * p.offset[0, i]
    for j in range(p.widths[k - 1]):
        w.layer[2, j] = side * p.weights[k - 1, i, j]
    return back(
        p,
        w.unit[ZL],
        w.unit[ZH],
        w.unit[ALPHA],
        k - 1,
        w.layer[2],
        side * p.biases[k - 1, i],
        w.col[LINE],
        w.unit[SCORE],
    )


@compiled
def _bound_layers(p, w, budget):
    """Bounds of every open unit's argument; False where the node is empty. Returns the logit's size too."""
    zh = w.unit[ZH]
    zl = w.unit[ZL]
    layers = len(p.widths)
    box, allowed, line, gain, choice = w.box, w.allowed, w.col[LINE], w.col[GAIN], w.at[CHOICE]
    cut, shares, nothing, idle = w.col[CUT], w.at[CUT_SHARES], w.col[NOTHING], w.at[IDLE]
    cut_const = w.scalar[CUT_CONST] if budget < INF else INF
    _sizes_first(p, w.box, w.allowed, w.unit[ZS])
    for k in range(layers):
        if k > 0:
            _sizes_next(p, zl, zh, w.unit[ZS], k)
        for j in range(p.widths[k]):
            if zl[k, j] >= 0.0 or zh[k, j] <= 0.0:
                continue
            slack = p.line * w.unit[ZS, k, j] + p.tiny
            for side in (1.0, -1.0):
                const = _line(p, w, k, j, side) + slack
                top = over_box(p, w.box, w.allowed, w.col[LINE]) + const
                if top > 0.0 and budget < INF:
                    if cut_const < INF:  # it implies the budget, nearly, and is much tighter
                        top = within(
                            p, box, allowed, line, const, top, budget, cut, shares, cut_const, gain, choice
                        )
                    else:
                        top = within(
                            p, box, allowed, line, const, top, budget, nothing, idle, 0.0, gain, choice
                        )
                if side > 0.0:
                    zh[k, j] = min(zh[k, j], top)
                else:
                    zl[k, j] = max(zl[k, j], -top)
                if zh[k, j] <= 0.0:
                    break
            if zl[k, j] > zh[k, j]:
                return False
            if zl[k, j] < 0.0 < zh[k, j]:
                w.unit[ALPHA, k, j] = 1.0 if zh[k, j] > -zl[k, j] else 0.0
    return True


@compiled
def _keep_row(p, w, const, r, count):
    """Take w.col[LINE] + const >= 0 as row ``count``, with the units' coefficients; 0 dropped, 1
    taken, -1 empty.
    """
    if over_box(p, w.box, w.allowed, w.col[LINE]) + const < 0.0:
        return -1
    for c in range(w.col.shape[1]):
        w.rows[count, c] = w.col[LINE, c]
    w.row[CONSTS, count] = const
    return 1


@compiled
def _relaxed_arguments(p, w):
    """Every unit's argument at the relaxed optimum (labels by their shares), into w.unit[ZB]; returns
    the logit.
    """
    zb = w.unit[ZB]
    point = w.at[POINT]
    share = w.col[SHARE]
    first = p.first[0]
    start = p.start
    n = p.first.shape[1]
    for j in range(n):
        zb[0, j] = p.offset[0, j]
    for i in range(p.lever.shape[1]):
        s = start[i]
        if p.lever[LABEL, i] > 0.0:
            for c in range(s, start[i + 1]):
                if share[c] != 0.0:
                    for j in range(n):
                        zb[0, j] += first[j, c] * share[c]
        elif point[i] != 0.0:
            for j in range(n):
                zb[0, j] += first[j, s] * point[i]
    return later_layers(p, zb)


@compiled
def _reached(w, r, p):
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


@compiled
def examine(p, w, target, lines, steps):
    """Bound the node in w.box, w.allowed, w.unit[ZL], w.unit[ZH], w.unit[SPLIT] (all of which get tighter).

    Parameters
    ----------
    target
        What costs as much needs no proof.
    lines
        Most lines above the logit.
    steps
        Most interior-point steps.

    Returns
    -------
    (bound, last, rows, open)
        The proven bound (inf: nothing here below the target), what the last prices prove, the number of rows
        behind
        these, the number of open ReLUs.
    """
    alpha = w.unit[ALPHA]
    score = w.unit[SCORE]
    split = w.unit[SPLIT]
    zh = w.unit[ZH]
    zl = w.unit[ZL]
    zs = w.unit[ZS]
    seen = w.seen
    widths = p.widths
    layers = len(widths)
    if not contract(p, w.box, w.allowed, target):
        return INF, INF, 0, 0
    if not _bound_layers(p, w, target):
        return INF, INF, 0, 0
    logit_size = _sizes_next(p, zl, zh, zs, layers) if layers > 0 else zs[0, 0]
    unsure = 0
    for k in range(layers):
        for j in range(widths[k]):
            if zl[k, j] < 0.0 < zh[k, j]:
                unsure += 1
    slack = p.line * (logit_size + abs(p.need_low)) + p.tiny
    count = 0
    const = _line(p, w, layers, 0, 1.0) - p.need_low + slack
    if _keep_row(p, w, const, 0, 0) < 0:
        return INF, INF, 0, 0
    for k in range(layers):
        for j in range(widths[k]):
            seen[0, 0, k, j] = score[k, j]
            seen[1, 0, k, j] = w.unit[ALPHA, k, j]
    count = 1
    for k in range(layers):
        for j in range(widths[k]):
            if split[k, j] == 0 or count >= w.row.shape[1] - lines:
                continue
            side = 1.0 if split[k, j] > 0 else -1.0
            const = _line(p, w, k, j, side) + p.line * zs[k, j] + p.tiny
            lowest = const
            for c in range(w.col.shape[1]):
                w.col[GAIN, c] = -w.col[LINE, c]
            lowest -= over_box(p, w.box, w.allowed, w.col[GAIN])
            if lowest >= 0.0:
                continue
            if _keep_row(p, w, const, 0, count) < 0:
                return INF, INF, 0, 0
            for t in range(layers):
                for q in range(widths[t]):
                    seen[0, count, t, q] = score[t, q] if t < k else 0.0
                    seen[1, count, t, q] = w.unit[ALPHA, t, q]
            count += 1
    bound = value = -INF
    for turn in range(lines):
        value = solve_node(
            p,
            w.box,
            w.allowed,
            w.rows,
            w.row[CONSTS],
            count,
            target,
            w,
            w.row[PRICES],
            w.at[SHARES],
            w.at[POINT],
            w.at[CHOICE],
            steps,
        )
        bound = max(bound, value)
        if bound >= target or turn + 1 == lines or unsure == 0:
            break
        _relaxed_arguments(p, w)
        changed = False
        for k in range(layers):
            for j in range(widths[k]):
                if zl[k, j] < 0.0 < zh[k, j]:
                    a = 1.0 if w.unit[ZB, k, j] > 0.0 else 0.0
                    if a != alpha[k, j]:
                        changed = True
                        alpha[k, j] = a
        if not changed:
            break
        const = _line(p, w, layers, 0, 1.0) - p.need_low + slack
        if _keep_row(p, w, const, 0, count) < 0:
            return INF, INF, 0, 0
        if not _reached(w, count, p) < 0.0:
            break
        for k in range(layers):
            for j in range(widths[k]):
                seen[0, count, k, j] = score[k, j]
                seen[1, count, k, j] = w.unit[ALPHA, k, j]
        count += 1
    return max(bound, 0.0), value, count, unsure


@compiled
def take_cut(p, w, count):
    """What the rows at the last prices say together: cut u + constant >= 0 wherever the node is feasible."""
    cut, size, shares = w.col[CUT], w.col[SIZE], w.at[SHARES]
    prices, consts = w.row[PRICES], w.row[CONSTS]
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
        v = w.row[PRICES, r]
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


@compiled
def choose(p, w, count, unsure):
    """What to split: (kind, index, value); kind 0 nothing, 1 a sign, 2 an interval at value, 3 a mode, 4 a
    label.

    For a sign the index is layer * width + unit. A unit's score is what the bound loses there: the
    rows' prices times the distance between its line and its value at the relaxed optimum.
    """
    zh = w.unit[ZH]
    zl = w.unit[ZL]
    hi = w.box[HI]
    lo = w.box[LO]
    mode_ = w.box[MODE]
    point = w.at[POINT]
    share = w.col[SHARE]
    prices_ = w.row[PRICES]
    fixed = p.lever[FIXED]
    label_ = p.lever[LABEL]
    cost = p.column[COST]
    rows_ = w.rows
    start = p.start
    widths = p.widths
    layers = len(widths)
    _relaxed_arguments(p, w)
    priced = False  # else the relaxed optimum costs nothing, and the logit's line alone counts
    for r in range(count):
        if prices_[r] > 0.0:
            priced = True
    best, kind, index, value = 0.0, 0, 0, 0.0
    n = w.unit.shape[2]
    for k in range(layers):
        for j in range(widths[k]):
            l, h = zl[k, j], zh[k, j]
            if not l < 0.0 < h:
                continue
            z = w.unit[ZB, k, j]
            s = h / (h - l)
            relu = max(z, 0.0)
            above = max(s * (z - l) - relu, 0.0)
            total = 0.0
            for r in range(count):
                price = prices_[r] if priced else (1.0 if r == 0 else 0.0)
                if price > 0.0:
                    a = w.seen[0, r, k, j]
                    if a > 0.0:
                        total += price * a * above
                    elif a < 0.0:
                        total -= price * a * (relu - w.seen[1, r, k, j] * z)
            if total > best:
                best, kind, index = total, 1, k * n + j
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
        if grid > 0.0 and mode_[i] == 1 and lo[i] < hi[i]:
            part = t / grid - math.floor(t / grid)
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
    if kind != 0:
        return kind, index, value
    # nothing is lost at the relaxed optimum: open units and levers that are not settled yet
    most = 0.0
    for k in range(layers):
        for j in range(widths[k]):
            l, h = zl[k, j], zh[k, j]
            if l < 0.0 < h and min(-l, h) > most:
                most, kind, index = min(-l, h), 1, k * n + j
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
