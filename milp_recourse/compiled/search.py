"""The tree: best bound first, every node's box and bounds in one pool, resumable after any number of
nodes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.compiled.descent import DIVE, constrained, descend, hops, pull_back, snap, try_point
from milp_recourse.compiled.elementary import LOG, largest_size
from milp_recourse.compiled.interior import solve_node
from milp_recourse.compiled.layout import (
    ALLOWANCE,
    ANCHOR,
    BEST,
    BEST_COST,
    CASE,
    CEILING,
    CHOICE,
    CUT,
    CUT_CONST,
    CUT_SHARES,
    GAIN,
    GAINED,
    GRID,
    HI,
    INSIDE,
    KNOTS,
    LABEL,
    LINE,
    LO,
    MODE,
    OTHER,
    POINT,
    PROMISE,
    PROMISED,
    ROOM,
    SHIFT,
    SPLIT,
    START,
    STUCK_BOUND,
    ZB,
    ZH,
    ZL,
    Z,
)
from milp_recourse.compiled.levers import knot_inside, respond
from milp_recourse.compiled.network import logit_at, logit_size
from milp_recourse.compiled.node import choose, examine, hold, sizes_over_box, take_cut, tighten
from milp_recourse.compiled.numerics import BELOW, PIVOT
from milp_recourse.compiled.problem import Problems, case
from milp_recourse.compiled.work import copied
from milp_recourse.compiling import by_reference, compiled, entry, refer
from milp_recourse.result import RELATIVE_GAP as GAP

SEED = np.uint64(0x9E3779B97F4A7C15)
"""Of the random numbers: the same for everybody."""

INF = math.inf
Array = NDArray[np.float64]

DONE, MORE, FOUND, ASK, ASK_LAST, FULL = 0, 1, 2, 3, 4, 5
"""Why :func:`run` returns: nothing is open below the target; it has examined its share of nodes; it found
a cheaper action; it asks for an exact judgement of ``w.at[ANCHOR]``, which rounding keeps it from (and
which, last, is all that a node held); the pool is full."""


@by_reference
class Pool(NamedTuple):
    """Nodes. ``state`` holds: open nodes, free slots, nodes examined, nodes when a dive was last made, the
    slot whose point was asked for, the slot to go on with (one more than it; 0 for the one of least bound).

    Attributes
    ----------
    heap, free
        Slots of the open nodes as a heap by bound, and slots to use again, (2, size).
    bound
        Every slot's bound.
    case
        Every slot's configuration.
    box, allowed, unit
        What a node is; of the units their bounds and signs.
    cut, shares, const
        Its parent's cut, (size, P), (size, d) and (size,); a constant of inf for none.
    promise
        How far too high the logit could be in its parent, and what the split promised, (size, 2).
    stuck
        The least bound of nodes that could neither be closed nor split, (1,).
    """

    heap: NDArray[np.int64]
    free: NDArray[np.int64]
    bound: Array
    case: NDArray[np.int64]
    box: Array
    allowed: NDArray[np.uint8]
    unit: Array
    cut: Array
    shares: Array
    const: Array
    promise: Array
    stuck: Array
    state: NDArray[np.int64]


MUCH = 2.0**-7
"""A node is examined again under a new target where the best cost has fallen by so much; else it is split."""

OFTEN = 32
"""Without an action, one is searched for whenever the number of nodes has grown by one in so many."""

STRAIGHT = 32
"""Without an action, so many nodes in a row are each a child of the one before, then so many best first."""

FADES = 1.0 - 2.0**-9
"""What a node's gain still counts for when the next one is noted."""

RESERVE = 70
"""Free slots that a node wants to find."""


