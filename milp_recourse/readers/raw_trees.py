r"""Trees of transformed columns, as trees of raw columns that take every branch as deployed.

A number: the transformed value g(x) is computed by a few rounded operations, each of which rises with x, so
:math:`g(x) \le t` is :math:`x \le t'` with t' the last double that goes left, found by bisection over all
doubles. A label: its transformed numbers are known, one row of a table per label. Where a tree splits on
sets of labels, or a label becomes a missing number, the table holds one 0/1 number per distinct set instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from milp_recourse.domain.forest import Tree, TreeEnsemble, last_left
from milp_recourse.readers.column import Column
from milp_recourse.readers.operations import Operation, apply, last_raw
from milp_recourse.readers.refusal import refuse
from milp_recourse.readers.steps_before import Front
from milp_recourse.readers.tree_parts import LARGEST, Judged, Splits


def on_raw_columns(
    judged: Judged, front: Front, order: Sequence[object]
) -> tuple[tuple[Column, ...], TreeEnsemble]:
    """The columns of X that reach an ensemble, in X's order, and the ensemble of what they put in.

    Parameters
    ----------
    judged
        Of the columns that reach the classifier: its column k is ``front.tracks[k]``.
    front
        What stands before.
    order
        X's columns.

    Raises
    ------
    Unsupported
        A float32 column is scaled, or a label becomes a missing number that the trees have no rule for.
    """
    ensemble = judged.ensemble
    if len(front.tracks) != ensemble.inputs:
        raise refuse(
            "model", f"{len(front.tracks)} columns", f"{ensemble.inputs}, as many as the trees were fitted on"
        )
    exact = front.plain()
    if front.narrow and front.scaled():
        raise refuse("X", "float32 columns before a transformer", "float64: X.astype('float64')")
    if not exact:
        trees = tuple(replace(t, threshold=last_left(t.threshold, ensemble.dtype)) for t in ensemble.trees)
        ensemble = replace(ensemble, trees=trees, dtype="float64")
    ruled = all(tree.missing_left is not None for tree in ensemble.trees)
    split = {front.tracks[int(ensemble.trees[t].feature[node])].raw for t, node in judged.splits}
    columns: list[Column] = []
    moved = Moved(ensemble)
    count = 0
    for raw in front.used(order):
        mine = [k for k, track in enumerate(front.tracks) if track.raw == raw]
        filled = front.filled(raw)
        if raw not in front.labels:
            if raw in split:
                got = "splits on sets of its numbers behind a transformer"
                allowed = "an OrdinalEncoder for it, or the classifier without transformers"
                raise refuse(f"column {front.names[raw]!r}", got, allowed)
            moved.numbers(mine, [front.tracks[k].operations for k in mine], count, filled, front.names[raw])
            missing = ruled and filled is None and not front.imputed_unevenly(raw)
            columns.append(Column(front.names[raw], None, "code", None, filled, missing))
            count += 1
            continue
        table = front.tables[raw]
        if raw in split or np.isnan(table).any():
            table = moved.sets(mine, table, judged.splits, count, front.names[raw])
        else:
            moved.codes(mine, count)
        if table.shape[1]:
            columns.append(_label(front, raw, table))
            count += table.shape[1]
    return tuple(columns), replace(ensemble, trees=moved.trees(), inputs=count)


class Moved:
    """The trees' nodes, column by column, on their new inputs."""

    def __init__(self, ensemble: TreeEnsemble) -> None:
        self._trees = ensemble.trees
        self._features = [tree.feature.copy() for tree in ensemble.trees]
        self._cuts = [tree.threshold.copy() for tree in ensemble.trees]

    def numbers(
        self,
        mine: Sequence[int],
        operations: Sequence[Sequence[Operation]],
        at: int,
        filled: object | None,
        name: object,
    ) -> None:
        """A number's columns: all on the raw number, at the last double that goes left."""
        for k, done in zip(mine, operations, strict=True):
            ends = np.nan if filled is None else float(filled)  # type: ignore[arg-type]
            missing, stands = apply(done, np.array([np.nan, ends]))
            for t, nodes in self._nodes(k):
                cuts = self._trees[t].threshold[nodes]
                if filled is not None and ((missing <= cuts) != (stands <= cuts)).any():
                    got = "a value imputed after scaling that no raw value stands for"
                    raise refuse(f"column {name!r}", got, "SimpleImputer first, then the scaler")
                self._cuts[t][nodes] = last_raw(done, self._trees[t].threshold[nodes])
                self._features[t][nodes] = at

    def codes(self, mine: Sequence[int], at: int) -> None:
        """A label's columns, its numbers compared as they are."""
        for offset, k in enumerate(mine):
            for t, nodes in self._nodes(k):
                self._features[t][nodes] = at + offset

    def sets(
        self, mine: Sequence[int], table: NDArray[np.float64], splits: Splits, at: int, name: object
    ) -> NDArray[np.float64]:
        """A label's splits, each on its own 0/1 number: 0 for the labels that go left."""
        found: dict[tuple[bool, ...], int] = {}
        for offset, k in enumerate(mine):
            for t, nodes in self._nodes(k):
                for node in nodes.tolist():
                    left = self._left(table[:, offset], t, node, splits, name)
                    self._features[t][node] = at + found.setdefault(tuple(left.tolist()), len(found))
                    self._cuts[t][node] = 0.5
        return np.array([[0.0 if left[k] else 1.0 for left in found] for k in range(len(table))])

    def trees(self) -> tuple[Tree, ...]:
        """The trees on their new inputs."""
        made = zip(self._trees, self._features, self._cuts, strict=True)
        return tuple(
            replace(tree, feature=feature, threshold=np.clip(cuts, -LARGEST, LARGEST))
            for tree, feature, cuts in made
        )

    def _nodes(self, column: int) -> Iterator[tuple[int, NDArray[np.intp]]]:
        for t, tree in enumerate(self._trees):
            nodes = np.flatnonzero((tree.left != -1) & (tree.feature == column))
            if len(nodes):
                yield t, nodes

    def _left(
        self, values: NDArray[np.float64], t: int, node: int, splits: Splits, name: object
    ) -> NDArray[np.bool_]:
        gone, tree = np.isnan(values), self._trees[t]
        if (t, node) in splits:
            split = splits[t, node]
            listed = np.array([not g and int(v) in split.codes for v, g in zip(values, gone, strict=True)])
            return np.where(gone, split.missing_left, listed == split.listed_left)
        if gone.any() and tree.missing_left is None:
            raise refuse(f"column {name!r}", "a label that becomes a missing number", "a number for it")
        rule = False if tree.missing_left is None else bool(tree.missing_left[node])
        return np.where(gone, rule, values <= tree.threshold[node])


def _label(front: Front, raw: int, table: NDArray[np.float64]) -> Column:
    labels = front.labels[raw]
    name, filled = front.names[raw], front.filled(raw)
    if table.shape == (len(labels), len(labels)) and (table == np.eye(len(labels))).all():
        return Column(name, labels, "one-hot", None, filled, False)
    return Column(name, labels, "table", tuple(map(tuple, table.tolist())), filled, False)
