"""What the readers of trees share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from milp_recourse.domain.forest import TreeEnsemble
from milp_recourse.errors import Unsupported
from milp_recourse.readers.refusal import refuse

LARGEST = float(np.finfo(np.float64).max)


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
    above
        The wanted class is predicted where the score is above this number.
    splits
        Splits on categories. Such a node's threshold says nothing.
    """

    ensemble: TreeEnsemble
    above: float
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


def judged_sum(ensemble: TreeEnsemble, above: float, second: bool, splits: Splits | None = None) -> Judged:
    """For a sum whose model predicts its second class where the score is above ``above``, else the first.

    The first is wanted: negated values add up, rounding included, to the negated score, and
    ``s <= t`` is ``-s > t'`` with t' the double before -t.
    """
    if second:
        return Judged(ensemble, above, splits or {})
    trees = tuple(replace(tree, value=0.0 - tree.value) for tree in ensemble.trees)
    mirrored = replace(ensemble, trees=trees, base=0.0 - ensemble.base)
    return Judged(mirrored, float(np.nextafter(-above, -np.inf)), splits or {})


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