def pool(p: Problems, size: int) -> Pool:
    """Room for so many open nodes, at least for the roots; :func:`plant` puts them in."""
    size = max(size, len(p.box) + RESERVE + 2)
    columns = int(p.start[-1])
    layers, n = len(p.widths), p.weights.shape[1]
    return Pool(
        np.zeros(size, dtype=np.int64),
        np.zeros(size, dtype=np.int64),
        np.zeros(size),
        np.zeros(size, dtype=np.int64),
        np.zeros((size, *p.box.shape[1:])),
        np.zeros((size, columns), dtype=np.uint8),
        np.zeros((size, 3, layers, n)),
        np.zeros((size, columns)),
        np.zeros((size, p.lever.shape[1])),
        np.full(size, np.inf),
        np.zeros((size, 2)),
        np.full(1, np.inf),
        np.zeros(6, dtype=np.int64),
    )


def larger(old: Pool, size: int) -> Pool:
    """The same nodes with more room."""
    had = len(old.heap)
    parts: Any = (np.zeros((size, *a.shape[1:]), a.dtype) if len(a) == had else a for a in old)
    grown = Pool(*parts)
    for name in Pool._fields:
        a, b = getattr(old, name), getattr(grown, name)
        if a is not b:
            b[:had] = a
    free = int(old.state[1])
    grown.free[:free] = old.free[:free]
    grown.free[free : free + size - had] = np.arange(size - 1, had - 1, -1)
    grown.state[1] = free + size - had
    return grown


@compiled
def _push(t, slot):
    """Put an open node into the heap."""
    k = t.state[0]
    t.state[0] = k + 1
    v = t.bound[slot]
    while k > 0:
        parent = (k - 1) // 2
        if t.bound[t.heap[parent]] <= v:
            break
        t.heap[k] = t.heap[parent]
        k = parent
    t.heap[k] = slot


@compiled
def _pop(t):
    """Take the node of least bound out of the heap."""
    top = t.heap[0]
    n = t.state[0] - 1
    t.state[0] = n
    if n > 0:
        _sink(t, t.heap[n], 0, n)
    return top


