"""Read CatBoost's trees, bit for bit: float32 comparisons, sums in doubles.

A split on labels compares either the label itself or a statistic of the target that CatBoost keeps for each
label, or for each combination of labels. Which labels go right at such a split is asked of the model itself:
``calc_leaf_indexes`` says for a row how each split of each tree comes out. So neither the tables of
statistics nor the hashes of labels need be computed again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.forest import Tree
from milp_recourse.readers.classes import classes_of, plain
from milp_recourse.readers.formulas import by_largest, by_margin
from milp_recourse.readers.links import Inverse, Link, exponential, logistic
from milp_recourse.readers.member import Member, regression
from milp_recourse.readers.overrides import refuse_overrides
from milp_recourse.readers.places import Codes, Place
from milp_recourse.readers.refusal import OR_ASK, not_fitted, refuse
from milp_recourse.readers.scores import TreeScore
from milp_recourse.readers.tree_parts import CategorySplit, ReadTree, constant_tree

_OF_TWO = ("Logloss", "CrossEntropy")
_OF_SEVERAL = ("MultiClass", "MultiClassOneVsAll")
_AS_THEY_ARE = (
    *("RMSE", "MAE", "Quantile", "MAPE", "Huber", "Expectile", "LogLinQuantile", "Lq", "MSLE", "SMAPE"),
    *("LogCosh", "Focal"),
)
_CURVED = ("Poisson", "Tweedie")

_MOST_ROWS = 20_000
"""The most combinations of labels of which a model is asked."""

_MOST_NODES = 2_000_000
"""The most nodes of all trees."""


def is_catboost(model: Any) -> bool:
    """Whether the model's class is defined in CatBoost itself; a subclass of one's own is not."""
    return type(model).__module__.split(".")[0] == "catboost"


def catboost_member(model: Any, place: Place) -> Member:
    """A model of CatBoost.

    Of two classes the second is predicted above a raw score of 0, or of the logit of the model's probability
    threshold. Of more the first with the largest raw score is predicted.

    Raises
    ------
    Unsupported
        The model is not fitted, is for another loss, has text columns, or its trees on labels cannot be
        written as trees of a reasonable size.
    """
    refuse_overrides(model, place.where, "catboost")
    if not model.is_fitted():
        raise not_fitted(place.where)
    content = _content(model)
    loss = str(content["model_info"].get("params", {}).get("loss_function", {}).get("type"))
    name, trees = type(model).__name__, _Trees(model, content, place).read()
    scale, bias = content["scale_and_bias"]
    if scale != 1:
        raise refuse(place.where, f"a scale of {scale}", "a scale of 1 (set_scale_and_bias)")
    ends = (ReadTree(constant_tree(float(b))) for b in bias)
    scores = tuple(
        TreeScore((*own, end), 0.0, "float32").at(place.columns) for own, end in zip(trees, ends, strict=True)
    )
    if loss in (*_AS_THEY_ARE, *_CURVED):
        return regression(name, scores[0], Inverse(exponential, rounds=True) if loss in _CURVED else None)
    if loss not in (*_OF_TWO, *_OF_SEVERAL):
        raise refuse(
            place.where, f"loss_function {loss}", ", ".join((*_OF_TWO, *_OF_SEVERAL, *_AS_THEY_ARE, *_CURVED))
        )
    classes = classes_of(model)
    if len(scores) > 1:
        return Member(name, classes, scores, by_largest(len(scores)))
    link = Link(logistic, logistic=(1.0, 0.0), rounds=True)
    share = float(model.get_probability_threshold())
    if share == 0.5:
        return Member(name, classes, scores, by_margin(), link=link)
    last = -math.log(1.0 / share - 1.0)
    slack = 2.0**-40 * (1.0 + abs(last))
    return Member(name, classes, scores, by_margin(last, slack=(slack, slack)), link=link)


def _content(model: Any) -> dict[str, Any]:
    """What save_model writes as JSON."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return content


Axis = tuple[int, float]
"""What an outcome depends on: a column and a border of its numbers, or a column and :data:`_LABELS`."""

_LABELS = -math.inf


@dataclass(frozen=True)
class _Split:
    """A split: what it depends on, and how it comes out.

    Attributes
    ----------
    axes
        One border of a number; or columns of labels, and sides of borders.
    right
        Whether a row goes right, for each combination of codes and sides, by axis.
    """

    axes: tuple[Axis, ...]
    right: NDArray[np.bool_]


