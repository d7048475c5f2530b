"""What the readers of trees share."""

from __future__ import annotations

import math
from collections.abc import Callable
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


@dataclass(frozen=True)
class Shares:
    """What a model of more than two classes adds up for each class, in its own arithmetic.

    Attributes
    ----------
    trees
        Per class, the trees whose values add up to its score, with their number among the splits' trees.
    base
        Per class, what its sum starts from.
    splits
        Splits on categories.
    apart
        Where the scores of two classes differ by more, the model orders them as it would without rounding; 0
        where it adds without rounding.
    """

    trees: tuple[tuple[Tree, ...], ...]
    base: tuple[float, ...]
    dtype: Precision
    inputs: int
    splits: tuple[dict[int, dict[int, CategorySplit]], ...]
    apart: float


def judged_classes(shares: Shares, index: int, wanted: bool) -> Judged:
    r"""The decision of a model that predicts the first of the classes whose score is largest.

    A part per rival d of class c. Where c is wanted it is the margin :math:`s_c - s_d`, and all must be above
    0; else it is :math:`s_d - s_c`, and one must. Where the model adds without rounding, a tie goes to the
    class that comes first. Elsewhere scores that differ by no more than rounding count as not accepted.
    """
    trees: list[Tree] = []
    splits: Splits = {}
    parts = []
    for rival in range(len(shares.trees)):
        if rival == index:
            continue
        first, second = (index, rival) if wanted else (rival, index)
        before = len(trees)
        base = shares.base[first] - shares.base[second]
        if shares.apart == 0.0 and first < second:
            base += _TIE
        trees.append(_constant(base))
        for sign, which in ((1.0, first), (-1.0, second)):
            for k, tree in enumerate(shares.trees[which]):
                for node, split in shares.splits[which].get(k, {}).items():
                    splits[len(trees), node] = split
                trees.append(tree if sign > 0 else replace(tree, value=0.0 - tree.value))
        parts.append(len(trees) - before)
    combine: Combine = "smallest" if wanted else "largest"
    made = TreeEnsemble(
        *(tuple(trees), shares.inputs, "sum", 0.0, shares.dtype, "float64", tuple(parts), combine)
    )
    return Judged(checked(made), above(shares.apart), splits)


def boosted(
    trees: tuple[tuple[Tree, ...], ...],
    base: tuple[float, ...],
    dtype: Precision,
    inputs: int,
    splits: tuple[dict[int, dict[int, CategorySplit]], ...],
    unit: float,
) -> Shares:
    """The shares of a boosted model that adds in precision ``unit`` and compares probabilities."""
    reach = max(
        abs(b) + sum(float(np.abs(tree.value).max()) for tree in own)
        for b, own in zip(base, trees, strict=True)
    )
    return Shares(trees, base, dtype, inputs, splits, rounding_apart(len(trees[0]), reach, unit))


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
