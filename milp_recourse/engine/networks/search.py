"""The tree: best bound first, every node's box and bounds in one pool, resumable after any number of nodes.

A search returns after a slice: a number of nodes, or :data:`SLICE`. Searches of one shape, one after another,
use the same memory (:class:`Spare`).

Letters are those of :mod:`~milp_recourse.engine.networks.work`; pp is the problem in all configurations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.compiling import ROUND, clock, compiled, entry, record, refer
from milp_recourse.engine.networks import splitting
from milp_recourse.engine.networks.bent_lines import bendable
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
from milp_recourse.engine.networks.lever_arrays import ACTED, IDLE
from milp_recourse.engine.networks.linear_bounds import logit_at
from milp_recourse.engine.networks.node import examine, take_cut, tighten
from milp_recourse.engine.networks.numerics import BELOW, COARSE, SAME
from milp_recourse.engine.networks.problem_arrays import MOST_LINES, Problems, case, person
from milp_recourse.engine.networks.rows import on_edge
from milp_recourse.engine.networks.work import RESERVE, Pool, Work, copied, pool, workspace
from milp_recourse.problem.result import RELATIVE_GAP as GAP

SEED = np.uint64(0x9E3779B97F4A7C15)
"""Of the random numbers: the same for everybody."""

INF = math.inf
Array = NDArray[np.float64]

FOUND = record(cost=float, case=int, bound=float, nodes=int, ticks=int)
"""What :func:`run` says of a search: the best action's cost and configuration, the bound, nodes, and ticks of
the clock (:func:`~milp_recourse.engine.compiling.clock`)."""

DONE, MORE, ASK, FULL, EDGE = range(5)
"""Why a search returns: nothing is open below the target; it has examined its share of nodes; it asks for an
exact judgement of the point ``w.points.anchor``, because rounding leaves open whether that is feasible; the
pool is full; it asks the same of a node on which no unit of the network is open and whose largest logit is
within rounding of what is needed. That node is open again, in the slot ``free[now.free]``."""

CLOSED = 2
"""In ``asked``, of a node that is found to hold nothing feasible while it is open."""


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

SLICE = 0.05
"""Seconds after which compiled code returns to Python, which may be asked to end."""

MOST_SECONDS = 2000.0
"""Of one longer search: what the clock of compiled code can count to."""

FEW = 6
"""With at most so many levers, and no ``starts``, no good action is searched for before the first nodes."""

FIRST, FIRST_OF_MANY = 1000, 250
"""Nodes of the first slice, with few levers and with many. If a search is not finished then, a longer search
for good actions follows."""

FIRST_LEAST, FIRST_WORK = 16, 2**22
"""In wide networks the first slice ends once nodes times the square of the widest layer's units are about
``FIRST_WORK``, but not before so many nodes: a node takes 50 ms where three layers have 512 units."""

Memory = TypeVar("Memory")
Taken = tuple[Work, Pool]
"""The memory of a search."""

MOST_SHAPES = 8
"""Of how many shapes spare memory is kept."""


class Spare(Generic[Memory]):
    """Memory of searches that have ended, for later ones of the same shape.

    Making it takes a millisecond, longer than many searches do. What is taken is its taker's alone, so that
    searches in the middle of others, and in other threads, do not meet. It is given back when nothing of it
    is read any more; instead of what never is, other memory is made.

    Parameters
    ----------
    make
        Makes memory for a problem, and so for all of its shape. Whoever takes memory clears what it reads.
    """

    def __init__(self, make: Callable[[Problems], Memory]) -> None:
        self._make, self._free = make, dict[tuple[object, ...], list[Memory]]()

    def take(self, p: Problems) -> Memory:
        """Memory for a problem."""
        try:
            return self._free[_shape(p)].pop()
        except (KeyError, IndexError):
            return self._make(p)

    def give(self, p: Problems, memory: Memory) -> None:
        """Take back what was taken for a problem of this shape."""
        if len(self._free) > MOST_SHAPES:
            self._free.clear()
        self._free.setdefault(_shape(p), []).append(memory)

    @contextmanager
    def lent(self, p: Problems) -> Iterator[Memory]:
        """Memory for what is done inside."""
        memory = self.take(p)
        yield memory
        self.give(p, memory)


def _shape(p: Problems) -> tuple[object, ...]:
    arrays = p.lever, p.allowed, p.weights, p.row, p.residual
    return *(one.shape for one in arrays), bendable(p), p.kind.tobytes(), p.widths.tobytes()


SPARE = Spare[Taken](lambda p: (workspace(p, bendable(p)), pool(p, 256, bendable(p))))
"""Of all searches of this process."""


def slice_and(left: float | None) -> tuple[int, int]:
    """:data:`SLICE`, and the seconds that are left (None: without end), as compiled code takes them: ticks of
    its clock."""
    return int(1e6 * SLICE), int(1e6 * (MOST_SECONDS if left is None else min(left, MOST_SECONDS)))


def first_slice(p: Problems, few: bool) -> tuple[int, int]:
    """How many nodes the first slice has, and in which configuration it first searches for good actions (-1:
    in none)."""
    nodes = min(FIRST if few else FIRST_OF_MANY, max(FIRST_LEAST, FIRST_WORK // p.weights.shape[1] ** 2))
    return nodes, -1 if few else 0


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
    t.now.open += 1
    t.now.free -= 1
    slot = t.free[t.now.free]
    t.bound[slot] = bound
    _place(t, slot, t.now.open - 1, t.now.open)


@compiled
def _next(t, w):
    """Take the next node out of the heap, and free its slot: that of least bound, or without an action, in
    turns of :data:`STRAIGHT`, a child of the one before."""
    k, n, young = 0, t.now.open - 1, t.now.young - 1
    if young >= 0 and t.now.examined % (2 * STRAIGHT) < STRAIGHT and not w.now.best_cost < INF:
        k = n
        while t.heap[k] != young:  # it is near the end
            k -= 1
    slot = t.heap[k]
    t.free[t.now.free] = slot
    t.now.open, t.now.free, t.now.young = n, t.now.free + 1, 0
    if k < n:
        _place(t, t.heap[n], k, n)
    return slot


@compiled
def _load(t, slot, w):
    """Copy a stored node to w."""
    w.now.case = t.case[slot]
    copied(t.box[slot], w.box)
    copied(t.allowed[slot], w.allowed)
    copied(t.low[slot], w.unit.low)
    copied(t.high[slot], w.unit.high)
    copied(t.split[slot], w.unit.split)
    copied(t.cut[slot], w.columns.cut)
    copied(t.seen[slot], w.points.seen)
    copied(t.shares[slot], w.points.cut_shares)
    w.now.cut_const = t.const[slot]


@compiled
def _store(t, w, bound):
    """Store the node in w as a new open node."""
    slot = t.free[t.now.free - 1]
    t.case[slot] = w.now.case
    copied(w.box, t.box[slot])
    copied(w.allowed, t.allowed[slot])
    copied(w.unit.low, t.low[slot])
    copied(w.unit.high, t.high[slot])
    copied(w.unit.split, t.split[slot])
    copied(w.columns.cut, t.cut[slot])
    copied(w.points.start, t.seen[slot])
    copied(w.points.cut_shares, t.shares[slot])
    t.const[slot] = w.now.cut_const
    splitting.note_promise(w, t.promise[slot])
    t.asked[slot], t.now.young = 0, slot + 1
    _push(t, bound)


def begin(p: Problems, w: Work, t: Pool) -> None:
    """A new applicant's search: nothing is found, and one open node, of bound 0, stands for all roots."""
    w.learned[:], w.gained[:], w.promised[:], w.random[0] = 0.0, 0.0, 0.0, SEED
    w.now.best_cost, w.now.allowance, w.now.ceiling = INF, p.allowance, p.ceiling
    t.now.open, t.now.free, t.now.examined, t.now.dived, t.now.young, t.now.rootless = 1, 0, 0, 0, 0, 1
    t.now.sought = 0
    t.heap[0], t.bound[0], t.case[0], t.stuck[0] = 0, 0.0, 0, INF


