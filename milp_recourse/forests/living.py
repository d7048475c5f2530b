"""What is left in a node of the search by prices: cells, leaves, and what still tells leaves apart."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.compiling import counting as compiled
from milp_recourse.compiling import counting_entry as entry
from milp_recourse.forests.factors import Array, Factors, Ints

FLAGS = 63
"""Sets of a slot that are told apart when classes are compared; with more, none are merged."""


class Live(NamedTuple):
    """What is left in a node: lists filled by :func:`shrink`; ``*_to`` are ends in them.

    Attributes
    ----------
    cell, cell_to
        Living cells, axis by axis.
    leaf, leaf_to
        Living leaves, tree by tree.
    slot, slot_to
        Slots that still tell living leaves of a tree apart, tree by tree.
    used, used_to
        Sets that living leaves need, listed slot by listed slot.
    kept
        Whether a class has a living cell.
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
    """Room for what is left in a node."""
    axes, trees, slots = len(f.axis_from) - 1, len(f.leaf_from) - 1, len(f.slot_axis)
    cells, sets, classes = int(f.axis_from[-1]), int(f.set_from[-1]), int(f.class_from[-1])

    def room(count: int) -> Ints:
        return np.zeros(count, dtype=np.int32)

    return Live(
        *(room(cells), room(axes + 1), room(len(f.value)), room(trees + 1)),
        *(room(slots), room(trees + 1), room(sets), room(slots + 1)),
        kept=np.zeros(classes, dtype=np.bool_),
    )


@entry
def shrink(f, cost, alive, leaf_alive, live, merge, settle):  # type: ignore[no-untyped-def]
    """Take out leaves without cells, cells without leaves and cells that a cheaper one stands for.

    False: a tree has no leaf left, so nothing is in the node.

    Parameters
    ----------
    merge
        Whether a cell may stand for another.
    settle
        Whether cells without leaves go, and slots that tell nothing apart are left out of the list; if not,
        only leaves without cells go, and all slots are listed.
    """
    trees, axes = len(f.slot_from) - 1, len(f.axis_from) - 1
    set_good, set_used = np.zeros(f.set_from[-1], np.bool_), np.zeros(f.set_from[-1], np.bool_)
    served = np.zeros(f.class_from[-1], np.bool_)
    kind = np.zeros(f.class_from[-1], np.int32)
    bits = np.zeros(f.class_from[-1], np.uint64)
    changed = True
    while changed:
        changed = False
        n_leaf = n_slot = n_used = 0
        for t in range(trees):
            s0, s1 = f.slot_from[t], f.slot_from[t + 1]
            width, before = s1 - s0, n_leaf
            for s in range(s0, s1):
                i, first = f.slot_axis[s], f.class_from[s]
                for k in range(first, f.class_from[s + 1]):
                    live.kept[k] = False
                    served[k] = False
                    bits[k] = 0
                for c in range(f.axis_from[i], f.axis_from[i + 1]):
                    if alive[c]:
                        live.kept[first + f.classes[t, c]] = True
                for z in range(f.set_from[s], f.set_from[s + 1]):
                    set_used[z] = False
                    set_good[z] = False
                    for m in range(f.member_from[z], f.member_from[z + 1]):
                        if live.kept[f.member[m]]:
                            set_good[z] = True
                            break
            at = f.table_from[t]
            for leaf in range(f.leaf_from[t], f.leaf_from[t + 1]):
                if leaf_alive[leaf]:
                    good = True
                    for s in range(width):
                        if not set_good[f.table[at + s]]:
                            good = False
                            break
                    if good:
                        live.leaf[n_leaf] = leaf
                        n_leaf += 1
                        for s in range(width):
                            set_used[f.table[at + s]] = True
                    else:
                        leaf_alive[leaf] = False
                at += width
            live.leaf_to[t + 1] = n_leaf
            if n_leaf == before:
                return False
            for s in range(s0, s1):
                first, last = f.class_from[s], f.class_from[s + 1]
                count = 0
                for k in range(first, last):
                    count += live.kept[k]
                matters, flag, start = False, np.uint64(1), n_used
                for z in range(f.set_from[s], f.set_from[s + 1]):
                    if set_used[z]:
                        mine = 0
                        for m in range(f.member_from[z], f.member_from[z + 1]):
                            k = f.member[m]
                            served[k] = True
                            mine += live.kept[k]
                            bits[k] |= flag
                        matters = matters or mine < count
                        live.used[n_used] = z
                        n_used += 1
                        if n_used - start < FLAGS:
                            flag = np.uint64(flag << np.uint64(1))
                i, lost = f.slot_axis[s], False
                for k in range(first, last):
                    lost = lost or (settle and live.kept[k] and not served[k])
                if lost:
                    changed = True
                    for c in range(f.axis_from[i], f.axis_from[i + 1]):
                        if alive[c] and not served[first + f.classes[t, c]]:
                            alive[c] = False
                if settle and not matters:
                    n_used = start
                    continue
                crowded = not merge or n_used - start >= FLAGS
                for k in range(first, last):
                    kind[k] = k
                    if not crowded:
                        for other in range(first, k):
                            if live.kept[other] and bits[other] == bits[k]:
                                kind[k] = other
                                break
                live.slot[n_slot] = s
                n_slot += 1
                live.used_to[n_slot] = n_used
            live.slot_to[t + 1] = n_slot
        if changed:
            continue
        # Cells in equal classes of all slots that matter: the cheapest stands for all.
        for i in range(axes if merge else 0):
            last_cell = -1
            for c in range(f.axis_from[i], f.axis_from[i + 1]):
                if alive[c]:
                    if last_cell >= 0 and not _apart(f, live, n_slot, kind, i, last_cell, c):
                        changed = True
                        if cost[c] < cost[last_cell]:
                            alive[last_cell] = False
                            last_cell = c
                        else:
                            alive[c] = False
                    else:
                        last_cell = c
    n_cell = 0
    for i in range(axes):
        for c in range(f.axis_from[i], f.axis_from[i + 1]):
            if alive[c]:
                live.cell[n_cell] = c
                n_cell += 1
        live.cell_to[i + 1] = n_cell
        if live.cell_to[i + 1] == live.cell_to[i]:
            return False
    return True