@compiled
def _take(t, slot):
    """Take a node out of the heap, wherever it is."""
    n = t.state[0] - 1
    k = n
    while t.heap[k] != slot:  # it is young: near the end
        k -= 1
    t.state[0] = n
    if k == n:
        return
    slot = t.heap[n]
    v = t.bound[slot]
    while k > 0 and t.bound[t.heap[(k - 1) // 2]] > v:
        t.heap[k] = t.heap[(k - 1) // 2]
        k = (k - 1) // 2
    _sink(t, slot, k, n)


@compiled
def _sink(t, slot, k, n):
    """Put a node at place k of a heap of n, or below."""
    v = t.bound[slot]
    while True:
        child = 2 * k + 1
        if child >= n:
            break
        if child + 1 < n and t.bound[t.heap[child + 1]] < t.bound[t.heap[child]]:
            child += 1
        if t.bound[t.heap[child]] >= v:
            break
        t.heap[k] = t.heap[child]
        k = child
    t.heap[k] = slot


@compiled
def _load(t, slot, w):
    w.scalar[CASE] = t.case[slot]
    copied(t.box[slot], w.box)
    copied(t.allowed[slot], w.allowed)
    copied(t.unit[slot], w.unit[:3])
    copied(t.cut[slot], w.col[CUT])
    copied(t.shares[slot], w.at[CUT_SHARES])
    w.scalar[CUT_CONST] = t.const[slot]


@compiled
def _store(t, w, bound):
    """The node in w as a new open one."""
    n = t.state[1] - 1
    t.state[1] = n
    slot = t.free[n]
    t.case[slot] = int(w.scalar[CASE])
    copied(w.box, t.box[slot])
    copied(w.allowed, t.allowed[slot])
    copied(w.unit[:3], t.unit[slot])
    copied(w.col[CUT], t.cut[slot])
    copied(w.at[CUT_SHARES], t.shares[slot])
    t.const[slot] = w.scalar[CUT_CONST]
    t.promise[slot, 0], t.promise[slot, 1] = w.scalar[ROOM], w.scalar[PROMISE]
    t.bound[slot] = bound
    t.state[5] = slot + 1
    _push(t, slot)


@compiled
def _learn(t, slot, w, closed):
    """Note what the split that made a node has taken of the logit's room, and had promised."""
    room, promise = t.promise[slot, 0], t.promise[slot, 1]
    if not (room > 0.0 and promise != 0.0):
        return
    for k in range(2):
        w.scalar[GAINED + k] *= FADES
        w.scalar[PROMISED + k] *= FADES
    kind = 0 if promise < 0.0 else 1
    left = 0.0 if closed else min(max(w.scalar[ROOM], 0.0), room)
    w.scalar[GAINED + kind] += 1.0 - left / room
    w.scalar[PROMISED + kind] += abs(promise)


@compiled
def _release(t, slot):
    t.free[t.state[1]] = slot
    t.state[1] += 1


@entry
def plant(pp, w, t, allowance, ceiling):
    """Make pool and memory those of a new applicant: every configuration's root is open, nothing is found.

    Parameters
    ----------
    allowance
        The part of the tolerance that is no share of the cost.
    ceiling
        More than any point of the root boxes costs.
    """
    w.scalar[:] = 0.0
    w.scalar[BEST_COST], w.scalar[ALLOWANCE], w.scalar[CEILING] = INF, allowance, ceiling
    w.random[0] = SEED
    w.row[:] = 0.0
    w.at[:] = 0.0
    w.unit[:] = 0.0
    w.col[:] = 0.0
    w.ball[:] = 0.0
    t.state[:] = 0
    t.stuck[0] = INF
    cases, size = len(pp.box), len(t.heap)
    for k in range(size):
        t.free[k] = size - 1 - k
    t.state[1] = size
    for c in range(cases):
        p = refer(case(pp, c))
        _root(p, w)
        p.hair[0] = 3.0 * p.line * largest_logit(p, w) + p.tiny
        p.hair[1] = _largest_ball(p, w)
        w.scalar[CASE], w.scalar[CUT_CONST] = c, INF
        _store(t, w, p.base[0])
    t.state[5] = 0


@compiled
def _root(p, w):
    """The root node of a configuration into w."""
    copied(p.box, w.box)
    copied(p.allowed, w.allowed)
    w.unit[SPLIT] = 0.0
    for k in range(len(p.widths)):
        for j in range(p.widths[k]):
            w.unit[ZL, k, j], w.unit[ZH, k, j] = -INF, INF
    for m in range(p.widths[0]):
        if p.kind[m] == LOG:
            w.unit[SPLIT, 0, m] = 1.0


@compiled
def largest_logit(p, w):
    """The sum of absolute terms behind the logit of any point of the root box, at most."""
    sizes, new, causes = w.layer[0], w.layer[1], w.layer[2]
    layers = len(p.widths)
    _largest_causes(p, w)
    for i in range(p.widths[1] if layers > 1 else 1):
        sizes[i] = p.offset[1, 1, i] + sizes_over_box(p, p.box, p.allowed, p.first[1, 1, i])
        for m in range(p.widths[0]):
            sizes[i] += p.caused[1, 1, i, m] * (causes[m] + abs(p.resting[m]))
    for k in range(1, layers):
        count = p.widths[k + 1] if k + 1 < layers else 1
        for i in range(count):
            new[i] = abs(p.biases[k, i])
        for j in range(p.widths[k]):
            for i in range(count):
                new[i] += abs(p.turned[k, j, i]) * sizes[j]
        for i in range(count):
            sizes[i] = new[i]
    return sizes[0]


@compiled
def _largest_causes(p, w):
    """Of the causal units, into row 2 of w.layer."""
    causes = w.layer[2]
    for m in range(p.widths[0]):
        causes[m] = p.offset[1, 0, m] + sizes_over_box(p, p.box, p.allowed, p.first[1, 0, m])
        for l in range(m):
            causes[m] += p.caused[1, 0, m, l] * (causes[l] + abs(p.resting[l]))
        causes[m] = largest_size(p.kind[m], causes[m], p.edge[m])


@compiled
def _largest_ball(p, w):
    """What rounding can do to the ball's value at any point of the root box, at most twice over."""
    _largest_causes(p, w)
    total = 0.0
    for f in range(len(p.noise)):
        size = sizes_over_box(p, p.box, p.allowed, p.residual[1, f])
        for m in range(p.widths[0]):
            size += p.residual_caused[1, f, m] * (w.layer[2, m] + abs(p.resting[m]))
        total += p.precision[f] * size * (2.0 * size + abs(p.noise[f]))
        if p.bent and f == len(p.noise) - 1:
            total += size + abs(p.excess)
    return 8.0 * p.line * total + p.tiny


@compiled
def target_of(w):
    """Actions that cost this need not be ruled out: half the tolerance below the best, or the ceiling."""
    best = w.scalar[BEST_COST]
    if not best < INF:
        return w.scalar[CEILING]
    return best - 0.5 * BELOW * (GAP * best + w.scalar[ALLOWANCE])


@compiled
def _inward(p, w, u):
    """Move a relaxed optimum towards the corner where the first row is largest, until it is accepted.

    At a node without relaxation error it fails by rounding only, so a hair suffices. If nothing is
    accepted, ``u`` gets the point on the way with the largest logit.
    """
    d = p.lever.shape[1]
    corner, trial, line = w.at[ANCHOR], w.at[OTHER], w.col[LINE]
    if try_point(p, w, u):
        return True
    highest, best = logit_at(p, u, w.unit[Z], w.layer[0]), 0.0
    copied(w.rows[0], line)
    for i in range(d):
        respond(p, w.box, w.allowed, i, line, 0.0, 0.0, corner)
    step = PIVOT
    for _ in range(23):
        for i in range(d):
            held = p.lever[LABEL, i] > 0.0 or p.lever[GRID, i] > 0.0
            trial[i] = u[i] if held else u[i] + step * (corner[i] - u[i])
        if try_point(p, w, trial):
            return True
        logit = logit_at(p, trial, w.unit[Z], w.layer[0])
        if logit > highest:
            highest, best = logit, step
        step *= 4.0
    for i in range(d):
        if not (p.lever[LABEL, i] > 0.0 or p.lever[GRID, i] > 0.0):
            u[i] += best * (corner[i] - u[i])
    snap(p, u)
    return False


@compiled
def _deeper(p, w, count, ball, target, steps):
    """Solve a node's convex problem again, its points kept further and further inside, until one is
    accepted."""
    found, inside = False, w.row[INSIDE]
    for _ in range(4):
        for r in range(count):
            inside[r] *= 64.0
        solve_node(p, w, w.box, w.allowed, count, ball, INF, w.at[CHOICE], w.at[OTHER], steps, True)
        if try_point(p, w, w.at[CHOICE]):
            found = True
            break
    for r in range(count):
        inside[r] = 0.0
    last = solve_node(p, w, w.box, w.allowed, count, ball, target, w.at[POINT], w.at[OTHER], steps, False)
    copied(w.at[POINT], w.at[CHOICE])
    return found, last


@compiled
def _settled(p, w):
    """Whether nothing but continuous values is open in the node."""
    mode = w.box[MODE]
    start = p.start
    for i in range(p.lever.shape[1]):
        if p.lever[LABEL, i] > 0.0:
            left = 0
            for c in range(start[i], start[i + 1]):
                left += w.allowed[c] != 0
            if left > 1:
                return False
        elif mode[i] == 0 or (p.lever[GRID, i] > 0.0 and mode[i] == 1 and w.box[LO, i] < w.box[HI, i]):
            return False
        elif p.lever[KNOTS, i] > 0.0 and mode[i] == 1:  # its cost is bent, or only bounded
            low, high = w.box[LO, i], w.box[HI, i]
            if low < high and (p.has_largest or knot_inside(p, i, low, high, 0.0) < INF):
                return False
    return True


@compiled
def _single(p, w):
    """Whether the node is one point (then in w.at[ANCHOR])."""
    lo = w.box[LO]
    mode = w.box[MODE]
    anchor = w.at[ANCHOR]
    start = p.start
    for i in range(p.lever.shape[1]):
        if p.lever[LABEL, i] > 0.0:
            left = 0
            for c in range(start[i], start[i + 1]):
                if w.allowed[c] != 0:
                    left += 1
                    anchor[i] = float(c - start[i])
            if left != 1:
                return False
        elif mode[i] == 2:
            anchor[i] = 0.0
        elif mode[i] == 0 or lo[i] != w.box[HI, i]:
            return False
        else:
            anchor[i] = lo[i]
    return True


@compiled
def _doubtful(p, w):
    """Whether rounding may hide that a leaf's point (then in w.at[ANCHOR]) is accepted."""
    u = w.at[ANCHOR]
    copied(w.at[CHOICE], u)
    logit = logit_at(p, u, w.unit[Z], w.layer[0])
    return logit >= p.need_low - (3.0 * p.line * logit_size(p, u, w.unit[Z, 0], w.layer) + p.tiny)


@entry
def run(pp, w, t, share, lines, steps, dives, patient, careful, around, starts, samples, kept, rounds):
    """Examine nodes until there is something to say to Python.

    Parameters
    ----------
    around
        The configuration to search for good actions in first
        (:func:`~milp_recourse.compiled.descent.descend`, with what follows), -1 for none.
    share
        Most nodes to examine in this call.
    dives
        Search for actions from relaxed optima whenever the nodes have grown by a share of one in so many.
    patient
        Whether to split on where nothing is relaxed and yet no action was found; else such a node is stuck.
    careful
        Whether to return with every cheaper action.

    Returns
    -------
    int
        :data:`DONE`, :data:`MORE`, :data:`FOUND`, :data:`ASK`, :data:`ASK_LAST` or :data:`FULL`.
    """
    choice, point = w.at[CHOICE], w.at[POINT]
    if around >= 0:
        before = w.scalar[BEST_COST]
        w.scalar[CASE] = around
        descend(refer(case(pp, around)), w, starts, samples, kept, rounds)
        if careful and w.scalar[BEST_COST] < before:
            return FOUND
    for _ in range(share):
        if t.state[0] == 0 or t.bound[t.heap[0]] >= target_of(w):
            return DONE
        if t.state[1] < RESERVE:
            return FULL
        if t.state[5] > 0 and t.state[2] % (2 * STRAIGHT) < STRAIGHT and not w.scalar[BEST_COST] < INF:
            slot = t.state[5] - 1
            _take(t, slot)
        else:
            slot = _pop(t)
        t.state[5] = 0
        _load(t, slot, w)
        p = refer(case(pp, t.case[slot]))
        parent, base = t.bound[slot], p.base[0]
        target = target_of(w) - base
        target += p.cost * (abs(target) + base)
        t.state[2] += 1
        bound, last, count, unsure, ball = examine(p, w, target, lines, steps)
        _learn(t, slot, w, bound >= target)
        if bound >= target:
            _release(t, slot)
            continue
        bound = max(bound + base - p.cost * (bound + base), parent)
        before = w.scalar[BEST_COST]
        # an action out of the relaxed optimum
        copied(point, choice)
        leaf = unsure == 0 and _settled(p, w)
        if unsure > 0:
            try_point(p, w, choice)
        elif not constrained(p):
            _inward(p, w, choice)
        elif not try_point(p, w, choice) and leaf:
            _, last = _deeper(p, w, count, ball, target, steps)
        better = w.scalar[BEST_COST] < before
        if better and (leaf or w.scalar[BEST_COST] < before * (1.0 - MUCH) or bound >= target_of(w)):
            if not leaf:
                copied(w.at[BEST], choice)
                pull_back(p, w, choice)
            t.bound[slot] = bound
            _push(t, slot)  # again, under the new target
            if careful:
                return FOUND
            continue
        if _single(p, w):
            _release(t, slot)
            w.scalar[STUCK_BOUND] = bound
            return ASK_LAST
        if leaf and t.state[4] != slot + 1 and _doubtful(p, w):
            t.state[4] = slot + 1  # asked; next time it is split
            t.bound[slot] = bound
            _push(t, slot)
            return ASK
        if leaf and not patient:
            _release(t, slot)
            t.stuck[0] = min(t.stuck[0], bound)
            continue
        copied(point, w.at[START])
        tighten(p, w, last, target, count)
        take_cut(p, w, count)
        kind, index, value = choose(p, w, count, unsure)
        _release(t, slot)
        if unsure == 0 and hold(p, w):  # the point is not in the node: with the sign as a row another is
            w.scalar[PROMISE] = 0.0
            _store(t, w, bound)
            continue
        if kind == 0 and _single(p, w):  # the reduced costs left one point
            w.scalar[STUCK_BOUND] = bound
            return ASK_LAST
        _split(p, w, t, kind, index, value, bound)
        often = dives if before < INF else max(dives, OFTEN)
        rest = max(often, t.state[3])  # nodes from one dive to the next: more and more
        if unsure > 0 and t.state[2] >= t.state[3] + max(1, rest // often):  # now that the node is not needed
            t.state[3] = t.state[2]
            hops(p, w, p.box, p.allowed, w.at[START], 10 if dives == 1 else DIVE)
            if w.scalar[BEST_COST] < before:
                copied(w.at[BEST], choice)
                pull_back(p, w, choice)
            elif p.row.shape[1] > 0 and not before < INF:  # a corner of rows may be all there is
                copied(w.at[START], w.at[ANCHOR])
                return ASK
        if careful and w.scalar[BEST_COST] < before:
            return FOUND
    return MORE


@compiled
def _split(p, w, t, kind, index, value, bound):
    """The children of the node in w as open nodes; see :func:`~milp_recourse.compiled.node.choose`."""
    split, zl, zh = w.unit[SPLIT], w.unit[ZL], w.unit[ZH]
    lo, hi, mode, allowed = w.box[LO], w.box[HI], w.box[MODE], w.allowed
    n = w.unit.shape[2]
    if kind == 0:
        t.stuck[0] = min(t.stuck[0], bound)
    elif kind == 1:
        k, j = index // n, index % n
        l, h = zl[k, j], zh[k, j]
        split[k, j] = 1
        zl[k, j] = 0.0
        _store(t, w, bound)
        first = t.state[5]
        split[k, j] = -1
        zl[k, j], zh[k, j] = l, 0.0
        _store(t, w, bound)
        zh[k, j] = h
        if w.unit[ZB, k, j] > 0.0:
            t.state[5] = first
    elif kind == 5:
        l, h, was = zl[0, index], zh[0, index], int(split[0, index])
        zl[0, index], split[0, index] = value, was | 1
        _store(t, w, bound)
        zl[0, index], zh[0, index], split[0, index] = l, value, was | 2
        _store(t, w, bound)
        zh[0, index] = h
    elif kind == 2:
        l, h = lo[index], hi[index]
        grid = p.lever[GRID, index]
        cut, above = value, value
        if grid > 0.0:
            cut = np.floor((value - p.lever[SHIFT, index]) / grid) * grid + p.lever[SHIFT, index]
            above = cut + grid
        hi[index] = cut
        if l <= cut:
            _store(t, w, bound)
        below = t.state[5]
        hi[index], lo[index] = h, above
        if above <= h:
            _store(t, w, bound)
            if below > 0 and w.at[POINT, index] <= cut:
                t.state[5] = below
    elif kind == 3:
        mode[index] = 2
        _store(t, w, bound)
        mode[index] = 1
        _store(t, w, bound)
    else:  # one label, or any of the others
        first, end = p.start[index], p.start[index + 1]
        own, others = first + int(value), 0
        for c in range(first, end):
            w.col[GAIN, c] = 0.0
            if c != own and allowed[c] != 0:
                allowed[c] = 0
                w.col[GAIN, c] = 1.0
                others += 1
        _store(t, w, bound)
        if others > 0:
            for c in range(first, end):
                allowed[c] = 1 if w.col[GAIN, c] == 1.0 else 0
            _store(t, w, bound)
