"""What is left in a node of the search by prices: cells, leaves, and what still tells leaves apart.

f is the factor graph (:class:`~milp_recourse.engine.forests.factors.Factors`), of whose parts shapes speak; t
numbers trees, i axes, c cells, s slots, k classes, z sets and n places in the lists of :class:`Live`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.compiling import counting as compiled
from milp_recourse.engine.compiling import counting_entry as entry
from milp_recourse.engine.forests.factors import Array, Factors, Ints

FLAGS = 63
"""Most sets of a slot with which its classes are compared; where there are more, all classes count as
different."""


class Live(NamedTuple):
    """What is left in a node, as lists that :func:`shrink` fills; the entries of ``*_to`` say where the part
    of each axis, tree or slot ends.

    Attributes
    ----------
    cell, cell_to
        Living cells, axis by axis; (cells,) and (axes + 1,).
    leaf, leaf_to
        Living leaves, tree by tree; (leaves,) and (trees + 1,).
    slot, slot_to
        Slots that still tell living leaves of a tree apart, tree by tree; (slots,) and (trees + 1,).
    used, used_to
        Sets that living leaves need, listed slot by listed slot; (sets,) and (slots + 1,).
    kept
        Whether a class has a living cell, (classes,).
    """

    cell: Ints
    cell_to: Ints
    leaf: Ints
    leaf_to: Ints
    slot: Ints
    slot_to: Ints
    used: Ints
    used_to: Ints
    kept: NDArray[np.bool_]


def lists(f: Factors) -> Live:
    """Empty lists, large enough for any node."""
    axes, trees, slots = len(f.axis_from) - 1, len(f.leaf_from) - 1, len(f.slot_axis)
    cells, sets, classes = int(f.axis_from[-1]), int(f.set_from[-1]), int(f.class_from[-1])

    def room(count: int) -> Ints:
        return np.zeros(count, dtype=np.int32)

    return Live(
        *(room(cells), room(axes + 1), room(len(f.value)), room(trees + 1)),
        *(room(slots), room(trees + 1), room(sets), room(slots + 1)),
        kept=np.zeros(classes, dtype=np.bool_),
    )


class _Marks(NamedTuple):
    """What one call of :func:`shrink` notes.

    Attributes
    ----------
    known, good, used
        Of a set: whether the next two are known; whether one of its classes has a living cell; whether a
        living leaf needs it; (sets,).
    served
        Whether a class is in a used set of its slot, (classes,).
    bits
        The used sets that a class is in, as bits, (classes,).
    kind
        The first class of the slot that is in the same used sets, (classes,).
    paid, more, least
        The least that an axis costs, (axes,); how much more than this a set, (sets,), and a class,
        (classes,), costs at least.
    """

    known: NDArray[np.bool_]
    good: NDArray[np.bool_]
    used: NDArray[np.bool_]
    served: NDArray[np.bool_]
    bits: NDArray[np.uint64]
    kind: Ints
    paid: Array
    more: Array
    least: Array


@entry
def shrink(f, cost, alive, leaf_alive, live, merge, settle, added, below):
    """Take out leaves without cells, cells without leaves, what costs too much, and cells that a cheaper one
    stands for; False if a tree has no leaf or an axis no cell left.

    Parameters
    ----------
    cost
        What cells cost, (cells,); compared where one may stand for another.
    alive
        Which cells are left, (cells,); those that are taken out become False.
    leaf_alive
        The same of leaves, (leaves,).
    merge
        Whether a cell may stand for another.
    settle
        Whether cells without leaves go, and slots that tell nothing apart are left out of the list; if not,
        only leaves without cells go, and all slots are listed.
    added
        Lower bounds of what cells add to the cost, (cells,).
    below
        Cells and leaves go whose points all cost so much or more; with inf none does.
    """
    sets, classes = f.set_from[-1], f.class_from[-1]
    marks = _Marks(
        np.zeros(sets, np.bool_),
        np.zeros(sets, np.bool_),
        np.zeros(sets, np.bool_),
        np.zeros(classes, np.bool_),
        np.zeros(classes, np.uint64),
        np.zeros(classes, np.int32),
        np.zeros(len(f.axis_from) - 1),
        np.zeros(sets),
        np.zeros(classes),
    )
    changed, room = True, np.inf
    while changed:
        changed = False
        if not _list_cells(f, alive, live):
            return False
        if below < np.inf:
            room = _pay(f, added, below, alive, live, settle, marks)
            if not room > 0.0:
                return False
        marks.known[:], marks.used[:] = False, False
        for t in range(len(f.slot_from) - 1):
            for s in range(f.slot_from[t], f.slot_from[t + 1]):
                _mark(f, added, below < np.inf, alive, live, marks, t, s)
            if not _keep_leaves(f, leaf_alive, live, marks, t, room):
                return False
            if _list_slots(f, alive, live, marks, merge, settle, t):
                changed = True
        if merge and not changed:
            changed = _merge(f, cost, alive, live, marks.kind)
    return _list_cells(f, alive, live)


@compiled
def _pay(f, added, below, alive, live, settle, marks):
    """Take out cells that cost too much; returns what is left of the budget if all axes are in their cheapest
    cell, rounded up. Shapes: added, alive (cells,)."""
    total, axes = 0.0, len(f.axis_from) - 1
    for i in range(axes):
        marks.paid[i] = np.inf
        for n in range(live.cell_to[i], live.cell_to[i + 1]):
            marks.paid[i] = min(marks.paid[i], added[live.cell[n]])
        total += marks.paid[i]
    room = below - total + 2.0**-50 * (axes + 2) * (below + total)  # also for what leaves add up
    for i in range(axes):
        for n in range(live.cell_to[i], live.cell_to[i + 1]):
            if settle and added[live.cell[n]] - marks.paid[i] >= room:
                alive[live.cell[n]] = False
    return room


@compiled
def _mark(f, added, priced, alive, live, marks, t, s):
    """Mark the slot's classes with living cells; if ``priced``, fill in how much more than the axis' cheapest
    cell they cost. Shapes: added, alive (cells,)."""
    i, first = f.slot_axis[s], f.class_from[s]
    for k in range(first, f.class_from[s + 1]):
        live.kept[k] = False
        marks.served[k] = False
        marks.bits[k] = 0
        marks.least[k] = np.inf
    for n in range(live.cell_to[i], live.cell_to[i + 1]):
        c = live.cell[n]
        if alive[c]:
            k = first + f.classes[t, c]
            live.kept[k] = True
            marks.least[k] = min(marks.least[k], added[c] - marks.paid[i]) if priced else 0.0


@compiled
def _know(f, live, marks, z):
    """Note whether a set has a class with a living cell, and how much more it costs."""
    good, more = False, np.inf
    for m in range(f.member_from[z], f.member_from[z + 1]):
        good = good or live.kept[f.member[m]]
        more = min(more, marks.least[f.member[m]])
    marks.known[z], marks.good[z], marks.more[z] = True, good, more


@compiled
def _keep_leaves(f, leaf_alive, live, marks, t, room):
    """List the tree's leaves that living cells lead to within the room of the budget, and mark the sets they
    need; returns whether any leaf is left. Shape: leaf_alive (leaves,)."""
    n = live.leaf_to[t]
    at, width = f.table_from[t], f.slot_from[t + 1] - f.slot_from[t]
    for leaf in range(f.leaf_from[t], f.leaf_from[t + 1]):
        good, s, more = leaf_alive[leaf], 0, 0.0
        while good and s < width:
            z = f.table[at + s]
            if not marks.known[z]:
                _know(f, live, marks, z)
            more += marks.more[z]
            good = marks.good[z] and more < room
            s += 1
        leaf_alive[leaf] = good
        if good:
            live.leaf[n] = leaf
            n += 1
            for s in range(width):
                marks.used[f.table[at + s]] = True
        at += width
    live.leaf_to[t + 1] = n
    return n > live.leaf_to[t]


@compiled
def _list_slots(f, alive, live, marks, merge, settle, t):
    """List the tree's slots that tell living leaves apart; returns whether cells were taken out. Shape: alive
    (cells,)."""
    n, lost = live.slot_to[t], False
    for s in range(f.slot_from[t], f.slot_from[t + 1]):
        start = live.used_to[n]
        end, matters = _list_sets(f, live, marks, s, start)
        if settle and _lose_cells(f, alive, live, marks, t, s):
            lost = True
        if matters or not settle:
            _compare_classes(f, live, marks, s, merge and end - start < FLAGS)
            live.slot[n] = s
            n += 1
            live.used_to[n] = end
    live.slot_to[t + 1] = n
    return lost


@compiled
def _list_sets(f, live, marks, s, n):
    """List the slot's used sets from place n on; returns where they end, and whether one of them lacks a
    living class."""
    count = 0
    for k in range(f.class_from[s], f.class_from[s + 1]):
        count += live.kept[k]
    matters, flag, start = False, np.uint64(1), n
    for z in range(f.set_from[s], f.set_from[s + 1]):
        if not marks.used[z]:
            continue
        living = 0
        for m in range(f.member_from[z], f.member_from[z + 1]):
            k = f.member[m]
            marks.served[k] = True
            living += live.kept[k]
            marks.bits[k] |= flag
        matters = matters or living < count
        live.used[n] = z
        n += 1
        if n - start < FLAGS:
            flag = np.uint64(flag << np.uint64(1))
    return n, matters


@compiled
def _lose_cells(f, alive, live, marks, t, s):
    """Take out cells of classes that no used set contains; returns whether there were any. Shape: alive
    (cells,)."""
    i, first, lost = f.slot_axis[s], f.class_from[s], False
    for k in range(first, f.class_from[s + 1]):
        lost = lost or (live.kept[k] and not marks.served[k])
    if lost:
        for n in range(live.cell_to[i], live.cell_to[i + 1]):
            c = live.cell[n]
            if not marks.served[first + f.classes[t, c]]:
                alive[c] = False
    return lost


@compiled
def _compare_classes(f, live, marks, s, told):
    """Note which classes of a slot are in the same used sets. Without ``told`` all count as different."""
    first = f.class_from[s]
    for k in range(first, f.class_from[s + 1]):
        marks.kind[k] = k
        if told and live.kept[k]:
            for other in range(first, k):
                if live.kept[other] and marks.bits[other] == marks.bits[k]:
                    marks.kind[k] = other
                    break


@compiled
def _merge(f, cost, alive, live, kind):
    """Of neighbouring cells that no listed slot tells apart, keep the cheapest; returns whether any cell was
    taken out. Shapes: cost, alive (cells,), kind (classes,)."""
    merged = False
    slots, trees = np.empty(live.slot_to[-1], np.int32), np.empty(live.slot_to[-1], np.int32)
    for i in range(len(f.axis_from) - 1):
        count = _slots_of(f, live, i, slots, trees)
        last_cell = -1
        for c in range(f.axis_from[i], f.axis_from[i + 1]):
            if not alive[c]:
                continue
            if last_cell < 0 or _apart(f, kind, slots[:count], trees, last_cell, c):
                last_cell = c
                continue
            merged = True
            if cost[c] < cost[last_cell]:
                alive[last_cell] = False
                last_cell = c
            else:
                alive[c] = False
    return merged


@compiled
def _slots_of(f, live, i, slots, trees):
    """Write down the listed slots of axis i, into slots (listed slots,), and their trees, into trees (listed
    slots,); returns how many there are."""
    count = 0
    for t in range(len(f.slot_from) - 1):
        for n in range(live.slot_to[t], live.slot_to[t + 1]):
            if f.slot_axis[live.slot[n]] == i:
                slots[count], trees[count] = live.slot[n], t
                count += 1
    return count


@compiled
def _apart(f, kind, slots, trees, a, b):
    """Whether one of these slots tells two cells of its axis apart. Shapes: kind (classes,),
    slots (slots of the axis,), trees (listed slots,)."""
    for n in range(len(slots)):
        first, t = f.class_from[slots[n]], trees[n]
        if kind[first + f.classes[t, a]] != kind[first + f.classes[t, b]]:
            return True
    return False


@compiled
def _list_cells(f, alive, live):
    """List the living cells; returns whether every axis has one. Shape: alive (cells,)."""
    n = 0
    for i in range(len(f.axis_from) - 1):
        for c in range(f.axis_from[i], f.axis_from[i + 1]):
            if alive[c]:
                live.cell[n] = c
                n += 1
        live.cell_to[i + 1] = n
        if live.cell_to[i + 1] == live.cell_to[i]:
            return False
    return True
