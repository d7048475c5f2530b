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

from milp_recourse.engine.compiling import counting as compiled
from milp_recourse.engine.compiling import counting_entry as entry
from milp_recourse.engine.forests.axes import Axis
from milp_recourse.engine.forests.table import BITS, LeafTable

Array = NDArray[np.float64]
Ints = NDArray[np.int32]


class Factors(NamedTuple):
    """The arrays of the factor graph; a slot is a pair of a tree and an axis that it tests.

    Attributes
    ----------
    axis_from
        First cell of each axis among all cells, (axes + 1,).
    classes
        Class of every cell within its axis' slot, (trees, cells); 0 where the tree does not test the axis.
    slot_from, slot_axis
        First slot of each tree, (trees + 1,); the axis of each slot, (slots,).
    class_from
        First class of each slot among all classes, (slots + 1,).
    set_from
        First set of each slot among all sets, (slots + 1,).
    member_from, member
        Where each set begins in the list of members, (sets + 1,); the classes of each set, numbered among all
        classes.
    leaf_from, value
        First leaf of each tree, (trees + 1,), most valuable first; the leaves' values, (leaves,).
    table_from, table
        Where each tree begins in the table, (trees + 1,); per tree, the set of every leaf on every slot of
        the tree, leaf by leaf.
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
    return np.ascontiguousarray(np.concatenate(table.cell_masks(axes)))


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
def _build(axis_from, masks, full, values, trees, words):
    """The arrays of :class:`Factors` after ``axis_from``. Shapes: axis_from (axes + 1,),
    masks (cells, all words), full (all words,), values (all words, 32); ``words`` is how many each tree
    has."""
    classes, count = _classes(axis_from, masks, full, trees, words)
    slot_from, slot_axis, class_from = _slots(count)
    leaf_from, word, bit = _places(full, trees, words)
    value = np.zeros(len(word))
    for n in range(len(word)):
        value[n] = values[word[n], bit[n]]
    table_from = np.zeros(trees + 1, np.int64)
    for t in range(trees):
        width = np.int64(slot_from[t + 1] - slot_from[t])
        table_from[t + 1] = table_from[t] + (leaf_from[t + 1] - leaf_from[t]) * width
    table = np.zeros(table_from[trees], np.int32)
    set_from, member_from = np.zeros(len(slot_axis) + 1, np.int32), np.zeros(256, np.int32)
    member = np.zeros(1024, np.int32)
    for t in range(trees):
        for s in range(slot_from[t], slot_from[t + 1]):
            first, n_classes = class_from[s], class_from[s + 1] - class_from[s]
            example = np.zeros(n_classes, np.int32)  # a cell of each class
            for c in range(axis_from[slot_axis[s]], axis_from[slot_axis[s] + 1]):
                example[classes[t, c]] = c
            inside, sets = np.zeros(n_classes, np.int32), set_from[s]
            width, at = slot_from[t + 1] - slot_from[t], table_from[t] + s - slot_from[t]
            for leaf in range(leaf_from[t], leaf_from[t + 1]):
                size = 0
                for k in range(n_classes):
                    if (masks[example[k], word[leaf]] >> np.uint32(bit[leaf])) & np.uint32(1):
                        inside[size] = first + k
                        size += 1
                found = _known_set(member_from, member, set_from[s], sets, inside, size)
                if found == sets:
                    end = member_from[sets] + size
                    if end > len(member):
                        member = np.append(member, np.zeros(end, np.int32))
                    if sets + 2 > len(member_from):
                        member_from = np.append(member_from, np.zeros(len(member_from), np.int32))
                    member[end - size : end] = inside[:size]
                    sets += 1
                    member_from[sets] = end
                table[at + (leaf - leaf_from[t]) * width] = found
            set_from[s + 1] = sets
    sets = set_from[-1]
    return (
        *(classes, slot_from, slot_axis, class_from, set_from),
        *(member_from[: sets + 1].copy(), member[: member_from[sets]].copy()),
        *(leaf_from, value, table_from, table),
    )


@compiled
def _classes(axis_from, masks, full, trees, words):
    """The class of every cell to every tree, and how many classes of every axis there are. They are (trees,
    cells) and (trees, axes); axis_from (axes + 1,), masks (cells, all words), full (all words,)."""
    axes, cells = len(axis_from) - 1, len(masks)
    classes, count = np.zeros((trees, cells), np.int32), np.zeros((trees, axes), np.int32)
    first_of = np.zeros(cells, np.int32)
    for t in range(trees):
        for i in range(axes):
            known = 0
            for c in range(axis_from[i], axis_from[i + 1]):
                k = known - 1  # a neighbour's class is the likeliest
                while k >= 0 and not _same(masks, full, first_of[k], c, t * words, (t + 1) * words):
                    k -= 1
                if k < 0:
                    first_of[known] = c
                    k = known
                    known += 1
                classes[t, c] = k
            count[t, i] = known
    return classes, count


@compiled
def _same(masks, full, one, other, begin, end):
    """Whether two cells can reach the same leaves of the words ``begin`` to ``end`` (exclusive). Shapes:
    masks (cells, all words), full (all words,)."""
    w = begin
    while w < end and (masks[one, w] & full[w]) == (masks[other, w] & full[w]):
        w += 1
    return w == end


@compiled
def _slots(count):
    """``slot_from``, ``slot_axis`` and ``class_from`` of :class:`Factors`: the axes that tell a tree's leaves
    apart, and where their classes begin. From count (trees, axes), how many classes there are."""
    trees, axes = count.shape
    slots = (count > 1).sum()
    slot_from, slot_axis = np.zeros(trees + 1, np.int32), np.zeros(slots, np.int32)
    class_from = np.zeros(slots + 1, np.int32)
    s = 0
    for t in range(trees):
        for i in range(axes):
            if count[t, i] > 1:
                slot_axis[s] = i
                class_from[s + 1] = class_from[s] + count[t, i]
                s += 1
        slot_from[t + 1] = s
    return slot_from, slot_axis, class_from


@compiled
def _places(full, trees, words):
    """Where each tree's leaves begin, (trees + 1,), and the word and the bit of every leaf, (leaves,) each,
    from full (all words,)."""
    leaf_from = np.zeros(trees + 1, np.int32)
    word, bit = np.zeros(len(full) * BITS, np.int64), np.zeros(len(full) * BITS, np.int64)
    n = 0
    for t in range(trees):
        for w in range(t * words, (t + 1) * words):
            for b in range(BITS):
                if (full[w] >> np.uint32(b)) & np.uint32(1):
                    word[n], bit[n] = w, b
                    n += 1
        leaf_from[t + 1] = n
    return leaf_from, word[:n].copy(), bit[:n].copy()


@compiled
def _known_set(member_from, member, begin, end, inside, size):
    """The first of the sets from begin on that has exactly these members; ``end`` where none has. Shapes:
    member_from (end + 1 or more,), member (members or more,), inside (size or more,)."""
    for z in range(begin, end):
        a, k = member_from[z], 0
        if member_from[z + 1] - a != size:
            continue
        while k < size and member[a + k] == inside[k]:
            k += 1
        if k == size:
            return z
    return end
