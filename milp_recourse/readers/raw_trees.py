r"""Trees of transformed columns, as trees of raw columns that take every branch as deployed.

A number: the transformed value g(x) is computed by a few rounded operations, each of which rises with x, so
:math:`g(x) \le t` is :math:`x \le t'` with t' the last double that goes left, found by bisection over all
doubles. A label: its transformed numbers are known, one row of a table per label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from milp_recourse.domain.forest import Tree, TreeEnsemble, last_left
from milp_recourse.readers.column import Column
from milp_recourse.readers.front import Front
from milp_recourse.readers.refusal import refuse
from milp_recourse.readers.transformers import Operation, apply
from milp_recourse.readers.tree_parts import LARGEST

_SIGN = np.int64(-(2**63))


def on_raw_columns(
    ensemble: TreeEnsemble, front: Front, order: Sequence[object]
) -> tuple[tuple[Column, ...], TreeEnsemble]:
    """The columns of X that reach an ensemble, in X's order, and the ensemble of what they put in.

    Parameters
    ----------
    ensemble
        Of the columns that reach the classifier; (column k of it is ``front.tracks[k]``).
    front
        What stands before.
    order
        X's columns.

    Raises
    ------
    Unsupported
        A missing value would not be the same to all of a column's tracks, or a float32 column is scaled.
    """
    if len(front.tracks) != ensemble.inputs:
        raise refuse(
            "model", f"{len(front.tracks)} columns", f"{ensemble.inputs}, as many as the trees were fitted on"
        )
    exact = front.plain()
    if front.narrow and not exact:
        raise refuse("X", "float32 columns before a transformer", "float64: X.astype('float64')")
    dtype = ensemble.dtype if exact else "float64"
    thresholds = [t.threshold if exact else last_left(t.threshold, ensemble.dtype) for t in ensemble.trees]
    ruled = all(tree.missing_left is not None for tree in ensemble.trees)
    columns: list[Column] = []
    place = np.zeros(len(front.tracks), dtype=np.int64)  # the new input of each transformed column
    rewritten = {}  # labels' tables whose numbers a tree cannot compare as they are
    count = 0
    for raw in front.used(order):
        mine = [k for k, track in enumerate(front.tracks) if track.raw == raw]
        if raw in front.labels:
            table = front.tables[raw]
            if np.isnan(table).any():
                rewritten[raw] = count
                columns.append(_label(front, raw, np.empty((len(table), 0))))
                continue
            place[mine] = np.arange(count, count + len(mine))
            columns.append(_label(front, raw, table))
            count += len(mine)
            continue
        filled = front.filled(raw)
        place[mine] = count
        missing = ruled and filled is None and not front.imputed_unevenly(raw)
        columns.append(Column(front.names[raw], None, "code", None, filled, missing))
        count += 1
    for raw in rewritten:
        raise refuse(
            f"column {front.names[raw]!r}", "a label that becomes a missing number", "a number for it"
        )
    trees = []
    for tree, threshold in zip(ensemble.trees, thresholds, strict=True):
        trees.append(_moved(tree, threshold, front, place))
    return tuple(columns), replace(ensemble, trees=tuple(trees), inputs=count, dtype=dtype)


def last_raw(operations: Sequence[Operation], thresholds: NDArray[np.float64]) -> NDArray[np.float64]:
    """The last double x with g(x) <= t per threshold; the least double where there is none.

    Parameters
    ----------
    operations
        g, which never falls.
    thresholds
        Doubles, shape (n,).

    Examples
    --------
    >>> float(last_raw([Operation("add", -1.0)], np.array([0.5]))[0])
    1.5
    """
    steps = [o for o in operations if o.kind != "impute"]
    if not steps:
        return np.clip(thresholds, -LARGEST, LARGEST)
    if any(o.kind in ("multiply", "divide") and not o.a > 0 for o in steps):
        raise refuse("model", "a scale that is not above 0", "scales above 0")
    low = np.full(len(thresholds), _rank(np.array([-LARGEST]))[0])
    high = np.full(len(thresholds), _rank(np.array([LARGEST]))[0])
    while (low < high).any():
        middle = (low & high) + ((low ^ high) >> 1)
        middle = np.where(middle == low, high, middle)
        left = apply(steps, _double(middle)) <= thresholds
        low, high = np.where(left, middle, low), np.where(left, high, middle - 1)
    return _double(low)


def _rank(x: NDArray[np.float64]) -> NDArray[np.int64]:
    """Doubles as whole numbers in their order."""
    bits = x.view(np.int64)
    return np.where(bits >= 0, bits, _SIGN - bits)


def _double(rank: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.where(rank >= 0, rank, _SIGN - rank).view(np.float64)


def _moved(tree: Tree, threshold: NDArray[np.float64], front: Front, place: NDArray[np.int64]) -> Tree:
    inner = tree.left != -1
    feature, cut = tree.feature.copy(), np.where(inner, threshold, tree.threshold)
    for column in np.unique(tree.feature[inner]):
        at = inner & (tree.feature == column)
        track = front.tracks[column]
        if track.raw not in front.labels:
            cut[at] = last_raw(track.operations, cut[at])
        feature[at] = place[column]
    return replace(tree, feature=feature, threshold=np.clip(cut, -LARGEST, LARGEST))


def _label(front: Front, raw: int, table: NDArray[np.float64]) -> Column:
    labels = front.labels[raw]
    name, filled = front.names[raw], front.filled(raw)
    if table.shape == (len(labels), len(labels)) and (table == np.eye(len(labels))).all():
        return Column(name, labels, "one-hot", None, filled, False)
    return Column(name, labels, "table", tuple(map(tuple, table.tolist())), filled, False)
