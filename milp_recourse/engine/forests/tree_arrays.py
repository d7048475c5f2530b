"""Scores of points by walking the trees, compiled; and of a whole axis at once, the other axes held.

With all axes but one held, a tree's value is constant on a few stretches of the axis' cells. So one walk per
tree that looks at the axis, on both sides wherever it is tested, gives the scores in all of its cells.

w are :class:`TreeArrays`; x (axes,) is a point, a cell of each axis; t numbers trees, i axes, c cells (of
what concerns nodes: columns).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.compiling import counting as compiled
from milp_recourse.engine.compiling import counting_entry as entry
from milp_recourse.engine.forests.axes import Axis
from milp_recourse.engine.forests.goal import score_error
from milp_recourse.engine.forests.table import in_order, may_be_missing
from milp_recourse.problem.forest import MISSING, TreeEnsemble
from milp_recourse.problem.instance import kept_with

Array = NDArray[np.float64]
Ints = NDArray[np.int32]
Flags = NDArray[np.bool_]


MASK = 64
"""Labels of an axis up to which sets of them are bits."""


class TreeArrays(NamedTuple):
    """What it takes to compute the scores and costs of an applicant's points, as arrays.

    The cells of all axes are numbered consecutively, and so are the nodes of all trees. A point is one cell
    per axis. Nodes that all cells pass on the same side are left out.

    Attributes
    ----------
    axis_from
        First cell of each axis, (axes + 1,).
    root
        First node of each tree, (trees,).
    left, right, axis, value
        Of each node its children (``left`` is -1 at a leaf), the axis that it tests and, at a leaf, its
        value, (nodes,).
    shift
        What to add to a cell of the axis to find the tested column's cell in ``number``, (nodes,).
    cut, missing_left
        The last of the column's cells that goes left at a node; whether a missing value does; (nodes,).
    last
        The last of the axis' cells that goes left, where the axis is ordered, (nodes,).
    goes
        Which of the axis' cells go left, as bits, where the axis is not ordered and has few, (nodes,).
    number
        Column by column, the column's cell in each cell of its axis.
    ordered, first
        Whether leaves are reached from consecutive cells of an axis, not counting a first cell for a missing
        value; the first of those cells; (axes,).
    tree_from, tree
        The trees that test each axis: where they begin, (axes + 1,), and the trees.
    deepest
        Most nodes that a walk of a tree puts aside to visit later.
    ends, largest
        Where each part of the trees ends, (parts,); whether the score is the largest of their sums, or the
        smallest.
    base, mean, single
        What the sum starts from; whether it is divided by the trees' number; whether it is taken in float32.
    threshold, error
        The score must be above the threshold; how far the values added in another order may be from it.
    added, widest
        Costs of cells: what they add to the sum, and their entries in the maximum; (cells,).
    start
        The cheapest cell of every axis, (axes,).
    most
        How many axes may be in cells that cost anything.
    """

    axis_from: Ints
    root: Ints
    left: Ints
    right: Ints
    axis: Ints
    value: Array
    shift: Ints
    cut: Ints
    missing_left: Flags
    last: Ints
    goes: NDArray[np.uint64]
    number: Ints
    ordered: Flags
    first: Ints
    tree_from: Ints
    tree: Ints
    deepest: int
    ends: Ints
    largest: bool
    base: float
    mean: bool
    single: bool
    threshold: float
    error: float
    added: Array
    widest: Array
    start: Ints
    most: int


class _Sides(NamedTuple):
    """What decides on which side of a node an applicant's cells are, by column of the ensemble.

    Attributes
    ----------
    of_column
        The axis that moves each column, -1 for none, (columns,).
    fixed
        The factual's cell on each column, (columns,); used where no axis moves it.
    shift
        As in :class:`TreeArrays`, by column, (columns,).
    axis_from, number, ordered, first
        As in :class:`TreeArrays`.
    """

    of_column: Ints
    fixed: Ints
    shift: Ints
    axis_from: Ints
    number: Ints
    ordered: Flags
    first: Ints


class _Nodes(NamedTuple):
    """An ensemble's nodes, whoever the applicant is: ``root`` (trees,), the others (nodes,)."""

    root: Ints
    left: Ints
    right: Ints
    column: Ints
    value: Array
    cut: Ints
    missing_left: Flags


@kept_with()
def _nodes_of(forest: TreeEnsemble) -> _Nodes:
    """The nodes of all trees, numbered consecutively."""
    nodes, start = forest.nodes
    root, left, right, column, cut = (
        array.astype(np.int32) for array in (start, nodes.left, nodes.right, nodes.feature, forest.last_cells)
    )
    assert nodes.missing_left is not None
    return _Nodes(root, left, right, column, nodes.value, cut, nodes.missing_left)