_begin = compiled(begin)


def clear(w: Work) -> None:
    """Make what a workspace holds of a node as if it were new."""
    w.unit.block[:], w.points.block[:], w.columns.block[:] = 0.0, 0.0, 0.0
    w.row.block[:], w.ball.block[:] = 0.0, 0.0
    w.now.case, w.now.cut_const, w.now.room, w.now.promise, w.now.left = 0, 0.0, 0.0, 0.0, 0.0


_clear = compiled(clear)


@compiled
def _unbounded(p, w):
    """Make a workspace as if it were new, with no bounds of any unit."""
    _clear(w)
    w.unit.low[:], w.unit.high[:] = -INF, INF
    for m in range(p.widths[0]):
        w.unit.split[0, m] = 1.0 if p.kind[m] == LOG else 0.0


@entry
def bound_box(people, w, known, target, turns):
    """Bound what of one applicant's first configuration costs less than a target; what is left of its box,
    and the bounds of its units, are in w then.

    Parameters
    ----------
    known
        Bounds of all units' arguments and the ends of these that were split on, (3, K + 1, n): ``low``,
        ``high`` and ``split``.
    turns
        How often, each time in the box and with the cut that the turn before left.

    Returns
    -------
    float
        No feasible action in the box costs less; inf if none costs less than the target.
    """
    p, best = refer(case(refer(person(people, 0)), 0)), 0.0
    _unbounded(p, w)
    w.now.best_cost = 0.0  # so that the ball is used with the cut
    copied(p.box, w.box)
    copied(p.allowed, w.allowed)
    copied(known[0], w.unit.low)
    copied(known[1], w.unit.high)
    copied(known[2], w.unit.split)
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
    _unbounded(pp, w)
    size = len(t.heap)
    for k in range(size):
        t.free[k] = size - 1 - k
    t.now.open, t.now.free, t.now.rootless = 0, size, 0
    for c in range(len(pp.box)):
        p = refer(case(pp, c))
        copied(p.box, w.box)
        copied(p.allowed, w.allowed)
        w.now.case = c
        _store(t, w, p.base[0])
    t.now.young = 0


