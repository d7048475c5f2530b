"""Tree ensembles as arrays of nodes, evaluated with the same comparisons and sums as the deployed model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Precision = Literal["float32", "float64"]
Aggregate = Literal["mean", "sum"]
Combine = Literal["smallest", "largest"]

MISSING = -1
"""The number of the cell of a missing value."""

_BLOCK = 2**20
"""The largest number of leaf values computed at a time."""


@dataclass(frozen=True, eq=False)
class Tree:
    """One binary tree as arrays with an entry per node; a node is a leaf if ``left == -1``.

    At any other node a row goes left if x[feature], rounded to the ensemble's ``dtype``, is at most the
    threshold, a double. A missing value (nan) goes left if ``missing_left`` is true; where ``missing_left``
    is None, the tree has no rule for missing values.
    """

    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: NDArray[np.float64]
    missing_left: NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class TreeEnsemble:
    r"""Trees whose values are added up in order to a score; with ``mean`` the sum is divided by their number.

    .. math:: s = (\dots((b + v_1) + v_2) + \dots + v_T) \; [/ T]

    Every ``+`` and ``/`` rounds to ``sum_dtype``.

    With ``parts``, consecutive trees add up to one sum per part, each starting from b, and the score is the
    smallest or the largest sum. Models with more than two classes are read so: a part is the margin of one
    class over another. Class c is predicted if the smallest of its margins over the others is above 0; a
    class other than c is predicted if the largest of the others' margins over c is above 0.

    Parameters
    ----------
    trees
        The trees, in the order in which they are added up.
    inputs
        Number of input columns.
    aggregate
        ``mean``: of probabilities (random forests). ``sum``: of boosted trees' contributions.
    base
        b, what a boosted sum starts from.
    dtype
        What a value is rounded to before it is compared: float32 (scikit-learn's trees, XGBoost) or float64
        (HistGradientBoosting, LightGBM).
    sum_dtype
        Precision of the sum: float64, or float32 (XGBoost).
    parts
        Number of trees of each part, in order; empty if all trees add up to one score.
    combine
        Whether the score is the smallest or the largest of the parts' sums.
    """

    trees: tuple[Tree, ...]
    inputs: int
    aggregate: Aggregate = "mean"
    base: float = 0.0
    dtype: Precision = "float32"
    sum_dtype: Precision = "float64"
    parts: tuple[int, ...] = ()
    combine: Combine = "smallest"

    def __repr__(self) -> str:
        """How scores are combined, and the number of trees, nodes and inputs."""
        nodes = sum(len(tree.feature) for tree in self.trees)
        what = (
            f"{self.combine} {self.aggregate} of {len(self.parts)} parts," if self.parts else self.aggregate
        )
        return f"TreeEnsemble({what} of {len(self.trees)} trees, {nodes} nodes, {self.inputs} inputs)"

    @cached_property
    def part_of(self) -> NDArray[np.int64]:
        """The part that each tree belongs to, shape (trees,)."""
        sizes = self.parts or (len(self.trees),)
        return np.repeat(np.arange(len(sizes)), sizes)

    @cached_property
    def largest(self) -> NDArray[np.float64]:
        """The largest absolute value of every tree's leaves, shape (trees,)."""
        return np.array([np.abs(tree.value[tree.left == -1]).max() for tree in self.trees], dtype=np.float64)

    @property
    def written(self) -> dict[str, Any]:
        """As files state it: ``aggregate``, ``base`` and ``sum_dtype`` are left out for a mean; ``parts`` and
        ``combine`` where there are no parts; ``missing_left`` where a tree has none."""
        keys = ("feature", "threshold", "left", "right", "value")
        entry: dict[str, Any] = {"kind": "tree-ensemble", "dtype": self.dtype}
        if self.aggregate != "mean":
            entry |= {"aggregate": self.aggregate, "base": self.base, "sum_dtype": self.sum_dtype}
        if self.parts:
            entry |= {"parts": list(self.parts), "combine": self.combine}
        trees = []
        for tree in self.trees:
            used = keys if tree.missing_left is None else (*keys, "missing_left")
            trees.append({key: getattr(tree, key).tolist() for key in used})
        return entry | {"trees": trees}

    def alone(self, part: int) -> TreeEnsemble:
        """The ensemble of one part."""
        own = tuple(t for t, k in zip(self.trees, self.part_of.tolist(), strict=True) if k == part)
        return replace(self, trees=own, parts=())

    def score(self, x: NDArray[np.float64] | Sequence[float]) -> float:
        """The deployed score of one row of doubles, shape (inputs,)."""
        return float(self.scores(np.asarray(x, dtype=np.float64)[None])[0])

    def scores(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The deployed scores of rows of doubles, shape (n, inputs)."""
        with np.errstate(over="ignore"):  # beyond float32 is infinity, on the right of every threshold
            rounded = x.astype(self.dtype).astype(np.float64)
        block = max(1, _BLOCK // len(self.trees))
        parts = [self.total(self.values_at(rounded[k : k + block])) for k in range(0, len(rounded), block)]
        return np.concatenate(parts) if parts else np.empty(0)

    def values_at(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Value per tree, shape (n, trees), of the leaves that rows (n, inputs) reach.

        The rows must be rounded to ``dtype`` already.
        """
        flat, start = self.nodes
        missing = np.isnan(x)
        any_missing = bool(missing.any())
        node = np.broadcast_to(start, (len(x), len(start))).copy()
        rows, trees = np.nonzero(flat.left[node] >= 0)
        while len(rows):
            at = node[rows, trees]
            left = x[rows, flat.feature[at]] <= flat.threshold[at]
            if any_missing:
                assert flat.missing_left is not None
                left = np.where(missing[rows, flat.feature[at]], flat.missing_left[at], left)
            at = np.where(left, flat.left[at], flat.right[at])
            node[rows, trees] = at
            inner = flat.left[at] >= 0
            rows, trees = rows[inner], trees[inner]
        return flat.value[node]

    def total(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The scores, shape (n,), of leaf values, shape (n, trees).

        A rounded sum never falls when a term grows, and neither does the smallest or largest of several sums.
        So upper bounds of leaf values give an upper bound of the score.
        """
        ends = np.cumsum(self.parts or (len(self.trees),))
        each = [self._sum(part) for part in np.split(values, ends[:-1], axis=1)]
        chosen = np.minimum if self.combine == "smallest" else np.maximum
        found: NDArray[np.float64] = chosen.reduce(each)
        return found

    def _sum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        first = np.full((len(values), 1), self.base)
        terms = np.concatenate([first, values], axis=1).astype(self.sum_dtype)
        total = np.add.accumulate(terms, axis=1)[:, -1]  # one by one; np.sum would add in pairs
        if self.aggregate == "mean":
            total = total / total.dtype.type(values.shape[1])
        return total.astype(np.float64)

    @cached_property
    def nodes(self) -> tuple[Tree, NDArray[np.int64]]:
        """All trees joined into one :class:`Tree`, and the position of each one's root in it."""
        sizes = [len(tree.left) for tree in self.trees]
        starts = np.cumsum([0, *sizes[:-1]])
        names = ("feature", "threshold", "left", "right", "value")
        columns = {n: np.concatenate([getattr(t, n) for t in self.trees]) for n in names}
        rules = [
            np.zeros(len(t.left), dtype=bool) if t.missing_left is None else t.missing_left
            for t in self.trees
        ]
        columns["missing_left"] = np.concatenate(rules)
        shift = np.repeat(starts, sizes)
        for name in ("left", "right"):
            columns[name] = np.where(columns[name] == -1, -1, columns[name] + shift)
        return Tree(**columns), starts

    @cached_property
    def cuts(self) -> tuple[NDArray[np.float64], ...]:
        """Per column, the largest doubles that go left at its thresholds, distinct and ascending.

        They divide the column into cells: cell k holds the values above exactly k cuts. Two values of one
        cell take the same branch at every node.
        """
        flat, _ = self.nodes
        inner = np.flatnonzero(flat.left != -1)
        order = inner[np.argsort(flat.feature[inner], kind="stable")]
        borders = np.searchsorted(flat.feature[order], np.arange(self.inputs + 1))
        ends = self._last_left[order]
        return tuple(np.unique(ends[a:b]) for a, b in pairwise(borders.tolist()))

    @cached_property
    def split(self) -> tuple[int, ...]:
        """The columns that trees split on."""
        return tuple(k for k, cuts in enumerate(self.cuts) if len(cuts))

    @cached_property
    def _last_left(self) -> NDArray[np.float64]:
        """:func:`last_left` of every node of :attr:`nodes`."""
        return last_left(self.nodes[0].threshold, self.dtype)

    @cached_property
    def last_cells(self) -> NDArray[np.int64]:
        """For every node of :attr:`nodes`, the last cell of its column that goes left; 0 at leaves."""
        nodes, cells = self.nodes[0], np.zeros(len(self.nodes[0].left), dtype=np.int64)
        inner = nodes.left != -1
        for c in np.unique(nodes.feature[inner]):
            of_column = inner & (nodes.feature == c)
            cells[of_column] = np.searchsorted(self.cuts[c], self._last_left[of_column])
        return cells

    @cached_property
    def without_rule(self) -> frozenset[int]:
        """Columns that a tree without a rule for missing values splits on."""
        split = [t.feature[t.left != -1] for t in self.trees if t.missing_left is None]
        return frozenset(np.concatenate(split).tolist()) if split else frozenset()

    @cached_property
    def leaves(self) -> tuple[Leaves, ...]:
        """The leaves of every tree as boxes of cells."""
        every, borders = self._leaves
        ends = list(pairwise(borders.tolist()))
        parts = ([getattr(every, name)[a:b] for a, b in ends] for name in Leaves.__dataclass_fields__)
        return tuple(Leaves(*part) for part in zip(*parts, strict=True))

    @property
    def every_leaf(self) -> Leaves:
        """The leaves of all trees, one after the other."""
        return self._leaves[0]

    @cached_property
    def _leaves(self) -> tuple[Leaves, NDArray[np.int64]]:
        return _leaves(self, *self.nodes)


@dataclass(frozen=True, eq=False)
class Leaves:
    """Leaves of one tree or of all trees, as boxes of cells.

    A row reaches leaf k if for every column c either low[k, c] <= cell of c <= high[k, c], or the value of c
    is missing (its cell is :data:`MISSING`) and missing[k, c] is true.

    Attributes
    ----------
    node
        Position in the tree's arrays, shape (leaves,).
    value
        The leaf's value, shape (leaves,).
    low, high
        First and last cell per column, shape (leaves, columns); low > high if only a missing value leads
        there. Leaves that no row reaches are left out.
    missing
        Whether a missing value of the column can lead there, shape (leaves, columns).
    """

    node: NDArray[np.int64]
    value: NDArray[np.float64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    missing: NDArray[np.bool_]

    def met(self, cells: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each leaf's box contains a row's cells in the given columns, shape (leaves,).

        Parameters
        ----------
        cells
            The row's cell in every column, shape (all columns,).
        columns
            The columns that are compared.
        """
        low, high, missing = (end[:, columns] for end in (self.low, self.high, self.missing))
        compared = cells[columns]
        met = ((low <= compared) & (compared <= high)) | (missing & (compared == MISSING))
        every: NDArray[np.bool_] = met.all(axis=1)
        return every

    def reached(self, column: int, cells: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each leaf's box contains each of the given cells of a column (:data:`MISSING` may be one),
        shape (leaves, cells)."""
        low, high, missing = (end[:, column, None] for end in (self.low, self.high, self.missing))
        met: NDArray[np.bool_] = ((low <= cells) & (cells <= high)) | (missing & (cells == MISSING))
        return met


def last_left(threshold: NDArray[np.float64], dtype: Precision = "float32") -> NDArray[np.float64]:
    r"""The largest double that goes left at each threshold; -inf if no finite double does.

    With f the largest float32 not above the threshold, doubles below the midpoint of f and the next float32
    go left, and so does the midpoint itself if it rounds to f (ties go to even). Beyond the largest and the
    smallest finite float32 the next ones count as :math:`\pm 2^{128}`, as in the rule for rounding to
    infinity.

    Parameters
    ----------
    threshold
        Finite doubles, shape (n,).
    dtype
        What values are rounded to before the comparison; with float64 the threshold itself is returned.

    References
    ----------
    IEEE 754-2019, section 4.3.1.

    Examples
    --------
    >>> float(last_left(np.array([0.5]))[0]) == 0.5 + 2**-25  # a tie, and 0.5 is even
    True
    """
    threshold = np.asarray(threshold, dtype=np.float64)
    if dtype == "float64":
        return threshold
    with np.errstate(over="ignore"):
        below = threshold.astype(np.float32)
        below = np.where(below > threshold, np.nextafter(below, np.float32(-np.inf)), below)
        above = np.nextafter(below, np.float32(np.inf))
        ends = [np.clip(end.astype(np.float64), -(2.0**128), 2.0**128) for end in (below, above)]
        middle = 0.5 * (ends[0] + ends[1])
        stays = middle.astype(np.float32) <= threshold
    return np.where(stays, middle, np.nextafter(middle, -np.inf))


def _leaves(ensemble: TreeEnsemble, flat: Tree, start: NDArray[np.int64]) -> tuple[Leaves, NDArray[np.int64]]:
    """The leaves of all trees, found by walking down all trees together, level by level.

    Also returned: where each tree's leaves begin, and their number, shape (trees + 1,).
    """
    columns, trees = ensemble.inputs, len(start)
    cell = ensemble.last_cells
    ruled = np.array([tree.missing_left is not None for tree in ensemble.trees])
    assert flat.missing_left is not None
    node, tree = start, np.arange(trees)
    way = np.empty((0, trees), dtype=np.int64)  # per level, the node passed, or ~node if the way went right
    found = []
    while len(node):
        ended = flat.left[node] == -1
        found.append((tree[ended], node[ended], way[:, ended]))
        node, tree, way = node[~ended], tree[~ended], way[:, ~ended]
        way = np.hstack([np.vstack([way, node]), np.vstack([way, ~node])])
        node, tree = np.concatenate([flat.left[node], flat.right[node]]), np.tile(tree, 2)
    tree, node = (np.concatenate([group[k] for group in found]) for k in (0, 1))
    order = np.lexsort((node, tree))
    row = np.empty_like(order)
    row[order] = np.arange(len(order))
    low = np.zeros((len(row), columns), dtype=np.int64)
    high = np.tile(np.array([len(cuts) for cuts in ensemble.cuts], dtype=np.int64), (len(row), 1))
    missing = np.ones((len(row), columns), dtype=bool)
    reached, done = np.ones(len(row), dtype=bool), 0
    for of, _, way in found:
        rows_of = row[done : done + len(of)]
        done += len(of)
        right, above = way < 0, np.where(way < 0, ~way, way)
        for went, at in zip(right, above, strict=True):
            column, rules = flat.feature[at], ruled[of] & (flat.missing_left[at] ^ went)
            missing[rows_of, column] &= rules
            for side, end, on in ((~went, high, 0), (went, low, 1)):
                rows, split = rows_of[side], column[side]
                best = np.maximum if on else np.minimum
                end[rows, split] = best(end[rows, split], cell[at[side]] + on)
        for at in above:
            column = flat.feature[at]
            reached[rows_of] &= (low[rows_of, column] <= high[rows_of, column]) | missing[rows_of, column]
    tree, node = tree[order], node[order]
    if not reached.all():
        tree, node, low, high, missing = (part[reached] for part in (tree, node, low, high, missing))
    value, node = flat.value[node], node - start[tree]
    return Leaves(node, value, low, high, missing), np.searchsorted(tree, np.arange(trees + 1))