def tree_arrays(
    forest: TreeEnsemble,
    factual: NDArray[np.int64],
    axes: list[Axis],
    threshold: float,
    most: int | None = None,
) -> TreeArrays:
    """The arrays for an ensemble over an applicant's axes.

    Parameters
    ----------
    factual
        The factual's cell on every column.
    most
        How many axes may be in cells that cost anything; None: all.
    """
    axis_from = np.concatenate([[0], np.cumsum([len(a) for a in axes])]).astype(np.int32)
    of_column = np.full(forest.inputs, -1, dtype=np.int32)
    shift, size = np.zeros(forest.inputs, dtype=np.int32), 0
    numbers = [np.empty(0, dtype=np.int32)]
    ordered, first = np.zeros(len(axes), dtype=np.bool_), axis_from[:-1].copy()
    for i, axis in enumerate(axes):
        ordered[i] = in_order(axis)
        first[i] += may_be_missing(axis)
        for c, cells in axis.columns:
            of_column[c], shift[c] = i, size - axis_from[i]
            numbers.append(cells.astype(np.int32))
            size += len(cells)
    number = np.concatenate(numbers)
    sides = _Sides(of_column, factual.astype(np.int32), shift, axis_from, number, ordered, first)
    arrays = _pruned(_nodes_of(forest), sides)
    made: dict[str, Any] = dict(zip(PRUNED, arrays, strict=True))
    trees = [np.flatnonzero(own) for own in made.pop("looks").T]
    return TreeArrays(
        axis_from=axis_from,
        **made,
        number=number,
        ordered=ordered,
        first=first,
        tree_from=np.cumsum([0, *map(len, trees)]).astype(np.int32),
        tree=np.concatenate([np.empty(0, np.int64), *trees]).astype(np.int32),
        ends=np.cumsum(forest.parts or (len(forest.trees),)).astype(np.int32),
        largest=forest.combine == "largest",
        base=float(forest.base),
        mean=forest.aggregate == "mean",
        single=forest.sum_dtype == "float32",
        threshold=float(threshold),
        error=max(score_error(forest, threshold, k)[0] for k in range(len(forest.parts) or 1)),
        added=np.concatenate([np.empty(0), *(a.added for a in axes)]),
        widest=np.concatenate([np.empty(0), *(a.widest for a in axes)]),
        start=np.array([a.start for a in axes], dtype=np.int32) + axis_from[:-1],
        most=len(axes) if most is None else min(most, len(axes)),
    )


PRUNED = (
    *("root", "left", "right", "axis", "value", "shift", "cut", "missing_left", "last", "goes"),
    *("looks", "deepest"),
)
"""What :func:`_pruned` returns."""


@entry
def _pruned(nodes, sides):
    """The trees without nodes that every cell passes on one side, as :class:`TreeArrays` has them; which axes
    each tree still tests, (trees, axes)."""
    trees, size = len(nodes.root), len(nodes.left)
    new_root = np.zeros(trees, np.int32)
    children = np.full((2, size), -1, np.int32)
    axis, new_value = np.full(size, -1, np.int32), np.zeros(size)
    new_shift, new_cut, last = np.zeros(size, np.int32), np.zeros(size, np.int32), np.zeros(size, np.int32)
    new_missing, goes = np.zeros(size, np.bool_), np.zeros(size, np.uint64)
    looks = np.zeros((trees, len(sides.axis_from) - 1), np.bool_)
    old, parent, side = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32)
    made = deepest = 0
    for t in range(trees):
        old[0], parent[0] = nodes.root[t], -1
        waiting = 1
        while waiting:
            waiting -= 1
            at, upto = _first_split(nodes, sides, old[waiting])
            new = made
            made += 1
            if parent[waiting] < 0:
                new_root[t] = new
            else:
                children[side[waiting], parent[waiting]] = new
            if nodes.left[at] < 0:
                new_value[new] = nodes.value[at]
                continue
            c = nodes.column[at]
            i = sides.of_column[c]
            axis[new], new_shift[new], new_cut[new], last[new] = i, sides.shift[c], nodes.cut[at], upto
            new_missing[new], goes[new] = nodes.missing_left[at], _bits_left(nodes, sides, at)
            looks[t, i] = True
            for which, child in ((1, nodes.right[at]), (0, nodes.left[at])):
                old[waiting], parent[waiting], side[waiting] = child, new, which
                waiting += 1
            deepest = max(deepest, waiting)
    return (
        new_root,
        children[0, :made].copy(),
        children[1, :made].copy(),
        axis[:made].copy(),
        new_value[:made].copy(),
        new_shift[:made].copy(),
        new_cut[:made].copy(),
        new_missing[:made].copy(),
        last[:made].copy(),
        goes[:made].copy(),
        looks,
        deepest + 1,
    )


