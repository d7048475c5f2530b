"""The model's own predictions for rows of X: searches start from accepted rows, and a test compares the model
with the one that was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from milp_recourse.problem.instance import Instance
from milp_recourse.tables.columns import TableColumn, shown
from milp_recourse.tables.people_rows import read_rows
from milp_recourse.tables.verdict import OwnWord

SAMPLE = 20_000
"""The most rows of X for which ``predict`` is called."""

STARTS = 2_000
"""The most accepted rows from which searches may start."""

CHECKED = 1_000
"""The number of rows on which ``predict`` is compared with the model that was read."""

NEAR = 1e-3
"""Rows are not compared if their distance from the threshold is below this part of the median distance."""


@dataclass(frozen=True)
class KnownRows:
    """Rows of X that can be read, and the model's own predictions for them.

    Attributes
    ----------
    names
        The rows' labels in X.
    values
        Shape (rows, features): as numbers.
    wanted
        Whether ``predict`` gives a desired class, shape (rows,).
    """

    names: pd.Index
    values: NDArray[np.float64]
    wanted: NDArray[np.bool_]

    @property
    def starts(self) -> NDArray[np.float64]:
        """Accepted rows: searches may start from them."""
        return self.values[self.wanted][:STARTS]

    def doubt(self, problem: Instance) -> str | None:
        """How ``predict`` differs from the model that was read, in a sentence; None if they agree.

        They can differ if ``predict`` is another function, or if categories are in another order than at the
        fit. Each person's two rows alone might not show it. Rows near the threshold are left out.

        Parameters
        ----------
        problem
            The problem; its factual is ignored.
        """
        values, predicted = self.values[:CHECKED], self.wanted[:CHECKED]
        scores = problem.classifier.scores(problem.model_rows(values))
        distance = scores - problem.accept.threshold
        sure = np.abs(distance) > NEAR * (np.median(np.abs(distance)) if len(distance) else 0.0)
        wrong = np.flatnonzero(sure & ((distance > 0) != predicted))
        if not len(wrong):
            return None
        return (
            f"predict is not the model that was read: they differ on {len(wrong)} of {len(values)} rows of "
            f"X, such as {shown(self.names[wrong[0]])} (a predict of its own, or categories that are not "
            "those of the fit)"
        )


def ask_model(word: OwnWord, X: pd.DataFrame, columns: Sequence[TableColumn]) -> KnownRows:
    """Ask the model about a sample of X; keep its first rows, and accepted ones of the others."""
    sample = X.sample(min(len(X), SAMPLE), random_state=0)
    wanted = word.accepts(sample)
    order = np.argsort(~wanted[CHECKED:], kind="stable")[:STARTS] + CHECKED
    chosen = [*range(min(CHECKED, len(sample))), *(k for k in order.tolist() if wanted[k])]
    rows = read_rows(sample.iloc[chosen], columns, X.columns)
    known = np.array([i not in rows.faults for i in range(len(rows))], dtype=bool)
    return KnownRows(rows.frame.index[known], rows.values[known], wanted[chosen][known])
