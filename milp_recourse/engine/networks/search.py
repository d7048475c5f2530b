"""The tree: best bound first, every node's box and bounds in one pool, resumable after any number of
nodes.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.compiling import ROUND, allocated, by_reference, clock, compiled, entry, refer
from milp_recourse.engine.networks import layout as at
from milp_recourse.engine.networks import splitting
from milp_recourse.engine.networks.descent import (
    DIVE,
    descend,
    hops,
    inside,
    logit_slack,
    pull_back,
    try_point,
)
from milp_recourse.engine.networks.elementary import LOG
from milp_recourse.engine.networks.linear_bounds import logit_at
from milp_recourse.engine.networks.node import examine, take_cut, tighten
from milp_recourse.engine.networks.numerics import BELOW, COARSE
from milp_recourse.engine.networks.problem_arrays import MOST_LINES, Problems, case, person
from milp_recourse.engine.networks.rows import on_edge
from milp_recourse.engine.networks.work import Work, copied
from milp_recourse.problem.result import RELATIVE_GAP as GAP

SEED = np.uint64(0x9E3779B97F4A7C15)
"""Of the random numbers: the same for everybody."""

INF = math.inf
Array = NDArray[np.float64]

COST, CASE, BOUND, NODES, TICKS = range(5)
"""What :func:`run` says of a search: the best action's cost and configuration, the bound, nodes, and ticks of
the clock (:func:`~milp_recourse.engine.compiling.clock`)."""

DONE, MORE, ASK, FULL, EDGE = range(5)
"""Why a search returns: nothing is open below the target; it has examined its share of nodes; it asks for
an exact judgement of the point ``w.at[ANCHOR]``, because rounding leaves open whether that is feasible; the
pool is full; it asks the same of a node on which no unit of the network is open and whose largest logit is
within rounding of what is needed. That node is open again, in the slot ``free[state[1]]``."""

CLOSED = 2
"""In ``asked``, of a node that is found to hold nothing feasible while it is open."""


@by_reference
class Pool(NamedTuple):
    """The open nodes, each in a slot of the arrays.

    ``state`` holds seven numbers: how many nodes are open, how many slots are free, how many nodes have been
    examined, how many had been when a dive was last made, 1 + the slot of the child stored last (0: none),
    whether the one open node stands for the configurations' roots, which are not made yet, and how often good
    actions have been searched for beside the nodes.

    Attributes
    ----------
    heap, free
        Slots of the open nodes as a heap by bound, and slots to use again.
    bound
        Every slot's bound.
    case
        Every slot's configuration.
    box, allowed, unit
        A node's box, its allowed labels, and its units' bounds and signs.
    cut, shares, const
        Its parent's cut; zeros for none.
    promise
        How far above what it must be its parent's logit line reached, what the split promised, its column in
        ``learned``.
    asked
        Whether its point was given to Python to judge, or :data:`CLOSED`.
    stuck
        The least bound of nodes that could neither be closed nor split.
    """

    heap: Annotated[NDArray[np.int64], "size"]
    free: Annotated[NDArray[np.int64], "size"]
    bound: Annotated[Array, "size"]
    case: Annotated[NDArray[np.int64], "size"]
    box: Annotated[Array, "size", 3, "d"]
    allowed: Annotated[NDArray[np.uint8], "size", "P"]
    unit: Annotated[Array, "size", 3, "layers", "n"]
    cut: Annotated[Array, "size", "P"]
    shares: Annotated[Array, "size", "d"]
    const: Annotated[Array, "size"]
    promise: Annotated[Array, "size", 3]
    asked: Annotated[NDArray[np.uint8], "size"]
    stuck: Annotated[Array, 1]
    state: Annotated[NDArray[np.int64], 7]


OFTEN = 32
"""Without an action, a dive is made whenever the number of nodes has grown by 1 / OFTEN since the last one;
with one, whenever it has grown by half (few levers) or doubled."""

STEPS = 40
"""Most interior-point steps of a node."""

BETWEEN_LOOKS = 1024
"""Nodes between two looks at the clock, times the sum of the units of the widest layer and a quarter of the
square of the number of levers."""

STRAIGHT = 32
"""Without an action, so many nodes in a row are each a child of the one before, then so many best first."""

RESERVE = 70
"""Free slots that there must be before a node is examined."""


def pool(p: Problems, size: int) -> Pool:
    """Room for so many open nodes, at least for the roots; :func:`run` puts these in."""
    size, layers, n = max(size, len(p.box) + RESERVE + 2), len(p.widths), p.weights.shape[1]
    return allocated(Pool, size=size, d=p.lever.shape[1], P=int(p.start[-1]), layers=layers, n=n)


def larger(old: Pool, size: int) -> Pool:
    """The same nodes with more room."""
    had, free = len(old.heap), int(old.state[1])
    room: Any = [(a, np.zeros((size - had, *a.shape[1:]), a.dtype)) for a in old]
    grown = Pool(*(np.concatenate(both) if len(both[0]) == had else both[0] for both in room))
    grown.free[free : free + size - had] = np.arange(size - 1, had - 1, -1)
    grown.state[1] = free + size - had
    return grown


@compiled
def _place(t, slot, k, n):
    """Put a node into a heap of n nodes at place k, and move it up or down to where its bound belongs."""
    v = t.bound[slot]
    while k > 0 and not t.bound[t.heap[(k - 1) // 2]] <= v:
        t.heap[k] = t.heap[(k - 1) // 2]
        k = (k - 1) // 2
    while 2 * k + 1 < n:
        child = 2 * k + 1
        if child + 1 < n and t.bound[t.heap[child + 1]] < t.bound[t.heap[child]]:
            child += 1
        if t.bound[t.heap[child]] >= v:
            break
        t.heap[k] = t.heap[child]
        k = child
    t.heap[k] = slot


@compiled
def _push(t, bound):
    """Open the node in the slot that is used next: a new one, or the one that :func:`_next` took last."""
    t.state[0] += 1
    t.state[1] -= 1
    slot = t.free[t.state[1]]
    t.bound[slot] = bound
    _place(t, slot, t.state[0] - 1, t.state[0])


@compiled
def _next(t, w):
    """Take the next node out of the heap, and free its slot: that of least bound, or without an action, in
    turns of :data:`STRAIGHT`, a child of the one before."""
    k, n, young = 0, t.state[0] - 1, t.state[4] - 1
    if young >= 0 and t.state[2] % (2 * STRAIGHT) < STRAIGHT and not w.scalar[at.BEST_COST] < INF:
        k = n
        while t.heap[k] != young:  # it is near the end
            k -= 1
    slot = t.heap[k]
    t.free[t.state[1]] = slot
    t.state[0], t.state[1], t.state[4] = n, t.state[1] + 1, 0
    if k < n:
        _place(t, t.heap[n], k, n)
    return slot


@compiled
def _load(t, slot, w):
    """Copy a stored node to w."""
    w.scalar[at.CASE] = t.case[slot]
    copied(t.box[slot], w.box)
    copied(t.allowed[slot], w.allowed)
    copied(t.unit[slot], w.unit[:3])
    copied(t.cut[slot], w.col[at.CUT])
    copied(t.shares[slot], w.at[at.CUT_SHARES])
    w.scalar[at.CUT_CONST] = t.const[slot]


@compiled
def _store(t, w, bound):
    """Store the node in w as a new open node."""
    slot = t.free[t.state[1] - 1]
    t.case[slot] = int(w.scalar[at.CASE])
    copied(w.box, t.box[slot])
    copied(w.allowed, t.allowed[slot])
    copied(w.unit[:3], t.unit[slot])
    copied(w.col[at.CUT], t.cut[slot])
    copied(w.at[at.CUT_SHARES], t.shares[slot])
    t.const[slot] = w.scalar[at.CUT_CONST]
    splitting.note_promise(w, t.promise[slot])
    t.asked[slot], t.state[4] = 0, slot + 1
    _push(t, bound)


def begin(p: Problems, w: Work, t: Pool) -> None:
    """A new applicant's search: nothing is found, and one open node, of bound 0, stands for all roots."""
    w.scalar[:], w.learned[:], w.random[0] = 0.0, 0.0, SEED
    w.scalar[at.BEST_COST], w.scalar[at.ALLOWANCE], w.scalar[at.CEILING] = INF, p.allowance, p.ceiling
    t.state[:], t.state[0], t.state[5] = 0, 1, 1
    t.heap[0], t.bound[0], t.case[0], t.stuck[0] = 0, 0.0, 0, INF


