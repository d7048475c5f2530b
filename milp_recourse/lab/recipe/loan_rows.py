"""Labelled samples of the Loan model, by default as many rows as in the split that the authors released."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.loan import FEATURES, loan, loan_as_printed

RELEASED_SIZES = (10000, 5000, 5000)
"""Rows of the train, validation and test split."""


@dataclass(frozen=True)
class Split:
    """Rows in raw units, shape (n, 7), and labels 0 or 1, shape (n,)."""

    rows: NDArray[np.float64]
    labels: NDArray[np.int64]


@dataclass(frozen=True)
class LoanData:
    """The three splits, of independently drawn rows."""

    train: Split
    validation: Split
    test: Split


def loan_label(rows: NDArray[np.float64]) -> NDArray[np.int64]:
    r"""The label of Loan rows, deterministic in the features.

    .. math:: Y = 1\{-L - D + I + S + s I S \ge 0\},\quad
              s = +1 \text{ if } I \ge 0 \text{ and } S \ge 0, \text{ else } -1.

    Parameters
    ----------
    rows
        Raw units, shape (..., 7), columns in the order of :data:`milp_recourse.problem.loan.FEATURES`.

    Returns
    -------
    NDArray
        1 (repaid) or 0, shape (...).

    Examples
    --------
    >>> int(loan_label(np.array([0, 0, 0, 1.0, 1.0, 2.0, 2.0])))
    1
    >>> int(loan_label(np.array([0, 0, 0, 1.0, 1.0, 2.0, -2.0])))
    1
    >>> int(loan_label(np.array([0, 0, 0, 1.0, 1.0, -2.0, -2.0])))
    0
    """
    rows = np.asarray(rows, dtype=np.float64)
    amount, duration, income, savings = (
        rows[..., FEATURES.index(name)] for name in ("amount", "duration", "income", "savings")
    )
    sign = np.where((income >= 0) & (savings >= 0), 1.0, -1.0)
    return (-amount - duration + income + savings + sign * income * savings >= 0).astype(np.int64)


def sample_loan(seed: int, sizes: tuple[int, int, int] = RELEASED_SIZES, printed: bool = False) -> LoanData:
    """Draw the three splits one after the other from one generator seeded with ``seed``.

    ``printed``: from the equations as the iCARMA paper prints them.
    """
    rng, scm = np.random.default_rng(seed), loan_as_printed() if printed else loan()
    drawn = (scm.sample(size, rng) for size in sizes)
    return LoanData(*(Split(rows, loan_label(rows)) for rows in drawn))