def restricted(f: Factors, live: Live, price: Array) -> tuple[Factors, Array]:
    """The factor graph of what lives alone, and its prices: the same bounds in less room."""
    axis_from, slot_from, leaf_from = (ends.copy() for ends in (live.cell_to, live.slot_to, live.leaf_to))
    *arrays, prices = _restricted(f, live, price)
    classes, slot_axis, class_from, set_from, member_from, member, value, table_from, table = arrays
    return (
        Factors(
            *(axis_from, classes, slot_from, slot_axis, class_from, set_from),
            *(member_from, member, leaf_from, value, table_from, table),
        ),
        prices,
    )


@entry
def _restricted(f, live, price):  # type: ignore[no-untyped-def]
    trees, cells, slots = len(f.slot_from) - 1, live.cell_to[-1], live.slot_to[-1]
    class_now, set_now = np.full(f.class_from[-1], -1, np.int32), np.full(f.set_from[-1], -1, np.int32)
    slot_axis = np.zeros(slots, np.int32)
    class_from, set_from = np.zeros(slots + 1, np.int32), np.zeros(slots + 1, np.int32)
    prices, member = np.zeros(f.class_from[-1]), np.zeros(len(f.member), np.int32)
    member_from = np.zeros(live.used_to[slots] + 1, np.int32)
    count = sets = members = 0
    for n in range(slots):
        s = live.slot[n]
        slot_axis[n] = f.slot_axis[s]
        for k in range(f.class_from[s], f.class_from[s + 1]):
            if live.kept[k]:
                class_now[k], prices[count] = count, price[k]
                count += 1
        class_from[n + 1] = count
        for u in range(live.used_to[n], live.used_to[n + 1]):
            z = live.used[u]
            for m in range(f.member_from[z], f.member_from[z + 1]):
                if live.kept[f.member[m]]:
                    member[members] = class_now[f.member[m]]
                    members += 1
            set_now[z] = sets
            sets += 1
            member_from[sets] = members
        set_from[n + 1] = sets
    classes = np.zeros((trees, cells), np.int32)
    leaves, table_from = live.leaf_to[-1], np.zeros(trees + 1, np.int64)
    for t in range(trees):
        width = live.slot_to[t + 1] - live.slot_to[t]
        table_from[t + 1] = table_from[t] + np.int64(live.leaf_to[t + 1] - live.leaf_to[t]) * width
    value, table = np.zeros(leaves), np.zeros(table_from[trees], np.int32)
    for t in range(trees):
        a, b, at = live.slot_to[t], live.slot_to[t + 1], table_from[t]
        for n in range(a, b):
            s = live.slot[n]
            i = f.slot_axis[s]
            for m in range(live.cell_to[i], live.cell_to[i + 1]):
                classes[t, m] = class_now[f.class_from[s] + f.classes[t, live.cell[m]]] - class_from[n]
        width = f.slot_from[t + 1] - f.slot_from[t]
        for n in range(live.leaf_to[t], live.leaf_to[t + 1]):
            leaf = live.leaf[n]
            value[n] = f.value[leaf]
            before = f.table_from[t] + (leaf - f.leaf_from[t]) * width - f.slot_from[t]
            for m in range(a, b):
                table[at] = set_now[f.table[before + live.slot[m]]]
                at += 1
    return (
        *(classes, slot_axis, class_from, set_from, member_from, member[:members].copy()),
        *(value, table_from, table, prices[:count].copy()),
    )


@compiled
def _apart(f, live, n_slot, kind, i, a, b):  # type: ignore[no-untyped-def]
    """Whether a slot that matters tells two cells of axis i apart."""
    t = 0
    for n in range(n_slot):
        s = live.slot[n]
        if f.slot_axis[s] == i:
            while n >= live.slot_to[t + 1]:
                t += 1
            first = f.class_from[s]
            if kind[first + f.classes[t, a]] != kind[first + f.classes[t, b]]:
                return True
    return False
