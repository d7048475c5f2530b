"""What the readers of trees share: the sums that a model makes, and its decision by them.

Trees are read bit for bit, with their model's rule for missing values where it has one. Where a finite value
counts as missing, the model is refused. :func:`safe_threshold` gives the ``accept.above`` from which on the
library predicts class 1; :func:`milp_recourse.readers.read_model` says it exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from milp_recourse.domain.forest import Combine, Precision, Tree, TreeEnsemble
from milp_recourse.errors import Unsupported
from milp_recourse.instance import Acceptance
from milp_recourse.readers.refusal import refuse

LARGEST = float(np.finfo(np.float64).max)

_TIE = 2.0**-22
"""Less than what exactly added scores of two classes differ by, where they differ."""


@dataclass(frozen=True)
class CategorySplit:
    """A node's split on categories.

    Attributes
    ----------
    codes
        The categories that are listed.
    listed_left
        Whether those go left, and the others right; else the other way round.
    missing_left
        Whether a missing one goes left.
    """

    codes: frozenset[int]
    listed_left: bool
    missing_left: bool


Splits = dict[tuple[int, int], CategorySplit]
"""By (tree, node)."""


@dataclass(frozen=True, eq=False)
class Judged:
    """An ensemble and its model's own decision.

    Attributes
    ----------
    ensemble
        Of the columns that reach the classifier.
    accept
        The scores at which the wanted class is predicted.
    splits
        Splits on categories. Such a node's threshold says nothing.
    """

    ensemble: TreeEnsemble
    accept: Acceptance
    splits: Splits = field(default_factory=dict)


def checked(ensemble: TreeEnsemble) -> TreeEnsemble:
    """The ensemble, if every number in it can be worked with.

    Raises
    ------
    Unsupported
        It has no trees, or a number that is not finite.
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
    """Scores above a number."""
    return Acceptance(threshold, strict=True)


def judged_sum(
    ensemble: TreeEnsemble, accept: Acceptance, second: bool, splits: Splits | None = None
) -> Judged:
    """For a sum whose model predicts its second class where ``accept`` holds, else the first.

    The first is wanted: negated values add up, rounding included, to the negated score, and not
    ``s > t`` is ``-s >= -t``.
    """
    if second:
        return Judged(ensemble, accept, splits or {})
    trees = tuple(replace(tree, value=0.0 - tree.value) for tree in ensemble.trees)
    mirrored = replace(ensemble, trees=trees, base=0.0 - ensemble.base)
    return Judged(mirrored, Acceptance(0.0 - accept.threshold, strict=not accept.strict), splits or {})


@dataclass(frozen=True, eq=False)
class ReadTree:
    """One tree of a fitted model, and its splits on categories by node."""

    tree: Tree
    splits: Mapping[int, CategorySplit] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Sums:
    """What a fitted model adds up, read from whatever library made it: one sum, or one for each class.

    Attributes
    ----------
    trees
        Per sum, the trees whose values add up to it, in order.
    base
        Per sum, what it starts from.
    inputs
        How many columns reach the trees.
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
        """Where two scores differ by more, the model orders them as it would without rounding."""
        if self.exact:
            return 0.0
        reach = max(
            abs(b) + sum(float(np.abs(one.tree.value).max()) for one in own)
            for b, own in zip(self.base, self.trees, strict=True)
        )
        unit = 2.0**-24 if self.sum_dtype == "float32" else 2.0**-53
        return rounding_apart(len(self.trees[0]), reach, unit)

    def only(self) -> tuple[TreeEnsemble, Splits]:
        """The one sum of a model of two classes, with its splits on categories.

        Raises
        ------
        Unsupported
            There is one for each class, there are no trees, or a number is not finite.
        """
        if len(self.trees) > 1:
            raise refuse("model", f"{len(self.trees)} classes", "two, or read_model with the wanted one")
        [own], [base] = self.trees, self.base
        trees = tuple(one.tree for one in own)
        splits = {(k, node): split for k, one in enumerate(own) for node, split in one.splits.items()}
        return checked(TreeEnsemble(trees, self.inputs, "sum", base, self.dtype, self.sum_dtype)), splits


def judged_classes(sums: Sums, index: int, wanted: bool) -> Judged:
    r"""The decision of a model that predicts the first of the classes whose score is largest.

    A part per rival d of class c. Where c is wanted it is the margin :math:`s_c - s_d`, and all must be above
    0; else it is :math:`s_d - s_c`, and one must. Where the model adds without rounding, a tie goes to the
    class that comes first. Elsewhere scores that differ by no more than rounding count as not accepted.
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
    made = TreeEnsemble(
        *(tuple(trees), sums.inputs, "sum", 0.0, sums.dtype, "float64", tuple(parts), combine)
    )
    return Judged(checked(made), above(sums.apart), splits)


def rounding_apart(terms: int, reach: float, unit: float) -> float:
    r"""By how much the scores of two classes have to differ for every rounding to order them alike.

    Each sum of n terms of total size R is off by at most :math:`\gamma_{n+1} R`, the difference of both,
    added up again, by twice as much in doubles; the exponentials of two scores that differ by 8 u (1 + R)
    differ by more than two of their roundings (Higham 2002, section 3.1). The double of the sum of these.
    """
    return 2.0 * unit * (4.0 * (terms + 4) * reach + 8.0 * (1.0 + reach))


def _constant(value: float) -> Tree:
    """A tree of one leaf."""
    whole = [np.array([k], dtype=np.int64) for k in (-2, -1, -1)]
    rule = np.zeros(1, dtype=bool)
    return Tree(whole[0], np.array([-2.0]), whole[1], whole[2], np.array([value]), rule)


def last_refused(accepts: Callable[[float], bool], low: float, high: float, single: bool) -> float:
    """The largest number, double or (``single``) float32, that a rising rule does not accept yet."""
    kind = np.float32 if single else np.float64
    while True:
        middle = float(kind(low + (high - low) / 2))
        if middle in (low, high):
            return low
        low, high = (low, middle) if accepts(middle) else (middle, high)


def numbers_only(ensemble: TreeEnsemble, splits: Splits) -> TreeEnsemble:
    """The ensemble of a model that splits on numbers alone.

    Raises
    ------
    Unsupported
        It splits on categories, which needs the table they come from.
    """
    if splits:
        got = f"tree {min(splits)[0]}"
        raise refuse(got, "a split on categories", "splits on numbers, or read_model with the DataFrame")
    return ensemble


def safe_threshold(ensemble: TreeEnsemble, at_zero: bool = False) -> float:
    r"""The ``accept.above`` from which on the library itself predicts class 1.

    Means: the library compares :math:`p_1` with :math:`p_0`, both rounded sums of n shares that add up to 1,
    so :math:`p_1 > 1/2 + 2 n 2^{-52}` settles it. Sums: 0, the margin at probability 1/2, plus what rounding
    of the sigmoid may hide (1e-6 where sums are float32, 1e-12 else).

    Parameters
    ----------
    at_zero
        For sums whose library compares with 0 itself (scikit-learn's boosting): exactly 0.
    """
    if ensemble.aggregate == "mean":
        return 0.5 + 2 * len(ensemble.trees) * 2.0**-52
    if at_zero:
        return 0.0
    return 1e-6 if ensemble.sum_dtype == "float32" else 1e-12