_begin = compiled(begin)


@compiled
def _clear(p, w):
    """Make a workspace as if it were new, with no bounds of any unit."""
    w.row[:], w.at[:], w.col[:], w.ball[:], w.unit[:] = 0.0, 0.0, 0.0, 0.0, 0.0
    w.unit[at.ZL], w.unit[at.ZH] = -INF, INF
    for m in range(p.widths[0]):
        w.unit[at.SPLIT, 0, m] = 1.0 if p.kind[m] == LOG else 0.0


@entry
def bound_box(people, w, known, target, turns):
    """Bound what of one applicant's first configuration costs less than a target; what is left of its box,
    and the bounds of its units, are in w then.

    Parameters
    ----------
    known
        Bounds of all units' arguments and the ends of these that were split on, as in w.unit[:3].
    turns
        How often, each time in the box and with the cut that the turn before left.

    Returns
    -------
    float
        No feasible action in the box costs less; inf if none costs less than the target.
    """
    p, best = refer(case(refer(person(people, 0)), 0)), 0.0
    _clear(p, w)
    w.scalar[:] = 0.0
    copied(p.box, w.box)
    copied(p.allowed, w.allowed)
    copied(known, w.unit[:3])
    for _ in range(turns):
        bound, last, count, _ = examine(p, w, target, MOST_LINES, STEPS)
        if bound >= target:
            return INF
        best = max(best, bound)
        take_cut(p, w, count)
        tighten(p, w, last, target)
    return best