@compiled
def target_of(w):
    """The target: half the tolerance below the best action's cost, or without an action the ceiling."""
    best = w.now.best_cost
    half = 0.5 * BELOW * max(0.0, GAP * best + w.now.allowance)
    return best - half if best < INF else w.now.ceiling


@compiled
def _doubtful(p, w):
    """Whether rounding may be all that keeps a node's point (then in w.points.anchor) from being accepted and
    meeting the rows and the ball."""
    u = w.points.anchor
    copied(w.points.choice, u)
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
    found
        Gets every applicant's best action, (applicants, d).
    numbers
        Gets what else there is to say, records :data:`FOUND`, (applicants,).
    late
        Two numbers of ticks of the clock. After the first one no more searches are begun, and a search
        returns once it has taken that many itself. After the second one (at most ROUND / 2) it looks for no
        more good actions beside the nodes.
    share, few, around
        As for :func:`_slice`.
    starts
        As for :func:`_slice`, (starts, d).

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
        numbers[k].ticks = (clock() - before) % ROUND
        if not fresh:
            return k, why
        if why != DONE or t.stuck[0] < INF:
            return k, max(why, MORE)
        copied(w.points.best, found[k])
        numbers[k].cost, numbers[k].case = w.now.best_cost, w.now.best_case
        numbers[k].bound, numbers[k].nodes = t.bound[t.heap[0]] if t.now.open > 0 else INF, t.now.examined
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
        Points that it starts from, coordinates, (starts, d).
    share
        Most nodes to examine in this call.

    Returns
    -------
    int
        :data:`DONE`, :data:`MORE`, :data:`ASK`, :data:`EDGE` or :data:`FULL`.
    """
    if t.now.rootless != 0:
        _plant(pp, w, t)
    begun, every = clock(), max(1, BETWEEN_LOOKS // (w.unit.low.shape[1] + starts.shape[1] ** 2 // 4))
    if around >= 0:
        w.now.case, w.now.late = around, begun + late[1]
        descend(refer(case(pp, around)), w, starts, max(t.now.sought, 1 if t.now.examined > 0 else 0))
        t.now.sought += 1
    for _ in range(share):
        if t.now.examined % every == 0 and (clock() - begun) % ROUND > late[0]:
            return MORE
        if t.now.open == 0 or t.bound[t.heap[0]] >= target_of(w):
            return DONE
        if t.now.free < RESERVE:
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
    choice, before, parent, base = w.points.choice, w.now.best_cost, t.bound[slot], p.base[0]
    target = target_of(w) - base  # what acting costs anyway is no part of the node's costs
    target += p.slacks.cost * (abs(target) + base)  # rounded up: p.slacks.cost is a relative slack
    if t.asked[slot] == CLOSED:
        return MORE
    t.now.examined += 1
    bound, last, count, unsure = examine(p, w, target, MOST_LINES, STEPS)
    gained = splitting.share_gained(w, t.promise[slot, 0], bound >= target)
    splitting.learn(w, t.promise[slot], gained)
    if bound >= target:
        return MORE
    bound = max(bound + base - p.slacks.cost * (bound + base), parent)
    copied(w.points.relaxed, choice)
    try_point(p, w, choice)
    leaf, best = unsure == 0 and splitting.settled(p, w), w.now.best_cost
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
    copied(w.points.relaxed, w.points.start)
    take_cut(p, w, count)
    tighten(p, w, last, target)
    kind, index, value = splitting.choose(p, w, count, unsure, target - last)
    if unsure == 0 and splitting.add_implied_sign(p, w):  # with that row the relaxed optimum is another
        w.now.promise = 0.0
        _store(t, w, bound)
        return MORE
    if kind == splitting.NOTHING and splitting.single(p, w):  # the reduced costs left one point
        return ASK
    _split(p, w, t, kind, index, value, bound)
    return _dive(p, w, t, few, before) if unsure > 0 else MORE


@compiled
def _dive(p, w, t, few, before):
    """If enough nodes have been examined since the last dive, search for an action from the relaxed optimum
    in w.points.start; this overwrites the node in w. Returns :data:`ASK` where a point is to be judged
    exactly, else :data:`MORE`."""
    often = OFTEN if not before < INF else 2 if few else 1
    # the more nodes, the longer the wait for the next dive
    if t.now.examined < t.now.dived + max(1, t.now.dived // often):
        return MORE
    t.now.dived = t.now.examined
    copied(p.box, w.box)
    copied(p.allowed, w.allowed)
    hops(p, w, w.points.start, DIVE if few else 10)
    if w.now.best_cost < before and not few:  # with few levers it is not worth its time
        _pull_best(p, w)
    if p.row.shape[1] > 0 and not w.now.best_cost < INF:  # rows may leave one point
        copied(w.points.start, w.points.anchor)
        return ASK
    return MORE


@compiled
def _pull_best(p, w):
    """Try to make the best action cheaper by moving its levers back."""
    copied(w.points.best, w.points.choice)
    pull_back(p, w, w.points.choice)


@compiled
def _parted(p, i, l, h):
    """Whether an action can set a lever to a double strictly between two coordinates. Where the factual is
    far from 0 and the change small, many coordinates stand for the same double."""
    lever = p.lever[i]
    low = lever.factual + lever.unit * l
    high = lever.factual + lever.unit * h
    return low < 0.5 * low + 0.5 * high < high and l < 0.5 * (l + h) < h


@compiled
def _split(p, w, t, kind, index, value, bound):
    """The children of the node in w as open nodes (:func:`~milp_recourse.engine.networks.splitting.choose`).

    Last comes the one that holds the relaxed optimum (of labels, its main label), or in which the lever is
    acted on: a straight descent goes on with it.
    """
    split, zl, zh, box, allowed = w.unit.split, w.unit.low, w.unit.high, w.box, w.allowed
    if kind == splitting.NOTHING:
        t.stuck[0] = min(t.stuck[0], bound)
    elif kind == splitting.ARGUMENT:
        k, j = index // split.shape[1], index % split.shape[1]
        l, h, before, likely = zl[k, j], zh[k, j], int(split[k, j]), 1 if w.unit.relaxed[k, j] > value else 2
        for end in (3 - likely, likely):  # 1: the lower end is moved, 2: the upper one
            split[k, j] = before | end
            zl[k, j], zh[k, j] = (value if end == 1 else l), (h if end == 1 else value)
            _store(t, w, bound)
        zl[k, j], zh[k, j] = l, h
    elif kind == splitting.INTERVAL:
        l, h, cut, above, grid = box[index].lo, box[index].hi, value, value, p.lever[index].grid
        if grid > 0.0:
            cut = np.floor((value - p.lever[index].shift) / grid) * grid + p.lever[index].shift
            above = cut + grid
        elif not _parted(p, index, l, h):
            t.stuck[0] = min(t.stuck[0], bound)
            return
        elif not l < cut < h:  # a child would be the node again
            cut = above = 0.5 * (l + h)
        last = 1.0 if w.points.relaxed[index] > cut else -1.0
        for side in (-last, last):
            box[index].lo, box[index].hi = (above if side > 0.0 else l), (h if side > 0.0 else cut)
            # whole values are off by roundings, and the child decides which of these it holds
            if box[index].lo <= box[index].hi + SAME * grid:
                _store(t, w, bound)
    elif kind == splitting.ACTED_ON:
        for acts in (IDLE, ACTED):
            box[index].mode = acts
            _store(t, w, bound)
    else:  # one label, or any of the others
        chosen = p.start[index] + int(value)
        allowed[chosen] = 0
        _store(t, w, bound)
        for c in range(p.start[index], p.start[index + 1]):
            allowed[c] = c == chosen
        _store(t, w, bound)
