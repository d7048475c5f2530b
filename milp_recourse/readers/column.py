"""A fitted model in terms of the columns of the DataFrame X it was fitted on, and the margin by which the
model itself accepts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from milp_recourse.problem.enclosure import round_down, round_up
from milp_recourse.problem.instance import Acceptance, Classifier
from milp_recourse.readers.classes import Interval, Target
from milp_recourse.readers.margins import Arithmetic, margins_of


@dataclass(frozen=True)
class Column:
    """One column of X, as it enters the classifier.

    Parameters
    ----------
    name
        The DataFrame's column name, unchanged (usually a str).
    labels
        The original labels (str, int, bool, nan, ...); None for a column of numbers. If nan is a label, the
        model treats a missing value as a category.
    encoding
        How a value enters the classifier: ``code`` for numbers, which enter as they are; for labels
        ``one-hot`` (one 0/1 input per label) or ``table``, or their index with ``code``, where the model is
        asked.
    table
        With ``table``, one row per label: the classifier's input numbers.
    imputed
        The number or label that an imputer puts in place of a missing value; None without imputer.
    missing
        Whether the classifier has its own rule for a missing value: trees with ``missing_left``.
    gaps
        The missing values that the imputer replaces, of a column of Python objects
        (:mod:`milp_recourse.readers.gaps`).
    within
        The least and largest number for which the reading holds, or that the transformers have a value of;
        None if there is no limit.
    whole
        Whether the reading holds of whole numbers only.
    """

    name: Any
    labels: tuple[object, ...] | None
    encoding: Literal["code", "one-hot", "table"]
    table: tuple[tuple[float, ...], ...] | None
    imputed: object | None
    missing: bool
    gaps: frozenset[str] = frozenset()
    within: tuple[float, float] | None = None
    whole: bool = False

    @property
    def width(self) -> int:
        """The number of the classifier's inputs that the column fills."""
        if self.labels is None:
            return 1
        if self.encoding == "code":
            return 1
        return len(self.labels) if self.table is None else len(self.table[0])


@dataclass(frozen=True)
class Reading:
    """A fitted model as a classifier of X's raw columns.

    Parameters
    ----------
    columns
        The columns of X that the model uses, in X's order; it ignores the others.
    classifier
        A function of the columns' inputs, one column after another: one input for a number, one per label
        for ``one-hot``, a row of the table for ``table``.
    accept
        When the model itself predicts the desired class: if a tree ensemble's score is above the threshold
        (or at least the threshold, if not ``strict``); if a network's logit is at least the threshold plus
        :func:`milp_recourse.readers.rounding_margin`. The margin in here is 0.
    classes
        The model's classes, in its order; () for a regression.
    wish
        The desired class, or the numbers that people want a regression to predict.
    measure
        What the score is, in words: the unit of a margin.
    unit
        How much score one unit of the margin is: the number of trees where their probabilities are not
        divided by it.
    arithmetic
        How the model of a network computes, from which the margin follows; None for trees.
    near
        How far below the threshold a score can be that the model may accept: of trees because its rounding
        is not known, of a network because it is nowhere above the function that it stands for. 0 where there
        are none.
    """

    columns: tuple[Column, ...]
    classifier: Classifier
    accept: Acceptance
    classes: tuple[object, ...]
    wish: Target | Interval
    arithmetic: Arithmetic | None = None
    near: float = 0.0
    measure: str = "logit"
    unit: float = 1.0

    @property
    def unsure(self) -> Acceptance:
        """A threshold that everything passes that the model may accept, and a margin: what passes both also
        passes :attr:`accept`. It is ``accept`` where ``near`` is 0."""
        if not self.near:
            return self.accept
        least = Fraction(math.nextafter(self.accept.above, math.inf))
        threshold = round_down(least - Fraction(self.near))
        return Acceptance(threshold, round_up(least - Fraction(threshold)))

    @property
    def desired(self) -> str:
        """The wish in words."""
        return self.wish.words


def rounding_margin(reading: Reading, lower: ArrayLike, upper: ArrayLike) -> float:
    """:func:`rounding_margins` of one box, one finite number per input column of the classifier."""
    return float(rounding_margins(reading, np.atleast_1d(lower)[None], np.atleast_1d(upper)[None])[0])


def rounding_margins(reading: Reading, lower: ArrayLike, upper: ArrayLike) -> NDArray[np.float64]:
    r"""For each of several boxes, a margin m: what the network accepts by m, the model itself accepts.

    For every row x of a box whose exact logit is :math:`h(x) \ge \text{threshold} + m`, the model itself
    predicts the desired class. Let z be the exact value of an affine map of n terms, :math:`\hat z` the one
    that the model computes in any order of summation, and u the unit roundoff. Then

    .. math:: |\hat z - z| \le |W| e + \gamma_{n+8} (|W| (a + e) + |b|), \quad \gamma_k = \frac{k u}{1 - k u},

    where e bounds the error of the map's inputs and a their size, from intervals over the box. Maps that are
    multiplied into one layer of the network differ from it by :math:`\gamma` times the product of their
    absolute values. A ReLU enlarges no difference, and removes it if its input is below 0 on the whole box.
    Added to this are the size of logits for which the closing sigmoid or softmax ties the classes, and the
    rounding of raw numbers to float32 by models that do so.

    Parameters
    ----------
    reading
        The result of :func:`~milp_recourse.readers.read_model`.
    lower, upper
        The boxes, (n, input columns of the classifier), finite.

    Returns
    -------
    NDArray
        In logit units, above 0, (n,); 0 for trees, which are read bit for bit; infinite where no bound is
        finite. No box's margin depends on the others.

    References
    ----------
    Higham (2002), Accuracy and Stability of Numerical Algorithms, section 3.1,
    https://doi.org/10.1137/1.9780898718027
    """
    if reading.arithmetic is None:
        return np.zeros(len(np.asarray(lower)))
    return margins_of(reading.arithmetic, lower, upper)
