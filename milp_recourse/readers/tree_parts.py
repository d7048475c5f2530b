"""What the readers of trees share: trees with their splits on categories, and checks of their numbers.

Trees are read bit for bit, with the model's rule for missing values if it has one. Models for which a finite
value counts as missing are refused. :func:`safe_threshold` gives an ``accept.above`` that is large enough for
the library to predict class 1; :func:`milp_recourse.readers.read_model` finds the exact one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import Unsupported
from milp_recourse.problem.forest import Tree, TreeEnsemble
from milp_recourse.problem.instance import Acceptance
from milp_recourse.readers.refusal import refuse

LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class CategorySplit:
    """A node's split on categories.

    Attributes
    ----------
    codes
        The categories that the node lists.
    listed_left
        Whether the listed categories go left and the others right, or the reverse.
    missing_left
        Whether a missing value goes left.
    """

    codes: frozenset[int]
    listed_left: bool
    missing_left: bool


Splits = dict[tuple[int, int], CategorySplit]
"""Splits on categories, by (tree, node)."""


@dataclass(frozen=True, eq=False)
class TreeDecision:
    """An ensemble, and the scores at which its model predicts the wanted class.

    Attributes
    ----------
    ensemble
        A function of the columns that reach the classifier.
    accept
        The scores at which the wanted class is predicted.
    splits
        The nodes that split on categories; their thresholds are meaningless.
    near
        How far below the threshold a score can be that the model accepts, because its rounding is not known.
    measure, unit
        What the score is, in words, and how much of it one unit of that is.
    """

    ensemble: TreeEnsemble
    accept: Acceptance
    splits: Splits = field(default_factory=dict)
    near: float = 0.0
    measure: str = "raw score"
    unit: float = 1.0


def checked(ensemble: TreeEnsemble) -> TreeEnsemble:
    """The ensemble itself, after a check of its numbers.

    Raises
    ------
    Unsupported
        It has no trees, a number that is not finite, or a feature out of range.
    """
    if not ensemble.trees:
        raise refuse("model", "no trees", "at least one")
    for k, tree in enumerate(ensemble.trees):
        for name in ("threshold", "value"):
            numbers = getattr(tree, name)
            if not np.isfinite(numbers).all():
                raise refuse(f"tree {k}", f"{name} {numbers[~np.isfinite(numbers)][0]}", "finite numbers")
        inner = tree.left != -1
        if (
            inner.any()
            and not (tree.feature[inner] >= 0).all() & (tree.feature[inner] < ensemble.inputs).all()
        ):
            raise refuse(f"tree {k}", "a feature out of range", f"0 to {ensemble.inputs - 1}")
    if not math.isfinite(ensemble.base):
        raise Unsupported(f"base score: got {ensemble.base}; allowed: a finite number")
    return ensemble


def above(threshold: float) -> Acceptance:
    """Acceptance of the scores above a number."""
    return Acceptance(threshold, strict=True)


@dataclass(frozen=True, eq=False)
class ReadTree:
    """One tree of a fitted model, and its splits on categories, by node."""

    tree: Tree
    splits: Mapping[int, CategorySplit] = field(default_factory=dict)


def rounding_apart(terms: int, reach: float, unit: float) -> float:
    r"""A difference of the scores of two classes above which no rounding changes their order.

    Each score, a sum of n terms of total size R, has an error of at most :math:`\gamma_{n+1} R`. The margin,
    added up anew in doubles, has twice that at most. Exponentials of scores that differ by 8 u (1 + R) differ
    by more than their own rounding (Higham 2002, section 3.1). The result is twice the sum of these.

    Parameters
    ----------
    terms, reach, unit
        n, R and u, the unit roundoff of the model's sums.
    """
    return 2.0 * unit * (4.0 * (terms + 4) * reach + 8.0 * (1.0 + reach))


def constant_tree(value: float) -> Tree:
    """A tree of one leaf."""
    whole = [np.array([k], dtype=np.int64) for k in (-2, -1, -1)]
    rule = np.zeros(1, dtype=bool)
    return Tree(whole[0], np.array([-2.0]), whole[1], whole[2], np.array([value]), rule)


def lookup_tree(axes: Sequence[tuple[int, Sequence[float]]], table: Any, missing: bool = False) -> Tree:
    """The tree that looks a value up in a table of one or several axes.

    Parameters
    ----------
    axes
        For each axis the feature, and the ascending numbers that are the last of their interval; the interval
        after the last of them is open.
    table
        A number for each interval, shape (intervals of the first axis, ...).
    missing
        Whether the first entry along each axis is for a missing value, before those of the intervals.
        Without one the tree has no rule for missing values.
    """
    rows: list[list[float]] = []

    def build(axis: int, part: NDArray[np.float64], first: int, last: int, gap: bool) -> None:
        """Append the nodes for the intervals from first to last of an axis, and for all later axes."""
        at = len(rows)
        if axis == len(axes):
            rows.append([-2, -2.0, -1, -1, float(part), False])
            return
        feature, cuts = axes[axis]
        if not gap and first == last:
            start(axis + 1, part[first + missing])
            return
        middle = (first + last) // 2
        rows.append([feature, -LARGEST if gap else float(cuts[middle]), at + 1, 0, 0.0, gap])
        if gap:
            start(axis + 1, part[0])
        else:
            build(axis, part, first, middle, False)
        rows[at][3] = len(rows)
        build(axis, part, first if gap else middle + 1, last, False)

    def start(axis: int, part: NDArray[np.float64]) -> None:
        build(axis, part, 0, len(axes[axis][1]) if axis < len(axes) else 0, missing)

    start(0, np.asarray(table, dtype=np.float64))
    feature, threshold, left, right, value, rule = (np.array(column) for column in zip(*rows, strict=True))
    whole = [column.astype(np.int64) for column in (feature, left, right)]
    cuts = np.clip(threshold, -LARGEST, LARGEST)
    return Tree(whole[0], cuts, whole[1], whole[2], value, rule.astype(bool) if missing else None)


def numbers_only(ensemble: TreeEnsemble, splits: Splits) -> TreeEnsemble:
    """The ensemble itself, if it has no splits on categories.

    Raises
    ------
    Unsupported
        It has some, for which the labels of the DataFrame are needed.
    """
    if splits:
        got = f"tree {min(splits)[0]}"
        raise refuse(got, "a split on categories", "splits on numbers, or read_model with the DataFrame")
    return ensemble


def safe_threshold(ensemble: TreeEnsemble, at_zero: bool = False) -> float:
    r"""An ``accept.above`` such that the library itself predicts class 1 for every score above it.

    For means it is :math:`1/2 + 2 n 2^{-52}`: the library compares the rounded sums :math:`p_1` and
    :math:`p_0` of n trees' probabilities, and above this value rounding cannot make :math:`p_0` larger. For
    sums it is 0, the margin at probability 1/2, plus a bound on the error of the computed sigmoid (1e-6 if
    sums are float32, else 1e-12).

    Parameters
    ----------
    at_zero
        Whether the library compares the sum itself with 0, as scikit-learn's boosting does; the result for
        sums is then 0.
    """
    if ensemble.aggregate == "mean":
        return 0.5 + 2 * len(ensemble.trees) * 2.0**-52
    if at_zero:
        return 0.0
    return 1e-6 if ensemble.sum_dtype == "float32" else 1e-12