@compiled
def _first_split(nodes, sides, at):
    """The first node down from ``at`` that cells pass on both sides, or the leaf reached; and the last cell
    that goes left there (-1 at a leaf, and where the axis is not ordered)."""
    while nodes.left[at] >= 0:
        c = nodes.column[at]
        i = sides.of_column[c]
        if i < 0:
            on_left = nodes.missing_left[at] if sides.fixed[c] == MISSING else sides.fixed[c] <= nodes.cut[at]
            at = nodes.left[at] if on_left else nodes.right[at]
            continue
        to_left, to_right, upto = _counts(nodes, sides, at, c, i)
        if to_left and to_right:
            return at, upto
        at = nodes.left[at] if to_left else nodes.right[at]
    return at, -1


@compiled
def _counts(nodes, sides, at, c, i):
    """How many cells of axis i go left, and right, at a node that tests column c; the last that goes left (-1
    where the axis is not ordered)."""
    first, end = sides.first[i], sides.axis_from[i + 1]
    if not sides.ordered[i]:
        to_left = 0
        for cell in range(sides.axis_from[i], end):
            to_left += _goes_left(nodes, sides, at, c, cell)
        return to_left, end - sides.axis_from[i] - to_left, -1
    low, high = first, end  # the first cell that does not go left
    while low < high:
        middle = (low + high) // 2
        if sides.number[sides.shift[c] + middle] <= nodes.cut[at]:
            low = middle + 1
        else:
            high = middle
    to_left, to_right = low - first, end - low
    if first > sides.axis_from[i]:
        to_left += nodes.missing_left[at]
        to_right += not nodes.missing_left[at]
    return to_left, to_right, low - 1


@compiled
def _goes_left(nodes, sides, at, c, cell):
    """Whether a cell goes left at a node that tests column c."""
    n = sides.number[sides.shift[c] + cell]
    return nodes.missing_left[at] if n == MISSING else n <= nodes.cut[at]


@compiled
def _bits_left(nodes, sides, at):
    """The cells that go left at a node, as bits, where its axis is not ordered and has few."""
    c = nodes.column[at]
    i = sides.of_column[c]
    a, b, bits = sides.axis_from[i], sides.axis_from[i + 1], np.uint64(0)
    if not sides.ordered[i] and b - a <= MASK:
        for cell in range(a, b):
            if _goes_left(nodes, sides, at, c, cell):
                bits |= np.uint64(1) << np.uint64(cell - a)
    return bits


@compiled
def value_at(w, t, x):
    """The value of tree t at a point."""
    node = w.root[t]
    while w.left[node] >= 0:
        node = _child(w, node, x)
    return w.value[node]


@compiled
def _child(w, node, x):
    """The child that a point goes to at a node that is no leaf."""
    cell = w.number[w.shift[node] + x[w.axis[node]]]
    to_left = w.missing_left[node] if cell == MISSING else cell <= w.cut[node]
    return w.left[node] if to_left else w.right[node]


@compiled
def values_at(w, x, values):
    """Fill in every tree's value at a point. Shape: values (trees,)."""
    for t in range(len(w.root)):
        values[t] = value_at(w, t, x)


@compiled
def update_values(w, x, i, values):
    """Fill in the values of the trees that test an axis, after the point has moved on it. Shape: values
    (trees,)."""
    for n in range(w.tree_from[i], w.tree_from[i + 1]):
        values[w.tree[n]] = value_at(w, w.tree[n], x)


@compiled
def deployed(w, values):
    """The deployed score of the trees' values: added in order, part by part. Shape: values (trees,)."""
    score, first = 0.0, 0
    for k in range(len(w.ends)):
        own = _deployed_part(w, values, first, w.ends[k])
        score = own if k == 0 else combined(w, score, own)
        first = w.ends[k]
    return score


@compiled
def _deployed_part(w, values, first, end):
    """The deployed sum, or mean, of the values of trees ``first`` to ``end`` (exclusive). Shape: values
    (trees,)."""
    trees = end - first
    if w.single:
        single = np.float32(w.base)
        for t in range(first, end):
            single = np.float32(single + np.float32(values[t]))
        return float(single / np.float32(trees)) if w.mean else float(single)
    double = w.base
    for t in range(first, end):
        double += values[t]
    return double / trees if w.mean else double


@compiled
def combined(w, one, other):
    """The score of two parts' sums."""
    return max(one, other) if w.largest else min(one, other)


@compiled
def summed(w, values):
    """The trees' values added up, without the division of a mean; for comparison with what :func:`sums_along`
    gives, to within ``error``. Shape: values (trees,)."""
    score, first = 0.0, 0
    for k in range(len(w.ends)):
        own = w.base
        for t in range(first, w.ends[k]):
            own += values[t]
        score = own if k == 0 else combined(w, score, own)
        first = w.ends[k]
    return score