@compiled
def _plant(pp, w, t):
    """Open the root of every configuration, in memory as if it were new."""
    _clear(pp, w)
    size = len(t.heap)
    for k in range(size):
        t.free[k] = size - 1 - k
    t.state[0], t.state[1], t.state[5] = 0, size, 0
    for c in range(len(pp.box)):
        p = refer(case(pp, c))
        copied(p.box, w.box)
        copied(p.allowed, w.allowed)
        w.scalar[at.CASE] = c
        _store(t, w, p.base[0])
    t.state[4] = 0


@compiled
def target_of(w):
    """The target: half the tolerance below the best action's cost, or without an action the ceiling."""
    best = w.scalar[at.BEST_COST]
    half = 0.5 * BELOW * max(0.0, GAP * best + w.scalar[at.ALLOWANCE])
    return best - half if best < INF else w.scalar[at.CEILING]


@compiled
def _doubtful(p, w):
    """Whether rounding may be all that keeps a node's point (then in w.at[ANCHOR]) from being accepted and
    meeting the rows and the ball."""
    u = w.at[at.ANCHOR]
    copied(w.at[at.CHOICE], u)
    # the slack is that of the logit just computed
    return logit_at(p, w, u) >= p.need_low - logit_slack(p, w) and inside(p, w, -COARSE)


@entry
def run(people, first, fresh, w, t, found, numbers, late, share, few, around, starts):
    """Search for one applicant after another, from number ``first`` on, as long as each one's search is
    finished within its first ``share`` nodes (``fresh``), or go on with the search of the first one.

    Parameters
    ----------
    people
        Their arrays; w and t serve them all.
    found, numbers
        Every applicant's best action, (n, d), and what else there is to say, rows in the order of
        :data:`COST` and the others, (5, n).
    late
        Two numbers of ticks of the clock. After the first one no more searches are begun, and a search
        returns once it has taken that many itself. After the second one (at most ROUND / 2) it looks for no
        more good actions beside the nodes.

    Returns
    -------
    (number, why)
        Of the applicant whose search is not finished, and why it has returned, as :func:`_slice`;
        :data:`MORE` too where all that is open cannot be split. If all are finished, (one more than the last
        one's, :data:`DONE`). Without ``fresh``, of the first one, whether or not it is finished.
    """
    begun, k = clock(), first
    while k < len(people.form) and (k == first or (clock() - begun) % ROUND < late[0]):
        before, p = clock(), refer(person(people, k))
        if fresh:
            _begin(p, w, t)
        why = _slice(p, w, t, late, share, few, around, starts)
        numbers[TICKS, k] = (clock() - before) % ROUND
        if not fresh:
            return k, why
        if why != DONE or t.stuck[0] < INF:
            return k, max(why, MORE)
        copied(w.at[at.BEST], found[k])
        numbers[COST, k], numbers[CASE, k] = w.scalar[at.BEST_COST], w.scalar[at.BEST_CASE]
        numbers[BOUND, k], numbers[NODES, k] = t.bound[t.heap[0]] if t.state[0] > 0 else INF, t.state[2]
        k += 1
    return k, DONE