class _Trees:
    """The trees of a model, as trees whose nodes look at one column each."""

    def __init__(self, model: Any, content: Mapping[str, Any], place: Place) -> None:
        self.model, self.content, self.place = model, content, place
        info = content["features_info"]
        strange = [
            kind for kind in ("text_features", "embedding_features", "estimated_features") if info.get(kind)
        ]
        if strange:
            raise refuse(place.where, strange[0].replace("_", " "), f"numbers and categories, {OR_ASK}")
        self.numbers = [f["flat_feature_index"] for f in info.get("float_features", [])]
        self.gaps_right = {
            f["flat_feature_index"]: f["nan_value_treatment"] == "AsTrue"
            for f in info.get("float_features", [])
        }
        self.texts = [f["flat_feature_index"] for f in info.get("categorical_features", [])]
        self.nodes = 0
        self.labels: dict[int, list[object]] = {}

    def read(self) -> list[tuple[ReadTree, ...]]:
        """For each output the trees, as functions of the model's own columns."""
        self._code()
        oblivious = self.content.get("oblivious_trees")
        outputs = len(self.content["scale_and_bias"][1])
        if oblivious is None:
            if self.texts:
                got = "trees on labels that are not symmetric"
                raise refuse(
                    self.place.where, got, "grow_policy='SymmetricTree', or labels behind an encoder"
                )
            nested = [self._nested(tree, outputs) for tree in self.content["trees"]]
            return [tuple(each[k] for each in nested) for k in range(outputs)]
        splits = self._splits(oblivious)
        made = [self._oblivious(tree, splits, outputs) for tree in oblivious]
        return [tuple(each[k] for each in made) for k in range(outputs)]

    # splits on labels

    def _splits(self, trees: Sequence[Any]) -> dict[int, _Split]:
        """Every split by its number in the model."""
        found: dict[int, _Split] = {}
        asked: dict[int, tuple[int, int, tuple[Axis, ...]]] = {}  # the tree and level where it can be seen
        for t, tree in enumerate(trees):
            for level, split in enumerate(tree["splits"] or ()):
                number = split["split_index"]
                if split["split_type"] == "FloatFeature":
                    axis = self.numbers[split["float_feature_index"]], float(split["border"])
                    found[number] = _Split((axis,), np.array([False, True]))
                elif number not in asked:
                    asked[number] = t, level, self._axes(split)
        for axes in {axes for _, _, axes in asked.values()}:
            outcomes = self._outcomes(axes)
            for number, (t, level, own) in asked.items():
                if own == axes:
                    shape = [len(self._values(axis)) for axis in axes]
                    right = (outcomes[:, t] >> level & 1).astype(bool).reshape(shape)
                    found[number] = _Split(axes, right)
        return found

    def _axes(self, split: Mapping[str, Any]) -> tuple[Axis, ...]:
        if split["split_type"] == "OneHotFeature":
            return ((self.texts[split["cat_feature_index"]], _LABELS),)
        info, number = self.content["features_info"], int(split["split_index"])
        number -= sum(len(f.get("borders") or ()) for f in info.get("float_features", []))
        number -= sum(len(f.get("values") or ()) for f in info.get("categorical_features", []))
        for statistic in info.get("ctrs", []):
            if number < len(statistic["borders"]):
                return tuple(sorted({axis for e in statistic["elements"] for axis in [self._axis(e)]}))
            number -= len(statistic["borders"])
        raise refuse(
            self.place.where, f"a split of kind {split['split_type']}", "splits on numbers and labels"
        )

    def _axis(self, element: Mapping[str, Any]) -> Axis:
        kind = element["combination_element"]
        if kind == "float_feature":
            return self.numbers[element["float_feature_index"]], float(element["border"])
        return self.texts[element["cat_feature_index"]], _LABELS

    def _code(self) -> None:
        """Number the labels of X, and let the chains know them."""
        frame = self.place.frame
        codes: dict[int, Codes] = {}
        for raw in self.texts:
            self.labels[raw] = [plain(label) for label in frame.iloc[:, raw].dropna().unique()]
            codes[raw] = [(label, float(k)) for k, label in enumerate(self.labels[raw])]
        self.place.chains.code(codes, self.place)

    def _values(self, axis: Axis) -> Sequence[object]:
        """The labels of a column; or a number on each side of a border."""
        column, border = axis
        if border == _LABELS:
            return self.labels[column]
        return [border, float(np.nextafter(np.float32(border), np.float32(np.inf)))]

    def _outcomes(self, axes: tuple[Axis, ...]) -> NDArray[np.int64]:
        """The leaves of all trees for each combination of values."""
        import pandas as pd

        values = [self._values(axis) for axis in axes]
        count = math.prod(map(len, values))
        if count > _MOST_ROWS or len({column for column, _ in axes}) < len(axes):
            got = f"statistics of {count} combinations of labels"
            raise refuse(self.place.where, got, f"max_ctr_complexity=1, and fit again, {OR_ASK}")
        frame = self.place.frame
        rows = frame.iloc[np.zeros(count, dtype=int)].reset_index(drop=True)
        for (column, _), held in zip(axes, zip(*product(*values), strict=True), strict=True):
            name, dtype = frame.columns[column], frame.dtypes.iloc[column]
            rows[name] = pd.Series(list(held), dtype=dtype if column in self.texts else np.float64)
        return np.asarray(self.model.calc_leaf_indexes(rows), dtype=np.int64)

    # trees

    def _oblivious(
        self, tree: Mapping[str, Any], splits: Mapping[int, _Split], outputs: int
    ) -> list[ReadTree]:
        levels = [splits[split["split_index"]] for split in tree["splits"] or ()]
        values = np.array(tree["leaf_values"], dtype=np.float64).reshape(-1, outputs)
        made = _Nodes(self)

        def down(level: int, leaf: int, known: dict[Axis, frozenset[int]]) -> None:
            if level == len(levels):
                made.leaf(leaf)
                return
            made.decide(levels[level], known, lambda right, now: down(level + 1, leaf | right << level, now))

        down(0, 0, {})
        return made.trees(values)

    def _nested(self, tree: Mapping[str, Any], outputs: int) -> list[ReadTree]:
        made, values = _Nodes(self), []

        def down(node: Mapping[str, Any]) -> None:
            if "split" not in node:
                values.append(np.ravel(node["value"]))
                made.leaf(len(values) - 1)
                return
            axis = self.numbers[node["split"]["float_feature_index"]], float(node["split"]["border"])
            split = _Split((axis,), np.array([False, True]))
            made.decide(split, {}, lambda right, known: down(node["right" if right else "left"]))

        down(tree)
        return made.trees(np.array(values, dtype=np.float64).reshape(-1, outputs))