@entry
def score_at(w, x):
    """The deployed score of a point."""
    values = np.empty(len(w.root))
    values_at(w, x, values)
    return deployed(w, values)


@compiled
def sums_along(w, x, i, values, sums):
    """Fill in the sums of the trees' values in every cell of an axis, to within ``error``.

    Parameters
    ----------
    values
        The trees' values at the point x, (trees,).
    sums
        Gets the sums in its entries for the axis, (cells,).
    """
    a, b = w.axis_from[i], w.axis_from[i + 1]
    own = sums if len(w.ends) == 1 else np.empty(len(sums))
    first, n = 0, w.tree_from[i]
    for k in range(len(w.ends)):
        m = n  # entries n to m of the list are the part's trees that test the axis
        while m < w.tree_from[i + 1] and w.tree[m] < w.ends[k]:
            m += 1
        held = w.base
        for t in range(first, w.ends[k]):
            held += values[t]
        for t in range(n, m):
            held -= values[w.tree[t]]
        _along(w, x, i, n, m, held, own)
        if len(w.ends) > 1:
            for c in range(a, b):
                sums[c] = own[c] if k == 0 else combined(w, sums[c], own[c])
        first, n = w.ends[k], m


@compiled
def _along(w, x, i, begin, end, held, sums):
    """Fill in, for every cell of the axis, ``held`` plus the values of some trees, given by their places in
    the axis' list. Shape: sums (cells,)."""
    a, b = w.axis_from[i], w.axis_from[i + 1]
    if w.ordered[i]:
        _along_cells(w, x, i, begin, end, held, sums)
    elif b - a <= MASK:
        _along_labels(w, x, i, begin, end, held, sums)
    else:
        _one_by_one(w, x, i, a, b, begin, end, held, sums)


@compiled
def _one_by_one(w, x, i, first, last, begin, end, held, sums):
    """The same for cells ``first`` to ``last`` (exclusive), by moving the point to each of them. Shape: sums
    (cells,)."""
    before = x[i]
    for c in range(first, last):
        x[i], sums[c] = c, held
        for n in range(begin, end):
            sums[c] += value_at(w, w.tree[n], x)
    x[i] = before


@compiled
def _along_cells(w, x, i, begin, end, held, sums):
    """The same on an ordered axis: each leaf's value is added at its first cell and taken off behind its
    last, and the sums are accumulated. Shape: sums (cells,)."""
    a, b, first = w.axis_from[i], w.axis_from[i + 1], w.first[i]
    _one_by_one(w, x, i, a, first, begin, end, held, sums)
    for c in range(first, b):
        sums[c] = 0.0
    node, low = np.empty(w.deepest, np.int32), np.empty(w.deepest, np.int32)
    high = np.empty(w.deepest, np.int32)
    for n in range(begin, end):
        node[0], low[0], high[0] = w.root[w.tree[n]], first, b - 1
        waiting = 1
        while waiting:
            waiting -= 1
            at, least, most = node[waiting], low[waiting], high[waiting]
            while w.left[at] >= 0:
                if w.axis[at] == i:
                    last = w.last[at]
                    if most <= last:
                        at = w.left[at]
                    elif least > last:
                        at = w.right[at]
                    else:
                        node[waiting], low[waiting], high[waiting] = w.right[at], last + 1, most
                        waiting += 1
                        at, most = w.left[at], last
                else:
                    at = _child(w, at, x)
            sums[least] += w.value[at]
            if most + 1 < b:
                sums[most + 1] -= w.value[at]
    for c in range(first, b):
        held += sums[c]
        sums[c] = held


@compiled
def _along_labels(w, x, i, begin, end, held, sums):
    """The same on an axis of labels, where the bits of a number are a set of labels. Shape: sums (cells,)."""
    a, b = w.axis_from[i], w.axis_from[i + 1]
    for c in range(a, b):
        sums[c] = held
    every = ~np.uint64(0) >> np.uint64(MASK - (b - a))
    node, inside = np.empty(w.deepest, np.int32), np.empty(w.deepest, np.uint64)
    for n in range(begin, end):
        node[0], inside[0] = w.root[w.tree[n]], every
        waiting = 1
        while waiting:
            waiting -= 1
            at, reaching = node[waiting], inside[waiting]
            while w.left[at] >= 0:
                if w.axis[at] == i:
                    on_left = reaching & w.goes[at]
                    on_right = reaching & ~w.goes[at]
                    if on_left and on_right:
                        node[waiting], inside[waiting] = w.right[at], on_right
                        waiting += 1
                    at, reaching = (w.left[at], on_left) if on_left else (w.right[at], on_right)
                else:
                    at = _child(w, at, x)
            value, c = w.value[at], a
            while reaching:
                if reaching & np.uint64(1):
                    sums[c] += value
                reaching >>= np.uint64(1)
                c += 1
