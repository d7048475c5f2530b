r"""Rewrites trees of transformed columns as trees of raw columns that take every branch as deployed.

Numbers: the transformed value g(x) is computed by a few rounded operations, none of which falls as x rises.
So :math:`g(x) \le t` is equivalent to :math:`x \le t'` with t' the largest double that goes left, which
a search over all doubles finds. Labels: a table holds the transformed numbers of each label. If a tree
splits on sets of labels, or a label becomes a missing number, the table instead has one 0/1 column per
distinct set of labels that goes left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.forest import Tree, TreeEnsemble, last_left
from milp_recourse.readers.column import Column
from milp_recourse.readers.operations import Operation, apply, is_whole, last_raw
from milp_recourse.readers.refusal import OR_ASK, refuse
from milp_recourse.readers.steps_before import Preprocessing
from milp_recourse.readers.tree_parts import LARGEST, Splits, TreeDecision


def on_raw_columns(
    decision: TreeDecision, preprocessing: Preprocessing, order: Sequence[object]
) -> tuple[tuple[Column, ...], TreeEnsemble]:
    """The columns of X that reach an ensemble, in X's order, and the ensemble as a function of these columns.

    Parameters
    ----------
    decision
        The ensemble as a function of transformed columns; its column k is described by
        ``preprocessing.tracks[k]``.
    preprocessing
        The transformers before the ensemble.
    order
        The names of X's columns.

    Raises
    ------
    Unsupported
        The trees read another number of columns, a float32 column is scaled, a number is split on by sets
        behind a transformer or imputed as no raw number would be, or a label becomes a missing number that
        the trees have no rule for.
    """
    ensemble = decision.ensemble
    if len(preprocessing.tracks) != ensemble.inputs:
        raise refuse(
            "model",
            f"{len(preprocessing.tracks)} columns",
            f"{ensemble.inputs}, as many as the trees were fitted on",
        )
    exact = preprocessing.plain()
    if preprocessing.narrow and preprocessing.scaled():
        raise refuse("X", "float32 columns before a transformer", "float64: X.astype('float64')")
    if not exact:
        trees = tuple(replace(t, threshold=last_left(t.threshold, ensemble.dtype)) for t in ensemble.trees)
        ensemble = replace(ensemble, trees=trees, dtype="float64")
    ruled = all(tree.missing_left is not None for tree in ensemble.trees)
    split = {preprocessing.tracks[int(ensemble.trees[t].feature[node])].raw for t, node in decision.splits}
    columns: list[Column] = []
    rewriter = NodeRewriter(ensemble)
    count = 0
    for raw in preprocessing.used(order):
        name, filled = preprocessing.names[raw], preprocessing.filled(raw)
        tracks = [k for k, track in enumerate(preprocessing.tracks) if track.raw == raw]
        if raw not in preprocessing.labels:
            if raw in split:
                got = "splits on sets of its numbers behind a transformer"
                allowed = "an OrdinalEncoder for it, or the classifier without transformers"
                raise refuse(f"column {name!r}", got, allowed)
            operations = [preprocessing.tracks[k].operations for k in tracks]
            bent = next((o.name for own in operations for o in own if o.kind == "curve"), None)
            if bent is not None:
                got = f"{bent} before trees"
                allowed = "trees without it, which split anywhere; bins with encode='ordinal'"
                raise refuse(f"column {name!r}", got, f"{allowed}, {OR_ASK}")
            uneven, kept = preprocessing.imputed_unevenly(raw), preprocessing.keeps_gaps(raw)
            sparse = any(o.kind == "sparse" for own in operations for o in own)
            whole = sparse and is_whole(preprocessing.numbers[raw])
            always = uneven and not np.isnan([apply(own, np.array([np.nan]))[0] for own in operations]).any()
            rewriter.numbers(tracks, operations, count, filled, name, uneven, whole)
            missing = kept and (always if uneven else ruled and filled is None)
            within = preprocessing.within(raw)
            columns.append(Column(name, None, "code", None, filled, missing, within=within, whole=whole))
            count += 1
            continue
        table = preprocessing.tables[raw]
        if raw in split or np.isnan(table).any():
            table = rewriter.sets(tracks, table, decision.splits, count, name)
        else:
            rewriter.codes(tracks, count)
        if table.shape[1]:
            column = _label(name, preprocessing.labels[raw], filled, table)
            columns.append(replace(column, gaps=preprocessing.gaps(raw)))
            count += table.shape[1]
    return tuple(columns), replace(ensemble, trees=rewriter.trees(), inputs=count)


class NodeRewriter:
    """Rewrites the nodes of an ensemble's trees for new inputs, one raw column at a time.

    ``columns`` are the transformed columns made of the raw column, and ``at`` is its first new input.
    """

    def __init__(self, ensemble: TreeEnsemble) -> None:
        self._trees = ensemble.trees
        self._features = [tree.feature.copy() for tree in ensemble.trees]
        self._cuts = [tree.threshold.copy() for tree in ensemble.trees]
        self._rules: dict[int, NDArray[np.bool_]] = {}

    def numbers(
        self,
        columns: Sequence[int],
        operations: Sequence[Sequence[Operation]],
        at: int,
        filled: object | None,
        name: object,
        uneven: bool = False,
        whole: bool = False,
    ) -> None:
        """Rewrite the nodes on a numeric column: each compares the raw number with the largest double that it
        sends left.

        Parameters
        ----------
        filled
            The raw number put in place of a missing one; None without imputer.
        uneven
            Whether a missing number becomes a number in some columns: each node then gets a rule for it.

        whole
            Whether the column holds whole numbers only, so that the reading may hold of these alone.

        Raises
        ------
        Unsupported
            The trees tell a missing value, as the model imputes it, from ``filled``.
        """
        for k, done in zip(columns, operations, strict=True):
            raw = np.nan if filled is None else float(filled)  # type: ignore[arg-type]
            missing, imputed = apply(done, np.array([np.nan, raw]))
            found = list(self._nodes(k))
            if not found:
                continue
            cuts = np.concatenate([self._trees[t].threshold[nodes] for t, nodes in found])
            if any(o.kind == "sparse" for o in done):
                self._same_at_zero(done, found, name, whole)
            if filled is not None and ((missing <= cuts) != (imputed <= cuts)).any():
                got = "a value imputed after scaling that no raw value stands for"
                raise refuse(f"column {name!r}", got, "SimpleImputer first, then the scaler")
            different, which = np.unique(cuts, return_inverse=True)
            raw_cuts = iter(np.split(last_raw(done, different)[which], np.cumsum([len(n) for _, n in found])))
            for t, nodes in found:
                if uneven:
                    self._rule(t)[nodes] = missing <= self._trees[t].threshold[nodes]
                self._cuts[t][nodes] = next(raw_cuts)
                self._features[t][nodes] = at

    def _same_at_zero(
        self,
        done: Sequence[Operation],
        found: Sequence[tuple[int, NDArray[np.intp]]],
        name: object,
        whole: bool,
    ) -> None:
        """Check that a zero, which is missing in a sparse matrix, goes where zeros go."""
        plain = [o for o in done if o.kind != "sparse"]
        zero = last_raw(plain, np.zeros(1))
        if apply(plain, zero)[0] != 0.0 or (whole and zero[0] != np.round(zero[0])):
            return  # no raw number becomes a zero
        for t, nodes in found:
            rule, cuts = self._trees[t].missing_left, self._trees[t].threshold[nodes]
            if rule is not None and (rule[nodes] != (cuts >= 0.0)).any():
                got = "zeros of a sparse matrix that go where missing values go"
                allowed = (
                    "OneHotEncoder(sparse_output=False) and ColumnTransformer(sparse_threshold=0), fit again"
                )
                raise refuse(f"column {name!r}", got, allowed)

    def _rule(self, t: int) -> NDArray[np.bool_]:
        """The rule for missing values of a tree, to be changed."""
        given = self._trees[t].missing_left
        start = np.zeros(len(self._trees[t].left), dtype=bool) if given is None else given.copy()
        return self._rules.setdefault(t, start)

    def codes(self, columns: Sequence[int], at: int) -> None:
        """Rewrite the nodes on the numbers of an encoded label, which are themselves the new inputs."""
        for offset, k in enumerate(columns):
            for t, nodes in self._nodes(k):
                self._features[t][nodes] = at + offset

    def sets(
        self, columns: Sequence[int], table: NDArray[np.float64], splits: Splits, at: int, name: object
    ) -> NDArray[np.float64]:
        """Rewrite the nodes on a label: each reads a 0/1 input, one per distinct set of labels that
        goes left.

        Returns
        -------
        array
            The new inputs of every label: 0 if it is in the set, else 1; shape (labels, sets).
        """
        found: dict[tuple[bool, ...], int] = {}
        for offset, k in enumerate(columns):
            for t, nodes in self._nodes(k):
                for node in nodes.tolist():
                    left = self._left(table[:, offset], t, node, splits, name)
                    self._features[t][node] = at + found.setdefault(tuple(left.tolist()), len(found))
                    self._cuts[t][node] = 0.5
        return np.array([[0.0 if left[k] else 1.0 for left in found] for k in range(len(table))])

    def trees(self) -> tuple[Tree, ...]:
        """The trees of the new inputs."""
        rewritten = zip(self._trees, self._features, self._cuts, strict=True)
        made = [
            replace(tree, feature=feature, threshold=np.clip(cuts, -LARGEST, LARGEST))
            for tree, feature, cuts in rewritten
        ]
        if self._rules:
            made = [replace(tree, missing_left=self._rule(t)) for t, tree in enumerate(made)]
        return tuple(made)

    def _nodes(self, column: int) -> Iterator[tuple[int, NDArray[np.intp]]]:
        for t, tree in enumerate(self._trees):
            nodes = np.flatnonzero((tree.left != -1) & (tree.feature == column))
            if len(nodes):
                yield t, nodes

    def _left(
        self, values: NDArray[np.float64], t: int, node: int, splits: Splits, name: object
    ) -> NDArray[np.bool_]:
        """Which labels, given by their numbers, go left at a node."""
        missing, tree = np.isnan(values), self._trees[t]
        if (t, node) in splits:
            split = splits[t, node]
            listed = np.array([not m and int(v) in split.codes for v, m in zip(values, missing, strict=True)])
            return np.where(missing, split.missing_left, listed == split.listed_left)
        if missing.any() and tree.missing_left is None:
            raise refuse(f"column {name!r}", "a label that becomes a missing number", "a number for it")
        rule = False if tree.missing_left is None else bool(tree.missing_left[node])
        return np.where(missing, rule, values <= tree.threshold[node])


def _label(
    name: object, labels: tuple[object, ...], filled: object | None, table: NDArray[np.float64]
) -> Column:
    if table.shape == (len(labels), len(labels)) and (table == np.eye(len(labels))).all():
        return Column(name, labels, "one-hot", None, filled, False)
    return Column(name, labels, "table", tuple(map(tuple, table.tolist())), filled, False)