class _Nodes:
    """The nodes of one tree, appended from the root down, the left side first."""

    def __init__(self, model: _Trees) -> None:
        self.model = model
        self.rows: list[
            list[float]
        ] = []  # feature, threshold, left, right, leaf, whether a missing value goes left
        self.splits: dict[int, CategorySplit] = {}

    def leaf(self, number: int) -> None:
        """Append a leaf."""
        self._append(-2, -2.0, -1, number, False)

    def _append(self, feature: int, cut: float, left: int, leaf: int, missing: bool) -> int:
        self.model.nodes += 1
        if self.model.nodes > _MOST_NODES:
            got = f"more than {_MOST_NODES} nodes, with each combination of labels a way of its own"
            raise refuse(self.model.place.where, got, f"max_ctr_complexity=1, and fit again, {OR_ASK}")
        self.rows.append([feature, cut, left, -1, leaf, missing])
        return len(self.rows) - 1

    def decide(
        self,
        split: _Split,
        known: dict[Axis, frozenset[int]],
        then: Callable[[bool, dict[Axis, frozenset[int]]], None],
    ) -> None:
        """Append the nodes of a split, and below them what follows.

        Parameters
        ----------
        known
            The codes that are still possible on the way to here, by axis.
        then
            Appends what follows, given whether the split goes right, and what is known then.
        """
        possible = [
            sorted(known.get(axis, range(n))) for axis, n in zip(split.axes, split.right.shape, strict=True)
        ]
        right = split.right[np.ix_(*possible)]
        if right.all() or not right.any():
            then(bool(right.flat[0]), known)
            return
        for k, axis in enumerate(split.axes):
            slices = [tuple(np.take(right, i, axis=k).ravel().tolist()) for i in range(len(possible[k]))]
            groups: dict[tuple[bool, ...], list[int]] = {}
            for code, each in zip(possible[k], slices, strict=True):
                groups.setdefault(each, []).append(code)
            if len(groups) > 1:
                self._divide(axis, list(groups.values()), split, known, then)
                return

    def _divide(
        self,
        axis: Axis,
        groups: list[list[int]],
        split: _Split,
        known: dict[Axis, frozenset[int]],
        then: Callable[[bool, dict[Axis, frozenset[int]]], None],
    ) -> None:
        """Append nodes that tell groups of codes apart, one group after the other."""
        first, *others = groups
        if not others:
            self.decide(split, known | {axis: frozenset(first)}, then)
            return
        column, border = axis
        if border == _LABELS:
            at = self._append(column, 0.0, 0, -1, False)
            self.splits[at] = CategorySplit(frozenset(first), True, False)
        else:
            first, others = [0], [[1]]
            at = self._append(column, border, 0, -1, not self.model.gaps_right[column])
        self.rows[at][2] = len(self.rows)
        self.decide(split, known | {axis: frozenset(first)}, then)
        self.rows[at][3] = len(self.rows)
        self._divide(axis, others, split, known, then)

    def trees(self, values: NDArray[np.float64]) -> list[ReadTree]:
        """The tree for each output, with the leaves' values of shape (leaves, outputs)."""
        feature, cut, left, right, leaf, missing = (
            np.array(column) for column in zip(*self.rows, strict=True)
        )
        whole = [column.astype(np.int64) for column in (feature, left, right)]
        at_leaf, number = whole[1] == -1, np.maximum(leaf, 0).astype(np.int64)
        tree = Tree(whole[0], cut, whole[1], whole[2], np.zeros(len(cut)), missing.astype(bool))
        columns = (np.where(at_leaf, values[number, k], 0.0) for k in range(values.shape[1]))
        return [ReadTree(replace(tree, value=column), self.splits) for column in columns]
