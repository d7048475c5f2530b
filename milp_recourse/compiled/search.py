"""The tree: best bound first, every node's box and bounds in one pool, resumable after any number of
nodes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.compiled.cache import compiled, entry
from milp_recourse.compiled.descent import hops, pull_back, snap, try_point
from milp_recourse.compiled.layout import (
    ANCHOR,
    BEST,
    BEST_COST,
    CHOICE,
    CUT,
    CUT_CONST,
    CUT_SHARES,
    GAIN,
    GRID,
    HI,
    LABEL,
    LINE,
    LO,
    MODE,
    OTHER,
    POINT,
    SPLIT,
    STUCK_BOUND,
    ZH,
    ZL,
    Z,
)
from milp_recourse.compiled.levers import respond
from milp_recourse.compiled.network import logit_at, logit_size
from milp_recourse.compiled.node import choose, examine, take_cut, tighten
from milp_recourse.compiled.numerics import PIVOT
from milp_recourse.compiled.problem import Problem

INF = math.inf
Array = NDArray[np.float64]

DONE, MORE, FOUND, ASK, ASK_LAST, FULL = 0, 1, 2, 3, 4, 5
"""Why :func:`run` returns: nothing is open below the target; it has examined its share of nodes; it found a
cheaper
action; it asks for an exact judgement of ``w.at[ANCHOR]``, which rounding keeps it from (and which, last, is
all that a
node held); the pool is full."""


class Pool(NamedTuple):
    """Nodes. ``state`` holds: open nodes, free slots, nodes examined, nodes when a dive was last made, the
    slot
    whose point was asked for.

    Attributes
    ----------
    heap, free
        Slots of the open nodes as a heap by bound, and slots to use again, (2, size).
    bound
        Every slot's bound.
    box, allowed, unit
        What a node is; of the units their bounds and signs.
    cut, shares, const
        Its parent's cut, (size, P), (size, d) and (size,); a constant of inf for none.
    stuck
        The least bound of nodes that could neither be closed nor split, (1,).
    """

    heap: NDArray[np.int64]
    free: NDArray[np.int64]
    bound: Array
    box: Array
    allowed: NDArray[np.uint8]
    unit: Array
    cut: Array
    shares: Array
    const: Array
    stuck: Array
    state: NDArray[np.int64]


def pool(p: Problem, size: int) -> Pool:
    """Room for so many open nodes, the root in it."""
    columns = int(p.start[-1])
    layers, n = max(1, len(p.widths)), max(p.first.shape[1], p.weights.shape[1])
    made = Pool(
        np.zeros(size, dtype=np.int64),
        np.zeros(size, dtype=np.int64),
        np.zeros(size),
        np.zeros((size, *p.box.shape)),
        np.zeros((size, columns), dtype=np.uint8),
        np.zeros((size, 3, layers, n)),
        np.zeros((size, columns)),
        np.zeros((size, p.lever.shape[1])),
        np.full(size, np.inf),
        np.full(1, np.inf),
        np.zeros(5, dtype=np.int64),
    )
    made.box[0], made.allowed[0] = p.box, p.allowed
    for k, width in enumerate(p.widths):
        made.unit[0, ZL, k, :width] = -np.inf
        made.unit[0, ZH, k, :width] = np.inf
    made.free[: size - 1] = np.arange(size - 1, 0, -1)
    made.state[:2] = 1, size - 1
    return made


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
        slot = t.heap[n]
        v = t.bound[slot]
        k = 0
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
    return top


@compiled
def _load(t, slot, w):
    w.box[:] = t.box[slot]
    w.allowed[:] = t.allowed[slot]
    w.unit[:3] = t.unit[slot]
    w.col[CUT] = t.cut[slot]
    w.at[CUT_SHARES] = t.shares[slot]
    w.scalar[CUT_CONST] = t.const[slot]


@compiled
def _store(t, w, bound):
    """The node in w as a new open one."""
    n = t.state[1] - 1
    t.state[1] = n
    slot = t.free[n]
    t.box[slot] = w.box
    t.allowed[slot] = w.allowed
    t.unit[slot] = w.unit[:3]
    t.cut[slot] = w.col[CUT]
    t.shares[slot] = w.at[CUT_SHARES]
    t.const[slot] = w.scalar[CUT_CONST]
    t.bound[slot] = bound
    _push(t, slot)


@compiled
def _release(t, slot):
    t.free[t.state[1]] = slot
    t.state[1] += 1


@compiled
def _inward(p, w, u):
    """Move a relaxed optimum towards the corner where the first row is largest, until it is accepted.

    At a node without relaxation error it fails by rounding only, so a hair suffices. If nothing is accepted,
    ``u`` gets
    the point on the way with the largest logit.
    """
    d = p.lever.shape[1]
    corner, trial, line = w.at[ANCHOR], w.at[OTHER], w.col[LINE]
    if try_point(p, w, u):
        return True
    highest, best = logit_at(p, u, w.unit[Z]), 0.0
    for c in range(w.col.shape[1]):
        line[c] = w.rows[0, c]
    for i in range(d):
        respond(p, w.box, w.allowed, i, line, 0.0, 0.0, corner)
    step = PIVOT
    for _ in range(23):
        for i in range(d):
            held = p.lever[LABEL, i] > 0.0 or p.lever[GRID, i] > 0.0
            trial[i] = u[i] if held else u[i] + step * (corner[i] - u[i])
        if try_point(p, w, trial):
            return True
        logit = logit_at(p, trial, w.unit[Z])
        if logit > highest:
            highest, best = logit, step
        step *= 4.0
    for i in range(d):
        if not (p.lever[LABEL, i] > 0.0 or p.lever[GRID, i] > 0.0):
            u[i] += best * (corner[i] - u[i])
    snap(p, u)
    return False


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
    for i in range(len(u)):
        u[i] = w.at[CHOICE, i]
    logit = logit_at(p, u, w.unit[Z])
    return logit >= p.need_low - (3.0 * p.line * logit_size(p, u, w.layer) + p.tiny)


@entry
def run(p, w, t, target, share, lines, steps, patient):
    """Examine nodes until there is something to say to Python.

    Parameters
    ----------
    target
        Nodes whose bound reaches it are closed.
    share
        Most nodes.
    patient
        Whether to split on where nothing is relaxed and yet no action was found; else such a node is stuck.

    Returns
    -------
    int
        :data:`DONE`, :data:`MORE`, :data:`FOUND`, :data:`ASK`, :data:`ASK_LAST` or :data:`FULL`.
    """
    split_ = w.unit[SPLIT]
    zh = w.unit[ZH]
    zl = w.unit[ZL]
    hi = w.box[HI]
    lo = w.box[LO]
    mode = w.box[MODE]
    choice = w.at[CHOICE]
    point = w.at[POINT]
    gain = w.col[GAIN]
    allowed = w.allowed
    start = p.start
    d = p.lever.shape[1]
    n = w.unit.shape[2]
    for _ in range(share):
        if t.state[0] == 0:
            return DONE
        if t.bound[t.heap[0]] >= target:
            return DONE
        if t.state[1] < 70:
            return FULL
        slot = _pop(t)
        _load(t, slot, w)
        parent = t.bound[slot]
        t.state[2] += 1
        bound, last, count, unsure = examine(p, w, target, lines, steps)
        bound = max(bound, parent)
        if bound >= target:
            _release(t, slot)
            continue
        before = w.scalar[BEST_COST]
        # an action out of the relaxed optimum
        for i in range(d):
            choice[i] = point[i]
        leaf = unsure == 0 and _settled(p, w)
        if unsure == 0:
            _inward(p, w, choice)
        elif not try_point(p, w, choice) and t.state[2] >= 2 * t.state[3]:
            t.state[3] = t.state[2]
            for i in range(d):
                choice[i] = point[i]
            hops(p, w, p.box, p.allowed, choice, 10)
        if w.scalar[BEST_COST] < before:
            for i in range(d):
                choice[i] = w.at[BEST, i]
            if not leaf:
                pull_back(p, w, choice)
            t.bound[slot] = bound
            _push(t, slot)  # again, under the new target
            return FOUND
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
        tighten(p, w, last, target, count)
        take_cut(p, w, count)
        kind, index, value = choose(p, w, count, unsure)
        _release(t, slot)
        if kind == 0:
            t.stuck[0] = min(t.stuck[0], bound)
        elif kind == 1:
            k, j = index // n, index % n
            l, h = zl[k, j], zh[k, j]
            split_[k, j] = 1
            zl[k, j] = 0.0
            _store(t, w, bound)
            split_[k, j] = -1
            zl[k, j], zh[k, j] = l, 0.0
            _store(t, w, bound)
            zh[k, j] = h
        elif kind == 2:
            l, h = lo[index], hi[index]
            grid = p.lever[GRID, index]
            cut, above = value, value
            if grid > 0.0:
                cut = math.floor(value / grid) * grid
                above = cut + grid
            hi[index] = cut
            if l <= cut:
                _store(t, w, bound)
            hi[index], lo[index] = h, above
            if above <= h:
                _store(t, w, bound)
        elif kind == 3:
            mode[index] = 2
            _store(t, w, bound)
            mode[index] = 1
            _store(t, w, bound)
        else:  # one label, or any of the others
            s = start[index]
            own = s + int(value)
            others = 0
            for c in range(s, start[index + 1]):
                if c != own and allowed[c] != 0:
                    allowed[c] = 2
                    others += 1
            for c in range(s, start[index + 1]):
                if allowed[c] == 2:
                    allowed[c] = 0
                    gain[c] = 2.0
                else:
                    gain[c] = 0.0
            _store(t, w, bound)
            if others > 0:
                for c in range(s, start[index + 1]):
                    allowed[c] = 1 if gain[c] == 2.0 else 0
                _store(t, w, bound)
    return MORE