@compiled
def _slice(pp, w, t, late, share, few, around, starts):
    """Examine nodes until one of the reasons to return comes up.

    Parameters
    ----------
    late
        As for :func:`run`.
    few
        Whether few levers are left: then dives from relaxed optima are shorter, and more frequent.
    around
        The configuration to search for good actions in first
        (:func:`~milp_recourse.engine.networks.descent.descend`), -1 for none.
    starts
        Points that it starts from, coordinates, (n, d).
    share
        Most nodes to examine in this call.

    Returns
    -------
    int
        :data:`DONE`, :data:`MORE`, :data:`ASK`, :data:`EDGE` or :data:`FULL`.
    """
    if t.state[5] != 0:
        _plant(pp, w, t)
    begun, every = clock(), max(1, BETWEEN_LOOKS // (w.unit.shape[2] + starts.shape[1] ** 2 // 4))
    if around >= 0:
        w.scalar[at.CASE], w.scalar[at.LATE] = around, begun + late[1]
        descend(refer(case(pp, around)), w, starts, max(t.state[6], 1 if t.state[2] > 0 else 0))
        t.state[6] += 1
    for _ in range(share):
        if t.state[2] % every == 0 and (clock() - begun) % ROUND > late[0]:
            return MORE
        if t.state[0] == 0 or t.bound[t.heap[0]] >= target_of(w):
            return DONE
        if t.state[1] < RESERVE:
            return FULL
        slot = _next(t, w)
        _load(t, slot, w)
        asked = _node(refer(case(pp, t.case[slot])), w, t, slot, few)
        if asked != MORE:
            return asked
    return MORE


@compiled
def _node(p, w, t, slot, few):
    """Examine the node in w, which has been taken from the heap: close it, put it back, or open its children.
    Returns :data:`ASK` or :data:`EDGE` where its point is to be judged exactly, else :data:`MORE`."""
    choice, before, parent, base = w.at[at.CHOICE], w.scalar[at.BEST_COST], t.bound[slot], p.base[0]
    target = target_of(w) - base  # what acting costs anyway is no part of the node's costs
    target += p.cost * (abs(target) + base)  # rounded up: p.cost is a relative slack
    if t.asked[slot] == CLOSED:
        return MORE
    t.state[2] += 1
    bound, last, count, unsure = examine(p, w, target, MOST_LINES, STEPS)
    gained = splitting.share_gained(w, t.promise[slot, 0], bound >= target)
    splitting.learn(w, t.promise[slot], gained)
    if bound >= target:
        return MORE
    bound = max(bound + base - p.cost * (bound + base), parent)
    copied(w.at[at.POINT], choice)
    try_point(p, w, choice)
    leaf, best = unsure == 0 and splitting.settled(p, w), w.scalar[at.BEST_COST]
    if best < before and (leaf or bound >= target_of(w)):
        if not leaf:
            _pull_best(p, w)
        _push(t, bound)  # under the new target
        return MORE
    if splitting.single(p, w):
        return ASK
    edge = on_edge(p, w)
    if t.asked[slot] == 0 and (unsure == 0 or edge) and (_doubtful(p, w) or edge):
        t.asked[slot] = 1  # asked once; next time the node is split
        _push(t, bound)
        return EDGE if edge else ASK
    copied(w.at[at.POINT], w.at[at.START])
    take_cut(p, w, count)
    tighten(p, w, last, target)
    kind, index, value = splitting.choose(p, w, count, unsure, target - last)
    if unsure == 0 and splitting.add_implied_sign(p, w):  # with that row the relaxed optimum is another
        w.scalar[at.PROMISE] = 0.0
        _store(t, w, bound)
        return MORE
    if kind == splitting.NOTHING and splitting.single(p, w):  # the reduced costs left one point
        return ASK
    _split(p, w, t, kind, index, value, bound)
    return _dive(p, w, t, few, before) if unsure > 0 else MORE


@compiled
def _dive(p, w, t, few, before):
    """If enough nodes have been examined since the last dive, search for an action from the relaxed optimum
    in w.at[START]; this overwrites the node in w. Returns :data:`ASK` where a point is to be judged exactly,
    else :data:`MORE`."""
    often = OFTEN if not before < INF else 2 if few else 1
    # the more nodes, the longer the wait for the next dive
    if t.state[2] < t.state[3] + max(1, t.state[3] // often):
        return MORE
    t.state[3] = t.state[2]
    copied(p.box, w.box)
    copied(p.allowed, w.allowed)
    hops(p, w, w.at[at.START], DIVE if few else 10)
    if w.scalar[at.BEST_COST] < before and not few:  # with few levers it is not worth its time
        _pull_best(p, w)
    if p.row.shape[1] > 0 and not w.scalar[at.BEST_COST] < INF:  # rows may leave one point
        copied(w.at[at.START], w.at[at.ANCHOR])
        return ASK
    return MORE


@compiled
def _pull_best(p, w):
    """Try to make the best action cheaper by moving its levers back."""
    copied(w.at[at.BEST], w.at[at.CHOICE])
    pull_back(p, w, w.at[at.CHOICE])


@compiled
def _parted(p, i, l, h):
    """Whether an action can set a lever to a double strictly between two coordinates. Where the factual is
    far from 0 and the change small, many coordinates stand for the same double."""
    low = p.lever[at.FACTUAL, i] + p.lever[at.UNIT, i] * l
    high = p.lever[at.FACTUAL, i] + p.lever[at.UNIT, i] * h
    return low < 0.5 * low + 0.5 * high < high and l < 0.5 * (l + h) < h


@compiled
def _split(p, w, t, kind, index, value, bound):
    """The children of the node in w as open nodes (:func:`~milp_recourse.engine.networks.splitting.choose`).

    Last comes the one that holds the relaxed optimum (of labels, its main label), or in which the lever is
    acted on: a straight descent goes on with it.
    """
    split, zl, zh = w.unit[at.SPLIT], w.unit[at.ZL], w.unit[at.ZH]
    lo, hi, mode, allowed = w.box[at.LO], w.box[at.HI], w.box[at.MODE], w.allowed
    if kind == splitting.NOTHING:
        t.stuck[0] = min(t.stuck[0], bound)
    elif kind == splitting.ARGUMENT:
        k, j = index // w.unit.shape[2], index % w.unit.shape[2]
        l, h, before, likely = zl[k, j], zh[k, j], int(split[k, j]), 1 if w.unit[at.ZB, k, j] > value else 2
        for end in (3 - likely, likely):  # 1: the lower end is moved, 2: the upper one
            split[k, j] = before | end
            zl[k, j], zh[k, j] = (value if end == 1 else l), (h if end == 1 else value)
            _store(t, w, bound)
        zl[k, j], zh[k, j] = l, h
    elif kind == splitting.INTERVAL:
        l, h, cut, above, grid = lo[index], hi[index], value, value, p.lever[at.GRID, index]
        if grid > 0.0:
            cut = np.floor((value - p.lever[at.SHIFT, index]) / grid) * grid + p.lever[at.SHIFT, index]
            above = cut + grid
        elif not _parted(p, index, l, h):
            t.stuck[0] = min(t.stuck[0], bound)
            return
        elif not l < cut < h:  # a child would be the node again
            cut = above = 0.5 * (l + h)
        likely = 1.0 if w.at[at.POINT, index] > cut else -1.0
        for side in (-likely, likely):
            lo[index], hi[index] = (above if side > 0.0 else l), (h if side > 0.0 else cut)
            if lo[index] <= hi[index]:
                _store(t, w, bound)
    elif kind == splitting.ACTED_ON:
        for acts in (2, 1):
            mode[index] = acts
            _store(t, w, bound)
    else:  # one label, or any of the others
        chosen = p.start[index] + int(value)
        allowed[chosen] = 0
        _store(t, w, bound)
        for c in range(p.start[index], p.start[index + 1]):
            allowed[c] = c == chosen
        _store(t, w, bound)
