r"""An ensemble over an applicant's axes as a factor graph: one factor per tree, one variable per axis.

To tree t the cells of an axis fall into *classes*: cells that exactly the same leaves of the tree can be
reached from. A leaf allows a *set* of classes on every axis that the tree looks at, all of them elsewhere.
Trees have few thresholds on each axis, so there are few classes and sets, however many cells there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.compiling import counting_entry as entry
from milp_recourse.forests.axes import Axis
from milp_recourse.forests.table import BITS, LeafTable

Array = NDArray[np.float64]
Ints = NDArray[np.int32]


class Factors(NamedTuple):
    """The arrays of the factor graph; a slot is a pair of a tree and an axis that it looks at.

    Attributes
    ----------
    axis_from
        First cell of each axis among all cells, (axes + 1,).
    classes
        Class of every cell within its axis' slot, (trees, cells); 0 where the tree does not look at the axis.
    slot_from, slot_axis
        First slot of each tree, (trees + 1,); the axis of each slot, (slots,).
    class_from
        First class of each slot among all classes, (slots + 1,).
    set_from
        First set of each slot among all sets, (slots + 1,).
    member_from, member
        Classes of each set, numbered among all classes.
    leaf_from, value
        First leaf of each tree, (trees + 1,), most valuable first; the leaves' values.
    table_from, table
        Per tree, the set of every leaf on every slot of the tree, leaf by leaf.
    """

    axis_from: Ints
    classes: Ints
    slot_from: Ints
    slot_axis: Ints
    class_from: Ints
    set_from: Ints
    member_from: Ints
    member: Ints
    leaf_from: Ints
    value: Array
    table_from: NDArray[np.int64]
    table: Ints


def cell_masks(table: LeafTable, axes: Sequence[Axis]) -> NDArray[np.uint32]:
    """Which leaves each single cell meets, (cells of all axes, words of all trees)."""
    rows = []
    for i, axis in enumerate(axes):
        order = np.arange(len(axis))
        rows.append(table.slab(i, order, order))
    return np.ascontiguousarray(np.concatenate(rows))


def factors(table: LeafTable, axes: Sequence[Axis], masks: NDArray[np.uint32]) -> Factors:
    """The factor graph of a table of leaves.

    Parameters
    ----------
    masks
        As :func:`cell_masks` gives them.
    """
    axis_from = np.concatenate([[0], np.cumsum([len(a) for a in axes])]).astype(np.int32)
    return Factors(
        axis_from, *_build(axis_from, masks, table.full, table.value[:, 1:].copy(), table.trees, table.words)
    )


@entry
def _build(axis_from, masks, full, values, trees, words):  # type: ignore[no-untyped-def]
    axes, cells = len(axis_from) - 1, len(masks)
    classes = np.zeros((trees, cells), np.int32)
    count = np.zeros((trees, axes), np.int32)
    first_of = np.zeros(cells, np.int32)
    slots = 0
    for t in range(trees):
        w0, w1 = t * words, (t + 1) * words
        for i in range(axes):
            known = 0
            for c in range(axis_from[i], axis_from[i + 1]):
                found = -1
                for back in range(known):
                    k = known - 1 - back
                    same = True
                    for w in range(w0, w1):
                        if (masks[first_of[k], w] & full[w]) != (masks[c, w] & full[w]):
                            same = False
                            break
                    if same:
                        found = k
                        break
                if found < 0:
                    first_of[known] = c
                    found = known
                    known += 1
                classes[t, c] = found
            count[t, i] = known
            if known > 1:
                slots += 1
    slot_from, slot_axis = np.zeros(trees + 1, np.int32), np.zeros(slots, np.int32)
    class_from, set_from = np.zeros(slots + 1, np.int32), np.zeros(slots + 1, np.int32)
    leaf_from, table_from = np.zeros(trees + 1, np.int32), np.zeros(trees + 1, np.int64)
    s = 0
    for t in range(trees):
        leaves = 0
        for w in range(t * words, (t + 1) * words):
            for b in range(BITS):
                leaves += (full[w] >> np.uint32(b)) & np.uint32(1)
        for i in range(axes):
            if count[t, i] > 1:
                slot_axis[s] = i
                class_from[s + 1] = class_from[s] + count[t, i]
                s += 1
        slot_from[t + 1] = s
        leaf_from[t + 1] = leaf_from[t] + leaves
        table_from[t + 1] = table_from[t] + np.int64(leaves) * (s - slot_from[t])
    value = np.zeros(leaf_from[trees])
    table = np.zeros(table_from[trees], np.int32)
    word, bit = np.zeros(leaf_from[trees], np.int64), np.zeros(leaf_from[trees], np.int64)
    n = 0
    for t in range(trees):
        for w in range(t * words, (t + 1) * words):
            for b in range(BITS):
                if (full[w] >> np.uint32(b)) & np.uint32(1):
                    value[n], word[n], bit[n] = values[w, b], w, b
                    n += 1
    member = np.zeros(1024, np.int32)
    member_from = np.zeros(256, np.int32)
    sets = members = 0
    for t in range(trees):
        for s in range(slot_from[t], slot_from[t + 1]):
            i, n_classes = slot_axis[s], class_from[s + 1] - class_from[s]
            example = np.zeros(n_classes, np.int32)
            for c in range(axis_from[i], axis_from[i + 1]):
                example[classes[t, c]] = c
            inside = np.zeros(n_classes, np.int32)
            for leaf in range(leaf_from[t], leaf_from[t + 1]):
                size = 0
                for k in range(n_classes):
                    if (masks[example[k], word[leaf]] >> np.uint32(bit[leaf])) & np.uint32(1):
                        inside[size] = class_from[s] + k
                        size += 1
                found = -1
                for known in range(set_from[s], sets):
                    a, b = member_from[known], member_from[known + 1]
                    if b - a != size or member[a] != inside[0] or member[b - 1] != inside[size - 1]:
                        continue
                    same = True
                    for k in range(size):
                        if member[a + k] != inside[k]:
                            same = False
                            break
                    if same:
                        found = known
                        break
                if found < 0:
                    if members + size > len(member):
                        member = np.append(member, np.zeros(len(member) + size, np.int32))
                    if sets + 2 > len(member_from):
                        member_from = np.append(member_from, np.zeros(len(member_from), np.int32))
                    for k in range(size):
                        member[members + k] = inside[k]
                    members += size
                    found = sets
                    sets += 1
                    member_from[sets] = members
                width = slot_from[t + 1] - slot_from[t]
                table[table_from[t] + (leaf - leaf_from[t]) * width + s - slot_from[t]] = found
            set_from[s + 1] = sets
    return (
        classes,
        slot_from,
        slot_axis,
        class_from,
        set_from,
        member_from[: sets + 1].copy(),
        member[:members].copy(),
        leaf_from,
        value,
        table_from,
        table,
    )
