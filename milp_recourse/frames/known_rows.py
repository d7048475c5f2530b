"""Rows of X that the model has decided: where searches start, and a test of whether it was read rightly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from milp_recourse.frames.columns import TableColumn
from milp_recourse.frames.people_rows import read_rows
from milp_recourse.frames.verdict import Predict, verdicts
from milp_recourse.instance import Instance

SAMPLE, STARTS, CHECKED = 20_000, 2_000, 1_000
"""Rows of X that the model is asked about, accepted ones that searches may start from, and those on which its
own word is compared with what was read of it."""

NEAR = 1e-3
"""Rounding may decide a score whose distance from the threshold is below this share of the median one."""


@dataclass(frozen=True)
class KnownRows:
    """Rows of X that can be read, and the model's own word about them.

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
        """How ``predict`` and what was read of the model differ; None where they agree.

        Two rows per person would not show a ``predict`` of its own, or categories in another order. Rows
        within rounding of the threshold are left out.

        Parameters
        ----------
        problem
            The model side; its own factual does not matter.
        """
        values, said = self.values[:CHECKED], self.wanted[:CHECKED]
        scores = problem.classifier.scores(problem.model_rows(values))
        distance = scores - problem.accept.threshold
        sure = np.abs(distance) > NEAR * (np.median(np.abs(distance)) if len(distance) else 0.0)
        wrong = np.flatnonzero(sure & ((distance > 0) != said))
        if not len(wrong):
            return None
        return (
            f"predict is not the model that was read: they differ on {len(wrong)} of {len(said)} rows of X, "
            f"such as {self.names[wrong[0]]!r} (a predict of its own, or categories that are not those of "
            "the fit)"
        )


def ask_model(
    predict: Predict, wants: Callable[[object], bool], X: pd.DataFrame, columns: Sequence[TableColumn]
) -> KnownRows:
    """Ask the model about a sample of X: of it, the first rows, and of the rest enough that are accepted."""
    some = X.sample(min(len(X), SAMPLE), random_state=0)
    wanted = verdicts(predict, some, wants)
    order = np.argsort(~wanted[CHECKED:], kind="stable")[:STARTS] + CHECKED
    kept = [*range(min(CHECKED, len(some))), *(k for k in order.tolist() if wanted[k])]
    rows = read_rows(some.iloc[kept], columns, X.columns)
    known = np.array([i not in rows.faults for i in range(len(rows))], dtype=bool)
    return KnownRows(rows.frame.index[known], rows.values[known], wanted[kept][known])
