"""What the readers of trees share: the sums that a model computes, and the class that it predicts from them.

Trees are read bit for bit, with the model's rule for missing values if it has one. Models for which a finite
value counts as missing are refused. :func:`safe_threshold` gives an ``accept.above`` that is large enough for
the library to predict class 1; :func:`milp_recourse.readers.read_model` finds the exact one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from milp_recourse.errors import Unsupported
from milp_recourse.problem.forest import Combine, Precision, Tree, TreeEnsemble
from milp_recourse.problem.instance import Acceptance
from milp_recourse.readers.refusal import refuse

LARGEST = float(np.finfo(np.float64).max)

_TIE = 2.0**-22
"""Less than the least difference between the scores of two classes that are added without rounding."""


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
    measure, unit
        What the score is, in words, and how much of it one unit of that is.
    """

    ensemble: TreeEnsemble
    accept: Acceptance
    splits: Splits = field(default_factory=dict)
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


def decision_by_sum(
    ensemble: TreeEnsemble, accept: Acceptance, second: bool, splits: Splits | None = None
) -> TreeDecision:
    """The decision of a model that predicts its second class where ``accept`` holds, else its first.

    If the first class is wanted, the trees' values are negated: they add up, rounding included, to -s, and
    the negation of ``s > t`` is ``-s >= -t``.

    Parameters
    ----------
    second
        Whether the second class is wanted.
    """
    if second:
        return TreeDecision(ensemble, accept, splits or {})
    trees = tuple(replace(tree, value=0.0 - tree.value) for tree in ensemble.trees)
    mirrored = replace(ensemble, trees=trees, base=0.0 - ensemble.base)
    return TreeDecision(mirrored, Acceptance(0.0 - accept.threshold, strict=not accept.strict), splits or {})


@dataclass(frozen=True, eq=False)
class ReadTree:
    """One tree of a fitted model, and its splits on categories, by node."""

    tree: Tree
    splits: Mapping[int, CategorySplit] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Sums:
    """The sums of trees' values that a fitted model computes: one sum, or one for each class.

    Attributes
    ----------
    trees
        For each sum, the trees whose values are added up, in order.
    base
        For each sum, the number that it starts from.
    inputs
        Number of columns.
    dtype, sum_dtype
        The precision of comparisons, and of the sums.
    exact
        Whether the model is known to add without rounding.
    """

    trees: tuple[tuple[ReadTree, ...], ...]
    base: tuple[float, ...]
    inputs: int
    dtype: Precision
    sum_dtype: Precision
    exact: bool = False

    @property
    def apart(self) -> float:
        """A difference of two scores above which rounding does not change their order."""
        if self.exact:
            return 0.0
        reach = max(
            abs(b) + sum(float(np.abs(one.tree.value).max()) for one in own)
            for b, own in zip(self.base, self.trees, strict=True)
        )
        unit = 2.0**-24 if self.sum_dtype == "float32" else 2.0**-53
        return rounding_apart(len(self.trees[0]), reach, unit)

    def only(self) -> tuple[TreeEnsemble, Splits]:
        """The single sum of a model of two classes as an ensemble, and its splits on categories.

        Raises
        ------
        Unsupported
            The model has a sum for each class, or :func:`checked` refuses the ensemble.
        """
        if len(self.trees) > 1:
            raise refuse("model", f"{len(self.trees)} classes", "two, or read_model with the wanted one")
        [own], [base] = self.trees, self.base
        trees = tuple(one.tree for one in own)
        splits = {(k, node): split for k, one in enumerate(own) for node, split in one.splits.items()}
        return checked(TreeEnsemble(trees, self.inputs, "sum", base, self.dtype, self.sum_dtype)), splits


def decision_by_classes(sums: Sums, index: int, wanted: bool) -> TreeDecision:
    r"""The decision of a model that predicts the first of the classes with the largest score.

    The ensemble has one part for each other class d. If class c (``index``) is wanted, the part is the margin
    :math:`s_c - s_d`, and all must be above 0. If c is not wanted, it is :math:`s_d - s_c`, and one must be.
    If the model adds without rounding, a tie is decided for the class that comes first. Otherwise scores that
    differ by no more than rounding count as refused.
    """
    trees: list[Tree] = []
    splits: Splits = {}
    parts = []
    for rival in range(len(sums.trees)):
        if rival == index:
            continue
        first, second = (index, rival) if wanted else (rival, index)
        before = len(trees)
        base = sums.base[first] - sums.base[second]
        if sums.exact and first < second:
            base += _TIE
        trees.append(_constant(base))
        for sign, which in ((1.0, first), (-1.0, second)):
            for one in sums.trees[which]:
                splits |= {(len(trees), node): split for node, split in one.splits.items()}
                trees.append(one.tree if sign > 0 else replace(one.tree, value=0.0 - one.tree.value))
        parts.append(len(trees) - before)
    combine: Combine = "smallest" if wanted else "largest"
    ensemble = TreeEnsemble(
        *(tuple(trees), sums.inputs, "sum", 0.0, sums.dtype, "float64", tuple(parts), combine)
    )
    return TreeDecision(checked(ensemble), above(sums.apart), splits)


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


def _constant(value: float) -> Tree:
    """A tree of one leaf."""
    whole = [np.array([k], dtype=np.int64) for k in (-2, -1, -1)]
    rule = np.zeros(1, dtype=bool)
    return Tree(whole[0], np.array([-2.0]), whole[1], whole[2], np.array([value]), rule)


def last_refused(accepts: Callable[[float], bool], low: float, high: float, single: bool) -> float:
    """The largest number between ``low`` and ``high`` that a rising rule refuses, by bisection.

    Parameters
    ----------
    accepts
        The rule; it refuses ``low`` and accepts ``high``.
    single
        Whether numbers are float32; else they are doubles.
    """
    kind = np.float32 if single else np.float64
    while True:
        middle = float(kind(low + (high - low) / 2))
        if middle in (low, high):
            return low
        low, high = (low, middle) if accepts(middle) else (middle, high)


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
