"""The factor graph that a node is bounded in: all of the problem, or only what is left in a node."""

from __future__ import annotations

import numpy as np

from milp_recourse.engine.compiling import counting_entry as entry
from milp_recourse.engine.forests.axes import rounded_down
from milp_recourse.engine.forests.factors import Array, Factors, Ints
from milp_recourse.engine.forests.living import Live, lists
from milp_recourse.engine.forests.tree_arrays import TreeArrays
from milp_recourse.engine.forests.weighted import WeightedSums


class Graph:
    """A factor graph, and the arrays that nodes are bounded in.

    Attributes
    ----------
    sums
        The graph, under any weights of the sums.
    points, cell
        The applicant's points; the cells' numbers among theirs.
    added, wide
        What cells cost in the sum, and in the maximum.
    cost, least
        What cells cost with nothing else acted on; lower bounds of what they cost in the sum.
    of_cell
        The axis of each cell.
    moved, most
        1 for cells that cost anything, else 0, and how many axes may be in such cells; without a limit no
        entries, and 0.
    room
        Lists of what is left in the node at hand.
    x, energy, loss, torn
        What :func:`~milp_recourse.engine.forests.prices.assess` writes: (axes,), (leaves,) and (3, cells);
        and what :func:`~milp_recourse.engine.forests.passing.sweep` does, (cells,).
    """

    def __init__(self, sums: WeightedSums, points: TreeArrays, cell: Ints) -> None:
        f = sums.factors
        self.sums, self.points, self.cell, self.room = sums, points, cell, lists(f)
        self.x = np.zeros(len(f.axis_from) - 1, dtype=np.int32)
        self.energy, self.loss = np.zeros(len(f.value)), np.zeros((3, len(cell)))
        self.torn = np.zeros(len(cell))
        self.added, self.wide = points.added[cell], points.widest[cell]
        self.cost, self.least = self.added + self.wide, rounded_down(self.added, len(self.x))
        self.of_cell = np.repeat(np.arange(len(self.x)), np.diff(f.axis_from))
        limited = points.most < len(points.start)
        self.most = float(points.most if limited else 0)
        self.moved = (self.cost > 0.0).astype(np.float64) if limited else np.empty(0)

    def of_living(self, price: Array) -> tuple[Graph, Array]:
        """The graph of the cells and leaves that :attr:`room` lists, and its prices; its bounds are the
        same."""
        made, prices = restricted(self.sums.factors, self.room, price)
        cell = self.cell[self.room.cell[: self.room.cell_to[-1]]]
        return Graph(self.sums.of(made), self.points, cell), prices


def restricted(f: Factors, live: Live, price: Array) -> tuple[Factors, Array]:
    """The factor graph of the living cells and leaves only, and its prices; its bounds are the same."""
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
def _restricted(f, live, price):
    """The arrays of :func:`restricted`, with cells, classes and sets numbered anew. Given price (classes,);
    they come as those of :class:`~milp_recourse.engine.forests.factors.Factors`, then the prices that are
    left."""
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
