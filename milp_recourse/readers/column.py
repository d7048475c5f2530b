"""What a fitted model takes, in terms of the DataFrame it was fitted on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from milp_recourse.domain.forest import TreeEnsemble
from milp_recourse.domain.network import ReluNetwork
from milp_recourse.instance import Acceptance
from milp_recourse.readers.margins import Arithmetic


@dataclass(frozen=True)
class Column:
    """One column of X, as the model sees it.

    Parameters
    ----------
    name
        The DataFrame's column name, unchanged (a str as a rule).
    labels
        The original labels (str, int, bool, nan, ...); None: a number. A label nan is what the model knows a
        missing value as.
    encoding
        How it enters the classifier: ``code`` (a number itself), and for labels ``one-hot`` (one 0/1 input
        per label) or ``table``.
    table
        With ``table``: one row per label, the classifier's input numbers.
    imputed
        The number or label that the model sees where this column is missing; None: no imputer.
    missing
        Whether the classifier has its own rule for a missing value: trees with ``missing_left``.
    """

    name: Any
    labels: tuple[object, ...] | None
    encoding: Literal["code", "one-hot", "table"]
    table: tuple[tuple[float, ...], ...] | None
    imputed: object | None
    missing: bool

    @property
    def width(self) -> int:
        """How many of the classifier's inputs it fills."""
        if self.labels is None:
            return 1
        return len(self.labels) if self.table is None else len(self.table[0])


@dataclass(frozen=True)
class Reading:
    """A fitted model, read.

    Parameters
    ----------
    columns
        The columns of X that the model uses, in X's order; it ignores the others.
    classifier
        Of the columns' numbers one after another: 1 input per number, one per label (``one-hot``), or a row
        of the table.
    accept
        The model's own decision: a tree ensemble's score above the threshold; a network's logit at or above
        it once :func:`milp_recourse.readers.rounding_margin` is added. The margin here is 0.
    classes
        The model's classes, in its order.
    desired
        The wish in words.
    arithmetic
        How a network's model computes, for the margin; None for trees, which are read bit for bit.
    """

    columns: tuple[Column, ...]
    classifier: ReluNetwork | TreeEnsemble
    accept: Acceptance
    classes: tuple[object, ...]
    desired: str
    arithmetic: Arithmetic | None = None
